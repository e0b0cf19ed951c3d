"""What Dataset.split takes in Python: classes and groups of any kind, as numbers."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from penstock._penstock import Dataset, RecordInfo


def split(dataset: Any, fractions: Any, seed: int, by: Any, group: Any) -> list[Dataset]:
    """Dataset.split."""
    if hasattr(fractions, "__float__") and not hasattr(fractions, "__len__"):
        fractions = (float(fractions), 1 - float(fractions))
    parts: list[Dataset] = dataset._split(
        [float(one) for one in fractions], seed, _numbers_of(dataset, "by", by), _numbers_of(dataset, "group", group)
    )
    return parts


def _numbers_of(dataset: Any, name: str, given: Any) -> list[int]:
    if given is None:
        return []
    if isinstance(given, str):
        if given != "label":
            raise ValueError(
                f"split: {name} is 'label', a value for each sample, or a function of its RecordInfo, found '{given}'"
            )
        labels: list[int] = dataset.labels().tolist()
        return labels
    numbers: dict[Hashable, int] = {}
    if callable(given):

        def number_of(info: RecordInfo) -> int:
            return numbers.setdefault(given(info), len(numbers))

        found: list[int] = dataset._classify(number_of)
        return found
    if not hasattr(given, "__iter__"):
        raise TypeError(f"split: {name} is 'label', a value for each sample, or a function of its RecordInfo, found {given!r}")
    values = given.tolist() if hasattr(given, "tolist") else given
    listed = [numbers.setdefault(value, len(numbers)) for value in values]
    if not listed:
        raise ValueError(f"split: {name} has no values: give one for each sample")
    return listed
