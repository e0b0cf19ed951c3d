"""What the rows of a batch are called, where their records are stored, and which samples they are."""

from __future__ import annotations

import gc
import os
import pickle
import time
import weakref
from pathlib import Path

import numpy as np
import penstock as ps
import pytest


def folder_of(root: Path, names: list[bytes]) -> ps.Dataset:
    for number, name in enumerate(names):
        path = os.path.join(os.fsencode(root), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"image %d" % number)
    return ps.image_folder(root).map(ps.pad("image", 16))


def test_names_of_files_also_where_they_are_not_utf8(tmp_path: Path) -> None:
    names = [b"cats/1.jpg", b"cats/2\xff.jpg", "dogs/é.jpg".encode()]
    plan = folder_of(tmp_path, names).seed(1).shuffle().batch(3)
    step = next(plan.loader())
    batch = step.parts[0]
    found = batch.names()
    assert [name.key for name in found] == [os.fsdecode(names[sample.number]) for sample in batch.samples]
    for row, name in enumerate(found):
        assert open(name.file, "rb").read() == batch["image"].numpy()[row][:7].tobytes()
        assert name.file == os.path.join(tmp_path, name.key) and name.offset == 0
        assert name == plan.name(batch.samples[row]) and not name.pieces and name.length is None
        text = f"{name.key} in {name.file} at byte 0"
        assert str(name) == os.fsencode(text).decode("utf-8", "backslashreplace")  # which can be printed
    assert step.names() == found and found[0] != found[1]
    repr(found)


def test_samples_as_one_array() -> None:
    x = ps.memory({"x": np.arange(40)})
    y = ps.memory({"x": np.arange(10)})
    plan = ps.mix([x.repeat_each(2).repeat(), y.repeat()], weights=[3, 1], seed=7).batch(50, uneven=True)
    loader = plan.prefetch_to_devices("host:3").loader()
    for _ in range(4):
        step = next(loader)
        for owner in (step, *step.parts):
            samples = owner.sample_array()
            assert samples.dtype.names == ("number", "epoch", "source", "draw") and samples.itemsize == 24
            assert [tuple(row) for row in samples.tolist()] == [
                (sample.number, sample.epoch, sample.source, sample.draw) for sample in owner.samples
            ]
            assert len(owner.names()) == len(samples)
        rows = np.concatenate([part.sample_array()["number"] for part in step.parts])
        assert (rows == np.concatenate([part["x"].numpy() for part in step.parts])).all()
        samples = step.sample_array()
        assert set(samples["source"]) == {0, 1} and samples["draw"].any()
        samples["number"] = 0  # a copy
        assert step.sample_array()["number"].any()


class Points:
    """Items whose number ends in `bad` are bad."""

    def __init__(self, bad: int = -1) -> None:
        self.bad = bad

    def __len__(self) -> int:
        return 60

    def __getitem__(self, number: int) -> dict[str, int]:
        if number % 10 == self.bad:
            raise ValueError("bad")
        return {"x": number}


def test_names_of_python_data_sets_and_of_replaced_rows() -> None:
    plan = ps.Dataset(Points(7)).seed(3).shuffle().batch(12, uneven=True).prefetch_to_devices("host:2")
    originals = [step.names() for step in ps.Dataset(Points()).seed(3).shuffle().batch(12).loader()]
    assert originals[0][0].key.startswith("Points[") and originals[0][0].file == ""
    for policy in ("replace", "mask"):
        replaced = 0
        for step, drawn in zip(plan.loader(on_fault=policy), originals):
            assert step.names(originals=True) == drawn
            assert [f"Points[{number}]" for number in step.sample_array(originals=True)["number"]] == [
                name.key for name in drawn
            ]
            for part in step.parts:
                names, rows = part.names(), part["x"].numpy()
                for row, name in enumerate(names):
                    if policy == "replace" or part["valid"].numpy()[row]:
                        assert name.key == f"Points[{rows[row]}]"
                replaced += sum(a != b for a, b in zip(names, part.names(originals=True)))
            for fault in step.faults:
                assert plan.name(fault.sample).key == fault.file
        assert replaced == (6 if policy == "replace" else 0)


def test_wrong_samples_are_refused() -> None:
    plan = ps.memory({"x": np.arange(3)})
    assert plan.name(next(plan.batch(3).loader()).samples[1]).key == "memory row 1"
    sample = next(ps.memory({"x": np.arange(9)}).batch(9).loader()).samples[8]
    with pytest.raises(IndexError, match="source 0 has 3 records, counted from 0, found 8"):
        plan.name(sample)


def test_names_in_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    import penstock.torch

    plan = folder_of(tmp_path, [b"%d.jpg" % n for n in range(5)]).batch(5)
    (batch,) = penstock.torch.DataLoader(plan, devices="host", names="name")
    assert [name.key for name in batch["name"]] == [f"{n}.jpg" for n in range(5)]
    with pytest.raises(ValueError, match="the batches have a field 'image'"):
        penstock.torch.DataLoader(plan, names="image")
    with pytest.raises(ValueError, match="pass collate="):
        penstock.torch.from_dataset([{"x": 1}], names="name")


def test_names_are_values(tmp_path: Path) -> None:
    """They are equal, hashed, pickled and printed as values, also where a name is not UTF-8."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xb0.jpg")
    Path(path).write_bytes(b"a")
    plan = ps.files([path, path]).map(ps.pad("image", 2)).batch(2)
    (step,) = plan.loader()
    names = step.names()
    assert len(set(names)) == 1 and pickle.loads(pickle.dumps(names)) == names
    assert repr(names).encode() and str(names[0]).encode()


class Data:
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        return {"x": np.full(3, index)}


def test_a_tensor_keeps_no_data_set_alive() -> None:
    data = Data()
    alive = weakref.ref(data)
    step = next(iter(ps.Dataset(data).batch(4).loader()))
    del data
    assert len(step.names()) == 4  # also behind the loader
    tensor, array = step["x"], np.from_dlpack(step["x"])
    del step
    for _ in range(100):
        gc.collect()
        if alive() is None:
            break
        time.sleep(0.05)
    assert alive() is None
    assert array.tolist() == tensor.numpy().tolist() == [[k] * 3 for k in range(4)]
