"""penstock.recipes: plans that print as what makes them, and give what their originals give."""

import re

import numpy as np
import pytest
from conftest import evaluate

import penstock as ps

RECIPES = {
    "imagenet_train": lambda data: ps.recipes.imagenet_train(data, 8, size=32, augment=[ps.augment.rand_augment()], erase=0.1, classes=10),
    "imagenet_eval": lambda data: ps.recipes.imagenet_eval(data, 8, size=32, resize=40, dtype="f16", layout="nhwc"),
    "resnet_v2_train": lambda data: ps.recipes.resnet_v2_train(data, 8, classes=10, size=32),
    "deit_train": lambda data: ps.recipes.deit_train(data, 8, classes=10, size=32),
    "deit3_train": lambda data: ps.recipes.deit3_train(data, 8, classes=10, size=32),
    "timm_train": lambda data: ps.recipes.timm_train(data, 8, {"img_size": 32, "train_interpolation": "bilinear", "vflip": 0.5}),
    "timm_eval": lambda data: ps.recipes.timm_eval(data, 8, {"img_size": 32}),
    "simclr": lambda data: ps.recipes.simclr(data, 8, size=32),
    "dino": lambda data: ps.recipes.dino(data, 8, size=32, local_size=16, local_views=4),
}
SHAPES = {
    "imagenet_eval": {"image": (8, 32, 32, 3)},
    "simclr": {"image": (8, 2, 3, 32, 32)},
    "dino": {"global_1": (8, 3, 32, 32), "global_2": (8, 3, 32, 32), "local": (8, 4, 3, 16, 16)},
}


@pytest.fixture(scope="module")
def data():
    return ps.synthetic_images(40).seed(1)


def first(plan, **options):
    return next(iter(plan.loader(**options)))


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_prints_as_its_calls_and_delivers(data, name):
    plan = RECIPES[name](data)
    assert evaluate(repr(plan)).to_json() == plan.to_json()
    assert plan.size == 5
    step = first(plan)
    for field, shape in SHAPES.get(name, {"image": (8, 3, 32, 32)}).items():
        assert step[field].shape == shape
        values = np.asarray(step[field]).astype(np.float64)
        assert np.isfinite(values).all() and abs(values.mean()) < 3 and values.std() > 0.1
    one = first(plan, threads=1, digest=True, digest_transformed=True)
    four = first(plan, threads=4, digest=True, digest_transformed=True)
    assert one.digest == four.digest and one.transformed_digest == four.transformed_digest


def test_training_shuffles_and_validation_does_not(data):
    train, test = ps.recipes.imagenet_train(data, 8, size=32), ps.recipes.imagenet_eval(data, 8, size=32)
    numbers = [[sample.number for step in plan.loader() for sample in step.samples] for plan in (train, test)]
    assert sorted(numbers[0]) == numbers[1] == list(range(40)) != numbers[0]
    assert ps.recipes.imagenet_train(data.take(39), 8).size == 4 and ps.recipes.imagenet_eval(data.take(39), 8).size == 5


def test_an_epoch_of_repeated_augmentation_is_as_long(data):
    plan = ps.recipes.imagenet_train(data, 8, size=32, repeats=4)
    numbers = [sample.number for step in plan.loader() for sample in step.samples]
    assert len(numbers) == 40 and len(set(numbers)) == 10 and numbers[0] == numbers[3] != numbers[4]
    with pytest.raises(ValueError, match="repeats: the data are endless"):
        ps.recipes.imagenet_train(data.repeat(), 8, repeats=2)


def test_evaluation_is_the_crop_and_the_normalisation(data):
    step = first(ps.recipes.imagenet_eval(data, 8, size=32, resize=40))
    crop = first(data.map(ps.decode_image(crop=ps.center_crop(32, resize=40))).batch(8))
    levels = np.asarray(crop["image"]).astype(np.float32).transpose(0, 3, 1, 2) / 255
    mean, std = (np.array(each, np.float32)[None, :, None, None] for each in (ps.recipes.IMAGENET_MEAN, ps.recipes.IMAGENET_STD))
    np.testing.assert_allclose(np.asarray(step["image"]), (levels - mean) / std, atol=2e-5)


def test_cifar_takes_decoded_images():
    pixels = np.random.default_rng(0).integers(0, 256, (40, 32, 32, 3), dtype=np.uint8)
    data = ps.memory({"image": pixels, "label": np.arange(40) % 10})
    step = first(ps.recipes.cifar_train(data, 8, classes=10, label_smoothing=0.1))
    assert step["image"].shape == (8, 3, 32, 32) and step["target"].shape == (8, 10)


def test_timms_options():
    data = ps.synthetic_images(40)
    config = {
        "aa": "rand-m9-mstd0.5-inc1", "train_interpolation": "bicubic", "reprob": 0.25, "remode": "const", "mixup": 0.8, "cutmix": 1.0,
        "mixup_prob": 0.7, "mixup_switch_prob": 0.4, "smoothing": 0.1, "num_classes": 10, "aug_repeats": 3, "lr": 0.001, "scale": None,
        "input_size": [3, 64, 64], "mean": [0.4, 0.4, 0.4], "hflip": 0.25,
    }  # fmt: skip
    text = repr(ps.recipes.timm_train(data, 8, config))
    for part in (
        "repeat_each(3)", "random_resized_crop(size=64)", "flip=0.25, filter='bicubic'", "timm_rand_augment(config='rand-m9-mstd0.5-inc1', interpolation='bicubic', fill=102)",
        "mixup=0.8, cutmix=1.0, mix_probability=0.7, cutmix_fraction=0.4, classes=10, label_smoothing=0.1", "RandomErasing(probability=0.25)",
    ):  # fmt: skip
        assert part in text, text
    def text_of(**more):
        return repr(ps.recipes.timm_train(data, 8, {"train_interpolation": "bicubic", **more}))

    jitter = "color_jitter(brightness=(0.6, 1.4), contrast=(0.6, 1.4), saturation=(0.6, 1.4))"
    assert jitter in text_of() and "classes" not in text_of(num_classes=10, smoothing=0.1)
    assert "augment_image" not in text_of(color_jitter=None)
    assert jitter in text_of(aa="3a") and "gaussian_blur(kernel_size=13)" in text_of(aa="3a") and "jitter" not in text_of(aa="3a", color_jitter=0)
    assert f"random_apply(probability=0.8, operations=[{jitter}])" in text_of(color_jitter_prob=0.8)
    assert f"random_apply(probability=0.5, operations=[{jitter}])" in text_of(aa="3a", color_jitter_prob=0.5, recount=3)
    assert "random_apply(probability=0.2, operations=[grayscale()])" in text_of(grayscale_prob=0.2, gaussian_blur_prob=0.5)
    assert "repeat_each(3)" in text_of(aug_repeats=3.0) and "random_resized_crop(size=160)" in text_of(img_size=[160, 160])
    assert "mean=[0.5, 0.5, 0.5]" in text_of(mean=[0.5], aa="rand-m9")
    assert "filter='bicubic'" in repr(ps.recipes.timm_eval(data, 8, {}))
    assert "center_crop(size=64, resize=67)" in repr(ps.recipes.timm_eval(data, 8, {**config, "crop_pct": 0.95, "interpolation": "bicubic"}))


@pytest.mark.parametrize("recipe", [ps.recipes.imagenet_train, ps.recipes.cifar_train])
def test_a_wrong_option_is_the_recipes(data, recipe):
    name = recipe.__name__
    for word, answer in [("sise", "did you mean 'size'?"), ("num_workers", "it is threads, of loader()"), ("zzz", "it has size, ")]:
        with pytest.raises(TypeError, match=re.escape(f"{name}() has no option '{word}': {answer}")):
            recipe(data, 4, **{word: 1})


def test_dino_without_local_views(data):
    plan = ps.recipes.dino(data, 8, size=32, local_views=0)
    assert [field.name for field in plan.fields] == ["global_1", "global_2", "label"]
    with pytest.raises(ValueError, match="count is 0, or up to 256 crops, found -1"):
        ps.recipes.dino(data, 8, local_views=-1)
    assert "gaussian_blur(kernel_size=63)" in repr(ps.recipes.simclr(data, 8, size=800))


@pytest.mark.parametrize(
    "config, why",
    [
        ({}, "train_interpolation 'random'"),
        ({"train_interpolation": "bicubic", "reprob": 0.25}, "remode 'pixel'"),
        ({"train_interpolation": "bicubic", "aa": "augmix-m5"}, "aa 'augmix-m5'"),
        ({"train_interpolation": "bicubic", "aa": "3a-mstd0.5"}, "aa '3a-mstd0.5'"),
        ({"train_interpolation": "bicubic", "mixup": 0.8}, "give num_classes"),
        ({"train_interpolation": "bicubic", "aug_repeats": 2.5}, "aug_repeats: expected an integer"),
        ({"train_interpolation": "bicubic", "no_aug": True}, "no_aug = True"),
        ({"train_interpolation": "bicubic", "mean": [0.5] * 4}, "timm's mean: expected"),
        ({"train_interpolation": "bicubic", "in_chans": 1}, "in_chans = 1"),
        ({"train_interpolation": "bicubic", "color_jitter": [0.4]}, "color_jitter: expected"),
        ({"train_interpolation": "bicubic", "cutmix_minmax": [0.2, 0.8]}, "cutmix_minmax"),
        ({"train_interpolation": "bicubic", "mixup_mode": "pair"}, "mixup_mode = 'pair'"),
        ({"train_interpolation": "bicubic", "mixup_off_epoch": 10}, "mixup_off_epoch = 10"),
        ({"train_interpolation": "bicubic", "recount": 2, "reprob": 0.1, "remode": "const"}, "recount = 2"),
        ({"train_interpolation": "bicubic", "aug_splits": 3}, "aug_splits = 3"),
        ({"train_interpolation": "bicubic", "train_crop_mode": "rkrc"}, "train_crop_mode = 'rkrc'"),
        ({"train_interpolation": "bicubic", "input_size": [3, 64, 32]}, "expected a square"),
    ],
)
def test_timms_options_without_an_equal_are_refused_by_name(config, why):
    with pytest.raises(ValueError, match=why):
        ps.recipes.timm_train(ps.synthetic_images(40), 8, config)


@pytest.mark.parametrize("name", ["imagenet_train", "deit3_train", "timm_train", "simclr", "dino"])
def test_what_is_augmented_on_the_device_prints_as_its_calls_and_delivers(data, name):
    size = {"size": 32, "local_size": 16} if name == "dino" else {"size": 32}
    more = {"augment": [ps.augment.aug_mix()]} if name == "imagenet_train" else {"classes": 10} if name == "deit3_train" else {}
    recipe = getattr(ps.recipes, name)
    if name == "timm_train":
        plan = recipe(data, 8, {"img_size": 32, "train_interpolation": "bilinear"}, augment_on_device=True)
    else:
        plan = recipe(data, 8, augment_on_device=True, **size, **more)
    assert "augment_image" not in repr(plan) and "transform_on_device(" in repr(plan) and "augment=[" in repr(plan)
    assert evaluate(repr(plan)).to_json() == plan.to_json()
    one = first(plan, threads=1, digest_transformed=True)
    four = first(plan, threads=4, digest_transformed=True)
    assert one.transformed_digest == four.transformed_digest


def test_augmentations_on_the_device_are_those_of_augment_image(data):
    operations = [ps.augment.equalize(), ps.augment.posterize(3)]  # which draw nothing
    here, there = (
        ps.recipes.imagenet_train(data, 8, size=32, augment=operations, augment_on_device=on_device) for on_device in (False, True)
    )
    np.testing.assert_array_equal(np.asarray(first(here)["image"]), np.asarray(first(there)["image"]))


def test_grey_images_and_numbers_for_all_channels(data):
    train = ps.recipes.imagenet_train(data, 8, size=32, channels=1, mean=0.45, std=0.23, augment=[ps.augment.invert()], augment_on_device=True)
    test = ps.recipes.imagenet_eval(data, 8, size=32, resize=40, channels=1, mean=0.45, std=0.23, tolerant=True)
    for plan in (train, test):
        assert first(plan)["image"].shape == (8, 1, 32, 32)
        assert evaluate(repr(plan)).to_json() == plan.to_json()


@pytest.mark.parametrize("on_device", [False, True])
def test_what_is_no_list_of_operations_is_named(data, on_device):
    for wrong in (ps.augment.invert(), ps.augment.three_augment, "rand-m9"):
        with pytest.raises(TypeError, match="must be a list of Augmentations"):
            ps.recipes.imagenet_train(data, 8, augment=wrong, augment_on_device=on_device)


def test_timms_options_are_a_dict_of_three_channels(data):
    with pytest.raises(TypeError, match="expected a dict of timm's options"):
        ps.recipes.timm_train(data, 8, "args.yaml")
    with pytest.raises(ValueError, match=r"input_size = \[1, 64, 64\]: the recipe is of 3 channels"):
        ps.recipes.timm_eval(data, 8, {"input_size": [1, 64, 64]})


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """Images of 90 x 60 in one colour for each class of their masks: the left half is 1, the right half 2."""
    Image = pytest.importorskip("PIL.Image")
    folder = tmp_path_factory.mktemp("segmentation")
    mask = np.ones((60, 90), np.uint8)
    mask[:, 45:] = 2
    for number in range(12):
        for part, pixels in (("images", np.stack([mask * 100] * 3, axis=-1)), ("masks", mask)):
            (folder / part).mkdir(exist_ok=True)
            Image.fromarray(pixels).save(folder / part / f"{number}.png")
    masks = ps.images(folder / "masks").rename({"image": "mask", "label": ""})
    return ps.zip([ps.images(folder / "images").rename({"label": ""}), masks]).seed(5)


@pytest.mark.parametrize("recipe, size, base", [("train", 48, 40), ("eval", 64, 40)])
def test_segmentation_has_the_class_of_each_pixel(labelled, recipe, size, base):
    plan = getattr(ps.recipes, f"segmentation_{recipe}")(labelled, 4, size=size, base=base)
    assert evaluate(repr(plan)).to_json() == plan.to_json()
    mean, std = np.array(ps.recipes.IMAGENET_MEAN), np.array(ps.recipes.IMAGENET_STD)
    sides = set()
    for step in plan.repeat(5).loader():
        images, masks = np.asarray(step["image"]), np.asarray(step["mask"])
        assert images.shape == (4, 3, size, size) and masks.shape == (4, size, size) and masks.dtype == np.int64
        assert set(np.unique(masks)) <= {1, 2, 255}
        for image, mask in zip(images, masks):
            levels = (image.transpose(1, 2, 0) * std + mean) * 255
            right = (np.abs(levels - mask[..., None] * 100) < 1).all(axis=-1)
            assert (right | (mask == 255)).mean() > 0.9  # but at the edge between them
            assert np.abs(image.transpose(1, 2, 0)[mask == 255]).max(initial=0) < 0.02, "beside the image is the mean"
            inside = mask != 255
            assert inside[0, 0], "the image is in the upper left corner"
            sides.add((int(inside.any(axis=1).sum()), int(inside.any(axis=0).sum())))
    if recipe == "eval":
        assert sides == {(40, 60)} and plan.size == 3
    else:
        # The shorter side has 20 to 80 pixels.
        assert min(sides)[0] in range(20, 30) and max(sides) == (48, 48) and len(sides) > 10


def test_segmentation_has_the_sizes_of_torchvision(labelled):
    train, test = repr(ps.recipes.segmentation_train(labelled, 4)), repr(ps.recipes.segmentation_eval(labelled, 4))
    assert "resize_shortest(size=480, sides=(260.0, 1040.0), step=1, longest=0, fill=(124, 116, 104)), flip=0.5" in train
    assert ".shuffle()" in train and "remainder='drop'" in train and "mask_dtype='i64'" in train
    assert "resize_shortest(size=1040, sides=(520.0, 520.0), step=1, longest=1040" in test and "flip" not in test
    with pytest.raises(TypeError, match=r"segmentation_train: data are a Dataset, such as penstock.zip\(\[images, masks\]\)"):
        ps.recipes.segmentation_train("images", 4)
    with pytest.raises(TypeError, match="segmentation_eval.. has no option 'sise': did you mean 'size'?"):
        ps.recipes.segmentation_eval(labelled, 4, sise=3)
