"""The running iterator: SEMANTICS' states, faults and devices, as Python sees them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import threading
import time
from collections.abc import Mapping

import numpy as np
import pytest
from conftest import bytes_of, numbers, order_of
from time_limit import seconds_left

import penstock as ps


def plan(count: int = 100, batch: int = 8) -> ps.Dataset:
    return numbers(count).seed(7).shuffle().batch(batch)


def test_steps_say_where_they_stand():
    loader = numbers(10).batch(4).repeat(2).prefetch_to_devices("host:2").loader()
    seen = [(step.number, step.epoch, step.global_samples, [part.size for part in step.parts]) for step in loader]
    assert seen == [
        (0, 0, 4, [2, 2]), (1, 0, 4, [2, 2]), (2, 0, 2, [1, 1]),
        (3, 1, 4, [2, 2]), (4, 1, 4, [2, 2]), (5, 1, 2, [1, 1]),
    ]  # fmt: skip
    assert len(loader) == loader.size == 6


def test_a_step_has_a_part_for_each_device_and_a_part_is_a_mapping_of_fields():
    step = next(numbers(4).batch(4).prefetch_to_devices("host:2").loader())
    assert len(step.parts) == 2 and [part.replica for part in step.parts] == [0, 1]
    assert str(step.parts[-1].device) == "host:1"
    for ask in (lambda: step["number"], step.values, step.items, lambda: step.get("number")):
        with pytest.raises(ValueError, match=r"2: choose a part, step.parts\[0\]"):
            ask()
    assert step.keys() == ["number"] and "number" in step  # which are those of every part
    part = step.parts[0]
    assert isinstance(part, Mapping)
    assert list(part) == part.keys() == ["number"] and "number" in part and "label" not in part
    assert {name: tensor.shape for name, tensor in part.items()} == {"number": (2, 2)}
    assert [tensor.shape for tensor in part.values()] == [(2, 2)]
    assert list(dict(part)) == ["number"]
    with pytest.raises(KeyError, match="number i64"):
        part["label"]
    assert "2 rows on host:0" in repr(part) and part.nbytes == 32


def test_with_one_device_a_step_is_a_mapping_of_fields():
    step = next(numbers(4).batch(4).loader())
    assert np.asarray(step["number"]).tolist() == [[0, 0], [1, 1], [2, 4], [3, 9]]
    assert isinstance(step, Mapping) and isinstance(dict(step)["number"], ps.Tensor)
    assert list(step) == step.keys() == ["number"] and len(step) == 1
    assert "number" in step and "label" not in step and 0 not in step
    assert step.get("label") is None and step.get("label", 7) == 7 and step.get("number").shape == (4, 2)
    assert [(name, tensor.shape) for name, tensor in step.items()] == [("number", (4, 2))]
    with pytest.raises(KeyError, match="number i64"):
        step["label"]
    with pytest.raises(TypeError, match=r"step.parts\[i\]; found 0"):
        step[0]


def test_what_is_copied_does_not_hold_a_batch():
    kept = [step["number"].copy() for step in numbers(40).batch(2).loader()]
    assert [array[0, 0] for array in kept] == list(range(0, 40, 2)) and kept[0].flags.owndata
    with pytest.raises(ps.Error, match=r"copy what you keep of a batch \(in Python step\['label'\].copy\(\)"):
        _ = [step["number"] for step in numbers(40).batch(2).loader()]


def test_loaders_and_stats_say_what_they_are():
    loader = numbers(10).batch(2).prefetch_to_devices("host:2").loader()
    assert repr(loader) == "<penstock.Loader, 0 steps delivered in this run, 5 in all, on host:0 host:1, number i64 [2]>"
    next(loader)
    assert "1 steps delivered" in repr(loader) and "1 steps, 2 samples" in repr(loader.stats())
    assert repr(next(loader)).startswith("<penstock.Step 1, epoch 0, 1 rows on host:0, 1 rows on host:1, number i64 [2]")
    assert "endless" in repr(numbers(10).repeat().batch(2).loader())
    for shown in (loader, loader.stats(), next(loader), numbers(4).batch(2).loader().batch_at(1).parts[0]):
        assert shown._repr_html_().count("<table>") == shown._repr_html_().count("</table>") == 1
    progress = loader.progress()
    assert list(progress) == ["samples_per_s", "stall", "bottleneck"] and progress["samples_per_s"] > 0


def test_progress_is_that_of_the_last_seconds():
    loader = numbers(100_000).batch(1).loader()
    for _ in range(50):
        next(loader)
        time.sleep(0.01)
    slow = loader.progress(window=0.2)["samples_per_s"]
    for _ in range(5):
        for _ in range(200):
            next(loader)
        time.sleep(0.2)
        fast = loader.progress(window=0.2)["samples_per_s"]
    stats = loader.stats()
    assert slow < 100 and fast > 3 * slow and fast > 1.3 * stats.samples / stats.seconds
    for window in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="window is a time above 0 seconds"):
            loader.progress(window=window)
    loader.stop()
    assert loader.progress(window=1e-9) and all(value == value for value in loader.progress(window=1e-9).values())
    loader.rewind()
    next(loader)
    assert loader.progress(window=0.2)["samples_per_s"] > 0


def test_what_others_do_with_a_data_set_says_what_to_do_here():
    for wrong in (lambda: list(numbers(4)), lambda: [step for step in numbers(4)]):
        with pytest.raises(TypeError, match=r"a Dataset is a plan: for step in dataset.batch\(8\).loader\(\)"):
            wrong()
    with pytest.raises(TypeError, match=r"dataset.select\(\[7\]\) chooses samples"):
        numbers(4)[0]
    dataset = numbers(9)
    assert len(dataset.select([7])) == 1 and next(dataset.batch(8).loader())["number"].shape == (8, 2)
    assert sum(1 for _ in dataset.batch(8).loader()) == 2


def test_steps_come_to_asyncio_while_others_run():
    asked: queue.SimpleQueue[threading.Event] = queue.SimpleQueue()

    def allowed(number):
        """Each number waits until the other task says that it may go on."""
        go_on = threading.Event()
        asked.put(go_on)
        assert go_on.wait(seconds_left())
        return number

    async def run() -> tuple[list[int], int]:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0.001)
                with contextlib.suppress(queue.Empty):
                    asked.get_nowait().set()
                    turns += 1

        loader = numbers(12).map(allowed, outputs={"number": ("i64", (2,))}).batch(4).loader(threads=1)
        # A task that is cancelled while it waits loses nothing.
        for _ in range(3):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(loader.__aiter__().__anext__(), 0.001)
        beside = asyncio.create_task(other())
        seen = []
        async for step in loader:
            seen += order_of([step])
        beside.cancel()
        return seen, turns

    assert asyncio.run(run()) == (list(range(12)), 12)


def test_a_second_loop_over_an_ended_loader_is_an_error():
    loader = numbers(4).batch(2).loader()
    assert order_of(loader) == [0, 1, 2, 3]
    assert next(loader, None) is None
    with pytest.raises(RuntimeError, match="repeat"):
        iter(loader)
    with pytest.raises(RuntimeError, match="repeat"):
        loader.epochs()
    with numbers(4).batch(2).loader() as left:
        next(left)
    with pytest.raises(RuntimeError, match=r"or stop\(\) was called, as `with` does"):
        iter(left)


def test_rewind_begins_anew_with_the_very_bytes():
    loader = plan().loader(digest=True)
    first, digest = [bytes_of(step) for step in loader], loader.digest
    assert loader.has_ended()
    loader.rewind()
    assert not loader.has_ended() and loader.digest == "0" * 32 and loader.state_dict()["samples"] == 0
    next(loader)
    loader.rewind()
    assert [bytes_of(step) for step in loader] == first and loader.digest == digest


def test_a_wait_with_a_limit_says_whether_the_step_is_there():
    records = ps.Queue({"x": ("f32", ())})
    loader = ps.Dataset(records).batch(2).loader()
    device = loader.device(0)
    records.push([1])
    began = time.monotonic()
    assert not loader.wait_for(0.2) and time.monotonic() - began >= 0.2
    assert not loader.wait_for(0) and not device.wait_for(0.01) and loader.state_dict()["step"] == 0
    records.push([2])
    assert loader.wait_for() and device.wait_for(60)
    assert next(loader)["x"].numpy().tolist() == [1, 2]
    records.close()
    assert loader.wait_for(60) and next(loader, None) is None and loader.wait_for(0)
    with pytest.raises(ps.Error, match="stream"):
        loader.rewind()


def test_a_loop_goes_on_where_another_was_left():
    loader = plan().loader()
    first = order_of([next(iter(loader)) for _ in range(3)])
    assert first + order_of(loader) == order_of(plan().loader())


def test_epochs_come_one_by_one_and_skip_what_is_left():
    loader = numbers(10).batch(4).repeat(3).loader()
    seen = []
    for epoch in loader.epochs():
        for step in epoch:
            seen.append((epoch.number, step.number))
            if epoch.number == 1:
                break
    assert seen == [(0, 0), (0, 1), (0, 2), (1, 3), (2, 6), (2, 7), (2, 8)]


def test_an_epoch_is_known_before_its_step_is_filled():
    opened = threading.Event()

    def function(number):
        assert opened.wait(60)
        return number

    plan = numbers(4).map(function, outputs={"number": ("i64", (2,))}).batch(4).repeat(2)
    loader = plan.loader(threads=1)
    assert loader.next_epoch() == 0
    assert not loader.wait_for(0)
    opened.set()
    assert next(loader).epoch == 0
    assert loader.next_epoch() == 1


def test_a_saved_state_goes_on_with_the_very_bytes():
    whole = [bytes_of(step) for step in plan().loader()]
    for stop in range(len(whole)):
        loader = plan().loader(threads=1)
        for _ in range(stop):
            next(loader)
        text = json.dumps(loader.state_dict())
        assert len(text) < 2000
        other = plan().prefetch_to_devices("host:1", depth=4).loader(threads=2)
        other.load_state_dict(json.loads(text) if stop % 2 else text)
        assert [bytes_of(step) for step in other] == whole[stop:]


def test_states_restore_into_other_numbers_of_devices():
    loader = plan().prefetch_to_devices("host:4").loader()
    head = order_of(next(loader) for _ in range(3))
    other = plan().prefetch_to_devices("host:2").loader()
    other.load_state_dict(loader.state_dict())
    assert head + order_of(other) == order_of(plan().loader())


def test_foreign_states_are_refused_and_change_nothing():
    state = plan(50).loader().state_dict()
    loader = plan(100).loader()
    with pytest.raises(ps.Error, match="another dataset"):
        loader.load_state_dict(state)
    with pytest.raises(ps.Error, match="not a saved state"):
        loader.load_state_dict({"step": 3})
    assert order_of(loader) == order_of(plan(100).loader())


def test_batch_at_rebuilds_any_step_and_moves_nothing():
    loader = plan().loader()
    steps = [bytes_of(step) for step in plan().loader()]
    assert bytes_of(loader.batch_at(7)) == steps[7]
    assert [bytes_of(step) for step in loader] == steps
    with pytest.raises(IndexError):
        loader.batch_at(1000)


def test_weights_of_a_mix_change_at_a_step():
    mixed = ps.mix([numbers(1000), numbers(1000)], weights=[1, 1], seed=1).batch(64)
    loader = mixed.loader()
    next(loader)
    loader.set_weights(2, [1, 0])
    sources = [{sample.source for sample in step.samples} for step, _ in zip(loader, range(2))]
    assert sources == [{0, 1}, {0}]
    with pytest.raises(ValueError, match="delivered"):
        loader.set_weights(1, [1, 1])
    with pytest.raises(RuntimeError, match="mix"):
        plan().loader().set_weights(0, [1])


def test_stop_ends_the_data_and_a_state_begins_anew():
    loader = plan().loader()
    next(loader)
    state = loader.state_dict()
    loader.stop()
    assert next(loader, None) is None
    loader.load_state_dict(state)
    assert next(loader).number == 1
    with plan().loader() as other:
        next(other)
    assert next(other, None) is None


def test_stats_name_every_stall_and_add_up():
    loader = plan().loader(threads=1)
    loader.start()
    for _ in loader:
        pass
    stats = loader.stats()
    assert (stats.samples, stats.steps, stats.threads, stats.faults) == (100, 13, 1, 0)
    assert list(stats.stages) == ["order", "slot", "read", "decode", "remote", "copy", "device_transform"]
    waited = sum(stage.wait_s for stage in stats.stages.values())
    assert stats.consume_s + waited == pytest.approx(stats.seconds, rel=0.01, abs=1e-4)
    assert stats.bottleneck in {*stats.stages, "consumer"}
    assert loader.samples_per_device() == [100]
    assert stats.memory_peak_bytes > 0 and stats.slots == 3 and stats.waiting_for is None


def test_the_digest_is_the_same_for_any_threads_and_devices():
    def digest(devices, threads):
        loader = plan().prefetch_to_devices(devices).loader(digest=True, threads=threads)
        steps = [int(step.digest, 16) for step in loader]
        assert f"{sum(steps) % 2**128:032x}" == loader.digest
        return loader.digest

    assert digest("host:1", 1) == digest("host:2", 2) == digest("host:4", 3) != "0" * 32


@pytest.mark.parametrize("policy", ["raise", "replace", "mask"])
def test_faults_follow_the_policy(tmp_path, policy):
    for i in range(8):
        (tmp_path / f"{i}.jpg").write_bytes(b"\xff\xd8\xff no image")
    dataset = ps.image_folder(tmp_path).map(ps.decode_image(crop=ps.center_crop(8))).batch(4)
    loader = dataset.loader(on_fault=policy)
    if policy == "mask":
        steps = list(loader)
        assert np.asarray(steps[0]["valid"]).tolist() == [0, 0, 0, 0]
        assert [fault.sample.number for fault in loader.faults()] == list(range(8))
        assert steps[1].faults[0].step == 1 and steps[1].faults[0].row == 0
        return
    with pytest.raises(ps.DataError, match=r"0\.jpg") as first:
        next(loader)
    assert first.value.fault.sample.number == 0 and first.value.fault.file.endswith("0.jpg")
    assert first.value.fault.cause is None and "0.jpg" in str(first.value.fault)
    with pytest.raises(ps.DataError):
        next(loader)
    assert isinstance(first.value, ps.Error)


def test_errors_and_faults_name_files_whose_names_are_not_utf8(tmp_path):
    folder = os.fsencode(tmp_path) + b"/class\xff"
    os.mkdir(folder)
    with open(folder + b"/bad\xfe.jpg", "wb") as file:
        file.write(b"\xff\xd8\xff\xe0 no photograph")
    dataset = ps.image_folder(tmp_path).map(ps.decode_image(crop=ps.resize_to(8))).batch(1)
    with pytest.raises(ps.DataError, match=r"class\\xff/bad\\xfe\.jpg") as error:
        next(iter(dataset.loader()))
    fault = error.value.fault
    assert os.fsencode(fault.file) == folder + b"/bad\xfe.jpg"
    assert r"bad\xfe.jpg" in str(fault) and r"bad\\xfe.jpg" in repr(fault)
    with pytest.raises(ps.Error, match=r"nothing\\xff"):
        ps.image_folder(os.fsdecode(os.fsencode(tmp_path) + b"/nothing\xff"))


def test_too_many_faults_raise_all_the_same(tmp_path):
    for i in range(8):
        (tmp_path / f"{i}.jpg").write_bytes(b"nothing")
    dataset = ps.image_folder(tmp_path).map(ps.decode_image(crop=ps.center_crop(8))).batch(2)
    loader = dataset.loader(on_fault="mask", max_faults=3)
    next(loader)
    with pytest.raises(ps.DataError, match="3 are tolerated"):
        next(loader)


def test_batches_that_fill_the_ring_raise_instead_of_waiting_for_ever():
    loader = numbers(100).batch(2).prefetch_to_devices("host:1", depth=2).loader()
    held = [next(loader) for _ in range(3)]
    with pytest.raises(ps.Error, match="depth"):
        next(loader)
    held.clear()
    assert next(loader).number == 3


def test_every_device_can_have_a_thread_of_its_own():
    dataset = plan(103, 16).prefetch_to_devices("host:4")
    expected = [[[s.number for s in step.parts[part].samples] for step in dataset.loader()] for part in range(4)]
    loader = dataset.loader()
    found: list[list[list[int]]] = [[] for _ in range(4)]

    def consume(part: int) -> None:
        device = loader.device(part)
        assert str(device.device) == f"host:{part}" and device.part == part
        for batch in device:
            found[part].append([sample.number for sample in batch.samples])

    threads = [threading.Thread(target=consume, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected
    with pytest.raises(IndexError, match="4 devices"):
        loader.device(4)


def test_a_device_loader_outlives_the_name_of_its_loader():
    device = plan().loader().device(0)
    assert sum(1 for batch in device) == 13


def test_threads_that_share_a_loader_take_turns():
    loader = numbers(2000).batch(2).prefetch_to_devices("host:1", depth=8).loader()
    found: list[list[int]] = [[] for _ in range(4)]

    def consume(mine: list[int]) -> None:
        for step in loader:
            mine.append(step.number)
            del step

    threads = [threading.Thread(target=consume, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sum(found, [])) == list(range(1000))
    assert all(mine == sorted(mine) for mine in found)


def test_loaders_can_share_cores_and_bytes():
    budget = ps.ThreadBudget(2)
    assert budget.threads == 2
    loaders = [plan().loader(thread_budget=budget, budget_bytes=64 << 20) for _ in range(2)]
    assert order_of(loaders[0]) == order_of(loaders[1])
    with pytest.raises(ps.Error, match="budget"):
        plan().loader(budget_bytes=1000)
    with pytest.raises(ValueError, match="1 thread"):
        ps.ThreadBudget(0)


def test_a_given_context_takes_its_slice():
    parts = [plan().loader(context=ps.InputContext(2, i)) for i in range(2)]
    both = [order_of([a]) + order_of([b]) for a, b in zip(*parts)]
    assert both == [order_of([step]) for step in plan().loader()]


@pytest.mark.skipif(ps.gpu_count() > 0, reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_a_cuda_error():
    with pytest.raises(ps.CudaError, match="cuda:0") as error:
        numbers(4).batch(2).prefetch_to_devices("cuda:0").loader()
    assert isinstance(error.value.code, int)


def test_other_maps_go_on_from_a_state() -> None:
    """Progressive resizing in the middle of an epoch."""

    def plan(side: int) -> ps.Dataset:
        images = ps.memory({"image": np.arange(20 * 9 * 9 * 3, dtype=np.uint8).reshape(20, 9, 9, 3), "n": np.arange(20)})
        return images.seed(3).shuffle().map(ps.crop_image(crop=ps.random_resized_crop(side))).batch(4)

    small, large, whole = plan(4).loader(), plan(8).loader(), plan(8).loader()
    next(small), next(small)
    next(whole), next(whole)
    with pytest.raises(ps.Error, match="other_maps"):
        large.load_state_dict(small.state_dict())
    large.load_state_dict(small.state_dict(), other_maps=True)
    rest = [(step["n"].numpy().tolist(), step["image"].numpy().tobytes()) for step in large]
    assert rest == [(step["n"].numpy().tolist(), step["image"].numpy().tobytes()) for step in whole]
    assert len(rest) == 3
