"""What the tests share. How long each may take is in time_limit.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hub_server import Hub
from time_limit import seconds_left, wait_until

os.environ.setdefault("PENSTOCK_LEAK_WARNINGS", "1")

import penstock as ps

# Whatever a shell starts in the background ignores Ctrl-C, and so would the programs that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# For what measures time, and so says nothing beside other programs.
speed = pytest.mark.skipif(
    os.environ.get("PENSTOCK_TEST_SPEED") != "1", reason="it measures time: PENSTOCK_TEST_SPEED=1 runs it, on a machine without other work"
)


def evaluate(text: str) -> Any:
    """What a text of the library makes: a plan's, a crop's, an operation's."""
    return eval(text, {**vars(ps), **vars(ps.augment)})


def state_of(pid: int) -> str:
    """Of a process, or of its main thread: R runs, S sleeps, Z has ended; Z also where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def wait_until_it_sleeps(pid: int) -> None:
    """Waits until the main thread of a process waits: the kernel says so five times in a row. One that has something to do runs, or is ready
    to, however busy the machine is."""
    in_a_row = 0

    def sleeps() -> bool:
        nonlocal in_a_row
        state = state_of(pid)
        assert state != "Z", "the process has ended, and was to wait"
        in_a_row = in_a_row + 1 if state == "S" else 0
        return in_a_row == 5

    wait_until(sleeps, f"the main thread of process {pid} sleeps", poll_s=0.02)


def numbers(count: int) -> ps.Dataset:
    """Sample i is the field "number" i64 [2]: i and i squared."""
    values = np.arange(count, dtype=np.int64)
    return ps.memory({"number": np.stack([values, values * values], axis=1)})


@pytest.fixture(scope="session")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 24 JPEGs, most of them of 500 x 375 pixels."""
    cache = tmp_path_factory.mktemp("photographs")
    ps.synthetic_images(24, cache=cache)
    return next(path for path in cache.iterdir() if path.is_dir())


def order_of(steps) -> list[int]:
    """The sample numbers of steps, in order."""
    return [sample.number for step in steps for sample in step.samples]


def delivered(dataset: ps.Dataset) -> list[int]:
    """The sample numbers of a dataset without batch, in order, as its loader delivers them."""
    return order_of(dataset.batch(7).loader(threads=2))


def bytes_of(step: ps.Step) -> list[dict[str, bytes]]:
    """Everything in a step, copied."""
    return [{name: np.asarray(tensor).tobytes() for name, tensor in part.items()} for part in step.parts]


def run_python(code: str, *arguments: str, check: bool = True, **options) -> subprocess.CompletedProcess[str]:
    """Runs a script in a process of its own, as a user would; nothing may be leaked."""
    result = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=seconds_left(),
        env={**os.environ, "PENSTOCK_LEAK_WARNINGS": "1"},
        **options,
    )
    if check:
        assert result.returncode == 0, result.stderr
        assert "leak" not in result.stderr, result.stderr
    return result


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class-per-sub-folder set of 40 generated photographs."""
    cache = Path(os.environ.get("PENSTOCK_TEST_CACHE") or tmp_path_factory.mktemp("cache"))
    ps.synthetic_images(40, classes=4, cache=cache)
    (folder,) = [path for path in cache.rglob("*") if path.is_dir() and any(path.glob("*/*.jpg"))]
    return folder


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A stand-in for the Hugging Face Hub, which hf:// paths of the test lead to."""
    others = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_DISABLE_IMPLICIT_TOKEN", "HF_HUB_OFFLINE", "PENSTOCK_OBJECT_CACHE")
    for name in others:
        monkeypatch.delenv(name, raising=False)
    with Hub() as server:
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
        yield server
