"""Tensors: nothing is copied, and a batch's memory is its own for as long as anything refers to it."""

from __future__ import annotations

import ctypes
import gc
import random
import re
import threading

import numpy as np
import pytest
from conftest import numbers, run_python

import penstock as ps


def one(batch: int = 4, depth: int = 2) -> ps.Tensor:
    return next(numbers(64).batch(batch).prefetch_to_devices("host:1", depth=depth).loader())["number"]


def test_a_tensor_says_what_it_is():
    tensor = one()
    assert (tensor.shape, tensor.dtype, tensor.ndim, tensor.nbytes, len(tensor)) == ((4, 2), "i64", 2, 64, 4)
    assert str(tensor.device) == "host:0" and tensor.address % 256 == 0
    assert repr(tensor) == "<penstock.Tensor i64 [4,2] on host:0>"


def test_numpy_gets_the_memory_itself():
    tensor = one()
    for array in (np.asarray(tensor), tensor.numpy(), np.array(tensor, copy=False), np.from_dlpack(tensor)):
        assert array.ctypes.data == tensor.address
        assert array.dtype == np.int64 and array.tolist() == [[0, 0], [1, 1], [2, 4], [3, 9]]
    assert np.array(tensor, copy=True).ctypes.data != tensor.address
    assert np.asarray(tensor, dtype=np.float32).dtype == np.float32


def test_what_is_written_is_seen_by_all():
    tensor = one()
    np.asarray(tensor)[0] = -1
    assert tensor.numpy()[0].tolist() == [-1, -1]


def test_the_array_interface_is_the_hosts():
    tensor = one()
    interface = tensor.__array_interface__
    assert interface["shape"] == (4, 2) and interface["typestr"] == "<i8" and interface["version"] == 3
    with pytest.raises(AttributeError, match="host"):
        tensor.__cuda_array_interface__
    assert not hasattr(tensor, "__cuda_array_interface__")


DTYPES = ["?", "u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_comes_through(dtype):
    values = np.arange(6).astype(dtype).reshape(2, 3)
    tensor = next(ps.memory({"x": values}).batch(2).loader())["x"]
    for array in (np.asarray(tensor), np.from_dlpack(tensor)):
        assert array.dtype == values.dtype and (array == values).all()


def test_other_endian_is_turned():
    step = next(ps.memory({"e": np.array([1, 2], ">i4")}).batch(2).loader())
    assert step["e"].numpy().tolist() == [1, 2]


def test_truth_values_select_and_are_inverted():
    step = next(ps.memory({"x": np.arange(3), "b": np.array([True, False, True])}).batch(3).loader())
    bools = step["b"].numpy()
    assert str(step["b"].dtype) == "bool" and bools.dtype == np.bool_
    assert step["x"].numpy()[bools].tolist() == [0, 2] and (~bools).tolist() == [False, True, False]
    padded = list(ps.memory({"x": np.arange(3)}).batch(2, remainder="pad").loader())[1]
    assert padded["x"].numpy()[padded["valid"].numpy()].tolist() == [2]
    copied = np.zeros(3, bool)
    step.parts[0].copy_to("b", copied)
    assert copied.tolist() == [True, False, True]


@pytest.mark.parametrize("dtype", ["c8", "M8[D]", "U3", "S3", "O", "g"])
def test_a_dtype_that_there_is_not_is_refused_by_its_name(dtype):
    values = np.zeros((2, 3), dtype)
    for make in (lambda: ps.memory({"x": values}), lambda: ps.Dataset([{"x": values}])):
        with pytest.raises(ValueError, match=rf"'x'.*a dtype must be one of u8, .*, bool, .*found '{re.escape(values.dtype.name)}'"):
            make()


def test_memory_is_never_copied_and_is_kept_alive():
    values = np.arange(20).reshape(4, 5)
    apart = values[:, 1:4]
    dataset = ps.memory({"windows": np.lib.stride_tricks.sliding_window_view(np.arange(7), 4), "rows": apart})
    changed = values
    changed[2, 1] = 100  # before it is read
    del values, apart
    gc.collect()
    step = next(dataset.batch(4).loader())
    assert step["windows"].numpy().tolist() == [[n, n + 1, n + 2, n + 3] for n in range(4)]
    assert step["rows"].numpy().tolist() == [[1, 2, 3], [6, 7, 8], [100, 12, 13], [16, 17, 18]]
    for not_dense in (np.zeros((4, 5)).T, np.zeros((4, 5))[::-1], np.zeros((4, 6))[:, ::2], np.zeros((2, 3, 4)).transpose(0, 2, 1)):
        with pytest.raises(ValueError, match=r"field 'x': its rows do not lie dense.*np.ascontiguousarray\(\.\.\.\)"):
            ps.memory({"x": not_dense})
        assert len(ps.memory({"x": np.ascontiguousarray(not_dense)})) == len(not_dense)


def test_windows_over_a_mapped_file_cost_no_memory(tmp_path):
    tokens = np.memmap(tmp_path / "tokens", np.uint16, "w+", shape=(2_000_000,))
    tokens[:] = np.arange(2_000_000) % 50_000
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    dataset = ps.memory({"x": np.lib.stride_tricks.sliding_window_view(tokens, 1025)})
    assert len(dataset) == 2_000_000 - 1024
    step = next(dataset.select([1_999_000 - 1024, 3]).batch(2).loader())
    assert (step["x"].numpy()[1] == np.arange(3, 1028)).all()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB; a copy of the windows takes 4 GB


def test_what_has_no_rows_is_no_column():
    with pytest.raises(ValueError, match="found a string or bytes"):
        ps.memory({"x": "text"})
    with pytest.raises(ValueError, match="found a single number"):
        ps.memory({"x": 3})


class Capsule:
    """A DLPack capsule, read as C would."""

    def __init__(self, capsule):
        api = ctypes.pythonapi
        api.PyCapsule_GetName.restype = ctypes.c_char_p
        api.PyCapsule_GetName.argtypes = [ctypes.py_object]
        api.PyCapsule_GetPointer.restype = ctypes.c_void_p
        api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        self.name = api.PyCapsule_GetName(capsule)
        self.pointer = api.PyCapsule_GetPointer(capsule, self.name)

    def words(self, count: int) -> list[int]:
        return list((ctypes.c_uint64 * count).from_address(self.pointer))


def test_dlpack_is_versioned_for_those_who_know_versions():
    tensor = one()
    assert tensor.__dlpack_device__() == (1, 0)
    old = Capsule(capsule := tensor.__dlpack__())
    assert old.name == b"dltensor" and old.words(1) == [tensor.address]
    new = Capsule(versioned := tensor.__dlpack__(max_version=(1, 3)))
    assert new.name == b"dltensor_versioned"
    assert new.words(5)[0] == 1 and new.words(5)[3] == 0 and new.words(5)[4] == tensor.address
    assert Capsule(tensor.__dlpack__(max_version=(0, 8))).name == b"dltensor"
    del capsule, versioned


def test_dlpack_copies_when_asked_and_only_then():
    tensor = one()
    copied = Capsule(capsule := tensor.__dlpack__(copy=True, max_version=(1, 0)))
    assert copied.words(5)[3] == 2 and copied.words(5)[4] != tensor.address
    del capsule
    assert np.from_dlpack(tensor, copy=True).ctypes.data != tensor.address
    assert np.from_dlpack(tensor, copy=False).ctypes.data == tensor.address


def test_dlpack_refuses_what_it_cannot_do():
    tensor = one()
    with pytest.raises(BufferError, match="host:0"):
        tensor.__dlpack__(dl_device=(2, 0))
    assert tensor.__dlpack__(dl_device=(1, 0), stream=-1) is not None
    with pytest.raises(ValueError, match="stream"):
        tensor.__dlpack__(stream=7)


def test_bf16_has_no_array_interface_but_dlpack():
    dataset = numbers(4).map(lambda number: number, outputs={"number": ("i64", (2,))}, name="same").batch(4)
    del dataset
    source = ps.memory({"x": np.arange(4, dtype=np.uint16)})
    del source
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.arange(4).astype(ml_dtypes.bfloat16)
    tensor = next(ps.memory({"x": values}).batch(4).loader())["x"]
    assert tensor.dtype == "bf16" and not hasattr(tensor, "__array_interface__")
    assert (np.asarray(tensor) == values).all()
    with pytest.raises(ValueError, match="copy"):
        np.array(tensor, copy=False)


@pytest.mark.parametrize("export", [np.asarray, np.from_dlpack, lambda t: t, lambda t: t.__dlpack__()])
def test_a_slot_is_leased_while_anything_made_from_it_lives(export):
    loader = numbers(100).batch(2).prefetch_to_devices("host:1", depth=2).loader()
    held = export(next(loader)["number"])
    assert loader.stats().held_slots == 1
    part = next(loader).parts[0]
    assert loader.stats().held_slots == 2
    del part
    assert loader.stats().held_slots == 1
    for _ in range(10):
        next(loader)
    if isinstance(held, np.ndarray):
        assert held.tolist() == [[0, 0], [1, 1]]
    del held
    assert loader.stats().held_slots == 0


def test_tensors_outlive_their_loader():
    loader = numbers(8).batch(4).loader()
    array = np.asarray(next(loader)["number"])
    loader.stop()
    del loader
    gc.collect()
    assert array[3].tolist() == [3, 9]


def test_parts_without_rows_are_empty_arrays():
    steps = list(numbers(5).batch(4).prefetch_to_devices("host:4", depth=3).loader())
    last = [np.asarray(part["number"]) for part in steps[-1].parts]
    assert [array.shape for array in last] == [(1, 2), (0, 2), (0, 2), (0, 2)]
    assert np.from_dlpack(steps[-1].parts[3]["number"]).shape == (0, 2)


@pytest.mark.parametrize("seed", [1, 2])
def test_ten_thousand_batches_with_random_lifetimes(seed):
    """No leak, no slot reused too soon: the bytes of everything held are checked before it is dropped."""
    chance = random.Random(seed)
    depth = 12
    dataset = numbers(40_000).seed(seed).shuffle().batch(4).prefetch_to_devices("host:1", depth=depth)
    loader = dataset.loader(threads=2)
    held: list[tuple[list[int], np.ndarray]] = []

    def check(entry):
        wanted, array = entry
        assert array[:, 0].tolist() == wanted and (array[:, 0] ** 2 == array[:, 1]).all()

    steps = 0
    for step in loader:
        export = chance.choice([np.asarray, np.from_dlpack, lambda t: t.numpy()[::-1][::-1]])
        held.append(([sample.number for sample in step.samples], export(step["number"])))
        steps += 1
        while len(held) > chance.randrange(depth):
            check(held.pop(chance.randrange(len(held))))
    del step
    assert steps == 10_000
    for entry in held:
        check(entry)
    held.clear()
    del entry
    assert loader.stats().held_slots == 0


def test_tensors_may_be_dropped_by_any_thread():
    loader = numbers(4000).batch(2).prefetch_to_devices("host:1", depth=6).loader()
    queue: list = []
    done = threading.Event()

    def drop():
        while not done.is_set() or queue:
            if queue:
                queue.pop()

    thread = threading.Thread(target=drop)
    thread.start()
    for step in loader:
        while len(queue) > 3:
            pass
        queue.append(np.from_dlpack(step["number"]))
    done.set()
    thread.join()
    del step
    assert loader.stats().held_slots == 0


def test_nothing_is_leaked():
    run_python(
        """
import numpy as np, penstock as ps
values = np.arange(4000).reshape(2000, 2)
for devices in ("host:1", "host:2"):
    loader = ps.memory({"x": values}).batch(2).prefetch_to_devices(devices).loader()
    for step in loader:
        for part in step.parts:
            arrays = [np.asarray(part["x"]), np.from_dlpack(part["x"]), part["x"].__dlpack__()]
    state = loader.state_dict()
"""
    )


def test_copy_to_fills_the_callers_own_memory():
    batch = next(numbers(64).batch(4).loader()).parts[0]
    wanted = np.asarray(batch["number"]).copy()
    room = np.full((5, 2), -1, np.int64)
    batch.copy_to("number", room)
    assert (room[:4] == wanted).all() and (room[4] == -1).all()
    for destination, word in [
        (np.zeros((3, 2), np.int64), "64"),
        (np.zeros((4, 2), np.int32), "i64"),
        (np.zeros((2, 8), np.int64)[:, ::2], "not contiguous"),
        (b"bytes", "writ"),
    ]:
        with pytest.raises(ValueError, match=word):
            batch.copy_to("number", destination)
    with pytest.raises(KeyError, match="number"):
        batch.copy_to("image", room)
