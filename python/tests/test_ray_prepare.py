"""penstock.ray.prepare on a cluster of three nodes on this machine."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from test_prepare import contents
from time_limit import seconds_left, wait_until

import penstock as ps

ray = pytest.importorskip("ray")
from ray.cluster_utils import Cluster

import penstock.ray

pytestmark = pytest.mark.time_limit(600)

NODE = {"num_cpus": 1, "object_store_memory": 100_000_000}
COUNT = 200
SHARD = 10
ROOT = Path(__file__).parents[2]
S3_SERVER = ROOT / "tests" / "storage" / "s3_server.py"
MOTO = Path(os.environ.get("PENSTOCK_MOTO_PYTHON") or ROOT / "build" / "moto" / "bin" / "python")


@pytest.fixture(scope="module")
def cluster():
    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    for _ in range(2):
        cluster.add_node(**NODE)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    ps.synthetic_images(COUNT, cache=cache)
    return next(cache.glob("images-*"))


@pytest.fixture(scope="module")
def whole(photos, tmp_path_factory):
    out = tmp_path_factory.mktemp("prepared") / "out"
    return out, ps.prepare(photos, out, shard_samples=SHARD)


def test_three_nodes_make_the_same_bytes(cluster, photos, whole, tmp_path):
    told = []
    report = penstock.ray.prepare(
        photos, tmp_path / "out", shard_samples=SHARD, progress=lambda done, samples: told.append((done, samples))
    )
    assert report == whole[1]
    assert contents(tmp_path / "out") == contents(whole[0])
    assert len(told) == COUNT // SHARD
    assert told[-1] == (COUNT, COUNT)
    # Nothing is missing: nothing is asked for.
    again = penstock.ray.prepare(photos, tmp_path / "out", shard_samples=SHARD, progress=lambda *_: pytest.fail("again"))
    assert again == report


def tasks() -> list[int]:
    found = []
    for pid in os.listdir("/proc"):
        try:
            if pid.isdigit() and b"ray::_make_shard" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(int(pid))
        except OSError:
            pass
    return found


def test_tasks_that_are_killed_are_begun_again(cluster, photos, whole, tmp_path):
    kills = []

    def kill(done, samples):
        running = tasks()
        if running and len(kills) < 6:
            kills.append(random.Random(done).choice(running))
            os.kill(kills[-1], signal.SIGKILL)

    report = penstock.ray.prepare(photos, tmp_path / "out", shard_samples=SHARD, progress=kill)
    assert kills
    assert report == whole[1]
    assert contents(tmp_path / "out") == contents(whole[0])


def test_a_driver_that_was_killed_goes_on(cluster, photos, whole, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "penstock", "prepare", "--ray", cluster.address, photos, out]
    command += ["--shard-samples", str(SHARD), "--quiet"]
    driver = subprocess.Popen(command)
    wait_until(lambda: len(list(out.glob("*.tar"))) >= 3 or driver.poll() is not None, "3 shards are there")
    driver.kill()
    driver.wait()
    assert driver.returncode == -signal.SIGKILL
    run = subprocess.run([*command, "--json", tmp_path / "report.json"], capture_output=True, text=True, timeout=seconds_left())
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "report.json").read_text() == whole[1].to_json()
    assert contents(out) == contents(whole[0])


def test_what_is_wrong_is_said(cluster, photos, tmp_path):
    with pytest.raises(ValueError, match="quality from 1 to 100"):
        penstock.ray.prepare(photos, tmp_path / "out", quality=0)
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "empty.jpg").write_bytes(b"")
    with pytest.raises(ps.DataError, match="empty.jpg") as raised:
        penstock.ray.prepare(bad, tmp_path / "out")
    assert raised.value.fault.file == str(bad / "empty.jpg")


@pytest.mark.skipif(not MOTO.exists(), reason="no S3 server to test with: scripts/moto installs one")
def test_to_a_bucket(cluster, photos, whole, tmp_path, monkeypatch):
    served = tmp_path / "served"
    served.mkdir()
    server = subprocess.Popen(
        [MOTO, S3_SERVER, "--folder", served], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        said = server.stdout.readline().split()
        assert said[:1] == ["port"]
        variables = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{said[1]}",
            "AWS_ACCESS_KEY_ID": said[2],
            "AWS_SECRET_ACCESS_KEY": said[3],
            "no_proxy": "127.0.0.1",
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        report = penstock.ray.prepare(
            photos, "s3://photos/out", shard_samples=SHARD, options={"runtime_env": {"env_vars": variables}}
        )
        assert report == whole[1]
        index = ps.MemoryJpegIndex()
        assert index.load("s3://photos/out") == COUNT
        plan = ps.Preparation(photos, "s3://photos/out", shard_samples=SHARD)
        assert all(plan.differences(shard.number) == [] for shard in plan.shards)
    finally:
        server.kill()


def test_what_is_left_out_of_the_input_is_said(cluster, photos, tmp_path):
    some = tmp_path / "some"
    some.mkdir()
    (some / "1.jpg").write_bytes(next(photos.rglob("*.jpg")).read_bytes())
    (some / "2.picture").write_bytes(next(photos.rglob("*.jpg")).read_bytes())
    with pytest.warns(UserWarning, match="left out 1 .picture; of 1 file that were looked into, 1 is an image") as told:
        penstock.ray.prepare(some, tmp_path / "out")
    assert [one.filename for one in told if "left out" in str(one.message)] == [__file__]
    command = [sys.executable, "-m", "penstock", "prepare", "--ray", cluster.address, some, tmp_path / "by-program"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=seconds_left())
    assert run.returncode == 0 and f"penstock-prepare: warning: {some}: left out 1 .picture" in run.stderr, run.stderr
