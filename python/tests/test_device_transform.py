"""Targets, mixing and views in transform_on_device; repeat_each."""

import numpy as np
import pytest
from conftest import evaluate

import penstock as ps


def images(count=24, size=8):
    pixels = (np.arange(count, dtype=np.uint8) + 1)[:, None, None, None] * np.ones((size, size, 3), np.uint8)
    return ps.memory({"image": pixels, "label": np.arange(count, dtype=np.int64) % 4})


def first(plan):
    return next(iter(plan.loader()))


def test_targets_are_smoothed_labels():
    step = first(images().batch(8).transform_on_device(classes=4, label_smoothing=0.1))
    expected = np.eye(4, dtype=np.float32)[np.asarray(step["label"])] * 0.9 + 0.1 / 4
    np.testing.assert_allclose(np.asarray(step["target"]), expected, atol=1e-6)
    assert str(step["target"].dtype) == "f32" and step["target"].shape == (8, 4)


def test_targets_are_mixed_as_the_images():
    step = first(images().seed(3).batch(24).transform_on_device(mixup=1.0, classes=4))
    one_hot = np.eye(4, dtype=np.float32)[np.asarray(step["label"])]
    weight = np.asarray(step["mix_weight"])[:, None]
    expected = weight * one_hot + (1 - weight) * one_hot[np.asarray(step["mix_row"])]
    np.testing.assert_allclose(np.asarray(step["target"]), expected, atol=1e-6)
    assert (np.asarray(step["target"]) > 0).sum() > 24


def test_how_often_rows_are_mixed_and_by_which():
    def weights(**options):
        plan = images(200).seed(1).batch(200).transform_on_device(**options)
        return np.asarray(first(plan)["mix_weight"])

    assert 70 < (weights(mixup=1.0, mix_probability=0.5) == 1).sum() < 130
    assert (weights(mixup=1.0, mix_probability=0) == 1).all()
    # A box of cutmix has whole pixels.
    pixels = weights(mixup=1.0, cutmix=1.0, cutmix_fraction=1.0) * 64
    np.testing.assert_allclose(pixels, pixels.round(), atol=1e-4)


@pytest.mark.parametrize(
    "options, why",
    [
        ({"label_smoothing": 0.1}, "needs? the number of classes"),
        ({"classes": 4, "label": "class"}, "no field 'class'"),
        ({"mixup": 1.0, "mix_probability": 1.5}, "mix_probability is a probability"),
        ({"classes": -1}, "classes are the number of all labels"),
    ],
)
def test_options_that_cannot_be(options, why):
    with pytest.raises(ValueError, match=why):
        images().batch(4).transform_on_device(**options).loader()


def test_labels_beyond_the_classes_are_errors():
    with pytest.raises(ps.Error, match="targets of 3 classes: sample 3 of source 0 has the label 3"):
        first(images().batch(4).transform_on_device(classes=3))


def test_views_are_finished_each_by_itself():
    views = {"all": ps.ImageView(ps.resize_to(16)), "parts": ps.ImageView(ps.random_resized_crop(8), count=3)}
    decoded = ps.synthetic_images(32).seed(2).map(ps.decode_views(views)).batch(32)
    finished = decoded.transform_on_device(field="all").transform_on_device(field="parts", flip=0.5, layout="nhwc")
    plain, step = first(decoded), first(finished)
    assert step["all"].shape == (32, 3, 16, 16) and step["parts"].shape == (32, 3, 8, 8, 3)
    before, after = np.asarray(plain["parts"]) / np.float32(255), np.asarray(step["parts"])
    flipped = np.array([[not np.allclose(a, b, atol=1e-6) for a, b in zip(*pair)] for pair in zip(after, before)])
    for view in range(3):
        assert 4 < flipped[:, view].sum() < 28
    np.testing.assert_allclose(after[flipped], before[flipped][:, :, ::-1], atol=1e-6)
    with pytest.raises(ValueError, match="mixup, cutmix and targets are of one image a sample"):
        decoded.transform_on_device(field="parts", mixup=0.2)


def test_fields_and_sources_draw_by_themselves():
    pixels = np.random.default_rng(1).integers(0, 256, (40, 16, 16, 3), dtype=np.uint8)
    both = ps.memory({"a": pixels, "b": pixels}).seed(3).batch(40)
    for field in "ab":
        both = both.transform_on_device(field=field, flip=0.5)
    step = first(both)
    same = (np.asarray(step["a"]) == np.asarray(step["b"])).all(axis=(1, 2, 3)).sum()
    assert 5 < same < 35
    mixed = ps.mix([ps.memory({"a": pixels}), ps.memory({"a": pixels})], weights=[1, 1]).seed(3).batch(80, uneven=True).transform_on_device(field="a", flip=0.5)
    step = first(mixed)
    images = {}
    for sample, image in zip(step.samples, np.asarray(step["a"])):
        images.setdefault(sample.number, []).append(image)
    pairs = [pair for pair in images.values() if len(pair) == 2]
    equal = sum((one == other).all() for one, other in pairs)
    assert len(pairs) > 20 and 0.1 * len(pairs) < equal < 0.9 * len(pairs)


def test_repeat_each_is_timms_repeated_augmentation():
    crops = ps.synthetic_images(8).map(ps.decode_image(crop=ps.random_resized_crop(8), geometry="crop"))
    plan = crops.shuffle(seed=1).repeat_each(3)
    assert plan.size == 24 and evaluate(repr(plan)).to_json() == plan.to_json()
    step = first(plan.batch(24))
    numbers = [sample.number for sample in step.samples]
    assert numbers[0::3] == numbers[1::3] == numbers[2::3] and sorted(numbers[::3]) == list(range(8))
    boxes = np.asarray(step["crop"])
    assert len({tuple(box) for box in boxes.tolist()}) > 16
    assert plan.take(8).size == 8
    with pytest.raises(ValueError, match="repeat_each"):
        crops.repeat_each(0)
