"""Writes pillow_masks.txt: what torchvision and Pillow make of masks by NEAREST, and the numbers in PNGs.

Usage: python pillow_masks.py > pillow_masks.txt     needs torchvision, numpy and Pillow

cut HEIGHT WIDTH X Y CUT_WIDTH CUT_HEIGHT OUT_HEIGHT OUT_WIDTH -> the numbers of a part, cut out and resized
center HEIGHT WIDTH RESIZE CROP_HEIGHT CROP_WIDTH -> the numbers after Resize and CenterCrop
png HEIGHT WIDTH FILE -> its numbers
"""

import io
import random

import numpy as np
import PIL
import torchvision
from PIL import Image
from torchvision.transforms import InterpolationMode, functional


def mask(height: int, width: int, most: int = 251) -> Image.Image:
    y, x = np.mgrid[:height, :width]
    return Image.fromarray(((x * 37 + y * 91 + x * y) % most).astype(np.uint8))


def text(image: Image.Image) -> str:
    return np.asarray(image).astype(np.uint8).tobytes().hex()


def png(image: Image.Image, **options: int) -> str:
    file = io.BytesIO()
    image.save(file, "PNG", **options)
    return file.getvalue().hex()


def main() -> None:
    print(f"# torchvision {torchvision.__version__}, Pillow {PIL.__version__}: by pillow_masks.py")
    rng = random.Random(7)
    nearest = InterpolationMode.NEAREST
    for _ in range(40):
        height, width = rng.randint(1, 90), rng.randint(1, 90)
        cut_height, cut_width = rng.randint(1, height), rng.randint(1, width)
        y, x = rng.randint(0, height - cut_height), rng.randint(0, width - cut_width)
        size = [rng.randint(1, 40), rng.randint(1, 40)]
        out = functional.resized_crop(mask(height, width), y, x, cut_height, cut_width, size, nearest)
        print("cut", height, width, x, y, cut_width, cut_height, *size, "->", text(out))
    for _ in range(40):
        height, width, resize = rng.randint(1, 90), rng.randint(1, 90), rng.randint(1, 60)
        crop = [rng.randint(1, min(resize, 30)) for _ in range(2)]
        out = functional.center_crop(functional.resize(mask(height, width), resize, nearest), crop)
        print("center", height, width, resize, *crop, "->", text(out))
    for bits in (1, 2, 4, 8):
        numbers = mask(5, 11, 2**bits)
        palette = Image.new("P", numbers.size)
        palette.putdata(np.asarray(numbers).ravel().tolist())
        palette.putpalette([(i * 83 + c * 50) % 256 for i in range(2**bits) for c in range(3)])
        print("png", 5, 11, png(palette, bits=bits), "->", text(numbers))
        print("png", 5, 11, png(palette, bits=bits, transparency=1), "->", text(numbers))
    grey = mask(7, 6)
    print("png", 7, 6, png(grey), "->", text(grey))
    two = Image.fromarray(np.asarray(mask(3, 19, 2)).astype(bool))
    print("png", 3, 19, png(two), "->", text(two))


main()
