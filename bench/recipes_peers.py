"""Whole training recipes, through Penstock and through what others use, side by side on one core.

Usage: python bench/recipes_peers.py FOLDER [--rounds 3] [--seconds 6] [--core 0] [--only RECIPE ...]
       pip install penstock torch torchvision pycocotools timm albumentations ultralytics opencv-python-headless nvidia-dali-cuda130

FOLDER has photographs, .jpg, .jpeg or .png. The recipes, without repeated augmentation:
  v2    ResNet-50 V2 of torchvision's references: random crop of 176, flip, TrivialAugmentWide (bilinear), normalised, erased, mixup
        or cutmix, smoothed targets. DALI's row neither mixes nor makes targets.
  rand  DeiT's: random crop of 224 (bicubic), flip, rand-m9-mstd0.5-inc1, normalised, erased, mixup or cutmix, targets.
        torchvision's row has its own RandAugment instead.
  dino  2 + 8 views with their colours and blurs, normalised.
  lsj   torchvision's detection preset, large-scale jitter to 1024, with 10 boxes in each image, in batches of 16.
  masks the same with a mask of each instance, of a polygon with 24 corners, as Mask R-CNN takes it.
  ssd   the same of SSD: distorted colours, zoomed out, cut around a box, resized to 300, which torchvision's model does.
  yolo  Ultralytics' defaults of YOLOv8 (v8_transforms without Albumentations): mosaics of 640, moved and scaled, hsv, a flip. It draws
        partners from the images that it has decoded last, so it decodes one for a mosaic; with buffer=False it decodes all four, as
        Penstock does, which draws them from the whole data set.
Each row runs in a process of its own that is held to one core, with its workers; a DataLoader has one worker. Rows take turns, as many
rounds as asked for. The first batches are not counted. Numbers are images a second of CPU time, of the process and its workers: medians,
with the lowest and highest. "crop and flip" is Penstock without the rest of the recipe, and "resized" the image alone: what the rest costs. "prepared" reads shards of
`python -m penstock prepare`. A row whose package is not there is left empty.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from child import cpu_seconds

BATCH = 64
CLASSES = 1000
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

ROWS = {
    "v2": {
        "ceiling": "Penstock, crop and flip",
        "penstock": "Penstock, files as they are",
        "penstock-prepared": "Penstock, prepared",
        "torchvision": "torchvision v2 on tensors, DataLoader",
        "torchvision-pil": "torchvision v2 on Pillow's images, DataLoader",
        "dali": "DALI, CPU",
    },
    "rand": {
        "ceiling": "Penstock, crop and flip",
        "penstock": "Penstock, files as they are",
        "penstock-prepared": "Penstock, prepared",
        "timm": "timm's create_loader",
        "torchvision": "torchvision v2 on tensors (its RandAugment), DataLoader",
    },
    "dino": {
        "ceiling": "Penstock, crops and flips",
        "penstock": "Penstock, files as they are",
        "penstock-prepared": "Penstock, prepared",
        "torchvision": "torchvision v2 on tensors, DataLoader",
        "torchvision-pil": "DINO's own (Pillow), DataLoader",
        "albumentations": "Albumentations, DataLoader",
    },
    "lsj": {
        "ceiling": "Penstock, resized",
        "penstock": "Penstock, files as they are",
        "torchvision": "torchvision v2 on tensors, DataLoader",
        "torchvision-pil": "torchvision v2 on Pillow's images, DataLoader",
    },
    "masks": {
        "ceiling": "Penstock, without masks",
        "penstock": "Penstock, files as they are",
        "torchvision": "torchvision v2 on tensors, DataLoader",
        "torchvision-pil": "torchvision v2 on Pillow's images, DataLoader",
    },
    "ssd": {
        "ceiling": "Penstock, resized",
        "penstock": "Penstock, files as they are",
        "torchvision": "torchvision v2 on tensors, DataLoader",
        "torchvision-pil": "torchvision v2 on Pillow's images, DataLoader",
    },
    "yolo": {
        "ceiling": "Penstock, resized",
        "penstock": "Penstock, files as they are",
        "penstock-unscaled": "Penstock, files as they are, scaled=False",
        "ultralytics": "Ultralytics, its own DataLoader",
        "ultralytics-all": "Ultralytics, partners of the whole data set",
    },
}
DETECTION = {"lsj": 1024, "masks": 1024, "ssd": 300, "yolo": 640}  # and the size of their samples
ANNOTATIONS = "annotations.json"


def photographs(folder: Path) -> list[str]:
    files = sorted(str(path) for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    if not files:
        raise SystemExit(f"there are no photographs below {folder}")
    return files


def annotate(folder: Path, to: Path) -> None:
    """Ten boxes in each photograph, of all sizes, in COCO's form, each with a polygon in it."""
    import math
    import random

    from PIL import Image

    draw = random.Random(3)
    images, annotations = [], []
    for number, path in enumerate(photographs(folder)):
        with Image.open(path) as image:
            width, height = image.size
        images.append({"id": number, "file_name": str(Path(path).relative_to(folder)), "width": width, "height": height})
        for _ in range(10):
            across, down = width * draw.uniform(0.05, 0.5), height * draw.uniform(0.05, 0.5)
            box = [draw.uniform(0, width - across), draw.uniform(0, height - down), across, down]
            turns = [(2 * math.pi * corner / 24, draw.uniform(0.25, 0.5)) for corner in range(24)]
            polygon = [round(at, 2) for turn, far in turns for at in (box[0] + across * (0.5 + far * math.cos(turn)), box[1] + down * (0.5 + far * math.sin(turn)))]
            one = {"id": len(annotations), "image_id": number, "category_id": draw.randrange(1, 91), "bbox": box, "iscrowd": 0}
            annotations.append(one | {"segmentation": [polygon]})
    categories = [{"id": number, "name": str(number)} for number in range(1, 91)]
    to.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))


# ---- Penstock ----


def detection(recipe: str, row: str, folder: Path, prepared: Path) -> Iterator[int]:
    import penstock as ps

    with_masks = recipe == "masks" and row != "ceiling"
    data = ps.coco(prepared.parent / ANNOTATIONS, root=folder, category_ids=True, masks=with_masks)
    if recipe == "masks":
        plan = ps.recipes.detection_train(data, 16, boxes=10)
    elif row == "ceiling":
        names = [field.name for field in data.fields if field.name != "image"]
        size = ps.resize_to(DETECTION[recipe])
        plan = data.rename(dict.fromkeys(names, "")).shuffle().map(ps.decode_image(crop=size, flip=0.5)).batch(16, remainder="drop")
    elif recipe == "yolo":
        data = data.rename(dict.fromkeys(("area", "iscrowd", "image_id"), ""))
        plan = ps.recipes.yolo_train(data, 16, scaled=row == "penstock")
    else:
        plan = ps.recipes.detection_train(data, 16, preset=recipe)
    with plan.repeat().loader(threads=1) as loader:
        for step in loader:
            yield step.global_samples


def penstock(recipe: str, row: str, folder: Path, prepared: Path) -> Iterator[int]:
    import penstock as ps

    r, a = ps.recipes, ps.augment
    index = None
    data = ps.image_folder(folder, labels=None)
    if row == "penstock-prepared":
        data, index = ps.webdataset(prepared), ps.MemoryJpegIndex()
        index.load(prepared)
    plain = row == "ceiling"
    if recipe == "dino":
        plan = r.dino(data, BATCH, index=index)
        if plain:
            small = ps.ImageView(ps.random_resized_crop(96, scale=(0.05, 0.4)), count=8, flip=0.5, filter="bicubic")
            large = ps.ImageView(ps.random_resized_crop(224, scale=(0.4, 1)), count=2, flip=0.5, filter="bicubic")
            plan = data.shuffle().map(ps.decode_views({"global": large, "local": small})).batch(BATCH, remainder="drop")
    else:
        crop = {"size": 176} if recipe == "v2" else {"size": 224, "filter": "bicubic"}
        policy = a.trivial_augment_wide(interpolation="bilinear") if recipe == "v2" else a.timm_rand_augment("rand-m9-mstd0.5-inc1", interpolation="bicubic")
        mixing = {"mixup": 0.2 if recipe == "v2" else 0.8, "cutmix": 1.0, "label_smoothing": 0.1, "classes": CLASSES}
        plan = r.imagenet_train(data, BATCH, **crop, augment=[policy], erase=0.1 if recipe == "v2" else 0.25, index=index, **mixing)
        if plain:
            size, filter = crop["size"], crop.get("filter", "bilinear")
            plan = data.shuffle().map(ps.decode_image(crop=ps.random_resized_crop(size), flip=0.5, filter=filter)).batch(BATCH, remainder="drop")
    with plan.repeat().loader(threads=1) as loader:
        for step in loader:
            yield step.global_samples


# ---- PyTorch's ----


def dataloader(dataset: Any, collate: Callable | None = None, batch: int = BATCH) -> Iterator[int]:
    import torch

    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=batch, shuffle=True, num_workers=1, drop_last=True, persistent_workers=True, collate_fn=collate
    )
    while True:
        for images, *_ in loader:
            yield len(images[0] if isinstance(images, list) else images)


class Files:
    """Items of a data set whose transform takes a path."""

    def __init__(self, files: list[str], transform: Callable[[str], Any]) -> None:
        self.files, self.transform = files, transform

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        return self.transform(self.files[number]), number % CLASSES


def opener(pillow: bool) -> Callable[[str], Any]:
    if pillow:
        from PIL import Image

        return lambda path: Image.open(path).convert("RGB")
    from torchvision.io import ImageReadMode, decode_image, read_file

    return lambda path: decode_image(read_file(path), mode=ImageReadMode.RGB)


class Detected:
    """Items of photographs, their boxes and masks, through a transform of all."""

    def __init__(self, annotations: Path, folder: Path, load: Callable[[str], Any], transform: Callable[..., Any], masks: bool = False) -> None:
        content = json.loads(annotations.read_text())
        self.images, self.folder, self.load, self.transform, self.masks = content["images"], folder, load, transform, masks
        self.of_image: dict[int, list[dict[str, Any]]] = {}
        for one in content["annotations"]:
            self.of_image.setdefault(one["image_id"], []).append(one)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, number: int) -> tuple[Any, Any]:
        import torch
        from torchvision import tv_tensors

        image, ones = self.images[number], self.of_image[number]
        boxes = torch.tensor([one["bbox"] for one in ones])
        boxes[:, 2:] += boxes[:, :2]
        target = {
            "boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(image["height"], image["width"])),
            "labels": torch.tensor([one["category_id"] for one in ones]),
        }
        if self.masks:  # as torchvision's wrapper of CocoDetection
            from pycocotools import mask

            height, width = image["height"], image["width"]
            drawn = [torch.from_numpy(mask.decode(mask.merge(mask.frPyObjects(one["segmentation"], height, width)))) for one in ones]
            target["masks"] = tv_tensors.Mask(torch.stack(drawn))
        return self.transform(self.load(str(self.folder / image["file_name"])), target)


def torchvision_detection(recipe: str, row: str, folder: Path, prepared: Path) -> Iterator[int]:
    import torch
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    pillow = row == "torchvision-pil"
    load, size, fill = opener(pillow), DETECTION[recipe], {tv_tensors.Image: (123, 117, 104), "others": 0}
    if pillow:
        import PIL.Image

        fill = {PIL.Image.Image: (123, 117, 104), "others": 0}
    steps: list[Any] = []
    if recipe in ("lsj", "masks"):
        steps += [v2.ScaleJitter(target_size=(size, size), antialias=True), v2.RandomCrop(size, pad_if_needed=True, fill=fill)]
        steps += [v2.RandomHorizontalFlip()]
    else:
        steps += [v2.RandomPhotometricDistort(), v2.RandomZoomOut(fill=fill), v2.RandomIoUCrop(), v2.RandomHorizontalFlip()]
        steps += [v2.Resize((size, size), antialias=True)]
    steps += [*([v2.PILToTensor()] if pillow else []), v2.ToDtype(torch.float32, scale=True), v2.SanitizeBoundingBoxes()]
    read = load if pillow else lambda path: tv_tensors.Image(load(path))
    data = Detected(prepared.parent / ANNOTATIONS, folder, read, v2.Compose(steps), masks=recipe == "masks")
    yield from dataloader(data, lambda items: (torch.stack([image for image, _ in items]), [target for _, target in items]), batch=16)


def ultralytics(row: str, folder: Path, prepared: Path) -> Iterator[int]:
    import torch
    import ultralytics.data.dataset
    from ultralytics.cfg import get_cfg
    from ultralytics.data.augment import Albumentations, Mosaic
    from ultralytics.data.build import build_dataloader, build_yolo_dataset

    torch.set_num_threads(1)
    # Its labels lie beside the images, in a folder of their own.
    root = prepared.parent / "yolo"
    if not root.exists():
        (root / "labels").mkdir(parents=True)
        (root / "images").symlink_to(folder.resolve())
        content = json.loads((prepared.parent / ANNOTATIONS).read_text())
        lines: dict[int, list[str]] = {image["id"]: [] for image in content["images"]}
        size_of = {image["id"]: (image["width"], image["height"]) for image in content["images"]}
        for one in content["annotations"]:
            (x, y, w, h), (width, height) = one["bbox"], size_of[one["image_id"]]
            lines[one["image_id"]].append(f"{one['category_id'] - 1} {(x + w / 2) / width} {(y + h / 2) / height} {w / width} {h / height}")
        for image in content["images"]:
            label = root / "labels" / Path(image["file_name"]).with_suffix(".txt")
            label.parent.mkdir(parents=True, exist_ok=True)
            label.write_text("\n".join(lines[image["id"]]))
    config = get_cfg(overrides={"imgsz": 640, "task": "detect", "mode": "train", "cache": False})
    names = {number: str(number) for number in range(90)}
    data = build_yolo_dataset(config, str(root / "images"), 16, {"names": names, "nc": 90, "channels": 3}, mode="train", rect=False, stride=32)
    found: list[Any] = [data.transforms]
    while found:
        one = found.pop()
        if isinstance(one, Albumentations):
            one.transform = None
        if isinstance(one, Mosaic) and row == "ultralytics-all":
            one.buffer_enabled = False
            one.get_indexes = lambda: [__import__("random").randint(0, len(data) - 1) for _ in range(3)]
            data.max_buffer_length = 0
        found += [*getattr(one, "transforms", []), *filter(None, [getattr(one, "pre_transform", None)])]
    loader = build_dataloader(data, 16, 1, shuffle=True)
    while True:
        for batch in loader:
            yield len(batch["img"].float().div(255))


def torchvision(recipe: str, row: str, files: list[str]) -> Iterator[int]:
    import torch
    from torchvision.transforms import v2
    from torchvision.transforms.v2 import InterpolationMode as Mode

    torch.set_num_threads(1)
    pillow = row == "torchvision-pil"
    last = [v2.PILToTensor()] if pillow else []
    last += [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    load = opener(pillow)
    if recipe == "dino":
        colours = [v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8), v2.RandomGrayscale(0.2)]
        blur = v2.GaussianBlur(13, (0.1, 2.0))
        if pillow:
            import random

            from PIL import ImageFilter

            def blur(image: Any) -> Any:
                return image.filter(ImageFilter.GaussianBlur(radius=random.uniform(0.1, 2)))

        def view(size: int, scale: tuple[float, float], more: list) -> v2.Compose:
            crop = v2.RandomResizedCrop(size, scale=scale, interpolation=Mode.BICUBIC, antialias=True)
            return v2.Compose([crop, v2.RandomHorizontalFlip(), *colours, *more, *last])

        def maybe(probability: float) -> Any:
            return v2.RandomApply([blur if isinstance(blur, torch.nn.Module) else v2.Lambda(blur)], p=probability)

        one, two = view(224, (0.4, 1), [maybe(1)]), view(224, (0.4, 1), [maybe(0.1), v2.RandomSolarize(128, 0.2)])
        small = view(96, (0.05, 0.4), [maybe(0.5)])

        def views(path: str) -> list:
            image = load(path)
            return [one(image), two(image), *(small(image) for _ in range(8))]

        yield from dataloader(Files(files, views))
    steps: list[Any] = []
    if recipe == "v2":
        steps += [v2.RandomResizedCrop(176, antialias=True), v2.RandomHorizontalFlip()]
        steps += [v2.TrivialAugmentWide(interpolation=Mode.BILINEAR), *last, v2.RandomErasing(0.1)]
    else:
        steps += [v2.RandomResizedCrop(224, interpolation=Mode.BICUBIC, antialias=True), v2.RandomHorizontalFlip()]
        steps += [v2.RandAugment(interpolation=Mode.BILINEAR), *last, v2.RandomErasing(0.25)]
    transform = v2.Compose(steps)
    alpha = 0.2 if recipe == "v2" else 0.8
    mix = v2.RandomChoice([v2.MixUp(alpha=alpha, num_classes=CLASSES), v2.CutMix(alpha=1.0, num_classes=CLASSES)])

    def collate(items: list) -> Any:
        return mix(*torch.utils.data.default_collate(items))

    yield from dataloader(Files(files, lambda path: transform(load(path))), collate)


def timm(files: list[str]) -> Iterator[int]:
    import torch
    from timm.data import FastCollateMixup, create_loader

    torch.set_num_threads(1)
    load = opener(True)

    class Images(torch.utils.data.Dataset):
        transform: Any = None

        def __len__(self) -> int:
            return len(files)

        def __getitem__(self, number: int) -> Any:
            return self.transform(load(files[number])), number % CLASSES

    # With its prefetcher, timm mixes u8 images and normalises on the GPU; here that is done on the CPU, as elsewhere.
    mixing = FastCollateMixup(mixup_alpha=0.8, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=CLASSES)
    loader = create_loader(
        Images(), (3, 224, 224), BATCH, is_training=True, use_prefetcher=True, re_prob=0.25, re_mode="const", interpolation="bicubic",
        auto_augment="rand-m9-mstd0.5-inc1", mean=MEAN, std=STD, num_workers=1, collate_fn=mixing, persistent_workers=True,
        device=torch.device("cpu"),
    )  # fmt: skip
    while True:
        for images, _ in loader:
            yield len(images)


def albumentations(files: list[str]) -> Iterator[int]:
    import albumentations as A
    import cv2
    from albumentations.pytorch import ToTensorV2

    cv2.setNumThreads(1)
    colours = [A.ColorJitter((0.6, 1.4), (0.6, 1.4), (0.8, 1.2), (-0.1, 0.1), p=0.8), A.ToGray(p=0.2)]

    def view(size: int, scale: tuple[float, float], blur: float, more: list) -> A.Compose:
        crop = A.RandomResizedCrop((size, size), scale=scale, interpolation=cv2.INTER_CUBIC)
        blurred = A.GaussianBlur(blur_limit=13, sigma_limit=(0.1, 2.0), p=blur)
        return A.Compose([crop, A.HorizontalFlip(p=0.5), *colours, blurred, *more, A.Normalize(MEAN, STD), ToTensorV2()])

    one, two = view(224, (0.4, 1), 1, []), view(224, (0.4, 1), 0.1, [A.Solarize((0.5, 0.5), p=0.2)])
    small = view(96, (0.05, 0.4), 0.5, [])

    def views(path: str) -> list:
        image = cv2.cvtColor(cv2.imread(path, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
        return [each(image=image)["image"] for each in (one, two, *[small] * 8)]

    yield from dataloader(Files(files, views))


def dali(files: list[str]) -> Iterator[int]:
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.auto_aug import trivial_augment

    @pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, enable_conditionals=True, seed=7)
    def graph() -> Any:
        encoded, _ = fn.readers.file(files=files, random_shuffle=True, initial_fill=len(files))
        images = fn.decoders.image_random_crop(encoded, random_area=(0.08, 1.0), random_aspect_ratio=(3 / 4, 4 / 3))
        images = fn.resize(images, resize_x=176, resize_y=176)
        images = trivial_augment.trivial_augment_wide(fn.flip(images, horizontal=fn.random.coin_flip()), shape=(176, 176), fill_value=0)
        mean, std = ([255 * value for value in values] for values in (MEAN, STD))
        images = fn.crop_mirror_normalize(images, mean=mean, std=std, output_layout="CHW", dtype=types.FLOAT)
        area, ratio = fn.random.uniform(range=(0.02, 0.33)), fn.random.uniform(range=(0.3, 3.3))
        if fn.random.coin_flip(probability=0.1, dtype=types.BOOL):
            sides = fn.stack((area * ratio) ** 0.5, (area / ratio) ** 0.5)
            images = fn.erase(images, anchor=fn.random.uniform(range=(0, 1), shape=2), shape=sides, normalized=True, axis_names="HW", fill_value=0)
        return images

    pipeline = graph()
    pipeline.build()
    while True:
        yield len(pipeline.run()[0])


# ---- the measurement ----


def batches(recipe: str, row: str, folder: Path, prepared: Path) -> Iterator[int]:
    if row.startswith("ultralytics"):
        return ultralytics(row, folder, prepared)
    if recipe in DETECTION:
        return (detection if row.startswith(("penstock", "ceiling")) else torchvision_detection)(recipe, row, folder, prepared)
    if row.startswith(("penstock", "ceiling")):
        return penstock(recipe, row, folder, prepared)
    files = photographs(folder)
    if row.startswith("torchvision"):
        return torchvision(recipe, row, files)
    return {"timm": timm, "albumentations": albumentations, "dali": dali}[row](files)


def measure(recipe: str, row: str, folder: Path, prepared: Path, seconds: float) -> None:
    steps = batches(recipe, row, folder, prepared)
    for _ in range(3):
        next(steps)
    images, cpu, end = 0, cpu_seconds(), time.perf_counter() + seconds
    while time.perf_counter() < end:
        images += next(steps)
    print(json.dumps({"speed": images / (cpu_seconds() - cpu)}), flush=True)
    os._exit(0)


def run(arguments: argparse.Namespace, recipe: str, row: str, prepared: Path) -> float | None:
    command = ["taskset", "-c", str(arguments.core), sys.executable, __file__, str(arguments.folder), "--child", recipe, row, str(prepared)]
    done = subprocess.run([*command, "--seconds", str(arguments.seconds)], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        print(f"{recipe}, {row}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}", file=sys.stderr)
        return None
    return float(json.loads(done.stdout.splitlines()[-1])["speed"])


def table(recipe: str, speeds: dict[str, list[float]]) -> None:
    print(f"\n| {recipe}, images a second of CPU time | Median | Lowest to highest | Of the fastest other |\n|---|---|---|---|")
    medians = {row: statistics.median(found) for row, found in speeds.items() if found}
    others = [median for row, median in medians.items() if not row.startswith(("penstock", "ceiling"))]
    for row, name in ROWS[recipe].items():
        found = speeds[row]
        if not found:
            print(f"| {name} | | | |")
            continue
        ratio = f"{medians[row] / max(others):.2f}" if others else ""
        print(f"| {name} | {medians[row]:,.0f} | {min(found):,.0f} to {max(found):,.0f} | {ratio} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        recipe, row, prepared = arguments.child
        measure(recipe, row, arguments.folder, Path(prepared), arguments.seconds)
    with tempfile.TemporaryDirectory() as temporary:
        prepared = Path(temporary, "prepared")
        command = [sys.executable, "-m", "penstock", "prepare", str(arguments.folder), str(prepared)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        annotate(arguments.folder, prepared.parent / ANNOTATIONS)
        print(f"{len(photographs(arguments.folder))} photographs, batches of {BATCH}, {arguments.rounds} rounds of {arguments.seconds:g} s")
        for recipe in arguments.only:
            speeds: dict[str, list[float]] = {row: [] for row in ROWS[recipe]}
            for _ in range(arguments.rounds):
                for row, found in speeds.items():
                    if (speed := run(arguments, recipe, row, prepared)) is not None:
                        found.append(speed)
            table(recipe, speeds)


if __name__ == "__main__":
    main()
