"""Rows made by actors of a Ray cluster, and data sets prepared on one. Needs Ray: pip install '.[ray]' in a checkout of Penstock.

    import penstock as ps
    import penstock.ray

    loader = plan.loader(remote=penstock.ray.Workers(16, cpus=4))

The batches are those of a loader without it. Actors may come and go: what one that is gone was asked for is asked of
others. They open the plan's data themselves, so these must lie on storage that all machines see, or in s3://.

    penstock.ray.prepare("s3://bucket/photos", "s3://bucket/prepared")
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy
import ray
import ray.exceptions
from ray import cloudpickle

from penstock import remote
from penstock._errors import Error
from penstock._penstock import Dataset, Preparation, PrepareReport, PrepareRun, RowTasks, __version__
from penstock.remote import Worker, WorkerLost

__all__ = ["Workers", "prepare"]

WAIT_S = 0.2
# Rows on their way may fill so much of this node's object store, so that nothing is spilled to a disk.
SHARE_OF_STORE = 0.25


class Workers(remote.Workers):
    """Actors that make rows: for Dataset.loader(remote=...), of penstock and of penstock.torch and penstock.jax alike.

    `count`: how many. `cpus`: of each, which are its decoding threads. `resources`, `memory` (bytes): what else each takes, as
    for ray.remote. `rows`: of one task, at the most. `ahead`: tasks that an actor has at a time. `local`: whether the loader's
    own threads make rows, too; without it they do only while there is no actor. `options`: more of them for the actors, such
    as scheduling_strategy.

    With `count` more than the cluster has room for, the others start when it grows.

    Errors  ValueError  a count, cpus, rows or ahead below 1
            RuntimeError  Ray was not started: call ray.init() first
    """

    def __init__(
        self,
        count: int,
        *,
        cpus: int = 1,
        resources: Mapping[str, float] | None = None,
        memory: int | None = None,
        rows: int = 64,
        ahead: int = 2,
        local: bool = True,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(count, rows=rows, ahead=ahead, local=local)
        remote.check_count("cpus", cpus)
        if not ray.is_initialized():
            raise RuntimeError("penstock.ray.Workers: Ray was not started: call ray.init() first")
        self.cpus = cpus
        self._job = ray.get_runtime_context().get_job_id()
        self._known: tuple[int, Any] = (0, b"")  # how many indices, and where they lie
        self._options: dict[str, Any] = dict(options or {})
        self._options.update(num_cpus=cpus, max_concurrency=ahead, max_restarts=0)
        if resources is not None:
            self._options["resources"] = dict(resources)
        if memory is not None:
            self._options["memory"] = memory

    def _require_ray(self) -> None:
        """Without it, Ray's calls would start or join another cluster."""
        if not ray.is_initialized() or ray.get_runtime_context().get_job_id() != self._job:
            raise WorkerLost("Ray was shut down")

    def why_none(self) -> str:
        if not ray.is_initialized():
            return "Ray was shut down"
        return (
            f"each takes {self.cpus} CPUs, of which the largest machine of the cluster has {_most_cpus():g} and "
            f"{ray.available_resources().get('CPU', 0):g} are free in all"
        )

    def _known_jpegs(self, plan: Dataset) -> Any:
        """In the object store once, for all actors."""
        count = len(plan.jpeg_index) if plan.jpeg_index is not None else 0
        if count != self._known[0]:
            self._known = (count, ray.put(remote.known_jpegs(plan)))
        return self._known[1]

    def attach(self, plan: Dataset, tasks: RowTasks) -> None:
        try:
            self._require_ray()
        except WorkerLost:
            raise RuntimeError("penstock.ray.Workers: Ray was shut down: call ray.init(), and make other Workers") from None
        super().attach(plan, tasks)

    def most_bytes(self) -> int | None:
        here = ray.get_runtime_context().get_node_id()
        for node in ray.nodes():
            if node["NodeID"] == here:
                return int(SHARE_OF_STORE * node["Resources"].get("object_store_memory", 0)) or None
        return None

    def start(self, plan: Dataset, settings: str, number: int, is_gone: Callable[[], bool]) -> Worker:
        try:
            pickled = cloudpickle.dumps(plan)
        except Exception as error:
            raise Error(f"this plan can't be sent to Ray's actors: {error}") from error
        self._require_ray()
        maker: Any = ray.remote(_Maker)
        actor = maker.options(**self._options).remote(pickled, self._known_jpegs(plan), settings, self.cpus)
        try:
            return _Actor(actor, _wait(actor.where.remote(), is_gone), self._require_ray)
        except BaseException:
            if ray.is_initialized():
                ray.kill(actor)
            raise


class _Maker:
    """What an actor runs."""

    def __init__(self, plan: bytes, known: bytes, settings: str, threads: int) -> None:
        self._maker: remote.RowMaker | None = None
        self._refusal: Exception | None = None
        try:
            self._maker = remote.maker_of(cloudpickle.loads(plan), known, settings, threads)
        except Exception as error:
            self._refusal = error

    def where(self) -> str:
        """The machine, once the plan is open."""
        name = str(ray.util.get_node_ip_address())
        if self._refusal is not None:
            raise Error(f"on {name}: {self._refusal}") from self._refusal
        return name

    def make(self, request: bytes) -> Any:
        assert self._maker is not None
        made: Any = self._maker.make(request)
        return numpy.frombuffer(made, dtype=numpy.uint8)


class _Actor(Worker):
    def __init__(self, actor: Any, node: str, require_ray: Callable[[], None]) -> None:
        self._actor = actor
        self._require_ray = require_ray
        self.name = f"the Ray actor {actor._actor_id.hex()[:12]} on {node}"

    def make(self, request: bytes, lane: int) -> Any:
        self._require_ray()
        try:
            return _wait(self._actor.make.remote(request), lambda: False)
        except (WorkerLost, Error, ray.exceptions.RayTaskError):
            raise
        except Exception as error:
            self._require_ray()  # it was shut down meanwhile
            raise WorkerLost(str(error)) from error

    def close(self) -> None:
        if ray.is_initialized():
            ray.kill(self._actor)


def _most_cpus() -> float:
    """Of one machine of the cluster."""
    return max((node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]), default=0)


def prepare(
    input: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    cpus: int = 1,
    retries: int = 10,
    progress: Callable[[int, int], object] | None = None,
    options: Mapping[str, Any] | None = None,
    **what: Any,
) -> PrepareReport:
    """penstock.prepare on a Ray cluster: a task for each shard, and the same shards, indices and report, byte for byte.

    All machines must see the input and the output: storage that they share, or s3://. `cpus`: of each task, which are its
    threads. `retries`: how often a shard is begun again whose process or machine is lost. `progress(done, samples)` is called
    as shards are done. `options`: more of them for the tasks, as for ray.remote, such as runtime_env. `what`: the options of
    penstock.prepare, but threads.

    One that was stopped or killed goes on when it is called again, here or with penstock.prepare.

    Errors  as penstock.prepare; Error  a machine has another version, or sees other data: names it; a shard was lost too often
            RuntimeError  Ray was not started: call ray.init() first
            ValueError    cpus below 1
    """

    def warn(text: str, is_warning: bool) -> None:
        if is_warning:
            warnings.warn(text, UserWarning, stacklevel=4)

    return _prepare((os.fspath(input), os.fspath(output)), cpus, retries, progress, options, what, warn)


def _prepare(
    places: tuple[str, str],
    cpus: int,
    retries: int,
    progress: Callable[[int, int], object] | None,
    options: Mapping[str, Any] | None,
    what: dict[str, Any],
    notify: Callable[[str, bool], None],
) -> PrepareReport:
    """`notify` gets what a user should know of the input, and whether it is a warning."""
    if not ray.is_initialized():
        raise RuntimeError("penstock.ray.prepare: Ray was not started: call ray.init() first")
    remote.check_count("cpus", cpus)
    what["threads"] = cpus
    settings = tuple(sorted((name, tuple(value) if name == "also" else value) for name, value in what.items()))
    plan = Preparation(*places, **what)
    for text, is_warning in plan._notices():  # type: ignore[attr-defined]
        notify(text, is_warning)
    run = PrepareRun(plan)
    sizes = {shard.number: shard.end - shard.first for shard in plan.shards}
    missing = run.missing()
    done = plan.samples - sum(sizes[number] for number in missing)
    if cpus > _most_cpus():
        warnings.warn(
            f"each task takes {cpus} CPUs, and no machine of the cluster has more than {_most_cpus():g}: none starts before one has",
            RuntimeWarning,
            stacklevel=3,
        )
    make = ray.remote(_make_shard).options(**{**dict(options or {}), "num_cpus": cpus, "max_retries": retries})
    wanted = (__version__, plan.fingerprint)
    pending: dict[Any, int] = {make.remote(places, settings, wanted, number): number for number in missing}
    try:
        while pending:
            for answer in ray.wait(list(pending), timeout=WAIT_S)[0]:
                number = pending.pop(answer)
                try:
                    made = _wait(answer, lambda: False)
                except WorkerLost as error:
                    raise Error(
                        f"shard {number} was lost {retries + 1} times: {error}; start it again, and it goes on"
                    ) from error
                run.add(number, PrepareReport.from_json(made))
                done += sizes[number]
                if progress is not None:
                    progress(done, plan.samples)
    finally:
        for answer in pending:
            ray.cancel(answer)
    return run.finish()


@functools.lru_cache(maxsize=1)
def _plan_of(places: tuple[str, str], settings: tuple[tuple[str, Any], ...]) -> Preparation:
    """What a process opens once for all of its shards."""
    return Preparation(*places, **dict(settings))


def _make_shard(
    places: tuple[str, str], settings: tuple[tuple[str, Any], ...], wanted: tuple[str, str], number: int
) -> str:
    """A task."""
    here = ray.util.get_node_ip_address()
    if __version__ != wanted[0]:
        raise Error(f"on {here}: this is penstock {__version__}, and that of the driver {wanted[0]}: install the same")
    plan = _plan_of(places, settings)
    if plan.fingerprint != wanted[1]:
        _plan_of.cache_clear()
        raise Error(f"on {here}: '{places[0]}' holds other data than on the driver: {plan.fingerprint}, not {wanted[1]}")
    return plan.make(number).to_json()


# What says that an answer is not to be had from this actor, while it may be from another.
_LOST = (
    ray.exceptions.RayActorError,
    ray.exceptions.ObjectLostError,
    ray.exceptions.ObjectStoreFullError,
    ray.exceptions.OutOfMemoryError,
    ray.exceptions.NodeDiedError,
    ray.exceptions.RaySystemError,
    ray.exceptions.TaskCancelledError,
    ray.exceptions.WorkerCrashedError,
)


def _wait(answer: Any, is_gone: Callable[[], bool]) -> Any:
    """The value of an object reference, with errors as penstock has them."""
    while True:
        try:
            return ray.get(answer, timeout=WAIT_S)
        except ray.exceptions.GetTimeoutError:
            if is_gone():
                raise WorkerLost("the loader is gone") from None
        except ray.exceptions.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, _LOST):
                raise WorkerLost(str(cause)) from error
            raise (cause if isinstance(cause, Error) else error) from None
        except _LOST as error:
            raise WorkerLost(str(error)) from error
