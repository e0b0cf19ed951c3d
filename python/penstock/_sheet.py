"""What a contact sheet shows, read from a batch, and how it is drawn: as HTML and as a PNG."""

from __future__ import annotations

import base64
import dataclasses
import html
import importlib
import math
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from penstock._errors import Error
from penstock._penstock import DeviceBatch, Fault, RecordName, Step, Tensor

Array = NDArray[Any]

FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
SHOWN = "u8, u16 or floats [B,H,W,C] or [B,C,H,W], where C is 1 or 3, and the same with views, [B,V,...]"
NAME_LENGTH = 24
GAP = 8  # pixels between the samples of a PNG,
SMALL_GAP = 2  # and between the images and views of a sample
# The colour of class 0, of class 1 and so on, and again from the first. In masks class 0, often the background, has BACKGROUND.
PALETTE = (
    (230, 25, 75), (60, 180, 75), (255, 225, 25), (67, 99, 216), (245, 130, 49), (145, 30, 180), (66, 212, 244), (240, 50, 230),
    (191, 239, 69), (250, 190, 212), (70, 153, 144), (220, 190, 255), (154, 99, 36), (255, 250, 200), (128, 0, 0), (170, 255, 195),
    (128, 128, 0), (255, 216, 177), (0, 0, 117), (169, 169, 169),
)  # fmt: skip
BACKGROUND = (0, 0, 0)
MASK_OPACITY = 128  # of 255

STYLE = """
.penstock-sheet{background:#fff;color:#222;padding:8px;font:12px/1.35 system-ui,sans-serif}
.penstock-sheet p{margin:0 0 6px;color:#222}
.penstock-sheet .rows{display:grid;gap:8px}
.penstock-sheet figure{margin:0;min-width:0}
.penstock-sheet .pictures{display:flex;gap:2px;align-items:flex-start}
.penstock-sheet svg{display:block;min-width:0;height:auto;background:#eee}
.penstock-sheet svg.small{image-rendering:pixelated}
.penstock-sheet rect,.penstock-sheet polygon{fill:none;stroke-width:2;vector-effect:non-scaling-stroke}
.penstock-sheet circle{stroke:#000;stroke-width:1;vector-effect:non-scaling-stroke}
.penstock-sheet text{font-family:system-ui,sans-serif;fill:#fff;stroke:#000;stroke-width:.2em;paint-order:stroke}
.penstock-sheet figcaption{color:#222;overflow-wrap:anywhere}
.penstock-sheet .name{color:#666;display:block;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.penstock-sheet .bad{color:#b00020}
"""


@dataclasses.dataclass
class Picture:
    """An image of a row, and what is drawn on it."""

    field: str
    pixels: Array  # u8 [H,W,C]
    mask: Array | None = None  # integers [H,W]
    boxes: list[tuple[float, float, float, float, int, str]] = dataclasses.field(default_factory=list)  # sides, class or place, text
    turned: list[tuple[list[tuple[float, float]], int, str]] = dataclasses.field(default_factory=list)  # corners, the same
    points: list[tuple[float, float, int]] = dataclasses.field(default_factory=list)  # x, y, and which of its kind


@dataclasses.dataclass
class Figure:
    """A row: its images, and the lines below them."""

    pictures: list[Picture]
    lines: list[str]
    name: str  # of its record; "" where there is none
    full_name: str
    warning: str  # why its pixels are not those of the sample, or ""


@dataclasses.dataclass
class Sheet:
    title: str
    notes: list[str]
    figures: list[Figure]
    columns: int


@dataclasses.dataclass
class _Overlays:
    """The fields that are drawn on an image, by their names, or None."""

    target: str | None
    boxes: str | None
    corners: str | None
    keypoints: str | None
    masks: str | None
    labels: list[str]


def read_sheet(
    step: Step | DeviceBatch,
    most: int,
    columns: int,
    given: dict[str, str | None],
    class_names: Sequence[str] | None,
) -> Sheet:
    """Copies what is shown; `given` has the fields' names of boxes, corners, keypoints, masks and labels, or None for the default."""
    batch, faults = _part_of(step)
    for option, value in (("most", most), ("columns", columns)):
        if value < 1:
            raise ValueError(f"show: {option} is at least 1, found {value}")
    notes: list[str] = []
    images, overlays = _choose_fields(batch, given, notes)
    rows = min(most, batch.size)
    drawn = [name for name in (overlays.boxes, overlays.corners, overlays.keypoints, *overlays.labels) if name]
    values = {name: _host_rows(batch[name], rows) for name in drawn}
    beside = _labels_of_boxes(values, overlays)
    if overlays.masks is not None:
        values[overlays.masks] = _masks_of(batch[overlays.masks], rows, values[beside] if beside else None)
    pixels = {name: _as_levels(_host_rows(batch[name], rows), batch[name].dtype, axis) for name, axis in images.items()}
    notes += _notes_of_levels({name: batch[name].dtype for name in images})
    figures = [Figure([Picture(name, _side_by_side(pixels[name][row])) for name in images], [], "", "", "") for row in range(rows)]
    for row, figure in enumerate(figures):
        for picture in figure.pictures:
            if picture.field == overlays.target:
                _add_overlays(picture, row, values, overlays, class_names)
    _add_captions(batch, faults, figures, {name: values[name] for name in overlays.labels if name != beside}, class_names)
    shown = f"{rows} of {batch.size} rows" if rows < batch.size else f"{rows} row{'' if rows == 1 else 's'}"
    return Sheet(f"step {batch.step}: {shown} of {', '.join(images)}", notes, figures, columns)


def _part_of(step: Step | DeviceBatch) -> tuple[DeviceBatch, list[Fault]]:
    if isinstance(step, DeviceBatch):
        return step, []
    if not isinstance(step, Step):
        raise TypeError(
            f"show: expected a step of a loader, or a part of one, found {type(step).__name__}: take plan.loader().batch_at(0), for example"
        )
    if len(step.parts) != 1:
        raise ValueError(f"show: it shows the rows of one device, and this step has {len(step.parts)}: choose a part, show(step.parts[0])")
    return step.parts[0], step.faults


def _text_of(tensor: Tensor) -> str:
    return f"{tensor.dtype} [{','.join(str(side) for side in tensor.shape)}]"


def _host_rows(tensor: Tensor, rows: int) -> Array:
    """A copy of the first rows, since the batch's memory is used again."""
    if tensor.device.kind == "host":
        return numpy.array(tensor.numpy()[:rows])
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        where = tensor.device
        raise Error(f"show: the batch is on {where}, and torch copies it to the host: pip install torch, or load on the host") from error
    taken = torch.from_dlpack(tensor)[:rows]
    found: Array = (taken.float() if tensor.dtype == "bf16" else taken).cpu().numpy()
    return found


def _axis_of_channels(tensor: Tensor) -> int | None:
    """Of a field of images: -1 or -3. None of all others."""
    shape = tensor.shape
    if len(shape) not in (4, 5) or tensor.dtype not in ("u8", "u16", *FLOATS):
        return None
    return -1 if shape[-1] in (1, 3) else -3 if shape[-3] in (1, 3) else None


def _choose_fields(batch: DeviceBatch, given: dict[str, str | None], notes: list[str]) -> tuple[dict[str, int], _Overlays]:
    """The fields of images, with the axis of their channels, and what is drawn on them."""

    def find(option: str, defaults: Sequence[str], fits: Callable[[Tensor], bool], wanted: str) -> list[str]:
        name, found = given.get(option), []
        for one in [name] if name is not None else [default for default in defaults if default in batch]:
            if one not in batch:
                raise ValueError(f"show: {option}='{one}', and there is no such field: there are {_fields_of(batch)}")
            if fits(batch[one]):
                found.append(one)
            elif name is not None:
                raise ValueError(f"show: {option}='{one}': expected {wanted}, found {_text_of(batch[one])}")
            elif _axis_of_channels(batch[one]) is None:  # else it is shown itself
                notes.append(f"{one} {_text_of(batch[one])} is not drawn: {option} are {wanted}.")
        return found

    boxes = find("boxes", ["boxes"], lambda t: t.dtype in FLOATS and t.ndim == 3 and t.shape[2] == 4, "floats [B,n,4]")
    corners = find("corners", ["corners"], lambda t: t.dtype in FLOATS and t.ndim == 4 and t.shape[2:] == (4, 2), "floats [B,n,4,2]")
    keypoints = find("keypoints", ["keypoints"], lambda t: t.dtype in FLOATS and t.ndim == 4 and t.shape[3] == 3, "floats [B,n,k,3]")
    labels = find("labels", ["label", "labels"], lambda t: t.dtype in INTEGERS and t.ndim in (1, 2), "integers [B] or [B,n]")
    named = given.get("masks") or "masks"
    are_of_instances = named in batch and _may_be_of_instances(batch[named])
    no_images = [*corners, *keypoints, *([named] if are_of_instances else [])]
    axes = {name: _axis_of_channels(tensor) for name, tensor in batch.items() if name not in no_images}
    images = {name: axis for name, axis in axes.items() if axis is not None}
    if not images:
        raise ValueError(f"show: there is no field of images: there are {_fields_of(batch)}; shown are {SHOWN}")
    single = [name for name in images if batch[name].ndim == 4]
    target = "image" if "image" in single else single[0] if single else None
    size = _size_of(batch[target], images[target]) if target else None
    sides = f"{size[0]},{size[1]}" if size else "H,W"
    wanted = f"integers [B,{sides}], or u8 or bool [B,n,{sides}]"

    def is_mask(tensor: Tensor) -> bool:
        fits = tensor.dtype in INTEGERS and tensor.ndim == 3 or _may_be_of_instances(tensor)
        return fits and size in (None, tensor.shape[-2:])

    masks = find("masks", ["mask", "masks"], is_mask, wanted)
    if target is None and (boxes or corners or keypoints or masks):
        why = f"{', '.join([*boxes, *corners, *keypoints, *masks])}: they are drawn on single images, and all fields have views"
        if any(given.get(option) is not None for option in ("boxes", "corners", "keypoints", "masks")):
            raise ValueError(f"show: {why}")
        notes.append(f"Not drawn are {why}.")
        boxes, corners, keypoints, masks = [], [], [], []
    return images, _Overlays(target, _first(boxes), _first(corners), _first(keypoints), _first(masks), labels)


def _may_be_of_instances(tensor: Tensor) -> bool:
    """Whether it is [B,n,H,W], one mask for each instance, and no field of images."""
    return tensor.ndim == 4 and tensor.dtype in ("u8", "bool") and tensor.shape[-1] not in (1, 3)


def _first(names: list[str]) -> str | None:
    return names[0] if names else None


def _fields_of(batch: DeviceBatch) -> str:
    return ", ".join(f"{name} {_text_of(tensor)}" for name, tensor in batch.items()) or "none"


def _size_of(tensor: Tensor, axis: int) -> tuple[int, ...]:
    return tensor.shape[-3:-1] if axis == -1 else tensor.shape[-2:]


def _as_levels(images: Array, dtype: str, axis: int) -> Array:
    """As u8 [B,...,H,W,C]."""
    images = numpy.moveaxis(images, axis, -1)
    if dtype == "u8":
        return images
    if dtype == "u16":
        scaled: Array = ((images.astype(numpy.uint32) + 128) // 257).astype(numpy.uint8)
        return scaled
    return numpy.stack([_stretched(image.astype(numpy.float64)) for image in images]) if len(images) else images.astype(numpy.uint8)


def _stretched(image: Array) -> Array:
    """From the smallest to the largest value; what is no finite number is black, and so is an image of one value."""
    finite = numpy.isfinite(image)
    if not finite.any():
        return numpy.zeros(image.shape, numpy.uint8)
    low, high = image[finite].min(), image[finite].max()
    levels = numpy.where(finite, image - low, 0) * (255 / (high - low) if high > low else 0)
    found: Array = numpy.rint(levels).astype(numpy.uint8)
    return found


def _notes_of_levels(dtypes: dict[str, str]) -> list[str]:
    stretched = [name for name, dtype in dtypes.items() if dtype in FLOATS]
    divided = [name for name, dtype in dtypes.items() if dtype == "u16"]
    notes = []
    if stretched:
        names = ", ".join(stretched)
        notes.append(f"Colours are not those of the files: the floats of {names} are stretched, in each row from the least to the largest.")
    if divided:
        notes.append(f"The 16 bits of {', '.join(divided)} are divided by 257.")
    return notes


def _side_by_side(image: Array) -> Array:
    """Views [V,H,W,C] as one image, with white between them; an image as it is."""
    if image.ndim == 3:
        return image
    white = numpy.full((image.shape[1], SMALL_GAP, image.shape[3]), 255, numpy.uint8)
    pieces = [piece for view in image for piece in (white, view)]
    return numpy.concatenate(pieces[1:], axis=1)


def _labels_of_boxes(values: dict[str, Array], overlays: _Overlays) -> str | None:
    """The field that has a label for each box."""
    places = overlays.boxes or overlays.corners
    if places is None:
        return None
    wanted = values[places].shape[:2]
    return _first([name for name in overlays.labels if values[name].shape == wanted])


def _add_overlays(picture: Picture, row: int, values: dict[str, Array], overlays: _Overlays, class_names: Sequence[str] | None) -> None:
    labels = _labels_of_boxes(values, overlays)

    def number_and_text(place: int) -> tuple[int, str]:
        number = int(values[labels][row, place]) if labels else place
        return number, _class_text(number, class_names) if labels else ""

    if overlays.corners is not None:
        for place, points in enumerate(values[overlays.corners][row].tolist()):
            if any(point != points[0] for point in points) and all(math.isfinite(number) for point in points for number in point):
                picture.turned.append(([(x, y) for x, y in points], *number_and_text(place)))
    elif overlays.boxes is not None:
        for place, (x0, y0, x1, y1) in enumerate(values[overlays.boxes][row].tolist()):
            if x1 > x0 and y1 > y0 and all(map(math.isfinite, (x0, y0, x1, y1))):
                picture.boxes.append((x0, y0, x1, y1, *number_and_text(place)))
    if overlays.keypoints is not None:
        for points in values[overlays.keypoints][row].tolist():
            for kind, (x, y, visibility) in enumerate(points):
                if visibility != 0 and math.isfinite(x) and math.isfinite(y):
                    picture.points.append((x, y, kind))
    if overlays.masks is not None:
        picture.mask = values[overlays.masks][row]


def _masks_of(tensor: Tensor, rows: int, labels: Array | None) -> Array:
    """As integers [rows,H,W]. Of masks of instances, [B,n,H,W], each has the colour of its box, and a later one hides an earlier one."""
    if tensor.ndim == 3:
        return _host_rows(tensor, rows)
    given = tensor.numpy() if tensor.device.kind == "host" else _host_rows(tensor, rows)  # large: not copied
    joined = numpy.full((rows, *tensor.shape[2:]), -1, numpy.int64)
    for row in range(rows):
        for place in range(tensor.shape[1]):
            number = int(labels[row, place]) if labels is not None and place < labels.shape[1] else place
            joined[row][given[row, place] != 0] = number % len(PALETTE) or len(PALETTE)  # 0 is a background
    return joined


def _class_text(number: int, class_names: Sequence[str] | None) -> str:
    name = class_names[number] if class_names is not None and 0 <= number < len(class_names) else ""
    return f"{number} {name}" if name else str(number)


def _add_captions(
    batch: DeviceBatch, faults: list[Fault], figures: list[Figure], labels: dict[str, Array], class_names: Sequence[str] | None
) -> None:
    samples, names, numbers = batch.samples, batch.names(), batch.row_numbers
    valid = _host_rows(batch["valid"], len(figures)) if "valid" in batch else numpy.ones(len(figures), bool)
    reasons = {fault.row: fault.reason for fault in faults}
    for row, figure in enumerate(figures):
        if row >= len(samples):
            figure.warning = "padding: no sample"
            continue
        figure.lines.append(f"sample {samples[row].number}" + (f", draw {samples[row].draw}" if samples[row].draw else ""))
        figure.full_name = str(names[row])
        figure.name = _name_of(names[row])
        if not valid[row]:
            figure.warning = f"masked: {reasons.get(numbers[row], 'a bad sample')}"
            continue
        if numbers[row] in reasons:
            figure.warning = "in place of a bad sample"
        for name, found in labels.items():
            figure.lines.append(f"{name} " + ", ".join(_class_text(int(label), class_names) for label in numpy.atleast_1d(found[row])))


def _name_of(name: RecordName) -> str:
    """What fits below an image: the record's key, which is its file's name in a folder."""
    text = name.key or name.file.rpartition("/")[2] or str(name)
    if len(text) <= NAME_LENGTH:
        return text
    half = (NAME_LENGTH - 1) // 2
    return f"{text[:NAME_LENGTH - 1 - half]}…{text[-half:]}"


def make_png(pixels: Array) -> bytes:
    """A PNG of u8 [H,W,C]: grey, RGB or RGBA."""
    height, width, channels = pixels.shape
    # Each pixel less the one to its left (filter 1), which deflate packs better.
    lines = numpy.diff(pixels, axis=1, prepend=numpy.zeros((height, 1, channels), numpy.uint8)).reshape(height, -1)
    filtered = numpy.concatenate([numpy.ones((height, 1), numpy.uint8), lines], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(filtered.tobytes())) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def _colour(number: int) -> tuple[int, int, int]:
    return PALETTE[number % len(PALETTE)]


def _mask_colours(mask: Array) -> Array:
    """As RGBA, half transparent; 255 and negative numbers, with which masks are filled, are all transparent."""
    numbers = mask.astype(numpy.int64)
    colours = numpy.array(PALETTE, numpy.uint8)[numbers % len(PALETTE)]
    colours[numbers == 0] = BACKGROUND
    opacity = numpy.where((numbers < 0) | (numbers == 255), 0, MASK_OPACITY).astype(numpy.uint8)
    return numpy.concatenate([colours, opacity[..., None]], axis=2)


def _escaped(text: str) -> str:
    """Also of names that are not UTF-8."""
    return html.escape(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def sheet_html(sheet: Sheet) -> str:
    """As a part of a page, with its style."""
    columns = max(1, min(sheet.columns, len(sheet.figures)))
    widths = [sum(picture.pixels.shape[1] / picture.pixels.shape[0] for picture in figure.pictures) for figure in sheet.figures]
    limit = round(256 * min(4.0, max(1.0, *widths, 1.0)))
    rows = "".join(_figure_html(figure) for figure in sheet.figures)
    notes = "".join(f"<p>{_escaped(note)}</p>" for note in sheet.notes)
    grid = f'<div class="rows" style="grid-template-columns:repeat({columns},minmax(0,{limit}px))">{rows}</div>'
    return f'<div class="penstock-sheet"><style>{STYLE}</style><p>{_escaped(sheet.title)}</p>{notes}{grid}</div>'


def page_html(sheets: Sequence[Sheet]) -> str:
    """A file of its own."""
    head = '<head><meta charset="utf-8"><title>Penstock: a contact sheet</title></head>'
    return f'<!DOCTYPE html>\n<html lang="en">{head}<body>{"".join(sheet_html(sheet) for sheet in sheets)}</body></html>\n'


def _figure_html(figure: Figure) -> str:
    lines = [_escaped(line) for line in figure.lines]
    if figure.warning:
        lines.append(f'<strong class="bad">{_escaped(figure.warning)}</strong>')
    if figure.name:
        lines.append(f'<span class="name" title="{_escaped(figure.full_name)}">{_escaped(figure.name)}</span>')
    pictures = "".join(_picture_html(picture) for picture in figure.pictures)
    return f'<figure><div class="pictures">{pictures}</div><figcaption>{"<br>".join(lines)}</figcaption></figure>'


def _picture_html(picture: Picture) -> str:
    height, width = picture.pixels.shape[:2]
    parts = [_image_html(picture.pixels)]
    if picture.mask is not None:
        parts.append(_image_html(_mask_colours(picture.mask)))
    font = max(width, height) / 16

    def write(text: str, x: float, y: float) -> None:
        if text:
            below = max(y - font / 4, font)  # the text's base line; inside the box where there is no room above it
            parts.append(f'<text x="{max(x, 0) + font / 4:g}" y="{below:g}" font-size="{font:g}">{_escaped(text)}</text>')

    for x0, y0, x1, y1, number, text in picture.boxes:
        parts.append(f'<rect x="{x0:g}" y="{y0:g}" width="{x1 - x0:g}" height="{y1 - y0:g}" stroke="rgb{_colour(number)}"/>')
        write(text, x0, y0)
    for corners, number, text in picture.turned:
        parts.append(f'<polygon points="{" ".join(f"{x:g},{y:g}" for x, y in corners)}" stroke="rgb{_colour(number)}"/>')
        write(text, *min(corners, key=lambda corner: corner[1]))
    for x, y, kind in picture.points:
        parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{max(width, height) / 80:g}" fill="rgb{_colour(kind)}"/>')
    small = ' class="small"' if max(width, height) <= 96 else ""
    where = f'viewBox="0 0 {width} {height}" style="flex:{width / height:g} 1 0;aspect-ratio:{width}/{height}"'
    return f'<svg{small} {where} role="img" aria-label="{_escaped(picture.field)}">{"".join(parts)}</svg>'


def _image_html(pixels: Array) -> str:
    data = base64.b64encode(make_png(pixels)).decode("ascii")
    return f'<image width="{pixels.shape[1]}" height="{pixels.shape[0]}" href="data:image/png;base64,{data}"/>'


def sheet_png(sheet: Sheet) -> bytes:
    """The images in a grid, with what is drawn on them; without the captions."""
    rows = [_joined([_drawn(picture) for picture in figure.pictures], SMALL_GAP) for figure in sheet.figures]
    height, width = (max([row.shape[side] for row in rows], default=1) for side in (0, 1))
    columns = max(1, min(sheet.columns, len(rows)))
    lines = max(1, -(-len(rows) // columns))
    grid = numpy.full((lines * (height + GAP) + GAP, columns * (width + GAP) + GAP, 3), 255, numpy.uint8)
    for place, row in enumerate(rows):
        top, left = GAP + place // columns * (height + GAP), GAP + place % columns * (width + GAP)
        grid[top : top + row.shape[0], left : left + row.shape[1]] = row
    return make_png(grid)


def _joined(images: list[Array], gap: int) -> Array:
    """RGB images in a line, on white."""
    height = max(image.shape[0] for image in images)
    line = numpy.full((height, sum(image.shape[1] + gap for image in images) - gap, 3), 255, numpy.uint8)
    left = 0
    for image in images:
        line[: image.shape[0], left : left + image.shape[1]] = image
        left += image.shape[1] + gap
    return line


def _drawn(picture: Picture) -> Array:
    """RGB, with the mask, the boxes, also turned ones, and the points."""
    canvas = picture.pixels.repeat(3 // picture.pixels.shape[2], axis=2)
    if picture.mask is not None:
        colours = _mask_colours(picture.mask).astype(numpy.uint16)
        opacity = colours[..., 3:]
        canvas = ((canvas * (255 - opacity) + colours[..., :3] * opacity + 127) // 255).astype(numpy.uint8)

    def fill(left: int, top: int, right: int, bottom: int, colour: tuple[int, int, int]) -> None:
        canvas[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)] = colour

    thick = 2 if min(canvas.shape[:2]) >= 128 else 1
    for x0, y0, x1, y1, number, _text in picture.boxes:
        left, top, right, bottom = round(x0), round(y0), round(x1), round(y1)
        colour = _colour(number)
        fill(left, top, right, top + thick, colour)
        fill(left, bottom - thick, right, bottom, colour)
        fill(left, top, left + thick, bottom, colour)
        fill(right - thick, top, right, bottom, colour)
    for corners, number, _text in picture.turned:
        for begin, end in zip(corners, corners[1:] + corners[:1]):
            for left, top in _pixels_of_line(begin, end, (canvas.shape[1], canvas.shape[0])):
                fill(left, top, left + thick, top + thick, _colour(number))
    for x, y, kind in picture.points:
        for reach, colour in ((thick + 1, (0, 0, 0)), (thick, _colour(kind))):  # with a black edge
            fill(round(x) - reach, round(y) - reach, round(x) + reach + 1, round(y) + reach + 1, colour)
    return canvas


def _pixels_of_line(begin: tuple[float, float], end: tuple[float, float], size: tuple[int, int]) -> list[tuple[int, int]]:
    """Those from `begin` to `end` that lie in an image of this width and height (Liang and Barsky's clipping)."""
    first, last = 0.0, 1.0
    steps = tuple(there - here for here, there in zip(begin, end))
    for here, step, side in zip(begin, steps, size):
        if step == 0:
            if not 0 <= here <= side:
                return []
            continue
        enters, leaves = sorted((-here / step, (side - here) / step))
        first, last = max(first, enters), min(last, leaves)
    if first > last:
        return []
    count = math.ceil((last - first) * max(map(abs, steps))) + 1
    return [(round(begin[0] + at * steps[0]), round(begin[1] + at * steps[1])) for at in numpy.linspace(first, last, count).tolist()]
