"""Data sets of a user's own, in a module, as worker processes need them."""

from __future__ import annotations

import os
import random
import time
from collections import namedtuple

import numpy as np

Pair = namedtuple("Pair", "x label")


class Points:
    def __init__(self, count: int = 100) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int):
        return {"x": np.full(4, number, np.float32), "label": number}


class Tuples(Points):
    def __getitem__(self, number: int):
        return np.full((2, 3), number), float(number), number % 2 == 0


class Named(Points):
    def __getitem__(self, number: int):
        return Pair(np.float64(number), number)


class Ragged(Points):
    def __getitem__(self, number: int):
        return {"bytes": b"x" * number, "tokens": np.arange(number % 7), "text": "ä" * (number % 3)}


class Noisy(Points):
    def __getitem__(self, number: int):
        return {"x": np.array([random.random(), np.random.rand()]), "pid": os.getpid()}


class Several(Points):
    """Gives several in one call, as torch's DataLoader asks; not where 7 is among them, and one too few with 50."""

    def __init__(self, count: int = 100) -> None:
        super().__init__(count)
        self.calls: list[int] = []

    def __getitems__(self, numbers: list[int]):
        self.calls.append(len(numbers))
        if 7 in numbers:
            raise KeyError("seven is bad here")
        found = [self[number] for number in numbers]
        return found[1:] if 50 in numbers else found


class Collated(Points):
    """Gives a whole batch in one call, which is no list of items."""

    def __init__(self, count: int, kind: type) -> None:
        super().__init__(count)
        self.kind = kind

    def __getitem__(self, number: int):
        return 2 * number, 2 * number + 1

    def __getitems__(self, numbers: list[int]):
        parts = tuple(zip(*map(self.__getitem__, numbers)))
        return dict(zip("ab", parts)) if self.kind is dict else self.kind(np.array(part) for part in parts)


class Bad(Points):
    def __getitem__(self, number: int):
        if number == 7:
            raise KeyError("seven is bad")
        return super().__getitem__(number)


class Hungry(Points):
    """For item 7 there is no memory."""

    def __getitem__(self, number: int):
        if number == 7:
            raise MemoryError("no room for seven")
        return super().__getitem__(number)


class Changing(Points):
    """Item 7 is of another shape, 8 of another type, 9 lacks a field."""

    def __getitem__(self, number: int):
        if number == 9:
            return {"x": np.zeros(4, np.float32)}
        return {"x": np.zeros(5 if number == 7 else 4, np.float32), "label": "eight" if number == 8 else number}


class Deadly(Points):
    """Item 7 ends the process that reads it; with a `flag`, once. A `log` grows by a byte each time that it is read, and then the process
    ends when there is a file of the log's name and the number of bytes: log.1."""

    def __init__(self, count: int, flag: str | None = None, log: str | None = None) -> None:
        super().__init__(count)
        self.flag = flag
        self.log = log

    def __getitem__(self, number: int):
        if number == 7 and not (self.flag and os.path.exists(self.flag)):
            if self.flag:
                open(self.flag, "w").close()
            if self.log:
                with open(self.log, "a") as file:
                    file.write("x")
                while not os.path.exists(f"{self.log}.{os.path.getsize(self.log)}"):
                    time.sleep(0.01)
            os._exit(3)
        return super().__getitem__(number)


class Endless(Points):
    """No item is ever there. The file `begun` grows by a byte for each that was asked for."""

    def __init__(self, begun: str) -> None:
        super().__init__()
        self.begun = begun

    def __getitem__(self, number: int):
        with open(self.begun, "a") as file:
            file.write("x")
        while True:
            time.sleep(1)


class Unpicklable(Points):
    def __init__(self) -> None:
        super().__init__()
        self.function = lambda: 1


class Large(Points):
    """More than a pipe holds, and made again in no other process."""

    def __init__(self) -> None:
        super().__init__()
        self.values = np.zeros(1_000_000)

    def __setstate__(self, state: object) -> None:
        raise OSError("no such database here")


class Undecodable(Points):
    def __getitem__(self, number: int):
        if number == 3:
            raise ValueError("cannot read " + b"a\xff".decode(errors="surrogateescape"))
        return super().__getitem__(number)


class Lazy(Points):
    """A mapping whose values are made when they are asked for."""

    def __getitem__(self, number: int):
        return LazyItem(number)


class LazyItem(dict):
    def __init__(self, number: int) -> None:
        super().__init__(x=0, label=number)

    def __getitem__(self, name: str):
        if name == "x" and super().__getitem__("label") == 3:
            raise ValueError("this one is damaged")
        return super().__getitem__(name)
