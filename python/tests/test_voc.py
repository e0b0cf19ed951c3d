"""Data sets of Pascal VOC's, in its layout and beside the images, compared with what Python's XML parser reads."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import evaluate

import penstock as ps

Image = pytest.importorskip("PIL.Image")

CLASSES = ["aeroplane", "bicycle", "person", "tvmonitor"]


def annotation(name: str, size: tuple[int, int], chance: random.Random, objects: int) -> str:
    root = ET.Element("annotation")
    ET.SubElement(root, "folder").text = "VOC2012"
    ET.SubElement(root, "filename").text = name
    for key, value in zip(("width", "height", "depth"), (*size, 3)):
        ET.SubElement(root.find("size") if root.find("size") is not None else ET.SubElement(root, "size"), key).text = str(value)
    for _ in range(objects):
        one = ET.SubElement(root, "object")
        ET.SubElement(one, "name").text = chance.choice(CLASSES)
        ET.SubElement(one, "pose").text = "Left"
        for flag in ("truncated", "difficult"):
            if chance.random() < 0.8:
                ET.SubElement(one, flag).text = str(chance.randrange(2))
        part = ET.SubElement(one, "part")  # which has a box of its own
        ET.SubElement(part, "name").text = "head"
        for box in (ET.SubElement(part, "bndbox"), ET.SubElement(one, "bndbox")):
            left, top = chance.randint(1, size[0] - 1), chance.randint(1, size[1] - 1)
            right, bottom = chance.randint(left + 1, size[0]), chance.randint(top + 1, size[1])
            edges = {"xmax": right, "xmin": left, "ymin": top, "ymax": bottom}
            for key, value in edges.items():
                ET.SubElement(box, key).text = f" {value + (chance.choice([0, 0.25]) if key.endswith('min') else 0)}\n"
    return "<!-- of a test -->\n" + ET.tostring(root, encoding="unicode")


def write(folder: Path, count: int = 12) -> list[str]:
    """A data set in VOC's layout; the names of its images."""
    chance = random.Random(count)
    for part in ("Annotations", "JPEGImages", "ImageSets/Main"):
        (folder / part).mkdir(parents=True)
    names = [f"2008_{chance.randrange(10**6):06d}" for _ in range(count)]
    for number, name in enumerate(names):
        size = chance.randrange(20, 60), chance.randrange(20, 60)
        file = f"{name}.{'png' if number % 3 == 0 else 'jpg'}"
        Image.new("RGB", size, (number, 2, 3)).save(folder / "JPEGImages" / file)
        (folder / "Annotations" / f"{name}.xml").write_text(annotation(file, size, chance, number % 5))
    (folder / "ImageSets" / "Main" / "train.txt").write_text("\n".join(names) + "\n")
    (folder / "ImageSets" / "Main" / "person_train.txt").write_text("".join(f"{name} {('-1', ' 0', ' 1')[k % 3]}\r\n" for k, name in enumerate(names)))
    return names


def expected(file: Path, from_one: bool = True) -> dict[str, Any]:
    objects = ET.parse(file).getroot().findall("object")

    def edge(one: Any, name: str) -> float:
        return float(one.find("bndbox").find(name).text) - (1 if from_one and name.endswith("min") else 0)

    return {
        "boxes": [[edge(one, name) for name in ("xmin", "ymin", "xmax", "ymax")] for one in objects],
        "labels": [CLASSES.index(one.findtext("name")) for one in objects],
        "difficult": [one.findtext("difficult") == "1" for one in objects],
        "truncated": [one.findtext("truncated") == "1" for one in objects],
    }


FIELDS = ("boxes", "labels", "difficult", "truncated")


def records(plan: ps.Dataset) -> list[dict[str, Any]]:
    """What each record has, beside its image."""
    moved = ps.Instances("boxes", fields=list(FIELDS[1:]), min_size=0)
    loaded = []
    images = plan.map(ps.decode_image(crop=ps.random_crop(64, pad_if_needed=True), geometry="where", instances=moved))
    for step in images.map(ps.pad("boxes", 8, lengths="count", also=FIELDS[1:])).batch(1).loader(threads=2):
        count = int(np.asarray(step["count"])[0])
        x, y = np.asarray(step["where"])[0, :2]
        record = {name: np.asarray(step[name])[0, :count] for name in FIELDS}
        record["boxes"] = record["boxes"] + np.array([x, y, x, y], np.float32)
        loaded.append({name: value.tolist() for name, value in record.items()})
    return loaded


def without_empty(record: dict[str, Any]) -> dict[str, Any]:
    kept = [k for k, box in enumerate(record["boxes"]) if box[2] > box[0] and box[3] > box[1]]
    return {name: [values[k] for k in kept] for name, values in record.items()}


def test_boxes_are_those_of_the_files_in_the_order_of_the_list(tmp_path: Path) -> None:
    names = write(tmp_path)
    for from_one in (True, False):
        plan = ps.voc(tmp_path, classes=CLASSES, from_one=from_one).seed(1)
        assert plan.class_names == CLASSES and plan.samples == len(names)
        wanted = [without_empty(expected(tmp_path / "Annotations" / f"{name}.xml", from_one)) for name in names]
        assert records(plan) == wanted
        assert records(ps.Dataset.from_json(plan.to_json())) == wanted
        assert evaluate(repr(plan)).to_json() == plan.to_json()
    assert ps.voc(tmp_path).class_names == CLASSES, "in the order of their names"
    of_class = ps.voc(tmp_path, split="person_train", classes=CLASSES).seed(1)
    assert records(of_class) == [one for k, one in enumerate(records(ps.voc(tmp_path, classes=CLASSES).seed(1))) if k % 3 != 0]


def test_files_may_lie_beside_their_images(tmp_path: Path) -> None:
    names = sorted(write(tmp_path / "voc"))
    wanted = records(ps.voc(tmp_path / "voc").seed(1))
    for file in [*(tmp_path / "voc").glob("*/*.xml"), *(tmp_path / "voc").glob("*/2008*g")]:
        (tmp_path / "train").mkdir(exist_ok=True)
        file.rename(tmp_path / "train" / file.name)
    plan = ps.voc(tmp_path / "train").seed(1)
    of_name = dict(zip(names, records(plan), strict=True))
    assert [of_name[name] for name in (tmp_path / "voc" / "ImageSets" / "Main" / "train.txt").read_text().split()] == wanted
    assert sum(1 for _ in ps.recipes.detection_train(plan, 4, size=32).loader()) == 3


def test_a_damaged_file_is_a_fault_of_its_image(tmp_path: Path) -> None:
    names = write(tmp_path)
    whole = ps.voc(tmp_path).to_json()
    files = [tmp_path / "Annotations" / f"{name}.xml" for name in names]
    files[0].unlink()
    files[1].write_text("<annotation><object>")
    files[2].write_text("<html/>")
    files[3].write_text("<annotation><object><name>cat</name></object></annotation>")
    files[4].write_text(files[4].read_text().replace("<xmin>", "<xmin>x"))
    files[5].write_text("<annotation><object><name>person</name><bndbox><xmin>9</xmin><ymin>1</ymin><xmax>3</xmax><ymax>5</ymax></bndbox></object></annotation>")
    files[6].write_text("<annotation><object><name>unicorn</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>3</xmax><ymax>5</ymax></bndbox></object></annotation>")
    plan = ps.voc(tmp_path, classes=CLASSES)
    moved = ps.Instances("boxes", fields=list(FIELDS[1:]))
    loader = plan.map(ps.decode_image(crop=ps.resize_to(16), instances=moved)).map(ps.pad("boxes", 8, also=FIELDS[1:])).batch(12).loader(on_fault="mask")
    (step,) = loader
    assert np.asarray(step["valid"]).tolist() == [False] * 7 + [True] * 5
    texts = ["No such file", "it is no XML", "its element is <html>", "'cat', has no bndbox", "has the xmin 'x", "ends before it begins: 8, 0, 3, 5", "class 'unicorn', which is none of"]
    for fault, text, file in zip(loader.faults(), texts, files[:7], strict=True):
        assert text in str(fault) and str(file) in str(fault)
    assert "unicorn" in ps.voc(tmp_path).class_names
    with pytest.raises(ps.Error, match="the data are not those of the plan"):
        ps.Dataset.from_json(whole)


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    write(tmp_path / "voc")
    with pytest.raises(ps.Error, match="there is no list .*val.txt: ImageSets/Main has these: person_train, train; pass one of them"):
        ps.voc(tmp_path / "voc", split="val")
    with pytest.raises(ps.Error, match="is no folder"):
        ps.voc(tmp_path / "nowhere")
    with pytest.raises(ps.Error, match="the folders Annotations, ImageSets and JPEGImages, or an XML file beside"):
        (tmp_path / "empty").mkdir()
        ps.voc(tmp_path / "empty")
    with pytest.raises(ValueError, match="'cat' is there twice"):
        ps.voc(tmp_path / "voc", classes=["cat", "cat"])
    with pytest.raises(ValueError, match="the option field is 'labels'"):
        ps.voc(tmp_path / "voc", field="labels")
    with pytest.raises(ValueError, match="expected a local path"):
        ps.voc("s3://bucket/voc")
    list_of_train = tmp_path / "voc" / "ImageSets" / "Main" / "train.txt"
    list_of_train.write_text("a 7\n")
    with pytest.raises(ps.Error, match="train.txt line 1: expected the name of an image"):
        ps.voc(tmp_path / "voc")
    list_of_train.write_text("a\nb\n")
    with pytest.raises(ps.Error, match="none of the first 2 annotation files is there"):
        ps.voc(tmp_path / "voc")
    (tmp_path / "voc" / "Annotations" / "a.xml").write_text("<annotation/>")
    with pytest.raises(ps.Error, match=r"none of the first 2 images is there: looked for .*a\.jpg first"):
        ps.voc(tmp_path / "voc")
