"""Writes wide_images.txt: what Pillow and torch make of images of 16 bits a level.

Usage: python wide_images.py > wide_images.txt     needs torch, numpy, and a Pillow before 13, which may resize vertically first

cut HEIGHT WIDTH X Y CUT_WIDTH CUT_HEIGHT OUT_HEIGHT OUT_WIDTH FILTER -> the levels of a part, cut out and resized
center HEIGHT WIDTH RESIZE CROP_HEIGHT CROP_WIDTH FILTER -> the levels after torchvision's Resize and CenterCrop, by Pillow
whole HEIGHT WIDTH OUT_HEIGHT OUT_WIDTH FILTER -> those of torch's antialiased interpolate of doubles, rounded
png HEIGHT WIDTH FILE -> the levels of a file that Pillow wrote
"""

import io

import numpy as np
import PIL
import torch
from PIL import Image
from torchvision.transforms.functional import _compute_resized_output_size
from torchvision.transforms.v2.functional._geometry import _center_crop_compute_crop_anchor

FILTERS = {"pillow_bilinear": Image.Resampling.BILINEAR, "nearest": Image.Resampling.NEAREST}


def levels(height: int, width: int) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    return ((x * 7919 + y * 104729 + x * y * 613) % 65536).astype(np.uint16)


def picture(height: int, width: int, filter: str = "") -> Image.Image:
    """Of "I;16"; for nearest of "I", since Pillow takes other pixels of the former where a middle lies between two."""
    if filter == "nearest":
        return Image.fromarray(levels(height, width).astype(np.int32))
    return Image.frombytes("I;16", (width, height), levels(height, width).tobytes())


def text(found: np.ndarray) -> str:
    return found.astype(">u2").tobytes().hex()


def main() -> None:
    print(f"# torch {torch.__version__}, Pillow {PIL.__version__}: by wide_images.py")
    for box, size in [((3, 5, 20, 17), (9, 8)), ((0, 0, 31, 40), (40, 31)), ((7, 0, 5, 9), (16, 21)), ((1, 2, 29, 38), (7, 30))]:
        for name, resample in FILTERS.items():
            x, y, width, height = box
            out = picture(40, 31, name).crop((x, y, x + width, y + height)).resize(size[::-1], resample)
            print("cut", 40, 31, *box, *size, name, "->", text(np.asarray(out)))
    for height, width, resize, crop in [(40, 31, 20, (13, 14)), (29, 67, 17, (16, 17)), (9, 12, 24, (21, 20)), (50, 50, 50, (11, 12))]:
        for name, resample in FILTERS.items():
            resized = _compute_resized_output_size((height, width), [resize])
            top, left = _center_crop_compute_crop_anchor(*crop, *resized)
            out = np.asarray(picture(height, width, name).resize(resized[::-1], resample))[top : top + crop[0], left : left + crop[1]]
            print("center", height, width, resize, *crop, name, "->", text(out))
    for height, width, size in [(40, 31, (13, 14)), (9, 12, (21, 20)), (17, 50, (17, 9))]:
        for name in ("bilinear", "bicubic"):
            given = torch.from_numpy(levels(height, width).astype(np.float64))[None, None]
            out = torch.nn.functional.interpolate(given, size, mode=name, antialias=True, align_corners=False)[0, 0]
            print("whole", height, width, *size, name, "->", text(out.numpy().round().clip(0, 65535)))
    file = io.BytesIO()
    picture(7, 5).save(file, "PNG")
    print("png", 7, 5, file.getvalue().hex(), "->", text(levels(7, 5)))


main()
