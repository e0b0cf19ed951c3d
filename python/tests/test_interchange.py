"""One state for both languages: Python resumes what penstock-throughput saves, and the other way round."""

from __future__ import annotations

import json
import math
import os
import resource
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import speed
from time_limit import seconds_left

import penstock as ps
from penstock import __main__ as command

PROGRAM = os.environ.get("PENSTOCK_THROUGHPUT", "")

pytestmark = pytest.mark.skipif(
    not Path(PROGRAM).is_file(), reason="PENSTOCK_THROUGHPUT does not name penstock-throughput"
)


def cpp(folder: Path, *flags: str) -> dict:
    arguments = [PROGRAM, "--data", str(folder), "--crop", "32", "--batch", "6", "--seed", "5", "--digest"]
    result = subprocess.run(
        [*arguments, "--devices", "host:2", "--json", "-", *flags],
        capture_output=True,
        text=True,
        timeout=seconds_left(),
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def python(folder: Path, report: Path, *flags: str) -> dict:
    arguments = ["throughput", str(folder), "--crop", "32", "--batch", "6", "--seed", "5", "--digest", "--quiet"]
    assert command.main([*arguments, "--devices", "host:2", "--json", str(report), *flags]) == 0
    return json.loads(report.read_text())


def test_both_deliver_the_same(images, tmp_path):
    one = cpp(images, "--epochs", "2")
    other = python(images, tmp_path / "report", "--epochs", "2")
    for key in ("digest", "samples", "steps", "seed", "devices"):
        assert one[key] == other[key]


@pytest.mark.parametrize("steps", ["1", "4", "7", "9"])
def test_a_state_saved_by_either_goes_on_in_the_other(images, tmp_path, steps):
    whole = cpp(images, "--epochs", "2")["digest"]
    state = tmp_path / "state"
    cpp(images, "--steps", steps, "--state-out", str(state))
    there = python(images, tmp_path / "report", "--epochs", "2", "--state-in", str(state))
    assert there["digest"] == whole
    python(images, tmp_path / "report", "--steps", steps, "--state-out", str(state))
    assert cpp(images, "--epochs", "2", "--state-in", str(state))["digest"] == whole


def test_the_saved_texts_are_the_same(images, tmp_path):
    cpp(images, "--steps", "3", "--state-out", str(tmp_path / "cpp"))
    python(images, tmp_path / "report", "--steps", "3", "--state-out", str(tmp_path / "python"))
    assert json.loads((tmp_path / "cpp").read_text()) == json.loads((tmp_path / "python").read_text())


@speed
@pytest.mark.time_limit(600)
def test_an_image_costs_no_more_than_in_the_program(images, tmp_path, capsys):
    """CPU time per image, of what a long run does beyond a short one, which leaves out how each starts.

    What its thread does, of which Python is a part, is within 3%. Beside the program, which shows that the module is compiled
    as it is: within 2%, by the median of pairs in turn, of so many as it takes. On a shared machine single pairs differ by a
    fifth either way.
    """
    short, long = 2, 10
    bound = 1.02
    count = 40 * (long - short)

    def flags(epochs: int) -> list[str]:
        given = ["--crop", "224", "--batch", "20", "--depth", "1", "--epochs", str(epochs), "--threads", "1", "--seed", "5"]
        return [*given, "--quiet", "--devices", "host:1", "--shuffle", "off"]

    def program(epochs: int) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([PROGRAM, "--data", images, "--json", "-", *flags(epochs)], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def package(epochs: int) -> np.ndarray:
        """Of the whole process, and of the thread that loops."""
        before = np.array([time.process_time(), time.thread_time()])
        assert command.main(["throughput", str(images), "--json", str(tmp_path / "report"), *flags(epochs)]) == 0
        return np.array([time.process_time(), time.thread_time()]) - before

    package(short)  # what is imported and made once
    pairs, own = [], []
    for done in range(1, 22):
        first = program(long) - program(short) if done % 2 else None
        whole, thread = package(long) - package(short)
        cpp = program(long) - program(short) if first is None else first
        if min(cpp, whole) > 0:
            pairs.append((cpp, whole))
            own.append(thread / whole)
        ratio = statistics.median(python / cpp for cpp, python in pairs) if pairs else math.inf
        if done >= 5 and ratio <= bound:
            break
    capsys.readouterr()
    cpp, python = (statistics.median(column) / count * 1e6 for column in zip(*pairs))
    share = statistics.median(own)
    with capsys.disabled():
        print(
            f"\nCPU time per image, medians of {done} pairs: C++ {cpp:.0f} us, Python {python:.0f} us ({ratio:.2f}), "
            f"of which its thread {share * 100:.1f}%"
        )
    assert share <= 0.03
    assert ratio <= bound


def test_a_plan_of_ones_own_takes_the_programs_state(images, tmp_path):
    cpp(images, "--steps", "3", "--state-out", str(tmp_path / "state"))
    decode = ps.decode_image(crop=ps.random_resized_crop(32), flip=0.5)
    plan = ps.image_folder(images).seed(5).shuffle().map(decode).batch(6).repeat()
    loader = plan.loader()
    loader.load_state_dict((tmp_path / "state").read_text())
    assert next(loader).number == 3
