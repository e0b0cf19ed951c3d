"""What Python costs over the loop of a C++ program: no Python function a batch, and at most 20 microseconds, of no-op batches."""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np
from conftest import numbers, speed

import penstock as ps
from penstock._penstock import _run_through

STEPS = 4000
LIMIT_US = 20.0


def _loader() -> ps.Loader:
    values = np.zeros((STEPS, 2), dtype=np.int64)
    plan = ps.memory({"x": values}).batch(1).prefetch_to_devices("host:1", depth=8)
    return plan.loader(threads=1)


def test_a_step_and_its_arrays_call_no_python_function():
    loader = _loader()
    called: list[str] = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        for step in loader:
            np.from_dlpack(step["x"])
    finally:
        sys.setprofile(None)
    assert called == []


@speed
def test_a_batch_costs_little_more_than_in_cpp(capsys):
    """CPU time of this thread; medians of rounds in turn."""

    def cpu(loop) -> float:
        loader = _loader()
        loader.start()
        began = time.thread_time_ns()
        assert loop(loader) == STEPS
        return (time.thread_time_ns() - began) / STEPS / 1e3

    def python(loader) -> int:
        steps = 0
        for _step in loader:
            steps += 1
        return steps

    def with_arrays(loader) -> int:
        steps = 0
        for step in loader:
            np.from_dlpack(step["x"])
            steps += 1
        return steps

    rounds = [(cpu(_run_through), cpu(python), cpu(with_arrays)) for _ in range(5)]
    cpp, bare, arrays = (statistics.median(column) for column in zip(*rounds))
    with capsys.disabled():
        print(f"\nper batch: C++ {cpp:.1f} us, Python {bare:.1f} us, with one array {arrays:.1f} us")
    assert bare - cpp <= LIMIT_US
    assert arrays - cpp <= LIMIT_US


@speed
def test_a_python_function_costs_what_its_documentation_says(capsys):
    """Printed, and held to ten times the documented cost: CPU time, which other processes make longer, too."""

    def per_sample(function, **outputs) -> float:
        plan = numbers(2000).map(function, outputs={"number": ("i64", (2,))}).batch(100)
        loader = plan.loader(threads=1)
        began = time.process_time_ns()
        for _ in loader:
            pass
        return (time.process_time_ns() - began) / 2000 / 1e3

    def same(number):
        return number

    def noisy(number, rng):
        return number

    plain, random = per_sample(same), per_sample(noisy)
    with capsys.disabled():
        print(f"\nper sample of a Python function: {plain:.1f} us, with an rng {random:.1f} us")
    assert plain < 10 and random < 110
