"""Data sets of YOLO's, in the layout of Ultralytics, decoded beside what the label files say."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

Image = pytest.importorskip("PIL.Image")

SIZES = {"0.jpg": (40, 20), "1.png": (16, 32), "more/2.jpg": (24, 24)}
ROWS: dict[str, list[list[float]]] = {"0.jpg": [[1, 0.5, 0.5, 0.5, 0.25], [0, 0.25, 0.75, 0.125, 0.5]], "more/2.jpg": [[1, 0.5, 0.5, 1, 1]]}


def write(folder: Path) -> Path:
    for name, size in SIZES.items():
        image = folder / "images" / "train" / name
        image.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, (200, 10, 90)).save(image)
        label = (folder / "labels" / "train" / name).with_suffix(".txt")
        label.parent.mkdir(parents=True, exist_ok=True)
        if name in ROWS:
            label.write_text("".join(" ".join(map(str, row)) + "\n" for row in ROWS[name]))
    (folder / "data.yaml").write_text("path: .\ntrain: images/train\nval: images/train\nnames:\n  0: cat\n  1: dog\n")
    return folder / "data.yaml"


def steps_of(plan: ps.Dataset) -> list[dict[str, Any]]:
    stored = ps.Instances("boxes", fields=["labels"], format="cxcywh", normalized=True)
    plan = plan.map(ps.decode_image(crop=ps.resize_to((32, 64)), instances=stored))
    loader = plan.map(ps.pad("boxes", 4, lengths="count", also="labels")).batch(1).loader()
    return [{name: step[name].numpy().copy() for name in ("boxes", "labels", "count")} for step in loader]


def test_boxes_and_classes_are_those_of_the_label_files(tmp_path: Path) -> None:
    file = write(tmp_path)
    folder = tmp_path / "images" / "train"
    for plan in (ps.yolo(file), ps.yolo(str(file), split="val"), ps.yolo(folder, classes=["cat", "dog"])):
        assert [(field.name, field.dtype, list(field.shape)) for field in plan.fields] == [
            ("image", "u8", [None]),
            ("boxes", "f32", [None, 4]),
            ("labels", "i64", [None]),
        ]
        assert plan.class_names == ["cat", "dog"] and plan.samples == 3
        again = ps.Dataset.from_json(plan.to_json())
        for step, other, name in zip(steps_of(plan), steps_of(again), SIZES, strict=True):
            rows = ROWS.get(name, [])
            count = int(step["count"][0])
            assert count == len(rows)
            assert step["labels"][0, :count].tolist() == [row[0] for row in rows]
            for box, (_, x, y, width, height) in zip(step["boxes"][0], rows):
                wanted = [64 * (x - width / 2), 32 * (y - height / 2), 64 * (x + width / 2), 32 * (y + height / 2)]
                assert box.tolist() == pytest.approx(wanted, abs=1e-3)
            assert (other["boxes"] == step["boxes"]).all()


def test_a_plan_names_the_data_set_and_errors_say_what_to_do(tmp_path: Path) -> None:
    file = write(tmp_path)
    plan = ps.yolo(file, split="val")
    source = json.loads(plan.to_json())["operations"][0]["source"]
    assert source["yolo"]["data"] == str(file) and source["yolo"]["split"] == "val"
    assert "yolo(" in plan.describe()
    with pytest.raises(ValueError, match="format = cxcywh and normalized = true"):
        plan.map(ps.decode_image(crop=ps.letterbox(64), instances=ps.Instances("boxes", fields=["labels"]))).map(
            ps.pad("boxes", 4, also="labels")
        ).batch(1).loader()
    with pytest.raises(ps.Error, match="it has train, val: pass one of these as split"):
        ps.yolo(file, split="test")
    with pytest.raises(ValueError, match="the option field"):
        ps.yolo(file, field="boxes")
    (tmp_path / "labels" / "train" / "0.txt").write_text("2 0.5 0.5 0.5 0.5\n")
    with pytest.raises(ps.Error, match=r"labels/train/0\.txt.*line 1: the class is 2, and the data set has 2"):
        steps_of(ps.yolo(file))


def write_turned(folder: Path, count: int = 12) -> Path:
    """Data of boxes that are turned: in each image a rectangle of its own colour, of which the corners are in the label file."""
    ImageDraw = pytest.importorskip("PIL.ImageDraw")
    for part in ("images", "labels"):
        (folder / part).mkdir()
    for number in range(count):
        angle, across, down = math.radians(30 * number), 20 + number, 12
        corners = [
            (60 + x * across * math.cos(angle) - y * down * math.sin(angle), 50 + x * across * math.sin(angle) + y * down * math.cos(angle))
            for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))
        ]
        image = Image.new("RGB", (120, 100), (0, 0, 0))
        ImageDraw.Draw(image).polygon(corners, fill=(255, 255, 255))
        image.save(folder / "images" / f"{number:02}.png")
        numbers = " ".join(f"{x / 120:.6f} {y / 100:.6f}" for x, y in corners)
        (folder / "labels" / f"{number:02}.txt").write_text(f"0 {numbers}\n")
    (folder / "data.yaml").write_text("path: .\ntrain: images\nnames: [plane]\n")
    return folder / "data.yaml"


def area_of(corners: np.ndarray) -> float:
    x, y = corners[:, 0], corners[:, 1]
    return abs(float(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))) / 2


def test_corners_stay_around_what_is_turned(tmp_path: Path) -> None:
    data = ps.yolo(write_turned(tmp_path), corners=True).seed(3)
    assert [(field.name, list(field.shape)) for field in data.fields][-1] == ("corners", [None, 4, 2])
    things = ps.Instances("boxes", corners="corners", fields=["labels"], format="cxcywh", normalized=True)
    moved = ps.Instances("boxes", corners="corners", fields=["labels"])
    plan = (
        data.map(ps.decode_image(crop=ps.letterbox(256), flip=0.5, filter="nearest", instances=things))
        .map(ps.augment_image([ps.augment.rotate((-40, 40))], instances=moved))
        .map(ps.pad("boxes", 2, lengths="count", also=["corners", "labels"]))
        .batch(4)
    )
    assert ps.Dataset.from_json(plan.to_json()).to_json() == plan.to_json()
    seen = 0
    for step in plan.repeat(5).loader():
        for image, corners, box, count in zip(*(np.asarray(step[name]) for name in ("image", "corners", "boxes", "count"))):
            assert count == 1
            inside = corners[0].min() >= 0 and corners[0].max() <= 256
            around = [*corners[0].min(axis=0), *corners[0].max(axis=0)]
            if inside:  # all of it is seen: its pixels are as many as its corners say
                assert (image[..., 0] > 127).sum() == pytest.approx(area_of(corners[0]), rel=0.1)
                # A box becomes the upright one around its own corners, so it is no smaller.
                assert box[0, 0] <= around[0] + 0.01 and box[0, 1] <= around[1] + 0.01
                assert box[0, 2] >= around[2] - 0.01 and box[0, 3] >= around[3] - 0.01
            y, x = np.nonzero(image[..., 0] > 127)
            assert x.min() >= around[0] - 3 and x.max() <= around[2] + 3 and y.min() >= around[1] - 3 and y.max() <= around[3] + 3
            seen += inside
    assert seen > 20


def test_corners_of_mosaics_are_around_their_boxes(tmp_path: Path) -> None:
    data = ps.yolo(write_turned(tmp_path), corners=True).seed(3)
    for plan in (ps.recipes.yolo_train(data, 4, size=128, scale=(0.6, 1.4)), ps.recipes.detection_train(data, 4, size=128)):
        rows = 0
        for step in plan.repeat(4).loader():
            for corners, boxes, count in zip(*(np.asarray(step[name]) for name in ("corners", "boxes", "count"))):
                assert not corners[count:].any()
                for corner, box in zip(corners[:count], boxes[:count]):
                    # Nothing turns here: a box ends where its corners do, and at the edges of the image.
                    around = np.array([*corner.min(axis=0), *corner.max(axis=0)])
                    assert (box >= np.clip(around, 0, 128) - 0.01)[:2].all() and (box <= np.clip(around, 0, 128) + 0.01)[2:].all()
                    whole = around.min() >= 1 and around.max() <= 127
                    rows += bool(whole and np.abs(box - around).max() < 0.01)
        assert rows > 20


def test_lines_of_polygons_have_no_corners(tmp_path: Path) -> None:
    file = write_turned(tmp_path, 2)
    (tmp_path / "labels" / "01.txt").write_text("0 .1 .1 .5 .1 .5 .5\n")
    with pytest.raises(ps.Error, match=r"01\.txt: line 1: the polygon has 3 corners, and a box that is turned has 4"):
        list(ps.yolo(file, corners=True).rename({"image": "", "boxes": "", "corners": "", "labels": "label"}).map(ps.pad("label", 3)).batch(2).loader())
    with pytest.raises(ValueError, match="corners is for boxes that are turned, and these instances have 3 keypoints"):
        ps.yolo(tmp_path / "images", keypoints=3, corners=True)
    with pytest.raises(ValueError, match="there is no field 'corners' for the corners: yolo has one with corners = true"):
        things = ps.Instances("boxes", corners="corners", fields=["labels"], format="cxcywh", normalized=True)
        ps.yolo(file).map(ps.decode_image(crop=ps.letterbox(64), instances=things))
