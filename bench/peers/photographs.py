"""The photographs that are measured, and what is unusual about some of them."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from job import SIZE, centre_region
from PIL import Image, ImageOps

_ORIENTATION = 0x0112


@dataclass
class Photographs:
    """JPEGs, in the order of their paths."""

    folder: Path
    files: list[str]
    kinds: dict[str, list[int]] = field(default_factory=dict)  # which of them are CMYK, grey, progressive or turned

    @staticmethod
    def below(folder: Path) -> Photographs:
        """
        Errors  SystemExit  there are none
        """
        files = sorted(str(path) for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
        if not files:
            raise SystemExit(f"peers: no .jpg or .jpeg file in '{folder}'; name a folder of photographs with --data")
        found = Photographs(folder, files)
        for number, path in enumerate(files):
            for kind in _kinds_of(path):
                found.kinds.setdefault(kind, []).append(number)
        return found

    @property
    def key(self) -> str:
        """Another folder has another, and this one when its files change."""
        text = "".join(f"{path}\0{Path(path).stat().st_size}\0{Path(path).stat().st_mtime_ns}\n" for path in self.files)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def describe(self) -> str:
        unusual = ", ".join(f"{len(numbers)} {kind}" for kind, numbers in sorted(self.kinds.items()))
        return f"{len(self.files)} photographs" + (f" ({unusual})" if unusual else "")

    @functools.cached_property
    def crops(self) -> np.ndarray:
        """Their central crops as Pillow makes them, upright: those that torchvision's Resize and CenterCrop would make."""
        return np.stack([_central_crop(path) for path in self.files])


def _kinds_of(path: str) -> list[str]:
    with Image.open(path) as image:
        kinds = {"CMYK": image.mode == "CMYK", "grey": image.mode == "L", "progressive": "progressive" in image.info}
        return [kind for kind, is_it in {**kinds, "turned": image.getexif().get(_ORIENTATION, 1) != 1}.items() if is_it]


def _central_crop(path: str) -> np.ndarray:
    with Image.open(path) as image:
        rgb = ImageOps.exif_transpose(image).convert("RGB")
    x, y, w, h = centre_region(*rgb.size)
    return np.asarray(rgb.resize((SIZE, SIZE), Image.Resampling.BILINEAR, (x, y, x + w, y + h)))
