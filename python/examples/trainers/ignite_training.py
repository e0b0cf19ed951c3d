"""PyTorch-Ignite: an Engine runs over a penstock loader, and a checkpoint holds the loader's state beside its own.

    python ignite_training.py checkpoints
    torchrun --nproc-per-node 2 ignite_training.py checkpoints     # goes on where the other was
"""

import argparse
import os
from pathlib import Path

import ignite.distributed as idist
import numpy as np
import torch
from ignite.engine import Engine, Events

import penstock as ps
import penstock.torch


def train(rank: int, options: argparse.Namespace) -> None:
    x = np.random.default_rng(1).normal(size=(126, 4)).astype("f4")
    data = ps.memory({"x": x, "y": x.sum(axis=1), "number": np.arange(126)})
    loader = penstock.torch.DataLoader(data.seed(7).shuffle().batch(12, remainder="drop"))
    network = torch.nn.Linear(4, 1)
    model = idist.auto_model(network)  # with several processes DistributedDataParallel around it
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    saved = sorted(options.checkpoints.glob("step-*.pt"))
    if saved:
        state = torch.load(saved[-1], weights_only=False)
        network.load_state_dict(state["model"])
        loader.load_state_dict(state["loader"])

    def step(_: Engine, batch: dict[str, torch.Tensor]) -> float:
        print(f"step {loader.position - 1}: {batch['number'].tolist()}", flush=True)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(batch["x"]).squeeze(1), batch["y"])
        loss.backward()
        optimizer.step()
        return loss.item()

    engine = Engine(step)

    @engine.on(Events.ITERATION_COMPLETED)
    def save() -> None:
        if loader.position % options.save_every == 0 and rank == 0:
            options.checkpoints.mkdir(parents=True, exist_ok=True)
            aside = options.checkpoints / "unfinished"
            torch.save({"model": network.state_dict(), "loader": loader.state_dict()}, aside)
            aside.rename(options.checkpoints / f"step-{loader.position:08d}.pt")

    # Epoch by epoch: the first one after a resume is what was left of it.
    for epoch in range(loader.position // len(loader), options.epochs):
        loader.set_epoch(epoch)  # Ignite asks for batches again where a loop is empty, as what is left after an epoch's last step
        engine.run(loader, max_epochs=1, epoch_length=len(loader) - loader.position % len(loader))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", type=Path)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--save-every", type=int, default=3)
    options = parser.parse_args()
    backend = None  # one process
    if "WORLD_SIZE" in os.environ:
        backend = "nccl" if torch.cuda.is_available() else "gloo"
    with idist.Parallel(backend=backend) as parallel:
        parallel.run(train, options)


if __name__ == "__main__":
    main()
