"""Worker processes of Dataset(data, workers=...)."""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import multiprocessing.util  # registers what it does at the end
import os
import pickle
import signal
import socket
import sys
import traceback
from collections.abc import Iterator, Sequence
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

from penstock._errors import Error
from penstock._penstock import FieldSpec, _serve_items, _stop_all

# At the end the loaders stop before multiprocessing ends the workers, or they would be replaced.
atexit.unregister(_stop_all)
atexit.register(_stop_all)


def start(items: Any, fields: Sequence[FieldSpec], blocks: Sequence[int]) -> tuple[int, Any]:
    """A process that reads items: the socket to talk to it, and its handle."""
    described = [(field.name, field.dtype, field.shape) for field in fields]
    try:
        pickled = ForkingPickler.dumps(items)
    except (pickle.PicklingError, AttributeError, TypeError, RuntimeError) as error:
        raise Error(
            f"this dataset cannot be sent to worker processes: {error}: make it of what pickle can carry (classes of "
            "a module, files that are opened at the first item), or leave out workers"
        ) from error
    here, there = socket.socketpair()
    context = multiprocessing.get_context("spawn")
    # In a file: multiprocessing's own pipe waits for ever where the process ends before it has read all of it.
    with open(os.memfd_create("penstock-items"), "wb") as file, there:
        file.write(pickled)
        file.flush()
        descriptors = [_Descriptor(block) for block in (file.fileno(), *blocks)]
        process = context.Process(target=_serve, args=(described, there, descriptors), daemon=True, name="penstock-worker")
        process.start()
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


@contextlib.contextmanager
def in_memory(objects: Any) -> Iterator[Any]:
    """A descriptor for a process that is started meanwhile. Not multiprocessing's own pipe: it waits for ever where the process
    ends before it has read all of it."""
    with open(os.memfd_create("penstock-objects"), "wb") as file:
        pickle.dump(objects, file)
        file.flush()
        yield _Descriptor(file.fileno())


def from_memory(descriptor: int) -> Any:
    os.set_inheritable(descriptor, False)
    with open(descriptor, "rb") as file:
        file.seek(0)
        return pickle.load(file)


class _Broken:
    """In place of a data set that could not be made again: each item says why."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getitem__(self, number: int) -> Any:
        raise Error(f"the data set cannot be made again in a worker process: {self._error!r}") from self._error


def _serve(described: Any, there: socket.socket, descriptors: list[int]) -> None:
    """What a worker process runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends this one
    for descriptor in (there.fileno(), *descriptors):
        os.set_inheritable(descriptor, False)  # else a process that an item starts would keep the socket open
    try:
        with open(descriptors[0], "rb") as file:
            file.seek(0)
            items = pickle.load(file)
    except Exception as error:
        items = _Broken(error)
    fields = [FieldSpec(*field) for field in described]
    _serve_items(items, fields, there.detach(), descriptors[1:], _seed)


def _seed(number: int) -> None:
    """The generators that modules share; of those that are imported."""
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
