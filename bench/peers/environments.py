"""Frameworks in virtual environments of their own, and runs in processes of their own."""

from __future__ import annotations

import ast
import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from child import tree
from summary import NoResult, parse, reason

HERE = Path(__file__).parent
TIMEOUT_S = 900


def finished(
    command: list, cores: int | None = None, *, timeout: float | None = TIMEOUT_S, **options
) -> tuple[str, str, float]:
    """Runs it to its end, on so many cores; what it printed, its errors, and the most memory that its processes held at a
    time, in MiB. It and what it started die with this process, however that ends.

    Errors  NoResult  it failed, or took longer than `timeout` seconds
    """
    given = ["setpriv", "--pdeathsig", "KILL"]
    if cores is not None:
        given += ["taskset", "-c", ",".join(str(core) for core in sorted(os.sched_getaffinity(0))[:cores])]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([*given, *map(str, command)], start_new_session=True, **pipes, **options)
    peak, done = 0.0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.25):
            held = 0
            for pid in tree(process.pid):
                try:
                    held += int(Path(f"/proc/{pid}/smaps_rollup").read_text().partition("\nPss:")[2].split()[0])
                except (OSError, IndexError):
                    continue
            peak = max(peak, held / 1024)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise NoResult(f"no result within {timeout} s") from None
    finally:
        done.set()
        with contextlib.suppress(ProcessLookupError):  # also a framework's workers, where it left some behind
            os.killpg(process.pid, signal.SIGKILL)
        watcher.join()
    if process.returncode != 0:
        raise NoResult(reason(err) or reason(out) or f"exit status {process.returncode}")
    return out, err, peak


def measured(command: list, cores: int, **options) -> tuple[dict, float]:
    """finished(), and the JSON that it printed."""
    out, err, peak = finished(command, cores, **options)
    return parse(out, err), peak


class Environments:
    """Virtual environments, each made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _complete(self, module: str) -> Path:
        return self.folder / constant(module, "ENVIRONMENT", module) / f"complete-{module}"

    def has(self, module: str) -> bool:
        return self._complete(module).exists()

    def python(self, module: str) -> Path:
        """Of the environment that a module here names, or of its own, with what it requires.

        Errors  NoResult  it cannot be installed; the next call tries again
        """
        complete = self._complete(module)
        python = complete.parent / "bin" / "python"
        if complete.exists():
            return python
        print(f"installing what {module}.py requires into {complete.parent}", file=sys.stderr)
        if not python.exists():
            finished([sys.executable, "-m", "venv", complete.parent], timeout=None)
        commands = [constant(module, "REQUIREMENTS", [])]
        commands += [["--no-build-isolation", "--no-deps", text] for text in constant(module, "BUILT_HERE", [])]
        for command in filter(None, commands):
            try:
                finished([python, "-m", "pip", "install", "-q", *command], timeout=None)
            except NoResult as none:
                raise NoResult(f"pip: {none}") from None
        complete.touch()
        return python


def constant(module: str, name: str, default):
    """A constant of a module here, read without importing what the module needs."""
    for node in ast.parse((HERE / f"{module}.py").read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return ast.literal_eval(node.value)
    return default
