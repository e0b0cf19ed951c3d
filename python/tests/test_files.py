"""A data set of an explicit list of files, as programs write a torch data set around a list or a pandas frame."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import penstock as ps
import pytest

NAMES = ["b/2.jpg", "a/1.jpg", "a/3.jpg"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in [*NAMES, "4\udcff.jpg"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"bytes of " + os.fsencode(name))
    return tmp_path


def read(plan: ps.Dataset) -> list[tuple[bytes, int]]:
    field = plan.fields[0].name
    step = next(plan.map(ps.pad(field, 32, lengths="length")).batch(100).loader())
    return [
        (row[:length].tobytes(), int(label))
        for row, length, label in zip(step[field].numpy(), step["length"].numpy(), step["label"].numpy())
    ]


def test_paths_of_every_kind(folder: Path) -> None:
    expected = [(b"bytes of " + name.encode(), 0) for name in NAMES]
    paths = [folder / name for name in NAMES]
    for given in (
        paths,
        [str(path) for path in paths],
        [os.fsencode(path) for path in paths],
        tuple(paths),
        iter(paths),
        np.array([str(path) for path in paths]),
    ):
        assert read(ps.files(given)) == expected
    assert read(ps.files(NAMES, root=folder)) == expected
    odd = ps.files([folder / "4\udcff.jpg", paths[0]])
    assert read(odd)[0][0] == b"bytes of 4\xff.jpg"
    assert [name.key for name in next(odd.map(ps.pad("image", 32)).batch(2).loader()).names()] == ["4\udcff.jpg", NAMES[0]]


def test_relative_paths_are_those_of_the_current_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    plan = ps.files(NAMES)
    monkeypatch.chdir("/")
    assert read(plan)[2][0] == b"bytes of a/3.jpg"


@pytest.mark.parametrize("labels", [[3, -1, 3], np.array([3, -1, 3]), np.array([3, -1, 3], "i4"), (np.int16(3), np.int8(-1), 3)])
def test_integers_are_labels(folder: Path, labels) -> None:
    plan = ps.files(NAMES, labels, root=folder)
    assert [label for _, label in read(plan)] == [3, -1, 3] and plan.class_names == []


def test_names_of_classes_are_labels(folder: Path) -> None:
    for labels in (["dog", "cat", "dog"], np.array(["dog", "cat", "dog"]), iter(["dog", "cat", "dog"])):
        plan = ps.files(NAMES, labels, root=folder)
        assert [label for _, label in read(plan)] == [1, 0, 1] and plan.class_names == ["cat", "dog"]
    plan = ps.files(NAMES, ["dog", "cat", "dog"], root=folder, classes=["dog", "eel", "cat"])
    assert [label for _, label in read(plan)] == [0, 2, 0] and plan.class_names == ["dog", "eel", "cat"]


def test_frames_of_pandas(folder: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"path": NAMES, "label": ["dog", "cat", "dog"], "number": [4, 5, 4]}).iloc[[2, 1]]
    assert read(ps.files(frame.path, frame.number, root=folder)) == [(b"bytes of a/3.jpg", 4), (b"bytes of a/1.jpg", 5)]
    assert [label for _, label in read(ps.files(frame.path, frame.label, root=folder))] == [1, 0]


def test_a_plan_of_files_travels(folder: Path) -> None:
    plan = ps.files(NAMES, ["dog", "cat", "dog"], root=folder, field="bytes").seed(3).shuffle()
    for same in (ps.Dataset.from_json(plan.to_json()), pickle.loads(pickle.dumps(plan))):
        assert read(same) == read(plan) and same.class_names == plan.class_names
    assert eval(f"ps.{plan.describe()}").to_json() == plan.to_json()
    batches = plan.map(ps.pad("bytes", 32)).batch(1)
    loader = batches.loader()
    next(loader)
    state = loader.state_dict()
    assert "a/1.jpg" not in str(state)  # the fingerprint
    other = batches.loader()
    other.load_state_dict(state)
    assert next(other).samples == next(loader).samples
    turned = ps.files(NAMES[::-1], ["dog", "cat", "dog"], root=folder, field="bytes").seed(3).shuffle()
    of_turned = turned.map(ps.pad("bytes", 32)).batch(1).loader()
    with pytest.raises(ps.Error, match="another dataset"):
        of_turned.load_state_dict(state)
    doubled = ps.files([f"{folder}//{NAMES[0]}", f"{folder}/{NAMES[1]}"], field="bytes")
    assert read(ps.Dataset.from_json(doubled.to_json())) == read(doubled)


@pytest.mark.parametrize(
    ("arguments", "error", "because"),
    [
        (("photos",), TypeError, "a folder is image_folder"),
        ((5,), TypeError, "expected a list of paths, found 5"),
        (([1, 2],), TypeError, "expected a path, found 1"),
        (({"a": 1},), TypeError, "list of paths, found a mapping"),
        (({"a", "b"},), TypeError, "found a set, whose order"),
        ((["a"], {"a": 1}), TypeError, "list of labels, found a mapping"),
        ((["a", "b"], "ab"), TypeError, "a list of labels, found 'ab'"),
        ((["/none/a\0b/x.jpg"],), ValueError, "expected the path of a file"),
        ((["a"], ["x", 1][:1] * 2), ValueError, "there are 2 labels and 1 paths"),
        ((["a", "b"], ["x", 1]), TypeError, "all integers or all names of classes, found 'x' and 1"),
        ((["a"], [1.5]), TypeError, "an integer or the name of a class, found 1.5"),
        (([],), ValueError, "expected paths, found none"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, error, because) -> None:
    with pytest.raises(error, match=because):
        ps.files(*arguments)
