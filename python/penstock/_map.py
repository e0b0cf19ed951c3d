"""Python functions as transforms."""

from __future__ import annotations

import functools
import importlib
import inspect
import pickle
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from penstock._penstock import FieldSpec, Transform, _map_python

Outputs = Sequence[FieldSpec] | Mapping[str, tuple[str, Sequence[int | None]]]


def _generator(low: int, high: int) -> Any:
    import numpy

    return numpy.random.Generator(numpy.random.Philox(key=low | high << 64))


class _Decorated:
    """A function under whose name its module has the transform: pickle finds it by that name all the same."""

    made: weakref.WeakValueDictionary[tuple[str, str], _Decorated] = weakref.WeakValueDictionary()  # those that live

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self.made[function.__module__, function.__qualname__] = self

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._function(*arguments, **named)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, str]]:
        module, name = self._function.__module__, self._function.__qualname__
        if self.made.get((module, name)) is not self or "<locals>" in name:
            raise pickle.PicklingError(f"{module}.{name} is made inside a function, or again: pickle finds functions by the name "
                                       "that a module has them under")
        return _decorated, (module, name)


def _decorated(module: str, name: str) -> _Decorated:
    importlib.import_module(module)
    return _Decorated.made[module, name]


@overload
def map_function(
    function: Callable[..., Any],
    *,
    outputs: Outputs,
    inputs: Sequence[str] | None = None,
    name: str | None = None,
) -> Transform: ...
@overload
def map_function(
    function: None = None,
    *,
    outputs: Outputs,
    inputs: Sequence[str] | None = None,
    name: str | None = None,
) -> Callable[[Callable[..., Any]], Transform]: ...
def map_function(
    function: Callable[..., Any] | None = None,
    *,
    outputs: Outputs,
    inputs: Sequence[str] | None = None,
    name: str | None = None,
) -> Transform | Callable[[Callable[..., Any]], Transform]:
    """Makes a transform of a Python function, for Dataset.map; a decorator without `function`.

    The function is called for each sample with numpy arrays, the fields named by `inputs` (by
    default the names of its parameters that are not keyword-only), which are copies and its own. It returns an array, a
    tuple of them, or a dict by name, of the shapes and dtypes of `outputs`, such as
    {"image": ("f32", (3, 224, 224))}; f64 becomes f32, and integers another type that holds them.
    None is an extent that differs from sample to sample, as of an encoded image,
    {"image": ("u8", (None,))}: a later map gives it one size. The inputs are gone afterwards; the
    outputs stand in their place.

    It must be a pure function of its arguments: a parameter named `rng` gets a
    numpy.random.Generator of this sample, the same in every run for one seed. `name` stands for
    the function in saved states; by default its own.

    An exception in it is a fault of that sample, with the exception as its cause.

    Threads  called by several of the loader's threads at once: each needs the GIL, which Python and numpy give up now and then.
             What it fills, such as an array, it makes in the call, or keeps in threading.local().
    Units    about 1 microsecond a sample besides the function itself, and one copy of the inputs
             and outputs; 10 more where it takes an `rng`.
    Errors   ValueError  no name (of a lambda), no inputs
    """
    if function is None:
        return lambda decorated: map_function(_Decorated(decorated), outputs=outputs, inputs=inputs, name=name)
    takes_rng = False
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin
        parameters = []
    if any(parameter.name == "rng" for parameter in parameters):
        takes_rng = True
    if inputs is None:
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        inputs = [p.name for p in parameters if p.kind in positional and p.name != "rng"]
    if name is None:
        name = str(getattr(function, "__name__", ""))
        if name in ("", "<lambda>"):
            raise ValueError(
                "map_function: give the function a name, name='...': it stands for it in saved states"
            )
    return _map_python(function, list(inputs), outputs, name, _generator if takes_rng else None)
