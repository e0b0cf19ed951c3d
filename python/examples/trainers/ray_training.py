"""Ray Train: the loop of a worker, with the loader's state in each checkpoint; run again, it goes on with any number of workers.

    python ray_training.py /shared/runs --processes 2
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import ray.train
import ray.train.torch
import torch

import penstock as ps
import penstock.torch


def train(options: dict) -> None:
    x = np.random.default_rng(1).normal(size=(126, 4)).astype("f4")
    data = ps.memory({"x": x, "y": x.sum(axis=1), "number": np.arange(126)})
    # Ray has initialised torch.distributed: each worker gets its part of 12. No prepare_data_loader().
    loader = penstock.torch.DataLoader(data.seed(7).shuffle().batch(12, remainder="drop"))
    network = torch.nn.Linear(4, 1)
    model = ray.train.torch.prepare_model(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if saved := ray.train.get_checkpoint():
        with saved.as_directory() as folder:
            state = torch.load(Path(folder) / "state.pt", weights_only=False)
        network.load_state_dict(state["model"])
        loader.load_state_dict(state["loader"])

    for _ in range(loader.epoch, options["epochs"]):
        for batch in loader:
            print(f"step {loader.position - 1}: {batch['number'].tolist()}", flush=True)
            loss = torch.nn.functional.mse_loss(model(batch["x"]).squeeze(1), batch["y"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if loader.position % options["save_every"] == 0:
                with tempfile.TemporaryDirectory() as folder:
                    checkpoint = None
                    if ray.train.get_context().get_world_rank() == 0:
                        torch.save({"model": network.state_dict(), "loader": loader.state_dict()}, Path(folder) / "state.pt")
                        checkpoint = ray.train.Checkpoint.from_directory(folder)
                    ray.train.report({"loss": loss.item()}, checkpoint=checkpoint)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--save-every", type=int, default=3)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    trainer = ray.train.torch.TorchTrainer(
        train,
        train_loop_config={"epochs": options.epochs, "save_every": options.save_every},
        scaling_config=ray.train.ScalingConfig(
            num_workers=options.processes, use_gpu=torch.cuda.is_available(), resources_per_worker={"CPU": 0.5}
        ),
        # The same name finds the last checkpoint of the run before.
        run_config=ray.train.RunConfig(name="example", storage_path=str(options.runs.resolve())),
    )
    trainer.fit()


if __name__ == "__main__":
    main()
