"""Boxes and keypoints beside torchvision v2's, moved by the same parameters, as a markdown table.

Usage: python bench/instances_peers.py [--images 200] [--crops 20000] [--seed 1]
       pip install penstock torch torchvision albumentations numpy

Of images of random sizes with 20 boxes and 20 keypoints each: the largest difference of a coordinate, in pixels, and how many
were compared. Where a crop draws its place, torchvision gets the one that was drawn (the field `geometry`). Boxes that torchvision
leaves below a pixel are compared by their absence. Then how large the parts are that SSD's crop draws, and how many boxes they
have; and where the parts of the crop that keeps all boxes lie, beside Albumentations'.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Iterator
from typing import Any

import albumentations
import numpy as np
import torch
import torchvision
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

import penstock as ps
from penstock import augment as pa

COUNT = 20
Move = Callable[[Any, list[int]], Any]  # of a tv_tensor, with the geometry of the sample


class Items:
    def __init__(self, images: int, seed: int, size: tuple[int, int] | None) -> None:
        self.images, self.seed, self.size = images, seed, size

    def __len__(self) -> int:
        return self.images

    def __getitem__(self, number: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng((self.seed, number))
        height, width = self.size or rng.integers(250, 700, 2)
        corner = rng.uniform(0, 1, (COUNT, 2)) * [width - 4, height - 4]
        end = corner + 3 + rng.uniform(0, 1, (COUNT, 2)) * ([width - 3, height - 3] - corner)
        points = rng.uniform(0, 1, (COUNT, 1, 2)) * [width, height]
        return {
            "image": np.zeros((height, width, 3), np.uint8),
            "boxes": np.concatenate([corner, np.minimum(end, [width, height])], 1).astype(np.float32),
            "points": np.concatenate([points, np.full((COUNT, 1, 1), 2)], 2).astype(np.float32),
            "numbers": np.arange(COUNT),
        }


FIELDS: dict[str, Any] = {
    "image": ("u8", (None, None, 3)),
    "boxes": ("f32", (None, 4)),
    "points": ("f32", (None, 1, 3)),
    "numbers": ("i64", (None,)),
}


def affine(angle: float = 0, x: int = 0, y: int = 0, scale: float = 1, shear: tuple[float, float] = (0, 0)) -> Move:
    return lambda one, _: F.affine(one, angle, [x, y], scale, list(shear))


def cropped(size: tuple[int, int]) -> Move:
    """The crop that the geometry says, resized."""
    return lambda one, at: F.resize(F.crop(one, at[1], at[0], at[3], at[2]), list(size))


def cases() -> Iterator[tuple[str, list[Any], Move]]:
    """What each is called, our crop or operation, and torchvision's."""
    yield "resize_to", [ps.resize_to((320, 480))], lambda one, _: F.resize(one, [320, 480])
    yield "resize_to, mirrored", [ps.resize_to((320, 480)), 1.0], lambda one, _: F.horizontal_flip(F.resize(one, [320, 480]))
    yield "random_crop", [ps.random_crop(224)], cropped((224, 224))
    yield "random_resized_crop", [ps.random_resized_crop((224, 288))], cropped((224, 288))
    yield "random_iou_crop", [ps.random_iou_crop((224, 288))], cropped((224, 288))
    yield "box_safe_crop", [ps.box_safe_crop((224, 288))], cropped((224, 288))
    shortest = ps.resize_shortest(400, sides=(300, 300), longest=400)
    yield "resize_shortest", [shortest], lambda one, _: F.resize(one, [300], max_size=400)
    yield "flip", [pa.flip(1)], lambda one, _: F.horizontal_flip(one)
    yield "vertical_flip", [pa.vertical_flip(1)], lambda one, _: F.vertical_flip(one)
    for degrees in (7, 30, 90, 200):
        yield f"rotate {degrees}", [pa.rotate(degrees)], lambda one, _, degrees=degrees: F.rotate(one, degrees)
    yield "shear 12, -8", [pa.shear(12, -8)], affine(shear=(12, -8))
    yield "translate", [pa.translate(0.125, -0.25)], affine(x=50, y=-80)
    yield (
        "affine 10, 0.125, -0.25, 1.2, (5, -4)",
        [pa.affine(degrees=10, translate_x=0.125, translate_y=-0.25, scale=1.2, shear_x=5, shear_y=-4)],
        affine(10, 50, -80, 1.2, (5, -4)),
    )


def compare(ours: list[Any], theirs: Move, images: int, seed: int) -> tuple[float, int, float, int]:
    """The largest difference of boxes, how many, and the same of keypoints."""
    things = ps.Instances("boxes", keypoints="points", fields=["numbers"], min_size=1)
    is_crop = isinstance(ours[0], ps.Crop)
    items = Items(images, seed, None if is_crop else (320, 400))
    plan = ps.Dataset(items, fields=FIELDS).seed(seed)
    if is_crop:
        plan = plan.map(ps.crop_image(crop=ours[0], flip=ours[1] if len(ours) > 1 else 0, geometry="at", instances=things))
    else:
        plan = plan.map(ps.crop_image(crop=ps.resize_to((320, 400)), geometry="at", instances=things))
        plan = plan.map(ps.augment_image(ours, instances=things))
    plan = plan.map(ps.pad("boxes", to=COUNT, lengths="count")).map(ps.pad("points", to=COUNT)).map(ps.pad("numbers", to=COUNT))
    largest, boxes_compared, furthest, points_compared = 0.0, 0, 0.0, 0
    for number, step in enumerate(plan.batch(1).loader()):
        given = items[number]
        canvas = given["image"].shape[:2]
        at = np.asarray(step["at"])[0].tolist()
        count = int(np.asarray(step["count"])[0])
        box = tv_tensors.BoundingBoxes(torch.from_numpy(given["boxes"]), format="XYXY", canvas_size=canvas)
        moved = F.clamp_bounding_boxes(theirs(box, at)).numpy()
        point = tv_tensors.KeyPoints(torch.from_numpy(given["points"][:, :, :2].copy()), canvas_size=canvas)
        points = theirs(point, at).numpy()
        size = np.minimum(moved[:, 2] - moved[:, 0], moved[:, 3] - moved[:, 1])
        kept = np.asarray(step["numbers"])[0, :count]
        unsure = set(np.flatnonzero(np.abs(size - 1) < 1e-3).tolist())
        assert set(kept.tolist()) ^ set(np.flatnonzero(size >= 1).tolist()) <= unsure, (number, kept, size)
        if count == 0:
            continue
        largest = max(largest, float(np.abs(np.asarray(step["boxes"])[0, :count] - moved[kept]).max()))
        boxes_compared += count
        ours_points = np.asarray(step["points"])[0, :count, 0]
        visible = ours_points[:, 2] != 0
        if visible.any():
            furthest = max(furthest, float(np.abs(ours_points[visible, :2] - points[kept][visible, 0]).max()))
            points_compared += int(visible.sum())
    return largest, boxes_compared, furthest, points_compared


class OneItem:
    """An image of 320x400 pixels with three boxes, as often as it is asked for."""

    BOXES = np.array([[30, 40, 130, 200], [250, 20, 390, 90], [180, 150, 200, 180]], np.float32)

    def __init__(self, times: int) -> None:
        self.times = times

    def __len__(self) -> int:
        return self.times

    def __getitem__(self, number: int) -> dict[str, np.ndarray]:
        return {"image": np.zeros((320, 400, 3), np.uint8), "boxes": self.BOXES}


def draws_of_iou_crops(zoom_out: float, images: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each crop, ours and torchvision's: width and height as fractions of the image's, and the boxes in it. [images,3]."""
    things = ps.Instances("boxes", min_size=0, middle=True)
    crop = ps.random_iou_crop((320, 400), zoom_out=zoom_out)
    plan = ps.Dataset(OneItem(images), fields={"image": ("u8", (320, 400, 3)), "boxes": ("f32", (None, 4))}).seed(seed)
    plan = plan.map(ps.crop_image(crop=crop, geometry="at", instances=things)).map(ps.pad("boxes", to=3, lengths="count")).batch(1)
    ours = []
    for step in plan.loader():
        _, _, width, height = np.asarray(step["at"])[0, :4].tolist()
        ours.append([width / 400, height / 320, int(np.asarray(step["count"])[0])])
    torch.manual_seed(seed)
    zoom, cut = v2.RandomZoomOut(p=zoom_out), v2.RandomIoUCrop()
    theirs = []
    for _ in range(images):
        image = tv_tensors.Image(torch.zeros(1, 320, 400, dtype=torch.uint8))
        box = tv_tensors.BoundingBoxes(torch.from_numpy(OneItem.BOXES.copy()), format="XYXY", canvas_size=(320, 400))
        canvas, box = zoom(image, box)
        part, box = cut(canvas, box)
        kept = int(((box[:, 2] > box[:, 0]) & (box[:, 3] > box[:, 1])).sum())
        height, width = part.shape[-2:]
        theirs.append([width / 400, height / 320, kept])
    return np.array(ours, float), np.array(theirs, float)


def draws_of_safe_crops(erosion: float, images: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each crop, ours and Albumentations': left, top, width and height as fractions of the image's. [images,4]."""
    plan = ps.Dataset(OneItem(images), fields={"image": ("u8", (320, 400, 3)), "boxes": ("f32", (None, 4))}).seed(seed)
    crop = ps.crop_image(crop=ps.box_safe_crop((320, 400), erosion=erosion), geometry="at", instances=ps.Instances("boxes"))
    loader = plan.map(crop).map(ps.pad("boxes", to=3)).batch(1).loader()
    ours = [np.asarray(step["at"])[0, :4].tolist() for step in loader]
    theirs = []
    crops = albumentations.RandomSizedBBoxSafeCrop(320, 400, erosion_rate=erosion, p=1)
    crops.set_random_seed(seed)
    boxes = OneItem.BOXES / [400, 320, 400, 320]
    for _ in range(images):
        left, top, right, bottom = crops.get_params_dependent_on_data({"shape": (320, 400, 3)}, {"bboxes": boxes})["crop_coords"]
        theirs.append([left, top, right - left, bottom - top])
    sides = np.array([400, 320, 400, 320])
    return np.array(ours) / sides, np.array(theirs) / sides


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--crops", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{options.images} images; torch {torch.__version__}, torchvision {torchvision.__version__}; {platform.machine()}\n")
    print("| Beside torchvision v2 | Boxes | Largest difference, pixels | Keypoints | Largest difference, pixels |")
    print("|---|---|---|---|---|")
    for name, ours, theirs in cases():
        largest, boxes, furthest, points = compare(ours, theirs, options.images, options.seed)
        print(f"| {name} | {boxes} | {largest:.6f} | {points} | {furthest:.6f} |")
    print(f"\n{options.crops} crops of one image with three boxes, means and their standard errors\n")
    print("| random_iou_crop | Width | Height | Boxes in it |")
    print("|---|---|---|---|")
    for zoom_out in (0.0, 1.0):
        for name, drawn in zip(("ours", "torchvision's"), draws_of_iou_crops(zoom_out, options.crops, options.seed)):
            error = drawn.std(0) / len(drawn) ** 0.5
            cells = " | ".join(f"{mean:.4f} ± {one:.4f}" for mean, one in zip(drawn.mean(0), error))
            print(f"| {name}, zoom_out={zoom_out:g} | {cells} |")
    print(f"\nThe same beside Albumentations {albumentations.__version__}\n")
    print("| box_safe_crop | Left | Top | Width | Height |")
    print("|---|---|---|---|---|")
    for erosion in (0.0, 0.3, 1.0):
        for name, drawn in zip(("ours", "Albumentations'"), draws_of_safe_crops(erosion, options.crops, options.seed)):
            error = drawn.std(0) / len(drawn) ** 0.5
            cells = " | ".join(f"{mean:.4f} ± {one:.4f}" for mean, one in zip(drawn.mean(0), error))
            print(f"| {name}, erosion={erosion:g} | {cells} |")


if __name__ == "__main__":
    main()
