#!/usr/bin/env python3
"""A folder of millions of images: seconds and memory until it is open, until the first batch, and for an epoch's order.

    python3 bench/many_files.py make FOLDER --files 16700000     # hard links of a few files, with names as ImageNet's
    python3 bench/many_files.py penstock FOLDER                  # list, open again, unpickle: each a process of its own
    python3 bench/many_files.py penstock FOLDER --processes 8
    python3 bench/many_files.py torchvision FOLDER               # ImageFolder, a first batch, RandomSampler
    python3 bench/many_files.py grain FOLDER                     # a list of paths, and Grain's shuffle
    python3 bench/many_files.py tf.data FOLDER

Each line is one process: seconds of the clock and of the processor, and how many MiB more it has behind the first batch:
its own, and of files that it maps, which processes share.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time

# ext4 allows 65,000 names of one file.
NAMES_OF_A_FILE = 60_000
BATCH = 256


def make(folder: str, files: int, classes: int, image: bytes) -> None:
    os.makedirs(folder, exist_ok=False)
    hidden = os.path.join(folder, ".images")
    os.mkdir(hidden)
    images = os.open(hidden, os.O_RDONLY)
    made = 0
    original = ""
    for number in range(classes):
        name = f"n{number:08d}"
        os.mkdir(os.path.join(folder, name))
        within = os.open(os.path.join(folder, name), os.O_RDONLY)
        for at in range(files * number // classes, files * (number + 1) // classes):
            if made % NAMES_OF_A_FILE == 0:
                original = f"{made // NAMES_OF_A_FILE}.jpg"
                with open(os.path.join(hidden, original), "wb") as file:
                    file.write(image)
            os.link(original, f"{name}_{at}.JPEG", src_dir_fd=images, dst_dir_fd=within)
            made += 1
        os.close(within)
    os.close(images)


class Row:
    """Seconds of the steps of one process, and its memory."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.before = self.memory()
        self.values: dict[str, float] = {}

    @staticmethod
    def memory() -> tuple[float, float]:
        with open("/proc/self/smaps_rollup") as file:
            kib = {line.split()[0]: int(line.split()[1]) for line in file if " kB" in line}
        return kib["Anonymous:"] / 1024, (kib["Rss:"] - kib["Anonymous:"]) / 1024

    def step(self, name: str, work):
        begin, cpu = time.monotonic(), time.process_time()
        result = work()
        self.values[f"{name}_s"] = round(time.monotonic() - begin, 3)
        self.values[f"{name}_cpu_s"] = round(time.process_time() - cpu, 3)
        return result

    def measure_memory(self) -> None:
        own, mapped = self.memory()
        self.values["own_mib"] = round(own - self.before[0], 1)
        self.values["mapped_mib"] = round(mapped - self.before[1], 1)

    def print(self) -> None:
        print(json.dumps({"what": self.what, **self.values}), flush=True)


def run_penstock(row: Row, folder: str, plan: str) -> None:
    import penstock as ps

    row.before = Row.memory()
    if plan:
        with open(plan, "rb") as file:
            data = row.step("open", lambda: pickle.load(file))
    else:
        data = row.step("open", lambda: ps.image_folder(folder))
    loader = row.step("loader", lambda: data.seed(7).shuffle().map(ps.decode_image(crop=ps.center_crop(64)))
                      .batch(BATCH).loader())
    row.step("first_batch", lambda: next(iter(loader)))
    del loader
    row.measure_memory()
    row.step("order", lambda: count_order(len(data)))
    row.values["files"] = len(data)


def count_order(total: int) -> None:
    """The numbers of all samples of a shuffled epoch: those of an array of as many, as a loader delivers them."""
    import numpy as np
    import penstock as ps

    numbers = ps.memory({"number": np.arange(total, dtype=np.int64)}).seed(7).shuffle().batch(1 << 16)
    seen = sum(len(batch["number"]) for batch in numbers.loader())
    assert seen == total


def run_torchvision(row: Row, folder: str) -> None:
    import torch
    import torchvision

    row.before = Row.memory()
    transform = torchvision.transforms.Compose(
        [torchvision.transforms.CenterCrop(64), torchvision.transforms.ToTensor()])
    data = row.step("open", lambda: torchvision.datasets.ImageFolder(folder, transform))
    row.step("first_batch", lambda: next(iter(
        torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=0))))
    row.measure_memory()
    row.step("order", lambda: sum(1 for _ in torch.utils.data.RandomSampler(data)))
    row.values["files"] = len(data)


def paths_of(folder: str) -> list[str]:
    return sorted(os.path.join(entry.path, name) for entry in os.scandir(folder)
                  if not entry.name.startswith(".") for name in os.listdir(entry.path))


def run_grain(row: Row, folder: str) -> None:
    import grain.python as grain

    row.before = Row.memory()
    paths = row.step("open", lambda: paths_of(folder))
    data = grain.MapDataset.source(paths).seed(7).shuffle().map(read).batch(BATCH)
    row.step("first_batch", lambda: data[0])
    row.measure_memory()
    order = grain.MapDataset.range(len(paths)).seed(7).shuffle()
    row.step("order", lambda: sum(1 for i in range(len(order)) if order[i] is not None))
    row.values["files"] = len(paths)


def read(path: str) -> int:
    with open(path, "rb") as file:
        return len(file.read())


def run_tf_data(row: Row, folder: str) -> None:
    import tensorflow as tf

    row.before = Row.memory()
    files = row.step("open", lambda: tf.data.Dataset.list_files(folder + "/*/*.JPEG", shuffle=False))
    row.step("first_batch", lambda: next(iter(files.shuffle(10_000).map(tf.io.read_file).batch(BATCH))))
    row.measure_memory()
    row.step("order", lambda: sum(1 for _ in files.shuffle(10_000)))


def in_process(folder: str, how: str, what: str, plan: str = "") -> subprocess.Popen:
    return subprocess.Popen([sys.executable, __file__, how, folder, "--alone", what, "--plan", plan])


def penstock_rows(folder: str, processes: int) -> None:
    with tempfile.TemporaryDirectory() as cache:
        os.environ["PENSTOCK_CACHE"] = cache
        if processes > 1:
            together = [in_process(folder, "penstock", f"list, {i} of {processes}") for i in range(processes)]
            for process in together:
                process.wait()
        else:
            in_process(folder, "penstock", "list").wait()
        for what in ["open again"] * 2:
            in_process(folder, "penstock", what).wait()
        plan = os.path.join(cache, "plan.pickle")
        code = f"import penstock, pickle; pickle.dump(penstock.image_folder({folder!r}), open({plan!r}, 'wb'))"
        subprocess.run([sys.executable, "-c", code], check=True)
        in_process(folder, "penstock", "unpickle", plan).wait()
        for file in os.scandir(os.path.join(cache, "listings")):
            print(json.dumps({"what": "the listing's file", "mib": round(file.stat().st_size / 2**20, 1)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["make", "penstock", "torchvision", "grain", "tf.data"])
    parser.add_argument("folder")
    parser.add_argument("--files", type=int, default=16_700_000, help="for make")
    parser.add_argument("--classes", type=int, default=1000, help="for make")
    parser.add_argument("--image", help="for make: a JPEG; by default a small grey one")
    parser.add_argument("--processes", type=int, default=1, help="that list at the same time")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    parser.add_argument("--plan", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.command == "make":
        if options.image:
            with open(options.image, "rb") as file:
                image = file.read()
        else:
            import io

            from PIL import Image

            out = io.BytesIO()
            Image.new("RGB", (64, 64), (128, 128, 128)).save(out, "JPEG")
            image = out.getvalue()
        begin = time.monotonic()
        make(options.folder, options.files, options.classes, image)
        print(f"{options.files} names in {time.monotonic() - begin:.1f} s", file=sys.stderr)
    elif options.command == "penstock" and not options.alone:
        penstock_rows(options.folder, options.processes)
    else:
        row = Row(options.alone or options.command)
        if options.command == "penstock":
            run_penstock(row, options.folder, options.plan)
        else:
            {"torchvision": run_torchvision, "grain": run_grain, "tf.data": run_tf_data}[options.command](
                row, options.folder)
        row.print()


if __name__ == "__main__":
    main()
