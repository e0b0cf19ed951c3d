"""What `locality` saves: requests and bytes of a bucket by epoch, for processes whose caches each hold a part of the data.

Usage: python bench/locality.py [--rows 4096] [--row-bytes 7000] [--processes 8] [--replica-batch 128] [--epochs 4] [--slack 0 0.25]
       scripts/moto && pip install penstock pyarrow

The bucket is the tests' S3 server (moto), on the loopback: a Parquet file of uncompressed values, each of which is one read. Each
process has a cache folder of its own, and so is a machine of its own. A cache of slack 0 holds as many rows as there are for each
process; 0.25 is a quarter more. The epochs are reshuffled; requests and bytes are those that the processes sent to the bucket
for rows, as their loaders count them. The digest is the sum over the processes; it must be that of one process.
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

ROOT = Path(__file__).resolve().parents[1]
DATA = "s3://photos/data"


def run(options: argparse.Namespace) -> None:
    """One process: prints what each epoch read, and its digest."""
    import penstock as ps

    context = ps.InputContext(
        num_input_pipelines=options.processes, input_pipeline_id=options.rank, machines=range(options.processes)
    )
    data = ps.parquet(DATA).map(ps.pad("value", options.row_bytes))
    for epoch in range(options.epochs):
        batches = data.shuffle(seed=epoch).batch(options.batch, uneven=True)
        loader = batches.loader(context=context, locality=options.locality, digest=True, threads=1)
        for _ in loader:
            pass
        tiers = {name.split()[0]: tier for name, tier in loader.stats().tiers.items()}
        bucket = tiers["bucket"]
        print(json.dumps({"digest": loader.digest, "requests": bucket["reads"], "bytes": bucket["bytes"]}))


def all_processes(options: argparse.Namespace, environment: dict[str, str], processes: int, cache: str, megabytes: int,
                  locality: bool) -> list[dict]:
    """What the epochs read in all processes together."""
    running = []
    for rank in range(processes):
        command = [sys.executable, __file__, "--run", "--rank", str(rank), "--processes", str(processes)]
        command += ["--rows", str(options.rows), "--row-bytes", str(options.row_bytes), "--epochs", str(options.epochs)]
        command += ["--batch", str(options.processes * options.replica_batch)] + ["--locality"] * locality
        own = environment | {"PENSTOCK_OBJECT_CACHE": f"{cache}/{rank}", "PENSTOCK_OBJECT_CACHE_MB": str(megabytes)}
        running.append(subprocess.Popen(command, env=own, stdout=subprocess.PIPE, text=True))
    epochs = [{"digest": 0, "requests": 0, "bytes": 0} for _ in range(options.epochs)]
    for process in running:
        lines = process.communicate()[0].splitlines()
        if process.returncode != 0:
            raise SystemExit(f"a process failed with {process.returncode}")
        for total, line in zip(epochs, map(json.loads, lines), strict=True):
            total["digest"] = (total["digest"] + int(line["digest"], 16)) % 2**128
            total["requests"] += line["requests"]
            total["bytes"] += line["bytes"]
    return epochs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--row-bytes", type=int, default=7000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--replica-batch", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--slack", type=float, nargs="+", default=[0, 0.25])
    for hidden, kind in (("--rank", int), ("--batch", int)):
        parser.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--locality", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(options)
        return
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "files" / "data"
        files.mkdir(parents=True)
        rng = np.random.default_rng(1)
        values = pa.array([rng.bytes(options.row_bytes) for _ in range(options.rows)], pa.binary())
        pq.write_table(pa.table({"value": values}), files / "rows.parquet", compression="none", use_dictionary=False)
        server = subprocess.Popen(
            [ROOT / "build" / "moto" / "bin" / "python", ROOT / "tests" / "storage" / "s3_server.py", "--folder", files.parent],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        try:
            said = server.stdout.readline().split()
            assert said[:1] == ["port"], "the S3 server did not start: scripts/moto installs it"
            environment = {**os.environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{said[1]}", "AWS_ACCESS_KEY_ID": said[2],
                           "AWS_SECRET_ACCESS_KEY": said[3], "no_proxy": "127.0.0.1", "PENSTOCK_CACHE": f"{folder}/index"}
            for name in ("PENSTOCK_OBJECT_CACHE", "PENSTOCK_OBJECT_CACHE_MB", "PENSTOCK_OBJECT_CACHE_POLICY"):
                environment.pop(name, None)
            everything = f"{folder}/everything"
            whole = all_processes(options, environment, 1, everything, 10_000, False)  # and makes the index
            # What an entry takes of the disk: its bytes, its head and the rest of the last block.
            taken = math.ceil((options.row_bytes + 200) / 4096) * 4096 * options.rows / options.processes
            header = [f"epoch {epoch}" for epoch in range(1, options.epochs + 1)]
            print(f"| each cache holds | locality | {' | '.join(header)} | bytes of an epoch after the first |")
            print("| --- | --- |" + " ---: |" * (options.epochs + 1))
            for slack in options.slack:
                for locality in (False, True):
                    with tempfile.TemporaryDirectory(dir=folder) as cache:
                        megabytes = math.ceil(taken * (1 + slack) / 2**20)
                        epochs = all_processes(options, environment, options.processes, cache, megabytes, locality)
                    assert [one["digest"] for one in epochs] == [one["digest"] for one in whole], "other batches"
                    cells = [f"{one['requests']:,} ({one['requests'] / options.rows:.1%})" for one in epochs]
                    later = sum(one["bytes"] for one in epochs[1:]) / (options.epochs - 1) / (options.rows * options.row_bytes)
                    share = megabytes * 2**20 / taken / options.processes
                    print(f"| {share:.1%} | {'yes' if locality else 'no'} | {' | '.join(cells)} | {later:.1%} |", flush=True)
            print("\nThe digests of all epochs are those of one process.")
        finally:
            server.kill()


if __name__ == "__main__":
    main()
