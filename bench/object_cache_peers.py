"""What the caches of MosaicML's streaming and of LitData save, beside bench/object_cache.py: the same data, limits and epochs.

Usage: python bench/object_cache_peers.py [--rows 2000] [--row-bytes 60000] [--epochs 5] [--shares 0.25 0.5 0.75 1]
       pip install mosaicml-streaming litdata

Both fetch whole shards, here of 20 rows, from a folder, and read them shuffled with their defaults, in one process. What is
counted are the bytes that a later epoch fetches, in multiples of the data. Where a share c of the data fits, it is 1 - c for
Penstock's cache, which fetches the ranges of rows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROWS_OF_A_SHARD = 20


def write_mosaic(folder: str, rows: int, row_bytes: int) -> None:
    from streaming import MDSWriter

    with MDSWriter(out=folder, columns={"value": "bytes"}, size_limit=ROWS_OF_A_SHARD * (row_bytes + 100)) as writer:
        for _ in range(rows):
            writer.write({"value": os.urandom(row_bytes)})


def run_mosaic(folder: str, cache: str, limit: int, epochs: int) -> list[int]:
    from streaming import StreamingDataset
    from streaming.base.stream import Stream

    fetched = [0]
    usual = Stream._download_file

    def download(self, name, *more):
        local = usual(self, name, *more)
        if not name.endswith(".json"):
            fetched[0] += os.path.getsize(local)
        return local

    Stream._download_file = download
    data = StreamingDataset(remote=folder, local=cache, cache_limit=limit, shuffle=True, batch_size=20)
    counts = []
    for _ in range(epochs):
        before = fetched[0]
        for _ in data:
            pass
        counts.append(fetched[0] - before)
    return counts


def make_row(row_bytes: int) -> bytes:
    return os.urandom(row_bytes)


def write_litdata(folder: str, rows: int, row_bytes: int) -> None:
    from litdata import optimize

    optimize(fn=make_row, inputs=[row_bytes] * rows, output_dir=folder, chunk_size=ROWS_OF_A_SHARD, num_workers=1, verbose=False)


def run_litdata(folder: str, cache: str, limit: int, epochs: int) -> list[int]:
    from litdata import StreamingDataset
    from litdata.streaming.downloader import LocalDownloader
    from litdata.streaming.resolver import Dir

    fetched = [0]
    usual = LocalDownloader.download_file

    def download(self, remote, local):
        is_there = os.path.exists(local)
        usual(self, remote, local)
        if remote.endswith(".bin") and not is_there:
            fetched[0] += os.path.getsize(remote)

    LocalDownloader.download_file = download
    data = StreamingDataset(Dir(path=cache, url="local:" + folder), max_cache_size=limit, shuffle=True, seed=1)
    counts = []
    for epoch in range(epochs):
        before = fetched[0]
        data.set_epoch(epoch)
        for _ in data:
            pass
        counts.append(fetched[0] - before)
    return counts


WORKS = {"streaming": (write_mosaic, run_mosaic), "litdata": (write_litdata, run_litdata)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--row-bytes", type=int, default=60_000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.25, 0.5, 0.75, 1])
    parser.add_argument("--run", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        name, folder, cache, limit = options.run
        counts = WORKS[name][1](folder, cache, int(limit), options.epochs)
        print("counts", *counts)
        return
    print("| share that fits | " + " | ".join(WORKS) + " |\n| ---: |" + " ---: |" * len(WORKS))
    with tempfile.TemporaryDirectory() as base:
        for name, (write, _) in WORKS.items():
            write(f"{base}/{name}", options.rows, options.row_bytes)
        sizes = {name: sum(p.stat().st_size for p in Path(base, name).rglob("*") if p.suffix in (".mds", ".bin")) for name in WORKS}
        for share in options.shares:
            saved = []
            for name in WORKS:
                cache = f"{base}/cache"
                limit = int(share * sizes[name] * (1.02 if share == 1 else 1))
                command = [sys.executable, __file__, "--epochs", str(options.epochs), "--run", name, f"{base}/{name}", cache, str(limit)]
                try:
                    ended = subprocess.run(command, capture_output=True, text=True, timeout=200)
                    lines = [line for line in ended.stdout.splitlines() if line.startswith("counts")]
                    counts = [int(count) for count in lines[0].split()[1:]] if lines else []
                    saved.append(f"{sum(counts[1:]) / sizes[name] / len(counts[1:]):.2f}" if counts else "fails")
                except subprocess.TimeoutExpired:
                    saved.append("does not end in 200 s")
                shutil.rmtree(cache, ignore_errors=True)
            print(f"| {share:.0%} | " + " | ".join(saved) + " |", flush=True)


if __name__ == "__main__":
    main()
