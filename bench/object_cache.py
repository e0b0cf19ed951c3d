"""What the cache of objects on a local disk saves: its hit ratio against the share of the data that fits, measured and by the formula.

Usage: python bench/object_cache.py [--rows 2000] [--row-bytes 60000] [--epochs 5] [--shares 0.05 0.1 0.25 0.5 0.75 0.9 1]
       pip install penstock pyarrow

The bucket is the tests' stand-in for the Hugging Face Hub, on the loopback: a Parquet file of uncompressed values, each of
which is one read. The epochs are reshuffled; the first one, which fills the cache, does not count. Each run is a process of
its own with an empty cache. Requests are those to the bucket in the epochs that count.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python" / "tests"))

DATA = "hf://datasets/owner/name/data"


def run(options: argparse.Namespace) -> None:
    """One run, in a process of its own: prints the reads of each epoch."""
    import penstock as ps

    data = ps.parquet(DATA).map(ps.pad("value", options.row_bytes))
    for epoch in range(options.epochs):
        loader = data.shuffle(seed=epoch).batch(20).loader(threads=1)
        for _ in loader:
            pass
        print(json.dumps({name.split()[0]: tier for name, tier in loader.stats().tiers.items()}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--row-bytes", type=int, default=60_000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1])
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(options)
        return
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from hub_server import Hub

    with tempfile.TemporaryDirectory() as folder, Hub() as hub:
        files = Path(folder) / "files" / "data"
        files.mkdir(parents=True)
        rng = np.random.default_rng(1)
        values = pa.array([rng.bytes(options.row_bytes) for _ in range(options.rows)], pa.binary())
        pq.write_table(pa.table({"value": values}), files / "rows.parquet", compression="none", use_dictionary=False)
        hub.push(files.parent)
        environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": f"{folder}/hf", "PENSTOCK_CACHE": f"{folder}/cache"}
        for name in ("HF_TOKEN", "PENSTOCK_OBJECT_CACHE"):
            environment.pop(name, None)

        def work(**more: str) -> list[dict]:
            command = [sys.executable, __file__, "--run", "--epochs", str(options.epochs), "--row-bytes", str(options.row_bytes)]
            ended = subprocess.run(command, env={**environment, **more}, capture_output=True, text=True, check=True)
            return [json.loads(line) for line in ended.stdout.splitlines()]

        work()  # makes the index
        # What an entry takes of the disk: its bytes, its head and the rest of the last block.
        taken = math.ceil((options.row_bytes + 200) / 4096) * 4096 * options.rows
        later = (options.epochs - 1) * options.rows
        print("| share that fits | keep | keep, the formula | lru | lru, the formula | requests, keep | requests, lru |")
        print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        for share in options.shares:
            megabytes = max(1, math.ceil(share * taken / 2**20) if share == 1 else round(share * taken / 2**20))
            fits = min(1.0, megabytes * 2**20 / taken)
            hits, requests = {}, {}
            for policy in ("keep", "lru"):
                with tempfile.TemporaryDirectory(dir=folder) as cache:
                    epochs = work(PENSTOCK_OBJECT_CACHE=cache, PENSTOCK_OBJECT_CACHE_MB=str(megabytes), PENSTOCK_OBJECT_CACHE_POLICY=policy)
                hits[policy] = sum(epoch["disk"]["reads"] for epoch in epochs[1:]) / later
                requests[policy] = sum(epoch["bucket"]["reads"] for epoch in epochs[1:])
            lru = fits + (1 - fits) * math.log(1 - fits) if fits < 1 else 1
            print(f"| {fits:.1%} | {hits['keep']:.1%} | {fits:.1%} | {hits['lru']:.1%} | {lru:.1%} "
                  f"| {requests['keep']:,} | {requests['lru']:,} |", flush=True)


if __name__ == "__main__":
    main()
