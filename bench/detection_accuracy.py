"""A small detector trained with Penstock's recipe and with torchvision's: do both learn as much? And is a resumed run the same?

Usage: python bench/detection_accuracy.py [--seeds 3] [--epochs 30] [--images 300] [--size 128]
       pip install penstock torch torchvision pycocotools

The data are drawn shapes of three classes on noisy grounds, in COCO's form. The detector is torchvision's FCOS on four strided
convolutions; the recipe is large-scale jitter and a flip, detection_train(preset="lsj") and torchvision's references/detection. Each seed
trains two networks that begin with the same weights. Prints COCO's mean average precision, by pycocotools, on other images that torchvision
reads in both cases, means, and the standard deviation of the differences. Then a run that is stopped in the middle of an epoch and goes on
as two processes' loaders: how many of its losses are those of the run that was not stopped, bit by bit.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import penstock as ps
import penstock.torch as pt
import torch
from PIL import Image, ImageDraw
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from torch import nn
from torchvision import tv_tensors
from torchvision.models.detection import FCOS
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.transforms import v2

BATCH, MOST = 10, 8
KINDS = ("square", "disc", "arrow")
Targets = list[dict[str, torch.Tensor]]
Batches = Iterator[tuple[list[torch.Tensor], Targets]]
Epoch = Callable[[], Batches]


def draw(folder: Path, images: int, size: int, seed: int) -> Path:
    """Images with one to five shapes each, and their annotation file."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    found: dict[str, Any] = {"images": [], "annotations": [], "categories": [{"id": k + 1, "name": kind} for k, kind in enumerate(KINDS)]}
    for number in range(images):
        width, height = (int(side) for side in rng.integers(size * 3 // 4, size * 3 // 2, 2))
        noise = rng.integers(0, 90, (height, width, 3)) + rng.integers(0, 160, 3)
        image = Image.fromarray(noise.astype(np.uint8))
        brush = ImageDraw.Draw(image)
        for _ in range(rng.integers(1, 6)):
            across, down = (int(side) for side in rng.integers(size // 8, size // 2, 2))
            left, top = int(rng.integers(0, width - across)), int(rng.integers(0, height - down))
            right, bottom = left + across, top + down
            colour = tuple(int(level) for level in rng.integers(0, 256, 3))
            kind = int(rng.integers(3))
            if kind == 0:
                brush.rectangle((left, top, right - 1, bottom - 1), fill=colour)
            elif kind == 1:
                brush.ellipse((left, top, right - 1, bottom - 1), fill=colour)
            else:
                brush.polygon([(left, top + down // 2), (right - 1, top), (right - 1, bottom - 1)], fill=colour)
            one = {"id": len(found["annotations"]) + 1, "image_id": number, "category_id": kind + 1, "iscrowd": 0}
            found["annotations"].append(one | {"bbox": [left, top, across, down], "area": across * down})
        image.save(folder / f"{number}.png")
        found["images"].append({"id": number, "file_name": f"{number}.png", "width": width, "height": height})
    (folder / "shapes.json").write_text(json.dumps(found))
    return folder / "shapes.json"


def detector(size: int, seed: int) -> FCOS:
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64), (64, 64)):
        layers += [nn.Conv2d(before, after, 3, 2 if before < 64 else 1, 1), nn.GroupNorm(8, after), nn.ReLU()]
    backbone = nn.Sequential(*layers)
    backbone.out_channels = 64  # type: ignore[assignment]
    anchors = AnchorGenerator(sizes=((8,),), aspect_ratios=((1.0,),))
    return FCOS(backbone, len(KINDS) + 1, min_size=size, max_size=size, anchor_generator=anchors, center_sampling_radius=1.5)


def targets_of(step: Any) -> tuple[list[torch.Tensor], Targets]:
    batch = {name: tensor.clone() for name, tensor in pt.as_tensors(step.parts[0]).items()}
    return list(batch["image"]), pt.as_targets(batch)


def plan_of(annotations: Path, size: int, seed: int) -> ps.Dataset:
    data = ps.coco(annotations, category_ids=True).seed(seed)
    return ps.recipes.detection_train(data, BATCH, preset="lsj", size=size, boxes=MOST)


def of_penstock(annotations: Path, size: int, seed: int) -> Epoch:
    plan = plan_of(annotations, size, seed)
    loader = plan.repeat().loader()

    def epoch() -> Batches:
        for _ in range(plan.size or 0):
            yield targets_of(next(loader))

    return epoch


class Shapes(torch.utils.data.Dataset):
    def __init__(self, annotations: Path, transform: Callable[..., Any] | None = None) -> None:
        content = json.loads(annotations.read_text())
        self.images, self.folder, self.transform = content["images"], annotations.parent, transform
        self.of_image: list[list[dict[str, Any]]] = [[] for _ in self.images]
        for one in content["annotations"]:
            self.of_image[one["image_id"]].append(one)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, number: int) -> tuple[Any, Any]:
        image = tv_tensors.Image(Image.open(self.folder / self.images[number]["file_name"]).convert("RGB"))
        boxes = torch.tensor([one["bbox"] for one in self.of_image[number]], dtype=torch.float32)
        boxes[:, 2:] += boxes[:, :2]
        target = {
            "boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=tuple(image.shape[-2:])),
            "labels": torch.tensor([one["category_id"] for one in self.of_image[number]]),
        }
        return self.transform(image, target) if self.transform else (v2.functional.to_dtype(image, scale=True), target)


def of_torchvision(annotations: Path, size: int) -> Epoch:
    fill = {tv_tensors.Image: (123, 117, 104), "others": 0}
    transform = v2.Compose(
        [
            v2.ScaleJitter(target_size=(size, size), antialias=True), v2.RandomCrop(size, pad_if_needed=True, fill=fill),
            v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.SanitizeBoundingBoxes(),
        ]
    )  # fmt: skip
    loader = torch.utils.data.DataLoader(Shapes(annotations, transform), BATCH, shuffle=True, drop_last=True, collate_fn=lambda items: items)

    def epoch() -> Batches:
        for items in loader:
            yield [image for image, _ in items], [target for _, target in items]

    return epoch


def train(network: FCOS, epoch: Epoch, epochs: int) -> Iterator[float]:
    """The loss of each step."""
    steps = epochs * sum(1 for _ in epoch())
    optimizer = torch.optim.AdamW(network.parameters(), 1e-3, weight_decay=1e-4)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=steps)
    network.train()
    for _ in range(epochs):
        for images, targets in epoch():
            loss = sum(network(images, targets).values())
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
            rate.step()
            yield loss.item()


def precision(network: FCOS, annotations: Path) -> float:
    """COCO's mean average precision, in percent."""
    network.eval()
    found: list[dict[str, Any]] = []
    data = Shapes(annotations)
    with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
        for number in range(len(data)):
            (one,) = network([data[number][0]])
            for box, score, label in zip(one["boxes"].tolist(), one["scores"].tolist(), one["labels"].tolist()):
                bbox = [box[0], box[1], box[2] - box[0], box[3] - box[1]]
                found.append({"image_id": number, "category_id": label, "bbox": bbox, "score": score})
        truth = COCO(str(annotations))
        evaluation = COCOeval(truth, truth.loadRes(found), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return 100 * float(evaluation.stats[0])


def resumed(annotations: Path, size: int, epochs: int) -> tuple[int, int]:
    """How many losses of a run that goes on as two are those of one, and of how many."""

    def losses(batches: Iterator[tuple[list[torch.Tensor], Targets]], network: FCOS, optimizer: Any, steps: int) -> list[float]:
        made = []
        for _ in range(steps):
            images, targets = next(batches)
            loss = sum(network(images, targets).values())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            made.append(loss.item())
        return made

    plan = plan_of(annotations, size, 0).repeat()
    steps = epochs * (plan_of(annotations, size, 0).size or 0)
    half = steps // 2 + 1

    def fresh() -> tuple[FCOS, Any]:
        network = detector(size, 0).train()
        return network, torch.optim.SGD(network.parameters(), 1e-3, momentum=0.9)

    whole = losses(map(targets_of, plan.loader()), *fresh(), steps)
    one = plan.loader()
    network, optimizer = fresh()
    before = losses(map(targets_of, one), network, optimizer, half)
    state = one.state_dict()
    two = [plan.loader(context=ps.InputContext(2, rank)) for rank in range(2)]
    for loader in two:
        loader.load_state_dict(state)

    def joined() -> Iterator[tuple[list[torch.Tensor], Targets]]:
        while True:
            parts = [targets_of(next(loader)) for loader in two]
            yield [image for images, _ in parts for image in images], [target for _, targets in parts for target in targets]

    after = losses(joined(), network, optimizer, steps - half)
    return sum(a == b for a, b in zip(whole, before + after, strict=True)), steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--size", type=int, default=128)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        data = draw(Path(name, "train"), arguments.images, arguments.size, 1)
        tests = draw(Path(name, "test"), 200, arguments.size, 2)
        print(f"{arguments.images} images, {arguments.epochs} epochs of {arguments.size} x {arguments.size}\n")
        print("| Seed | Penstock, mAP | torchvision, mAP |\n|---|---|---|")
        rows = []
        for seed in range(arguments.seeds):
            row = []
            for epoch in (of_penstock(data, arguments.size, seed), of_torchvision(data, arguments.size)):
                network = detector(arguments.size, seed)
                for _ in train(network, epoch, arguments.epochs):
                    pass
                row.append(precision(network, tests))
            rows.append(row)
            print(f"| {seed} | {row[0]:.1f} | {row[1]:.1f} |", flush=True)
        means = [statistics.mean(column) for column in zip(*rows)]
        differences = [ours - theirs for ours, theirs in rows]
        error = statistics.stdev(differences) / math.sqrt(len(differences)) if len(differences) > 1 else float("nan")
        print(f"| mean | {means[0]:.1f} | {means[1]:.1f} |\n\nDifference {means[0] - means[1]:+.1f}, standard error {error:.1f}\n")
        same, steps = resumed(data, arguments.size, 3)
        print(f"Resumed as two: {same} of {steps} losses are those of the run that was not stopped")


if __name__ == "__main__":
    main()
