"""What a condition on one column costs: time, and bytes that are read, of a Parquet file that has images beside it.

Usage: python bench/where_column.py FILE.parquet [--rows 1000000] [--image-bytes 400] [--rounds 3]
       pip install penstock pyarrow

FILE is made where it is missing: uncompressed, with random bytes as images and a 32-bit float. The ceiling is pyarrow, which reads
the column alone, and filters it in memory.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import penstock as ps
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def write(path: Path, rows: int, image_bytes: int) -> None:
    rng = np.random.default_rng(1)
    schema = pa.schema([("image", pa.binary()), ("score", pa.float32())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for first in range(0, rows, 100_000):
            count = min(100_000, rows - first)
            offsets = np.arange(count + 1, dtype=np.int32) * image_bytes
            buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(rng.bytes(count * image_bytes))]
            images = pa.Array.from_buffers(pa.binary(), count, buffers)
            writer.write_table(pa.table([images, pa.array(rng.random(count, np.float32))], schema=schema))


def bytes_read() -> int:
    """By this process, as Linux counts them."""
    return int(dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())["rchar"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--image-bytes", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not options.file.exists():
        write(options.file, options.rows, options.image_bytes)
    ps.parquet(options.file)  # makes the index

    works: dict[str, Callable[[], int]] = {
        "where('score > 0.5')": lambda: len(ps.parquet(options.file).where("score > 0.5")),
        "column('score')": lambda: len(ps.parquet(options.file).column("score")),
        "pyarrow": lambda: pq.read_table(options.file, columns=["score"]).filter(pc.field("score") > 0.5).num_rows,
    }
    size = options.file.stat().st_size / 1e6
    for _ in range(options.rounds):
        for name, work in works.items():
            before, begin, cpu = bytes_read(), time.perf_counter(), time.process_time()
            found = work()
            took, cpu, read = time.perf_counter() - begin, time.process_time() - cpu, bytes_read() - before
            print(f"{name}: {found} rows, {took:.2f} s, {cpu:.2f} s of processor time, {read / 1e6:.1f} of {size:.0f} MB read")


if __name__ == "__main__":
    main()
