"""Rows made by others: in this process, and in worker processes."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import bytes_of, run_python
from time_limit import seconds_left

import penstock as ps
from penstock import remote
from penstock.remote import Processes, Worker, WorkerLost

COUNT = 500
BATCH = 24


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """On a busy machine a worker may need longer than usual to start or to answer: then the loader's threads would make the rows, and no
    worker would do what a test is about. Tests of these limits set their own."""
    for limit in ("START_S", "STUCK_S", "FIRST_STUCK_S"):
        monkeypatch.setattr(remote, limit, 1000.0)


@pytest.fixture(scope="module")
def numbers_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("numbers") / "numbers.npy"
    values = np.arange(COUNT, dtype=np.int64)
    np.save(path, np.stack([values, values * values], axis=1))
    return path


def plan_of(path, devices="host:2", epochs=2):
    dataset = ps.arrays({"number": path}).seed(7).shuffle().repeat(epochs)
    return dataset.batch(BATCH, remainder="pad").prefetch_to_devices(devices, depth=3)


def join_all(threads):
    for thread in threads:
        thread.join(seconds_left())
    assert [thread for thread in threads if thread.is_alive()] == []


class Here(remote.Workers):
    """Workers of this process, which can be told to misbehave."""

    def __init__(self, count=2, *, plan=None, **options):
        super().__init__(count, **options)
        self.plan = plan
        self.started = []
        self.asked = itertools.count()
        self.misbehave = lambda asked, worker: None

    def start(self, plan, settings, number, is_gone):
        worker = HereWorker(self, ps.RowMaker(self.plan or plan, settings, threads=1), number)
        self.started.append(worker)
        return worker


class HereWorker(Worker):
    def __init__(self, workers, maker, number):
        self.name = f"worker {number}"
        self.number = number
        self.workers = workers
        self.maker = maker
        self.closed = False

    def make(self, request, lane):
        other = self.workers.misbehave(next(self.workers.asked), self)
        return self.maker.make(request) if other is None else other

    def close(self):
        self.closed = True


def run(plan, **options):
    loader = plan.loader(digest=True, threads=1, **options)
    return [bytes_of(step) for step in loader], loader


@pytest.mark.parametrize(("count", "local", "rows"), [(1, False, 100), (1, True, 5), (3, False, 5), (3, True, 12)])
def test_batches_are_the_same_whoever_makes_the_rows(numbers_file, count, local, rows):
    plan = plan_of(numbers_file)
    expected, alone = run(plan)
    found, loader = run(plan, remote=Here(count, local=local, rows=rows))
    assert found == expected
    assert loader.digest == alone.digest
    assert loader.state_dict() == alone.state_dict()
    assert local or loader.stats().remote.rows == 2 * COUNT


def test_resumed_at_every_step_with_and_without_others(numbers_file):
    plan = plan_of(numbers_file, epochs=1)
    expected, _ = run(plan)
    state = plan.loader().state_dict()
    for step, wanted in enumerate(expected):
        loader = plan.loader(threads=1, remote=Here(local=False, rows=5) if step % 2 else None)
        loader.load_state_dict(state)
        assert bytes_of(next(loader)) == wanted
        state = loader.state_dict()


def test_one_object_serves_several_loaders_and_rewinds(numbers_file):
    plan = plan_of(numbers_file)
    expected, _ = run(plan)
    workers = Here(local=False)
    first, second = plan.loader(remote=workers), plan.loader(remote=workers)
    for _ in range(3):
        assert [bytes_of(step) for step in first] == expected
        assert [bytes_of(step) for step in second] == expected
        first.rewind()
        second.rewind()


def test_a_worker_that_is_lost_is_started_again_and_nothing_changes(numbers_file):
    plan = plan_of(numbers_file, epochs=None)  # while no worker is there the loader's threads would make all rows of a short one
    alone = plan.loader(threads=1)
    workers = Here(2, local=False, rows=5)

    def lose(asked, worker):
        if asked % 7 == 3:
            raise WorkerLost("for a test")

    workers.misbehave = lose
    with pytest.warns(RuntimeWarning, match=r"worker \d is gone, and is started again: for a test"):
        loader = plan.loader(threads=1, remote=workers)
        while len(workers.started) < 4 or loader.stats().remote.cancelled == 0 or loader.stats().steps < 40:
            assert bytes_of(next(loader)) == bytes_of(next(alone))


def test_without_any_worker_the_loaders_threads_go_on(numbers_file):
    plan = plan_of(numbers_file)
    expected, _ = run(plan)
    workers = Here(1, local=False, rows=5)

    def lose(asked, worker):
        if asked >= 4:
            workers.start = never
            raise WorkerLost("for good")

    def never(*arguments):
        raise WorkerLost("does not start")

    workers.misbehave = lose
    with pytest.warns(RuntimeWarning, match="for good"):
        found, loader = run(plan, remote=workers)
    assert found == expected
    assert 0 < loader.stats().remote.rows < 2 * COUNT


def test_tasks_go_back_before_a_lost_worker_is_started_again(numbers_file):
    plan = plan_of(numbers_file)
    expected, _ = run(plan)
    workers = Here(1, local=False, rows=5)
    both, starts, restart = threading.Barrier(2), threading.Event(), threading.Event()

    def lose(asked, worker):
        if asked >= 4:
            workers.start = start_at_last
            if both.wait(seconds_left()) == 0:
                starts.wait(seconds_left())  # the other lane is at the start of the worker
            raise WorkerLost("for good")

    def start_at_last(*arguments):
        starts.set()
        restart.wait()
        raise WorkerLost("does not start")

    workers.misbehave = lose
    with pytest.warns(RuntimeWarning, match="for good"):
        loader = plan.loader(remote=workers)
        found = []
        while loader.wait_for(seconds_left()) and (step := next(loader, None)) is not None:
            found.append(bytes_of(step))
    restart.set()
    assert found == expected


def test_what_a_slow_worker_was_asked_for_is_asked_of_another(numbers_file, monkeypatch):
    monkeypatch.setattr(remote, "LATE_S", 0.2)
    plan = plan_of(numbers_file)
    expected, _ = run(plan)
    workers = Here(2, local=False, rows=12, ahead=1)
    is_stuck, never = threading.Event(), threading.Event()
    stuck = []

    def stand_still(asked, worker):
        if worker.number == 0:
            stuck.append(worker)
            is_stuck.set()
            never.wait()

    def start(plan, settings, number, is_gone):
        if number == 1:  # or it might have done all there was before the other one began
            assert is_stuck.wait(seconds_left())
        return Here.start(workers, plan, settings, number, is_gone)

    workers.misbehave = stand_still
    workers.start = start
    loader = plan.loader(remote=workers)
    try:
        assert [bytes_of(step) for step in loader] == expected
        assert len(stuck) == 1 and loader.stats().remote.cancelled == 0
    finally:
        never.set()


@pytest.mark.parametrize("local", [False, True])
def test_where_no_worker_answers_the_loaders_threads_go_on_and_later_the_workers(numbers_file, monkeypatch, local):
    monkeypatch.setattr(remote, "STUCK_S", 0.3)
    plan = plan_of(numbers_file, epochs=None)
    alone = plan.loader(threads=1)
    workers = Here(2, local=local, rows=5)
    again = threading.Event()

    def stand_still(asked, worker):
        if asked >= 4:
            again.wait()

    workers.misbehave = stand_still
    loader = plan.loader(remote=workers)
    try:
        while loader.stats().steps < 30 or loader.stats().remote.cancelled == 0:
            assert bytes_of(next(loader)) == bytes_of(next(alone))
        stuck = loader.stats().remote
    finally:
        again.set()
    while loader.stats().remote.rows == stuck.rows:  # as long as it takes: the plan has no end
        assert bytes_of(next(loader)) == bytes_of(next(alone))


def test_other_data_or_another_plan_is_refused_by_name(numbers_file, tmp_path):
    other = tmp_path / "other.npy"
    np.save(other, np.zeros((COUNT + 1, 2), dtype=np.int64))
    loader = plan_of(numbers_file).loader(remote=Here(plan=plan_of(other), local=False))
    with pytest.raises(ps.Error, match=r"no remote worker can make rows of this plan.*another dataset than its own.*other\.npy|501"):
        for _ in loader:
            pass
    loader = plan_of(numbers_file).loader(remote=Here(plan=plan_of(numbers_file, epochs=3), local=False))
    with pytest.raises(ps.Error, match=r"another plan than its own.*repeat"):
        for _ in loader:
            pass


def test_one_that_is_refused_is_left_out(numbers_file, tmp_path):
    other = tmp_path / "other.npy"
    np.save(other, np.zeros((COUNT + 1, 2), dtype=np.int64))
    plan = plan_of(numbers_file, epochs=None)  # the right one could make all rows of a short plan before the wrong one is there
    alone = plan.loader(threads=1)

    class OneWrong(Here):
        def start(self, plan, settings, number, is_gone):
            return super().start(plan_of(other, epochs=None) if number == 1 else plan, settings, number, is_gone)

    with pytest.warns(RuntimeWarning, match="a remote worker is left out: .*another dataset") as told:
        loader = plan.loader(threads=1, remote=OneWrong(2, local=False))
        while not told or loader.stats().steps < 40:
            assert bytes_of(next(loader)) == bytes_of(next(alone))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", "are no rows"),
        (b"PSROWAN1" + bytes(56), "were asked for"),
        ("a text", "expected bytes"),
    ],
)
def test_an_answer_that_is_no_rows_is_an_error_at_the_step(numbers_file, answer, error):
    workers = Here(local=False)
    workers.misbehave = lambda asked, worker: answer
    with pytest.raises((ps.Error, TypeError), match=error):
        next(plan_of(numbers_file).loader(remote=workers))


def test_a_loader_that_is_dropped_takes_its_threads_along(numbers_file):
    def lanes():
        return [thread for thread in threading.enumerate() if thread not in before]

    before = threading.enumerate()
    workers = Here(2)
    loader = plan_of(numbers_file).loader(remote=workers)
    next(loader)
    assert len(lanes()) == 5  # two lanes for each, and one that watches
    del loader
    join_all(lanes())
    assert lanes() == []
    assert all(worker.closed for worker in workers.started)


def test_a_loader_with_many_lanes_goes_when_it_is_dropped(numbers_file):
    before = threading.enumerate()
    workers = Here(16)
    loader = plan_of(numbers_file).loader(remote=workers)
    next(loader)
    del loader
    join_all([thread for thread in threading.enumerate() if thread not in before])  # for ever, where always some lane held it
    assert all(worker.closed for worker in workers.started)


@pytest.mark.parametrize("local", [False, True])
def test_tasks_that_take_longer_than_a_stuck_worker_may_are_done(numbers_file, monkeypatch, local):
    monkeypatch.setattr(remote, "STUCK_S", 0.05)
    monkeypatch.setattr(remote, "STUCK_TIMES", 1000.0)
    plan = plan_of(numbers_file, epochs=1)
    expected, _ = run(plan)
    workers = Here(2, local=local, rows=12)
    workers.misbehave = lambda asked, worker: time.sleep(0.15)
    found, loader = run(plan, remote=workers)
    assert found == expected
    assert loader.stats().remote.cancelled == 0
    assert local or loader.stats().remote.rows == COUNT


def never_starts(*arguments):
    raise WorkerLost("nobody at home")


@pytest.mark.parametrize("count", [1, 3])
def test_where_no_worker_starts_the_loaders_threads_make_the_rows_and_say_so(numbers_file, monkeypatch, count):
    monkeypatch.setattr(remote, "START_S", 0.3)
    plan = plan_of(numbers_file)
    expected, _ = run(plan)
    workers = Here(count, local=False)
    workers.start = never_starts
    with pytest.warns(RuntimeWarning, match=rf"none of {count} remote workers has started.*nobody at home"):
        found, _ = run(plan, remote=workers)
    assert found == expected


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("closes", [False, True])
def test_a_warning_as_an_error_and_a_close_that_raises_end_no_lane(numbers_file, closes):
    plan = plan_of(numbers_file)
    expected, _ = run(plan)
    workers = Here(2, local=False, rows=5)

    def lose(asked, worker):
        if asked % 9 == 3:
            if closes:
                worker.close = lambda: 1 / 0
            raise WorkerLost("for a test")

    workers.misbehave = lose
    found, loader = run(plan, remote=workers)
    assert found == expected
    assert loader.stats().remote.rows > 0


@pytest.mark.parametrize(
    ("start", "error"),
    [
        (lambda *arguments: None, r"Here\.start\(\) returned None: expected a penstock\.remote\.Worker"),
        (lambda *arguments: (_ for _ in ()).throw(SystemExit("enough")), "enough"),
    ],
)
def test_a_start_that_is_wrong_is_told_at_the_step(numbers_file, start, error):
    workers = Here(2, local=False)
    workers.start = start
    loader = plan_of(numbers_file).loader(remote=workers)
    with pytest.raises(ps.Error, match=error):
        next(loader)


def test_the_loaders_threads_make_no_rows_while_a_worker_may_still_start(numbers_file):
    """One worker is wrong at once, the other one once the loader's threads have had a second for a step."""
    workers = Here(2, local=False)
    made = threading.Event()

    def start(plan, settings, number, is_gone):
        made.wait()
        end = time.monotonic() + 1
        while number == 1 and loader.stats().steps == 0 and time.monotonic() < end:
            time.sleep(0.01)
        raise SystemExit("enough")

    workers.start = start
    loader = plan_of(numbers_file).loader(remote=workers)
    made.set()
    with pytest.raises(ps.Error, match="no remote worker can make rows of this plan: enough"):
        next(loader)


def test_a_worker_that_hangs_keeps_no_room_from_others(numbers_file, monkeypatch):
    for limit in ("LATE_S", "STUCK_S", "FIRST_STUCK_S"):
        monkeypatch.setattr(remote, limit, 0.2)

    class Narrow(Here):
        def most_bytes(self):
            return 12 * 16 + 100  # one task

    plan = plan_of(numbers_file, epochs=1)
    workers = Narrow(2, rows=12, ahead=1)
    never = threading.Event()

    def stand_still(asked, worker):
        if asked == 0:
            never.wait()

    workers.misbehave = stand_still
    before = threading.enumerate()
    loader = plan.loader(remote=workers)
    next(loader)
    del loader
    never.set()
    join_all([thread for thread in threading.enumerate() if thread not in before])


@pytest.mark.parametrize("wrong", [8, Processes])
def test_what_are_no_workers_is_said(numbers_file, wrong):
    with pytest.raises(TypeError, match=r"remote: expected a penstock\.remote\.Workers, such as penstock\.remote\.Processes\(4\), found"):
        plan_of(numbers_file).loader(remote=wrong)
    with pytest.raises(TypeError, match="count must be an integer, found 2.0"):
        Processes(2.0)
    with pytest.raises(ValueError, match="threads must be 0 or more, found -3"):
        Processes(2, threads=-3)


def test_tasks_by_hand(numbers_file):
    plan = plan_of(numbers_file, devices="host:1", epochs=1)
    expected, _ = run(plan)
    loader = plan.loader(threads=1)
    tasks = loader.row_tasks()
    tasks.enable_local_rows(False)
    assert tasks.take(10, 0.01) is None  # not started
    loader.start()
    maker = ps.RowMaker(plan, tasks.settings, threads=1)
    first = tasks.take(100, seconds_left())
    assert (first.step, first.replica, first.first_row, first.rows) == (0, 0, 0, BATCH)
    assert repr(first) == "<penstock.RowTask rows 0 to 24 of step 0>"
    assert len(first.request) == 48 + 24 * BATCH
    made = maker.make(first.request)
    assert first.nbytes <= len(made) <= first.nbytes + 4096
    assert first.is_pending
    assert first.finish(bytes(made))
    assert not first.is_pending
    assert not first.finish(memoryview(made))
    assert bytes_of(next(loader)) == expected[0]
    second = tasks.take(100, seconds_left())
    second.fail(LookupError("by hand"))
    with pytest.raises(LookupError, match="by hand"):
        next(loader)
    with pytest.raises(TypeError, match="expected an exception"):
        second.fail("a text")
    with pytest.raises(ValueError, match="max_rows must be 1 or more"):
        tasks.take(0, 0)
    with pytest.raises(ps.Error, match="no request"):
        maker.make(b"something else")
    del loader
    assert tasks.is_gone
    assert tasks.take(1, 0) is None


@pytest.mark.parametrize("options", [{"count": 0}, {"count": 1, "rows": 0}, {"count": 1, "ahead": 0}])
def test_options_are_checked(options):
    with pytest.raises(ValueError, match="must be 1 or more, found 0"):
        Processes(**options)


# ---- processes ----


def double(number):
    if number[0] == 42:
        raise KeyError("no 42")
    return number * 2


def with_function(path):
    dataset = ps.arrays({"number": path}).seed(7).shuffle()
    return dataset.map(double, outputs={"number": ("i64", (2,))}).batch(BATCH).prefetch_to_devices("host:2")


def test_processes_call_functions_and_carry_what_they_raise(numbers_file):
    plan = with_function(numbers_file)
    expected, alone = run(plan, on_fault="replace")
    found, loader = run(plan, on_fault="replace", remote=Processes(2, local=False, rows=8))
    assert found == expected
    assert loader.digest == alone.digest
    assert [str(fault) for fault in loader.faults()] == [str(fault) for fault in alone.faults()]
    failing = plan.loader(remote=Processes(1, local=False))
    with pytest.raises(ps.DataError, match=r"sample 42.*correct the function") as raised:
        for _ in failing:
            pass
    assert isinstance(raised.value.__cause__, KeyError)
    assert "in a worker process" in str(raised.value.__cause__.__cause__)


def test_what_processes_learn_of_jpegs_comes_back(images):
    def plan(index):
        decode = ps.decode_image(crop=ps.random_resized_crop(32), index=index)
        return ps.image_folder(images).seed(7).map(decode).batch(6).prefetch_to_devices("host:1")

    index = ps.MemoryJpegIndex()
    found, _ = run(plan(index), remote=Processes(1, local=False))
    assert found == run(plan(None))[0]
    learned = len(index)
    assert learned == len(ps.image_folder(images))
    assert len(plan(index).jpeg_index) == learned
    assert plan(None).jpeg_index is None
    copy = pickle.loads(pickle.dumps(plan(index)))
    assert len(copy.jpeg_index) == 0
    assert copy.jpeg_index.load_bytes(index.to_bytes()) == learned
    with pytest.raises(ps.Error, match="these bytes: expected a JPEG index that penstock wrote"):
        index.load_bytes(b"something else")
    loader = plan(None).loader()
    again = remote.maker_of(copy, index.to_bytes(), loader.row_tasks().settings, 1)
    assert isinstance(again, ps.RowMaker)
    assert len(copy.jpeg_index) == learned


def test_a_program_without_its_own_lines_below_main_is_told(numbers_file, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import penstock as ps
from penstock.remote import Processes
loader = ps.arrays({{"number": {str(numbers_file)!r}}}).batch(8).loader(remote=Processes(1, local=False))
for step in loader:
    print("step", step.number)
"""
    )
    result = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=seconds_left())
    assert result.returncode == 1
    assert "step" not in result.stdout
    assert 'must stand below if __name__ == "__main__":' in result.stderr


def test_much_that_is_known_does_not_hold_up_a_process_that_dies(numbers_file, monkeypatch):
    monkeypatch.setattr(remote, "known_jpegs", lambda plan: bytes(1_000_000))
    monkeypatch.setattr(remote, "_serve_rows", ends_at_once)
    loader = plan_of(numbers_file).loader(remote=Processes(1, local=False))
    with pytest.raises(ps.Error, match="ended with status 3 before it was ready"):
        next(loader)


def ends_at_once(*arguments):
    os._exit(3)


def test_killed_processes_are_replaced(numbers_file):
    plan = plan_of(numbers_file, epochs=None)
    alone = plan.loader(digest=True, threads=1)
    workers = Processes(2, local=False, rows=6)
    processes = []

    def start(*arguments):
        worker = Processes.start(workers, *arguments)
        processes.append(worker._process.pid)
        return worker

    workers.start = start
    loader = plan.loader(digest=True, remote=workers)

    def go_on_until_started(count):
        while len(processes) < count:  # as long as it takes: the plan has no end
            assert bytes_of(next(loader)) == bytes_of(next(alone))

    with pytest.warns(RuntimeWarning, match=r"worker process \d+ is gone"):
        for count in (2, 3, 4):
            go_on_until_started(count)
            os.kill(processes[-1], signal.SIGKILL)
        go_on_until_started(5)
    for _ in range(100):
        assert bytes_of(next(loader)) == bytes_of(next(alone))
    assert loader.digest == alone.digest


def test_a_plan_that_cannot_be_sent_says_why(numbers_file):
    hidden = ps.arrays({"number": numbers_file}).map(lambda number: number, outputs={"number": ("i64", (2,))}, name="l")
    loader = hidden.batch(4).loader(remote=Processes(1))
    with pytest.raises(ps.Error, match=r"can't be sent to worker processes.*pickle"):
        for _ in loader:
            pass
    with pytest.raises(ps.Error, match="is a stream.*read elsewhere"):
        numbers = ({"n": np.int64(i)} for i in range(10))
        ps.generator({"n": ("i64", ())}, numbers).batch(2).loader(remote=Processes(1))


def test_the_torch_loader_takes_them(numbers_file):
    pytest.importorskip("torch")
    from penstock.torch import DataLoader

    plan = ps.arrays({"number": numbers_file}).seed(7).shuffle().batch(BATCH)
    alone = [batch["number"].clone() for batch in DataLoader(plan, devices="host:1")]
    others = DataLoader(plan, devices="host:1", remote=Here(local=False))
    assert [batch["number"].tolist() for batch in others] == [numbers.tolist() for numbers in alone]
    assert sum(1 for _ in others) == len(alone)


def test_a_transport_of_ones_own(images):
    program = Path(__file__).parents[1] / "examples" / "clusters" / "own_transport.py"
    servers = [subprocess.Popen([sys.executable, program, "serve", "0"], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        ports = [server.stdout.readline().split()[1] for server in servers]
        addresses = [f"127.0.0.1:{port}" for port in ports]
        command = [sys.executable, program, "train", images]
        elsewhere = subprocess.run([*command, *addresses], capture_output=True, text=True, timeout=seconds_left())
        nowhere = subprocess.run([*command, "127.0.0.1:1"], capture_output=True, text=True, timeout=seconds_left())
    finally:
        for server in servers:
            server.kill()
    digest = re.search(r"rows made elsewhere, digest (.*)", elsewhere.stdout).group(1)
    assert f"0 rows made elsewhere, digest {digest}\n" in nowhere.stdout, nowhere.stderr


def test_a_transport_of_ones_own_makes_all_rows_where_it_must(images):
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "clusters"))
    import own_transport

    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=own_transport.serve, args=(listener,), daemon=True).start()
    plan = ps.image_folder(images).seed(7).shuffle().map(ps.decode_image(crop=ps.center_crop(32))).batch(6)
    expected, _ = run(plan)
    found, loader = run(plan, remote=own_transport.Sockets([listener.getsockname()], local=False))
    assert found == expected
    assert loader.stats().remote.rows == len(ps.image_folder(images))


def test_the_interpreter_ends_while_they_work(numbers_file):
    code = """
import sys, penstock as ps
from penstock.remote import Processes
if __name__ == "__main__":
    plan = ps.arrays({"number": sys.argv[1]}).repeat().batch(8).prefetch_to_devices("host:1")
    loader = plan.loader(remote=Processes(1, local=False))
    for number, step in enumerate(loader):
        if number == 20: break
"""
    run_python(code, str(numbers_file))


@pytest.mark.skipif(not os.path.exists(os.environ.get("PENSTOCK_THROUGHPUT", "")), reason="no penstock-throughput here")
def test_a_state_saved_with_others_goes_on_in_cpp_without_them(images, tmp_path):
    decode = ps.decode_image(crop=ps.random_resized_crop(32), flip=0.5)
    plan = ps.images(images).seed(3).shuffle().map(decode).batch(6).repeat(4).prefetch_to_devices("host:2")
    whole = plan.loader(digest=True)
    for _ in whole:
        pass
    loader = plan.loader(digest=True, remote=Here(3, local=False, rows=2))
    for _ in range(9):
        next(loader)
    state = tmp_path / "state.json"
    state.write_text(json.dumps(loader.state_dict()))
    plan.save(tmp_path / "plan.json")
    program = os.environ["PENSTOCK_THROUGHPUT"]
    command = [program, "--plan", tmp_path / "plan.json", "--state-in", state, "--steps", str(plan.size - 9), "--digest", "--quiet", "--json", "-"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=seconds_left())
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["digest"] == whole.digest
