"""Items as torch's DataLoader takes them, dicts in dicts, tuples and texts among them, and batches of the same form."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from penstock._items import is_file


class Leaf:
    """One field. Texts and bytes come as a list of them, other values as a tensor."""

    def __init__(self, name: str, text: type | None) -> None:
        self.name = name
        self.text = text

    def leaves(self) -> Iterator[Leaf]:
        yield self

    def values(self, item: Any) -> Iterator[Any]:
        yield item

    def rebuild(self, fields: Mapping[str, Any]) -> Any:
        rows = fields[self.name]
        if self.text is None:
            return rows
        lengths = fields[length_of(self.name)].tolist()
        found = [bytes(row[:length]) for row, length in zip(rows.cpu().numpy(), lengths)]
        return [one.decode(errors="surrogateescape") for one in found] if self.text is str else found


class Branch:
    """A dict, a tuple, a list or a namedtuple of others, which are fields of the names or numbers on the way to them: 'meta.id', '0'."""

    def __init__(self, item: Any, name: str) -> None:
        names = getattr(item, "_fields", None)
        self.is_list = isinstance(item, list)
        self.kind = dict if isinstance(item, Mapping) else type(item) if names else list
        self.children: dict[Any, Leaf | Branch] = {}
        for at, key in enumerate(item if self.kind is dict else names or range(len(item))):
            place = key if self.kind is dict else at
            self.children[place] = structure_of(item[place], f"{name}.{key}" if name else str(key))

    def leaves(self) -> Iterator[Leaf]:
        for child in self.children.values():
            yield from child.leaves()

    def values(self, item: Any) -> Iterator[Any]:
        if self.kind is not dict and len(item) != len(self.children):
            raise ValueError(f"it has a {type(item).__name__} of {len(item)}, and the first item one of {len(self.children)}")
        for place, child in self.children.items():
            if self.kind is dict and place not in item:
                raise ValueError(f"it has no {place!r}, which the first item has")
            yield from child.values(item[place])

    def rebuild(self, fields: Mapping[str, Any]) -> Any:
        values = [child.rebuild(fields) for child in self.children.values()]
        if self.kind is dict:
            return dict(zip(self.children, values))
        return values if self.kind is list else self.kind(*values)


def structure_of(item: Any, name: str = "") -> Leaf | Branch:
    """What an item is made of. As with torch, a batch of plain tuples or lists is a list; a list of numbers is one tensor."""
    if isinstance(item, tuple) or (isinstance(item, list) and not is_of_numbers(item)) or (isinstance(item, Mapping) and not is_file(item)):
        return Branch(item, name)
    text = str if isinstance(item, str) else bytes if isinstance(item, bytes) else None
    return Leaf(name or "item", text)


def is_of_numbers(item: Any) -> bool:
    """Whether a list has numbers only, also in lists in it: that is one tensor."""
    return all(isinstance(one, numbers.Number) or (isinstance(one, list) and is_of_numbers(one)) for one in item)


def check_names(leaves: Sequence[Leaf]) -> None:
    """Errors  ValueError  two parts would be one field"""
    names = [name for leaf in leaves for name in ([leaf.name] if leaf.text is None else [leaf.name, length_of(leaf.name)])]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two parts of an item would be the field '{twice[0]}': rename one of them")


def length_of(name: str) -> str:
    """The field with the bytes of each text of another one."""
    return f"{name}.bytes"


class Flat:
    """A data set whose items are dicts of the leaves of those of another one."""

    def __init__(self, data: Any, structure: Leaf | Branch, text_bytes: int) -> None:
        self.data = data
        self.penstock_kind = type(data).__name__
        self._structure = structure
        self._leaves = list(structure.leaves())
        self._text_bytes = text_bytes
        if hasattr(data, "_fingerprint"):  # of a Hugging Face data set
            self._fingerprint = data._fingerprint

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, number: int) -> dict[str, Any]:
        return self._flat(self.data[number])

    @property
    def __getitems__(self) -> Callable[[Sequence[int]], Any]:
        get = self.data.__getitems__  # an AttributeError where there is none

        def get_flat(numbers: Sequence[int]) -> Any:
            items = get(numbers)
            return [self._flat(item) for item in items] if isinstance(items, list) and len(items) == len(numbers) else items

        return get_flat

    def _flat(self, item: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for leaf, value in zip(self._leaves, self._structure.values(item)):
            if leaf.text is not None:
                if not isinstance(value, (str, bytes)):
                    raise ValueError(f"'{leaf.name}' is {value!r:.60}, and a text in the first item: give '' where there is none")
                value = value.encode(errors="surrogateescape") if isinstance(value, str) else value
                if len(value) > self._text_bytes:
                    raise ValueError(
                        f"'{leaf.name}' has {len(value)} bytes, and from_dataset has room for {self._text_bytes}: "
                        f"give it text_bytes={len(value)}, or those of the longest text"
                    )
            found[leaf.name] = value
        return found
