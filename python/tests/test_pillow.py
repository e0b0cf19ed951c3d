"""What is to have the bytes of Pillow: filters, grey images, damaged JPEGs."""

import io
import random

import numpy as np
import pytest

import penstock as ps

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
FILTERS = {"pillow_bilinear": Image.Resampling.BILINEAR, "pillow_bicubic": Image.Resampling.BICUBIC}


@pytest.mark.parametrize("filter", FILTERS)
def test_crops_have_pillows_bytes(filter):
    generator = np.random.default_rng(0)
    for _ in range(60):
        height, width, rows, columns = generator.integers(1, 70, 4).tolist()
        pixels = generator.integers(0, 256, (height, width, 3), dtype=np.uint8)
        crop = ps.random_resized_crop((rows, columns), scale=(0.3, 1))
        step = next(ps.memory({"image": pixels[None]}).map(ps.crop_image(crop=crop, filter=filter, geometry="box")).batch(1).loader())
        x, y, w, h = np.asarray(step["box"])[0, :4].tolist()
        part = Image.fromarray(pixels).crop((x, y, x + w, y + h))
        # Each direction by itself, horizontally first.
        expected = part.resize((columns, h), FILTERS[filter]).resize((columns, rows), FILTERS[filter])
        assert (np.asarray(step["image"])[0] == np.asarray(expected)).all()


def test_a_jpeg_decodes_and_resizes_to_pillows_bytes(tmp_path):
    y, x = np.mgrid[:150, :200]
    pixels = np.stack([x + y, 255 - x, (x * y) % 256], axis=2).astype(np.uint8)
    file = tmp_path / "image.jpg"
    Image.fromarray(pixels).save(file, quality=90)
    data = ps.image_folder(tmp_path, labels=None)
    step = next(data.map(ps.decode_image(crop=ps.resize_to((60, 80)), filter="pillow_bilinear")).batch(1).loader())
    whole = Image.open(file).convert("RGB")
    expected = whole.resize((80, 150), Image.Resampling.BILINEAR).resize((80, 60), Image.Resampling.BILINEAR)
    assert (np.asarray(step["image"])[0] == np.asarray(expected)).all()


def decoded(file, size, **options):
    """All of an image, or None where it is a fault."""
    crop = ps.resize_to(size)
    steps = ps.Dataset([{"image": file}]).map(ps.decode_image(crop=crop, **options)).batch(1).loader(on_fault="mask")
    step = next(iter(steps))
    return np.asarray(step["image"])[0] if np.asarray(step["valid"])[0] else None


def test_grey_is_pillows_convert():
    pixels = np.random.default_rng(3).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    found = decoded(file.getvalue(), (40, 50), channels=1)
    assert (found[:, :, 0] == np.asarray(Image.fromarray(pixels).convert("L"))).all()


@pytest.mark.filterwarnings("ignore")
def test_what_pillow_takes_of_damaged_jpegs_is_tolerated_with_its_pixels():
    rng = random.Random(5)
    y, x = np.mgrid[:60, :90]
    pixels = np.stack([x + y, 255 - x, (x * y) % 256], axis=2).astype(np.uint8)
    taken = equal = strict = 0
    for _ in range(200):
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "JPEG", quality=85, restart_marker_blocks=rng.choice([0, 8]))
        damaged = bytearray(file.getvalue())
        begin = damaged.index(b"\xff\xda")  # of the scan
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(begin, len(damaged))
            damaged[at : at + rng.randint(0, 2)] = bytes(rng.randrange(256) for _ in range(rng.randint(0, 2)))
        try:
            expected = np.asarray(Image.open(io.BytesIO(damaged)).convert("RGB"))
        except (OSError, SyntaxError, ValueError):
            continue
        size = expected.shape[:2]
        strict += decoded(bytes(damaged), size) is not None
        found = decoded(bytes(damaged), size, tolerant=True)
        assert found is not None
        taken += 1
        equal += np.array_equal(found, expected)
    assert taken > strict + 20 and equal >= 0.97 * taken
