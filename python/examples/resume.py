"""Save and resume: kill this at any moment and start it again; it delivers what would have come next.

    python resume.py state.json        # prints one line for each step; saves its state after each
"""

import argparse
import json
import os
import zlib
from pathlib import Path

import numpy as np

import penstock as ps


def save(path: Path, state: dict) -> None:
    """All of it or nothing: a kill in the middle leaves the one before."""
    aside = path.with_suffix(".new")
    with open(aside, "w") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("state", type=Path)
    parser.add_argument("--synthetic", type=int, default=200)
    parser.add_argument("--cache")
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()

    decode = ps.decode_image(crop=ps.random_resized_crop(32), flip=0.5)
    dataset = ps.synthetic_images(options.synthetic, cache=options.cache)
    loader = dataset.seed(7).shuffle().map(decode).batch(16).repeat(options.epochs).loader()
    if options.state.exists():
        loader.load_state_dict(json.loads(options.state.read_text()))
    if loader.next_epoch() is None:
        print("all epochs are done")
        return
    for step in loader:
        bytes_of_step = b"".join(np.ascontiguousarray(step[name]).tobytes() for name in step)
        # In earnest: train, and save this beside the model's checkpoint.
        print(f"step {step.number} of epoch {step.epoch}: {zlib.crc32(bytes_of_step):08x}", flush=True)
        save(options.state, loader.state_dict())


if __name__ == "__main__":
    main()
