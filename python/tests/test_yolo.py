"""Data sets of YOLO's, in the layout of Ultralytics, decoded beside what the label files say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
