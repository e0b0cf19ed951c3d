"""For PyTorch: an iterator of dicts of tensors, in place of torch.utils.data.DataLoader.

    import penstock as ps, penstock.torch

    train = ps.torch.DataLoader(
        ps.image_folder("train").seed(7).shuffle()
        .map(ps.decode_image(crop=ps.random_resized_crop(224), flip=0.5))
        .batch(256))
    for epoch in range(90):
        for batch in train:
            loss = criterion(model(batch["image"]), batch["label"])

No worker processes, no collate_fn, no pin_memory, no sampler.set_epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Union

import torch

from penstock._passes import LoaderOptions, PassLoader
from penstock._penstock import Dataset, DeviceBatch, InputContext, Step

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["DataLoader", "Tensors", "as_tensors", "current_context", "current_device"]

Tensors = dict[str, torch.Tensor]


def as_tensors(batch: DeviceBatch) -> Tensors:
    """The fields of a batch as torch tensors, without copying.

    Shapes  image u8 [size,H,W,C] and so on: what the plan makes.
    Stream  ordered on the current stream of their device; for other streams call batch.wait_on.
    Owns    the tensors keep the batch's slot.
    """
    return {name: torch.from_dlpack(tensor) for name, tensor in batch.items()}


def current_context() -> InputContext:
    """This process's rank and the world size: torch.distributed's when it is initialised, else the
    launcher's."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return InputContext(distributed.get_world_size(), distributed.get_rank())
    return InputContext.from_environment()


def current_device() -> str:
    """The current CUDA device, or the host where there is none."""
    return f"cuda:{torch.cuda.current_device()}" if torch.cuda.is_available() else "host:0"


class DataLoader(PassLoader[Union[Tensors, list[Tensors]]]):
    """Each `for` loop is one pass over `dataset`, a plan that ends in batch, as dicts of tensors.

    With one device a step is a dict; with several it is a list of dicts, one for each.

    `dataset`  its batch is the global batch, over all processes; no prefetch_to_devices.
    `devices`  as for prefetch_to_devices; by default the current CUDA device, or the host.
    `context`  by default current_context().
    The rest   as for Dataset.prefetch_to_devices and Dataset.loader.

    A loop that was left early cannot be continued: the next one begins the next pass. state_dict and
    load_state_dict are those of torchdata's StatefulDataLoader: after loading, the first loop
    delivers what was left.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        devices: Any = None,
        depth: int = 2,
        split: Literal["scatter", "round_robin", "shard_early"] = "scatter",
        context: InputContext | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        devices = [current_device()] if devices is None else devices
        super().__init__(dataset, devices, depth, split, context or current_context(), options)

    def _convert(self, step: Step) -> Tensors | list[Tensors]:
        if len(step) == 1:
            return as_tensors(step[0])
        return [as_tensors(part) for part in step]
