"""Rows of a loader's steps made by others: other processes here, or other machines (penstock.ray).

    import penstock as ps
    from penstock.remote import Processes

    loader = plan.loader(remote=Processes(4))

Which rows are made where changes nothing but the time: batches, digests and states are the same, with any number of
workers, with none, and when they die. The loader's own threads go on beside them.

Where the plan's decode_image has an index of JPEGs, workers begin with what it holds, and what they learn comes back to it.

Processes are for Python functions in a plan (map_function), which one process can call on one core only. What penstock
does itself runs on all cores of one process.

To make rows over another transport, derive from Workers: its start() connects to a worker, whose make() sends a request and
returns what a RowMaker made of it.
"""

from __future__ import annotations

import abc
import atexit
import contextlib
import functools
import multiprocessing
import multiprocessing.connection
import pickle
import signal
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from penstock import _workers
from penstock._errors import Error
from penstock._penstock import Dataset, MemoryJpegIndex, RowMaker, RowTask, RowTasks

__all__ = ["Processes", "Worker", "WorkerLost", "Workers"]

SLICE_S = 0.05
# A task that takes longer than this, and than so many times the usual, is asked of another worker as well.
LATE_S = 1.0
LATE_TIMES = 4.0
# A task that takes longer than this goes back to the loader: its worker, and the second worker that was asked, may be cut off.
# Before the first answer the usual time of a task is not known.
STUCK_S = 5.0
STUCK_TIMES = 16.0
FIRST_STUCK_S = 60.0
MOST_WAIT_S = 5.0  # between two attempts at starting a worker
START_S = 10.0  # that the loader's threads wait for the first worker, where they are not to make rows


class WorkerLost(Exception):
    """A worker can't be reached. What it was asked for is asked of others, and it is started again."""


def check_count(name: str, value: object, least: int = 1) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, found {value!r}")
    if value < least:
        raise ValueError(f"{name} must be {least} or more, found {value}")


class Worker(abc.ABC):
    """One worker, as the process of the loader sees it."""

    name: str = "a worker"

    @abc.abstractmethod
    def make(self, request: bytes, lane: int) -> Any:
        """What RowMaker.make returns for `request`, or a copy of its bytes. Waits. Called by as many threads at once as Workers has `ahead`, which are
        the lanes from 0.

        Errors  WorkerLost  the worker is gone
        """

    def close(self) -> None:
        """Ends it. Other threads may still be in make(), and get WorkerLost there."""


class Workers(abc.ABC):
    """The workers that make rows elsewhere: for Dataset.loader(remote=...). One object may serve several loaders.

    `count`: how many. `rows`: of one task, at the most; a task is a part of one device's slice. `ahead`: tasks that each
    worker has at a time, so that it never waits for the next. `local`: whether the loader's threads make rows, too; without
    it they do only while there is no worker.
    """

    def __init__(self, count: int, *, rows: int = 64, ahead: int = 2, local: bool = True) -> None:
        for name, value in (("count", count), ("rows", rows), ("ahead", ahead)):
            check_count(name, value)
        self.count = count
        self.rows = rows
        self.ahead = ahead
        self.local = local

    @abc.abstractmethod
    def start(self, plan: Dataset, settings: str, number: int, is_gone: Callable[[], bool]) -> Worker:
        """Starts worker `number`, from 0, and waits until it is ready. Called on a thread of its own, again after WorkerLost.

        Errors  WorkerLost  it did not start, or the loader is gone; it is tried again
                Error       it never will: it has other data, or another version of penstock
        """

    def why_none(self) -> str:
        """What may keep workers from starting, for a warning; empty where nothing is known."""
        return ""

    def most_bytes(self) -> int | None:
        """How many bytes of rows may be on their way at a time; None: no limit. Not less than one task."""
        return None

    def attach(self, plan: Dataset, tasks: RowTasks) -> None:
        """What Dataset.loader calls."""
        _Session(self, plan, tasks).run()


class _Seat:
    """The place of one worker, which several lanes share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.worker: Worker | None = None
        self.refused = False


class _Out:
    """A task, and the workers that were asked for it."""

    def __init__(self, task: RowTask, number: int) -> None:
        self.task = task
        self.since = time.monotonic()
        self.numbers = [number]


class _Session:
    """The workers of one loader. Its threads end when the loader is dropped."""

    def __init__(self, workers: Workers, plan: Dataset, tasks: RowTasks) -> None:
        self._workers = workers
        self._plan = plan
        self._tasks = tasks
        self._settings = tasks.settings
        self._seats = [_Seat() for _ in range(workers.count)]
        self._lock = threading.Lock()
        self._ready: set[int] = set()  # workers
        self._stuck: set[int] = set()  # workers that have answered nothing since a task of theirs was given back
        self._refusals: list[str] = []
        self._out: list[_Out] = []  # the oldest first
        self._usual_s = 0.0
        self._room = _Room(workers.most_bytes())
        self._began = time.monotonic()
        self._waits = True  # for the first worker
        self._start_error = ""
        self._ended = False
        self._threads: list[threading.Thread] = []

    def run(self) -> None:
        if not self._workers.local:
            self._tasks.enable_local_rows(False)
        _sessions.add(self)
        for number in range(self._workers.count):
            for lane in range(self._workers.ahead):
                self._start(f"{number}-{lane}", self._serve, number, lane)
        self._start("watch", self._watch)

    def _start(self, name: str, run: Callable[..., None], *arguments: int) -> None:
        thread = threading.Thread(target=run, args=arguments, name=f"penstock-remote-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def end(self) -> None:
        self._ended = True

    def join(self, until: float) -> None:
        """Waits for the threads; those that wait for a worker go with the program."""
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _is_gone(self) -> bool:
        return self._ended or self._tasks.is_gone

    def _serve(self, number: int, lane: int) -> None:
        seat = self._seats[number]
        try:
            self._serve_lane(number, lane, seat)
        except BaseException as error:  # of start(); else the loader would wait for this lane
            self._leave_out(seat, number, error)
        finally:
            with seat.lock:
                worker, seat.worker = seat.worker, None
            if worker is not None:
                self._close(worker)

    def _serve_lane(self, number: int, lane: int, seat: _Seat) -> None:
        while not self._is_gone():
            worker = self._worker_of(number, seat)
            if worker is None:
                break
            out = self._next(number)
            if out is None:
                continue
            lost: WorkerLost | None = None
            size = out.task.nbytes
            if not self._room.enter(size, functools.partial(self._is_over, out.task)):
                self._leave(out, number)
                continue
            try:
                if len(out.numbers) == 1:
                    out.since = time.monotonic()
                made = worker.make(out.task.request, lane)
                out.task.finish(made)
                self._note(out)
                del made
            except WorkerLost as error:
                lost = error
            except BaseException as error:  # it would be the same from any worker
                out.task.fail(error)
            finally:
                self._room.leave(size)
                self._leave(out, number)
                del out
            if lost is not None:  # others have the task by now
                self._lose(seat, worker, lost, number)
            self._choose_threads()

    def _is_over(self, task: RowTask) -> bool:
        return self._is_gone() or not task.is_pending

    # ---- tasks ----

    def _next(self, number: int) -> _Out | None:
        late = self._late(number)
        if late is not None:
            return late
        task = self._tasks.take(self._workers.rows, SLICE_S)
        if task is None:
            return None
        out = _Out(task, number)
        with self._lock:
            self._out.append(out)
        return out

    def _late(self, number: int) -> _Out | None:
        """The oldest task whose worker is slow and that no other worker has. The answer that comes first counts."""
        with self._lock:
            before = time.monotonic() - max(LATE_S, LATE_TIMES * self._usual_s)
            for out in self._out:
                if out.since < before and len(out.numbers) == 1 and number not in out.numbers and out.task.is_pending:
                    out.numbers.append(number)
                    return out
            return None

    def _watch(self) -> None:
        """Gives back tasks that take far too long, and has the loader's threads make rows where no worker starts."""
        while not self._is_gone():
            time.sleep(SLICE_S)
            now = time.monotonic()
            with self._lock:
                limit = max(STUCK_S, STUCK_TIMES * self._usual_s) if self._usual_s else FIRST_STUCK_S
                stuck = [out for out in self._out if now - out.since > limit and out.task.is_pending]
                for out in stuck:
                    self._out.remove(out)
                    self._stuck.update(out.numbers)
                none_starts = self._waits and not self._ready and now - self._began > START_S
            for out in stuck:
                out.task.cancel()
            if none_starts:
                self._stop_waiting()
            if stuck:
                self._choose_threads()

    def _stop_waiting(self) -> None:
        if not all(seat.refused for seat in self._seats):
            reasons = [reason for reason in (self._workers.why_none(), self._start_error) if reason]
            makers = "others" if self._workers.local else "the loader's threads"
            self._warn(
                f"none of {self._workers.count} remote workers has started after {START_S:.0f} s, and {makers} make the rows "
                f"until one does{': ' if reasons else ''}{'; '.join(reasons)}"
            )
        self._waits = False
        self._choose_threads()

    def _note(self, out: _Out) -> None:
        """Late answers count, too: else a function that is slow would never be known to be."""
        took = time.monotonic() - out.since
        with self._lock:
            self._usual_s = took if self._usual_s == 0 else 0.9 * self._usual_s + 0.1 * took

    def _leave(self, out: _Out, number: int) -> None:
        with self._lock:
            self._stuck.discard(number)
            with contextlib.suppress(ValueError):
                out.numbers.remove(number)
            if not out.numbers or not out.task.is_pending:
                with contextlib.suppress(ValueError):
                    self._out.remove(out)

    # ---- workers ----

    def _worker_of(self, number: int, seat: _Seat) -> Worker | None:
        """Starts it where it is not there; None where it never will be, or the loader is gone."""
        wait_s = 0.1
        with seat.lock:
            while seat.worker is None and not seat.refused and not self._is_gone():
                try:
                    seat.worker = self._started(number)
                except WorkerLost as error:
                    self._start_error = str(error)
                    self._sleep(wait_s)
                    wait_s = min(2 * wait_s, MOST_WAIT_S)
                except Exception as error:
                    seat.refused = True
                    self._refuse(number, error)
                else:
                    with self._lock:
                        self._ready.add(number)
                        self._waits = False
                    self._choose_threads()
            return seat.worker

    def _started(self, number: int) -> Worker:
        worker: object = self._workers.start(self._plan, self._settings, number, self._is_gone)
        if not isinstance(worker, Worker):
            raise TypeError(f"{type(self._workers).__name__}.start() returned {worker!r}: expected a penstock.remote.Worker")
        return worker

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._is_gone():
            time.sleep(SLICE_S)

    def _lose(self, seat: _Seat, worker: Worker, error: WorkerLost, number: int) -> None:
        with seat.lock:
            if seat.worker is not worker:
                return  # another lane was first
            seat.worker = None
            with self._lock:  # before another lane starts it again
                self._ready.discard(number)
        if not self._is_gone():  # before the loader's threads make rows in its place, which may be the last ones
            self._warn(f"{worker.name} is gone, and is started again: {error}")
        with self._lock:
            self._waits = False
        self._choose_threads()
        self._close(worker)

    def _close(self, worker: Worker) -> None:
        try:
            worker.close()
        except Exception as error:
            self._warn(f"{worker.name}: close() raised {error!r}")

    @staticmethod
    def _warn(message: str) -> None:
        with contextlib.suppress(RuntimeWarning):  # as an error it would end the thread, and no caller would see it
            warnings.warn(message, RuntimeWarning, stacklevel=2)

    def _choose_threads(self) -> None:
        """The loader's own make rows where no worker answers; not yet while the first ones start."""
        if self._workers.local:
            return
        with self._lock:
            all_refused = len(self._refusals) == self._workers.count  # the next rows are for the error that says so
            self._tasks.enable_local_rows(not self._waits and not self._ready - self._stuck and not all_refused)

    def _leave_out(self, seat: _Seat, number: int, error: BaseException) -> None:
        with seat.lock:
            is_new = not seat.refused
            seat.refused = True
        if is_new:
            self._refuse(number, error)

    def _refuse(self, number: int, error: BaseException) -> None:
        with self._lock:
            self._ready.discard(number)
            self._refusals.append(str(error))
            all_refused = len(self._refusals) == self._workers.count
        if not all_refused:
            self._warn(f"a remote worker is left out: {error}")
        self._choose_threads()
        if not all_refused:
            return
        wrong = Error(f"no remote worker can make rows of this plan: {self._refusals[0]}")
        wrong.__cause__ = error
        while not self._is_gone():
            task = self._tasks.take(self._workers.rows, SLICE_S)
            if task is not None:
                task.fail(wrong)


# Their threads end before the loaders are stopped at the program's end, or they would hold parts of them.
_sessions: weakref.WeakSet[_Session] = weakref.WeakSet()


def _end_all() -> None:
    sessions = list(_sessions)
    for session in sessions:
        session.end()
    until = time.monotonic() + 1.0
    for session in sessions:
        session.join(until)


atexit.register(_end_all)


class _Room:
    """A limit for bytes on their way."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._used = 0
        self._changed = threading.Condition()

    def enter(self, size: int, is_over: Callable[[], bool]) -> bool:
        """False where it was over before there was room."""
        with self._changed:
            while self._most is not None and self._used > 0 and self._used + size > self._most:
                if is_over():
                    return False
                self._changed.wait(SLICE_S)
            self._used += size
            return True

    def leave(self, size: int) -> None:
        with self._changed:
            self._used -= size
            self._changed.notify_all()


# ---- processes of this machine ----


class Processes(Workers):
    """Worker processes on this machine, `count` of them, of `threads` decoding threads each.

    They are started by spawn, so the program's own lines must stand below ``if __name__ == "__main__":``. Python functions in
    the plan must be what pickle can carry.
    """

    def __init__(self, count: int, *, threads: int = 1, rows: int = 64, ahead: int = 2, local: bool = True) -> None:
        super().__init__(count, rows=rows, ahead=ahead, local=local)
        check_count("threads", threads, least=0)
        self.threads = threads

    def attach(self, plan: Dataset, tasks: RowTasks) -> None:
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            raise RuntimeError(
                "a worker process runs the program again to find its functions, and comes past loader(remote=Processes(...)): "
                'put the program\'s own lines below if __name__ == "__main__":'
            )
        super().attach(plan, tasks)

    def start(self, plan: Dataset, settings: str, number: int, is_gone: Callable[[], bool]) -> Worker:
        try:
            pickled = pickle.dumps(plan)
        except Exception as error:
            raise Error(
                f"this plan can't be sent to worker processes: {error}: take data in files, and functions of a module"
            ) from error
        return _Process(pickled, known_jpegs(plan), settings, self.threads, self.ahead, number)


def known_jpegs(plan: Dataset) -> bytes:
    """What the plan's index of JPEGs holds: for maker_of in another process, whose plan has an empty one."""
    index = plan.jpeg_index
    return index.to_bytes() if isinstance(index, MemoryJpegIndex) else b""


def maker_of(plan: Dataset, known: bytes, settings: str, threads: int) -> RowMaker:
    """What makes rows of an unpickled plan."""
    if known and plan.jpeg_index is not None:
        plan.jpeg_index.load_bytes(known)
    return RowMaker(plan, settings, threads=threads)


class _Process(Worker):
    def __init__(self, plan: bytes, known: bytes, settings: str, threads: int, lanes: int, number: int) -> None:
        context = multiprocessing.get_context("spawn")
        pairs = [context.Pipe() for _ in range(lanes)]
        there = [theirs for _, theirs in pairs]
        self._lanes = [ours for ours, _ in pairs]
        with _workers.in_memory(pickle.dumps((plan, known, settings, threads))) as block:
            self._process = context.Process(
                target=_serve_rows, args=(block, there), daemon=True, name=f"penstock-rows-{number}"
            )
            self._process.start()
        for connection in there:
            connection.close()
        self.name = f"worker process {self._process.pid}"
        try:
            _receive(self._lanes[0])
        except BaseException as error:
            self._process.join(5)
            code = self._process.exitcode
            self.close()
            if isinstance(error, WorkerLost) and code is not None and code > 0:
                raise Error(
                    f"{self.name} ended with status {code} before it was ready; what it printed says why. The program's own "
                    'lines must stand below if __name__ == "__main__":'
                ) from error
            raise

    def make(self, request: bytes, lane: int) -> Any:
        connection = self._lanes[lane]
        try:
            connection.send_bytes(request)
        except OSError as error:
            raise WorkerLost(str(error)) from error
        return _receive(connection)

    def close(self) -> None:
        # A lane that waits finds the end of its pipe, which is closed with this object.
        self._process.kill()
        self._process.join()


Connection = multiprocessing.connection.Connection


def _receive(connection: Any) -> bytes:
    """An answer, or the exception that came in its place."""
    try:
        status = connection.recv_bytes()
        answer: bytes = connection.recv_bytes()
    except (EOFError, OSError) as error:
        raise WorkerLost("its process has ended") from error
    if status == b"error":
        raise _workers.exception_of(answer)
    return answer


def _serve_rows(block: int, lanes: list[Any]) -> None:
    """What a worker process runs: a thread a lane."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends this one
    try:
        plan, known, settings, threads = _workers.from_memory(block)
        maker = maker_of(pickle.loads(plan), known, settings, threads)
    except Exception as error:
        lanes[0].send_bytes(b"error")
        lanes[0].send_bytes(_workers.pickle_exception(error))
        return
    lanes[0].send_bytes(b"ready")
    lanes[0].send_bytes(b"")
    others = [threading.Thread(target=_serve_lane, args=(maker, lane), daemon=True) for lane in lanes]
    for thread in others:
        thread.start()
    for thread in others:
        thread.join()


def _serve_lane(maker: RowMaker, lane: Any) -> None:
    with contextlib.suppress(EOFError, OSError):  # the main process has ended
        while True:
            request = lane.recv_bytes()
            try:
                made: Any = maker.make(request)
                status = b"rows"
            except Exception as error:
                made, status = _workers.pickle_exception(error), b"error"
            lane.send_bytes(status)
            lane.send_bytes(made)
