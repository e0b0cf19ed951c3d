"""Keras 3, on any backend: a PyDataset that gives the loader's batches, and a run that goes on in the middle of an epoch.

    KERAS_BACKEND=torch python keras_training.py checkpoint
"""

import argparse
import json
from pathlib import Path
from typing import Any

import keras
import numpy as np

import penstock as ps
import penstock.torch


class Batches(keras.utils.PyDataset):
    """Those of one epoch, of which `first` have been trained on already."""

    def __init__(self, loader: penstock.torch.DataLoader, first: int = 0) -> None:
        super().__init__(workers=0)  # the loader has threads of its own
        self.loader = loader
        self.first = first

    def __len__(self) -> int:
        return len(self.loader) - self.first

    def __getitem__(self, number: int) -> tuple[Any, Any]:
        batch = self.loader.dataset.__getitems__([self.first + number])
        print(f"step {self.loader.position - 1}: {batch['number'].tolist()}", flush=True)
        return batch["x"], batch["y"]


class Saving(keras.callbacks.Callback):
    """The weights and the step that they have seen, all of it or nothing."""

    def __init__(self, folder: Path, step: int, every: int) -> None:
        super().__init__()
        self.folder, self.step, self.every = folder, step, every

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.step += 1
        if self.step % self.every == 0:
            file = self.folder / f"step-{self.step:08d}.weights.h5"
            self.model.save_weights(file)
            aside = self.folder / "unfinished"
            aside.write_text(json.dumps({"step": self.step, "weights": file.name}))
            aside.rename(self.folder / "last.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--save-every", type=int, default=3)
    options = parser.parse_args()
    options.checkpoint.mkdir(exist_ok=True)

    x = np.random.default_rng(1).normal(size=(126, 4)).astype("f4")
    data = ps.memory({"x": x, "y": x.sum(axis=1), "number": np.arange(126)})
    plan = data.seed(7).shuffle().batch(12, remainder="drop")
    loader = penstock.torch.DataLoader(plan, devices="host:1", copy=("x", "y"))  # Keras keeps some
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    step, last = 0, options.checkpoint / "last.json"
    if last.exists():
        saved = json.loads(last.read_text())
        step = saved["step"]
        model.load_weights(options.checkpoint / saved["weights"])
    saving = Saving(options.checkpoint, step, options.save_every)
    for epoch in range(step // len(loader), options.epochs):
        loader.set_epoch(epoch)
        batches = Batches(loader, saving.step % len(loader))
        # shuffle=False: the plan has shuffled them.
        model.fit(batches, initial_epoch=epoch, epochs=epoch + 1, shuffle=False, verbose=0, callbacks=[saving])


if __name__ == "__main__":
    main()
