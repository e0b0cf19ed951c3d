"""Rows made by actors of a Ray cluster of three nodes on this machine."""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import bytes_of
from time_limit import seconds_left, wait_until

import penstock as ps

ray = pytest.importorskip("ray")
from ray.cluster_utils import Cluster

import penstock.ray
import penstock.remote

pytestmark = pytest.mark.time_limit(600)  # an actor takes seconds to start

NODE = {"num_cpus": 1, "object_store_memory": 100_000_000}
COUNT = 600
BATCH = 24


@pytest.fixture(scope="module")
def cluster():
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 2})
    for number in range(2):
        cluster.add_node(**NODE, resources={f"node{number}": 100})
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A busy machine may need longer than usual to start an actor, or an actor to answer: then threads make the rows, and no actor does
    what a test is about."""
    for limit in ("START_S", "STUCK_S", "FIRST_STUCK_S"):
        monkeypatch.setattr(penstock.remote, limit, 1000.0)


@pytest.fixture(scope="module")
def numbers_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("numbers") / "numbers.npy"
    values = np.arange(COUNT, dtype=np.int64)
    np.save(path, np.stack([values, values * values], axis=1))
    return path


def plan_of(path, epochs=2, slow_s=0.0):
    def double(number):
        if slow_s:
            time.sleep(slow_s)
        return number * 2

    dataset = ps.arrays({"number": path}).seed(7).shuffle()
    dataset = dataset.map(double, outputs={"number": ("i64", (2,))}, name="double").repeat(epochs)
    return dataset.batch(BATCH, remainder="pad").prefetch_to_devices("host:2", depth=3)


@pytest.fixture(scope="module")
def alone(numbers_file):
    """The batches of two epochs, and their digest."""
    loader = plan_of(numbers_file).loader(digest=True)
    return [bytes_of(step) for step in loader], loader.digest


def kill_one(generator) -> bool:
    """Kills the process of an actor that makes rows."""
    processes = [
        int(pid)
        for pid in os.listdir("/proc")
        if pid.isdigit() and b"_Maker" in _command_of(pid)
    ]
    if not processes:
        return False
    os.kill(generator.choice(processes), signal.SIGKILL)
    return True


def _command_of(pid: str) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


@pytest.mark.parametrize(("count", "local"), [(1, False), (1, True), (4, False), (4, True)])
def test_batches_are_the_same_with_any_number_of_actors(cluster, numbers_file, alone, count, local):
    loader = plan_of(numbers_file).loader(
        digest=True, threads=1, remote=penstock.ray.Workers(count, local=local, rows=5)
    )
    assert [bytes_of(step) for step in loader] == alone[0]
    assert loader.digest == alone[1]
    assert local or loader.stats().remote.rows == 2 * COUNT


def test_resumed_at_every_step_with_actors_and_without(cluster, numbers_file, alone):
    plan = plan_of(numbers_file)
    workers = penstock.ray.Workers(2, local=False, rows=7)
    elsewhere = plan.loader(digest=True, remote=workers)
    here = plan.loader(digest=True)
    for step, wanted in enumerate(alone[0]):
        one, other = (elsewhere, here) if step % 2 else (here, elsewhere)
        assert bytes_of(next(one)) == wanted
        other.load_state_dict(one.state_dict())
    assert elsewhere.digest == here.digest == alone[1]


def test_actors_killed_at_random_moments(cluster, numbers_file):
    plan = plan_of(numbers_file, epochs=40, slow_s=0.0005)
    expected = plan.loader(digest=True)
    for _ in expected:
        pass
    loader = plan.loader(digest=True, remote=penstock.ray.Workers(3, local=False, rows=4))
    generator = random.Random(5)
    kills_at = set(generator.sample(range(10, expected.size - 100), 10))
    steps = 0
    with pytest.warns(RuntimeWarning, match="the Ray actor .* is gone, and is started again"):
        for _ in loader:
            steps += 1
            if steps in kills_at:  # without the actors the threads would go through what is left before the next one starts
                wait_until(lambda: kill_one(generator), "there is an actor to kill")
    assert steps == expected.size
    assert loader.digest == expected.digest


def test_a_node_that_is_removed(cluster, numbers_file):
    plan = plan_of(numbers_file, epochs=20, slow_s=0.0005)
    expected = plan.loader(digest=True)
    for _ in expected:
        pass
    node = cluster.add_node(**NODE, resources={"leaves": 1})
    workers = penstock.ray.Workers(1, local=False, rows=4, resources={"leaves": 1})
    loader = plan.loader(digest=True, remote=workers)
    removed = False
    with pytest.warns(RuntimeWarning, match="is gone"):
        for number, _ in enumerate(loader):
            if number == 50:
                cluster.remove_node(node)
                removed = True
    assert removed
    assert loader.digest == expected.digest
    assert 0 < loader.stats().remote.rows < 20 * COUNT  # the loader's own threads made the others


def test_an_actor_that_is_ten_times_as_slow(cluster, numbers_file, alone, monkeypatch):
    monkeypatch.setattr(penstock.remote, "LATE_S", 0.3)

    class OneSlow(penstock.ray.Workers):
        def start(self, plan, settings, number, is_gone):
            worker = super().start(plan, settings, number, is_gone)
            make = worker.make

            def slowly(request, lane):
                began = time.monotonic()
                made = make(request, lane)
                time.sleep(max(0.4, 10 * (time.monotonic() - began)))
                return made

            if number == 0:
                worker.make = slowly
            return worker

    loader = plan_of(numbers_file).loader(digest=True, remote=OneSlow(2, local=False, rows=12))
    for _ in loader:
        pass
    assert loader.digest == alone[1]


def test_other_data_is_refused_by_the_name_of_the_machine(cluster, numbers_file, tmp_path):
    data = tmp_path / "changes.npy"
    np.save(data, np.zeros((COUNT, 2), dtype=np.int64))
    plan = plan_of(data)
    loader = plan.loader(remote=penstock.ray.Workers(1, local=False))
    np.save(data, np.zeros((COUNT + 1, 2), dtype=np.int64))  # before the actor opens it
    with pytest.raises(ps.Error, match=r"no remote worker can make rows of this plan: on [\d.]+: .*the data are not those of the plan"):
        next(loader)


def test_another_version_is_refused(cluster, numbers_file):
    class Older(penstock.ray.Workers):
        def start(self, plan, settings, number, is_gone):
            return super().start(plan, settings.replace(f'"{ps.__version__}"', '"0.0.9"'), number, is_gone)

    loader = plan_of(numbers_file).loader(remote=Older(1, local=False))
    with pytest.raises(ps.Error, match=r"the loader runs penstock 0\.0\.9, and rows .* by penstock .* the same version"):
        next(loader)


def test_a_full_object_store(cluster, tmp_path):
    """Tasks of more bytes than the store has at a time: waits, and goes on."""
    path = tmp_path / "large.npy"
    np.save(path, np.zeros((300, 1_000_000), dtype=np.uint8))
    plan = ps.arrays({"x": path}).batch(60).prefetch_to_devices("host:1")
    expected = plan.loader(digest=True)
    for _ in expected:
        pass
    workers = penstock.ray.Workers(2, local=False, rows=20, ahead=2)
    kept = ray.put(np.zeros(50_000_000, dtype=np.uint8))  # of 100 MB
    loader = plan.loader(digest=True, remote=workers)
    for _ in loader:
        pass
    del kept
    assert loader.digest == expected.digest
    assert loader.stats().remote.rows == 300


def test_a_driver_that_is_killed_goes_on_with_its_state(cluster, numbers_file, tmp_path, alone):
    program = textwrap.dedent(
        """
        import os, pickle, sys, warnings
        import ray
        import penstock as ps, penstock.ray
        sys.path.insert(0, sys.argv[4])
        from test_ray import plan_of

        ray.init(address=sys.argv[1], log_to_driver=False)
        loader = plan_of(sys.argv[2]).loader(digest=True, remote=penstock.ray.Workers(2, local=False, rows=5))
        for step in loader:
            with open(sys.argv[3] + ".new", "wb") as file:
                pickle.dump(loader.state_dict(), file)
            os.replace(sys.argv[3] + ".new", sys.argv[3])  # whole, whenever this is killed
            print(step.number, flush=True)
            if step.number == 20:
                sys.stdin.readline()  # which never comes
        """
    )
    state = tmp_path / "state"
    driver = subprocess.Popen(
        [sys.executable, "-c", program, cluster.address, str(numbers_file), str(state), os.path.dirname(__file__)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert driver.stdout is not None
    for line in driver.stdout:
        if int(line) == 20:
            driver.kill()
            break
    assert driver.wait() == -signal.SIGKILL
    loader = plan_of(numbers_file).loader(digest=True, remote=penstock.ray.Workers(1, local=False, rows=9))
    with open(state, "rb") as file:
        loader.load_state_dict(pickle.load(file))
    for _ in loader:
        pass
    assert loader.digest == alone[1]


def test_the_example_goes_on_after_a_kill(cluster, images, tmp_path):
    program = Path(__file__).parents[1] / "examples" / "clusters" / "remote_decoding.py"

    def start(state):
        flags = [images, tmp_path / state, "--batch", "8", "--epochs", "30", "--save-every", "5"]
        environment = {**os.environ, "RAY_ADDRESS": cluster.address}
        return subprocess.Popen([sys.executable, program, *flags], stdout=subprocess.PIPE, text=True, env=environment)

    whole, _ = start("whole.json").communicate(timeout=seconds_left())
    killed = start("killed.json")
    wait_until(lambda: (tmp_path / "killed.json").exists() or killed.poll() is not None, "it has saved a state", poll_s=0.005)
    killed.kill()
    killed.wait()
    after, _ = start("killed.json").communicate(timeout=seconds_left())
    assert "samples," in whole
    assert whole.splitlines()[-1] == after.splitlines()[-1] != ""
    assert whole.splitlines()[-1].startswith("digest ")


def test_ray_must_be_started():
    code = "import penstock.ray\ntry:\n  penstock.ray.Workers(1)\nexcept RuntimeError as error:\n  print(error)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=seconds_left())
    assert "call ray.init() first" in result.stdout, result.stderr
