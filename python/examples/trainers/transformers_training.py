"""Hugging Face's Trainer: give it the loader, and resume_from_checkpoint skips without reading.

    python transformers_training.py out
    torchrun --nproc-per-node 2 transformers_training.py out     # goes on from the last checkpoint
"""

import argparse

import numpy as np
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

import penstock as ps
import penstock.torch


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 1)

    def forward(self, x: torch.Tensor, y: torch.Tensor, number: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": torch.nn.functional.mse_loss(self.linear(x).squeeze(1), y)}


class LoaderTrainer(Trainer):
    """A Trainer whose batches come from a penstock loader."""

    def __init__(self, loader: penstock.torch.DataLoader, **options) -> None:
        super().__init__(**options)
        self.loader = loader

    def get_train_dataloader(self) -> penstock.torch.DataLoader:
        return self.loader

    def training_step(self, model, inputs, *more) -> torch.Tensor:
        step = self.state.global_step * self.args.gradient_accumulation_steps
        print(f"step {step}: {inputs['number'].tolist()}", flush=True)
        return super().training_step(model, inputs, *more)


class Speed(TrainerCallback):
    def on_log(self, args, state, control, logs, **more) -> None:
        if "train_samples_per_second" in logs and state.is_world_process_zero:
            print(f"{logs['train_samples_per_second']} samples/s in all")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--save-every", type=int, default=3)
    parser.add_argument("--accumulate", type=int, default=1)
    options = parser.parse_args()

    arguments = TrainingArguments(  # before the loader: it says how many processes there are
        options.out,
        num_train_epochs=options.epochs,
        save_steps=options.save_every,
        gradient_accumulation_steps=options.accumulate,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        dataloader_drop_last=True,
    )
    x = np.random.default_rng(1).normal(size=(126, 4)).astype("f4")
    data = ps.memory({"x": x, "y": x.sum(axis=1), "number": np.arange(126)})
    plan = data.seed(7).shuffle().batch(12, remainder="drop")
    # The Trainer fetches as many batches as it accumulates while it still holds those before.
    loader = penstock.torch.DataLoader(plan, depth=2 * options.accumulate)
    trainer = LoaderTrainer(loader, model=Model(), args=arguments, callbacks=[Speed()])
    trainer.train(resume_from_checkpoint=get_last_checkpoint(options.out))


if __name__ == "__main__":
    main()
