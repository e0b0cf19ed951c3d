"""What every framework is given to do, and the crop that those without one of their own draw."""

from __future__ import annotations

import json
import math
import random
from dataclasses import asdict, dataclass, field
from pathlib import Path

SIZE = 224
AREA = (0.08, 1.0)
ASPECT = (3 / 4, 4 / 3)


@dataclass
class Job:
    """One run.

    Units  `element_bytes` of a no-op element
    """

    files: list[str] = field(default_factory=list)
    threads: int = 1
    batch: int = 128
    epochs: int = 3
    folder: str = ""  # of a framework's own: prepared files, what it builds
    variant: str = ""
    elements: int = 100_000
    element_bytes: int = 16

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @staticmethod
    def read(path: str) -> Job:
        return Job(**json.loads(Path(path).read_text()))


def random_region(width: int, height: int, draw: random.Random) -> tuple[int, int, int, int]:
    """x, y, width and height of a training crop, as torchvision's RandomResizedCrop draws it."""
    for _ in range(10):
        area = width * height * draw.uniform(*AREA)
        aspect = math.exp(draw.uniform(math.log(ASPECT[0]), math.log(ASPECT[1])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return draw.randint(0, width - w), draw.randint(0, height - h), w, h
    w, h = min(width, round(height * ASPECT[1])), min(height, round(width / ASPECT[0]))
    return (width - w) // 2, (height - h) // 2, w, h


def centre_region(width: int, height: int) -> tuple[int, int, int, int]:
    """The square of 224/256 of the shorter side in the middle: what outputs are compared by."""
    side = round(min(width, height) * SIZE / 256)
    return (width - side) // 2, (height - side) // 2, side, side
