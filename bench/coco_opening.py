"""How long coco() takes to open an annotation file of the size of COCO's instances_train2017.json, as a markdown table.

Usage: python bench/coco_opening.py [--images 118287] [--annotations 860001] [--rounds 3] [--folder DIR]
       pip install penstock numpy

Writes a file of that form, with polygons, into DIR (a temporary folder), and opens it in a process of its own for each row: without
and with what was kept of it in the cache folder, and for comparison by Python's json. Time is wall time and CPU time of the opening, and
memory the most that the process had, with and without the pages of mapped files.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def write(path: Path, images: int, annotations: int) -> None:
    rng = np.random.default_rng(1)
    of_image = np.sort(rng.integers(0, images, annotations))
    boxes = np.round(rng.uniform(0, 300, (annotations, 4)), 2)
    with path.open("w") as out:
        out.write('{"info": {"year": 2017}, "images": [')
        for number in range(images):
            out.write(", " if number else "")
            out.write(json.dumps({"license": 3, "file_name": f"{number:012d}.jpg", "height": 480, "width": 640, "id": number}))
        out.write('], "annotations": [')
        for number in range(annotations):
            polygon = np.round(rng.uniform(0, 600, 2 * rng.integers(10, 40)), 2).tolist()
            annotation = {
                "segmentation": [polygon],
                "area": float(boxes[number, 2] * boxes[number, 3]),
                "iscrowd": 0,
                "image_id": int(of_image[number]),
                "bbox": boxes[number].tolist(),
                "category_id": int(number % 90 + 1),
                "id": number,
            }
            out.write((", " if number else "") + json.dumps(annotation))
        out.write('], "categories": ')
        json.dump([{"supercategory": "thing", "id": number, "name": f"class {number}"} for number in range(1, 91)], out)
        out.write("}")


def most_memory() -> tuple[float, float]:
    """MiB: of the process at its peak, and of its own memory now."""
    own = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, int(own.split()[1]) / 1024


def open_once(kind: str, path: str) -> None:
    if kind == "json":
        begin, cpu = time.perf_counter(), time.process_time()
        with open(path) as file:
            count = len(json.load(file)["images"])
    else:
        import penstock as ps

        begin, cpu = time.perf_counter(), time.process_time()
        count = ps.coco(path).samples
    print(json.dumps([time.perf_counter() - begin, time.process_time() - cpu, *most_memory(), count]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=118_287)
    parser.add_argument("--annotations", type=int, default=860_001)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--open", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.open:
        return open_once(*options.open)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder, "instances.json")
        write(path, options.images, options.annotations)
        Path(folder, f"{0:012d}.jpg").touch()  # of the first images one has to be there
        long_ago = time.time() - 3600
        os.utime(path, (long_ago, long_ago))
        print(f"{options.images} images, {options.annotations} annotations, {path.stat().st_size / 1e6:.0f} MB; {platform.machine()}\n")
        print("| Opening | Seconds | CPU seconds | Peak, MiB | Own memory afterwards, MiB |\n|---|---|---|---|---|")
        openings = (("coco(), the first", "coco", None), ("coco(), the next", "coco", "kept"), ("Python's json.load", "json", None))
        for name, kind, cache in openings:
            found = []
            for round_ in range(options.rounds):
                environment = {**os.environ, "PENSTOCK_CACHE": str(Path(folder, cache or f"{kind}-{round_}"))}
                command = [sys.executable, __file__, "--open", kind, str(path)]
                if cache and round_ == 0:
                    time.sleep(61)  # a file is kept once it has not changed for a minute
                    subprocess.run(command, env=environment, check=True, capture_output=True)
                found.append(json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout))
            assert all(values[4] == options.images for values in found)
            seconds, cpu, peak, own, _ = (sorted(values) for values in zip(*found))
            print(
                f"| {name} | {statistics.median(seconds):.2f} ({seconds[0]:.2f}..{seconds[-1]:.2f}) | {statistics.median(cpu):.2f} "
                f"| {statistics.median(peak):.0f} | {statistics.median(own):.0f} |"
            )


if __name__ == "__main__":
    main()
