"""Photographs decoded by actors of a Ray cluster, for a loop on this machine; kill it, start it again, and it goes on.

    python remote_decoding.py /shared/photographs /shared/run.json --actors 8 --cpus 4

In place of the loop's body stands your training step. The cluster is the one that RAY_ADDRESS names, else one of this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import ray

import penstock as ps
import penstock.ray


def save(path: Path, state: dict) -> None:
    """All of it or nothing: a kill in the middle leaves the one before."""
    aside = path.with_suffix(".new")
    aside.write_text(json.dumps(state))
    aside.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photographs", help="a folder with a folder for each class, which all machines see")
    parser.add_argument("state", type=Path)
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--cpus", type=int, default=1, help="of each actor")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--save-every", type=int, default=10, help="steps")
    options = parser.parse_args()

    ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False)
    plan = (
        ps.image_folder(options.photographs)
        .seed(7)
        .shuffle()
        .map(ps.decode_image(crop=ps.random_resized_crop(224), flip=0.5))
        .batch(options.batch)
        .repeat(options.epochs)
        .prefetch_to_devices("auto", depth=4)
    )
    loader = plan.loader(digest=True, remote=penstock.ray.Workers(options.actors, cpus=options.cpus))
    if options.state.exists():
        loader.load_state_dict(json.loads(options.state.read_text()))
    began = time.monotonic()
    samples = 0
    for step in loader:
        samples += len(step.samples)  # here you train
        if (step.number + 1) % options.save_every == 0:
            save(options.state, loader.state_dict())
    save(options.state, loader.state_dict())
    seconds = time.monotonic() - began
    print(f"{samples} samples, {samples / seconds:.0f} a second, {loader.stats().remote.rows} of them made by actors")
    print(f"digest {loader.digest}")


if __name__ == "__main__":
    main()
