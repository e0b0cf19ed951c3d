"""What Dataset.split takes in Python: classes and groups of any kind, as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Set
from enum import Enum
from typing import Any

from penstock._penstock import Dataset, RecordInfo


def split(dataset: Any, fractions: Any, seed: int, by: Any, group: Any) -> list[Dataset] | dict[Any, Dataset]:
    """Dataset.split."""
    names = list(fractions) if isinstance(fractions, Mapping) else None
    if isinstance(fractions, Mapping):
        fractions = list(fractions.values())
    if hasattr(fractions, "__float__") and not hasattr(fractions, "__len__"):
        fractions = (float(fractions), 1 - float(fractions))
    parts: list[Dataset] = dataset._split(
        [float(one) for one in fractions], seed, _numbers_of(dataset, "by", by), _numbers_of(dataset, "group", group)
    )
    return parts if names is None else dict(zip(names, parts, strict=True))


class _Numbers:
    """A number for each value, in the order in which they come first. Equal values have the same number, in every process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._numbers: dict[Any, int] = {}

    def of(self, value: Any) -> int:
        if hasattr(value, "tolist"):  # a scalar of numpy's or torch's, which may be equal only to itself
            value = value.tolist()
        if value != value:
            raise ValueError(f"split: {self._name} has the value {value!r}, which is equal to none: put another in its place")
        is_comparable = value is None or isinstance(value, Enum) or type(value).__eq__ is not object.__eq__
        if isinstance(value, (list, dict, set)) or not is_comparable:
            raise TypeError(
                f"split: a value of {self._name} is a string, a number or another value that can be compared, found {value!r}"
            )
        return self._numbers.setdefault(value, len(self._numbers))


def _numbers_of(dataset: Any, name: str, given: Any) -> list[int] | str:
    """For each sample, or the name of the field that has them."""
    if given is None:
        return []
    if isinstance(given, str):
        if not given:
            raise ValueError(f"split: {name} is the name of a field, found ''")
        return given
    numbers = _Numbers(name)
    if callable(given):

        def number_of(info: RecordInfo) -> int:
            return numbers.of(given(info))

        found: list[int] = dataset._classify(number_of)
        return found
    if isinstance(given, (Mapping, Set)) or not hasattr(given, "__iter__"):
        raise TypeError(
            f"split: {name} is the name of a field, a value for each sample, or a function of its RecordInfo, found {given!r}"
        )
    values = given.tolist() if hasattr(given, "tolist") else given
    listed = [numbers.of(value) for value in values]
    if not listed:
        raise ValueError(f"split: {name} has no values: give one for each sample")
    return listed
