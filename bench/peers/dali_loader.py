"""NVIDIA DALI on the CPU: u8 [N,H,W,3], one pipeline with a thread per core.

decoders.image_random_crop decodes only the region where it can
(https://docs.nvidia.com/deeplearning/dali/user-guide/docs/operations/nvidia.dali.fn.decoders.image_random_crop.html); beside
the number of threads its guide leaves the defaults
(https://docs.nvidia.com/deeplearning/dali/user-guide/docs/advanced_topics_performance_tuning.html).
"""

from __future__ import annotations

import numpy as np
from job import AREA, ASPECT, SIZE, Job
from nvidia import dali
from nvidia.dali import fn, pipeline_def, types

REQUIREMENTS = ["nvidia-dali-cuda120", "numpy"]
DISK_GB = 1.5


def version() -> str:
    return f"DALI {dali.__version__}"


def _pipeline(job: Job, graph):
    pipeline = pipeline_def(graph)(batch_size=job.batch, num_threads=job.threads, device_id=None, seed=7)
    pipeline.build()
    return pipeline


def _count(pipeline, samples: int, job: Job):
    # The reader goes round without end, in whole batches.
    def run() -> int:
        done = 0
        while done < samples:
            done += len(pipeline.run()[0])
        return done

    return run


def epoch(job: Job):
    def graph():
        encoded, _ = fn.readers.file(files=job.files, random_shuffle=True, initial_fill=len(job.files))
        images = fn.decoders.image_random_crop(encoded, random_area=AREA, random_aspect_ratio=ASPECT)
        images = fn.resize(images, resize_x=SIZE, resize_y=SIZE)
        return fn.flip(images, horizontal=fn.random.coin_flip())

    return _count(_pipeline(job, graph), len(job.files), job)


def outputs(job: Job) -> np.ndarray:
    def graph():
        encoded, _ = fn.readers.file(files=job.files)
        height, width = (fn.peek_image_shape(encoded)[k] for k in (0, 1))
        side = dali.math.min(height, width) * (SIZE / 256)
        images = fn.decoders.image_slice(
            encoded,
            fn.stack((width - side) / 2, (height - side) / 2),
            fn.stack(side, side),
            normalized_anchor=False,
            normalized_shape=False,
            axis_names="WH",
        )
        return fn.resize(images, resize_x=SIZE, resize_y=SIZE)

    pipeline = _pipeline(job, graph)
    batches = [pipeline.run()[0].as_array() for _ in range(-(-len(job.files) // job.batch))]
    return np.concatenate(batches)[: len(job.files)]


def elements(job: Job):
    def graph():
        return fn.constant(idata=[0] * job.element_bytes, dtype=types.UINT8)

    return _count(_pipeline(job, graph), job.elements, job)
