"""The plan: every verb does what SEMANTICS says, and what cannot work is refused where it is written."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from conftest import delivered, numbers, order_of

import penstock as ps


def test_a_dataset_says_what_it_is():
    dataset = numbers(10).seed(7).shuffle().batch(4)
    assert len(dataset) == dataset.size == 3
    assert [str(field) for field in dataset.fields] == ["number i64 [2]"]
    assert ".batch(4)" in repr(dataset)
    assert dataset.describe() == repr(dataset)


def test_every_call_returns_a_new_plan():
    dataset = numbers(10)
    dataset.take(2)
    dataset.batch(2)
    assert delivered(dataset) == list(range(10))


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (lambda d: d.take(3), [0, 1, 2]),
        (lambda d: d.skip(7), [7, 8, 9]),
        (lambda d: d.shard(3, 1), [1, 4, 7]),
        (lambda d: d.select([4, 4, 0]), [4, 4, 0]),
        (lambda d: d.take(2).repeat(2), [0, 1, 0, 1]),
        (lambda d: ps.concatenate([d.take(2), d.skip(8)]), [0, 1, 8, 9]),
        (lambda d: d.sample([0, 0, 1] + [0] * 7, count=4, seed=1), [2, 2, 2, 2]),
        (lambda d: d.shuffle(seed=3, buffer=1), list(range(10))),
    ],
)
def test_verbs_of_order(plan, expected):
    assert delivered(plan(numbers(10))) == expected


def test_filter_knows_keys_and_keeps_numbers():
    infos: list[ps.RecordInfo] = []
    numbers(10).filter(lambda info: infos.append(info) or True)
    assert len(infos) == 10
    assert delivered(numbers(10).filter(lambda info: info.key in (infos[3].key, infos[8].key))) == [3, 8]
    with pytest.raises(ZeroDivisionError):
        numbers(10).filter(lambda info: 1 / 0)
    with pytest.raises(ValueError, match="none"):
        numbers(10).filter(lambda info: False)


def test_shuffle_is_a_permutation_from_its_seed_anew_each_epoch():
    twice = delivered(numbers(50).shuffle(seed=3).repeat(2))
    assert sorted(twice[:50]) == sorted(twice[50:]) == list(range(50))
    assert twice[:50] != twice[50:]
    assert twice == delivered(numbers(50).seed(3).shuffle(seed=3).repeat(2))
    same = delivered(numbers(50).shuffle(seed=3, reshuffle_each_epoch=False).repeat(2))
    assert same[:50] == same[50:]


def test_mix_has_its_shares_and_zip_its_fields():
    mixed = ps.mix([numbers(300), numbers(300)], weights=[3, 1], seed=1).batch(64)
    sources = [sample.source for step in mixed.loader() for sample in step.samples]
    assert sources[:64].count(0) == 48
    pairs = ps.zip([numbers(5), ps.memory({"label": np.arange(9)})])
    assert [field.name for field in pairs.fields] == ["number", "label"]
    assert len(pairs) == 5


def test_fields_have_other_names_and_several(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(9))
    data = ps.arrays({"x": tmp_path / "x.npy"}).rename({"x": ("x", "again")})
    plan = ps.zip([ps.memory({"number": np.arange(9)}), data, ps.memory({"number": np.arange(9) * 2}).rename({"number": "double"})]).shuffle(seed=1).batch(9)
    (step,) = plan.loader()
    for field, factor in {"x": 1, "again": 1, "double": 2}.items():
        assert (np.asarray(step[field]) == factor * np.asarray(step["number"])).all()
    assert repr(data.batch(3)) == f"arrays(fields={{'x': ArrayField(path='{tmp_path}/x.npy')}}).rename({{'x': ['x', 'again']}}).batch(3)"
    again = ps.Dataset.from_json(data.batch(3).to_json())
    assert repr(again) == repr(data.batch(3))
    moved = ps.Dataset([{"image": i} for i in range(5)]).rename({"image": "mask"})
    (step,) = pickle.loads(pickle.dumps(moved.batch(5))).loader()
    assert np.asarray(step["mask"]).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="there is no field 'y'"):
        data.rename({"y": "z"})
    with pytest.raises(ValueError, match="comes right behind the source, before shuffle"):
        numbers(3).shuffle().rename({"number": "n"})
    with pytest.raises(TypeError, match="expected new names by fields"):
        numbers(3).rename("number")
    with pytest.raises(TypeError, match="expected a new name of 'number', or a list of them, found 3"):
        numbers(3).rename({"number": 3})


def test_remainders():
    def rows(remainder):
        return [step.parts[0].size for step in numbers(10).batch(4, remainder=remainder).loader()]

    assert rows("keep") == [4, 4, 2]
    assert rows("drop") == [4, 4]
    padded = list(numbers(10).batch(4, remainder="pad").prefetch_to_devices("host:1", depth=3).loader())
    assert np.asarray(padded[-1]["valid"]).tolist() == [1, 1, 0, 0]


def test_splits_over_devices():
    plan = numbers(8).batch(4)
    scattered = [[s.number for s in p.samples] for p in next(plan.prefetch_to_devices("host:2").loader()).parts]
    assert scattered == [[0, 1], [2, 3]]
    early = plan.prefetch_to_devices("host:2", split="shard_early")
    assert [[s.number for s in p.samples] for p in next(early.loader()).parts] == [[0, 2], [1, 3]]


@pytest.mark.parametrize(
    "devices",
    ["host:2", ["host:0", "host:1"], [ps.Device("host:0"), "host:1"], ps.host_devices(2), ("host:0", "host:1")],
)
def test_devices_may_be_named_in_many_ways(devices):
    loader = numbers(4).batch(2).prefetch_to_devices(devices).loader()
    assert [str(device) for device in loader.devices] == ["host:0", "host:1"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: numbers(4).shard(2, 2), "2"),
        (lambda: numbers(4).shuffle(buffer=0), "buffer"),
        (lambda: numbers(4).repeat().shuffle(), "repeat"),
        (lambda: numbers(4).batch(2).batch(2), "batch"),
        (lambda: numbers(4).batch(2, remainder="kep"), "'keep', 'drop', 'pad'.*'kep'"),
        (lambda: numbers(4).batch(2).prefetch_to_devices("gpu:0"), "gpu:0"),
        (lambda: numbers(4).batch(2).prefetch_to_devices([3]), "cuda:0"),
        (lambda: numbers(4).loader(), "batch"),
        (lambda: numbers(4).batch(2).loader(on_fault="ignore"), "on_fault"),
        (lambda: numbers(4).batch(2).loader(threads=-1), "threads"),
        (lambda: ps.memory({"a": np.zeros(3), "b": np.zeros(4)}), "'b'"),
        (lambda: ps.memory({"a": np.zeros(3, dtype=complex)}), "complex128"),
        (lambda: ps.memory({"a": np.float32(3)}), "rows"),
        (lambda: ps.FieldSpec("a", "u7"), "u7"),
        (lambda: ps.random_resized_crop(0), "0"),
        (lambda: ps.decode_image(crop=ps.center_crop(10), flip=2), "flip"),
        (lambda: ps.InputContext(2, 0, 3).per_replica_batch_size(4), "4"),
    ],
)
def test_what_cannot_work_is_a_value_error_that_says_why(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_device_lists_are_parsed():
    assert [str(d) for d in ps.parse_devices("host:2")] == ["host:0", "host:1"]
    assert ps.numa_node(ps.Device("host:0")) is None and len(ps.all_gpus_or_host()) >= 1


def test_words_are_values():
    assert ps.Device("cuda:1") == ps.Device("cuda:1") != ps.Device("host:1")
    assert {ps.Device("cuda:1"), ps.Device("cuda:1")} == {ps.Device("cuda:1")}
    assert ps.FieldSpec("image", "uint8", (None, 3)) == ps.FieldSpec("image", "u8", [None, 3])
    assert ps.FieldSpec("image", "u8", (None, 3)).shape == (None, 3)
    assert ps.FieldSpec("image", "u8", (2, 3)) != 3
    assert repr(ps.FieldSpec("a", "f32", (2,))) == "FieldSpec('a', 'f32', (2,))"
    assert ps.random_resized_crop((20, 30)).size == (20, 30)
    first, second = next(numbers(2).batch(2).loader()).samples
    assert first != second and first == first and len({first, second}) == 2
    assert repr(first) == "SampleId(number=0, epoch=0, source=0)" and first.draw == 0
    once, again = next(numbers(2).select([1, 1]).batch(2).loader()).samples
    assert repr(again) == "SampleId(number=1, epoch=0, source=0, draw=2)"
    assert once != again and len({once, again}) == 2


def test_an_endless_dataset_has_no_len_but_is_true():
    endless = numbers(4).repeat()
    assert endless.size is None and endless
    with pytest.raises(TypeError, match="endless"):
        len(endless)


def test_who_this_process_is(monkeypatch):
    assert repr(ps.InputContext.from_environment()).startswith("InputContext(num_input_pipelines=1")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert ps.InputContext.from_environment().input_pipeline_id == 1
    assert order_of(numbers(8).seed(1).batch(4).loader()) == [2, 3, 6, 7]


def test_a_crop_that_is_a_number_is_told_what_crops_there_are():
    with pytest.raises(TypeError, match=r"random_resized_crop\(224\) for training.*found 224"):
        ps.decode_image(crop=224)  # type: ignore[arg-type]
