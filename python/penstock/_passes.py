"""What penstock.torch and penstock.jax share: a loader whose every `for` is one pass over the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypedDict, TypeVar

from penstock._penstock import Dataset, InputContext, Loader, Stats, Step, ThreadBudget

Batch = TypeVar("Batch")


class LoaderOptions(TypedDict, total=False):
    """What Dataset.loader takes, but for `context`."""

    on_fault: Any
    max_faults: int | None
    max_fault_rate: float | None
    mode: Any
    shards: Any
    digest: bool
    digest_transformed: bool
    threads: int
    io_threads: int | None
    attempts: int
    initial_backoff_s: float
    thread_budget: ThreadBudget | None
    budget_bytes: int
    exchange: Any


def require_batches(plan: Dataset) -> None:
    """Errors  ValueError  the plan is not one that ends in batch"""
    if plan.devices:
        names = ", ".join(str(device) for device in plan.devices)
        raise ValueError(
            f"DataLoader takes a plan that ends in batch, and this one ends in prefetch_to_devices: leave it out and "
            f"say DataLoader(plan, devices=...) for other devices than the default (it has {names})"
        )
    if plan.batch_size is None:
        raise ValueError("DataLoader takes a plan that ends in batch, and this one has none: put .batch(256) at its end")


class PassLoader(ABC, Generic[Batch]):
    """Each `for` loop is one pass over `dataset`, which ends in batch; the next pass is read ahead.

    A loop that was left early, by break, cannot be continued: the next one begins the next pass. After
    load_state_dict the first loop continues where the saved one was.
    """

    def __init__(
        self,
        dataset: Dataset,
        devices: Any,
        depth: int,
        split: Any,
        context: InputContext | None,
        options: LoaderOptions,
    ) -> None:
        require_batches(dataset)

        def run(plan: Dataset) -> Loader:
            plan = plan.prefetch_to_devices(devices, depth=depth, split=split)
            return plan.loader(context=context, **options)

        self._steps: int | None = dataset.size
        if self._steps is not None and (
            options.get("mode", "one") != "one" or split == "shard_early"
        ):
            self._steps = run(dataset).size  # of orders that are not the plan's own
        # A finite dataset is repeated, pass by pass; an endless one is one pass.
        self._loader = run(dataset if self._steps is None else dataset.repeat())
        self._dataset = dataset
        self._position = 0  # the next step
        self._loop = 0  # which `for` is the current one

    @abstractmethod
    def _convert(self, step: Step) -> Batch:
        """A step as the framework has it."""

    @property
    def dataset(self) -> Dataset:
        """The plan that it was made of."""
        return self._dataset

    @property
    def batch_size(self) -> int:
        """Samples in a global batch, over all devices and processes."""
        size = self._dataset.batch_size
        assert size is not None  # as __init__ has required
        return size

    @property
    def loader(self) -> Loader:
        """The Loader beneath: its stats, faults and digest."""
        return self._loader

    def __len__(self) -> int:
        """Steps in one pass.

        Errors  TypeError  the dataset is endless, or a stream
        """
        if self._steps is None:
            return len(self._dataset)  # which says why there is none
        return self._steps

    def __repr__(self) -> str:
        kind = f"{type(self).__module__}.{type(self).__name__}"
        return f"<{kind} of {self._dataset!r}, {self._steps if self._steps is not None else 'endless'} steps a pass>"

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Batch]:
        if self._dataset.is_stream and self._loop > 0 and self._loader.has_ended():
            raise RuntimeError(
                "this loader reads a stream, whose records come once, and it has ended: make a new queue or generator, "
                "and a new loader, for another pass"
            )
        if self._steps is not None and self._loop > 0 and self._position % max(self._steps, 1) != 0:
            self._seek(self._position - self._position % self._steps + self._steps)
        self._loop += 1
        return self._pass(self._loop)

    def _pass(self, loop: int) -> Iterator[Batch]:
        if self._steps == 0:
            return
        while True:
            if loop != self._loop:
                raise RuntimeError(
                    "a newer loop over this loader has begun, so this one cannot continue: "
                    "run one loop at a time, or use a second loader"
                )
            step = next(self._loader, None)
            if step is None:
                return
            self._position = step.number + 1
            last = self._steps is not None and self._position % self._steps == 0
            batch = self._convert(step)
            del step  # a slot is free as soon as the caller releases the batch
            yield batch
            del batch
            if last:
                return

    def _seek(self, step: int) -> None:
        state = self._loader.state_dict()
        state["step"] = step
        self._loader.load_state_dict(state)
        self._position = step

    def state_dict(self) -> dict[str, Any]:
        """What was delivered so far: save it beside your checkpoint; see Loader.state_dict."""
        return self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state_dict: the next loop delivers what is left of the saved one's pass.

        Errors  Error  another dataset or plan; says what differs
        """
        self._loader.load_state_dict(state)
        self._position = int(state["step"])
        self._loop = 0

    def stats(self) -> Stats:
        """Where the time went."""
        return self._loader.stats()

    def progress(self) -> dict[str, Any]:
        """As Loader.progress: for tqdm's set_postfix."""
        return self._loader.progress()

    def stop(self) -> None:
        """Joins the threads; load_state_dict starts the loader again."""
        self._loader.stop()
