"""How many images of each kind one thread decodes and crops, by Penstock and by Pillow: a table in Markdown.

Usage: python bench/peers/image_kinds.py PHOTOGRAPHS [COUNT]

PHOTOGRAPHS is a folder of JPEGs, of which COUNT (60) are written as each kind, by Pillow and where they are installed pillow-heif and
pillow-jxl-plugin. Both then make random_resized_crop(224) of them, in turn, five times: the median, and the fastest and the slowest.
Penstock has a loader with one thread; Pillow opens, converts to RGB, crops and resizes as torchvision does."""

from __future__ import annotations

import io
import pathlib
import random
import statistics
import sys
import time

import penstock as ps
from PIL import Image

KINDS: dict[str, tuple[str, dict[str, object]]] = {
    "JPEG, quality 90": ("JPEG", {"quality": 90}),
    "PNG": ("PNG", {}),
    "WebP, quality 80": ("WEBP", {"quality": 80}),
    "WebP, lossless": ("WEBP", {"lossless": True}),
    "BMP": ("BMP", {}),
    "GIF": ("GIF", {}),
    "TIFF, LZW": ("TIFF", {"compression": "tiff_lzw"}),
    "AVIF, quality 75": ("AVIF", {"quality": 75, "speed": 9}),
    "HEIC, quality 75": ("HEIF", {"quality": 75}),
    "JPEG XL, quality 85": ("JXL", {"quality": 85}),
}
ROUNDS = 5


def optional_encoders() -> None:
    try:
        import pillow_heif

        pillow_heif.register_heif_opener()
    except ImportError:
        pass
    try:
        import pillow_jxl  # noqa: F401  registers itself
    except ImportError:
        pass


def encode(photographs: list[Image.Image], kind: str, options: dict[str, object]) -> list[bytes]:
    contents = []
    for photograph in photographs:
        out = io.BytesIO()
        (photograph.quantize(256) if kind == "GIF" else photograph).save(out, format=kind, **options)
        contents.append(out.getvalue())
    return contents


def by_penstock(contents: list[bytes]) -> float:
    plan = ps.Dataset([{"image": content} for content in contents]).seed(1)
    plan = plan.map(ps.decode_image(crop=ps.random_resized_crop(224))).batch(len(contents), remainder="drop")
    loader = plan.loader(threads=1)
    begin = time.perf_counter()
    assert sum(len(step["image"].numpy()) for step in loader) == len(contents)
    return len(contents) / (time.perf_counter() - begin)


def by_pillow(contents: list[bytes]) -> float:
    chance = random.Random(1)
    begin = time.perf_counter()
    for content in contents:
        image = Image.open(io.BytesIO(content)).convert("RGB")
        side = round((image.width * image.height * chance.uniform(0.08, 1)) ** 0.5)
        width, height = min(side, image.width), min(side, image.height)
        x, y = chance.randint(0, image.width - width), chance.randint(0, image.height - height)
        image.crop((x, y, x + width, y + height)).resize((224, 224), Image.Resampling.BILINEAR)
    return len(contents) / (time.perf_counter() - begin)


def shown(rates: list[float]) -> str:
    return f"{statistics.median(rates):.0f} ({min(rates):.0f}..{max(rates):.0f})"


def main() -> None:
    optional_encoders()
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    files = sorted(path for path in pathlib.Path(sys.argv[1]).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))[:count]
    photographs = [Image.open(path).convert("RGB") for path in files]
    print(f"penstock {ps.__version__}, {ps.image_libraries()}; {len(files)} photographs\n")
    print("| kind | KB an image | Penstock, images/s | Pillow, images/s | |\n| --- | ---: | ---: | ---: | ---: |")
    for name, (kind, options) in KINDS.items():
        try:
            contents = encode(photographs, kind, options)
        except (KeyError, OSError) as error:
            print(f"| {name} | | not written: {error} | | |")
            continue
        ours, others = [], []
        for _ in range(ROUNDS):
            ours.append(by_penstock(contents))
            others.append(by_pillow(contents))
        size = sum(map(len, contents)) / len(contents) / 1000
        ratio = statistics.median(ours) / statistics.median(others)
        print(f"| {name} | {size:,.0f} | {shown(ours)} | {shown(others)} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
