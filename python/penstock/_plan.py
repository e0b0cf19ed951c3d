"""Python functions and data sets in plans: as pickles inside the JSON, or beside it in a pickle of the whole."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy

from penstock._errors import Error
from penstock._map import map_function
from penstock._penstock import Augmentation, Crop, Dataset, Transform

Field = tuple[str, str, Sequence[int]]


def describe_function(
    function: Callable[..., Any],
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[Field],
    takes_rng: bool,
    functions: list[Callable[..., Any]] | None,
) -> str:
    """The options of a "python_function" as JSON. The function goes to the end of `functions`; without these it
    is pickled into the text."""
    options: dict[str, Any] = {
        "name": name,
        "inputs": list(inputs),
        "outputs": outputs,
        "rng": takes_rng,
    }
    return _with_object(options, function, functions)


def describe_items(
    items: Any, fields: Sequence[Field], workers: int, lengths: Sequence[int], concurrent: bool, objects: list[Any] | None
) -> str:
    """The same of "python_items", a data set."""
    options: dict[str, Any] = {"fields": fields, "workers": workers}
    if lengths:
        options["lengths"] = json.loads(_with_object({}, numpy.array(lengths, dtype=numpy.uint64), objects))
    if concurrent:
        options["concurrent"] = True
    return _with_object(options, items, objects)


def describe_table(made_of: Sequence[Any], objects: list[Any] | None) -> str:
    """The same of "python_table", a table in memory."""
    return _with_object({}, made_of, objects)


def _with_object(options: dict[str, Any], found: Any, objects: list[Any] | None) -> str:
    if objects is not None:
        options["number"] = len(objects)
        objects.append(found)
    else:
        options["pickle"] = base64.b64encode(pickle.dumps(found)).decode("ascii")
    return json.dumps(options)


def _object_of(options: Mapping[str, Any], objects: Sequence[Any] | None) -> Any:
    if objects is not None:
        return objects[options["number"]]
    return pickle.loads(base64.b64decode(options["pickle"]))


def _by_name(fields: Sequence[Field]) -> dict[str, tuple[str, Sequence[int]]]:
    return {field: (dtype, shape) for field, dtype, shape in fields}


@contextmanager
def _naming_damage(what: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, pickle.UnpicklingError) as error:
        raise Error(f"the Python {what} in this plan is damaged: {error!r}") from error


def make_items(text: str, objects: Sequence[Any] | None) -> tuple[Any, Any, int, Any, bool]:
    """The data set of such options, its fields, the number of worker processes, the lengths of its items, and whether several threads
    may read them at once."""
    options = json.loads(text)
    with _naming_damage("data set"):
        items = _object_of(options, objects)
        lengths = _object_of(options["lengths"], objects) if "lengths" in options else None
        return items, _by_name(options["fields"]), options["workers"], lengths, options.get("concurrent", False)


def make_table(text: str, objects: Sequence[Any] | None) -> Any:
    """What a table in memory was made of."""
    options = json.loads(text)
    with _naming_damage("table"):
        return _object_of(options, objects)


def make_function(text: str, functions: Sequence[Callable[..., Any]] | None) -> Transform:
    """The transform of such options."""
    options = json.loads(text)
    with _naming_damage("function"):
        function, outputs = _object_of(options, functions), _by_name(options["outputs"])
        return map_function(function, inputs=options["inputs"], outputs=outputs, name=options["name"])


def unpickle(text: str, functions: list[Callable[..., Any]], learns: bool) -> Dataset:
    """What pickle calls. `learns`: it had an index of JPEGs, and gets an empty one of its own."""
    return Dataset._unpickle(text, functions, learns)  # type: ignore[attr-defined]  # not in the stub


def unpickle_augmentation(text: str) -> Augmentation:
    """What pickle calls."""
    return Augmentation.from_json(text)


def unpickle_crop(text: str) -> Crop:
    """What pickle calls."""
    return Crop._unpickle(text)  # type: ignore[attr-defined]  # not in the stub


def unpickle_transform(name: str, options: str) -> Transform:
    """What pickle calls for a transform of the library."""
    return Transform._unpickle(name, options)  # type: ignore[attr-defined]  # not in the stub


def unpickle_function(function: Callable[..., Any], inputs: Sequence[str], outputs: Sequence[Field], name: str) -> Transform:
    """What pickle calls for a transform of Python."""
    return map_function(function, inputs=inputs, outputs=_by_name(outputs), name=name)


def unpickle_call(made_by: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """What pickle calls for objects that are made of a few options."""
    return made_by(*arguments, **options)
