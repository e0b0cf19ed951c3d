"""A PyTorch map-style data set, as it is, through penstock.torch.from_dataset and through torch's DataLoader, side by side.

Usage: python bench/map_style.py PHOTOGRAPHS [--rounds 5] [--cores 1,2]

Three data sets: photographs that Pillow decodes, crops and resizes to 224 x 224; rows of 1,024 tokens of a numpy array; and
4 floats with a label. Each loader runs in a process of its own, in turn, as many rounds as asked for; the numbers are medians, with
the lowest and highest. "items" is the ceiling: the data set's own items in a loop, without any loader. Memory is what the process and
its workers hold together (PSS), at the end of the pass.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SIZES = {"photographs": 300, "tokens": 60_000, "floats": 60_000}
BATCHES = {"photographs": 32, "tokens": 256, "floats": 256}
LOADERS = {
    "items": "the items alone",
    "penstock": "from_dataset",
    "penstock-2": "from_dataset, workers=2",
    "torch-0": "DataLoader, num_workers=0",
    "torch-2": "DataLoader, num_workers=2",
}


class Photographs:
    def __init__(self, folder: str) -> None:
        self.files = sorted(str(path) for path in Path(folder).rglob("*.JPEG"))
        self.count = SIZES["photographs"]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Any:
        import numpy
        from PIL import Image

        image = Image.open(self.files[number % len(self.files)]).convert("RGB")
        width, height = image.size
        side = random.Random(number).uniform(0.5, 1) * min(width, height)
        box = ((width - side) / 2, (height - side) / 2, (width + side) / 2, (height + side) / 2)
        return numpy.array(image.resize((224, 224), Image.Resampling.BILINEAR, box=box)), number % 1000


class Tokens:
    def __init__(self) -> None:
        import numpy

        self.tokens = numpy.arange(2_000_000, dtype=numpy.int64) % 50_257

    def __len__(self) -> int:
        return SIZES["tokens"]

    def __getitem__(self, number: int) -> Any:
        begin = number * 32
        return {"x": self.tokens[begin : begin + 1024], "y": self.tokens[begin + 1 : begin + 1025]}


class Floats:
    def __init__(self) -> None:
        import numpy

        self.values = numpy.random.default_rng(1).random((SIZES["floats"], 4), dtype=numpy.float32)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, number: int) -> Any:
        return self.values[number], number % 10


def data_set(name: str, folder: str) -> Any:
    return {"photographs": lambda: Photographs(folder), "tokens": Tokens, "floats": Floats}[name]()


def held_mib() -> float:
    """Of this process and its children, memory that they share counted once."""
    pids = [os.getpid()]
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            pids += [int(child) for child in (task / "children").read_text().split()]
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


def measure(name: str, loader: str, folder: str) -> dict[str, float]:
    import torch
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    data, size = data_set(name, folder), BATCHES[name]
    if loader == "items":
        order = random.Random(1).sample(range(len(data)), len(data))
        begin = time.perf_counter()
        for number in order:
            data[number]
        return {"us": (time.perf_counter() - begin) / (len(data) / size) * 1e6, "mib": held_mib()}
    if loader.startswith("penstock"):
        import penstock.torch

        batches: Any = penstock.torch.from_dataset(data, size, shuffle=True, seed=1, workers=2 if loader.endswith("2") else 0, concurrent=True)
    else:
        batches = DataLoader(data, size, shuffle=True, num_workers=int(loader[-1]))
    passes = iter(batches)
    next(passes)  # the start of threads and processes is not measured
    count, begin = 0, time.perf_counter()
    for _ in passes:
        count += 1
        if count == len(data) // size // 2:
            held = held_mib()
    return {"us": (time.perf_counter() - begin) / count * 1e6, "mib": held}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photographs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", default="1,2")
    parser.add_argument("--one", nargs=2, metavar=("DATA", "LOADER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(*given.one, given.photographs)))
        return
    for cores in map(int, given.cores.split(",")):
        found: dict[tuple[str, str], list[dict[str, float]]] = {}
        for _ in range(given.rounds):
            for name in SIZES:
                for loader in LOADERS:
                    command = [sys.executable, __file__, given.photographs, "--one", name, loader]
                    run = subprocess.run(["taskset", "-c", f"0-{cores - 1}", *command], stdout=subprocess.PIPE, check=True, text=True)
                    found.setdefault((name, loader), []).append(json.loads(run.stdout))
        print(f"\n{cores} core{'s' if cores > 1 else ''}, {given.rounds} rounds\n")
        print("| data set | loader | us a batch | lowest to highest | us a sample | MiB |\n| --- | --- | ---: | ---: | ---: | ---: |")
        for (name, loader), runs in found.items():
            times = [run["us"] for run in runs]
            middle = statistics.median(times)
            memory = statistics.median(run["mib"] for run in runs)
            print(
                f"| {name}, {BATCHES[name]} a batch | {LOADERS[loader]} | {middle:,.0f} | {min(times):,.0f} to {max(times):,.0f} "
                f"| {middle / BATCHES[name]:,.1f} | {memory:,.0f} |"
            )


if __name__ == "__main__":
    main()
