"""For JAX: an iterator of dicts of arrays, sharded over the local devices.

    import penstock as ps, penstock.jax

    train = ps.jax.DataLoader(plan.batch(256, remainder="drop"))
    for batch in train:
        params, loss = update(params, batch["image"], batch["label"])
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import jax
import numpy

from penstock._calls import OF_JAX_LOADER, answering, check_options
from penstock._passes import LoaderOptions, PassLoader, context_of
from penstock._penstock import Dataset, InputContext, Step

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Arrays", "DataLoader", "as_arrays", "current_context", "names_of", "sharding_over"]

Arrays = dict[str, jax.Array]


def current_context() -> InputContext:
    """This process among jax.distributed's, or as the launcher says where JAX knows one process."""
    if jax.process_count() > 1:
        return context_of(jax.process_count(), jax.process_index())
    return InputContext.from_environment()


def names_of(devices: Sequence[jax.Device]) -> list[str]:
    """penstock's names of JAX's local devices: the GPUs, or as many host devices as there are
    others."""
    if all(device.platform in ("gpu", "cuda") for device in devices):
        return [f"cuda:{device.local_hardware_id}" for device in devices]
    return [f"host:{index}" for index in range(len(devices))]


def sharding_over(devices: Sequence[jax.Device]) -> jax.sharding.Sharding:
    """Rows spread over these devices, and those of the other processes, in their order."""
    everyone = devices if jax.process_count() == 1 else jax.devices()
    mesh = jax.sharding.Mesh(numpy.array(everyone), ("batch",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))


def as_arrays(
    step: Step, devices: Sequence[jax.Device], sharding: jax.sharding.Sharding | None = None
) -> Arrays:
    """The fields of a step as global arrays, a row block for each device, without copying where
    the memory is the device's own (a GPU, or the first CPU device). Keep the step until what was
    computed of them is ready (jax.block_until_ready): XLA computes later, and reads them then.

    Shapes  [rows over all processes, ...]
    Errors  ValueError  devices with different numbers of rows, as at the end of the data: choose
                        remainder="drop" or "pad"
    """
    rows = {part.size for part in step.parts}
    if len(rows) != 1:
        raise ValueError(
            f"step {step.number} has parts of {sorted(rows)} rows, and a sharded array needs equal "
            "ones: batch(..., remainder='drop') or 'pad'"
        )
    sharding = sharding or sharding_over(devices)
    total = step.parts[0].size * sharding.num_devices
    arrays: Arrays = {}
    for field in step.parts[0].fields:
        parts = []
        for part, device in zip(step.parts, devices):
            array = jax.dlpack.from_dlpack(part[field.name])
            parts.append(array if array.devices() == {device} else jax.device_put(array, device))
        shape = (total, *parts[0].shape[1:])
        arrays[field.name] = jax.make_array_from_single_device_arrays(shape, sharding, parts)
    return arrays


class DataLoader(PassLoader[dict[str, Any]]):
    """Each `for` loop is one pass over `dataset`, a plan that ends in batch, as dicts of arrays.

    `dataset`  its batch is the global batch; choose remainder="drop" or "pad". No
               prefetch_to_devices.
    `devices`  JAX's; by default jax.local_devices().
    `context`  by default current_context().
    `names`    a key of the dict under which the names of this process's rows are, as Step.names() has them: names="name". Take them
               out before the dict goes into a compiled function: they are no arrays.
    The rest   as for Dataset.prefetch_to_devices and Dataset.loader.

    Arrays are XLA's own, copied within the device: JAX queues computations, and reads what they
    need after Python has dropped it. They may be kept and donated.
    Saves and resumes as penstock.torch.DataLoader does.
    """

    @answering(OF_JAX_LOADER, "DataLoader", in_torchs_place=True)
    def __init__(
        self,
        dataset: Dataset,
        *,
        devices: Sequence[jax.Device] | None = None,
        depth: int = 2,
        split: Literal["scatter", "round_robin", "shard_early"] = "scatter",
        context: InputContext | None = None,
        names: str | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        if not isinstance(dataset, Dataset):
            raise TypeError(f"DataLoader takes a plan, found {type(dataset).__name__}: of a data set of your own, ps.Dataset(data).batch(8)")
        check_options(DataLoader, options, list(LoaderOptions.__annotations__), OF_JAX_LOADER)
        self._devices = list(jax.local_devices() if devices is None else devices)
        self._sharding = sharding_over(self._devices)
        context = context or current_context()
        # Steps, their views, and what tells that each copy of these is there: the copies themselves are the caller's, which may donate
        # them. Two slots are left: one to be filled, and one that XLA gives back late.
        self._copying: deque[tuple[Step, Arrays, list[jax.Array]]] = deque()
        self._most_copying = depth - 1
        weakref.finalize(self, _finish, self._copying, 0)
        super().__init__(dataset, names_of(self._devices), depth, split, context, options)
        self._names = self._key_of_names(names)

    def _convert(self, step: Step) -> dict[str, Any]:
        views = as_arrays(step, self._devices, self._sharding)
        arrays = {name: jax.numpy.copy(view) for name, view in views.items()}
        marks = [_mark(shard.data) for array in arrays.values() for shard in array.addressable_shards]
        self._copying.append((step, views, marks))
        _finish(self._copying, self._most_copying)
        return arrays if self._names is None else {**arrays, self._names: step.names()}


@jax.jit
def _mark(array: jax.Array) -> jax.Array:
    """Is ready when the array is."""
    return array[:1].sum()


def _finish(copying: deque[tuple[Step, Arrays, list[jax.Array]]], left: int) -> None:
    """Waits for copies, the oldest first, until only so many are on their way."""
    while len(copying) > left:
        try:
            jax.block_until_ready(copying[0][2])
        except Exception:  # and no KeyboardInterrupt: that copy still reads the slot
            copying.popleft()
            raise
        copying.popleft()
