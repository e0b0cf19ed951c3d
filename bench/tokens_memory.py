"""What packing and reading large token files takes in memory: RssAnon, which leaves out the mapped files that the page cache holds.

Usage: python bench/tokens_memory.py FOLDER [--documents 100000000] [--gigabytes 20] [--steps 300] [--whole-epoch]

FOLDER gets a sparse raw file of so many GiB (it takes no room on most file systems), and a Megatron data set of so many documents, 1 to
1,000 tokens each: its index takes 20 bytes a document, its tokens are sparse. A run of the loader is an epoch, or --steps if that is less.
--whole-epoch reads nothing but the raw file, all of it, in order.
"""

from __future__ import annotations

import argparse
import re
import struct
import time
from pathlib import Path

import numpy as np
import penstock as ps

MIB = 1 << 20


def own_memory() -> float:
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) / 1024


def make_sparse(path: Path, size: int) -> Path:
    with open(path, "wb") as file:
        file.truncate(size)
    return path


def make_megatron(folder: Path, documents: int) -> Path:
    lengths = np.random.default_rng(7).integers(1, 1000, documents, np.int32, endpoint=True)
    ends = np.cumsum(lengths, dtype=np.int64) * 2
    with open(folder / "many.idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, documents, documents + 1))
        lengths.tofile(file)
        file.write(np.int64(0).tobytes())
        ends[:-1].tofile(file)
        np.arange(documents + 1, dtype=np.int64).tofile(file)
    make_sparse(folder / "many.bin", int(ends[-1]))
    return folder / "many"


def measure(name: str, make: object, steps: int | None) -> None:
    before, begin = own_memory(), time.perf_counter()
    plan = make()  # type: ignore[operator]
    made, seconds = own_memory() - before, time.perf_counter() - begin
    if steps is not None:
        plan = plan.shuffle(seed=1)
    loader = plan.batch(64).loader(budget_bytes=64 * MIB)
    seen = []
    for step, _ in enumerate(loader):
        if step % 10 == 0 and step >= 20:
            seen.append(own_memory() - before)
        if step == steps:
            break
    rows = min((step + 1) * 64, plan.size)
    print(f"| {name} | {seconds:.1f} | {made:,.0f} | {seen[0]:,.0f} | {max(seen):,.0f} | {rows:,} of {plan.size:,} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, default=100_000_000)
    parser.add_argument("--gigabytes", type=int, default=20)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--whole-epoch", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    sparse = make_sparse(options.folder / "sparse.bin", options.gigabytes << 30)
    np.zeros(1)
    print("| Rows of 4,096, i64, batches of 64, a budget of 64 MiB | Seconds to open | MiB then | at step 20 | at most | Rows read |")
    print("|---|---|---|---|---|---|")
    steps = None if options.whole_epoch else options.steps
    measure(f"{options.gigabytes} GiB of u16, blocks", lambda: ps.token_files(sparse).blocks(4096), steps)
    if options.whole_epoch:
        return
    many = make_megatron(options.folder, options.documents)
    for method in ("best_fit", "first_fit", "wrap"):
        measure(f"{options.documents:,} documents, {method}", lambda: ps.megatron(many).pack(4096, method=method), options.steps)


if __name__ == "__main__":
    main()
