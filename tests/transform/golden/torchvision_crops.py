"""Writes torchvision_crops.txt: what torchvision's Resize and CenterCrop, and a letterbox of Pillow's, make of a picture.

Usage: python torchvision_crops.py > torchvision_crops.txt     needs torchvision, numpy, and a Pillow before 13, which may
    resize vertically first

geometry HEIGHT WIDTH RESIZE CROP_HEIGHT CROP_WIDTH -> height and width after Resize, top and left of CenterCrop
center/letterbox HEIGHT WIDTH RESIZE CROP_HEIGHT CROP_WIDTH FILTER -> the bytes of the sample
cover HEIGHT WIDTH 0 CROP_HEIGHT CROP_WIDTH FILTER -> the bytes of CenterCrop after Resize to what just covers the crop
covering HEIGHT WIDTH 0 CROP_HEIGHT CROP_WIDTH -> height and width after that Resize, top and left of CenterCrop
cut HEIGHT WIDTH X Y CUT_WIDTH CUT_HEIGHT OUT_HEIGHT OUT_WIDTH FILTER -> the bytes of a part, cut out and resized, of a picture
    of all levels
ten HEIGHT WIDTH RESIZE CROP_HEIGHT CROP_WIDTH -> the bytes of TenCrop after Resize: those of FiveCrop, and of the mirrored image
pad HEIGHT WIDTH PADDING CROP_HEIGHT CROP_WIDTH FILTER -> the bytes of all crops of the padded image, row after row
"""

import random

import numpy as np
import PIL
import torchvision
from PIL import Image
from torchvision.transforms import InterpolationMode, functional
from torchvision.transforms.functional import _compute_resized_output_size
from torchvision.transforms.v2.functional._geometry import _center_crop_compute_crop_anchor

FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


def picture(height: int, width: int) -> Image.Image:
    """Levels in the middle: Pillow cuts what a cubic makes of others off between the two directions, the library at the end."""
    y, x = np.mgrid[:height, :width]
    levels = [64 + (x * (37 + c * 11) + y * (91 - c * 23) + x * y * (c + 1)) % 128 for c in range(3)]
    return Image.fromarray(np.stack(levels, axis=2).astype(np.uint8))


def sharp(height: int, width: int) -> Image.Image:
    """All levels, next to each other: what a cubic makes of them is cut off between the directions."""
    y, x = np.mgrid[:height, :width]
    levels = [(x * x * (37 + c * 11) + y * (91 - c * 23) + x * y * (c + 1)) % 256 for c in range(3)]
    return Image.fromarray(np.stack(levels, axis=2).astype(np.uint8))


def text(image: Image.Image) -> str:
    return np.asarray(image).tobytes().hex()


def letterbox(image: Image.Image, height: int, width: int, resample: Image.Resampling) -> Image.Image:
    """ultralytics' LetterBox (auto=False, scaleup=True), with Pillow's resize."""
    ratio = min(height / image.height, width / image.width)
    inner_width, inner_height = int(round(image.width * ratio)), int(round(image.height * ratio))
    across, down = (width - inner_width) / 2, (height - inner_height) / 2
    out = Image.new("RGB", (width, height), (114, 114, 114))
    out.paste(image.resize((inner_width, inner_height), resample), (int(round(across - 0.1)), int(round(down - 0.1))))
    return out


def covering(image: tuple[int, int], crop: tuple[int, int]) -> tuple[int, int]:
    """The size of the resized image, in integers as of _compute_resized_output_size; images and crops are height and width."""
    (height, width), (down, across) = image, crop
    if width * down >= height * across:
        return down, down * width // height
    return across * height // width, across


def main() -> None:
    print(f"# torchvision {torchvision.__version__}, Pillow {PIL.__version__}: by torchvision_crops.py")
    rng = random.Random(7)
    for _ in range(400):
        height, width = (int(2 ** rng.uniform(0, 13)) for _ in range(2))
        resize = rng.randint(1, 300)
        crop = [rng.randint(1, resize) for _ in range(2)]
        resized = _compute_resized_output_size((height, width), [resize])
        anchor = _center_crop_compute_crop_anchor(*crop, *resized)
        print("geometry", height, width, resize, *crop, "->", *resized, *anchor)
    for height, width, resize, crop in [(40, 31, 20, (13, 14)), (29, 67, 17, (16, 17)), (9, 12, 24, (21, 20)), (50, 50, 50, (11, 12))]:
        for name, resample in FILTERS.items():
            mode = InterpolationMode(name)
            resized = functional.resize(picture(height, width), resize, mode)
            out = functional.center_crop(resized, crop)
            print("center", height, width, resize, *crop, name, "->", text(out))
    for height, width, crop in [(40, 31, (20, 20)), (13, 50, (18, 21)), (9, 12, (24, 17)), (3, 60, (8, 12))]:
        for name, resample in FILTERS.items():
            print("letterbox", height, width, 0, *crop, name, "->", text(letterbox(picture(height, width), *crop, resample)))
    for box, size in [((3, 5, 20, 17), (9, 8)), ((0, 0, 31, 40), (40, 31)), ((7, 0, 5, 9), (16, 21)), ((1, 2, 29, 38), (7, 30)), ((30, 39, 1, 1), (3, 2))]:
        for name in FILTERS:
            x, y, width, height = box
            out = functional.resized_crop(sharp(40, 31), y, x, height, width, size, InterpolationMode(name))
            print("cut", 40, 31, *box, *size, name, "->", text(out))
    for height, width, resize, crop in [(40, 31, 20, (5, 8)), (29, 67, 17, (6, 5)), (9, 12, 24, (7, 6)), (17, 17, 17, (4, 3))]:
        tens = functional.ten_crop(functional.resize(picture(height, width), resize), crop)
        print("ten", height, width, resize, *crop, "bilinear", "->", "".join(map(text, tens)))
    for _ in range(200):
        image = [int(2 ** rng.uniform(0, 13)) for _ in range(2)]
        crop = [rng.randint(1, 300) for _ in range(2)]
        resized = covering(image, crop)
        print("covering", *image, 0, *crop, "->", *resized, *_center_crop_compute_crop_anchor(*crop, *resized))
    for height, width, crop in [(40, 31, (20, 20)), (13, 50, (18, 21)), (9, 12, (24, 17)), (33, 60, (8, 12)), (31, 40, (21, 12))]:
        for name in FILTERS:
            resized = functional.resize(picture(height, width), covering((height, width), crop), InterpolationMode(name))
            print("cover", height, width, 0, *crop, name, "->", text(functional.center_crop(resized, crop)))
    padded = functional.pad(picture(6, 5), [2], fill=(9, 80, 200))
    crops = [functional.crop(padded, top, left, 6, 4) for top in range(5) for left in range(6)]
    print("pad", 6, 5, 2, 6, 4, "bilinear", "->", "".join(map(text, crops)))


main()
