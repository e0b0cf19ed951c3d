"""What the items of a Python object are made of: Dataset(data)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy

from penstock._penstock import FieldSpec

Fields = Mapping[str, tuple[str, Sequence["int | None"]]]


def describe(data: Any, fields: Any, names: Sequence[str] | None) -> tuple[int, Any, str, str]:
    """The number of items, their fields, what to call the data, and a string that tells it from other data."""
    kind = type(data).__name__
    if not hasattr(data, "__getitem__") or not hasattr(data, "__len__") or isinstance(data, (Mapping, str, bytes)):
        refuse(data, kind)
    try:
        size = len(data)
    except TypeError as error:
        raise TypeError(f"Dataset(data): this {kind} has no length: {error}") from error
    if names is not None and (isinstance(names, str) or not all(isinstance(name, str) for name in names)):
        raise ValueError(f"Dataset: names is a list of the names of a tuple's parts, found {names!r}")
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
    found: dict[str, tuple[str, list[int | None]]] = {}
    for number in sorted({0, size // 2, size - 1}):
        for name, value in parts(data[number], names).items():
            if isinstance(value, (list, tuple)) and not value and name in found:
                found[name] = (found[name][0], [None] * len(found[name][1]))  # a text without tokens
                continue
            dtype, shape = kind_of(name, value, number)
            if name not in found:
                found[name] = (dtype, shape)
                continue
            before_dtype, before = found[name]
            if before_dtype != dtype or len(before) != len(shape):
                raise ValueError(
                    f"'{name}' is {before_dtype} with {len(before)} axes in item 0, and {dtype} with {len(shape)} in item "
                    f"{number}: make them one type, and say it: Dataset(data, fields={{'{name}': ('{before_dtype}', {tuple(None for _ in before)})}})"
                )
            found[name] = (dtype, [a if a == b else None for a, b in zip(before, shape)])
    return found


def parts(item: Any, names: Sequence[str] | None) -> dict[str, Any]:
    if isinstance(item, Mapping):
        if names is not None:
            raise ValueError("Dataset: names are for items that are tuples, and these are dicts with names of their own")
        return {str(name): value for name, value in item.items()}
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
        return "u8", []
    if isinstance(value, int):
        return "i64", []
    if isinstance(value, float):
        return "f64", []
    if str(getattr(value, "dtype", "")) == "torch.bfloat16":
        return "bf16", list(value.shape)
    try:
        array = numpy.asarray(value)
        dtype = FieldSpec(name, "u8" if array.dtype.name == "bool" else array.dtype.name, array.shape).dtype
    except (ValueError, TypeError) as error:
        raise ValueError(f"'{name}' of item {number}, a {type(value).__name__}, makes no array: {error}") from error
    if hasattr(value, "getbands") and array.ndim >= 2:  # PIL: photographs differ in size
        return dtype, [None, None, *array.shape[2:]]
    return dtype, list(array.shape)
