"""Rows go to the machines that are the homes of their samples, and nothing else changes."""

import json
import os
import subprocess
import sys

import pytest

import penstock as ps

ROWS, BATCH = 120, 20


def plan():
    return ps.synthetic_images(ROWS, seed=3).seed(7).shuffle().map(ps.decode_image(crop=ps.resize_to(8))).batch(BATCH)


def loader_of(rank, machines, **more):
    context = ps.InputContext(num_input_pipelines=len(machines), input_pipeline_id=rank, machines=machines)
    return plan().loader(context=context, digest=True, **{"locality": True, **more})


def numbers_of(steps):
    return [step.sample_array()["number"].tolist() for step in steps]


def total(digests):
    return sum(int(digest, 16) for digest in digests) % 2**128


def test_every_row_comes_once_and_the_batches_stay():
    whole = plan().loader(digest=True)
    expected = []
    for step in whole:
        assert step.row_numbers == step.parts[0].row_numbers == list(range(BATCH))
        expected.append(step.sample_array()["number"].tolist())
    machines = [4, 4, 7, 9]
    rows = [{} for _ in expected]
    digests = []
    for rank in range(len(machines)):
        loader = loader_of(rank, machines)
        for found, step in zip(rows, loader, strict=True):
            numbers = step.row_numbers
            assert numbers == sorted(numbers) and len(numbers) == step.parts[0].size == BATCH // len(machines)
            for row, sample in zip(numbers, step.samples, strict=True):
                assert row not in found
                found[row] = sample.number
        digests.append(loader.digest)
    assert [[found[row] for row in range(BATCH)] for found in rows] == expected
    assert total(digests) == int(whole.digest, 16)


def test_each_sample_comes_to_its_home_in_every_epoch():
    def ranks(seed):
        found = {}
        for rank in range(3):
            context = ps.InputContext(3, rank, machines=[0, 1, 2])
            data = ps.synthetic_images(ROWS, seed=3).shuffle(seed=seed).map(ps.decode_image(crop=ps.resize_to(8))).batch(60)
            for step in data.loader(context=context, locality=True):
                found |= {int(number): rank for number in step.sample_array()["number"]}
        return found

    first, second = ranks(1), ranks(2)
    moved = sum(first[number] != second[number] for number in range(ROWS))
    assert len(first) == len(second) == ROWS
    assert 0 < moved < ROWS / 4  # without it two thirds


def test_a_state_goes_on_with_other_machines():
    whole = [step.sample_array()["number"].tolist() for step in plan().loader()]
    loader = loader_of(0, [0, 1])
    for _ in range(2):
        next(loader)
    state = loader.state_dict()
    for machines in ([0], [5, 1, 1, 2], [3, 0]):
        rows = {}
        for rank in range(len(machines)):
            resumed = loader_of(rank, machines, locality=machines != [3, 0])
            resumed.load_state_dict(state)
            step = next(resumed)
            rows |= dict(zip(step.row_numbers, step.sample_array()["number"].tolist(), strict=True))
        assert [rows[row] for row in range(BATCH)] == whole[2]


def test_what_does_not_fit_is_refused_by_name():
    with pytest.raises(ValueError, match="locality.*the mode one, and here it is per_worker"):
        loader_of(0, [0, 1], mode="per_worker")
    with pytest.raises(ValueError, match="which of the 2 processes are on which machine: give the context with machines"):
        plan().loader(context=ps.InputContext(2, 0), locality=True)
    with pytest.raises(ValueError, match="expected 2 numbers, found 1"):
        plan().loader(context=ps.InputContext(2, 0, machines=[1]))
    with pytest.raises(ValueError, match="split scatter, and here it is round_robin"):
        plan().prefetch_to_devices("host:0", split="round_robin").loader(
            context=ps.InputContext(2, 0, machines=[0, 1]), locality=True
        )


PROGRAM = """
import json, sys
import penstock as ps

plan = ps.synthetic_images(120, seed=3).seed(7).shuffle().map(ps.decode_image(crop=ps.resize_to(8))).batch(20)
launched = ps.InputContext.from_environment()
context = ps.InputContext(launched.num_input_pipelines, launched.input_pipeline_id, machines=[0, 0, 1, 1])
loader = plan.loader(locality=True, digest=True, context=context)
steps = [[step.row_numbers, step.sample_array()["number"].tolist()] for step in loader]
print(json.dumps({"machines": list(launched.machines), "digest": loader.digest, "steps": steps}))
"""


def test_processes_of_a_launcher_share_the_rows():
    running = []
    for rank in range(4):
        launched = {"RANK": rank, "WORLD_SIZE": 4, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 4}
        environment = {**os.environ, **{name: str(value) for name, value in launched.items()}}
        running.append(subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, text=True))
    told = [json.loads(process.communicate(timeout=300)[0]) for process in running]
    assert all(one["machines"] == [0, 0, 0, 0] for one in told)
    whole = plan().loader(digest=True)
    for number, step in enumerate(whole):
        rows = {}
        for one in told:
            rows |= dict(zip(*one["steps"][number], strict=True))
        assert [rows[row] for row in range(BATCH)] == step.sample_array()["number"].tolist()
    assert total(one["digest"] for one in told) == int(whole.digest, 16)
    assert any(one["steps"][0][0] != list(range(5 * rank, 5 * rank + 5)) for rank, one in enumerate(told))


def test_torch_loaders_take_it():
    torch = pytest.importorskip("torch")
    from penstock.torch import DataLoader

    seen = []
    for rank in range(2):
        context = ps.InputContext(2, rank, machines=[0, 1])
        for batch in DataLoader(plan(), devices="host:0", context=context, locality=True):
            assert isinstance(batch["image"], torch.Tensor)
            seen.append(len(batch["image"]))
    assert sum(seen) == ROWS
