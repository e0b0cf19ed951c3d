"""Operations on pixels: that they arrive, and what they say when they do not fit."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
from conftest import evaluate

import penstock as ps
from penstock import augment as pa


def images(count: int = 12, height: int = 20, width: int = 31, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(7).integers(0, 256, (count, height, width, channels), dtype=np.uint8)


def augmented(given: np.ndarray, *operations: pa.Augmentation, threads: int = 2, seed: int = 3) -> np.ndarray:
    plan = ps.memory({"image": given}).seed(seed).map(ps.augment_image(list(operations))).batch(len(given))
    (step,) = plan.loader(threads=threads)
    return np.array(step["image"])


EVERY = [
    pa.brightness((0.5, 1.5)),
    pa.contrast(0.7),
    pa.saturation((0, 2)),
    pa.hue((-0.1, 0.1)),
    pa.sharpness((0, 2)),
    pa.color_jitter(0.4, 0.4, (0.5, 1.5), 0.1),
    pa.hsv_jitter(0.1),
    pa.grayscale(),
    pa.solarize(100),
    pa.posterize(3),
    pa.equalize(),
    pa.autocontrast(),
    pa.invert(),
    pa.gaussian_blur(5, 1.5),
    pa.flip(),
    pa.vertical_flip(0.3),
    pa.rotate((-30, 30), interpolation="bilinear", fill=7),
    pa.shear((-10, 10), (0, 5), fill=(1, 2, 3)),
    pa.translate((-0.1, 0.1), 0.2),
    pa.affine(degrees=(-5, 5), scale=(0.8, 1.2), interpolation="bicubic"),
    pa.perspective(0.4),
    pa.random_apply(0.5, [pa.invert(), pa.flip()]),
    pa.random_choice([pa.invert(), pa.equalize()], [1, 2]),
    pa.trivial_augment_wide(),
    pa.rand_augment(3, 5, 10),
    pa.auto_augment(fill=128),
    pa.aug_mix(depth=2),
    pa.timm_rand_augment("rand-m9-mstd0.5-inc1", interpolation="bicubic"),
    pa.three_augment(),
]


@pytest.mark.parametrize("operation", EVERY, ids=repr)
def test_every_operation_is_itself_after_json_and_gives_the_same_with_any_threads(operation):
    assert pa.Augmentation.from_json(operation.to_json()) == operation
    assert hash(pa.Augmentation.from_json(operation.to_json())) == hash(operation)
    one = augmented(images(), operation, threads=1)
    assert np.array_equal(one, augmented(images(), operation, threads=8))
    assert one.shape == images().shape


def test_every_maker_is_tried_here():
    assert {json.loads(one.to_json()).popitem()[0] for one in EVERY} >= set(pa.__all__) - {"Augmentation", "three_augment"}


def test_levels_are_what_the_operation_says():
    given = images()
    assert np.array_equal(augmented(given, pa.invert()), 255 - given)
    assert np.array_equal(augmented(given, pa.flip(1.0)), given[:, :, ::-1])
    assert np.array_equal(augmented(given, pa.posterize(1)), given & 128)
    assert np.array_equal(augmented(given, pa.rotate(180)), given[:, ::-1, ::-1])
    assert np.array_equal(augmented(given, pa.invert(), pa.invert()), given)
    assert np.array_equal(augmented(given), given)


def test_numbers_are_torchvisions_in_color_jitter():
    assert pa.color_jitter(0.4, hue=0.1) == pa.color_jitter((0.6, 1.4), (1, 1), (1, 1), (-0.1, 0.1))
    assert pa.color_jitter(3) == pa.color_jitter((0, 4))
    assert pa.brightness(0.4) == pa.brightness((0.4, 0.4)) != pa.brightness((0.4, 0.5))


def test_hsv_jitter_changes_colours_as_its_arguments_say():
    given = images()
    assert pa.hsv_jitter() == pa.hsv_jitter(hue=0.015, saturation=0.7, value=0.4)
    assert np.array_equal(augmented(given, pa.hsv_jitter(0, 0, 0)), given)
    most, least = given.max(-1), given.min(-1)
    turned = augmented(given, pa.hsv_jitter(0.5, 0, 0))
    assert np.array_equal(turned.max(-1), most) and np.array_equal(turned.min(-1), least) and not np.array_equal(turned, given)
    paler = augmented(given, pa.hsv_jitter(0, 1, 0))
    assert np.array_equal(paler.max(-1), most) and not np.array_equal(paler.min(-1), least)
    grey = np.repeat(given[..., :1], 3, axis=-1)
    assert np.array_equal(augmented(grey, pa.hsv_jitter(1, 1, 0)), grey)
    one = np.ascontiguousarray(given[..., :1])
    assert np.array_equal(augmented(one, pa.hsv_jitter(1, 1, 1)), one)
    with pytest.raises(ValueError, match="hsv_jitter: value is from 0 to 1, found 1.5"):
        pa.hsv_jitter(value=1.5)


def test_each_view_draws_its_own():
    given = np.repeat(images(channels=3)[:, None], 4, axis=1)
    made = augmented(given, pa.rand_augment(), pa.color_jitter(0.9, 0.9))
    assert made.shape == given.shape
    assert all(not np.array_equal(made[:, 0], made[:, view]) for view in (1, 2, 3))


def test_a_plan_with_it_is_json_and_shows_itself_as_python():
    plan = ps.synthetic_images(8).map(ps.decode_image(crop=ps.resize_to(16)))
    operations = [pa.flip(), pa.random_apply(0.8, [pa.color_jitter(0.4, hue=0.1)]), pa.rotate((-30, 30), fill=9)]
    plan = plan.map(ps.augment_image(operations)).batch(4)
    assert ps.Dataset.from_json(plan.to_json()).describe() == plan.describe()
    assert ".map(augment_image(operations=[flip(), random_apply(probability=0.8, operations=[color_jitter(" in repr(plan)
    assert repr(evaluate(repr(plan))) == repr(plan)


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match="brightness: factor is a range within 0 to 8, found"):
        pa.brightness((2, 1))
    with pytest.raises(ValueError, match="interpolation must be one of 'nearest', 'bilinear', 'bicubic', found 'cubic'"):
        pa.rotate(9, interpolation="cubic")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there is no section 'x9'"):
        pa.timm_rand_augment("rand-x9")
    with pytest.raises(ps.Error, match="there is no operation 'blur'; expected one of"):
        pa.Augmentation.from_json('{"blur": {}}')
    with pytest.raises(ValueError, match="u8 \\[height,width,channels\\].*found image u8 \\[20,31,2\\]"):
        ps.memory({"image": images(channels=2)}).map(ps.augment_image([pa.invert()])).batch(2).loader()


@pytest.mark.parametrize(
    "operation",
    [pa.rotate((-30, 30), fill=7), pa.hsv_jitter(), pa.hsv_jitter(0.1, value=0), pa.color_jitter((0.6, 0.6), hue=(0.1, 0.1)), pa.random_apply(0.5, [pa.flip(1), pa.aug_mix()]), pa.timm_rand_augment(), pa.color_jitter(0.4, 0.4, 0.4, 0.1)],
)
def test_an_operation_prints_as_its_call_and_pickles(operation):
    assert evaluate(repr(operation)) == operation
    assert pickle.loads(pickle.dumps(operation)) == operation and copy.deepcopy(operation) == operation
