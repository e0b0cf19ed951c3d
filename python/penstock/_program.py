"""The C++ programs that are commands of this package."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import TextIO

from penstock import _penstock


def run_program(name: str, arguments: list[str]) -> int:
    """Runs a program of the module, by its name there, with its own flags. Returns its exit status."""
    failed: list[Exception] = []

    def writer(to: TextIO) -> Callable[[str], None]:
        def write(text: str) -> None:
            try:
                to.write(text)
                to.flush()
            except Exception as error:  # told below: the run itself goes on
                failed.append(error)

        return write

    # Before and after the program's own handling of signals, Ctrl-C ends it as it ends any other.
    here = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_DFL) if here else None
    try:
        flags = [os.fsencode(argument) for argument in arguments]
        program = getattr(_penstock, name)  # not in the stub
        status: int = program(flags, writer(sys.stdout), writer(sys.stderr), sys.stderr.isatty())
    finally:
        if here:
            signal.signal(signal.SIGINT, before)
    if failed:
        raise failed[0]
    return status
