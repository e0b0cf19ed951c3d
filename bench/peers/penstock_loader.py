"""Penstock's own no-op elements, measured like those of the other loaders. Its images go through `python -m penstock throughput`."""

from __future__ import annotations

import numpy as np
import penstock as ps
from job import Job


def version() -> str:
    return f"Penstock {ps.__version__}"


def elements(job: Job):
    values = np.zeros((job.elements, job.element_bytes), np.uint8)
    plan = ps.memory({"x": values}).batch(job.batch).repeat()
    steps = iter(plan.loader(threads=job.threads))

    def run() -> int:
        done = 0
        while done < job.elements:
            done += next(steps).global_samples
        return done

    return run
