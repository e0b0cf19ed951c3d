"""What trainers ask a DataLoader of torch's for, answered by a pass over a plan."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock._passes import PassLoader
    from penstock._penstock import Dataset


class Samples:
    """`loader.dataset`: how many samples a pass has, and whole batches by their steps.

    Trainers that resume in the middle of an epoch (Accelerate's skip_first_batches, which Hugging Face's
    Trainer calls) put another batch sampler before it: they get the batches that are left, and those that are
    skipped are not read.
    """

    def __init__(self, loader: PassLoader[Any]) -> None:
        self._loader = loader

    @property
    def plan(self) -> Dataset:
        return self._loader.plan

    def __len__(self) -> int:
        """Samples in a pass, over all processes.

        Errors  TypeError  it is endless, or a stream
        """
        samples = self.plan.samples
        return len(self.plan) if samples is None else samples  # which says why there is none

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, number: int) -> Any:
        raise TypeError("samples come in batches: iterate over the DataLoader, or give items by number to another one")

    def __getitems__(self, steps: Sequence[int]) -> Any:
        """The batch of a step of the current pass."""
        return self._loader._batch_of_pass(steps[0])


class Steps:
    """`loader.batch_sampler`: the steps of a pass, each as the list that Samples.__getitems__ takes."""

    def __init__(self, loader: PassLoader[Any]) -> None:
        self._loader = loader

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[list[int]]:
        loop = self._loader._begin_asking()
        if loop is None:
            return
        try:
            for step in range(len(self)):
                yield [step]
        finally:
            self._loader._end_asking(loop)

    @property
    def sampler(self) -> Steps:
        """What Lightning tells its epochs, set_epoch."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """As DataLoader.set_epoch."""
        self._loader.set_epoch(epoch)


class AccumulationLoop:
    """Tells Accelerate of a loop's last batch, where it is in use: there its accumulate() ends a cycle."""

    remainder = 0  # samples that are there twice

    def __init__(self) -> None:
        self.end_of_dataloader = False
        self._state: Any = None

    def begin(self) -> None:
        """Once for a loop; again does nothing."""
        accelerate = sys.modules.get("accelerate.state")
        if self._state is None and accelerate is not None and accelerate.GradientState._shared_state:
            self._state = accelerate.GradientState()
            self._state._add_dataloader(self)

    def end(self) -> None:
        if self._state is not None:
            self._state._remove_dataloader(self)
        self._state = None
        self.end_of_dataloader = False

    def __enter__(self) -> AccumulationLoop:
        self.begin()
        return self

    def __exit__(self, *error: object) -> None:
        self.end()
