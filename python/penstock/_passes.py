"""What penstock.torch and penstock.jax share: a loader whose every `for` is one pass over the data."""

from __future__ import annotations

import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypedDict, TypeVar

from penstock._errors import Error
from penstock._penstock import Dataset, Fault, InputContext, Loader, Report, Stats, Step, ThreadBudget
from penstock._trainers import AccumulationLoop, Samples

Batch = TypeVar("Batch")


class LoaderOptions(TypedDict, total=False):
    """What Dataset.loader takes, but for `context`."""

    on_fault: Any
    max_faults: int | None
    max_fault_rate: float | None
    mode: Any
    shards: Any
    locality: bool
    digest: bool
    digest_transformed: bool
    threads: int
    io_threads: int | None
    retry_attempts: int
    retry_initial_backoff: float
    thread_budget: ThreadBudget | None
    budget_bytes: int
    exchange: Any
    remote: Any
    decode_on_gpu: bool


def context_of(processes: int, rank: int) -> InputContext:
    """This process among those that a framework knows, with the launcher's machines where it says the same."""
    try:
        launched = InputContext.from_environment()
    except Error:  # launchers that disagree: the framework is right
        return InputContext(processes, rank)
    if (launched.num_input_pipelines, launched.input_pipeline_id) == (processes, rank):
        return launched
    return InputContext(processes, rank)


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


class _Loop(Iterator[Batch]):
    """A loop over one pass. After an error it raises again, and does not end as if the pass had."""

    def __init__(self, steps: Iterator[Batch]) -> None:
        self._steps = steps
        self._error: BaseException | None = None

    def __next__(self) -> Batch:
        if isinstance(self._error, Exception):
            raise self._error
        if self._error is not None:
            raise RuntimeError("this loop was interrupted: begin a new one, `for batch in loader`") from self._error
        try:
            return next(self._steps)
        except StopIteration:
            raise
        except BaseException as error:
            self._error = error
            raise


class PassLoader(ABC, Generic[Batch]):
    """Each `for` loop is one pass over `dataset`, which ends in batch; the next pass is read ahead.

    A loop that was left early, by break, cannot be continued: the next one begins the next pass. After
    load_state_dict the first loop continues where the saved one was; docs/trainers.md has a table of what
    a state saved at each place resumes with.
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

        self._steps: int | None = None if dataset.is_stream else dataset.size  # the records of a stream come once
        if self._steps is not None and (
            options.get("mode", "one") != "one" or split == "shard_early"
        ):
            self._steps = run(dataset).size  # of orders that are not the plan's own
        # A finite dataset is repeated, pass by pass; an endless one is one pass.
        try:
            self._loader = run(dataset if self._steps is None else dataset.repeat())
        except ValueError as error:
            if self._steps is None:
                raise
            run(dataset)  # where this raises, the plan is wrong without it, too
            raise ValueError(f"DataLoader repeats its plan, pass by pass, and this plan cannot be repeated: leave out its repeat() ({error})") from None
        self._plan = dataset
        self._position = 0  # the next step
        self._loop = 0  # which `for` is the current one
        self._is_fresh = True  # no loop has begun since the loader was made, or a state was loaded
        self._moved_by = ""  # what ended the loop before it
        # Whether the last step was the last of a pass, whose loop has not ended: in this one, or where a state was saved.
        self._in_last_step = False
        self._was_placed = False  # by load_state_dict or set_epoch
        # Of a trainer that asks for batches by number: the first step of its pass, once it has begun to ask or
        # has said which.
        self._asked_pass: int | None = None
        self._asking = 0  # which loop over batch_sampler is the current one
        self._is_asked_in_loop = False
        self._says_epochs = False
        self._asked = AccumulationLoop()

    def __copy__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied, since both would share one position: make another one of its plan")

    def _key_of_names(self, names: str | None) -> str | None:
        """The key under which a batch has the names of its rows.

        Errors  ValueError  it is a field of the batches
        """
        if names in [field.name for field in self._loader.fields]:
            raise ValueError(f"names: the batches have a field '{names}': choose another key for the names of rows")
        return names

    @abstractmethod
    def _convert(self, step: Step) -> Batch:
        """A step as the framework has it."""

    @property
    def plan(self) -> Dataset:
        """The plan that it was made of."""
        return self._plan

    @property
    def dataset(self) -> Samples:
        """len(loader.dataset) is the number of samples in a pass, over all processes."""
        return Samples(self)

    @property
    def batch_size(self) -> int:
        """Samples in a global batch, over all devices and processes."""
        size = self._plan.batch_size
        assert size is not None  # as __init__ has required
        return size

    @property
    def position(self) -> int:
        """Batches delivered so far, over all passes: the step that comes next."""
        return self._position

    @property
    def epoch(self) -> int:
        """The pass of the current loop; between loops that of the next batch. From 0: where a resumed run's
        loop over epochs begins."""
        if not self._steps:
            return 0
        return (self._position - self._in_last_step) // self._steps

    @property
    def loader(self) -> Loader:
        """The Loader beneath: its digest, and other facts of it."""
        return self._loader

    def __len__(self) -> int:
        """Steps in one pass.

        Errors  TypeError  the dataset is endless, or a stream
        """
        if self._steps is None:
            return len(self._plan)  # which says why there is none
        return self._steps

    def __repr__(self) -> str:
        kind = f"{type(self).__module__}.{type(self).__name__}"
        return f"<{kind} of {self._plan!r}, {self._steps if self._steps is not None else 'endless'} steps a pass>"

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Batch]:
        if self._plan.is_stream and not self._is_fresh and self._loader.has_ended():
            raise RuntimeError(
                "this loader reads a stream, whose records come once, and it has ended: make a new queue or generator, "
                "and a new loader, for another pass"
            )
        return _Loop(self._pass())

    def _begin_pass(self) -> None:
        if self._steps is not None and not self._is_fresh and self._position % max(self._steps, 1) != 0:
            self._seek(self._position - self._position % self._steps + self._steps)
        self._begin_loop("a newer loop over this loader has begun")
        self._in_last_step = self._is_asked_in_loop = False
        self._asking += 1
        self._asked_pass = None
        self._asked.end()

    def _has_ended(self) -> bool:
        """Whether nothing is left of the pass in which the state was saved that was loaded."""
        return self._in_last_step and self._is_fresh

    def _begin_loop(self, moved_by: str) -> None:
        """A loop that runs cannot continue, and says why."""
        self._loop += 1
        self._is_fresh = False
        self._moved_by = moved_by

    def set_epoch(self, epoch: int) -> None:
        """The next loop is pass `epoch`, from 0: what trainers say before each of their epochs. Passes
        follow each other without it. After load_state_dict it changes nothing in the saved pass, and
        nothing where there are no passes, in an endless dataset or a stream.
        """
        if epoch < 0:
            raise ValueError(f"set_epoch: epochs count from 0, found {epoch}")
        steps = self._steps
        if not steps:
            return
        self._asked_pass = epoch * steps
        self._says_epochs = True
        self._was_placed = True
        if self._is_fresh and self.epoch == epoch:
            return
        self._in_last_step = False
        if self._position != epoch * steps:
            self._seek(epoch * steps)
        self._begin_loop("set_epoch() has moved this loader")

    def _batch_of_pass(self, number: int) -> Batch:
        """Step `number` of the current pass: for trainers that ask by number. After the last, 0 is the next pass's."""
        steps = len(self)
        if not 0 <= number < steps:
            raise IndexError(f"a pass has {steps} steps, found {number}")
        if self._asked_pass is None:
            if number > 0 and self._position == 0 and not self._was_placed:
                self._warn_of_pass_0(number)
            self._asked_pass = self._position - self._position % steps
        elif number == 0 and self._position == self._asked_pass + steps and not (steps == 1 and self._says_epochs):
            self._asked_pass += steps
        if self._position != self._asked_pass + number:
            self._seek(self._asked_pass + number)
        self._begin_loop("batches were asked for by number")
        self._asked.begin()
        step = next(self._loader)
        self._position = step.number + 1
        self._asked.end_of_dataloader = self._position % steps == 0
        self._in_last_step = self._is_asked_in_loop and self._asked.end_of_dataloader
        return self._converted(step)

    def _converted(self, step: Step) -> Batch:
        try:
            return self._convert(step)
        except BaseException:  # such as of collate: a state that is saved now resumes with this batch
            self._in_last_step = False
            if not self._plan.is_stream:  # whose records are gone
                self._loader._give_back(step)  # type: ignore[attr-defined]  # not in the stub
                self._position = step.number
            raise

    def _begin_asking(self) -> int | None:
        """The number of a loop over batch_sampler; None where its pass has no steps left."""
        has_ended = self._has_ended()
        self._begin_pass()
        if has_ended:
            return None
        self._is_asked_in_loop = True
        return self._asking

    def _end_asking(self, loop: int) -> None:
        if loop != self._asking:  # it was closed late, when another one had begun
            return
        self._is_asked_in_loop = self._in_last_step = False
        self._asked.end()

    def _warn_of_pass_0(self, number: int) -> None:
        warnings.warn(
            f"the first batch asked for is number {number} of pass 0, as by skip_first_batches({number}): a run that resumes "
            "in a later epoch needs loader.set_epoch(epoch) before it, or the loader's state, as "
            "accelerator.register_for_checkpointing(loader) saves and loads it; in epoch 0 set_epoch(0) says so",
            stacklevel=2,
        )

    def _pass(self) -> Iterator[Batch]:
        # Begins with its first batch: trainers make an iterator, and only then load a state or say which epoch it is.
        has_ended = self._has_ended()
        self._begin_pass()
        if self._steps == 0 or has_ended:
            return
        loop = self._loop
        with AccumulationLoop() as accumulation:
            try:
                while not accumulation.end_of_dataloader:
                    if loop != self._loop:
                        raise RuntimeError(
                            f"{self._moved_by}, so this loop cannot continue: begin a new one, `for batch in loader`; "
                            "loops at the same time need a loader each"
                        )
                    step = next(self._loader, None)
                    if step is None:
                        return
                    self._position = step.number + 1
                    accumulation.end_of_dataloader = self._steps is not None and self._position % self._steps == 0
                    self._in_last_step = accumulation.end_of_dataloader
                    batch = self._converted(step)
                    del step  # a slot is free as soon as the caller releases the batch
                    yield batch
                    del batch
            finally:
                if loop == self._loop:
                    self._in_last_step = False

    def _seek(self, step: int) -> None:
        self._loader._seek(step)  # type: ignore[attr-defined]  # not in the stub
        self._position = step

    def state_dict(self) -> dict[str, Any]:
        """What was delivered so far: save it beside your checkpoint; see Loader.state_dict.

        Saved inside a loop at its last step, it resumes with the rest of that pass, which is empty; after the
        loop, with the next pass. After a `break` it resumes with what the loop left: where your epochs are
        shorter than the data, put .take(steps) behind batch, or call set_epoch(epoch + 1) before you save.
        """
        if self._in_last_step:
            return self._loader._state_in_last_step_of_pass()  # type: ignore[attr-defined]  # not in the stub
        return self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any] | str, *, other_maps: bool = False) -> None:
        """Resumes from a state_dict: the next loop delivers what is left of the saved one's pass.

        `other_maps`: the plan that saved it may have had other maps, such as another crop; see Loader.load_state_dict.

        Errors  Error  another dataset or plan; says what differs
        """
        state = json.loads(state) if isinstance(state, str) else state
        warning = None
        try:
            self._loader.load_state_dict(state, other_maps=other_maps)
        except Warning as error:  # of the program's own filters; the loader has moved
            warning = error
        self._position = int(state["step"])
        at_end = self._steps is not None and self._position > 0 and self._position % max(self._steps, 1) == 0
        self._in_last_step = at_end and bool(state.get("in_last_step_of_pass"))
        self._begin_loop("load_state_dict() has moved this loader")
        self._is_fresh = True
        self._was_placed = True
        self._asked_pass = None
        if warning is not None:
            raise warning

    def report(self) -> Report:
        """A page on where the time went, and what would help; see Loader.report."""
        return self._loader.report()

    def faults(self) -> list[Fault]:
        """The bad samples so far; see Loader.faults."""
        return self._loader.faults()

    def stats(self) -> Stats:
        """Where the time went."""
        return self._loader.stats()

    def progress(self, *, window: float = 5.0) -> dict[str, Any]:
        """As Loader.progress: for tqdm's set_postfix."""
        return self._loader.progress(window=window)

    def stop(self) -> None:
        """Joins the threads; load_state_dict starts the loader again."""
        self._loader.stop()
