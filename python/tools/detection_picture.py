"""Makes docs/pictures/detection.png, mosaics.png, masks.png and copy_paste.png: contact sheets of drawn shapes, with the boxes, keypoints and masks
that moved with them.

Usage: python python/tools/detection_picture.py     with the penstock and Pillow of scripts/python-test
"""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

import penstock as ps
from penstock import augment as pa

IMAGES = 12
KINDS = ["square", "disc", "arrow"]


def draw(path: Path, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Some shapes on a plain ground; what a COCO file says of them. An arrow has its tail and its tip as keypoints."""
    ground = tuple(int(level) for level in rng.integers(190, 256, 3))
    image = Image.new("RGB", (320, 240), ground)
    brush = ImageDraw.Draw(image)
    found: list[dict[str, Any]] = []
    for _ in range(rng.integers(2, 5)):
        width, height = (int(side) for side in rng.integers(40, 100, 2))
        left, top = int(rng.integers(0, 320 - width)), int(rng.integers(0, 240 - height))
        box = (left, top, left + width - 1, top + height - 1)
        colour = tuple(int(level) for level in rng.integers(0, 170, 3))
        kind = int(rng.integers(3))
        points = [0] * 6
        right, bottom, middle = left + width, top + height, top + height // 2
        if kind == 0:
            brush.rectangle(box, fill=colour)
            outline = [(left, top), (right, top), (right, bottom), (left, bottom)]
        elif kind == 1:
            brush.ellipse(box, fill=colour)
            turns = [2 * math.pi * corner / 32 for corner in range(32)]
            outline = [(left + width / 2 * (1 + math.cos(turn)), top + height / 2 * (1 + math.sin(turn))) for turn in turns]
        else:
            brush.polygon([(left, middle - 6), (left, middle + 6), (right - 1, bottom - 1), (right - 1, top)], fill=colour)
            outline = [(left, middle - 6), (left, middle + 6), (right, bottom), (right, top)]
            points = [left + 2, middle, 2, right - 3, middle, 2]
        polygon = [float(at) for point in outline for at in point]
        found.append({"category_id": kind + 1, "bbox": [left, top, width, height], "keypoints": points, "segmentation": [polygon]})
    image.save(path)
    return found


def main() -> None:
    rng = np.random.default_rng(4)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images, annotations = [], []
        for number in range(IMAGES):
            images.append({"id": number, "file_name": f"{number}.png"})
            annotations += [one | {"image_id": number} for one in draw(folder / f"{number}.png", rng)]
        categories = [{"id": kind + 1, "name": name, "keypoints": ["tail", "tip"]} for kind, name in enumerate(KINDS)]
        content = {"images": images, "annotations": [one | {"id": k} for k, one in enumerate(annotations)], "categories": categories}
        (folder / "shapes.json").write_text(json.dumps(content))
        things = ps.Instances("boxes", keypoints="keypoints", fields=["labels"], min_visible=0.1)
        moves = [pa.random_choice([pa.rotate((-30, 30)), pa.perspective(0.4), pa.affine(shear_x=(-25, 25), scale=(0.8, 1.2))])]
        data = ps.coco(folder / "shapes.json").rename({"area": "", "iscrowd": ""})
        plan = (
            data.seed(1)
            .map(ps.decode_image(crop=ps.scale_jitter((150, 200), scale=(0.7, 1.6), fill=114), flip=0.5, instances=things))
            .map(ps.augment_image(moves, instances=things))
            .map(ps.pad("boxes", to=8, also=["keypoints", "labels"]))
            .batch(IMAGES)
        )
        mosaics = (
            data.partners(3)
            .seed(1)
            .map(ps.decode_image(crop=ps.mosaic((150, 200)), flip=0.5, instances=things))
            .map(ps.augment_image([pa.hsv_jitter()]))
            .map(ps.pad("boxes", to=20, also=["keypoints", "labels"]))
            .batch(8)
        )
        outlined = ps.Instances("boxes", fields=["labels"], masks="masks", min_visible=0.1)
        masks = (
            ps.coco(folder / "shapes.json", masks=True)
            .rename({"area": "", "iscrowd": "", "keypoints": ""})
            .seed(1)
            .map(ps.decode_image(crop=ps.scale_jitter((150, 200), scale=(0.7, 1.6), fill=114), flip=0.5, instances=outlined))
            .map(ps.augment_image(moves, instances=outlined))
            .map(ps.pad("boxes", to=8, also=["masks", "labels"]))
            .batch(8)
        )
        pasted = (
            ps.coco(folder / "shapes.json", masks=True)
            .rename({"area": "", "iscrowd": "", "keypoints": ""})
            .partners(1)
            .seed(1)
            .map(ps.decode_image(crop=ps.copy_paste((150, 200), scale=(0.7, 1.6), fill=114), flip=0.5, instances=outlined))
            .map(ps.pad("boxes", to=16, also=["masks", "labels"]))
            .batch(8)
        )
        for name, sheet in {"detection": plan, "mosaics": mosaics, "masks": masks, "copy_paste": pasted}.items():
            shown = ps.show(sheet.loader().batch_at(0), columns=4, class_names=data.class_names)
            shown.save(Path(__file__).parents[2] / "docs" / "pictures" / f"{name}.png")


if __name__ == "__main__":
    main()
