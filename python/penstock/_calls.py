"""Calls of the C++ module as Python's own: inspect.signature works, and a wrong argument is named.

`install` puts a Python function around each public function and method of the module; special methods, which
loops use, stay as they are.
"""

from __future__ import annotations

import ast
import collections.abc
import difflib
import functools
import inspect
import operator
import os
import re
import reprlib
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

# What other libraries have, and where it is here: of a plan's operations and loader().
ELSEWHERE = {
    "batch_size": "it is the first argument of batch(), the global batch",
    "shuffle": "it is .shuffle() of the plan",
    "sampler": "it is .sample(weights) or .select(numbers) of the plan",
    "batch_sampler": "it is .sample(weights) or .select(numbers) of the plan, and .batch(256)",
    "generator": "it is .seed(7) of the plan",
    "drop_last": "it is remainder='drop' of batch()",
    "num_workers": "it is threads, of loader(): by default one for each core that the process may use",
    "workers": "it is threads, of loader(): by default one for each core that the process may use",
    "prefetch_factor": "it is depth, of prefetch_to_devices()",
    "buffer_size": "it is buffer",
    "num_parallel_calls": "it is threads, of loader()",
    "worker_init_fn": "leave it out: threads decode, and random numbers come from the plan's seed",
    "multiprocessing_context": "leave it out: threads decode",
    "timeout": "leave it out: storage has deadlines of its own",
    "collate_fn": "leave it out: fields of one shape are stacked as they are",
    "pin_memory": "leave it out: batches for GPUs are always pinned",
    "pin_memory_device": "it is devices, of prefetch_to_devices()",
    "persistent_workers": "leave it out: a loader's threads live as long as it does",
    "in_order": "leave it out: the order is always the plan's",
}
# The same of what takes another place: of the constructor of Dataset,
OF_DATASET = {
    **ELSEWHERE,
    "num_workers": "it is workers=4, processes, where the items' code holds the GIL for long; other items need none: the threads of loader() read them",
    "multiprocessing_context": "leave it out: workers are started with spawn",
    "worker_init_fn": "leave it out: the plan's seed seeds the random numbers of items where there are workers",
    "collate_fn": "leave it out: fields of one shape are stacked as they are; penstock.torch.DataLoader has collate",
}
# of the recipes, which are whole plans,
OF_RECIPES = {
    **ELSEWHERE,
    "batch_size": "it is batch, the second argument: the global batch",
    "shuffle": "leave it out: recipes for training shuffle, those for validation do not",
    "sampler": "choose from the data: data.select(numbers) in place of data",
    "batch_sampler": "choose from the data: data.select(numbers) in place of data",
    "generator": "it is .seed(7) of the data: data.seed(7) in place of data",
    "drop_last": "leave it out: recipes for training leave a short last batch out, those for validation keep it",
    "imgsz": "it is size",
    "close_mosaic": "it is until_epoch, the first epoch without mosaics: 90 of .repeat(100) for close_mosaic=10",
    "fliplr": "it is flip",
}
# of penstock.torch.DataLoader and penstock.jax.DataLoader, which take a plan and the options of loader(),
OF_LOADERS = {
    **ELSEWHERE,
    "batch_size": "it is the plan's: .batch(256) at its end, the global batch",
    "drop_last": "it is the plan's: .batch(256, remainder='drop')",
    "num_workers": "it is threads: by default one for each core that the process may use",
    "workers": "it is threads: by default one for each core that the process may use",
    "num_parallel_calls": "it is threads: by default one for each core that the process may use",
    "prefetch_factor": "it is depth",
    "pin_memory_device": "it is devices",
}
OF_TORCH_LOADER = {
    **OF_LOADERS,
    "batch_size": "it is the plan's: .batch(256) at its end, the global batch; for a data set of your own, from_dataset(data, 256)",
    "collate_fn": "it is collate, which gets the dict of a batch's tensors",
}
OF_JAX_LOADER = {**OF_LOADERS, "pin_memory_device": "it is devices, of JAX"}
# and of penstock.torch.from_dataset, which takes items.
OF_FROM_DATASET = {
    **OF_TORCH_LOADER,
    "num_workers": "it is workers=2, processes, where the items' code holds the GIL for long; other items need none: threads read them",
    "sampler": "make the plan yourself: DataLoader(ps.Dataset(data).sample(weights).batch(8))",
    "batch_sampler": "make the plan yourself: DataLoader(ps.Dataset(data).select(numbers).batch(8))",
    "generator": "it is seed",
    "worker_init_fn": "leave it out: seed seeds the random numbers of items where there are workers",
    "multiprocessing_context": "leave it out: threads read, and workers are started with spawn",
    "persistent_workers": "leave it out: threads and workers live as long as the loader does",
    "timeout": "leave it out: an item may take as long as it needs",
}
# What torch's DataLoader takes by position.
_TORCHS_ORDER = (
    "dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory", "drop_last", "timeout",
    "worker_init_fn", "multiprocessing_context", "generator",
)  # fmt: skip


def signatures_of(overloads: Sequence[tuple[str, str | None, Sequence[Any] | None]]) -> list[inspect.Signature]:
    """What nanobind knows of a function: (text, docstring, defaults) for each overload."""
    found = []
    for text, _doc, defaults in overloads:
        # A default is a value by its number, or with '=' the text of one.
        text = re.sub(r"\\=(\d+)", lambda match: str((defaults or ())[int(match[1])]), text)
        text = re.sub(r"\\(\d+)", lambda match: f"_defaults[{match[1]}]", text)
        text = text.replace("penstock._penstock.", "")
        node = ast.parse(text + ": ...").body[0]
        assert isinstance(node, ast.FunctionDef)
        found.append(_signature(node, defaults or ()))
    return found


def _signature(node: ast.FunctionDef, defaults: Sequence[Any]) -> inspect.Signature:
    def value(default: ast.expr | None) -> Any:
        if default is None:
            return inspect.Parameter.empty
        native = vars(sys.modules["penstock._penstock"])  # a default may be an object of one of its classes
        return eval(ast.unparse(default), {**native, "__builtins__": {}, "_defaults": defaults})

    given = node.args
    parameters: list[tuple[ast.arg, Any, ast.expr | None]] = []
    plain = [*given.posonlyargs, *given.args]
    before: list[ast.expr | None] = [None] * (len(plain) - len(given.defaults))
    for position, (argument, default) in enumerate(zip(plain, [*before, *given.defaults])):
        kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
        if position < len(given.posonlyargs):
            kind = inspect.Parameter.POSITIONAL_ONLY
        parameters.append((argument, kind, default))
    if given.vararg:
        parameters.append((given.vararg, inspect.Parameter.VAR_POSITIONAL, None))
    for argument, default in zip(given.kwonlyargs, given.kw_defaults):
        parameters.append((argument, inspect.Parameter.KEYWORD_ONLY, default))
    if given.kwarg:
        parameters.append((given.kwarg, inspect.Parameter.VAR_KEYWORD, None))

    def annotation(of: ast.expr | None) -> Any:
        return inspect.Parameter.empty if of is None else ast.unparse(of)

    return inspect.Signature(
        [
            inspect.Parameter(one.arg, kind, default=value(default), annotation=annotation(one.annotation))
            for one, kind, default in parameters
        ],
        return_annotation=annotation(node.returns),
    )


def explain(name: str, signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """Why a call does not fit: the argument, what it must be, and the nearest right name; None where nothing seems wrong."""
    known = [one for one in signature.parameters if one != "self"]
    kinds = signature.parameters.values()
    positional = [one for one in kinds if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    for word in kwargs:
        if word in known or any(one.kind is one.VAR_KEYWORD for one in kinds):
            continue
        return no_option(name, word, known, OF_DATASET if name == "Dataset" else ELSEWHERE)
    if len(args) > len(positional) and not any(one.kind is one.VAR_POSITIONAL for one in kinds):
        extra = [one for one in known if signature.parameters[one].kind is inspect.Parameter.KEYWORD_ONLY]
        by_name = f"; by name: {', '.join(f'{one}=...' for one in extra)}" if extra else ""
        mine = [one.name for one in positional if one.name != "self"]
        there = len(args) - (len(positional) - len(mine))
        return f"{name}() takes {len(mine)} arguments by position{_listed(mine)}, found {there}{by_name}"
    try:
        bound = signature.bind_partial(*args, **kwargs)
    except TypeError as error:  # one by position and by name
        return f"{name}(): {error}"
    for one in kinds:
        if one.default is one.empty and one.name not in bound.arguments and one.kind < one.VAR_POSITIONAL:
            return f"{name}() needs '{one.name}'{_kind(one)}"
        if one.kind is one.KEYWORD_ONLY and one.default is one.empty and one.name not in bound.arguments:
            return f"{name}() needs '{one.name}'{_kind(one)}: {one.name}=..."
    for any_number in (True, False):  # a number that is too small or too large is the last thing to think of
        for key, value in bound.arguments.items():
            wanted = signature.parameters[key].annotation
            if key != "self" and isinstance(wanted, str) and (why := _misfit(value, wanted, any_number)):
                return f"{name}(): '{key}' {why}"
    return None


def no_option(name: str, word: str, known: Sequence[str], elsewhere: Mapping[str, str] = ELSEWHERE) -> str:
    """That a function has no such option, and what the caller may have meant."""
    if word in elsewhere:
        return f"{name}() has no option '{word}': {elsewhere[word]}"
    near = difflib.get_close_matches(word, [*known, *elsewhere], 1)
    if near:
        meant = f"did you mean '{near[0]}'?" if near[0] in known else elsewhere[near[0]]
    else:
        meant = f"it has {', '.join(known)}" if known else "it takes none"
    return f"{name}() has no option '{word}': {meant}"


def keywords_of(called: Callable[..., Any]) -> list[str]:
    """The options of a function that are given by name alone."""
    return [one.name for one in inspect.signature(called).parameters.values() if one.kind is one.KEYWORD_ONLY]


def check_options(called: Callable[..., Any], options: Mapping[str, Any], beneath: Sequence[str], elsewhere: Mapping[str, str] = ELSEWHERE) -> None:
    """`options` are what `called` passes on to others, which take those `beneath`.

    Errors  TypeError  an option that neither has; says what to write instead
    """
    for word in options:
        if word not in beneath:
            raise TypeError(no_option(called.__name__, word, [*keywords_of(called), *beneath], elsewhere))


Called = TypeVar("Called", bound=Callable[..., Any])


def answering(elsewhere: Mapping[str, str], name: str | None = None, in_torchs_place: bool = False) -> Callable[[Called], Called]:
    """For functions of Python: names an option that they do not have, with what to write instead. `name` is that of the class whose
    constructor it is. `in_torchs_place`: so it does arguments by position that torch's DataLoader takes there."""

    def around(function: Called) -> Called:
        called = name or function.__name__
        parameters = inspect.signature(function).parameters.values()
        known = [one.name for one in parameters if one.kind is not one.VAR_KEYWORD]
        takes_more = len(known) < len(parameters)
        most = sum(one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for word in () if takes_more else kwargs:
                if word not in known:
                    raise TypeError(no_option(called, word, [one for one in known if one != "self"], elsewhere))
            if in_torchs_place and len(args) > most:
                raise TypeError(_too_many(called, known[:most], known[most:], elsewhere))
            return function(*args, **kwargs)

        return cast(Called, call)

    return around


def _too_many(name: str, by_position: Sequence[str], by_name: Sequence[str], elsewhere: Mapping[str, str]) -> str:
    mine = [one for one in by_position if one != "self"]
    word = _TORCHS_ORDER[len(mine)]
    meant = f"{word}=..." if word in by_name else elsewhere[word]
    return f"{name}() takes {len(mine)} argument{'' if len(mine) == 1 else 's'} by position{_listed(mine)}; if the next one is the {word} of torch's DataLoader: {meant}"


def _listed(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def _kind(parameter: inspect.Parameter) -> str:
    return f", {_words(parameter.annotation)}" if isinstance(parameter.annotation, str) else ""


def _without_self(signature: inspect.Signature) -> str:
    mine = [one for one in signature.parameters.values() if one.name != "self"]
    return str(signature.replace(parameters=mine)).replace("'", "")


def _words(annotation: str) -> str:
    """A type as people say it: "a number or None"."""
    words = []
    for base, inner in map(_taken_apart, _alternatives(annotation)):
        if base == "Literal":
            words.append("one of " + inner)
        elif base == "Sequence":
            words.append("a list of " + _plural(inner))
        elif base == "tuple":
            each = inner.split(", ")
            words.append(f"{len(each)} {_plural(each[0])}")
        elif base == "Mapping":
            words.append("a dict")
        elif base == "Callable":
            words.append("a function")
        elif base == "PathLike":
            words.append("a path")
        elif base == "ndarray":
            words.append("an array")
        else:
            simple = {"int": "an integer", "float": "a number", "str": "a string", "bool": "True or False"}
            simple |= {"object": "an object", "Any": "an object", "bytes": "bytes", "None": "None"}
            words.append(simple.get(base, f"a {base}" if base[:1] not in "AEIO" else f"an {base}"))
    return " or ".join(dict.fromkeys(words))


def _plural(annotation: str) -> str:
    base, inner = _taken_apart(annotation)
    if base == "Literal":
        return inner
    known = {"int": "integers", "float": "numbers", "str": "strings"}
    return known.get(annotation, base + "s")


def _taken_apart(part: str) -> tuple[str, str]:
    """The name of a type, without its module, and what stands in its brackets."""
    base, _, inner = part.partition("[")
    return base.split(".")[-1], inner[:-1]


def _alternatives(annotation: str) -> list[str]:
    """The parts of a union, at the outermost level."""
    tree = ast.parse(annotation, mode="eval").body
    parts: list[str] = []

    def walk(node: ast.expr) -> None:
        if isinstance(node, ast.BinOp):
            walk(node.left)
            walk(node.right)
        else:
            parts.append(ast.unparse(node))

    walk(tree)
    return parts


def _misfit(value: Any, annotation: str, any_number: bool = False) -> str | None:
    """What is wrong with a value; None where it fits, or nothing is known of the type."""
    parts = _alternatives(annotation)
    if any(_fits(value, part, any_number) for part in parts):
        return None
    shown = reprlib.repr(value)
    for base, inner in map(_taken_apart, parts):
        if base == "Sequence" and _is_list(value):
            for position, one in enumerate(value):
                if why := _misfit(one, inner, any_number):
                    return f"[{position}] {why}"
    for one in [part for item in value.items() for part in item] if isinstance(value, collections.abc.Mapping) else [value]:
        if isinstance(one, str) and not _has_bytes(one):
            return f"has half of a pair that stands for no byte, found {reprlib.repr(one)}: names of files are as os.fsdecode() makes them"
    if isinstance(value, int) and not isinstance(value, bool) and "int" in parts:
        # The type is right, so the number was not.
        if value < 0:
            return f"must be 0 or more, found {shown}"
        return f"is too large, found {shown}"
    return f"must be {_words(annotation)}, found {shown} ({type(value).__name__}){hint(value)}"


def hint(value: Any) -> str:
    """What to take instead of a thing of another library; empty where nothing is known of it."""
    library = type(value).__module__.split(".")[0]
    if library not in ("torchvision", "timm", "albumentations"):
        return ""
    return f"; transforms of {library} do not run here: penstock.augment has the operations and policies, random_resized_crop and others the crops (docs/augment.md has them side by side)"


def _fits(value: Any, part: str, any_number: bool) -> bool:
    base, inner = _taken_apart(part)
    if base == "None":
        return value is None
    if base == "int":
        # One that C++ has no room for is none.
        return _is_whole(value) and (any_number or 0 <= operator.index(value) < 2**63)
    if base == "float":
        return isinstance(value, (int, float)) or hasattr(value, "__float__") and getattr(value, "ndim", 1) == 0
    if base == "bool":
        return isinstance(value, bool)
    if base in ("str", "Literal"):
        return isinstance(value, str) and _has_bytes(value)
    if base == "Sequence":
        return _is_list(value) and all(_misfit(one, inner, any_number) is None for one in value)
    if base == "ndarray":
        return False  # an array fits as a sequence, where its elements fit
    if base == "tuple":
        each = inner.split(", ")
        return _fits(value, "Sequence[object]", any_number) and len(value) == len(each) and all(_fits(*one, any_number) for one in zip(value, each))
    if base == "Mapping":
        return isinstance(value, collections.abc.Mapping) and all(_has_bytes(one) for item in value.items() for one in item if isinstance(one, str))
    if base == "Callable":
        return callable(value)
    if base == "PathLike":
        return isinstance(value, os.PathLike)
    if base in ("object", "Any"):
        return True
    names = {one.__name__ for one in type(value).__mro__}
    return base in names


def _has_bytes(text: str) -> bool:
    """False where it has a half of a pair other than those that os.fsdecode() makes of bytes."""
    try:
        text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _is_list(value: Any) -> bool:
    """A sequence, or an array that has one."""
    if isinstance(value, (str, bytes)):
        return False
    return isinstance(value, collections.abc.Sequence) or getattr(value, "ndim", 0) > 0


def _is_whole(value: Any) -> bool:
    """An integer, which may be of numpy or torch."""
    if isinstance(value, bool) or getattr(value, "ndim", 0) > 0 or "bool" in str(getattr(value, "dtype", "")):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def wrap(native: Any, qualname: str, signature: inspect.Signature) -> Callable[..., Any]:
    """`native` behind a Python function, whose errors name the argument."""
    name = qualname.split(".")[-1]

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return native(*args, **kwargs)
        except TypeError as error:
            frames = error.__traceback__
            if not str(error).startswith(f"{name}(): incompatible function arguments") or (frames and frames.tb_next):  # or from a function of the caller's
                raise
            why = explain(name, signature, args, kwargs)
            raise TypeError(why or f"{name}(): the arguments do not fit; it is {name}{_without_self(signature)}") from None

    call.__name__, call.__qualname__, call.__module__ = name, qualname, "penstock"
    call.__doc__ = native.__nb_signature__[0][1]
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__wrapped__ = native  # type: ignore[attr-defined]
    return call


def explain_constructor(cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """The same for constructors, which nanobind calls itself."""
    return explain(cls.__name__, _constructor(cls), (None, *args), kwargs)


def _constructor(cls: type) -> inspect.Signature:
    return signatures_of(cls.__init__.__nb_signature__)[0]  # type: ignore[misc]


def install(module: types.ModuleType) -> None:
    """Wraps what is public in `module` and in its classes."""
    for name, thing in list(vars(module).items()):
        if name.startswith("_"):
            continue
        if hasattr(thing, "__nb_signature__"):
            setattr(module, name, wrap(thing, name, signatures_of(thing.__nb_signature__)[0]))
        elif inspect.isclass(thing) and thing.__module__ == module.__name__:
            _install_in(thing)


def _install_in(cls: type) -> None:
    for name, thing in list(vars(cls).items()):
        if not hasattr(thing, "__nb_signature__"):
            continue
        if name == "__init__":
            mine = list(_constructor(cls).parameters.values())[1:]
            cls.__signature__ = inspect.Signature(mine)  # type: ignore[attr-defined]
        elif not name.startswith("_"):
            call = wrap(thing, f"{cls.__name__}.{name}", signatures_of(thing.__nb_signature__)[0])
            static = type(thing).__name__ == "nb_func"
            setattr(cls, name, staticmethod(call) if static else call)


def natives(module: types.ModuleType) -> dict[str, Any]:
    """What install() wrapped, by its qualified name."""
    found: dict[str, Any] = {}
    for name, thing in vars(module).items():
        if inspect.isclass(thing):
            for inner, method in vars(thing).items():
                method = inspect.unwrap(method.__func__) if isinstance(method, staticmethod) else getattr(method, "__wrapped__", None)
                if hasattr(method, "__nb_signature__"):
                    found[f"{name}.{inner}"] = method
        elif hasattr(thing, "__wrapped__"):
            found[name] = thing.__wrapped__
    return found
