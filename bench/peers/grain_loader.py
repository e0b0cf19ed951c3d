"""Grain: u8 [N,H,W,3], OpenCV decoding in Grain's own threads, or its worker processes (variant "processes").

Grain brings no decoder; OpenCV's gives up the GIL, so that ReadOptions' threads run side by side; for what holds it the
documentation has mp_prefetch (https://google-grain.readthedocs.io/en/latest/tutorials/dataset_basic_tutorial.html). Both are
timed and the faster counts.
"""

from __future__ import annotations

import importlib.metadata
import random

import cv2
import grain
import numpy as np
from job import SIZE, Job, centre_region, random_region

REQUIREMENTS = ["grain", "opencv-python-headless", "numpy"]
DISK_GB = 0.6

cv2.setNumThreads(0)


def version() -> str:
    return f"Grain {importlib.metadata.version('grain')}, OpenCV {cv2.__version__}"


def _decode(path: str) -> np.ndarray:
    return cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION)


def _resize(image: np.ndarray, region: tuple[int, int, int, int]) -> np.ndarray:
    x, y, w, h = region
    return cv2.resize(image[y : y + h, x : x + w], (SIZE, SIZE), interpolation=cv2.INTER_LINEAR)


def _training_crop(path: str, rng: np.random.Generator) -> np.ndarray:
    image = _decode(path)
    draw = random.Random(int(rng.integers(1 << 62)))
    crop = _resize(image, random_region(image.shape[1], image.shape[0], draw))
    return cv2.flip(crop, 1) if draw.random() < 0.5 else crop


def _iterate(dataset: grain.MapDataset, job: Job, samples: int):
    # Without processes a thread reads ahead of each batch's place, as many as there are cores.
    processes = job.variant == "processes"
    endless = dataset.repeat().batch(job.batch)
    reading = grain.ReadOptions(num_threads=1 if processes else job.threads, prefetch_buffer_size=4 * job.threads)
    reader = endless.to_iter_dataset(reading)
    if processes:
        reader = reader.mp_prefetch(grain.MultiprocessingOptions(num_workers=job.threads, per_worker_buffer_size=2))
    batches = iter(reader)

    def run() -> int:
        done = 0
        while done < samples:
            done += len(next(batches))
        return done

    return run


def epoch(job: Job):
    files = grain.MapDataset.source(job.files).seed(7).shuffle()
    return _iterate(files.random_map(_training_crop), job, len(job.files))


def outputs(job: Job) -> np.ndarray:
    images = (_decode(path) for path in job.files)
    return np.stack([_resize(image, centre_region(image.shape[1], image.shape[0])) for image in images])


def elements(job: Job):
    values = np.zeros((job.elements, job.element_bytes), np.uint8)
    return _iterate(grain.MapDataset.source(values), job, job.elements)
