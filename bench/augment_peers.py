"""Operations on pixels beside torchvision's, timm's and Pillow's: levels, draws, and speed, as markdown.

Usage: python bench/augment_peers.py --photos DIR [--bench build/ci/bench/penstock_augment_bench] [--only levels draws speed]
           [--images 64] [--rounds 5] [--seconds 0.2]
       pip install penstock torch torchvision timm numpy pillow

DIR has photographs. `levels`: the same operation with the same parameters on the middle of each photograph, 224 x 224:
the largest and the mean difference, and the share of levels that differ. `draws`: which operations the policies choose and
how strong they are, over 10,000 draws. `speed`: images a second of CPU time on one core, torchvision with one thread, in
turns, medians of the rounds with the lowest and highest; a copy of the image is the ceiling.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import timm
import timm.data.auto_augment as timm_augment
import torch
import torchvision
from PIL import Image, ImageEnhance, ImageOps, __version__ as pillow_version
from torchvision.transforms import v2
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as F

SIDE = 224
DRAWS = 10_000
Case = tuple[str, dict, Callable[[torch.Tensor], torch.Tensor]]


def photographs(folder: Path, most: int) -> np.ndarray:
    """The middle of each, as u8 [N,SIDE,SIDE,3]."""
    found: list[np.ndarray] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in (".jpg", ".jpeg", ".png") or len(found) == most:
            continue
        image = Image.open(path).convert("RGB")
        scale = SIDE / min(image.size)
        image = image.resize((max(SIDE, round(image.width * scale)), max(SIDE, round(image.height * scale))))
        left, top = (image.width - SIDE) // 2, (image.height - SIDE) // 2
        found.append(np.asarray(image.crop((left, top, left + SIDE, top + SIDE))))
    if not found:
        raise SystemExit(f"there are no photographs below {folder}")
    return np.stack(found)


def fixed(value: float) -> list[float]:
    return [value, value]


def by_pillow(function: Callable[[Image.Image], Image.Image]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda image: F.pil_to_tensor(function(F.to_pil_image(image)))


def timm_step(kind: str, *arguments: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    return by_pillow(lambda image: timm_augment.NAME_TO_OP[kind](image, *arguments, fillcolor=(128, 128, 128), resample=Image.BICUBIC))


# ---- levels ----


def cases() -> list[Case]:
    """What each is called, our operation, and the other's."""
    found: list[Case] = []
    for factor in (0.31, 0.7, 1.37, 1.9):
        found += [
            (f"brightness {factor}", {"brightness": {"factor": fixed(factor)}}, lambda i, f=factor: F.adjust_brightness(i, f)),
            (f"contrast {factor}", {"contrast": {"factor": fixed(factor)}}, lambda i, f=factor: F.adjust_contrast(i, f)),
            (f"saturation {factor}", {"saturation": {"factor": fixed(factor)}}, lambda i, f=factor: F.adjust_saturation(i, f)),
            (f"sharpness {factor}", {"sharpness": {"factor": fixed(factor)}}, lambda i, f=factor: F.adjust_sharpness(i, f)),
        ]
    for turn in (-0.31, 0.04, 0.5):
        found.append((f"hue {turn}", {"hue": {"turn": fixed(turn)}}, lambda i, t=turn: F.adjust_hue(i, t)))
    found += [
        ("grayscale", {"grayscale": {}}, lambda i: F.rgb_to_grayscale(i, num_output_channels=3)),
        ("solarize 128", {"solarize": {"threshold": 128}}, lambda i: F.solarize(i, 128)),
        ("posterize 4", {"posterize": {"bits": 4}}, lambda i: F.posterize(i, 4)),
        ("equalize", {"equalize": {}}, F.equalize),
        ("autocontrast", {"autocontrast": {}}, F.autocontrast),
        ("invert", {"invert": {}}, F.invert),
    ]
    for size, sigma in ((5, 1.0), (23, 0.7), (23, 2.0)):
        operation = {"gaussian_blur": {"kernel_size": size, "sigma": fixed(sigma)}}
        found.append((f"gaussian_blur {size}, {sigma}", operation, lambda i, k=size, s=sigma: F.gaussian_blur(i, [k, k], [s, s])))
    found += [
        ("flip", {"flip": {"probability": 1.0}}, F.horizontal_flip),
        ("vertical_flip", {"vertical_flip": {"probability": 1.0}}, F.vertical_flip),
    ]
    corners = [[0, 0], [SIDE - 1, 0], [SIDE - 1, SIDE - 1], [0, SIDE - 1]]
    for name, mode in (("nearest", InterpolationMode.NEAREST), ("bilinear", InterpolationMode.BILINEAR)):
        how = {"interpolation": name}
        for degrees in (17.3, -135.0):
            found.append(
                (f"rotate {degrees}, {name}", {"rotate": {"degrees": fixed(degrees), **how}}, lambda i, d=degrees, m=mode: F.rotate(i, d, m))
            )
        found += [
            (
                f"shear 12.5, {name}",
                {"shear": {"x": fixed(12.5), **how}},
                lambda i, m=mode: F.affine(i, 0.0, [0, 0], 1.0, [12.5, 0.0], m),
            ),
            (
                f"translate 0.1, -0.2, {name}",
                {"translate": {"x": fixed(0.1), "y": fixed(-0.2), **how}},
                lambda i, m=mode: F.affine(i, 0.0, [round(0.1 * SIDE), round(-0.2 * SIDE)], 1.0, [0.0, 0.0], m),
            ),
            (
                f"affine, {name}",
                {"affine": {"degrees": fixed(21.0), "scale": fixed(1.3), "shear_x": fixed(5.0), "shear_y": fixed(-9.0), **how}},
                lambda i, m=mode: F.affine(i, 21.0, [0, 0], 1.3, [5.0, -9.0], m),
            ),
            (f"perspective 0, {name}", {"perspective": {"distortion": 0.0, **how}}, lambda i, m=mode: F.perspective(i, corners, corners, m)),
        ]
    return found


def pillow_cases() -> list[Case]:
    """As timm does it, by Pillow."""
    found: list[Case] = []
    for factor in (0.31, 1.9):
        for name, enhance in (
            ("brightness", ImageEnhance.Brightness),
            ("contrast", ImageEnhance.Contrast),
            ("saturation", ImageEnhance.Color),
            ("sharpness", ImageEnhance.Sharpness),
        ):
            found.append(
                (f"{name} {factor}", {name: {"factor": fixed(factor)}}, by_pillow(lambda i, e=enhance, f=factor: e(i).enhance(f)))
            )
    found += [
        ("solarize 128", {"solarize": {"threshold": 128}}, by_pillow(lambda i: ImageOps.solarize(i, 128))),
        ("posterize 3", {"posterize": {"bits": 3}}, by_pillow(lambda i: ImageOps.posterize(i, 3))),
        ("equalize", {"equalize": {}}, by_pillow(ImageOps.equalize)),
        ("autocontrast", {"autocontrast": {}}, by_pillow(ImageOps.autocontrast)),
        ("rotate 17.3, bicubic", {"rotate": {"degrees": fixed(17.3), "interpolation": "bicubic", "fill": [128] * 3}}, timm_step("Rotate", 17.3)),
    ]
    return found


def ours(operation: dict, images: np.ndarray) -> np.ndarray:
    import penstock as ps

    plan = ps.memory({"image": images}).map(ps.augment_image([ps.augment.Augmentation.from_json(json.dumps(operation))]))
    (step,) = plan.batch(len(images)).loader()
    return np.array(step["image"])


def compare_levels(images: np.ndarray) -> None:
    for title, listed in (("torchvision v2", cases()), ("Pillow, as timm uses it", pillow_cases())):
        print(f"\n| Beside {title} | Largest difference | Mean | Levels that differ |\n|---|---|---|---|")
        for name, operation, other in listed:
            made = ours(operation, images)
            theirs = np.stack([other(torch.from_numpy(i).permute(2, 0, 1).contiguous()).permute(1, 2, 0).numpy() for i in images])
            difference = np.abs(made.astype(int) - theirs)
            print(f"| {name} | {difference.max()} | {difference.mean():.5f} | {100 * (difference > 0).mean():.3f}% |")


# ---- draws ----

# As src/augment/step.hpp has them.
KINDS = "brightness solarize solarize_add posterize invert contrast autocontrast equalize saturation hue hsv grayscale sharpness gaussian_blur affine perspective flip vertical_flip mix_begin mix_add".split()
SAMPLERS = "nearest bilinear pillow_bilinear pillow_bicubic".split()
Drawn = list[tuple[str, float]]  # operations and how strong they are


def of_matrix(m: Sequence[float]) -> tuple[str, float]:
    """What an affine matrix does."""
    a, b, c, d, _, f = (0 if abs(one) < 1e-6 else one for one in m)
    if b and d:
        return "rotate", abs(math.degrees(math.atan2(b, a)))
    for name, value in (("shear_x", b), ("shear_y", d), ("translate_x", c), ("translate_y", f)):
        if value:
            return name, abs(value)
    return "nothing", 0.0


def our_draws(bench: Path, operation: dict) -> list[Drawn]:
    printed = subprocess.run([bench, "draw", str(DRAWS), str(SIDE)], input=json.dumps([operation]) + "\n", capture_output=True, text=True, check=True)
    draws: list[Drawn] = []
    for line in printed.stdout.splitlines():
        numbers = [int(number) for number in line.split()]
        drawn: Drawn = []
        for at in range(0, len(numbers), 10):
            kind, values = KINDS[numbers[at]], numbers[at + 2 : at + 10]
            if kind == "affine":
                scale = [2, 2, 1, 2, 2, 1]
                drawn.append(of_matrix([value * by / 2**32 for value, by in zip(values, scale)]))
            elif kind in ("brightness", "contrast", "saturation", "sharpness"):
                drawn.append((kind, abs(values[0] / 2**20 - 1)))
            elif kind == "posterize":
                drawn.append((kind, values[0].bit_count()))
            elif not kind.startswith("mix"):
                drawn.append((kind, values[0]))
        draws.append([one for one in drawn if one[0] != "nothing"])
    return draws


THEIR_NAMES = {
    "ShearX": "shear_x", "ShearY": "shear_y", "TranslateX": "translate_x", "TranslateY": "translate_y", "Rotate": "rotate",
    "Brightness": "brightness", "Color": "saturation", "Contrast": "contrast", "Sharpness": "sharpness", "Posterize": "posterize",
    "Solarize": "solarize", "AutoContrast": "autocontrast", "Equalize": "equalize", "Invert": "invert", "SolarizeAdd": "solarize_add",
    "TranslateXRel": "translate_x", "TranslateYRel": "translate_y",
}  # fmt: skip


def torchvision_draws(policy: Any) -> list[Drawn]:
    drawn: Drawn = []

    def note(image: Any, name: str, magnitude: float, **_: Any) -> Any:
        if name.startswith("Translate"):
            magnitude = int(magnitude)
        elif name == "Solarize":
            magnitude = math.ceil(round(255 * magnitude, 4))
        moves = name.startswith(("Shear", "Translate", "Rotate"))
        if name != "Identity" and not (moves and magnitude == 0):
            drawn.append((THEIR_NAMES[name], abs(magnitude)))
        return image

    policy._apply_image_or_video_transform = note
    image = torch.zeros((3, SIDE, SIDE), dtype=torch.uint8)
    draws: list[Drawn] = []
    for _ in range(DRAWS):
        policy(image)
        draws.append(drawn)
        drawn = []
    return draws


def timm_draws(config: str) -> list[Drawn]:
    drawn: Drawn = []
    policy = timm_augment.rand_augment_transform(config, {})
    for op in policy.ops:
        name = op.name.removesuffix("Increasing")

        def note(image: Any, *arguments: float, name: str = name, **_: Any) -> Any:
            strength = arguments[0] if arguments else 0.0
            if name in ("Brightness", "Color", "Contrast", "Sharpness"):
                strength -= 1
            if name.startswith("Translate"):
                strength *= SIDE
            drawn.append((THEIR_NAMES[name], abs(strength)))
            return image

        op.aug_fn = note
    image = Image.new("RGB", (SIDE, SIDE))
    draws: list[Drawn] = []
    for _ in range(DRAWS):
        policy(image)
        draws.append(drawn)
        drawn = []
    return draws


def compare_draws(bench: Path) -> None:
    config = "rand-m9-mstd0.5-inc1"
    policies = [
        ("TrivialAugmentWide", {"trivial_augment_wide": {}}, lambda: torchvision_draws(v2.TrivialAugmentWide())),
        ("RandAugment", {"rand_augment": {}}, lambda: torchvision_draws(v2.RandAugment())),
        ("AutoAugment", {"auto_augment": {}}, lambda: torchvision_draws(v2.AutoAugment())),
        ("AugMix", {"aug_mix": {}}, lambda: torchvision_draws(v2.AugMix())),
        (f"timm, {config}", {"timm_rand_augment": {"config": config}}, lambda: timm_draws(config)),
    ]
    torch.manual_seed(7)
    for title, operation, draw in policies:
        print(f"\n| {title}, {DRAWS:,} draws | Here | There | Difference, standard deviations | Mean strength here | there | Standard deviation here | there |")
        print("|---|---|---|---|---|---|---|---|")
        counts, strengths = [], []
        for draws in (our_draws(bench, operation), draw()):
            counts.append(Counter(name for drawn in draws for name, _ in drawn))
            lists = defaultdict(list)
            for drawn in draws:
                for name, strength in drawn:
                    lists[name].append(strength)
            strengths.append(lists)
        for name in sorted(set(counts[0]) | set(counts[1])):
            here, there = counts[0][name], counts[1][name]
            means = [statistics.fmean(lists[name] or [0]) for lists in strengths]
            spreads = [statistics.pstdev(lists[name] or [0]) for lists in strengths]
            print(
                f"| {name} | {here:,} | {there:,} | {(here - there) / math.sqrt(max(here + there, 1)):+.1f} | {means[0]:.4g} | {means[1]:.4g} | {spreads[0]:.3g} | {spreads[1]:.3g} |"
            )


# ---- speed ----


def timed() -> list[tuple[str, list, Callable[[torch.Tensor], Any] | None]]:
    jitter = {"brightness": [0.6, 1.4], "contrast": [0.6, 1.4], "saturation": [0.6, 1.4], "hue": [-0.1, 0.1]}
    bilinear, bicubic = {"interpolation": "bilinear"}, {"interpolation": "bicubic"}
    timm_policy = timm_augment.rand_augment_transform("rand-m9-mstd0.5-inc1", {})
    for op in timm_policy.ops:
        if op.name.startswith("Posterize"):  # newer Pillows refuse the 0 bits that timm may ask for
            op.aug_fn = lambda image, bits, **_: ImageOps.posterize(image, max(bits, 1))

    def drawn(low: float, high: float) -> float:
        return float(torch.empty(()).uniform_(low, high))

    return [
        ("a copy", [], lambda i: i.clone()),
        ("brightness", [{"brightness": {"factor": [0.5, 1.5]}}], lambda i: F.adjust_brightness(i, drawn(0.5, 1.5))),
        ("contrast", [{"contrast": {"factor": [0.5, 1.5]}}], lambda i: F.adjust_contrast(i, drawn(0.5, 1.5))),
        ("saturation", [{"saturation": {"factor": [0.5, 1.5]}}], lambda i: F.adjust_saturation(i, drawn(0.5, 1.5))),
        ("hue", [{"hue": {"turn": [-0.5, 0.5]}}], lambda i: F.adjust_hue(i, drawn(-0.5, 0.5))),
        ("colour jitter of all four", [{"color_jitter": jitter}], v2.ColorJitter(0.4, 0.4, 0.4, 0.1)),
        ("grayscale", [{"grayscale": {}}], lambda i: F.rgb_to_grayscale(i, num_output_channels=3)),
        ("solarize", [{"solarize": {}}], lambda i: F.solarize(i, 128)),
        ("posterize", [{"posterize": {"bits": 4}}], lambda i: F.posterize(i, 4)),
        ("equalize", [{"equalize": {}}], F.equalize),
        ("autocontrast", [{"autocontrast": {}}], F.autocontrast),
        ("invert", [{"invert": {}}], F.invert),
        ("sharpness", [{"sharpness": {"factor": [0.5, 1.5]}}], lambda i: F.adjust_sharpness(i, drawn(0.5, 1.5))),
        ("gaussian blur 5", [{"gaussian_blur": {"kernel_size": 5, "sigma": [0.1, 2]}}], v2.GaussianBlur(5)),
        ("gaussian blur 23", [{"gaussian_blur": {"kernel_size": 23, "sigma": [0.1, 2]}}], v2.GaussianBlur(23)),
        ("flip", [{"flip": {"probability": 1}}], F.horizontal_flip),
        ("vertical flip", [{"vertical_flip": {"probability": 1}}], F.vertical_flip),
        ("rotate, nearest", [{"rotate": {"degrees": [-30, 30]}}], v2.RandomRotation(30)),
        ("rotate, bilinear", [{"rotate": {"degrees": [-30, 30], **bilinear}}], v2.RandomRotation(30, InterpolationMode.BILINEAR)),
        (
            "rotate, bicubic (there: Pillow)",
            [{"rotate": {"degrees": [-30, 30], **bicubic}}],
            lambda i: F.to_pil_image(i).rotate(drawn(-30, 30), Image.BICUBIC),
        ),
        ("perspective, bilinear", [{"perspective": {}}], v2.RandomPerspective(p=1)),
        ("TrivialAugmentWide", [{"trivial_augment_wide": {}}], v2.TrivialAugmentWide()),
        ("RandAugment", [{"rand_augment": {}}], v2.RandAugment()),
        ("AutoAugment", [{"auto_augment": {}}], v2.AutoAugment()),
        ("AugMix", [{"aug_mix": {}}], v2.AugMix()),
        ("timm's rand-m9-mstd0.5-inc1 (there: timm, Pillow)", [{"timm_rand_augment": {"config": "rand-m9-mstd0.5-inc1"}}], timm_policy),
    ]


def microseconds(function: Callable[[Any], Any], images: Sequence[Any], seconds: float) -> float:
    for image in images[:8]:
        function(image)
    done, begin = 0, time.process_time()
    while (now := time.process_time()) - begin < seconds:
        for image in images[:8] if now - begin > seconds / 2 else images:
            function(image)
            done += 1
    return (now - begin) / done * 1e6


def compare_speed(bench: Path, images: np.ndarray, rounds: int, seconds: float) -> None:
    torch.set_num_threads(1)
    raw = Path(bench).parent / "augment_images.raw"
    images.tofile(raw)
    listed = timed()
    lines = "\n".join(json.dumps(operations) for _, operations, _ in listed) + "\n"
    tensors = [torch.from_numpy(i).permute(2, 0, 1).contiguous() for i in images]
    pictures = [Image.fromarray(i) for i in images]
    here: list[list[float]] = [[] for _ in listed]
    there: list[list[float]] = [[] for _ in listed]
    for _ in range(rounds):
        command = [bench, "time", str(raw), str(SIDE), str(seconds)]
        printed = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout.split()
        for at, (name, _, function) in enumerate(listed):
            here[at].append(1e6 / float(printed[at]))
            if function:
                there[at].append(1e6 / microseconds(function, pictures if "timm" in name else tensors, seconds))
    raw.unlink()
    print(f"\n| Images a second of CPU time, {SIDE} x {SIDE} | Here | Lowest to highest | torchvision v2 | Lowest to highest | Ratio |\n|---|---|---|---|---|---|")
    for (name, _, _), mine, others in zip(listed, here, there):
        row = f"| {name} | {statistics.median(mine):,.0f} | {min(mine):,.0f} to {max(mine):,.0f} |"
        print(row + f" {statistics.median(others):,.0f} | {min(others):,.0f} to {max(others):,.0f} | {statistics.median(mine) / statistics.median(others):.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--bench", type=Path, default=Path("build/ci/bench/penstock_augment_bench"))
    parser.add_argument("--only", nargs="+", choices=["levels", "draws", "speed"], default=["levels", "draws", "speed"])
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2)
    arguments = parser.parse_args()
    images = photographs(arguments.photos, arguments.images)
    versions = f"torch {torch.__version__}, torchvision {torchvision.__version__}, timm {timm.__version__}, Pillow {pillow_version}"
    print(f"{len(images)} photographs; {versions}; {platform.machine()}")
    if "levels" in arguments.only:
        compare_levels(images)
    if "draws" in arguments.only:
        compare_draws(arguments.bench)
    if "speed" in arguments.only:
        compare_speed(arguments.bench, images, arguments.rounds, arguments.seconds)


main()
