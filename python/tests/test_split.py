"""Disjoint parts of a data set: at random, by classes, by groups."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import penstock as ps
import pytest

COUNT = 400


def numbers(plan: ps.Dataset) -> list[int]:
    if "image" in [field.name for field in plan.fields]:
        plan = plan.map(ps.pad("image", 8))
    return [sample.number for step in plan.batch(64).loader() for sample in step.samples]


@pytest.fixture
def data() -> ps.Dataset:
    return ps.memory({"x": np.arange(COUNT)})


def test_two_parts_and_more(data: ps.Dataset) -> None:
    train, valid = data.split(0.9, seed=3)
    assert len(train) == 360 and len(valid) == 40
    assert sorted(numbers(train) + numbers(valid)) == list(range(COUNT))
    for fractions in (np.float64(0.9), [0.9, 0.1], (0.9, 1 - 0.9), np.array([0.9, 0.1])):
        assert numbers(data.split(fractions, seed=3)[1]) == numbers(valid)
    assert numbers(data.split(0.9)[1]) != numbers(valid)
    assert [len(part) for part in data.split([0.5, 0.25, 0.25])] == [200, 100, 100]


def test_stratified_by_what_tells_classes(tmp_path: Path) -> None:
    paths, classes = [], []
    for number in range(200):
        name = "rare" if number % 10 == 0 else "common"
        (tmp_path / name).mkdir(exist_ok=True)
        path = tmp_path / name / f"{number}.jpg"
        path.write_bytes(b"x" * (1 + number % 3))
        paths.append(path)
        classes.append(name)
    files = ps.files(paths, classes)
    assert files.labels().dtype == np.int64 and files.labels().tolist() == [int(name == "rare") for name in classes]
    expected = [numbers(part) for part in files.split(0.8, seed=5, by="label")]
    assert sum(number % 10 == 0 for number in expected[1]) == 4 and len(expected[1]) == 40
    for by in (classes, np.array(classes), files.labels(), lambda info: info.label, lambda info: info.key.split("/")[0]):
        assert [numbers(part) for part in files.split(0.8, seed=5, by=by)] == expected
    by_size = files.split(0.5, by=lambda info: info.bytes)
    sizes = [sum(number % 3 == 0 for number in numbers(part)) for part in by_size]
    assert abs(sizes[0] - sizes[1]) <= 1
    folder = ps.image_folder(tmp_path)
    assert sum(label == 1 for label in folder.labels()) == 20
    assert sum(folder.split(0.5, by="label")[0].labels()) == 10  # of the part


class Scalar:
    """As torch's tensors of no dimension: equal and hashed by identity, with a number in them."""

    def __init__(self, number: int) -> None:
        self.number = number

    def tolist(self) -> int:
        return self.number


def test_equal_values_are_one_class_whatever_holds_them(data: ps.Dataset) -> None:
    classes = [number % 3 for number in range(COUNT)]
    expected = [numbers(part) for part in data.split(0.8, by=classes)]
    for by in ([Scalar(one) for one in classes], [np.int64(one) for one in classes], [(one, None) for one in classes]):
        assert [numbers(part) for part in data.split(0.8, by=by)] == expected


@pytest.mark.parametrize("name", ["by", "group"])
def test_values_that_cannot_be_compared_are_refused(data: ps.Dataset, name: str) -> None:
    for values, error, because in (
        ([float("nan")] * COUNT, ValueError, "equal to none"),
        ([object() for _ in range(COUNT)], TypeError, "can be compared"),
        ([[1]] * COUNT, TypeError, "can be compared"),
        (np.zeros((COUNT, 2)), TypeError, "can be compared"),
        ({number: 0 for number in range(COUNT)}, TypeError, "a value for each sample"),
        (set(range(COUNT)), TypeError, "a value for each sample"),
    ):
        with pytest.raises(error, match=because):
            data.split(0.8, **{name: values})


def test_no_group_is_in_two_parts(data: ps.Dataset) -> None:
    patients = [f"patient {number * number % 47}" for number in range(COUNT)]
    train, valid = data.split(0.75, group=patients)
    mine, others = ({patients[number] for number in numbers(part)} for part in (train, valid))
    assert not mine & others and len(mine | others) == len(set(patients))


def test_parts_travel_and_resume(data: ps.Dataset) -> None:
    train, valid = data.split(0.9, seed=3)
    plan = train.seed(1).shuffle().batch(32)
    source = {"x": np.arange(COUNT)}
    with pytest.raises(ps.Error, match="memory"):
        plan.to_json()  # arrays in memory; its pickle has no such limit where the source has none
    loader = plan.loader()
    next(loader)
    state = loader.state_dict()
    other = ps.memory(source).split(0.9, seed=3)[0].seed(1).shuffle().batch(32).loader()
    other.load_state_dict(state)
    assert [step.samples for step in other] == [step.samples for step in loader]
    of_other_part = valid.seed(1).shuffle().batch(32).loader()
    with pytest.raises(ps.Error, match="another plan"):
        of_other_part.load_state_dict(state)
    items = ps.Dataset([{"x": n} for n in range(20)]).split(0.5, seed=1)[0]
    assert numbers(pickle.loads(pickle.dumps(items))) == numbers(items)


def test_what_does_not_fit_is_refused(data: ps.Dataset) -> None:
    for arguments, error, because in [
        ({"fractions": 1.0}, ValueError, "a fraction is above 0, found 0"),
        ({"fractions": [0.5, 0.2]}, ValueError, "add up to 1, found 0.7"),
        ({"fractions": 0.5, "by": "class"}, ValueError, "split: the records have no field 'class'"),
        ({"fractions": 0.5, "by": 3}, TypeError, "found 3"),
        ({"fractions": 0.5, "by": [1, 2]}, ValueError, "by has 2 values, and there are 400 samples"),
        ({"fractions": 0.5, "group": []}, ValueError, "group has no values"),
        ({"fractions": 0.5, "by": "label"}, ValueError, "split: the records have no field 'label'"),
        ({"fractions": {"train": 0.5, "valid": 0.2}}, ValueError, "add up to 1, found 0.7"),
        ({"fractions": 0.5, "group": ""}, ValueError, "group is the name of a field"),
    ]:
        with pytest.raises(error, match=because):
            data.split(**arguments)
    with pytest.raises(ZeroDivisionError):
        data.split(0.5, by=lambda info: 1 / 0)
    with pytest.raises(ValueError, match="put it before shuffle"):
        data.shuffle().split(0.5)
