"""Trainers that people use: each example in examples/trainers, killed, and resumed in more processes."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.time_limit(900)  # each imports a framework, in several processes one after another

EXAMPLES = Path(__file__).parents[1] / "examples" / "trainers"
EPOCHS, STEPS, BATCH = 8, 10, 12  # of the examples: 126 samples, of which 6 do not fill a batch


def descendants(pid: int) -> list[int]:
    pids = [pid]
    for one in pids:
        try:
            for task in Path(f"/proc/{one}/task").iterdir():
                pids += [int(child) for child in (task / "children").read_text().split()]
        except OSError:  # it has ended
            pass
    return pids


class Run:
    """One start of an example: what each step delivered, over all processes."""

    def __init__(self, example: str, folder: Path, *flags: str, processes: int = 1, kill_at: int | None = None) -> None:
        command = [sys.executable]
        if processes > 1 and example != "ray_training.py":  # which starts its workers itself
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            command += ["-m", "torch.distributed.run", "--nproc-per-node", str(processes), "--master-port", str(port)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "RAY_DEDUP_LOGS": "0"}
        process = subprocess.Popen(
            [*command, EXAMPLES / example, folder, "--epochs", str(EPOCHS), *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert process.stdout is not None and process.stderr is not None
        self.samples: dict[int, list[int]] = {}
        self.lines: list[str] = []
        killed = False
        for line in process.stdout:
            self.lines.append(line.rstrip())
            for step, numbers in re.findall(r"step (\d+): \[(.*?)\]", line):  # two processes may share a line
                self.samples.setdefault(int(step), []).extend(map(int, numbers.split(",")))
                if kill_at is not None and int(step) >= kill_at and not killed:
                    for pid in reversed(descendants(process.pid)):
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                    killed = True
        errors = process.stderr.read()
        process.wait()
        assert killed == (kill_at is not None), errors
        assert killed or process.returncode == 0, errors[-4000:]

    @property
    def first(self) -> int:
        return min(self.samples)

    @property
    def last(self) -> int:
        return max(self.samples)


def needs(module: str):
    return pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=f"{module} is not installed")


def kept(runs: list[Run]) -> dict[int, list[int]]:
    """What was trained on: of each run the steps before that at which the next one went on."""
    for before, after in zip(runs, runs[1:]):
        assert before.first < after.first <= before.last + 1
    assert runs[0].first == 0
    ends = [*(run.first for run in runs[1:]), EPOCHS * STEPS]
    return {step: numbers for run, end in zip(runs, ends) for step, numbers in run.samples.items() if step < end}


def sorted_steps(samples: dict[int, list[int]]) -> dict[int, list[int]]:
    return {step: sorted(numbers) for step, numbers in sorted(samples.items())}


def whole_run(example: str, folder: Path) -> Run:
    run = Run(example, folder)
    assert sorted(run.samples) == list(range(EPOCHS * STEPS))
    for epoch in range(EPOCHS):
        numbers = [number for step in range(epoch * STEPS, (epoch + 1) * STEPS) for number in run.samples[step]]
        assert len(set(numbers)) == len(numbers) == STEPS * BATCH
    return run


TRAINERS = pytest.mark.parametrize(
    ("example", "own_flag"),
    [
        pytest.param("ignite_training.py", None, marks=needs("ignite")),
        pytest.param("ray_training.py", "--processes", marks=needs("ray")),
        pytest.param("accelerate_training.py", None, marks=needs("accelerate")),
        pytest.param("transformers_training.py", None, marks=needs("transformers")),
        pytest.param("lightning_training.py", "--processes", marks=needs("lightning")),
    ],
)


@TRAINERS
def test_killed_in_one_process_then_in_two_it_ends_in_three(example, own_flag, tmp_path):
    whole = whole_run(example, tmp_path / "whole")
    runs = []
    for processes, kill_at in [(1, 7), (2, 14), (3, None)]:
        flags = [own_flag, str(processes)] if own_flag else []
        runs.append(Run(example, tmp_path / "killed", *flags, processes=processes, kill_at=kill_at))
    assert sorted_steps(kept(runs)) == sorted_steps(whole.samples)


@TRAINERS
@pytest.mark.parametrize("epochs", [1, 2])
def test_a_state_of_an_epochs_last_step_goes_on_with_the_next(example, own_flag, epochs, tmp_path):
    """The last that is saved of a run that ends there."""
    whole = whole_run(example, tmp_path / "whole")
    flags = [own_flag, "2"] if own_flag else []
    runs = [
        Run(example, tmp_path / "stopped", "--save-every", "5", "--epochs", str(epochs)),
        Run(example, tmp_path / "stopped", "--save-every", "5", *flags, processes=2),
    ]
    assert [(run.first, run.last) for run in runs] == [(0, STEPS * epochs - 1), (STEPS * epochs, STEPS * EPOCHS - 1)]
    assert sorted_steps(kept(runs)) == sorted_steps(whole.samples)


@needs("keras")
@pytest.mark.parametrize("backend", [pytest.param(name, marks=needs(name)) for name in ("torch", "jax")])
def test_keras_goes_on_in_the_middle_of_an_epoch(backend, tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", backend)
    whole = Run("keras_training.py", tmp_path / "whole")
    runs = [Run("keras_training.py", tmp_path / "killed", "--save-every", "1", kill_at=kill_at) for kill_at in (7, 19, None)]
    found = {step: set(numbers) for step, numbers in kept(runs).items()}
    # Keras looks at the first batch of each fit() once more.
    assert found == {step: set(numbers) for step, numbers in whole.samples.items()}
    assert sorted(found) == list(range(EPOCHS * STEPS))


@needs("accelerate")
def test_accelerate_updates_at_the_end_of_each_epoch(tmp_path):
    run = Run("accelerate_training.py", tmp_path, "--accumulate", "4", "--epochs", "2")
    assert [line for line in run.lines if line.startswith("update")] == [f"update at step {step}" for step in (3, 7, 9, 13, 17, 19)]


@needs("accelerate")
def test_accelerate_skips_batches_without_reading_them(tmp_path):
    whole = Run("accelerate_training.py", tmp_path / "whole", "--epochs", "2")
    run = Run("accelerate_training.py", tmp_path / "skipped", "--epochs", "2", "--skip", "4", "--accumulate", "4")
    assert run.samples == {step: numbers for step, numbers in whole.samples.items() if step >= 4}
    assert [line for line in run.lines if line.startswith("update")] == [f"update at step {step}" for step in (7, 9, 13, 17, 19)]


@needs("accelerate")
def test_accelerate_counts_anew_after_batches_were_skipped(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import numpy as np, penstock as ps, penstock.torch, torch
from accelerate import Accelerator, skip_first_batches
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
loader = penstock.torch.DataLoader(ps.memory({"x": np.arange(80)}).batch(8), devices="host:1")
loader, model = accelerator.prepare(loader, torch.nn.Linear(1, 1))
def updates(batches):
    found = []
    for k, _ in enumerate(batches):
        with accelerator.accumulate(model):
            found.append(accelerator.sync_gradients)
    return found
print(updates(skip_first_batches(loader, 4)), accelerator.gradient_state.in_dataloader, updates([0] * 8))
for _ in skip_first_batches(loader, 4):
    break
print(updates(loader))
""")
    found = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True).stdout.splitlines()
    every_fourth = [False, False, False, True]
    assert found[0] == f"{[*every_fourth, False, True]} False {every_fourth * 2}"
    assert found[1] == str([*every_fourth * 2, False, True])


@needs("transformers")
def test_huggingface_counts_samples(tmp_path):
    run = Run("transformers_training.py", tmp_path)
    assert float(re.search(r"(\S+) samples/s in all", "\n".join(run.lines))[1]) > 0


@needs("transformers")
def test_huggingface_holds_the_batches_that_it_accumulates(tmp_path):
    run = Run("transformers_training.py", tmp_path, "--accumulate", "5")
    assert sorted(run.samples) == list(range(0, EPOCHS * STEPS, 5))  # an update's samples under its first step
    assert all(len(numbers) == 5 * BATCH for numbers in run.samples.values())
