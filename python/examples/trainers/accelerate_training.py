"""Accelerate: a penstock loader goes through prepare(), accumulate() and save_state() as it is.

    python accelerate_training.py checkpoints
    accelerate launch --num_processes 2 accelerate_training.py checkpoints     # goes on where the other was

Kill it at any moment, and start it again with any number of processes that divides the batch.
"""

import argparse
import shutil
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator, skip_first_batches

import penstock as ps
import penstock.torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", type=Path)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--save-every", type=int, default=3)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--skip", type=int, default=0, help="batches of the first epoch to leave out")
    options = parser.parse_args()

    # Before the loader: it says how many processes there are.
    accelerator = Accelerator(cpu=not torch.cuda.is_available(), gradient_accumulation_steps=options.accumulate)
    x = np.random.default_rng(1).normal(size=(126, 4)).astype("f4")
    data = ps.memory({"x": x, "y": x.sum(axis=1), "number": np.arange(126)})
    # The batch is the global one: each process gets its part of 12.
    loader = penstock.torch.DataLoader(data.seed(7).shuffle().batch(12, remainder="drop"))
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    accelerator.register_for_checkpointing(loader)

    saved = sorted(options.checkpoints.glob("step-*"))
    if saved:
        accelerator.load_state(str(saved[-1]))
    for epoch in range(loader.epoch, options.epochs):
        batches = skip_first_batches(loader, options.skip) if options.skip and epoch == 0 else loader
        for batch in batches:
            step = loader.position - 1
            print(f"step {step}: {batch['number'].tolist()}", flush=True)
            with accelerator.accumulate(model):
                loss = torch.nn.functional.mse_loss(model(batch["x"]).squeeze(1), batch["y"])
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    print(f"update at step {step}", flush=True)
                optimizer.step()
                optimizer.zero_grad()
            if loader.position % options.save_every == 0:
                unfinished = options.checkpoints / "unfinished"
                accelerator.save_state(str(unfinished))
                accelerator.wait_for_everyone()
                if accelerator.is_main_process:  # all of it or nothing
                    whole = options.checkpoints / f"step-{loader.position:08d}"
                    shutil.rmtree(whole, ignore_errors=True)
                    unfinished.rename(whole)
                accelerator.wait_for_everyone()


if __name__ == "__main__":
    main()
