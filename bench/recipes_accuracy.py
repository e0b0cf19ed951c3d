"""A small ResNet trained with Penstock's recipe and with torchvision's: do both learn as much?

Usage: python bench/recipes_accuracy.py [--seeds 5] [--epochs 12] [--images 400] [--size 48]
       pip install penstock torch torchvision

The data are synthetic images of ten classes, few of them, so that augmentation matters: random crops, flips, TrivialAugmentWide, erasing,
mixup and cutmix, smoothed targets. Validation images are other ones, evaluated by torchvision in both cases. Each seed trains two networks
that begin with the same weights. Prints the accuracy of each run, means, and the standard deviation of the differences.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import penstock as ps
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.models import resnet18
from torchvision.transforms import v2
from torchvision.transforms.v2 import InterpolationMode as Mode

CLASSES, BATCH = 10, 50
Batches = Callable[[], Iterator[tuple[torch.Tensor, torch.Tensor]]]


def of_penstock(data: ps.Dataset, size: int, seed: int) -> Batches:
    plan = ps.recipes.imagenet_train(
        data.seed(seed), BATCH, size=size, augment=[ps.augment.trivial_augment_wide(interpolation="bilinear")],
        erase=0.1, classes=CLASSES, label_smoothing=0.1, mixup=0.2, cutmix=1.0,
    )  # fmt: skip
    loader = plan.repeat().loader()

    def epoch() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for _ in range(plan.size or 0):
            step = next(loader)
            yield torch.from_dlpack(step["image"]).clone(), torch.from_dlpack(step["target"]).clone()

    return epoch


def of_torchvision(folder: Path, size: int) -> Batches:
    transform = v2.Compose(
        [
            v2.RandomResizedCrop(size, antialias=True), v2.RandomHorizontalFlip(), v2.TrivialAugmentWide(interpolation=Mode.BILINEAR),
            v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(ps.recipes.IMAGENET_MEAN, ps.recipes.IMAGENET_STD),
            v2.RandomErasing(0.1),
        ]
    )  # fmt: skip
    mix = v2.RandomChoice([v2.MixUp(alpha=0.2, num_classes=CLASSES), v2.CutMix(alpha=1.0, num_classes=CLASSES)])
    loader = DataLoader(ImageFolder(str(folder), transform), BATCH, shuffle=True, drop_last=True)

    def epoch() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for images, labels in loader:
            mixed, targets = mix(images, labels)
            yield mixed, 0.9 * targets + 0.1 / CLASSES

    return epoch


def validation(folder: Path, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    transform = v2.Compose(
        [
            v2.Resize(size * 8 // 7), v2.CenterCrop(size), v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(ps.recipes.IMAGENET_MEAN, ps.recipes.IMAGENET_STD),
        ]
    )  # fmt: skip
    images, labels = zip(*ImageFolder(str(folder), transform))
    return torch.stack(images), torch.tensor(labels)


def accuracy(batches: Batches, tests: tuple[torch.Tensor, torch.Tensor], epochs: int, seed: int) -> float:
    torch.manual_seed(seed)
    network = resnet18(num_classes=CLASSES)
    network.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)  # for small images
    steps = epochs * sum(1 for _ in batches())
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=steps)
    for _ in range(epochs):
        network.train()
        for images, targets in batches():
            loss = nn.functional.cross_entropy(network(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
    network.eval()
    with torch.no_grad():
        found = torch.cat([network(part).argmax(1) for part in tests[0].split(100)])
    return (found == tests[1]).float().mean().item() * 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--size", type=int, default=48)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cache = tempfile.TemporaryDirectory()
    data = ps.synthetic_images(arguments.images, seed=1, cache=Path(cache.name, "train"))
    ps.synthetic_images(1000, seed=2, cache=Path(cache.name, "test"))
    train, other = (next(Path(cache.name, part).glob("images-*")) for part in ("train", "test"))
    tests = validation(other, arguments.size)
    print(f"{arguments.images} images of {CLASSES} classes, {arguments.epochs} epochs of {arguments.size} x {arguments.size}\n")
    print("| Seed | Penstock, % | torchvision, % |\n|---|---|---|")
    rows = []
    for seed in range(arguments.seeds):
        ours = accuracy(of_penstock(data, arguments.size, seed), tests, arguments.epochs, seed)
        theirs = accuracy(of_torchvision(train, arguments.size), tests, arguments.epochs, seed)
        rows.append((ours, theirs))
        print(f"| {seed} | {ours:.1f} | {theirs:.1f} |", flush=True)
    means = [statistics.mean(column) for column in zip(*rows)]
    differences = [ours - theirs for ours, theirs in rows]
    error = statistics.stdev(differences) / math.sqrt(len(differences)) if len(differences) > 1 else float("nan")
    print(f"| mean | {means[0]:.1f} | {means[1]:.1f} |\n\nDifference {means[0] - means[1]:+.1f} %, standard error {error:.1f}")


if __name__ == "__main__":
    main()
