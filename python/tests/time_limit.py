"""A time limit for each test, as a plugin of pytest: the conftest.py of the root loads it for all tests.

A test that takes longer than TIME_LIMIT_S fails, and the others go on: SIGALRM raises in the main thread. Where that does not help, as
in native code that looks at no signals, pytest ends PATIENCE_S later, and shows what all threads do. A test that needs longer says so:
@pytest.mark.time_limit(seconds). So do whole files: pytestmark = pytest.mark.time_limit(seconds).

What a test waits for has seconds_left() to come, which is less than the test has.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

TIME_LIMIT_S = 120.0  # four busy loops on two cores make a test ten times as long
PATIENCE_S = 60.0
AGAIN_S = 30.0  # a destructor, say, may have swallowed what was raised
MARGIN_S = 5.0  # to tell what did not come, and to end what was started

Found = TypeVar("Found")

_deadline: float | None = None
_stderr = 2


def seconds_left() -> float:
    """For how long the running test may wait for something. Without a test, as in a process of its own: what a test has by default."""
    left = TIME_LIMIT_S if _deadline is None else _deadline - time.monotonic()
    return max(1.0, left - MARGIN_S)


def wait_until(condition: Callable[[], Found], what: str, poll_s: float = 0.01) -> Found:
    """Waits for a condition, for as long as the test may; returns what it gave. `what` is for the message."""
    end = time.monotonic() + seconds_left()
    while not (found := condition()):
        if time.monotonic() > end:
            pytest.fail(f"the test waited for this, and it did not come: {what}")
        time.sleep(poll_s)
    return found


def limit_of(item: pytest.Item) -> float:
    marker = item.get_closest_marker("time_limit")
    if marker is None:
        return TIME_LIMIT_S
    (limit,) = marker.args
    return float(limit)


@contextmanager
def limited(item: pytest.Item) -> Iterator[None]:
    global _deadline
    limit = limit_of(item)

    def end(number: int, frame: object) -> None:
        pytest.fail(f"this test took longer than its time limit of {limit:g} s; a test that needs longer has @pytest.mark.time_limit(seconds)")

    before = signal.signal(signal.SIGALRM, end)
    _deadline = time.monotonic() + limit
    faulthandler.dump_traceback_later(limit + PATIENCE_S, exit=True, file=_stderr)
    signal.setitimer(signal.ITIMER_REAL, limit, AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        _deadline = None
        signal.signal(signal.SIGALRM, before)


def pytest_configure(config: pytest.Config) -> None:
    global _stderr
    _stderr = os.dup(2)  # which pytest captures while a test runs


# Fixtures of a module or of the session are made for the first test that asks, so each phase has the limit for itself.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with limited(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with limited(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    with limited(item):
        return (yield)
