"""Annotation files of COCO's, compared with what Python's json reads of them, in the order of torchvision's CocoDetection."""

from __future__ import annotations

import importlib.util
import io
import itertools
import json
import pickle
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import evaluate

import penstock as ps

Image = pytest.importorskip("PIL.Image")

MOST = 8  # objects of an image
NAMES = ["nose", "left_eye", "right_eye"]


def write(folder: Path, count: int = 23, keypoints: bool = True, **changes: Any) -> dict[str, Any]:
    """Images of their own colours in `folder`/train, and an annotation file of them in `folder`/annotations."""
    chance = random.Random(count)
    ids = chance.sample(range(1, 10_000), count)
    (folder / "train" / "more").mkdir(parents=True, exist_ok=True)
    (folder / "annotations").mkdir(exist_ok=True)
    images, annotations = [], []
    for number, id in enumerate(ids):
        name = f"{'more/' if number % 3 == 0 else ''}{chance.randrange(10**9):012d}.{'png' if number % 2 else 'jpg'}"
        size = chance.randrange(4, 40), chance.randrange(4, 40)
        Image.new("RGB", size, (number * 7 % 256, id % 256, id // 256)).save(folder / "train" / name)
        images.append({"id": id, "file_name": name, "width": size[0], "height": size[1], "license": 1})
        for _ in range(number % (MOST + 1)):
            one: dict[str, Any] = {
                "id": len(annotations) + 500,
                "image_id": id,
                "category_id": chance.choice([1, 3, 90]),
                "bbox": [round(chance.uniform(0, 600), 2) for _ in range(4)],
                "area": chance.uniform(0, 1e5),
                "iscrowd": chance.randrange(2),
                "segmentation": [[chance.uniform(0, 600) for _ in range(10)]],
            }
            if keypoints and one["category_id"] == 1:
                one |= {"keypoints": [chance.randrange(640) for _ in range(9)], "num_keypoints": 3}
            annotations.append(one)
    chance.shuffle(annotations)
    categories: list[dict[str, Any]] = [{"id": 90, "name": "toothbrush"}, {"id": 1, "name": "person"}, {"id": 3, "name": "car"}]
    if keypoints:
        categories[1] |= {"keypoints": NAMES, "skeleton": [[1, 2]]}
    content = {"info": {"year": 2017}, "images": images, "annotations": annotations, "categories": categories} | changes
    (folder / "annotations" / "instances.json").write_text(json.dumps(content))
    return content


def expected(content: dict[str, Any], folder: Path, only_annotated: bool = False, category_ids: bool = False) -> list[dict[str, Any]]:
    numbers = {id: number for number, id in enumerate(sorted(one["id"] for one in content["categories"]))}
    records = []
    for image in sorted(content["images"], key=lambda image: image["id"]):
        objects = [one for one in content["annotations"] if one["image_id"] == image["id"]]
        if only_annotated and not objects:
            continue
        boxes = np.array([one["bbox"] for one in objects], np.float64).reshape(-1, 4)
        boxes[:, 2:] += boxes[:, :2]
        records.append(
            {
                "image": (folder / "train" / image["file_name"]).read_bytes(),
                "boxes": boxes.astype(np.float32),
                "labels": np.array([one["category_id"] if category_ids else numbers[one["category_id"]] for one in objects], np.int64),
                "area": np.array([one["area"] for one in objects], np.float32),
                "iscrowd": np.array([one["iscrowd"] for one in objects], bool),
                "image_id": np.int64(image["id"]),
                "keypoints": np.array([one.get("keypoints", [0] * 9) for one in objects], np.float32).reshape(-1, 3, 3),
            }
        )
    return records


def padded(plan: ps.Dataset, decode: bool = False) -> ps.Dataset:
    if decode:
        things = ps.Instances("boxes", keypoints="keypoints", fields=["labels", "area", "iscrowd"], min_size=0)
        plan = plan.map(ps.decode_image(crop=ps.resize_to((4, 4)), instances=things))
    for field in plan.fields:
        if field.shape and field.shape[0] is None:
            plan = plan.map(ps.pad(field.name, 4096 if field.name == "image" else MOST, lengths=f"{field.name} length"))
    return plan


def records_of(plan: ps.Dataset) -> list[dict[str, Any]]:
    names = [field.name for field in plan.fields]
    records = []
    for step in padded(plan).batch(1).loader():
        record: dict[str, Any] = {}
        for name in names:
            value = step[name].numpy()[0]
            if name != "image_id":
                value = value[: step[f"{name} length"].numpy()[0]].copy()
            record[name] = value.tobytes() if name == "image" else value
        records.append(record)
    return records


def same(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    assert [record["image_id"] for record in found] == [record["image_id"] for record in wanted]
    for one, other in zip(found, wanted):
        for name in one:
            if name == "image":
                assert one[name] == other[name]
                continue
            assert one[name].dtype == other[name].dtype and one[name].shape == other[name].shape, name
            assert (one[name] == other[name]).all(), name


def opened(folder: Path, **options: Any) -> ps.Dataset:
    return ps.coco(folder / "annotations" / "instances.json", root=folder / "train", **options)


@pytest.mark.parametrize("options", [{}, {"category_ids": True}, {"only_annotated": True}])
def test_records_are_those_that_json_reads(tmp_path: Path, options: dict[str, bool]) -> None:
    content = write(tmp_path)
    plan = opened(tmp_path, **options)
    assert [(field.name, field.dtype, list(field.shape)) for field in plan.fields] == [
        ("image", "u8", [None]),
        ("boxes", "f32", [None, 4]),
        ("labels", "i64", [None]),
        ("area", "f32", [None]),
        ("iscrowd", "bool", [None]),
        ("image_id", "i64", []),
        ("keypoints", "f32", [None, 3, 3]),
    ]
    wanted = expected(content, tmp_path, **options)
    assert len(wanted) == (20 if "only_annotated" in options else 23)
    same(records_of(plan), wanted)
    if "category_ids" in options:
        assert len(plan.class_names) == 91 and plan.class_names[3] == "car" and plan.class_names[2] == ""
    else:
        assert plan.class_names == ["person", "car", "toothbrush"]


def test_without_keypoints_there_is_no_field_of_them(tmp_path: Path) -> None:
    content = write(tmp_path, 5, keypoints=False)
    plan = opened(tmp_path)
    assert [field.name for field in plan.fields][-1] == "image_id"
    same(records_of(plan), expected(content, tmp_path))


def test_the_order_is_that_of_pycocotools(tmp_path: Path) -> None:
    pycocotools = pytest.importorskip("pycocotools.coco")
    write(tmp_path)
    theirs = pycocotools.COCO(str(tmp_path / "annotations" / "instances.json"))
    records = records_of(opened(tmp_path, category_ids=True))
    assert [record["image_id"] for record in records] == sorted(theirs.getImgIds())
    for record in records:
        objects = theirs.loadAnns(theirs.getAnnIds([record["image_id"]]))
        assert record["labels"].tolist() == [one["category_id"] for one in objects]
        assert record["area"].tolist() == np.array([one["area"] for one in objects], np.float32).tolist()


def test_a_plan_is_itself_as_json_and_pickled(tmp_path: Path) -> None:
    content = write(tmp_path)
    plan = opened(tmp_path, only_annotated=True).seed(1)
    text = plan.to_json()
    source = json.loads(text)["operations"][0]["source"]
    assert source["coco"]["annotations"] == str(tmp_path / "annotations" / "instances.json")
    assert source["coco"]["root"] == str(tmp_path / "train") and source["coco"]["only_annotated"] is True
    wanted = expected(content, tmp_path, only_annotated=True)
    for again in (ps.Dataset.from_json(text), pickle.loads(pickle.dumps(plan))):
        assert again.to_json() == text
        same(records_of(again), wanted)
    assert "coco(" in plan.describe()
    # The file has other values meanwhile.
    content["annotations"][0]["bbox"][2] += 1
    write(tmp_path, annotations=content["annotations"])
    with pytest.raises(ps.Error):
        ps.Dataset.from_json(text)


def test_a_loader_goes_on_from_a_state(tmp_path: Path) -> None:
    write(tmp_path)

    def loader() -> ps.Loader:
        return padded(opened(tmp_path), decode=True).seed(3).shuffle().repeat(3).batch(4).loader()

    def values(steps: Any) -> list[Any]:
        return [(step["image_id"].numpy().tolist(), step["boxes"].numpy().tobytes(), step["image"].numpy().tobytes()) for step in steps]

    whole = loader()
    for _ in range(7):
        next(whole)
    state = whole.state_dict()
    rest = values(whole)
    again = loader()
    again.load_state_dict(state)
    assert values(again) == rest and len(rest) > 7


def test_images_of_lvis_are_named_by_their_urls(tmp_path: Path) -> None:
    content = write(tmp_path, keypoints=False)
    for number, image in enumerate(content["images"]):
        name = image.pop("file_name")
        if "/" not in name:
            name = f"more/{name}"
            (tmp_path / "train" / name.split("/")[1]).rename(tmp_path / "train" / name)
        image |= {"coco_url": f"http://images.cocodataset.org/{name}", "neg_category_ids": [1, 5], "not_exhaustive_category_ids": []}
        content["images"][number] = image
    for annotation in content["annotations"]:
        del annotation["iscrowd"]
    file = tmp_path / "annotations" / "lvis.json"
    file.write_text(json.dumps(content))
    plan = ps.coco(file, root=tmp_path / "train")
    assert plan.samples == len(content["images"])
    names = [name.key for step in padded(plan).batch(1).loader() for name in step.names()]
    assert names == [image["coco_url"].split("org/")[1] for image in sorted(content["images"], key=lambda one: one["id"])]
    del content["images"][3]["coco_url"]
    file.write_text(json.dumps(content))
    with pytest.raises(ps.Error, match="has no file_name"):
        ps.coco(file, root=tmp_path / "train")


def boxes_around_the_images(folder: Path) -> dict[int, list[dict[str, Any]]]:
    """Writes files whose boxes are their whole images; the annotations of each image."""
    content = write(folder)
    annotations: dict[int, list[dict[str, Any]]] = {image["id"]: [] for image in content["images"]}
    for annotation in content["annotations"]:
        image = next(image for image in content["images"] if image["id"] == annotation["image_id"])
        annotation["bbox"] = [0, 0, image["width"], image["height"]]
        annotations[image["id"]].append(annotation)
    (folder / "annotations" / "instances.json").write_text(json.dumps(content))
    return annotations


@pytest.mark.parametrize("preset", ["hflip", "multiscale", "detr", "lsj", "ssd", "ssdlite"])
def test_recipes_of_detection_move_the_boxes(tmp_path: Path, preset: Any) -> None:
    annotations = boxes_around_the_images(tmp_path)
    data = opened(tmp_path, category_ids=True).seed(5)
    plan = ps.recipes.detection_train(data, 4, preset=preset, size=48, boxes=MOST)
    assert evaluate(repr(plan)).to_json() == plan.to_json()
    fill = np.array([124, 116, 104], np.float32) / 255
    filled = 0
    for step in plan.repeat(4).loader(threads=2):
        images = np.asarray(step["image"])
        assert images.shape == (4, 3, 48, 48) and images.min() >= 0 and images.max() <= 1
        for row, id in enumerate(np.asarray(step["image_id"]).tolist()):
            count = int(np.asarray(step["count"])[row])
            assert np.asarray(step["labels"])[row, :count].tolist() == [one["category_id"] for one in annotations[id]]
            assert np.asarray(step["keypoints"]).shape == (4, MOST, 3, 3)
            if count == 0 or preset == "ssd":  # whose colours are changed, those of the canvas, too
                continue
            left, top, right, bottom = np.asarray(step["boxes"])[row, 0]
            outside = np.ones((48, 48), bool)
            outside[int(np.floor(top)) : int(np.ceil(bottom)), int(np.floor(left)) : int(np.ceil(right))] = False
            filled += int(outside.sum())
            assert np.abs(images[row].transpose(1, 2, 0)[outside] - fill).max(initial=0) < 1e-6
    assert (filled > 0) == ("ssd" not in preset)


def test_mosaics_have_the_boxes_of_their_images(tmp_path: Path) -> None:
    annotations = boxes_around_the_images(tmp_path)
    data = opened(tmp_path, category_ids=True)
    all_that_show = ps.Instances("boxes", keypoints="keypoints", fields=["labels", "area", "iscrowd"], min_size=0)
    plan = ps.recipes.yolo_train(data, 4, size=48, boxes=4 * MOST, until_epoch=3, hsv=(0, 0, 0), flip=0, instances=all_that_show).seed(5)
    assert evaluate(repr(plan)).to_json() == plan.to_json()
    assert ps.Dataset.from_json(plan.to_json()).to_json() == plan.to_json()
    several = filled = 0
    for step in plan.repeat(4).loader(threads=2):
        images, partners = np.asarray(step["image"]), np.asarray(step["partners"])
        assert images.shape == (4, 3, 48, 48) and (partners.min() >= 0 if step.epoch < 3 else partners.max() == -1)
        for row in range(4):
            ids = [int(np.asarray(step[name])[row]) for name in ("image_id", "image_id_1", "image_id_2", "image_id_3")]
            count = int(np.asarray(step["count"])[row])
            found = np.asarray(step["labels"])[row, :count].tolist()
            of_images = [[one["category_id"] for one in annotations.get(id, [])] for id in ids[: 4 if step.epoch < 3 else 1]]
            # Of each image all boxes are there, or none, in the order of the images.
            assert any(found == sum(chosen, []) for chosen in itertools.product(*[([], labels) for labels in of_images]))
            several += sum(bool(labels) for labels in of_images) > 1 and len(found) > len(max(of_images, key=len))
            if any(not annotations.get(id) for id in ids):
                continue  # an image without a box
            outside = np.ones((48, 48), bool)
            for left, top, right, bottom in np.asarray(step["boxes"])[row, :count]:
                outside[int(np.floor(top)) : int(np.ceil(bottom)), int(np.floor(left)) : int(np.ceil(right))] = False
            filled += int(outside.sum())
            assert np.abs(images[row].transpose(1, 2, 0)[outside] - np.float32(114 / 255)).max(initial=0) < 1e-6
    assert several > 5 and filled > 0
    file = tmp_path / "annotations" / "instances.json"
    file.write_text(file.read_text().replace("left_eye", "wing"))  # which is left and right is not known then
    with pytest.raises(ValueError, match=r"flip=0.5 mirrors the keypoints, .* flip_index=\[...\]"):
        ps.recipes.yolo_train(opened(tmp_path), 4)


def test_mosaics_of_yolo_take_its_boxes(tmp_path: Path) -> None:
    image = io.BytesIO()
    Image.new("RGB", (40, 30), (9, 8, 7)).save(image, "jpeg")
    for number in range(8):
        for part, name, content in (("images", f"{number}.jpg", image.getvalue()), ("labels", f"{number}.txt", b"1 0.5 0.5 1 1\n")):
            (tmp_path / part).mkdir(exist_ok=True)
            (tmp_path / part / name).write_bytes(content)
    data = ps.yolo(tmp_path / "images", classes=["a", "b"])
    for plan in (ps.recipes.yolo_train(data, 4, size=32), ps.recipes.detection_train(data, 4, size=32), ps.recipes.detection_eval(data, 4, size=32)):
        for step in plan.seed(3).loader():
            boxes, counts = np.asarray(step["boxes"]), np.asarray(step["count"])
            assert counts.min() >= 1
            for row, count in enumerate(counts):
                sides = boxes[row, :count, 2:] - boxes[row, :count, :2]
                assert sides.min() >= 1 and boxes[row, :count].max() <= 32
    assert ".partners(3).seed(3).shuffle()" in repr(ps.recipes.yolo_train(data.seed(3), 4, size=32))
    with pytest.raises(ValueError, match=r"put shuffle\(\) behind it"):
        ps.recipes.yolo_train(data.shuffle(), 4)
    with pytest.raises(TypeError, match="yolo_train: data are a Dataset, such as"):
        ps.recipes.yolo_train("data.yaml", 4)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="hsv are three numbers"):
        ps.recipes.yolo_train(data, 4, hsv=0.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="it is until_epoch, the first epoch without mosaics"):
        ps.recipes.yolo_train(data, 4, close_mosaic=10)  # type: ignore[call-arg]


def test_a_damaged_image_is_the_file_of_the_faults_of_its_mosaics(tmp_path: Path) -> None:
    content = write(tmp_path)
    damaged = tmp_path / "train" / next(one["file_name"] for one in content["images"] if one["file_name"].endswith("jpg"))
    damaged.write_bytes(damaged.read_bytes()[:100])
    for damage in (lambda: None, damaged.unlink):  # decoding fails, and then reading
        damage()
        loader = ps.recipes.yolo_train(opened(tmp_path), 1, size=48, flip=0).seed(5).loader(on_fault="mask")
        bad = sum(not np.asarray(step["valid"])[0] for step in loader)
        faults = loader.faults()
        assert bad == len(faults) > 1
        assert all(damaged.name in fault.file for fault in faults)
        assert sum("partner " in fault.reason for fault in faults) == len(faults) - 1


@pytest.mark.parametrize("preset", ["hflip", "lsj", "ssdlite", "yolo"])
def test_boxes_of_an_evaluation_can_be_led_back(tmp_path: Path, preset: Any) -> None:
    annotations = boxes_around_the_images(tmp_path)
    plan = ps.recipes.detection_eval(opened(tmp_path), 5, preset=preset, size=48, boxes=MOST)
    assert evaluate(repr(plan)).to_json() == plan.to_json()
    ids = []
    for step in plan.loader():
        for row, id in enumerate(np.asarray(step["image_id"]).tolist()):
            ids.append(id)
            assert int(np.asarray(step["count"])[row]) == len(annotations[id])
            x, y, width, height = np.asarray(step["geometry"])[row, :4]
            for box in np.asarray(step["boxes"])[row, : len(annotations[id])]:
                found = box * [width, height, width, height] / 48 + [x, y, x, y]
                assert found == pytest.approx([0, 0, *annotations[id][0]["bbox"][2:]], abs=1)
    assert ids == sorted(annotations)


@pytest.mark.parametrize("preset", ["hflip", "multiscale", "detr"])
def test_presets_have_the_sizes_of_their_originals(tmp_path: Path, preset: Any) -> None:
    boxes_around_the_images(tmp_path)
    data = opened(tmp_path)
    text = repr(ps.recipes.detection_train(data, 4, preset=preset))
    fixed = "sides=(800.0, 800.0), " if preset == "hflip" else ""
    cut = ", cut=0.5" if preset == "detr" else ""
    assert f"crop=resize_shortest(size=1333, {fixed}fill=(124, 116, 104){cut}), flip=0.5" in text
    text = repr(ps.recipes.detection_eval(data, 4, preset=preset))
    assert "crop=resize_shortest(size=1333, sides=(800.0, 800.0), fill=(124, 116, 104))" in text and "flip=" not in text
    # The image lies in the upper left corner, also where it is mirrored: models cut the rest off by its size.
    for step in ps.recipes.detection_train(data, 1, preset=preset, size=100, boxes=MOST).loader(threads=1):
        if int(np.asarray(step["count"])[0]) > 0:
            assert np.asarray(step["boxes"])[0, 0, :2].tolist() == pytest.approx([0, 0], abs=1e-3)


def test_recipes_exchange_the_keypoints_that_the_file_names_left_and_right(tmp_path: Path) -> None:
    write(tmp_path)
    data = opened(tmp_path)
    for plan in (ps.recipes.detection_train(data, 4), ps.recipes.yolo_train(data, 4)):
        assert "flip_index=[0, 2, 1]" in repr(plan)
    things = ps.Instances("boxes", keypoints="keypoints", fields=["labels", "area", "iscrowd"])
    with pytest.raises(ValueError, match=r"mirrors 'image', and the source says that its 'keypoints' have a left and a right.*\[0, 2, 1\]"):
        data.map(ps.decode_image(crop=ps.letterbox(64), flip=0.5, instances=things))
    assert "flip_index" not in repr(ps.recipes.detection_train(data.rename({"keypoints": ""}), 4))


def test_a_recipe_of_detection_says_what_its_presets_are(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(ValueError, match="preset is one of hflip, multiscale, detr, lsj, ssd, ssdlite, found 'yolo'"):
        ps.recipes.detection_train(opened(tmp_path), 4, preset="yolo")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="preset is one of hflip, multiscale, detr, lsj, ssd, ssdlite, yolo, found 'fcos'"):
        ps.recipes.detection_eval(opened(tmp_path), 4, preset="fcos")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no field 'boxes'|'boxes'"):
        ps.recipes.detection_train(ps.synthetic_images(8), 4)


def test_a_damaged_annotation_is_a_fault_of_its_image(tmp_path: Path) -> None:
    content = write(tmp_path)
    damaged = content["annotations"][5]
    damaged["bbox"][2] = -1
    write(tmp_path, annotations=content["annotations"])
    loader = padded(opened(tmp_path)).batch(1).loader(on_fault="mask")
    ids = [step["image_id"].numpy()[0] for step in loader]
    assert len(ids) == 23 and ids.count(0) == 1
    (fault,) = loader.faults()
    assert f"the annotation with the id {damaged['id']} has a bbox with a negative width" in str(fault)
    with pytest.raises(ps.Error, match=f"the id {damaged['id']}"):
        for _ in padded(opened(tmp_path)).batch(1).loader():
            pass


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    write(tmp_path)
    file = tmp_path / "annotations" / "instances.json"
    with pytest.raises(ps.Error, match=r"there is one in .*/train: pass that as root"):
        ps.coco(file)
    file.write_text(json.dumps([{"image_id": 1}]))
    with pytest.raises(ps.Error, match="a file of results"):
        ps.coco(file, root=tmp_path / "train")
    file.write_text(json.dumps({"images": [{"id": 1.5, "file_name": "x"}]}))
    with pytest.raises(ps.Error, match=r"has 1\.5 for id"):
        ps.coco(file, root=tmp_path / "train")
    with pytest.raises(ValueError, match="the option field"):
        ps.coco(file, field="boxes")


def test_a_file_of_a_test_set_has_no_boxes_and_says_so(tmp_path: Path) -> None:
    content = write(tmp_path, 4)
    del content["annotations"]
    (tmp_path / "annotations" / "instances.json").write_text(json.dumps(content))
    loader = padded(opened(tmp_path)).batch(4).loader()
    (step,) = loader
    assert step["boxes length"].numpy().tolist() == [0] * 4
    assert any("test sets" in notice for notice in loader.report().notices)


def test_files_on_the_hub_are_read_there(hub: Any, tmp_path: Path) -> None:
    content = write(tmp_path, 6)
    hub.push(tmp_path)
    wanted = expected(content, tmp_path)
    there = "hf://datasets/owner/name"
    plan = ps.coco(f"{there}/annotations/instances.json", root=f"{there}/train")
    same(records_of(plan), wanted)
    same(records_of(ps.Dataset.from_json(plan.to_json())), wanted)
    same(records_of(ps.coco(tmp_path / "annotations" / "instances.json", root=f"{there}/train")), wanted)
    content["images"][0]["file_name"] = f"{there}/train/{content['images'][0]['file_name']}"
    (tmp_path / "annotations" / "instances.json").write_text(json.dumps(content))
    same(records_of(ps.coco(tmp_path / "annotations" / "instances.json", root=f"{there}/train")), wanted)
    with pytest.raises(ValueError, match="all paths are hf:// or none is"):
        opened(tmp_path)


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "coco"
    folder.mkdir()
    content = write(folder, keypoints=False)
    (folder / "train").rename(folder / "train2017")
    size_of = {image["id"]: [image["width"], image["height"]] for image in content["images"]}
    for annotation in content["annotations"]:
        annotation["bbox"] = [0, 0, *size_of[annotation["image_id"]]]  # shows in every crop
    (folder / "annotations" / "instances_train2017.json").write_text(json.dumps(content))
    captions = [{"id": k, "image_id": image["id"], "caption": f'"{k}" é'} for k, image in enumerate(content["images"])]
    text = json.dumps({"images": content["images"], "annotations": captions})
    (folder / "annotations" / "captions_train2017.json").write_text(text)
    image = next((folder / "train2017").glob("*.jpg")).read_bytes()
    objects = {"bbox": [[1.0, 1.0, 2.0, 2.0]], "category": [3]}
    parquet.write_table(pa.table({"image": [{"bytes": image, "path": "a.jpg"}] * 3, "objects": [objects] * 3}), tmp_path / "train.parquet")
    for part in ("images", "labels"):
        (tmp_path / "yolo" / part).mkdir(parents=True)
    (tmp_path / "yolo" / "data.yaml").write_text("train: images\nval: images\nnames: [a, b, c]\n")
    for number in range(3):
        (tmp_path / "yolo" / "images" / f"{number}.jpg").write_bytes(image)
    (tmp_path / "yolo" / "labels" / "0.txt").write_text("2 0.5 0.5 0.5 0.25\n0 0.25 0.25 0.5 0.5\n")
    (tmp_path / "yolo" / "labels" / "1.txt").write_text("")

    voc = tmp_path / "VOCdevkit" / "VOC2012"
    for part in ("JPEGImages", "Annotations", "ImageSets/Main"):
        (voc / part).mkdir(parents=True)
    (voc / "ImageSets" / "Main" / "trainval.txt").write_text("a\n")
    (voc / "JPEGImages" / "a.jpg").write_bytes(image)
    width, height = Image.open(io.BytesIO(image)).size
    box = f"<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>{width}</xmax><ymax>{height}</ymax></bndbox>"
    (voc / "Annotations" / "a.xml").write_text(f"<annotation><object><name>cat</name>{box}</object></annotation>")

    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[2] / "docs" / "detection.md").read_text()
    names: dict[str, Any] = {}
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)):
        if "penstock.torch" in block and importlib.util.find_spec("torch") is None:
            continue
        names["model"] = lambda images, targets: sum(len(target["boxes"]) for target in targets)
        exec(compile(block, f"block {number} of docs/detection.md", "exec"), names)
    assert len(names["train"].class_names) == 91
    assert sum(int(np.asarray(step["count"]).sum()) for step in names["train"].loader()) == len(content["annotations"])
    assert all(len(row) == 1 and row[0].endswith('" é') for row in names["texts"]) and len(names["texts"]) == len(content["images"]) % 16
    alone = sum(not annotation["iscrowd"] for annotation in content["annotations"])
    assert sum(int(np.asarray(step["count"]).sum()) for step in names["segmented"].loader()) == alone
    (step,) = names["table"].loader()
    assert np.asarray(step["count"]).tolist() == [1, 1, 1] and np.asarray(step["labels"])[:, 0].tolist() == [3, 3, 3]
    (step,) = names["yolo"].loader()
    assert np.asarray(step["count"]).tolist() == [2, 0, 0] and np.asarray(step["labels"])[0, :2].tolist() == [2, 0]
    partners = np.concatenate([np.array(mosaics["partners"]) for mosaics in names["mosaics"].loader()])
    assert partners.shape == (300, 3) and (partners[:270] >= 0).all() and (partners[270:] == -1).all()
    (turned,) = names["turned"].loader()
    assert np.asarray(turned["corners"]).shape == (3, 300, 4, 2)
    assert sum(int(np.asarray(step["count"]).sum()) for step in names["safe"].loader()) == len(content["annotations"])
    (one,) = names["voc"].loader()
    left, top, right, bottom = np.asarray(one["boxes"])[0, 0]
    assert left + right == pytest.approx(640, abs=1) and max(right - left, bottom - top) == pytest.approx(640, abs=1e-3)
    left, top, right, bottom = np.asarray(step["boxes"])[0, 0]
    assert left + right == pytest.approx(640, abs=1e-3) and top + bottom == pytest.approx(640, abs=1e-3)
