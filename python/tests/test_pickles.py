"""What plans are made of travels to other processes by itself, and says what it is."""

import copy
import pickle

import numpy as np
import pytest

import penstock as ps
from penstock import augment as pa

CROPS = [
    ps.random_resized_crop(224, scale=(0.3, 1)),
    ps.center_crop((8, 9), resize=33),
    ps.five_crops(8),
    ps.ten_crops(8),
    ps.resize_to((3, 4)),
    ps.letterbox(8, fill=(1, 2, 3)),
    ps.random_crop(8, padding=2, pad_if_needed=True),
    ps.scale_jitter(8, scale=(0.5, 1.5)),
    ps.cover_crop((8, 9), position="random"),
    ps.random_iou_crop(8, overlaps=[0.5, 1], zoom_out=0.5, fill=(1, 2, 3)),
    ps.mosaic((8, 9), scale=(0.4, 1.2), translate=0.2, fill=(1, 2, 3), mixup=0.25),
    ps.resize_shortest((8, 9), sides=(4, 10), step=2, longest=20, fill=(1, 2, 3), cut=0.5, cut_sides=(4, 6), cut_step=1, cut_size=(3, 6)),
    ps.box_safe_crop((8, 9), erosion=0.25),
    ps.copy_paste((8, 9), scale=(0.4, 1.2), fill=(1, 2, 3), share=0.25),
]


@pytest.mark.parametrize("crop", CROPS, ids=repr)
def test_a_crop_is_itself_after_a_pickle(crop):
    again = pickle.loads(pickle.dumps(crop))
    assert again == crop and hash(again) == hash(crop) and repr(again) == repr(crop)
    assert copy.deepcopy(crop) == crop
    assert all(crop != other for other in CROPS if other is not crop) and crop != 3


def doubled(x):
    return x * 2


TRANSFORMS = [
    ps.decode_image(crop=ps.random_resized_crop(32), flip=0.5, filter="nearest", masks="mask", decoder="fast"),
    ps.decode_views({"a": ps.ImageView(ps.center_crop(8), geometry="g"), "b": ps.ImageView(ps.resize_to((3, 4)), count=3, flip=0.5)}),
    ps.crop_image(crop=ps.random_crop(8, padding=2), filter="pillow_bicubic"),
    ps.augment_image([pa.rotate((-3, 3)), pa.rand_augment()], field="a"),
    ps.pad("tokens", 8, value=-1, lengths="n"),
    ps.map_function(doubled, outputs={"x": ("f32", (3, None))}),
]


@pytest.mark.parametrize("transform", TRANSFORMS, ids=repr)
def test_a_transform_is_itself_after_a_pickle(transform):
    assert repr(pickle.loads(pickle.dumps(transform))) == repr(transform)


def test_a_function_works_after_a_pickle():
    data = ps.memory({"x": np.arange(12, dtype=np.float32).reshape(2, 6)})
    transform = pickle.loads(pickle.dumps(ps.map_function(doubled, outputs={"x": ("f32", (6,))})))
    (step,) = data.map(transform).batch(2).loader()
    assert (np.asarray(step["x"]) == np.arange(12).reshape(2, 6) * 2).all()
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(ps.map_function(lambda x: x, outputs={"x": ("f32", (6,))}, name="nobody's"))


def test_views_and_erasing_are_themselves_after_a_pickle():
    view = ps.ImageView(ps.random_resized_crop(16), count=2, flip=0.5, filter="bicubic", geometry="g")
    again = pickle.loads(pickle.dumps(view))
    assert repr(ps.decode_views({"a": again})) == repr(ps.decode_views({"a": view}))
    erasing = ps.RandomErasing(probability=0.25, area=(0.1, 0.2), ratio=(0.5, 2), value=(1, 2, 3))
    assert repr(pickle.loads(pickle.dumps(erasing))) == repr(erasing)
    assert repr(erasing) == "RandomErasing(probability=0.25, area=(0.1, 0.2), ratio=(0.5, 2.0), value=(1, 2, 3))"


def test_jpeg_stats_show_what_they_counted():
    assert repr(ps.JpegStats()) == "JpegStats({'own': 0, 'indexed': 0})"


def test_messages_have_the_names_of_python():
    batches = ps.memory({"image": np.zeros((4, 8, 8, 1), np.uint8)}).batch(2)
    with pytest.raises(ValueError, match="'image': std has 3 numbers, and the images have 1 channels"):
        batches.transform_on_device(std=[0.2, 0.2, 0.2])
    with pytest.raises(ValueError, match="std is above 0, found 0"):
        batches.transform_on_device(std=0.0)


def test_transforms_of_other_libraries_are_told_where_theirs_are():
    stranger = type("RandomRotation", (), {"__module__": "torchvision.transforms.v2._geometry", "__call__": lambda self, image: image})()
    for call in (
        lambda: ps.memory({"x": np.zeros(3)}).map(stranger),
        lambda: ps.decode_image(crop=stranger),
        lambda: ps.augment_image([stranger]),
        lambda: pa.random_apply(0.5, [stranger]),
    ):
        with pytest.raises(TypeError, match="transforms of torchvision do not run here: penstock.augment has"):
            call()


def test_grey_images_are_not_filled_with_a_colour():
    with pytest.raises(ValueError, match="images of one channel cannot have a fill of three levels"):
        ps.decode_image(crop=ps.letterbox(8, fill=(1, 2, 3)), channels=1)
    grey = ps.memory({"image": np.zeros((4, 8, 8, 1), np.uint8)})
    with pytest.raises(ValueError, match="images of one channel cannot have a fill of three levels"):
        grey.map(ps.augment_image([pa.rotate(3, fill=(1, 2, 3))]))


def test_an_error_in_the_data_keeps_its_fault(tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "7.jpg").write_bytes(b"\xff\xd8\xff")
    plan = ps.image_folder(broken).map(ps.decode_image(crop=ps.center_crop(32))).batch(1)
    with pytest.raises(ps.DataError) as raised:
        next(plan.loader())
    error = pickle.loads(pickle.dumps(raised.value))
    assert str(error) == str(raised.value)
    assert str(error.fault) == str(raised.value.fault)
    assert error.fault.file == str(broken / "7.jpg")
    assert error.fault.sample == raised.value.fault.sample
    assert error.fault.reason == raised.value.fault.reason != ""
