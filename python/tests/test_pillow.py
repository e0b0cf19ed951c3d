"""filter="pillow_…": the bytes of Pillow."""

import numpy as np
import pytest

import penstock as ps

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
FILTERS = {"pillow_bilinear": Image.Resampling.BILINEAR, "pillow_bicubic": Image.Resampling.BICUBIC}


@pytest.mark.parametrize("filter", FILTERS)
def test_crops_have_pillows_bytes(filter):
    random = np.random.default_rng(0)
    for _ in range(60):
        height, width, rows, columns = random.integers(1, 70, 4).tolist()
        pixels = random.integers(0, 256, (height, width, 3), dtype=np.uint8)
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
    step = next(data.map(ps.decode_image(crop=ps.resize_to(60, 80), filter="pillow_bilinear")).batch(1).loader())
    whole = Image.open(file).convert("RGB")
    expected = whole.resize((80, 150), Image.Resampling.BILINEAR).resize((80, 60), Image.Resampling.BILINEAR)
    assert (np.asarray(step["image"])[0] == np.asarray(expected)).all()
