"""penstock.torch: dicts of tensors, pass by pass, saved and resumed."""

from __future__ import annotations

import socket

import pytest
from conftest import numbers, order_of, run_python

torch = pytest.importorskip("torch", reason="torch is not installed")

import penstock as ps
import penstock.torch as pt


def plan(count: int = 22) -> ps.Dataset:
    return numbers(count).seed(3).shuffle().batch(5)


def rows(batches) -> list[list[int]]:
    return [batch["number"][:, 0].tolist() for batch in batches]


def test_from_dlpack_does_not_copy():
    tensor = next(plan().loader())["number"]
    taken = torch.from_dlpack(tensor)
    assert taken.data_ptr() == tensor.address and taken.dtype == torch.int64
    taken[0] = 7
    assert tensor.numpy()[0].tolist() == [7, 7]


def test_a_tensor_keeps_its_slot():
    loader = plan(100).loader()
    taken = torch.from_dlpack(next(loader)["number"])[1:, :1]
    before = taken.tolist()
    for _ in range(8):
        next(loader)
    assert taken.tolist() == before and loader.stats().held_slots == 1
    del taken
    assert loader.stats().held_slots == 0


def test_each_for_is_one_pass_in_an_order_of_its_own():
    loader = pt.DataLoader(plan(), devices="host:1")
    passes = [rows(loader) for _ in range(3)]
    assert len(loader) == 5 and all(len(one) == 5 for one in passes)
    assert all(sorted(sum(one, [])) == list(range(22)) for one in passes)
    assert passes[0] != passes[1]
    reference = order_of(step for step, _ in zip(plan().repeat().loader(), range(15)))
    assert sum(sum(passes, []), []) == reference


def test_a_loop_that_is_left_is_given_up():
    loader = pt.DataLoader(plan(), devices="host:1")
    reference = pt.DataLoader(plan(), devices="host:1")
    expected = [rows(reference) for _ in range(3)]
    for _ in loader:
        break
    assert rows(loader) == expected[1] and rows(loader) == expected[2]
    first = iter(loader)
    next(first)
    iter(loader)
    with pytest.raises(RuntimeError, match="newer loop"):
        next(first)


def test_state_dicts_go_on_in_the_middle_of_a_pass(tmp_path):
    reference = pt.DataLoader(plan(), devices="host:1")
    expected = [rows(reference) for _ in range(3)]
    for stop in range(1, 6):
        loader = pt.DataLoader(plan(), devices="host:1")
        rows(loader)
        for count, _ in enumerate(loader, 1):
            if count == stop:
                break
        torch.save(loader.state_dict(), tmp_path / "loader.pt")
        other = pt.DataLoader(plan(), devices="host:1", depth=4, threads=1)
        other.load_state_dict(torch.load(tmp_path / "loader.pt"))
        if stop < 5:
            assert rows(other) == expected[1][stop:]
        assert rows(other) == expected[2]


def test_several_devices_are_several_dicts():
    loader = pt.DataLoader(numbers(8).batch(4), devices="host:2")
    assert [[part["number"][:, 0].tolist() for part in step.parts] for step in loader] == [
        [[0, 1], [2, 3]],
        [[4, 5], [6, 7]],
    ]


def test_an_endless_dataset_is_one_endless_pass():
    loader = pt.DataLoader(numbers(4).repeat().batch(3), devices="host:1")
    with pytest.raises(TypeError, match="endless"):
        len(loader)
    assert rows(batch for batch, _ in zip(loader, range(3))) == [[0, 1, 2], [3, 0, 1], [2, 3, 0]]


def test_what_cannot_work_says_so():
    with pytest.raises(ValueError, match="prefetch_to_devices"):
        pt.DataLoader(plan().prefetch_to_devices("host:1"))
    with pytest.raises(ValueError, match="batch"):
        pt.DataLoader(numbers(4))
    with pytest.raises(TypeError):
        pt.DataLoader(plan(), num_workers=4)


def test_an_empty_dataset_has_no_batches():
    assert list(pt.DataLoader(numbers(4).take(0).batch(2), devices="host:1")) == []


def test_rank_and_world_come_from_torch_distributed():
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    run_python(
        f"""
import multiprocessing, sys
import numpy as np

def work(rank, found):
    import torch, penstock as ps, penstock.torch
    torch.distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    plan = ps.memory({{"x": np.arange(16)}}).seed(1).shuffle().batch(4)
    loader = penstock.torch.DataLoader(plan, devices="host:1")
    found.put((rank, [batch["x"].tolist() for batch in loader]))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()

context = multiprocessing.get_context("fork")
found = context.Queue()
both = [context.Process(target=work, args=(rank, found)) for rank in range(2)]
for process in both: process.start()
parts = dict(found.get(timeout=200) for _ in both)
for process in both: process.join()
import penstock as ps
plan = ps.memory({{"x": np.arange(16)}}).seed(1).shuffle().batch(4)
whole = [step["x"].numpy().tolist() for step in plan.prefetch_to_devices("host:1", depth=8).loader()]
assert [a + b for a, b in zip(parts[0], parts[1])] == whole, (parts, whole)
"""
    )
