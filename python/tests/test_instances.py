"""Boxes and keypoints: moved as the pixels of their image, whatever loads them."""

import io
import pickle
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import augment as pa

FIELDS: dict[str, Any] = {
    "image": ("u8", (None, None, 3)),
    "boxes": ("f32", (None, 4)),
    "points": ("f32", (None, 2, 3)),
    "labels": ("i64", (None,)),
}
THINGS = ps.Instances("boxes", keypoints="points", fields=["labels"], flip_index=[1, 0])
CROPS = [
    ps.random_resized_crop((24, 30)),
    ps.center_crop((16, 20), resize=33),
    ps.letterbox((31, 17), fill=0),
    ps.random_crop((30, 25), padding=8, pad_if_needed=True),
    ps.scale_jitter((40, 20)),
]


class Items:
    """Images of different sizes with 0 to 6 instances each; the same at every call."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, number: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(number)
        height, width = rng.integers(30, 90, 2)
        count = number % 7
        corner = rng.uniform(0, [width - 8, height - 8], (count, 2))
        size = rng.uniform(2, [width, height] - corner, (count, 2)) if count else corner
        points = np.concatenate([corner[:, None] + size[:, None] * rng.uniform(0, 1, (count, 2, 2)), np.full((count, 2, 1), 2)], 2)
        return {
            "image": rng.integers(0, 256, (height, width, 3), dtype=np.uint8),
            "boxes": np.concatenate([corner, corner + size], 1).astype(np.float32),
            "points": points.astype(np.float32),
            "labels": np.arange(count) + 10 * number,
        }


def plan_of(things: ps.Instances | None = THINGS, crop: ps.Crop = CROPS[0]) -> ps.Dataset:
    return (
        ps.Dataset(Items(), fields=FIELDS)
        .seed(7)
        .shuffle()
        .map(ps.crop_image(crop=crop, flip=0.5, geometry="geometry", instances=things))
        .map(ps.augment_image([pa.flip(), pa.brightness((0.5, 1.5))], instances=things))
        .map(ps.pad("boxes", to=6, lengths="count"))
        .map(ps.pad("points", to=6))
        .map(ps.pad("labels", to=6, value=-1))
        .batch(8)
    )


def rows_of(plan: ps.Dataset, **options: Any) -> list[dict[str, np.ndarray]]:
    rows = []
    for step in plan.loader(**options):
        fields = {name: np.array(step[name]) for name in ("image", "boxes", "points", "labels", "count", "geometry")}
        rows += [{name: values[row] for name, values in fields.items()} for row in range(len(fields["count"]))]
    return rows


@pytest.mark.parametrize("crop", CROPS, ids=repr)
def test_the_boxes_of_a_crop_are_those_of_a_plain_program(crop):
    plan = (
        ps.Dataset(Items(), fields=FIELDS)
        .seed(7)
        .map(ps.crop_image(crop=crop, flip=0.5, geometry="geometry", instances=ps.Instances("boxes", fields=["labels"])))
        .map(ps.pad("boxes", to=6, lengths="count"))
        .map(ps.pad("labels", to=6, value=-1))
        .map(ps.pad("points", to=6))
        .batch(40)
    )
    (step,) = plan.loader()
    height, width = crop.size
    for number in range(40):
        given = Items()[number]
        left, top, across, down, flipped, *_ = np.asarray(step["geometry"])[number].tolist()
        boxes = given["boxes"].astype(float)
        boxes[:, 0::2] = np.clip((boxes[:, 0::2] - left) * width / across, 0, width)
        boxes[:, 1::2] = np.clip((boxes[:, 1::2] - top) * height / down, 0, height)
        if flipped:
            boxes[:, [0, 2]] = width - boxes[:, [2, 0]]
        size = np.minimum(boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1])
        count = np.asarray(step["count"])[number]
        found = np.asarray(step["boxes"])[number]
        labels = np.asarray(step["labels"])[number]
        # The geometry is rounded to whole pixels of the image, outwards.
        within = 2.5 * max(width / (across - 2), height / (down - 2)) + 1e-3
        for box, label in zip(found[:count], labels[:count]):
            assert np.abs(box - boxes[label - 10 * number]).max() < within
        kept = set(labels[:count].tolist())
        assert {10 * number + i for i in range(len(size)) if size[i] > 1 + 2 * within} <= kept
        assert all(size[label - 10 * number] > 1 - 2 * within for label in kept)
        assert (found[count:] == 0).all() and (labels[count:] == -1).all()


def test_they_draw_nothing_and_are_the_same_on_any_threads():
    first = rows_of(plan_of(), threads=1)
    second = rows_of(plan_of(), threads=3)
    assert len(first) == 40
    for one, other in zip(first, second, strict=True):
        for name in one:
            assert (one[name] == other[name]).all(), name
    plain = (
        ps.Dataset(Items(), fields=FIELDS)
        .seed(7)
        .shuffle()
        .map(ps.crop_image(crop=CROPS[0], flip=0.5))
        .map(ps.augment_image([pa.flip(), pa.brightness((0.5, 1.5))]))
        .map(ps.pad("boxes", to=6))
        .map(ps.pad("points", to=6))
        .map(ps.pad("labels", to=6))
        .batch(8)
    )
    images = [image for step in plain.loader() for image in np.array(step["image"])]
    assert all((image == row["image"]).all() for image, row in zip(images, first, strict=True))
    assert any(0 < row["count"] < 6 for row in first)


def test_a_loader_goes_on_where_it_was_in_each_step():
    plan = plan_of()
    whole = [{name: np.array(step[name]) for name in ("boxes", "points", "labels", "count")} for step in plan.loader()]
    for at in range(1, len(whole)):
        loader = plan.loader(threads=2)
        for _ in range(at):
            next(loader)
        resumed = plan.loader()
        resumed.load_state_dict(loader.state_dict())
        for expected, step in zip(whole[at:], resumed, strict=True):
            assert all((np.asarray(step[name]) == values).all() for name, values in expected.items())


def test_keypoints_are_exchanged_where_an_image_is_mirrored():
    image = np.zeros((20, 30, 3), np.uint8)

    def points_after(flip: float, operations: list[Any]) -> list[list[float]]:
        class One:
            def __len__(self):
                return 1

            def __getitem__(self, number):
                return {
                    "image": image,
                    "boxes": np.float32([[0, 0, 30, 20]]),
                    "points": np.float32([[[1, 2, 1], [9, 8, 2]]]),
                    "labels": np.int64([3]),
                }

        plan = (
            ps.Dataset(One(), fields=FIELDS)
            .map(ps.crop_image(crop=ps.resize_to((20, 30)), flip=flip, instances=THINGS))
            .map(ps.augment_image(operations, instances=THINGS))
            .map(ps.pad("boxes", to=2))
            .map(ps.pad("points", to=1))
            .map(ps.pad("labels", to=2))
            .batch(1)
        )
        (step,) = plan.loader()
        return np.asarray(step["points"])[0, 0].tolist()

    assert points_after(0, []) == [[1, 2, 1], [9, 8, 2]]
    assert points_after(1, []) == [[21, 8, 2], [29, 2, 1]]
    assert points_after(1, [pa.flip(1)]) == [[1, 2, 1], [9, 8, 2]]


def test_plans_with_them_travel():
    things = ps.Instances("boxes", keypoints="points", fields=["labels"], format="cxcywh", normalized=True, min_visible=0.25)
    assert repr(things) == (
        "Instances(boxes='boxes', keypoints='points', fields='labels', format='cxcywh', normalized=True, min_visible=0.25)"
    )
    assert (things.boxes, things.min_size, things.flip_index) == ("boxes", 1.0, [])
    again = pickle.loads(pickle.dumps(things))
    assert repr(again) == repr(things)
    decode = ps.decode_image(crop=ps.resize_to(8), instances=things)
    assert repr(pickle.loads(pickle.dumps(decode))) == repr(decode)
    assert "instances=Instances(boxes='boxes'" in repr(decode)
    assert "instances" not in repr(ps.decode_image(crop=ps.resize_to(8)))


def test_what_cannot_be_right_says_what_to_do():
    with pytest.raises(ValueError, match="name the field of the boxes"):
        ps.crop_image(crop=ps.resize_to(8), instances=ps.Instances())
    with pytest.raises(TypeError, match="instances"):
        ps.crop_image(crop=ps.resize_to(8), instances="boxes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="format.*xyxy"):
        ps.Instances("boxes", format="yxyx")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="augment_image moves the pixels of 'image', and not 'boxes'"):
        (
            ps.Dataset(Items(), fields=FIELDS)
            .map(ps.crop_image(crop=ps.resize_to(8), instances=THINGS))
            .map(ps.augment_image([pa.flip()]))
        )
    with pytest.raises(ValueError, match="transform_on_device moves the pixels"):
        plan_of().transform_on_device(flip=0.5).loader()


def test_a_box_in_another_format_is_a_fault_of_its_sample():
    class Wrong(Items):
        def __getitem__(self, number):
            item = super().__getitem__(number)
            if number == 5:
                item["boxes"][2] = [50, 40, 10, 12]
            return item

    plan = (
        ps.Dataset(Wrong(), fields=FIELDS)
        .map(ps.crop_image(crop=ps.resize_to(8), instances=THINGS))
        .map(ps.pad("boxes", to=6))
        .map(ps.pad("points", to=6))
        .map(ps.pad("labels", to=6))
        .batch(8)
    )
    loader = plan.loader(on_fault="mask")
    assert sum(1 for _ in loader) == 5
    (fault,) = loader.faults()
    assert "instance 2" in fault.reason and "(50, 40, 10, 12)" in fault.reason and "xywh" in fault.reason


@pytest.mark.parametrize("orientation", range(1, 9))
def test_they_are_those_of_the_upright_image(orientation):
    Image = pytest.importorskip("PIL.Image")
    pixels = np.zeros((60, 80, 3), np.uint8)
    image = Image.fromarray(pixels)
    exif = image.getexif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    image.save(file, "JPEG", exif=exif)
    turned = orientation >= 5

    class One:
        def __len__(self):
            return 1

        def __getitem__(self, number):
            return {"image": np.frombuffer(file.getvalue(), np.uint8), "boxes": np.float64([[0.5, 0.5, 0.5, 0.25]])}

    plan = (
        ps.Dataset(One(), fields={"image": ("u8", (None,)), "boxes": ("f64", (None, 4))})
        .map(ps.decode_image(crop=ps.letterbox(80), instances=ps.Instances("boxes", format="cxcywh", normalized=True)))
        .map(ps.pad("boxes", to=1))
        .batch(1)
    )
    (step,) = plan.loader()
    width, height = (60, 80) if turned else (80, 60)
    left, top = (80 - width) / 2, (80 - height) / 2
    expected = [left + width / 4, top + height * 3 / 8, left + width * 3 / 4, top + height * 5 / 8]
    assert np.asarray(step["boxes"])[0, 0].tolist() == expected
