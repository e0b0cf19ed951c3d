"""torchvision under torch.utils.data.DataLoader: u8 [N,3,H,W], one worker process per core.

What its documentation calls fastest: the v2 transforms, on uint8 tensors rather than PIL images, bilinear and antialiased
(https://docs.pytorch.org/vision/stable/transforms.html#performance-considerations). The variant "pil" loads with Pillow, as
ImageFolder does by default; both are timed and the faster counts. Workers persist
(https://docs.pytorch.org/docs/stable/data.html).
"""

from __future__ import annotations

import numpy as np
import torch
import torchvision
from job import SIZE, Job, centre_region
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

ENVIRONMENT = "torch"
REQUIREMENTS = ["torch", "torchvision", "pillow", "numpy"]
DISK_GB = 6.5


def version() -> str:
    return f"torch {torch.__version__}, torchvision {torchvision.__version__}"


def _load(path: str, variant: str):
    if variant == "pil":
        from PIL import Image

        with Image.open(path) as image:
            return image.convert("RGB")
    from torchvision.io import ImageReadMode, decode_image, read_file

    return decode_image(read_file(path), mode=ImageReadMode.RGB)


class _Files(Dataset):
    def __init__(self, job: Job) -> None:
        self.job = job
        steps = [v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()]
        self.transform = v2.Compose(steps + [v2.PILToTensor()] if job.variant == "pil" else steps)

    def __len__(self) -> int:
        return len(self.job.files)

    def __getitem__(self, number: int):
        return self.transform(_load(self.job.files[number], self.job.variant)), number


def _epoch(dataset: Dataset, job: Job, shuffle: bool):
    loader = DataLoader(
        dataset, batch_size=job.batch, shuffle=shuffle, num_workers=job.threads, persistent_workers=True
    )
    return lambda: sum(len(batch[0]) for batch in loader)


def epoch(job: Job):
    return _epoch(_Files(job), job, shuffle=True)


def outputs(job: Job) -> np.ndarray:
    def one(path: str) -> np.ndarray:
        image = _load(path, job.variant)
        height, width = (image.height, image.width) if job.variant == "pil" else image.shape[-2:]
        x, y, w, h = centre_region(width, height)
        crop = v2.functional.resized_crop(image, y, x, h, w, [SIZE, SIZE], antialias=True)
        return np.asarray(crop) if job.variant == "pil" else crop.permute(1, 2, 0).numpy()

    return np.stack([one(path) for path in job.files])


class _Elements(Dataset):
    def __init__(self, job: Job) -> None:
        self.values = torch.zeros(job.elements, job.element_bytes, dtype=torch.uint8)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, number: int):
        return self.values[number], number


def elements(job: Job):
    return _epoch(_Elements(job), job, shuffle=False)
