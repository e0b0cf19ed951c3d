"""One run of one framework, in a process of its own: prints one line of JSON.

Usage: child.py MODULE prepare|outputs|run|elements JOB.json

The first epoch is not timed: it opens, compiles and starts what later ones find ready.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from job import Job

_TICK = os.sysconf("SC_CLK_TCK")


def tree(root: int) -> list[int]:
    """This process and all that come from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                after_name = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(after_name[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def cpu_seconds() -> float:
    """Of this process, of all that come from it, and of those that ended and were waited for."""
    ticks = 0  # of 10 ms, as /proc counts those of others
    for pid in tree(os.getpid())[1:]:
        try:
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
        except OSError:
            continue
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return ticks / _TICK + sum(usage.ru_utime + usage.ru_stime for usage in own)


def measure(epoch, epochs: int) -> dict:
    """Calls epoch(), which says how many samples it delivered, once for warming up and so many times."""
    epoch()
    cpu, began = cpu_seconds(), time.perf_counter()
    samples = sum(epoch() for _ in range(epochs))
    seconds = time.perf_counter() - began
    return {"samples": samples, "seconds": seconds, "cpu_s": cpu_seconds() - cpu}


def main() -> None:
    name, mode, path = sys.argv[1:]
    job = Job.read(path)
    module = importlib.import_module(name)
    if mode == "prepare":
        module.prepare(job)
        result = {}
    elif mode == "outputs":
        import numpy as np

        Path(job.folder).mkdir(parents=True, exist_ok=True)
        np.save(Path(job.folder, "outputs.npy"), module.outputs(job))
        result = {}
    elif mode == "run":
        result = measure(module.epoch(job), job.epochs)
    else:
        result = measure(module.elements(job), 1)
    print(json.dumps({**result, "version": module.version()}), flush=True)
    os._exit(0)  # what threads and workers still do is not the measurement's


if __name__ == "__main__":
    main()
