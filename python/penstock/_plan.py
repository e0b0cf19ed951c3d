"""Python functions in plans: as pickles inside the JSON, or beside it in a pickle of the whole."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Callable, Sequence
from typing import Any

from penstock._errors import Error
from penstock._map import map_function
from penstock._penstock import Dataset, Transform

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
        "outputs": [[field, dtype, list(shape)] for field, dtype, shape in outputs],
        "rng": takes_rng,
    }
    if functions is not None:
        options["number"] = len(functions)
        functions.append(function)
    else:
        options["pickle"] = base64.b64encode(pickle.dumps(function)).decode("ascii")
    return json.dumps(options)


def make_function(text: str, functions: Sequence[Callable[..., Any]] | None) -> Transform:
    """The transform of such options."""
    options = json.loads(text)
    try:
        if functions is not None:
            function = functions[options["number"]]
        else:
            function = pickle.loads(base64.b64decode(options["pickle"]))
        outputs = {field: (dtype, tuple(shape)) for field, dtype, shape in options["outputs"]}
        return map_function(function, inputs=options["inputs"], outputs=outputs, name=options["name"])
    except (KeyError, IndexError, TypeError, ValueError, pickle.UnpicklingError) as error:
        raise Error(f"the Python function in this plan is damaged: {error!r}") from error


def unpickle(text: str, functions: list[Callable[..., Any]]) -> Dataset:
    """What pickle calls."""
    return Dataset._unpickle(text, functions)  # type: ignore[attr-defined]  # not in the stub
