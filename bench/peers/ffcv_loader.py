"""FFCV, from its own format: u8 [N,H,W,3], JPEGs in a .beton file.

RandomResizedCropRGBImageDecoder, os_cache and OrderOption.RANDOM as https://docs.ffcv.io/performance_guide.html has them for data that
fits into memory. FFCV encodes every photograph again: as JPEGs of quality 90, its default; write_mode "raw" trades decoding for many
times the space (https://docs.ffcv.io/working_with_images.html), which is another experiment.
"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import numpy as np
from ffcv.fields import BytesField, IntField, RGBImageField
from ffcv.fields.basics import IntDecoder
from ffcv.fields.bytes import BytesDecoder
from ffcv.fields.rgb_image import CenterCropRGBImageDecoder, RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import RandomHorizontalFlip
from ffcv.writer import DatasetWriter
from job import AREA, ASPECT, SIZE, Job
from PIL import Image

ENVIRONMENT = "torch"
REQUIREMENTS = ["torch", "torchvision", "numpy", "pillow", "numba", "opencv-python-headless", "tqdm", "fastargs",
                "terminaltables", "pandas", "assertpy", "psutil", "imgcat", "setuptools", "wheel"]  # fmt: skip
BUILT_HERE = ["ffcv"]  # against the torch that is there, and the packages libopencv-dev, libturbojpeg0-dev and pkg-config
DISK_GB = 0.6


def version() -> str:
    return f"FFCV {importlib.metadata.version('ffcv')}"


class _Files:
    def __init__(self, files: list[str]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, number: int):
        return Image.open(self.files[number]).convert("RGB"), number


class _Elements:
    def __init__(self, job: Job) -> None:
        self.job = job

    def __len__(self) -> int:
        return self.job.elements

    def __getitem__(self, number: int):
        return (np.zeros(self.job.element_bytes, np.uint8),)


def prepare(job: Job) -> None:
    fields = {"image": RGBImageField(write_mode="jpg", jpeg_quality=90), "label": IntField()}
    _write(Path(job.folder, "photos.beton"), fields, _Files(job.files))
    _write(Path(job.folder, "elements.beton"), {"x": BytesField()}, _Elements(job))


def _write(file: Path, fields: dict, dataset) -> None:
    if not file.exists():
        half = file.with_suffix(".half")
        DatasetWriter(str(half), fields, num_workers=1).from_indexed_dataset(dataset)
        half.rename(file)


def _loader(job: Job, decode: list, order) -> Loader:
    return Loader(
        str(Path(job.folder, "photos.beton")),
        batch_size=job.batch,
        num_workers=job.threads,
        order=order,
        os_cache=True,
        drop_last=False,
        pipelines={"image": decode, "label": [IntDecoder()]},
    )


def epoch(job: Job):
    decode = [RandomResizedCropRGBImageDecoder((SIZE, SIZE), AREA, ASPECT), RandomHorizontalFlip()]
    loader = _loader(job, decode, OrderOption.RANDOM)
    return lambda: sum(len(batch[0]) for batch in loader)


def outputs(job: Job) -> np.ndarray:
    loader = _loader(job, [CenterCropRGBImageDecoder((SIZE, SIZE), SIZE / 256)], OrderOption.SEQUENTIAL)
    return np.concatenate([np.array(batch[0]) for batch in loader])


def elements(job: Job):
    path = str(Path(job.folder, "elements.beton"))
    loader = Loader(path, batch_size=job.batch, num_workers=job.threads, os_cache=True, drop_last=False, pipelines={"x": [BytesDecoder()]})
    return lambda: sum(len(batch[0]) for batch in loader)
