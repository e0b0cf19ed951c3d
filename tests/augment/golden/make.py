"""Makes cases.json and pixels.bin: what torchvision (and Pillow, where the operation is its) makes of two small images.

Usage: python tests/augment/golden/make.py     with torch, torchvision, numpy and Pillow

A case is an operation, as plans have it, with the largest difference from its result here that the library may have
(`most`), and the largest share of levels that may differ at all (`share`). pixels.bin has the RGB image, the grey one,
and then the cases' results, one after another.
"""

import json
import math
from pathlib import Path

import numpy as np
import PIL
import torch
import torchvision
from PIL import Image
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as F

FOLDER = Path(__file__).parent
HEIGHT, WIDTH = 24, 31


def images() -> tuple[np.ndarray, np.ndarray]:
    """Slopes, noise, and areas of black and white."""
    random = np.random.default_rng(7)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    slopes = np.stack([x * 8, y * 10, 255 - 4 * (x + y)], axis=-1) + random.integers(-20, 20, (HEIGHT, WIDTH, 3))
    slopes[2:7, 3:9] = random.integers(0, 256, (5, 6, 3))
    slopes[12:15, 20:26] = 255
    slopes[16:19, 4:9] = 0
    rgb = np.clip(slopes, 0, 255).astype(np.uint8)
    gray = np.clip(x * 5 + y * 3 + random.integers(0, 40, (HEIGHT, WIDTH)), 10, 240).astype(np.uint8)
    return rgb, gray[..., None]


def fixed(value: float) -> list[float]:
    return [value, value]


def levels() -> list[tuple[dict, object, int, float]]:
    cases: list = []
    for factor in (0.0, 0.1, 0.7, 1.0, 1.37, 1.9, 5.0):
        cases += [
            ({"brightness": {"factor": fixed(factor)}}, lambda i, f=factor: F.adjust_brightness(i, f), 1, 0.002),
            ({"contrast": {"factor": fixed(factor)}}, lambda i, f=factor: F.adjust_contrast(i, f), 1, 0.002),
            # Results that should be whole are cut to the level below where torchvision's floats lie under them.
            ({"saturation": {"factor": fixed(factor)}}, lambda i, f=factor: F.adjust_saturation(i, f), 1, 0.02),
            ({"sharpness": {"factor": fixed(factor)}}, lambda i, f=factor: F.adjust_sharpness(i, f), 1, 0.002),
        ]
    for turn in (-0.5, -0.31, -0.1, 0.0, 0.04, 0.2, 0.5):
        cases.append(({"hue": {"turn": fixed(turn)}}, lambda i, t=turn: F.adjust_hue(i, t), 1, 0.002))
    for threshold in (0, 1, 128, 200, 255):
        cases.append(({"solarize": {"threshold": threshold}}, lambda i, t=threshold: F.solarize(i, t), 0, 0))
    for bits in (0, 1, 3, 7, 8):
        cases.append(({"posterize": {"bits": bits}}, lambda i, b=bits: F.posterize(i, b), 0, 0))
    cases += [
        ({"grayscale": {}}, lambda i: F.rgb_to_grayscale(i, num_output_channels=i.shape[0]), 1, 0.002),
        ({"equalize": {}}, F.equalize, 0, 0),
        # torchvision's quotients are floats, and some that should be whole are cut to the level below.
        ({"autocontrast": {}}, F.autocontrast, 1, 0.06),
        ({"invert": {}}, F.invert, 0, 0),
    ]
    for size, sigma in ((3, 0.5), (5, 1.0), (9, 2.0), (23, 1.3), (23, 0.1)):
        cases.append(
            (
                {"gaussian_blur": {"kernel_size": size, "sigma": fixed(sigma)}},
                lambda i, k=size, s=sigma: F.gaussian_blur(i, [k, k], [s, s]),
                1,
                0.02,
            )
        )
    return cases


def places() -> list[tuple[dict, object, int, float]]:
    """Where a place lies between two pixels, nearest takes the one or the other: floats decide in torchvision."""
    cases: list = [
        ({"flip": {"probability": 1.0}}, F.horizontal_flip, 0, 0),
        ({"vertical_flip": {"probability": 1.0}}, F.vertical_flip, 0, 0),
    ]
    for name, mode, fill, most, share in (
        ("nearest", InterpolationMode.NEAREST, [0, 0, 0], 255, 0.005),
        ("nearest", InterpolationMode.NEAREST, [10, 200, 30], 255, 0.005),
        ("bilinear", InterpolationMode.BILINEAR, [0, 0, 0], 1, 0.05),
    ):
        how = {"interpolation": name, "fill": fill}

        def read(i, mode=mode, fill=fill):
            # None is what torchvision reads with zeros, without its second blending of the edges.
            return {"interpolation": mode, "fill": [float(f) for f in fill[: i.shape[0]]] if any(fill) else None}

        for degrees in (-135.0, -12.7, 0.0, 30.0, 180.0):
            cases.append(
                ({"rotate": {"degrees": fixed(degrees), **how}}, lambda i, d=degrees, r=read: F.rotate(i, d, **r(i)), most, share)
            )
        for x, y in ((16.7, 0.0), (0.0, -8.3), (-20.0, 11.0)):
            cases.append(
                (
                    {"shear": {"x": fixed(x), "y": fixed(y), **how}},
                    lambda i, x=x, y=y, r=read: F.affine(i, 0.0, [0, 0], 1.0, [x, y], **r(i)),
                    most,
                    share,
                )
            )
        cases.append(
            (
                {"translate": {"x": fixed(0.2), "y": fixed(-0.1), **how}},
                lambda i, r=read: F.affine(i, 0.0, [round(0.2 * WIDTH), round(-0.1 * HEIGHT)], 1.0, [0.0, 0.0], **r(i)),
                most,
                share,
            )
        )
        cases.append(
            (
                {
                    "affine": {
                        "degrees": fixed(21.0),
                        "translate_x": fixed(0.1),
                        "translate_y": fixed(0.21),
                        "scale": fixed(1.3),
                        "shear_x": fixed(5.0),
                        "shear_y": fixed(-9.0),
                        **how,
                    }
                },
                lambda i, r=read: F.affine(i, 21.0, [round(0.1 * WIDTH), round(0.21 * HEIGHT)], 1.3, [5.0, -9.0], **r(i)),
                most,
                share,
            )
        )

    def pillow(image: torch.Tensor, degrees: float) -> torch.Tensor:
        made = F.to_pil_image(image).rotate(degrees, resample=Image.BICUBIC, fillcolor=(40, 50, 60)[: 3 if image.shape[0] == 3 else 1])
        return F.pil_to_tensor(made)

    for degrees in (-12.7, 30.0, 61.0):
        how = {"interpolation": "bicubic", "fill": [40, 50, 60]}
        cases.append(({"rotate": {"degrees": fixed(degrees), **how}}, lambda i, d=degrees: pillow(i, d), 1, 0.05))
    return cases


def main() -> None:
    pictures = images()
    written = [image.tobytes() for image in pictures]
    listed = []
    for operation, function, most, share in levels() + places():
        listed.append(json.dumps({"operation": operation, "most": most, "share": share}))
        for image in pictures:
            made = function(torch.from_numpy(image).permute(2, 0, 1).contiguous())
            assert made.shape == (image.shape[2], HEIGHT, WIDTH) and made.dtype == torch.uint8
            written.append(made.permute(1, 2, 0).contiguous().numpy().tobytes())
    versions = json.dumps({"torch": torch.__version__, "torchvision": torchvision.__version__, "Pillow": PIL.__version__})
    head = f'{{"height": {HEIGHT}, "width": {WIDTH},\n "made_with": {versions},\n "cases": [\n  '
    (FOLDER / "cases.json").write_text(head + ",\n  ".join(listed) + "\n]}\n")
    (FOLDER / "pixels.bin").write_bytes(b"".join(written))
    assert math.prod((len(listed) + 1, HEIGHT, WIDTH, 4)) == sum(map(len, written))


main()
