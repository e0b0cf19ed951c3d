"""Masks: the crop, the flip and the moves of their image."""

import io
import pickle

import numpy as np
import pytest

import penstock as ps
from penstock import augment as pa

CROPS = [
    ps.random_resized_crop((24, 30)),
    ps.center_crop((16, 20), resize=33),
    ps.letterbox((31, 17), fill=0),
    ps.random_crop((30, 25), padding=8, pad_if_needed=True),
    ps.scale_jitter((40, 20)),
]


def classes(height: int, width: int) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    return ((x * 37 + y * 91 + x * y) % 200).astype(np.uint8)


def places(height: int, width: int) -> np.ndarray:
    """Each pixel says where it lies, and that it does."""
    y, x = np.mgrid[:height, :width]
    return np.stack([x, y, np.ones_like(x)], axis=2).astype(np.uint8)


def expected(image: np.ndarray, of: np.ndarray, fill: int) -> np.ndarray:
    x, y, inside = np.moveaxis(image, -1, 0)
    return np.where(inside == 1, of.astype(int)[np.minimum(y, of.shape[0] - 1), np.minimum(x, of.shape[1] - 1)], fill)


@pytest.mark.parametrize("crop", CROPS, ids=repr)
def test_a_mask_shows_the_window_of_its_image(crop):
    image, mask = places(50, 64), classes(50, 64)
    plan = (
        ps.memory({"image": np.repeat(image[None], 40, 0), "mask": np.repeat(mask.astype(np.int64)[None], 40, 0)})
        .seed(7)
        .map(ps.crop_image(crop=crop, flip=0.5, filter="nearest", masks="mask", mask_fill=-100))
        .map(ps.map_function(lambda mask: mask.astype(np.int16), outputs={"mask": ("i16", crop.size)}, name="narrow"))
        .batch(40)
    )
    (step,) = plan.loader()
    for pixels, numbers in zip(np.asarray(step["image"]), np.asarray(step["mask"])):
        assert (numbers == expected(pixels, mask, -100)).all()


def test_a_mask_moves_with_its_image():
    image, mask = places(50, 64), classes(50, 64)
    moves = [pa.flip(), pa.vertical_flip(), pa.rotate((-30, 30)), pa.translate((-0.2, 0.2), 0.1)]
    plan = (
        ps.memory({"image": np.repeat(image[None], 40, 0), "mask": np.repeat(mask[None], 40, 0)})
        .map(ps.augment_image(moves, masks=["mask"], mask_fill=222))
        .batch(40)
    )
    (step,) = plan.loader()
    for pixels, numbers in zip(np.asarray(step["image"]), np.asarray(step["mask"])):
        assert (numbers == expected(pixels, mask, 222)).all()


def test_a_palettes_numbers_are_pillows_and_plans_with_masks_travel():
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

    def png(pixels: np.ndarray, **options: int) -> bytes:
        image = Image.fromarray(pixels)
        if pixels.ndim == 2:
            image = image.convert("P")
            image.putpalette([(i * 83 + c * 50) % 256 for i in range(256) for c in range(3)])
            image.putdata(pixels.ravel().tolist())
        file = io.BytesIO()
        image.save(file, "PNG", **options)
        return file.getvalue()

    items = [{"image": png(places(h, w)), "mask": png(classes(h, w))} for h, w in [(50, 64), (31, 90), (8, 8)]]
    decode = ps.decode_image(crop=ps.resize_to((20, 30)), masks="mask")
    plan = ps.Dataset(items).map(decode).batch(3)
    (step,) = plan.loader()
    for item, found in zip(items, np.asarray(step["mask"])):
        whole = Image.open(io.BytesIO(item["mask"]))
        assert (found == np.asarray(whole.resize((30, 20), Image.Resampling.NEAREST))).all()
    assert "masks=['mask']" in repr(plan)
    (again,) = pickle.loads(pickle.dumps(plan)).loader()
    assert (np.asarray(again["mask"]) == np.asarray(step["mask"])).all()
    (step,) = ps.Dataset(items).map(ps.decode_image(crop=ps.letterbox(30), masks="mask", mask_fill=-100, mask_dtype="i64")).batch(3).loader()
    assert step["mask"].dtype == "i64" and np.asarray(step["mask"]).min() == -100


def test_masks_of_truth_values_stay_so():
    numbers = np.arange(2 * 8 * 8, dtype=np.uint8).reshape(2, 8, 8) % 3
    images = np.zeros((2, 8, 8, 3), np.uint8)

    def cropped(mask, fill):
        data = ps.memory({"image": images, "mask": mask})
        return next(data.map(ps.crop_image(crop=ps.letterbox((4, 8)), masks="mask", mask_fill=fill)).batch(2).loader())["mask"].numpy()

    for fill in (0, 1):
        found = cropped(numbers == 1, fill)
        assert found.dtype == np.bool_ and (found == (cropped(numbers, fill) == 1)).all()
        assert (found[:, :, 0] == bool(fill)).all()
    with pytest.raises(ValueError, match="mask_fill is 255, which 'mask' of bool cannot hold"):
        cropped(numbers == 1, 255)
    with pytest.raises(ValueError, match="mask_dtype is an integer type that holds 255.*found bool"):
        ps.decode_image(crop=ps.resize_to(8), masks="mask", mask_dtype="bool")


def test_wrong_masks_are_refused():
    crop = ps.resize_to(8)
    with pytest.raises(TypeError, match=r"decode_image\(\): 'masks' must be a string or a list of strings, found 3"):
        ps.decode_image(crop=crop, masks=3)
    with pytest.raises(ValueError, match="the mask 'image' has the name of another field"):
        ps.decode_image(crop=crop, masks="image")
    with pytest.raises(ValueError, match="masks cannot be mixed, and aug_mix"):
        ps.augment_image([pa.aug_mix()], masks="mask")
    data = ps.memory({"image": np.zeros((2, 8, 8, 3), np.uint8), "mask": np.zeros((2, 8, 8), np.float32)})
    with pytest.raises(ValueError, match=r"a mask is the bytes of a PNG, u8 \[\?\], or integers"):
        data.map(ps.crop_image(crop=crop, masks="mask"))


def test_two_folders_are_photographs_and_their_masks(tmp_path):
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for i, (height, width) in enumerate([(50, 64), (31, 90), (40, 40), (64, 30)]):
        for folder, pixels in {"photos": places(height, width), "masks": classes(height, width)}.items():
            (tmp_path / folder).mkdir(exist_ok=True)
            Image.fromarray(pixels).save(tmp_path / folder / f"{i}.png")
    masks = ps.image_folder(tmp_path / "masks").rename({"image": "mask", "label": "mask_label"})
    plan = (
        ps.zip([ps.image_folder(tmp_path / "photos"), masks])
        .seed(3)
        .shuffle()
        .repeat(20)
        .map(ps.decode_image(crop=ps.random_resized_crop(24), flip=0.5, filter="nearest", masks="mask"))
        .map(ps.augment_image([pa.rotate((-20, 20))], masks="mask"))
        .batch(80)
    )
    (step,) = ps.Dataset.from_json(plan.to_json()).loader()
    images, found = np.asarray(step["image"]), np.asarray(step["mask"])
    everywhere = classes(64, 90)  # the classes of a place are the same in all of them
    for pixels, numbers in zip(images, found):
        assert (numbers == expected(pixels, everywhere, 255)).all()
    assert 0 < (images[..., 2] == 0).mean() < 0.3
