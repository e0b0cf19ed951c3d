"""From runs to numbers, and from numbers to text. Nothing here needs a framework."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


class NoResult(Exception):
    """A run that printed no result; says the last line that it did print."""


def parse(stdout: str, stderr: str = "") -> dict:
    """The last line that is a JSON object: frameworks print what they like before it.

    Errors  NoResult  there is none
    """
    for line in reversed(stdout.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except json.JSONDecodeError:
                continue
    raise NoResult(reason(stderr) or reason(stdout) or "it printed nothing")


def reason(log: str) -> str:
    """One line of a log that says why it ended: the last that speaks of an error, else the last."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    thrown = [line.removeprefix("what():").strip() for line in lines if line.startswith("what():")]  # of a C++ program
    if thrown:
        return thrown[-1][:160]
    errors = [line for line in lines if "error" in line.lower() and not line.startswith(("note:", "hint:", "[notice]"))]
    return (errors or lines or [""])[-1][:160]


@dataclass(frozen=True)
class Spread:
    """Median, least and most of the rounds."""

    median: float
    least: float
    most: float

    @staticmethod
    def of(values: Iterable[float]) -> Spread:
        found = sorted(values)
        if not found:
            raise ValueError("a spread of no rounds")
        return Spread(statistics.median(found), found[0], found[-1])

    def text(self, digits: int = 0) -> str:
        return f"{self.median:,.{digits}f} ({self.least:,.{digits}f}..{self.most:,.{digits}f})"


@dataclass(frozen=True)
class Run:
    """One run of one row.

    Units  `peak_mib` of proportional set size, over all processes of the row
    """

    samples: int
    seconds: float
    cpu_s: float
    peak_mib: float = 0.0

    @property
    def per_s(self) -> float:
        return self.samples / self.seconds

    @property
    def per_cpu_s(self) -> float:
        return self.samples / self.cpu_s


@dataclass
class Row:
    """What stands in one line of the table."""

    name: str
    family: str  # the rows of one framework, of which the fastest counts
    form: str  # what it delivers
    source: str = "as they are"
    version: str = ""
    trouble: str = ""  # the error, where there are no numbers
    notes: list[str] = field(default_factory=list)  # which photographs it refuses, or shows otherwise
    quality: str = ""
    runs: dict[int, list[Run]] = field(default_factory=dict)  # by cores
    elements: list[Run] = field(default_factory=list)


def ratios(ours: Sequence[Run], theirs: Sequence[Run], of) -> Spread:
    """Round by round: what disturbs a round disturbs both."""
    return Spread.of(of(a) / of(b) for a, b in zip(ours, theirs, strict=True))


def psnr(expected, found) -> float:
    """Of two u8 arrays, in dB; infinite where they are equal."""
    if expected.shape != found.shape:
        raise ValueError(f"expected an array {expected.shape}, found {found.shape}")
    error = ((expected.astype("f4") - found.astype("f4")) ** 2).mean()
    return math.inf if error == 0 else 10 * math.log10(255**2 / float(error))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """In Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
