"""How far long work is: a line on the terminal, or a callback."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Progress(NamedTuple):
    """What a long piece of work has done so far."""

    what: str
    """what is done: "listing /data/train" """
    unit: str
    """of what is counted: "files" """
    done: int
    """so many"""
    total: int
    """of so many; 0: that is not known yet"""
    has_ended: bool
    """true once, at its end, also after an error"""


_callback: Callable[[Progress], object] | None = None


def set_progress(callback: Callable[[Progress], object] | None) -> None:
    """Has long work tell `callback` how far it is, in the thread that waits for it, up to five times a second.

    That are listings of folders and objects, indexes of shards and tables, and what reads each sample or row: column, where,
    join, a split by a field, image_sizes, images_from, coco, yolo, voc. By default, and with None, a line on the terminal says it once the work has
    taken two seconds, and is erased at its end; where the standard error is no terminal, as in a log, there is none. What
    `callback` raises ends the work.

        ps.set_progress(lambda progress: print(progress.what, progress.done))
    """
    global _callback
    if callback is not None and not callable(callback):
        raise TypeError(f"set_progress takes a function or None, found {callback!r}")
    _callback = callback


def tell(what: str, unit: str, done: int, total: int, has_ended: bool) -> bool:
    """Whether there is a callback, which was called."""
    if _callback is None:
        return False
    _callback(Progress(what, unit, done, total, has_ended))
    return True
