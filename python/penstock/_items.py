"""What the items of a Python object are made of: Dataset(data)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy

from penstock._penstock import FieldSpec

Fields = Mapping[str, tuple[str, Sequence["int | None"]]]


def describe(data: Any, fields: Any, names: Sequence[str] | None) -> tuple[int, Any, str, str]:
    """The number of items, their fields, what to call the data, and a string that tells it from other data."""
    kind = getattr(data, "penstock_kind", type(data).__name__)
    if not hasattr(data, "__getitem__") or not hasattr(data, "__len__") or isinstance(data, (Mapping, str, bytes)):
        refuse(data, kind)
    if any(hasattr(data, rows) for rows in ("to_pylist", "to_dicts", "iloc")) and hasattr(data, "columns"):
        raise TypeError(
            f"Dataset(data): the items of this {kind} are its columns: memory({{name: column}}) takes columns, parquet(path) reads "
            "them in a file, and Dataset(list_of_dicts) takes rows"
        )
    if hasattr(data, "iloc") and list(getattr(data, "index", ())) != list(range(len(data))):
        raise TypeError(
            f"Dataset(data): this {kind} goes by its labels, and not by position: Dataset({kind.lower()}.tolist()) takes its "
            "values, and memory({'x': data.to_numpy()}) takes numbers"
        )
    try:
        size = len(data)
    except TypeError as error:
        raise TypeError(f"Dataset(data): this {kind} has no length: {error}") from error
    if names is not None and (isinstance(names, str) or not all(isinstance(name, str) for name in names)):
        raise ValueError(f"Dataset: names is a list of the names of a tuple's parts, found {names!r}")
    if names is not None and len(set(names)) < len(names):
        raise ValueError(f"Dataset: names has a name twice: {', '.join(names)}")
    if fields is not None and names is not None:
        raise ValueError("Dataset: fields name the parts already: leave out names")
    if fields is None:
        if size == 0:
            raise ValueError(f"Dataset(data): this {kind} is empty: give fields, since no item says what it is made of")
        fields = probe(data, size, names)
    shown = ", ".join(str(one) for one in specs(fields))
    own = getattr(data, "_fingerprint", None)  # of a Hugging Face data set
    fingerprint = f"{kind}({size} items, {shown}{f', {own}' if isinstance(own, str) else ''})"
    return size, fields, kind, fingerprint


def refuse(data: Any, kind: str) -> None:
    if isinstance(data, Mapping):
        raise TypeError("Dataset(data): items are chosen by number, and this is a mapping: memory({'x': array}) takes columns")
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes)):
        raise TypeError(f"Dataset(data): this {kind} can only be iterated: generator(fields, data) takes what comes one after another")
    raise TypeError(f"Dataset(data) takes an object with __len__ and __getitem__, or a stream such as a Queue, found {data!r:.60}")


def specs(fields: Any) -> list[FieldSpec]:
    if isinstance(fields, Mapping):
        return [FieldSpec(name, dtype, shape) for name, (dtype, shape) in fields.items()]
    return list(fields)


def probe(data: Any, size: int, names: Sequence[str] | None) -> dict[str, tuple[str, list[int | None]]]:
    """The fields of the first, the middle and the last item."""
    values: dict[str, list[tuple[int, Any]]] = {}
    for number in sorted({0, size // 2, size - 1}):
        for name, value in parts(data[number], names).items():
            values.setdefault(name, []).append((number, value))
    return {name: kind_of_all(name, found) for name, found in values.items()}


def kind_of_all(name: str, values: Sequence[tuple[int, Any]]) -> tuple[str, list[int | None]]:
    """The type that all values of a field have; a photograph without boxes, or a text without tokens, says only that numbers differ."""
    full = [(number, value) for number, value in values if not is_empty(value)] or values
    dtype, shape = kind_of(name, full[0][1], full[0][0])
    for number, value in full[1:]:
        other, extents = kind_of(name, value, number)
        if is_pil(full[0][1]) and is_pil(value) and (other, extents) != (dtype, shape):
            if not has_colors(value) and not has_colors(full[0][1]) and {dtype, other} == {"bool", "u8"}:
                dtype, shape = "u8", [None, None]
                continue
            return "u8", [None, None, 3]
        if {dtype, other} == {"i64", "f64"} and not any(hasattr(one, "dtype") for one in (value, full[0][1])):
            dtype = other = "f64"  # as numpy has them in one list
        if other != dtype or len(extents) != len(shape):
            wider = wider_of(dtype, other)
            raise ValueError(
                f"'{name}' is {dtype} with {len(shape)} axes in item {full[0][0]}, and {other} with {len(extents)} in item "
                f"{number}: make them one type, and say it: Dataset(data, fields={{'{name}': ('{wider}', {tuple(None for _ in shape)})}})"
            )
        shape = [a if a == b else None for a, b in zip(shape, extents)]
    if len(full) < len(values) and shape:
        shape = [None, *shape[1:]]
    return dtype, shape


def wider_of(dtype: str, other: str) -> str:
    """A type for a message, which has room for the numbers of both."""
    if "bool" in (dtype, other):
        return other if dtype == "bool" else dtype
    if dtype == other:
        return dtype
    return "f64" if "f" in dtype + other else "i64"


def is_empty(value: Any) -> bool:
    return (isinstance(value, (list, tuple)) and not value) or getattr(value, "shape", None) == (0,)


def is_pil(value: Any) -> bool:
    return hasattr(value, "getbands") and hasattr(value, "mode")


def has_colors(image: Any) -> bool:
    """Whether a PIL image has colours of its own, or by its palette."""
    return len(image.getbands()) > 1 or image.mode == "P"


def is_file(value: Any) -> bool:
    """Whether it is what Hugging Face's Image(decode=False) gives: the bytes of a file, or its path."""
    if not isinstance(value, Mapping) or "bytes" not in value or not set(value) <= {"bytes", "path"}:
        return False
    return isinstance(value["bytes"], (bytes, bytearray, type(None))) and isinstance(value.get("path"), (str, os.PathLike, type(None)))


def as_plain(name: str, value: Any, extents: Sequence[int | None], dtype: str) -> Any:
    """The bytes of a file of Hugging Face's, the pixels of a PIL image as the field has them; other values as they are."""
    if is_file(value):
        if value["bytes"] is not None:
            return bytes(value["bytes"])
        if value.get("path") is None:
            raise ValueError(f"'{name}' has neither the bytes nor the path of a file")
        with open(value["path"], "rb") as file:
            return file.read()
    if isinstance(value, Mapping):
        raise ValueError(f"'{name}' is a dict, and a field cannot be one: put its values beside the others")
    return pixels(name, value, extents, dtype) if is_pil(value) else value


def lost_integer(value: Any, array: Any, dtype: str) -> int | None:
    """The first integer, in a list in which there are floats, too, that is another number as a float of this type; numpy makes floats
    of all."""
    holder: Any = {"f16": numpy.float16, "f32": numpy.float32, "f64": numpy.float64}.get(dtype)
    if holder is None or not (numpy.abs(array) >= 2.0 ** (numpy.finfo(holder).nmant + 1)).any():
        return None
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, (list, tuple)):
            left.extend(reversed(one))
        elif isinstance(one, numpy.ndarray):
            left.extend(reversed(one.tolist()))
        elif isinstance(one, (int, numpy.integer)):
            one = int(one)
            with numpy.errstate(over="ignore"):
                held = float(holder(float(one)))
            if held != one:
                return one
    return None


def pixels(name: str, image: Any, extents: Sequence[int | None], dtype: str) -> Any:
    bands = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}.get(extents[2] or 0) if len(extents) == 3 else None
    if image.mode == "1" and dtype not in ("bool", "u8"):
        raise ValueError(
            f"'{name}' is a PIL image of mode 1 here, whose pixels are no numbers, and the field is {dtype}: return numpy.asarray(image) "
            "for 0 and 1, or image.convert('L') for 0 and 255"
        )
    if len(extents) == 2 and image.mode == "1" and dtype != "bool":
        image = image.convert("L")
    if len(extents) == 2 and image.mode == "P":
        raise ValueError(
            f"'{name}' is a PIL image with a palette here, and a field of one level a pixel: for its colours say what all become, "
            f"Dataset(data, fields={{'{name}': ('u8', (None, None, 3))}}); for the numbers in it, as of a mask, return numpy.asarray(image)"
        )
    if len(extents) == 2 and len(image.getbands()) > 1:
        raise ValueError(
            f"'{name}' is a PIL image of mode {image.mode} here, and one of grey levels in the items that were looked at: "
            f"say what all become, Dataset(data, fields={{'{name}': ('u8', (None, None, 3))}}) for RGB, (None, None, 1) for grey"
        )
    if bands and image.mode != bands:
        if image.mode.startswith(("I", "F")):
            raise ValueError(f"'{name}' is a PIL image of mode {image.mode} here, which has no {bands} of its own: convert it in the data set")
        image = image.convert(bands)
    array = numpy.asarray(image)
    return array[:, :, None] if bands == "L" else array


def parts(item: Any, names: Sequence[str] | None) -> dict[str, Any]:
    if isinstance(item, Mapping):
        if names is not None:
            raise ValueError("Dataset: names are for items that are tuples, and these are dicts with names of their own")
        for name in item:
            if not isinstance(name, str):
                raise ValueError(f"Dataset: the key {name!r} of an item is no string: rename it, such as '{name}'")
        return dict(item)
    if isinstance(item, tuple):
        names = names or getattr(item, "_fields", None)
        if names is None:
            example = ", ".join(f"'{name}'" for name in ("image", "label", "c", "d")[: len(item)])
            raise ValueError(f"Dataset: the items are tuples of {len(item)}: name their parts, names=({example})")
        if len(names) != len(item):
            raise ValueError(f"Dataset: {len(names)} names for tuples of {len(item)}: {', '.join(names)}")
        return dict(zip(names, item))
    if names is not None and len(names) != 1:
        raise ValueError(f"Dataset: names are for items that are tuples, found {type(item).__name__}")
    return {names[0] if names else "item": item}


def kind_of(name: str, value: Any, number: int) -> tuple[str, list[int | None]]:
    if value is None:
        raise ValueError(f"'{name}' is None in item {number}: give every item a value, such as -1")
    if isinstance(value, (bytes, bytearray, str)):
        return "u8", [None]
    if isinstance(value, bool):
        return "bool", []
    if isinstance(value, int):
        return "i64", []
    if isinstance(value, float):
        return "f64", []
    if is_file(value):
        return "u8", [None]
    if isinstance(value, Mapping):
        raise ValueError(
            f"'{name}' of item {number} is a dict, and a field cannot be one: put its values beside the others, "
            f"such as {', '.join(repr(f'{name}_{key}') for key in list(value)[:2])}"
        )
    if is_pil(value) and has_colors(value):
        return "u8", [None, None, 3]
    if str(getattr(value, "dtype", "")) == "torch.bfloat16":
        return "bf16", list(value.shape)
    try:
        array = numpy.asarray(value)
        if array.dtype.kind in "US" and not hasattr(value, "dtype"):
            raise ValueError("a field is numbers or one text: join the texts, or make each a field of its own")
        dtype = FieldSpec(name, array.dtype.name, array.shape).dtype
    except (ValueError, TypeError) as error:
        raise ValueError(f"'{name}' of item {number}, a {type(value).__name__}, makes no array: {error}") from error
    return dtype, [None, None] if is_pil(value) else list(array.shape)  # photographs differ in size
