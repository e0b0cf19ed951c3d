"""Queues and generators: nothing is lost, and the end has a reason."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import wait_until_it_sleeps
from time_limit import seconds_left

import penstock as ps

FIELDS = {"x": ("f32", (2,)), "tag": ("i64", ())}


def test_what_threads_push_a_loader_delivers():
    queue = ps.Queue(FIELDS, capacity=40)
    loader = ps.Dataset(queue).seed(1).shuffle(buffer=10).batch(8).loader()

    def act(actor: int) -> None:
        for i in range(50):
            tag = 100 * actor + i
            assert queue.push({"x": [tag, 1], "tag": tag} if i % 2 else (np.array([tag, 1], "f4"), np.int64(tag)))

    actors = [threading.Thread(target=act, args=(actor,)) for actor in range(3)]
    for actor in actors:
        actor.start()

    def close() -> None:
        for actor in actors:
            actor.join()
        queue.close()

    closer = threading.Thread(target=close)
    closer.start()
    tags = []
    for step in loader:
        assert (step["x"].numpy()[:, 0] == step["tag"].numpy()).all()
        tags += step["tag"].numpy().tolist()
    closer.join()
    assert sorted(tags) == [100 * actor + i for actor in range(3) for i in range(50)]
    assert queue.stats().pushed == queue.stats().read == 150
    with pytest.raises(ps.QueueClosed):
        queue.push({"x": [0, 0], "tag": 0})


def test_a_full_queue_says_so_in_time():
    queue = ps.Queue(FIELDS, capacity=1)
    record = {"x": [0, 0], "tag": 0}
    assert queue.push(record, timeout=0)
    assert not queue.push(record, timeout=0)
    assert not queue.push(record, timeout=0.12)
    assert queue.stats().waiting == 1


def test_the_cause_of_an_end_reaches_both_sides():
    queue = ps.Queue(FIELDS)
    queue.push({"x": [1, 2], "tag": 3})
    queue.close(ArithmeticError("diverged"))
    loader = ps.Dataset(queue).batch(1).loader()
    assert next(loader)["tag"].numpy().tolist() == [3]
    for _ in range(2):
        with pytest.raises(ArithmeticError, match="diverged"):
            next(loader)
    with pytest.raises(ps.QueueClosed, match="diverged") as error:
        queue.push({"x": [1, 2], "tag": 3})
    assert isinstance(error.value.__cause__, ArithmeticError)
    with pytest.raises(TypeError, match="exception"):
        ps.Queue(FIELDS).close("why")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"x": [1, 2]}, "2 fields, found 1"),
        ({"x": [1, 2], "y": 3}, "no field 'tag'"),
        ({"x": [1, 2, 3], "tag": 3}, "x"),
        ({"x": np.zeros(2, complex), "tag": 3}, "field 'x': a dtype must be one of"),
        ({"x": None, "tag": 3}, r"field 'x': expected f32 \[\?\], found None|field 'x': expected f32 \[2\], found None"),
        ({"x": b"ab", "tag": 3}, "found bytes, which is u8"),
        ((1,), "2 fields, found 1"),
    ],
)
def test_a_wrong_record_is_refused(record, message):
    queue = ps.Queue(FIELDS)
    with pytest.raises(ValueError, match=message):
        queue.push(record)
    assert queue.stats().pushed == 0


def test_extents_may_differ_until_a_map_makes_them_equal():
    queue = ps.Queue({"words": ("i64", (None,))})
    for length in range(1, 5):
        queue.push([np.arange(length)])
    queue.close()

    def pad(words):
        return np.pad(words, (0, 4 - len(words)))

    loader = ps.Dataset(queue).map(pad, outputs={"words": ("i64", (4,))}).batch(4).loader()
    assert next(loader)["words"].numpy().tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 2, 0], [0, 1, 2, 3]]


def test_a_generator_is_asked_for_what_a_batch_needs():
    made = []

    def make():
        for i in range(1000):
            made.append(i)
            yield {"x": [i, i], "tag": i}

    loader = ps.generator(FIELDS, make()).batch(5).prefetch_to_devices("host:1", depth=2).loader()
    assert next(loader)["tag"].numpy().tolist() == [0, 1, 2, 3, 4]
    assert len(made) <= 5 * 6
    assert sum(step.parts[0].size for step in loader) == 995
    with pytest.raises(ps.Error, match="stream"):
        loader.load_state_dict(loader.state_dict())


def test_what_a_generator_raises_comes_after_its_last_record():
    def make():
        yield [[1, 1], 1]
        raise OSError("cable pulled")

    loader = ps.generator(FIELDS, make()).batch(1).loader()
    assert next(loader)["tag"].numpy().tolist() == [1]
    for _ in range(2):
        with pytest.raises(OSError, match="cable pulled"):
            next(loader)


def test_a_generator_of_wrong_records_says_so():
    loader = ps.generator(FIELDS, [{"x": [1, 2]}]).batch(1).loader()
    with pytest.raises(ValueError, match="2 fields, found 1"):
        next(loader)
    with pytest.raises(TypeError, match="iter"):
        ps.generator(FIELDS, 3)


def test_a_loader_that_goes_tells_the_producers():
    queue = ps.Queue(FIELDS, capacity=20)
    loader = ps.Dataset(queue).batch(2).loader()
    refused = threading.Event()

    def act():
        try:
            while True:
                queue.push({"x": [1, 2], "tag": 3})
        except ps.QueueClosed:
            refused.set()

    thread = threading.Thread(target=act)
    thread.start()
    next(loader)
    del loader
    thread.join(seconds_left())
    assert refused.is_set()


# ---- producers in other processes ----

ACTOR = """
import sys
import penstock as ps

path, actor, count, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
with ps.QueueClient(path, {"x": ("f32", (2,)), "tag": ("i64", ())}, name=f"actor {actor}") as client:
    for i in range(count):
        tag = 1000 * actor + i
        client.push({"x": [tag, 1], "tag": tag})
        if mode == "raises" and i == 5:
            raise RuntimeError("the simulator diverged")
    if mode == "says":
        client.close("the simulator diverged")
"""


def actors(path, counts, mode="closes"):
    return [
        subprocess.Popen([sys.executable, "-c", ACTOR, str(path), str(number), str(count), mode], stderr=subprocess.PIPE)
        for number, count in enumerate(counts)
    ]


def test_what_processes_push_a_loader_delivers(tmp_path):
    queue = ps.Queue(FIELDS, capacity=40)
    running = actors(tmp_path / "q", [60, 70, 80])
    with ps.QueueServer(queue, tmp_path / "q", expected_clients=3) as server:
        assert server.path == tmp_path / "q"
        tags = [tag for step in ps.Dataset(queue).seed(1).shuffle(buffer=10).batch(8).loader() for tag in step["tag"].copy().tolist()]
        assert sorted(tags) == [1000 * actor + i for actor, count in enumerate([60, 70, 80]) for i in range(count)]
        stats = server.stats()
        assert (stats.finished, stats.lost, stats.refused, stats.last_error) == (3, 0, 0, "")
    assert all(actor.wait(seconds_left()) == 0 for actor in running) and not (tmp_path / "q").exists()
    for actor in running:
        actor.stderr.close()
    with pytest.raises(RuntimeError, match="this queue server has been stopped"):
        server.stats()


@pytest.mark.parametrize(("mode", "cause"), [("raises", "actor 0.*ended without close"), ("says", "actor 0.*the simulator diverged")])
def test_a_process_that_fails_is_the_cause(mode, cause, tmp_path):
    queue = ps.Queue(FIELDS)
    (actor,) = actors(tmp_path / "q", [20], mode)
    with ps.QueueServer(queue, tmp_path / "q"):
        loader = ps.Dataset(queue).batch(1).loader()
        tags = []
        with pytest.raises(ps.Error, match=cause):
            for step in loader:
                tags.append(step["tag"].numpy().item())
    assert tags == list(range(len(tags))) and len(tags) in (6, 20)
    assert actor.wait(seconds_left()) == (mode == "raises")
    actor.stderr.close()


def test_a_client_waits_no_longer_than_told(tmp_path):
    with pytest.raises(ps.Error, match="no queue server at .* within 0.05 s"):
        ps.QueueClient(tmp_path / "q", FIELDS, connect_timeout=0.05)
    queue = ps.Queue(FIELDS, capacity=3)
    with ps.QueueServer(queue, tmp_path / "q"):
        client = ps.QueueClient(tmp_path / "q", FIELDS, unacknowledged=1)
        for pushed in range(5):
            assert client.push(([pushed, 0], pushed))
        assert not client.push(([5, 0], 5), timeout=0.3)  # the queue is full, and nobody reads it
        assert client.pushed == 5 and client.acknowledged == queue.stats().pushed == 3
        with pytest.raises(ValueError, match="'x': expected f32"):
            client.push((["a", "b"], 1))
        with pytest.raises(ValueError, match="'tag': .*1180591620717411303424"):
            client.push(([0, 0], 2**70))
        loader = ps.Dataset(queue).batch(1).loader()
        closer = threading.Thread(target=client.close)
        closer.start()
        assert [step["tag"].numpy().item() for step in loader] == list(range(5))
        closer.join()
        with pytest.raises(RuntimeError, match=r"push after close\(\)"):
            client.push(([0, 0], 0))
        client.close()  # nothing the second time
        assert client.acknowledged == 5
        other = ps.Queue(FIELDS)
    with ps.QueueServer(other, tmp_path / "q"), ps.QueueClient(tmp_path / "q", FIELDS, unacknowledged=0) as client:
        assert client.push(([0, 0], 0)) and client.acknowledged == 1
        with pytest.raises(ValueError, match="unacknowledged=0"):
            client.push(([0, 0], 0), timeout=1)
    assert client.pushed == 1 and other.stats().pushed == 1
    with pytest.raises(ValueError, match="'close_queue', 'ignore'"):
        ps.QueueServer(queue, tmp_path / "q", on_lost_client="forget")


@pytest.mark.parametrize("waiting", ["connect", "push", "flush", "close"])
def test_ctrl_c_ends_a_client_that_waits(waiting, tmp_path):
    queue = ps.Queue(FIELDS, capacity=1)
    server = ps.QueueServer(queue, tmp_path / "q") if waiting != "connect" else None
    program = f"""
import penstock as ps
fields = {FIELDS!r}
print("began", flush=True)
client = ps.QueueClient({str(tmp_path / "q")!r}, fields, connect_timeout=600, unacknowledged=3)
for tag in range(4):
    client.push(([0, 0], tag))
print("pushed", flush=True)
getattr(client, {waiting!r})(*[([0, 0], 1)] * ({waiting!r} == "push"))
getattr(client, {waiting!r})(*[([0, 0], 1)] * ({waiting!r} == "push"))
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            for said in ["began"] if waiting == "connect" else ["began", "pushed"]:
                assert process.stdout.readline() == said + "\n"
            wait_until_it_sleeps(process.pid)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=seconds_left())
        finally:
            process.kill()
    assert "KeyboardInterrupt" in errors, errors
    if server is not None:
        server.stop()


def test_a_client_that_seldom_waits_reads_its_answers(tmp_path):
    queue = ps.Queue(FIELDS, capacity=5000)
    with ps.QueueServer(queue, tmp_path / "q"), ps.QueueClient(tmp_path / "q", FIELDS, unacknowledged=4000) as client:
        for tag in range(1000):  # each is acknowledged by itself
            client.push(([0, 0], tag))
            while queue.stats().pushed <= tag:
                time.sleep(0)
    assert queue.stats().pushed == 1000


def test_a_client_that_fails_is_lost_at_once_also_where_a_fork_lives_on(tmp_path):
    queue = ps.Queue(FIELDS)
    program = f"""
import os, sys
import penstock as ps
with ps.QueueClient({str(tmp_path / "q")!r}, {FIELDS!r}, name="actor 3"):
    if os.fork() == 0:
        sys.stdin.readline()
        print("the fork was told to end", flush=True)
        os._exit(0)
    raise RuntimeError("the simulator diverged")
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with ps.QueueServer(queue, tmp_path / "q"), subprocess.Popen([sys.executable, "-c", program], **pipes) as process:
        with pytest.raises(ps.Error, match="actor 3.*ended without close"):
            next(ps.Dataset(queue).batch(1).loader())
        assert process.wait(seconds_left()) == 1
        assert process.communicate("end\n", timeout=seconds_left())[0] == "the fork was told to end\n"


def test_a_forked_child_does_not_use_its_parents_client(tmp_path):
    queue = ps.Queue(FIELDS)
    with ps.QueueServer(queue, tmp_path / "q"):
        client = ps.QueueClient(tmp_path / "q", FIELDS)
        child = os.fork()
        if child == 0:
            try:
                client.push(([0, 0], 0))
            except ps.Error as error:
                os._exit("forked" in str(error))
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
        assert client.push(([0, 0], 0))
        client.close()
    assert queue.stats().pushed == 1
