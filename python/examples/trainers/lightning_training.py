"""Lightning: the loader's state is in Lightning's checkpoints, so that a run goes on in the middle of an epoch.

    python lightning_training.py checkpoints
    torchrun --nproc-per-node 2 lightning_training.py checkpoints --processes 2     # goes on where the other was
"""

import argparse
from pathlib import Path

import lightning
import numpy as np
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

import penstock as ps
import penstock.torch


class Model(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 1)

    def train_dataloader(self) -> penstock.torch.DataLoader:
        # Here rather than before fit(): now the processes know of each other.
        x = np.random.default_rng(1).normal(size=(126, 4)).astype("f4")
        data = ps.memory({"x": x, "y": x.sum(axis=1), "number": np.arange(126)})
        self.loader = penstock.torch.DataLoader(data.seed(7).shuffle().batch(12, remainder="drop"))
        return self.loader

    def training_step(self, batch, _) -> torch.Tensor:
        print(f"step {self.loader.position - 1}: {batch['number'].tolist()}", flush=True)
        return torch.nn.functional.mse_loss(self.linear(batch["x"]).squeeze(1), batch["y"])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", type=Path)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--save-every", type=int, default=3)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()

    saving = ModelCheckpoint(options.checkpoints, "{step:08d}", every_n_train_steps=options.save_every, save_top_k=-1)
    trainer = lightning.Trainer(
        max_epochs=options.epochs,
        accelerator="cpu",
        devices=options.processes,
        strategy="ddp" if options.processes > 1 else "auto",
        callbacks=[saving],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    saved = sorted(options.checkpoints.glob("*.ckpt"))
    trainer.fit(Model(), ckpt_path=str(saved[-1]) if saved else None)


if __name__ == "__main__":
    main()
