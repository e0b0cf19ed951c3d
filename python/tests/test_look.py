"""Contact sheets: show(), and python -m penstock look."""

from __future__ import annotations

import base64
import html
import os
import re
import shutil
import struct
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import run_python
from time_limit import seconds_left

import penstock as ps
from penstock.__main__ import main

RANDOM = np.random.default_rng(7)


class Page(HTMLParser):
    """A page's elements, each with its tag, its attributes and the text in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, Any], list[str]]] = []
        self.open: list[int] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), []))
        if tag not in ("meta", "br"):
            self.open.append(len(self.elements) - 1)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag):
        assert self.elements[self.open.pop()][0] == tag

    def handle_data(self, data):
        for number in self.open:
            self.elements[number][2].append(data)

    def all(self, tag: str) -> list[dict[str, Any]]:
        return [attributes for found, attributes, _ in self.elements if found == tag]

    def texts(self, tag: str) -> list[str]:
        return ["|".join(text) for found, _, text in self.elements if found == tag]

    def images(self) -> list[np.ndarray]:
        return [decoded(base64.b64decode(one["href"].removeprefix("data:image/png;base64,"))) for one in self.all("image")]


def decoded(png: bytes) -> np.ndarray:
    """The pixels [H,W,C] of a PNG whose lines all have filter 1, as those of contact sheets have."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length : at + 12 + length]) == (zlib.crc32(kind + data),)
        chunks[kind] = data
        at += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, bits, colours, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    channels = {0: 1, 2: 3, 6: 4}[colours]
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + width * channels)
    assert bits == 8 and rest == [0, 0, 0] and (lines[:, 0] == 1).all()
    return np.cumsum(lines[:, 1:].reshape(height, width, channels), axis=1, dtype=np.uint8)


def step_of(columns: dict[str, Any]) -> ps.Step:
    """All rows of some arrays."""
    return next(ps.memory(columns).batch(len(next(iter(columns.values())))).loader(threads=1))


def pixels(*shape: int) -> np.ndarray:
    return RANDOM.integers(0, 256, shape, np.uint8)


def page_of(step: ps.Step | ps.DeviceBatch, **options: Any) -> Page:
    return Page(ps.show(step, **options).html)


@pytest.fixture
def damaged(images, tmp_path) -> Path:
    """Two classes of two images each, and one more file that is none."""
    for number, file in enumerate(sorted(images.rglob("*.jpg"))[:4]):
        (tmp_path / "ab"[number % 2]).mkdir(exist_ok=True)
        shutil.copy(file, tmp_path / "ab"[number % 2] / f"{number}.jpg")
    (tmp_path / "a" / "bad.jpg").write_bytes(b"no image")
    return tmp_path


@pytest.mark.parametrize("channels", [1, 3])
def test_every_pixel_is_there(channels):
    images = pixels(3, 20, 30, channels)
    page = page_of(step_of({"image": images}))
    assert all((found == image).all() for found, image in zip(page.images(), images, strict=True))
    assert [svg["viewbox"] for svg in page.all("svg")] == ["0 0 30 20"] * 3
    assert all(one["width"] == "30" and one["height"] == "20" for one in page.all("image"))


def test_pillow_reads_the_same_pixels(tmp_path):
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    image = pixels(1, 9, 7, 3)
    sheet = ps.show(step_of({"image": image}))
    sheet.save(tmp_path / "look.png")
    assert (np.asarray(Image.open(tmp_path / "look.png"))[8:17, 8:15] == image[0]).all()


def test_views_lie_side_by_side():
    views = pixels(2, 3, 10, 12, 3)
    (first, second) = page_of(step_of({"views": views})).images()
    assert first.shape == (10, 12 * 3 + 2 * 2, 3)
    for view in range(3):
        left = view * 14
        assert (second[:, left : left + 12] == views[1, view]).all()
        assert view == 2 or (second[:, left + 12 : left + 14] == 255).all()


def test_all_fields_of_images_are_shown():
    big, small = pixels(2, 10, 12, 3), pixels(2, 5, 5, 1)
    page = page_of(step_of({"big": big, "small": small, "label": np.arange(2)}))
    assert [svg["aria-label"] for svg in page.all("svg")] == ["big", "small"] * 2
    assert (page.images()[2] == big[1]).all() and (page.images()[3] == small[1]).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("axis", [1, 3])
def test_floats_are_stretched_image_by_image(dtype, axis):
    levels = pixels(2, 16, 16, 3)
    levels[:, 0, 0], levels[:, 0, 1] = 0, 255
    normalised = np.stack([levels[0] / 255 * 4 - 2, levels[1] / 255 - 5]).astype(dtype)
    page = page_of(step_of({"image": np.ascontiguousarray(np.moveaxis(normalised, -1, axis))}))
    off = [np.abs(found.astype(int) - image).max() for found, image in zip(page.images(), levels, strict=True)]
    assert max(off) == 0 if dtype != "float16" else max(off) <= 1
    assert any("stretched" in text for text in page.texts("p"))
    assert not any("stretched" in text for text in page_of(step_of({"image": levels})).texts("p"))


def test_floats_without_a_range_are_black():
    images = np.full((2, 4, 4, 3), 7, np.float32)
    images[1, 0, 0, 0], images[1, 1, 1], images[1, 2, 2] = 9, np.nan, np.inf
    flat, strange = page_of(step_of({"image": images})).images()
    assert not flat.any() and strange[0, 0].tolist() == [255, 0, 0] and not strange[1:].any()


def test_batches_normalised_on_their_device_are_shown(images):
    plan = ps.images(images).map(ps.decode_image(crop=ps.center_crop(32))).batch(4)
    plain = np.asarray(next(plan.loader(threads=1))["image"]).astype(float)
    step = next(plan.transform_on_device(mean=[0.5] * 3, std=[0.25] * 3).loader(threads=1))
    assert step["image"].shape == (4, 3, 32, 32)
    for found, image in zip(page_of(step).images(), plain, strict=True):
        wanted = (image - image.min()) / (image.max() - image.min()) * 255
        assert np.abs(found - wanted).max() <= 0.51


def test_16_bits_are_scaled():
    images = np.array([0, 128, 129, 257, 32896, 65535], np.uint16).reshape(1, 2, 3, 1)
    (found,) = page_of(step_of({"depth": images})).images()
    assert found.ravel().tolist() == [0, 0, 1, 1, 128, 255]


def overlays() -> dict[str, np.ndarray]:
    """Two grey images of 40 x 60 with boxes, keypoints and masks."""
    boxes = np.zeros((2, 3, 4), np.float32)
    boxes[0, :2] = [[4.5, 3, 20, 13.25], [-5, 10, 30, 30]]
    boxes[1, 1:] = [[50, 30, 50, 39], [5, 5, 9, 10]]
    points = np.zeros((2, 1, 3, 3), np.float32)
    points[0, 0] = [[10, 11, 2], [20, 21, 0], [59, 39, 1]]
    mask = np.zeros((2, 40, 60), np.uint8)
    mask[0, :4], mask[0, 4:8], mask[1, :, :3] = 255, 1, 22
    labels = np.array([[1, 0, 0], [5, 5, 2]])
    return {"image": np.full((2, 40, 60, 3), 100, np.uint8), "boxes": boxes, "keypoints": points, "mask": mask, "labels": labels}


def test_boxes_and_points_have_their_places():
    page = page_of(step_of(overlays()), class_names=["cat", '<"dog" & co>'])
    places = [tuple(float(rect[name]) for name in ("x", "y", "width", "height")) for rect in page.all("rect")]
    assert places == [(4.5, 3, 15.5, 10.25), (-5, 10, 35, 20), (5, 5, 4, 5)]
    assert page.texts("text") == ['1 <"dog" & co>', "0 cat", "2"]
    assert page.all("rect")[0]["stroke"] != page.all("rect")[1]["stroke"]
    assert [(circle["cx"], circle["cy"]) for circle in page.all("circle")] == [("10", "11"), ("59", "39")]
    assert not any("label" in text for text in page.texts("figcaption"))


def test_turned_boxes_are_drawn_in_place_of_boxes(tmp_path):
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    found = overlays()
    del found["mask"], found["keypoints"]
    corners = np.zeros((2, 3, 4, 2), np.float32)
    corners[0, 0] = [[20, 5], [35, 20], [20, 35], [5, 20]]
    corners[0, 1] = [[-1e6, 20.5], [1e6, 20.5], [1e6, 30], [-1e6, 30]]  # a perspective puts corners far outside
    step = step_of({**found, "corners": corners})
    page = page_of(step, class_names=["cat", "dog"])
    assert not page.all("rect")
    polygons = page.all("polygon")
    assert [polygon["points"] for polygon in polygons] == ["20,5 35,20 20,35 5,20", "-1e+06,20.5 1e+06,20.5 1e+06,30 -1e+06,30"]
    assert page.texts("text") == ["1 dog", "0 cat"]
    assert polygons[0]["stroke"] != polygons[1]["stroke"]
    sheet = ps.show(step)
    sheet.save(tmp_path / "look.png")
    image = np.asarray(Image.open(tmp_path / "look.png"))[8:48, 8:68]
    drawn = (image != 100).any(axis=-1)
    green = (image == [60, 180, 75]).all(axis=-1)  # class 1
    assert green[5, 20] and green[12, 27] and green[28, 13] and not drawn[5, 5] and not drawn[10, 20]
    assert drawn[30].all() and not drawn[39].any()
    assert (drawn[20] | green[20]).all(), "a line across the whole image"
    other = page_of(step_of({**found, "quads": corners}), corners="quads")
    assert [polygon["points"] for polygon in other.all("polygon")] == [polygon["points"] for polygon in polygons]
    # They are no images, whose channels these three instances might be.
    assert len(page.all("svg")) == 2
    with pytest.raises(ValueError, match=r"corners='boxes': expected floats \[B,n,4,2\]"):
        ps.show(step, corners="boxes")


def test_masks_lie_half_transparent_above_their_image():
    page = page_of(step_of(overlays()))
    image, first, _, second = page.images()
    assert image.shape == (40, 60, 3) and first.shape == second.shape == (40, 60, 4)
    assert (first[:4, :, 3] == 0).all() and (first[4:, :, 3] == 128).all()
    assert first[20, 20].tolist() == [0, 0, 0, 128] and first[4, 0].tolist() == [60, 180, 75, 128]
    assert second[0, 0].tolist() == [255, 225, 25, 128]  # 22: the palette has 20 colours
    numbers = overlays()["mask"].astype(np.int64) - 100
    assert (page_of(step_of({**overlays(), "mask": numbers})).images()[1][:4, :, 3] == 128).all()
    assert (page_of(step_of({**overlays(), "mask": numbers})).images()[1][4:, :, 3] == 0).all()


def test_masks_of_instances_have_the_colours_of_their_boxes():
    found = overlays()
    masks = np.zeros((2, 3, 40, 60), np.uint8)
    masks[0, 0, :5], masks[0, 1, 3:8], masks[1, 2, :, :3] = 1, 1, 1
    del found["mask"]
    page = page_of(step_of({**found, "masks": masks, "labels": np.array([[1, 0, 0], [5, 5, 255]])}))
    _, first, _, second = page.images()
    assert (first[:8, :, 3] == 128).all() and (first[8:, :, 3] == 0).all()
    assert first[0, 0].tolist() == [60, 180, 75, 128]  # class 1
    assert first[3, 0].tolist() == [230, 25, 75, 128]  # class 0, of the instance behind it
    assert second[0, 0, 3] == 128 and (second[:, 3:, 3] == 0).all()
    assert page_of(step_of({**found, "masks": masks.astype(bool)})).images()[1].shape == (40, 60, 4)
    assert page_of(step_of({**found, "masks": masks[..., 1:].copy()})).images()[1].shape == (40, 60, 3)


def test_options_name_other_fields():
    found = overlays()
    names = {"boxes": "where", "keypoints": "pose", "masks": "classes", "labels": "kind"}
    plain = Page(ps.show(step_of(found)).html)
    renamed = {names.get(field, "classes"): values for field, values in found.items() if field != "image"} | {"image": found["image"]}
    other = page_of(step_of(renamed), **names)
    for tag in ("rect", "circle", "image"):
        assert plain.all(tag) == other.all(tag) != []
    assert plain.texts("text") == other.texts("text") == ["1", "0", "2"]
    assert not page_of(step_of({**renamed, "pose": found["keypoints"][..., :2].copy()})).all("rect")


def test_labels_and_draws_are_in_the_captions():
    columns = {"image": pixels(3, 8, 8, 3), "label": np.array([1, 0, 7])}
    plan = ps.memory(columns).repeat_each(2).batch(6)
    captions = page_of(next(plan.loader()), class_names=["cat", '<"dog" & co>']).texts("figcaption")
    assert captions[0] == 'sample 0, draw 1|label 1 <"dog" & co>|memory row 0'
    assert captions[3] == "sample 1, draw 4|label 0 cat|memory row 1" and captions[5] == "sample 2, draw 6|label 7|memory row 2"
    assert page_of(step_of(columns)).texts("figcaption")[0] == "sample 0|label 1|memory row 0"
    several = {"image": pixels(1, 8, 8, 3), "labels": np.array([[1, 0]])}
    assert page_of(step_of(several), class_names=["", "b"]).texts("figcaption") == ["sample 0|labels 1 b, 0|memory row 0"]
    assert '"dog"' not in ps.show(step_of(columns), class_names=["", '<"dog">'])._repr_html_()


def test_names_are_shortened_and_escaped(images, tmp_path):
    name = "a<b>&" + "x" * 60 + ".jpg"
    shutil.copy(next(images.rglob("*.jpg")), tmp_path / name)
    shutil.copy(next(images.rglob("*.jpg")), tmp_path / os.fsdecode(b"b\xff.jpg"))
    plan = ps.images(tmp_path).map(ps.decode_image(crop=ps.resize_to(16))).batch(2)
    sheet = ps.show(next(plan.loader(threads=1)))
    long, strange = [one for one in Page(sheet.html).all("span") if one["class"] == "name"]
    assert name in long["title"] and html.escape(str(tmp_path / name)) in sheet.html and "<b>" not in sheet.html
    assert Page(sheet.html).texts("span")[0] == name[:12] + "…" + name[-11:]
    assert "jpg" in strange["title"] and sheet.html.encode() and r"b\udcff.jpg" in Page(sheet.html).texts("span")[1]


def test_masked_and_padding_rows_are_marked(damaged):
    plan = ps.image_folder(damaged).map(ps.decode_image(crop=ps.resize_to(16))).batch(4, remainder="pad")
    loader = plan.loader(on_fault="mask", threads=1)
    first, last = (page_of(step, class_names=plan.class_names).texts("figcaption") for step in loader)
    (masked,) = [text for text in first if "masked" in text]
    assert "not an image" in masked and "a/bad.jpg" in masked and "label" not in masked
    assert "label 0 a" in first[0] and "label 1 b" in last[0] and last[1:] == ["padding: no sample"] * 3
    (replaced,) = [text for text in page_of(next(plan.loader(on_fault="replace", threads=1))).texts("figcaption") if "in place" in text]
    assert "bad.jpg" not in replaced
    (part,) = next(plan.loader(on_fault="mask", threads=1)).parts
    assert sum("masked: a bad sample" in text for text in page_of(part).texts("figcaption")) == 1


def test_the_first_rows_are_shown_in_columns():
    step = step_of({"image": pixels(9, 8, 8, 3)})
    assert len(page_of(step, most=5).all("figure")) == 5 and "5 of 9 rows" in page_of(step, most=5).texts("p")[0]
    assert "repeat(4," in ps.show(step, columns=4).html and "repeat(9," in ps.show(step, columns=20).html
    sheet = ps.show(step, columns=4)
    assert sheet._repr_html_() in sheet.html and Page(sheet._repr_html_()).images() and "9 rows" in repr(sheet)


def test_the_batch_is_not_held():
    images = pixels(64, 8, 8, 3)
    loader = ps.memory({"image": images}).batch(4).loader(threads=1)
    sheets = [ps.show(step) for step in loader]
    for number, sheet in enumerate(sheets):
        assert all((found == image).all() for found, image in zip(Page(sheet.html).images(), images[4 * number :]))


def test_a_png_has_the_grid_and_the_frames(tmp_path):
    columns = overlays()
    del columns["mask"], columns["keypoints"]
    columns["image"][1] = pixels(40, 60, 3)
    ps.show(step_of(columns), columns=1).save(tmp_path / "look.png")
    grid = decoded((tmp_path / "look.png").read_bytes())
    assert grid.shape == (2 * 48 + 8, 60 + 16, 3)
    first, second = grid[8:48, 8:68].astype(int), grid[56:96, 8:68]
    expected = np.full((40, 60, 3), 100)
    for left, top, right, bottom, colour in ((4, 3, 20, 13, (60, 180, 75)), (-5, 10, 30, 30, (230, 25, 75))):
        frame = np.zeros((40, 60), bool)
        frame[top:bottom, max(left, 0) : right] = True
        frame[top + 1 : bottom - 1, max(left + 1, 0) : right - 1] = False
        expected[frame] = colour
    assert (first == expected).all()
    columns["image"][1, 5:10, 5:9][[0, -1]] = columns["image"][1, 5:10, 5:9][:, [0, -1]] = (255, 225, 25)
    assert (second == columns["image"][1]).all()
    grid[8:48, 8:68] = grid[56:96, 8:68] = 255
    assert (grid == 255).all()


def test_a_png_has_the_masks_and_the_points(tmp_path):
    columns = overlays()
    del columns["boxes"], columns["labels"]
    ps.show(step_of(columns)).save(tmp_path / "look.PNG")
    image = decoded((tmp_path / "look.PNG").read_bytes())[8:48, 8:68]
    assert image[0, 0].tolist() == [100] * 3 and image[20, 40].tolist() == [50] * 3
    assert image[5, 5].tolist() == [(100 * 127 + colour * 128 + 127) // 255 for colour in (60, 180, 75)]
    assert image[11, 10].tolist() == [230, 25, 75] and image[11, 12].tolist() == [0, 0, 0] and image[21, 20].tolist() == [50] * 3


def test_grey_images_and_views_are_joined_in_a_png(tmp_path):
    grey, small = pixels(2, 10, 12, 1), pixels(2, 2, 4, 5, 3)
    ps.show(step_of({"grey": grey, "small": small})).save(tmp_path / "look.png")
    grid = decoded((tmp_path / "look.png").read_bytes())
    assert grid.shape == (26, 2 * (12 + 2 + 12 + 8) + 8, 3)
    assert (grid[8:18, 42:54] == grey[1]).all() and (grid[8:12, 56:61] == small[1, 0]).all() and (grid[8:12, 63:68] == small[1, 1]).all()


def test_files_are_html_or_png(tmp_path):
    sheet = ps.show(step_of({"image": pixels(1, 8, 8, 3)}))
    sheet.save(tmp_path / "look.html")
    assert (tmp_path / "look.html").read_text(encoding="utf-8") == sheet.html
    for name in ("look.jpg", "look"):
        with pytest.raises(ValueError, match=rf"\.html or \.png, found '.*{name}'"):
            sheet.save(tmp_path / name)
    with pytest.raises(OSError):
        sheet.save(tmp_path / "nowhere" / "look.png")


def test_fields_that_do_not_fit_are_errors(damaged):
    columns = overlays()
    step = step_of(columns)
    for option, field, found in (
        ("boxes", "image", r"u8 \[2,40,60,3\]"),
        ("keypoints", "boxes", r"f32 \[2,3,4\]"),
        ("masks", "labels", r"i64 \[2,3\]"),
        ("labels", "mask", r"u8 \[2,40,60\]"),
    ):
        with pytest.raises(ValueError, match=rf"{option}='{field}': expected .*, found .*{found}"):
            ps.show(step, **{option: field})
        with pytest.raises(ValueError, match=rf"{option}='none', and there is no such field: .*boxes f32 \[2,3,4\]"):
            ps.show(step, **{option: "none"})
    with pytest.raises(ValueError, match=r"masks='mask': expected integers \[B,40,60\], or u8 or bool \[B,n,40,60\], found u8 \[2,40,59\]"):
        ps.show(step_of({**columns, "mask": columns["mask"][:, :, 1:].copy()}), masks="mask")
    with pytest.raises(ValueError, match=r"no field of images: there are labels i64 \[2,3\], boxes.*floats \[B,H,W,C\]"):
        ps.show(step_of({"labels": columns["labels"], "boxes": columns["boxes"]}))
    with pytest.raises(ValueError, match="most is at least 1, found 0"):
        ps.show(step, most=0)
    with pytest.raises(ValueError, match="columns is at least 1"):
        ps.show(step, columns=0)
    with pytest.raises(TypeError, match="found dict"):
        ps.show(dict(step.items()))  # type: ignore[arg-type]
    views = step_of({"image": pixels(2, 2, 40, 60, 3), "boxes": columns["boxes"], "labels": columns["labels"]})
    with pytest.raises(ValueError, match="all fields have views"):
        ps.show(views, boxes="boxes")
    assert any("all fields have views" in text for text in page_of(views).texts("p")) and not page_of(views).all("rect")
    assert "labels 1, 0, 0" in page_of(views).texts("figcaption")[0]


def test_a_default_that_does_not_fit_is_told_of():
    page = page_of(step_of({**overlays(), "boxes": np.zeros((2, 4), np.float32)}))
    assert not page.all("rect") and any("boxes f32 [2,4] is not drawn: boxes are floats [B,n,4]" in text for text in page.texts("p"))


def test_a_step_of_several_devices_is_shown_by_parts():
    images = pixels(4, 8, 8, 3)
    (step,) = ps.memory({"image": images}).batch(4).prefetch_to_devices("host:2").loader(threads=1)
    with pytest.raises(ValueError, match=r"this step has 2: choose a part, show\(step\.parts\[0\]\)"):
        ps.show(step)
    page = page_of(step.parts[1])
    assert (page.images()[1] == images[3]).all() and page.texts("figcaption")[1].startswith("sample 3")


def test_a_batch_on_a_gpu_is_copied_by_torch(monkeypatch):
    """With stand-ins for both."""
    values = np.arange(12, dtype=np.float16).reshape(4, 3)

    class OnGpu:
        device, dtype = SimpleNamespace(kind="cuda"), "bf16"

        def __getitem__(self, rows):
            on_host = SimpleNamespace(numpy=lambda: values[rows].astype(np.float32))
            return SimpleNamespace(float=lambda: SimpleNamespace(cpu=lambda: on_host))

    from penstock import _sheet

    tensor: Any = OnGpu()
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_dlpack=lambda tensor: tensor))
    assert _sheet._host_rows(tensor, 2).tolist() == values[:2].tolist()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ps.Error, match="torch copies it to the host: pip install torch"):
        _sheet._host_rows(tensor, 2)


@pytest.mark.skipif(ps.gpu_count() == 0, reason="no GPU")
def test_a_batch_on_a_gpu_is_shown():
    pytest.importorskip("torch", reason="torch is not installed")
    images = pixels(4, 8, 8, 3)
    step = next(ps.memory({"image": images}).batch(4).prefetch_to_devices("cuda:0").loader())
    assert all((found == image).all() for found, image in zip(page_of(step).images(), images, strict=True))


def test_streams_and_data_sets_of_python_are_shown():
    images = pixels(3, 8, 8, 3)
    stream = ps.generator({"image": ("u8", (8, 8, 3))}, [{"image": image} for image in images], name="camera").batch(3)
    items = ps.Dataset([{"image": image} for image in images]).batch(3)
    for plan in (stream, items):
        page = page_of(next(plan.loader()))
        assert (page.images()[2] == images[2]).all() and page.texts("figcaption")[2].startswith("sample 2|")


def test_numpy_is_imported_when_something_is_shown():
    run_python("import sys, penstock as ps; ps.show; assert 'numpy' not in sys.modules")


def look(*arguments: Any, where: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock", "look", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(Path(ps.__file__).parents[1])}
    return subprocess.run(command, capture_output=True, text=True, cwd=where, timeout=seconds_left(), check=False, env=environment)


def test_the_command_shows_a_plan(images, tmp_path):
    plan = ps.image_folder(images).seed(3).shuffle().map(ps.decode_image(crop=ps.random_resized_crop(24), flip=0.5)).batch(6)
    (tmp_path / "plan.json").write_text(plan.to_json())
    done = look("plan.json", "--steps", 2, "--most", 4, where=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "look.html\n", "")
    page = Page((tmp_path / "look.html").read_text(encoding="utf-8"))
    wanted = [image for step, _ in zip(plan.loader(threads=1), range(2)) for image in step["image"].copy()[:4]]
    assert all((found == image).all() for found, image in zip(page.images(), wanted, strict=True))
    assert re.match(rf"sample \d+\|label \d ({'|'.join(plan.class_names)})\|", page.texts("figcaption")[0])


def test_the_command_shows_a_folder(images, tmp_path):
    done = look("--folder", images, "--crop", 40, "--most", 10, "--output", "sheet.png", where=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "sheet.png\n", "")
    assert decoded((tmp_path / "sheet.png").read_bytes()).shape == (2 * 48 + 8, 8 * 48 + 8, 3)
    assert main(["look", "--folder", str(images), "--output", str(tmp_path / "all.html")]) == 0
    page = Page((tmp_path / "all.html").read_text(encoding="utf-8"))
    assert len(page.all("figure")) == 40 and page.all("svg")[0]["viewbox"] == "0 0 224 224"


def test_plans_that_are_not_complete_are_completed(images, tmp_path):
    flags = [str(tmp_path / "plan.json"), "--output", str(tmp_path / "look.html")]
    plan = ps.images(images).repeat().map(ps.decode_image(crop=ps.resize_to(8)))
    plan.save(tmp_path / "plan.json")
    assert main(["look", *flags, "--most", "3"]) == 0
    assert len(Page((tmp_path / "look.html").read_text(encoding="utf-8")).all("figure")) == 3
    plan.batch(6).prefetch_to_devices("host:2").save(tmp_path / "plan.json")
    assert main(["look", *flags]) == 0
    assert len(Page((tmp_path / "look.html").read_text(encoding="utf-8")).all("figure")) == 6


def test_plans_with_functions_need_a_word(images, tmp_path, capsys):
    turn = ps.map_function(np.flip, inputs=["image"], outputs={"image": ("u8", (8, 8, 3))})
    plan = ps.images(images).map(ps.decode_image(crop=ps.resize_to(8))).map(turn).batch(2)
    plan.save(tmp_path / "plan.json", allow_pickle=True)
    flags = [str(tmp_path / "plan.json"), "--output", str(tmp_path / "look.html")]
    assert main(["look", *flags]) == 1
    assert "allow_pickle" in capsys.readouterr().err
    assert main(["look", *flags, "--allow-pickle"]) == 0
    page = Page((tmp_path / "look.html").read_text(encoding="utf-8"))
    assert (page.images()[1] == np.asarray(next(plan.loader(threads=1))["image"])[1]).all()


def test_bad_files_are_1_and_wrong_flags_2(images, damaged, tmp_path, capsys):
    (tmp_path / "broken.json").write_text("{")
    ps.images(images).save(tmp_path / "encoded.json")
    np.save(tmp_path / "labels.npy", np.arange(3))
    ps.arrays({"label": tmp_path / "labels.npy"}).batch(3).save(tmp_path / "labels.json")
    bad = ps.image_folder(damaged).map(ps.decode_image(crop=ps.resize_to(16))).batch(5)
    bad.save(tmp_path / "bad.json")
    out = ["--output", str(tmp_path / "look.html")]
    for name, said in (("nowhere.json", "nowhere.json"), ("broken.json", "broken.json"), ("encoded.json", "differ in size"),
                       ("bad.json", "bad.jpg"), ("labels.json", "no field of images: there are label i64")):  # fmt: skip
        assert main(["look", str(tmp_path / name), *out]) == 1
        error = capsys.readouterr().err
        assert said in error and error.startswith("penstock look: ") and error.count("\n") == 1
    assert main(["look", "--folder", str(tmp_path / "nowhere"), *out]) == 1
    assert "nowhere" in capsys.readouterr().err and not (tmp_path / "look.html").exists()
    for flags, said in (
        ([], "either PLAN.json or --folder"),
        (["plan.json", "--folder", str(images)], "either PLAN.json or --folder"),
        (["plan.json", "--crop", "8"], "--crop is for --folder"),
        (["plan.json", "--steps", "0"], "from 1, found '0'"),
        (["plan.json", "--most", "x"], "from 1, found 'x'"),
        (["plan.json", "--output", "look.jpg"], ".html or .png, found 'look.jpg'"),
        (["plan.json", "--output", "look.png", "--steps", "2"], "a .png shows one step"),
    ):
        assert main(["look", *flags]) == 2
        assert said in capsys.readouterr().err
    assert main(["look", "--help"]) == 0 and "--folder" in capsys.readouterr().out
    assert main(["--help"]) == 0 and "penstock look PLAN.json" in capsys.readouterr().out
