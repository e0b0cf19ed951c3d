"""Images of 16 bits a level: no bit is lost on the way to the batch."""

import io

import numpy as np
import pytest

import penstock as ps

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")


def levels(height: int, width: int) -> np.ndarray:
    return np.random.default_rng(7).integers(0, 65536, (height, width), dtype=np.uint16)


def png(found: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.frombytes("I;16", found.shape[::-1], found.tobytes()).save(file, "PNG")
    return file.getvalue()


def test_a_png_of_16_bits_keeps_them_and_resizes_as_pillow():
    given = levels(40, 31)
    data = ps.Dataset([{"image": png(given), "mask": np.arange(40 * 31).reshape(40, 31)}])
    whole = ps.decode_image(crop=ps.resize_to((40, 31)), channels=1, dtype="u16")
    (step,) = data.map(whole).batch(1).loader()
    assert step["image"].dtype == "u16" and (np.asarray(step["image"])[0, :, :, 0] == given).all()
    plan = data.map(ps.decode_image(crop=ps.resize_to((13, 14)), channels=1, dtype="u16", filter="pillow_bilinear", masks="mask"))
    (step,) = plan.batch(1).loader()
    picture = Image.frombytes("I;16", (31, 40), given.tobytes())
    # Each direction by itself, horizontally first.
    expected = picture.resize((14, 40), Image.Resampling.BILINEAR).resize((14, 13), Image.Resampling.BILINEAR)
    assert (np.asarray(step["image"])[0, :, :, 0] == np.asarray(expected)).all()
    assert np.asarray(step["mask"]).shape == (1, 13, 14)
    assert "dtype='u16'" in repr(plan)
    (views,) = data.map(ps.decode_views({"a": ps.ImageView(ps.five_crops(8, resize=9))}, channels=1, dtype="u16")).batch(1).loader()
    assert np.asarray(views["a"]).shape == (1, 5, 8, 8, 1)


def test_what_takes_8_bits_says_what_to_do():
    data = ps.memory({"image": levels(8, 8).reshape(1, 8, 8, 1)})
    with pytest.raises(ValueError, match="images of 16 bits are cropped and flipped, and no more"):
        data.map(ps.augment_image([]))
    with pytest.raises(ValueError, match="images of 16 bits become numbers for the network by a function of your own"):
        data.batch(1).transform_on_device()
    with pytest.raises(ValueError, match="dtype is u8, or u16 for PNGs of 16 bits a level; found f32"):
        ps.decode_image(crop=ps.resize_to(8), dtype="f32")
    with pytest.raises(ps.DataError, match="dtype u16 is for PNGs of 16 bits a level, found one of fewer"):
        file = io.BytesIO()
        Image.new("L", (8, 8)).save(file, "PNG")
        next(ps.Dataset([{"image": file.getvalue()}]).map(ps.decode_image(crop=ps.resize_to(8), dtype="u16")).batch(1).loader())
