"""Crops of photographs beside torchvision's on Pillow's images: how many levels differ, and what it costs.

Usage: python bench/pillow_pixels.py FOLDER [--images 200]
       pip install penstock torch torchvision pillow

FOLDER has .jpg and .jpeg files. `center` is Resize(256) and CenterCrop(224) of the whole photograph; `random` is resized_crop of the region
that Penstock drew, to 224. Penstock decodes with decoder="reference" and exif=False, as Pillow decodes. Milliseconds are of CPU time of one
thread for an image, decoding and crop; Pillow's decodes the whole image.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import penstock as ps
import PIL
import torchvision
from PIL import Image
from torchvision.transforms import InterpolationMode, functional


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=200)
    arguments = parser.parse_args()
    data = ps.image_folder(arguments.folder, labels=None, extensions=[".jpg", ".jpeg"]).take(arguments.images)
    files = sorted(path for path in arguments.folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))[: arguments.images]
    print(f"{len(files)} photographs; Pillow {PIL.__version__}, torchvision {torchvision.__version__}\n")
    print("| Crop and filter | Images of equal bytes | Levels that differ | Mean difference | Largest | ms here | ms there |\n|---|---|---|---|---|---|---|")
    for kind, crop in (("center", ps.center_crop(224)), ("random", ps.random_resized_crop(224))):
        for filter in ("bilinear", "pillow_bilinear", "bicubic", "pillow_bicubic"):
            plan = data.seed(1).map(ps.decode_image(crop=crop, filter=filter, exif=False, geometry="box")).batch(1)
            mode = InterpolationMode(filter.removeprefix("pillow_"))
            equal, differ, total, largest, levels = 0, 0, 0, 0, 0
            began, here, there = time.process_time(), 0.0, 0.0
            samples = [(np.asarray(step["image"])[0].copy(), np.asarray(step["box"])[0].tolist()) for step in plan.loader(threads=1)]
            here = time.process_time() - began
            for path, (found, (x, y, width, height, *_)) in zip(files, samples):
                began = time.process_time()
                image = Image.open(path).convert("RGB")
                if kind == "center":
                    image = functional.center_crop(functional.resize(image, 256, mode), [224, 224])
                else:
                    image = functional.resized_crop(image, y, x, height, width, [224, 224], mode)
                there += time.process_time() - began
                difference = np.abs(np.asarray(image).astype(int) - found)
                equal += not difference.any()
                differ += int((difference > 0).sum())
                total += int(difference.sum())
                largest = max(largest, int(difference.max()))
                levels += difference.size
            share, mean = 100 * differ / levels, total / levels
            cost = f"{1000 * here / len(files):.2f} | {1000 * there / len(files):.2f}"
            print(f"| {kind}, {filter} | {equal} | {share:.3f}% | {mean:.4f} | {largest} | {cost} |", flush=True)


if __name__ == "__main__":
    main()
