"""Every example runs, where its framework is at hand."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from time_limit import seconds_left

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> str:
    return str(tmp_path_factory.mktemp("examples"))


def run(name: str, *flags: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, EXAMPLES / name, *flags],
        capture_output=True,
        text=True,
        timeout=seconds_left(),
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def needs(module: str):
    return pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=f"{module} is not installed")


def test_numpy_learns_the_classes(cache):
    out = run("numpy_training.py", "--synthetic", "200", "--cache", cache)
    share = re.search(r"(\d+)%; by chance 25%", out)
    assert share and int(share[1]) >= 60, out


@needs("torch")
def test_torch_trains_and_goes_on_from_a_checkpoint(cache, tmp_path):
    flags = ["--synthetic", "64", "--cache", cache, "--checkpoint", str(tmp_path / "c.pt")]
    first = run("torch_training.py", *flags, "--epochs", "1")
    assert "epoch 0: loss" in first and "2 of 2 steps" in first
    second = run("torch_training.py", *flags, "--epochs", "2")
    assert "epoch 0" not in second and "epoch 1: loss" in second and "2 of 2 steps" in second


@needs("jax")
def test_jax_learns_on_four_devices(cache):
    out = run(
        "jax_training.py", "--synthetic", "200", "--cache", cache, "--epochs", "3",
        XLA_FLAGS="--xla_force_host_platform_device_count=4", JAX_PLATFORMS="cpu",
    )  # fmt: skip
    losses = [float(text) for text in re.findall(r"loss (\S+) on 4 device", out)]
    assert len(losses) == 3 and losses[-1] < losses[0], out


def test_a_killed_run_goes_on_with_the_very_bytes(cache, tmp_path):
    flags = ["--synthetic", "60", "--cache", cache]
    whole = run("resume.py", str(tmp_path / "whole.json"), *flags).splitlines()
    assert len(whole) == 12
    seen: dict[str, str] = {}
    for _ in range(40):
        process = subprocess.Popen(
            [sys.executable, EXAMPLES / "resume.py", tmp_path / "killed.json", *flags],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        done = False
        for count, line in enumerate(process.stdout, 1):
            done = "done" in line
            if not done:
                step, checksum = line.rstrip().split(": ")
                assert seen.setdefault(step, checksum) == checksum  # a step may come again, the same
            if count == 3:
                process.kill()  # and read on: it may have printed more until then
        process.stdout.close()
        process.wait()
        if done:
            break
    assert [f"{step}: {checksum}" for step, checksum in seen.items()] == whole


@needs("torch")
@pytest.mark.time_limit(300)
@pytest.mark.parametrize("processes", [2, 3])
def test_gpt_goes_on_with_the_same_losses_in_other_worlds(tmp_path, processes):
    text = str(EXAMPLES.parents[1] / "LICENSE")

    def losses(out: str) -> list[float]:
        return [float(loss) for loss in re.findall(r"loss (\S+)", out)]

    whole = losses(run("gpt_training.py", text, "--steps", "16", "--checkpoint", str(tmp_path / "whole.pt")))
    flags = [text, "--checkpoint", str(tmp_path / "cut.pt"), "--steps"]
    cut = losses(run("gpt_training.py", *flags, "5"))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    result = subprocess.run([*command, EXAMPLES / "gpt_training.py", *flags, "16"], capture_output=True, text=True, timeout=seconds_left())
    assert result.returncode == 0, result.stderr
    cut += losses(result.stdout)
    assert len(whole) == 16 and whole[-1] < 0.75 * whole[0]
    assert cut == pytest.approx(whole, abs=2e-3)


def test_files_for_clusters_are_well_formed():
    clusters = EXAMPLES / "clusters"
    subprocess.run(["bash", "-n", clusters / "slurm.sbatch"], check=True)
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load((clusters / "rayjob.yaml").read_text())
    assert job["kind"] == "RayJob"
    for group in [job["spec"]["rayClusterSpec"]["headGroupSpec"], *job["spec"]["rayClusterSpec"]["workerGroupSpecs"]]:
        spec = group["template"]["spec"]
        names = {volume["name"] for volume in spec["volumes"]}
        for container in spec["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= names
    program = job["spec"]["entrypoint"].split()[1]
    assert (clusters / Path(program).name).exists()
