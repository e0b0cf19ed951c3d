"""SPDL: u8 [N,H,W,3], FFmpeg decoding in a pipeline of threads.

One pool of threads in one process, FFmpeg without the GIL, each image with one decoder thread: as
https://facebookresearch.github.io/spdl/latest/getting_started/pytorch.html and the example image_dataloading do it. Crop, resize and
flip are one FFmpeg filter graph; it takes the crop as an expression of the image's size.
"""

from __future__ import annotations

import importlib.metadata
import math
import random

import numpy as np
import spdl.io
from job import AREA, ASPECT, SIZE, Job
from spdl.pipeline import PipelineBuilder

REQUIREMENTS = ["spdl", "numpy"]  # and the libraries of the package ffmpeg
_SCALE = f"scale={SIZE}:{SIZE}:flags=bilinear,format=rgb24"
DISK_GB = 0.4


def version() -> str:
    return f"SPDL {importlib.metadata.version('spdl')}"


def _load(path: str, filters: str) -> np.ndarray:
    config = spdl.io.decode_config(decoder_options={"threads": "1"})
    buffer = spdl.io.load_image(path, decode_config=config, filter_desc=filters)
    return np.asarray(spdl.io.to_numpy(buffer))


def _training_crop(path: str) -> np.ndarray:
    area = random.uniform(*AREA)
    root = math.sqrt(math.exp(random.uniform(math.log(ASPECT[0]), math.log(ASPECT[1]))))
    w = f"min(iw,sqrt(iw*ih*{area:.6f})*{root:.6f})"
    h = f"min(ih,sqrt(iw*ih*{area:.6f})/{root:.6f})"
    at = f"x='(iw-ow)*{random.random():.6f}':y='(ih-oh)*{random.random():.6f}'"
    flip = ",hflip" if random.random() < 0.5 else ""
    return _load(path, f"crop=w='{w}':h='{h}':{at},{_SCALE}{flip}")


def _count(source, stage, job: Job):
    def run() -> int:
        builder = PipelineBuilder().add_source(source())
        builder = stage(builder).aggregate(job.batch).pipe(np.stack).add_sink(2)
        pipeline = builder.build(num_threads=job.threads)
        with pipeline.auto_stop():
            return sum(len(batch) for batch in pipeline)

    return run


def epoch(job: Job):
    def shuffled() -> list[str]:
        return random.sample(job.files, len(job.files))

    return _count(shuffled, lambda builder: builder.pipe(_training_crop, concurrency=job.threads), job)


def outputs(job: Job) -> np.ndarray:
    side = f"min(iw,ih)*{SIZE}/256"
    return np.stack([_load(path, f"crop=w='{side}':h='{side}',{_SCALE}") for path in job.files])


def elements(job: Job):
    values = np.zeros((job.elements, job.element_bytes), np.uint8)
    return _count(lambda: values, lambda builder: builder, job)
