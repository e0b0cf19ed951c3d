"""Masks of instances, compared with pycocotools' annToMask."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import penstock as ps

Image = pytest.importorskip("PIL.Image")

HEIGHT, WIDTH = 48, 65
MOST = 12
THINGS = ps.Instances("boxes", fields=["labels"], masks="masks", min_size=0)


NOT_READ = {"area": "", "iscrowd": ""}


def opened(path: Path) -> ps.Dataset:
    return ps.coco(path, masks=True).rename(NOT_READ)


def polygon(chance: random.Random, beyond: float) -> list[float]:
    """Whole numbers, tenths and others, also outside of the image."""
    digits = chance.choice([0, 1, 2, 15])
    points = [(chance.uniform(-beyond, WIDTH + beyond), chance.uniform(-beyond, HEIGHT + beyond)) for _ in range(chance.randint(3, 12))]
    return [round(number, digits) for point in points for number in point]


def write(folder: Path, images: int, segmentation: Any) -> Path:
    """Images with up to MOST instances, each with a box of the whole image."""
    annotations = []
    for number in range(images):
        Image.new("RGB", (WIDTH, HEIGHT), (number, 0, 0)).save(folder / f"{number:03d}.png")
        for place in range(number % (MOST + 1)):
            id = len(annotations)
            one = {"id": id, "image_id": number, "category_id": 1, "bbox": [0, 0, WIDTH, HEIGHT], "area": 1, "iscrowd": place % 2}
            annotations.append(one | {"segmentation": segmentation(id)})
    content = {
        "images": [{"id": i, "file_name": f"{i:03d}.png", "height": HEIGHT, "width": WIDTH} for i in range(images)],
        "annotations": annotations,
        "categories": [{"id": 1, "name": "thing"}],
    }
    path = folder / "instances.json"
    path.write_text(json.dumps(content))
    return path


def masks_of(plan: ps.Dataset, rows: int) -> list[np.ndarray]:
    """Of each image, u8 [n,H,W]."""
    plan = plan.map(ps.pad("boxes", to=MOST, lengths="count", also=["labels", "masks"])).batch(rows)
    step = next(iter(plan.loader()))
    batch = step.parts[0]
    counts = batch["count"].numpy()
    return [np.array(batch["masks"].numpy()[row, : counts[row]]) for row in range(rows)]


def test_masks_are_those_of_pycocotools(tmp_path: Path) -> None:
    coco = pytest.importorskip("pycocotools.coco")
    mask = pytest.importorskip("pycocotools.mask")
    chance = random.Random(4)

    def segmentation(id: int) -> Any:
        if id % 5 == 4:  # runs, compressed or not, and now and then of no pixel or of all
            pixels = np.zeros((HEIGHT, WIDTH), np.uint8, order="F")
            for _ in range(id % 4):
                x, y = chance.randrange(WIDTH), chance.randrange(HEIGHT)
                pixels[y : y + chance.randint(1, 30), x : x + chance.randint(1, 30)] ^= 1
            if id % 15 == 14:
                pixels[:] = 1
            runs = mask.encode(pixels)
            if id % 10 == 9:
                return {"size": runs["size"], "counts": runs["counts"].decode()}
            flat = pixels.reshape(-1, order="F")
            ends = [*np.flatnonzero(np.diff(flat)) + 1, flat.size]
            counts = np.diff([0, *ends]).tolist()
            return {"counts": [0, *counts] if flat[0] else counts, "size": [HEIGHT, WIDTH]}
        return [polygon(chance, chance.choice([0, 3, 500])) for _ in range(chance.choice([1, 1, 1, 2, 5]))]

    path = write(tmp_path, 100, segmentation)
    plan = opened(path).map(ps.decode_image(crop=ps.resize_to((HEIGHT, WIDTH)), instances=THINGS))
    theirs = coco.COCO(str(path))
    compared = 0
    for number, masks in enumerate(masks_of(plan, 100)):
        annotations = theirs.loadAnns(theirs.getAnnIds([number]))
        assert len(masks) == len(annotations)
        for one, annotation in zip(masks, annotations, strict=True):
            wanted = theirs.annToMask(annotation)
            np.testing.assert_array_equal(one, wanted, str(annotation["segmentation"]))
            compared += int(wanted.any())
    assert compared > 450


def test_masks_are_cropped_as_pillow_resizes_them(tmp_path: Path) -> None:
    chance = random.Random(5)
    path = write(tmp_path, 26, lambda id: [polygon(chance, 3)])
    whole = masks_of(opened(path).map(ps.decode_image(crop=ps.resize_to((HEIGHT, WIDTH)), instances=THINGS)), 26)
    plan = opened(path).seed(3).map(ps.decode_image(crop=ps.random_resized_crop((40, 30)), flip=0.5, geometry="geometry", instances=THINGS))
    plan = plan.map(ps.pad("boxes", to=MOST, lengths="count", also=["labels", "masks"])).batch(26)
    batch = next(iter(plan.loader())).parts[0]
    flipped = 0
    for row, masks in enumerate(whole):
        x, y, width, height, mirrored, *_ = batch["geometry"].numpy()[row].tolist()
        assert batch["count"].numpy()[row] == len(masks)
        for place, mask in enumerate(masks):
            wanted = Image.fromarray(mask).crop((x, y, x + width, y + height)).resize((30, 40), Image.Resampling.NEAREST)
            wanted = np.array(wanted)[:, ::-1] if mirrored else np.array(wanted)
            np.testing.assert_array_equal(batch["masks"].numpy()[row, place], wanted)
            flipped += mirrored
    assert flipped > 0


def test_yolo_draws_the_polygons_of_its_label_files(tmp_path: Path) -> None:
    mask = pytest.importorskip("pycocotools.mask")
    (tmp_path / "images").mkdir()
    (tmp_path / "labels").mkdir()
    chance = random.Random(6)
    polygons = [[chance.random() for _ in range(2 * chance.randint(3, 9))] for _ in range(MOST - 1)]
    lines = [f"0 {' '.join(map(str, points))}" for points in polygons] + ["0 0.5 0.5 0.25 0.5"]
    (tmp_path / "labels" / "a.txt").write_text("\n".join(lines))
    Image.new("RGB", (WIDTH, HEIGHT)).save(tmp_path / "images" / "a.png")
    stored = ps.Instances("boxes", fields=["labels"], masks="masks", format="cxcywh", normalized=True, min_size=0)
    plan = ps.yolo(tmp_path / "images", masks=True).map(ps.decode_image(crop=ps.resize_to((HEIGHT, WIDTH)), instances=stored))
    (masks,) = masks_of(plan, 1)
    polygons.append([0.375, 0.25, 0.625, 0.25, 0.625, 0.75, 0.375, 0.75])
    assert len(masks) == MOST
    for one, points in zip(masks, polygons, strict=True):
        in_pixels = [number * (WIDTH, HEIGHT)[place % 2] for place, number in enumerate(points)]
        np.testing.assert_array_equal(one, mask.decode(mask.frPyObjects([in_pixels], HEIGHT, WIDTH))[..., 0])


def test_a_mosaic_has_the_masks_of_all_its_images(tmp_path: Path) -> None:
    """Polygons that are boxes: each mask is the pixels of its box."""

    def segmentation(id: int) -> Any:
        return [[0, 0, WIDTH, 0, WIDTH, HEIGHT, 0, HEIGHT]]

    path = write(tmp_path, 13, segmentation)
    plan = opened(path).partners(3).seed(2)
    plan = plan.map(ps.decode_image(crop=ps.mosaic((60, 60), scale=(0.5, 1)), flip=0.5, instances=THINGS))
    plan = plan.map(ps.pad("boxes", to=4 * MOST, lengths="count", also=["labels", "masks"])).batch(13)
    batch = next(iter(plan.loader())).parts[0]
    compared = 0
    for row in range(13):
        for place in range(int(batch["count"].numpy()[row])):
            left, top, right, bottom = np.rint(batch["boxes"].numpy()[row, place]).astype(int)
            wanted = np.zeros((60, 60), np.uint8)
            wanted[top:bottom, left:right] = 1
            np.testing.assert_array_equal(batch["masks"].numpy()[row, place], wanted)
            compared += 1
    assert compared > 100


def test_the_field_and_what_belongs_to_it(tmp_path: Path) -> None:
    path = write(tmp_path, 4, lambda id: [[1, 2, 3, 4, 5, 6 + id]])
    plan = ps.coco(path, masks=True)
    assert [(field.name, field.dtype, field.shape) for field in plan.fields][-1] == ("masks", "u8", (None,))
    read = plan.rename({"image": "", "boxes": "", "labels": "", "area": "", "iscrowd": ""}).map(ps.pad("masks", to=100, lengths="bytes"))
    batch = next(iter(read.batch(4).loader())).parts[0]
    texts = [bytes(batch["masks"].numpy()[row, : batch["bytes"].numpy()[row]]) for row in range(4)]
    assert texts[0] == b"[]" and texts[2] == b"[[[1, 2, 3, 4, 5, 7]],[[1, 2, 3, 4, 5, 8]]]"
    assert ps.Dataset.from_json(plan.to_json()).to_json() == plan.to_json()
    with pytest.raises(ValueError, match="and not .*'masks', which belong to them"):
        plan.map(ps.decode_image(crop=ps.resize_to(20), instances=ps.Instances("boxes", fields=["labels", "area", "iscrowd"])))
    others = ["labels", "area", "iscrowd", "masks"]
    with pytest.raises(ValueError, match="'masks' are the masks of 'image', and would stay where they are"):
        plan.map(ps.decode_image(crop=ps.resize_to(20), instances=ps.Instances("boxes", fields=others)))
    # A mask changes, and with it the fingerprint, but only where masks are read.
    plans = {masks: ps.coco(path, masks=masks).to_json() for masks in (False, True)}
    write(tmp_path, 4, lambda id: [[1, 2, 3, 4, 5, 9 + id]])
    ps.Dataset.from_json(plans[False])
    with pytest.raises(ps.Error, match="the data are not those of the plan"):
        ps.Dataset.from_json(plans[True])


def test_polygons_are_fractions_also_where_boxes_are_so_no_longer(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "a.txt").write_text("0 0.1 0.1 0.5 0.1 0.5 0.5")
    Image.new("RGB", (WIDTH, HEIGHT)).save(tmp_path / "images" / "a.png")
    remade = ps.map_function(lambda boxes: {"boxes": boxes * WIDTH}, inputs=["boxes"], outputs={"boxes": ("f32", (None, 4))}, name="in_pixels")
    plan = ps.yolo(tmp_path / "images", masks=True).map(remade)
    with pytest.raises(ValueError, match="the source gives 'masks' as fractions of the image's size"):
        plan.map(ps.decode_image(crop=ps.resize_to(20), instances=ps.Instances("boxes", fields=["labels"], masks="masks")))


def test_pasted_instances_are_the_same_in_every_world(tmp_path: Path) -> None:
    path = write(tmp_path, 26, lambda id: [[id % 30, 1, 40 + id % 20, 2, 30, 40]])
    plan = opened(path).partners(1).shuffle(seed=3)
    plan = plan.map(ps.decode_image(crop=ps.copy_paste((40, 50), scale=(0.5, 1.5)), flip=0.5, instances=THINGS))
    plan = plan.map(ps.pad("boxes", to=2 * MOST, lengths="count", also=["labels", "masks"])).batch(6, remainder="drop")

    def rows(world: int) -> dict[int, list[bytes]]:
        found: dict[int, list[bytes]] = {}
        for rank in range(world):
            for step in plan.loader(context=ps.InputContext(world, rank)):
                batch = step.parts[0]
                for row, number in enumerate(batch.row_numbers):
                    found[6 * batch.step + number] = [batch[name].numpy()[row].tobytes() for name in ("image", "boxes", "masks", "count")]
        return found

    alone = rows(1)
    assert len(alone) == 24 and alone == rows(2) == rows(3)
