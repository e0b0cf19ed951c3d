"""Worker processes of Dataset(data, workers=...)."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from multiprocessing.reduction import DupFd
from typing import Any

from penstock._errors import Error
from penstock._penstock import FieldSpec, _serve_items


def start(items: Any, fields: Sequence[FieldSpec], blocks: Sequence[int]) -> tuple[int, Any]:
    """A process that reads items: the socket to talk to it, and its handle."""
    described = [(field.name, field.dtype, field.shape) for field in fields]
    here, there = socket.socketpair()
    context = multiprocessing.get_context("spawn")
    arguments = (items, described, there, [_Descriptor(block) for block in blocks])
    process = context.Process(target=_serve, args=arguments, daemon=True, name="penstock-worker")
    try:
        process.start()
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise Error(
            f"this dataset cannot be sent to worker processes: {error}: make it of what pickle can carry (classes of "
            "a module, files that are opened at the first item), or leave out workers"
        ) from error
    finally:
        there.close()
    return here.detach(), process


class _Descriptor:
    """A file descriptor that goes along when multiprocessing pickles this."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        return _opened, (DupFd(self.number),)


def _opened(duplicate: Any) -> int:
    number: int = duplicate.detach()
    return number


def _serve(items: Any, described: Any, there: socket.socket, blocks: list[int]) -> None:
    """What a worker process runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends this one
    fields = [FieldSpec(*field) for field in described]
    _serve_items(items, fields, there.detach(), blocks, _seed)


def _seed(number: int) -> None:
    import random

    random.seed(number)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(number & 0xFFFFFFFF)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(number)


def pickle_exception(error: BaseException) -> bytes:
    """The exception, with where it was raised; of one that pickle cannot carry, its text."""
    where = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        pickled = pickle.dumps((error, where))
        pickle.loads(pickled)
        return pickled
    except Exception:
        return pickle.dumps((RuntimeError(f"{type(error).__name__}: {error}"), where))


def exception_of(pickled: bytes) -> BaseException:
    """As raised there; its __cause__ holds the traceback of the worker process."""
    error: BaseException
    error, where = pickle.loads(pickled)
    error.__cause__ = RuntimeError(f"in a worker process:\n{where}")
    return error
