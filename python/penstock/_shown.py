"""How plans look: as the Python that makes them, and as tables in notebooks."""

from __future__ import annotations

import html
import inspect
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import penstock
from penstock._errors import Error

if TYPE_CHECKING:
    from penstock._penstock import Augmentation, Dataset

MOST_NUMBERS = 20  # of a list, in a text for people
EXTENSIONS = [".jpg", ".jpeg", ".png", ".webp"]


class NotWritten(Exception):
    """There is no Python text for it: a function, an array in memory, a long list."""


def plan_text(plan: Dataset) -> str:
    """`ps.image_folder('train').shuffle().batch(256)`; describe() of plans that are more than calls."""
    try:
        return _operations(json.loads(plan.to_json())["operations"])
    except (Error, NotWritten):
        return plan.describe()


def augmentation_text(augmentation: Augmentation) -> str:
    """`ps.augment.rotate((-30.0, 30.0))`."""
    try:
        (text,) = _augmentations([json.loads(augmentation.to_json())])
    except NotWritten:
        return augmentation.to_json()
    return text


def plan_html(plan: Dataset) -> str:
    """A line for each operation, and what a sample is."""
    lines = html.escape(plan_text(plan)).replace(").", ")<br>&nbsp;&nbsp;.")
    size = "a stream" if plan.is_stream else "endless" if plan.size is None else f"{plan.size:,}"
    unit = "global batches" if plan.batch_size else "samples"
    fields = _table(("field", "dtype", "shape"), [(field.name, field.dtype, field.shape) for field in plan.fields])
    return f"<code>{lines}</code><p>{size}{'' if plan.is_stream else ' ' + unit}</p>{fields}"


def batch_html(batch: Any) -> str:
    """Of a DeviceBatch or a Step."""
    parts = getattr(batch, "parts", [batch])
    rows = [(name, tensor.dtype, tensor.shape, part.device) for part in parts for name, tensor in part.items()]
    return _table(("field", "dtype", "shape", "device"), rows)


def stats_html(stats: Any) -> str:
    """Where the time went, by stage."""
    rows = [(name, f"{time.wait_s:.2f}", f"{time.busy_s:.2f}") for name, time in stats.stages.items()]
    return f"<code>{html.escape(repr(stats))}</code>{_table(('stage', 'waited, s', 'busy, s'), rows)}"


def loader_html(loader: Any) -> str:
    """What it delivers, and how fast."""
    return f"<code>{html.escape(repr(loader))}</code>{stats_html(loader.stats())}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    def line(cells: Sequence[Any], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    return f"<table>{line(heads, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"


def _operations(operations: Sequence[Mapping[str, Any]]) -> str:
    return "".join(_operation(dict(operation)) for operation in operations)


def _operation(operation: dict[str, Any]) -> str:
    name = operation.pop("op")
    operation.update(operation.pop("speed", {}))
    if name == "read":
        return _source(operation.get("source"))
    if name in ("mix", "concatenate", "zip"):
        parts = ", ".join(_operations(part) for part in operation.pop("datasets"))
        options = _arguments(getattr(penstock, name), operation, ("datasets",))
        return f"ps.{name}([{parts}]{', ' if options else ''}{options})"
    if name == "map":
        return f".map({_transform(operation['transform'])})"
    if name == "filter" or any(isinstance(value, list) and len(value) > MOST_NUMBERS for value in operation.values()):
        raise NotWritten
    if name == "batch" and "by_aspect" in operation:  # its sizes are a long list
        raise NotWritten
    if name == "batch" and (by_length := operation.pop("by_length", None)) is not None:
        name = "batch_by_length"
        operation |= by_length
        padded = {field["name"]: field["value"] for field in by_length["fields"]}
        operation["fields"] = padded if any(padded.values()) else list(padded)
    if name == "transform_on_device":
        operation["augment"] = _augmentations(operation.get("augment", []))
        if operation["erase"]["probability"] == 0:
            del operation["erase"]
        else:
            operation["erase"] = Text(_call("RandomErasing", operation["erase"]))
    return "." + name + "(" + _arguments(getattr(penstock.Dataset, name), operation) + ")"


def _source(source: Any) -> str:
    if not isinstance(source, Mapping):
        raise NotWritten
    ((name, options),) = source.items()
    options = dict(options)
    if options.get("storage"):
        raise NotWritten
    if name == "image_folder":
        options["folder"] = options.pop("path")
        options["labels"] = options["labels"] or None
        if options["extensions"] == EXTENSIONS:
            del options["extensions"]
    elif name == "arrays":
        fields = ", ".join(f"{field['name']!r}: {_array(field)}" for field in options["fields"])
        return f"ps.arrays({{{fields}}})"
    elif name == "rename":
        names: dict[str, list[str]] = {}
        for one in options["names"]:
            names.setdefault(one["field"], []).append(one["name"])
        return f"{_source(options['source'])}.rename({ {field: new[0] if len(new) == 1 else new for field, new in names.items()} })"
    elif name in ("blocks", "pack"):
        documents = _source(options.pop("source"))
        return f"{documents}.{name}({_arguments(getattr(penstock.Dataset, name), options)})"
    elif name in ("token_files", "megatron"):
        for paths in ("files", "prefixes"):
            if len(options.get(paths, ())) == 1:
                options[paths] = options[paths][0]
    elif name != "synthetic_images":
        raise NotWritten
    return _call(name, options)


def _array(field: Mapping[str, Any]) -> str:
    plain = not field["shape"] and not field["offset"] and not field.get("dtype")
    return repr(field["path"]) if plain else _call("ArrayField", field)


def _transform(transform: Mapping[str, Any]) -> str:
    ((name, options),) = transform.items()
    options = dict(options)
    if name in ("decode_image", "crop_image"):
        options["crop"] = _crop(options["crop"])
    elif name == "decode_views":
        views = [(view.pop("field"), view | {"crop": _crop(view["crop"])}) for view in map(dict, options["views"])]
        options["views"] = Text("{" + ", ".join(f"{field!r}: {_call('ImageView', view)}" for field, view in views) + "}")
    elif name == "augment_image":
        options["operations"] = _augmentations(options["operations"])
    elif name != "pad":
        raise NotWritten
    if name in ("decode_image", "decode_views"):
        smooth = options.pop("chroma") == "smooth"
        libjpeg = options.pop("speed")["decoder"] == "libjpeg"
        if smooth and libjpeg:
            raise NotWritten
        options["decoder"] = "libjpeg" if libjpeg else "reference" if smooth else "fast"
        if "background" in options:
            options["background"] = _color(options["background"])
    return _call(name, options)


def _crop(crop: Mapping[str, Any]) -> Text:
    ((name, options),) = crop.items()
    options = dict(options)
    size = options.pop("size")
    if name == "resize_to":
        return Text(f"ps.resize_to({size[0]}, {size[1]})")
    if "fill" in options:
        options["fill"] = _color(options["fill"])
    return Text(_call(name, {"size": size[0] if size[0] == size[1] else size} | options))


def _color(levels: Sequence[int]) -> Any:
    """One number where all are the same."""
    return levels[0] if len(set(levels)) == 1 else list(levels)


def _augmentations(operations: Sequence[Mapping[str, Any]]) -> list[Text]:
    return [Text(_augmentation(name, dict(options))) for one in operations for name, options in one.items()]


def _augmentation(name: str, options: dict[str, Any]) -> str:
    if name == "nothing":
        raise NotWritten
    if isinstance(options.get("operations"), list):
        options["operations"] = _augmentations(options["operations"])
    if "fill" in options:
        options["fill"] = _color(options["fill"])
    return f"ps.augment.{name}({_arguments(getattr(penstock.augment, name), options)})"


class Text(str):
    """Python that is written as it is."""


def _call(name: str, values: Mapping[str, Any]) -> str:
    return f"ps.{name}({_arguments(getattr(penstock, name), values)})"


def _arguments(function: Any, values: Mapping[str, Any], left_out: Sequence[str] = ()) -> str:
    """What differs from the defaults; what must be given, by position."""
    written = []
    in_place = True  # none before it is left out
    for parameter in inspect.signature(function).parameters.values():
        name = parameter.name
        if name == "self" or name in left_out:
            continue
        if name not in values or _same(values[name], parameter.default):
            in_place = False
            continue
        value = _value(values[name])
        by_position = in_place and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        written.append(value if by_position else f"{name}={value}")
    return ", ".join(written)


def _same(value: Any, default: Any) -> bool:
    return bool(value == default) or (isinstance(default, tuple) and value == list(default))


def _value(value: Any) -> str:
    if isinstance(value, Text):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    return repr(value)
