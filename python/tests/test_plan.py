"""Plans that travel: as JSON, as pickles, to penstock-throughput and back."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
import subprocess

import numpy as np
import pytest
from conftest import numbers, run_python
from time_limit import seconds_left

import penstock as ps
from penstock.__main__ import main


def double(number):
    return number * 2


def jitter(number, rng):
    return number + rng.integers(0, 100, size=2)


OUTPUTS = {"number": ("i64", (2,))}


@pytest.fixture
def stored(tmp_path) -> ps.Dataset:
    np.save(tmp_path / "number.npy", np.arange(60, dtype=np.int64).reshape(30, 2))
    return ps.arrays({"number": tmp_path / "number.npy"}).seed(7)


def digest_of(dataset: ps.Dataset) -> str:
    batches = dataset.batch(4)
    if len(batches) == 0:  # such as a mix with an empty part
        with pytest.raises(ValueError, match="deliver nothing"):
            batches.loader()
        return "0" * 32
    loader = batches.loader(digest=True)
    for _ in loader:
        pass
    return loader.digest


def digest_in_a_process(data: bytes) -> str:
    return digest_of(pickle.loads(data))


PLANS = {
    "shuffle": lambda stored: stored.shuffle(buffer=5).repeat(2).take(50),
    "sample": lambda stored: stored.sample([1.0] * 29 + [0.5], count=40),
    "select": lambda stored: stored.select(list(range(30)) * 100),
    "where": lambda stored: stored.skip(2).where("number is not null"),
    "filter": lambda stored: stored.filter(lambda info: not info.key.endswith("7")),
    "mix": lambda stored: ps.mix([stored.shuffle(), stored.take(9)], weights=[1, 3]),
    "function": lambda stored: stored.shuffle().map(double, outputs=OUTPUTS),
    "random function": lambda stored: stored.map(jitter, outputs=OUTPUTS),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_pickle_and_a_json_deliver_the_same(stored, name):
    plan = PLANS[name](stored)
    expected = digest_of(plan)
    assert digest_of(pickle.loads(pickle.dumps(plan))) == expected
    text = plan.to_json(allow_pickle=True)
    assert digest_of(ps.Dataset.from_json(text, allow_pickle=True)) == expected
    json.loads(text)


def random_plan(rng: np.random.Generator, stored: ps.Dataset, depth: int = 0) -> ps.Dataset:
    """Up to five operations behind a source, or behind several plans that were made so."""
    kind = rng.integers(0, 5) if depth < 2 else 0
    if kind == 1:
        plan = ps.concatenate([random_plan(rng, stored, depth + 1) for _ in range(rng.integers(1, 4))])
    elif kind == 2:
        parts = [random_plan(rng, stored, depth + 1) for _ in range(rng.integers(1, 4))]
        plan = ps.mix(parts, weights=rng.integers(1, 5, len(parts)).tolist())
    else:
        plan = stored if rng.integers(0, 2) else stored.seed(int(rng.integers(0, 1000)))
        if rng.integers(0, 3) == 0:
            plan = plan.filter(lambda info, keep=int(rng.integers(2, 5)): hash(info.key) % keep != 0)
    for _ in range(rng.integers(0, 6)):
        size = plan.size
        match rng.integers(0, 8):
            case 0:
                plan = plan.shuffle(reshuffle_each_epoch=bool(rng.integers(0, 2)))
            case 1:
                plan = plan.shuffle(buffer=int(rng.integers(1, 20)), seed=int(rng.integers(0, 9)))
            case 2:
                plan = plan.repeat(int(rng.integers(1, 4)))
            case 3:
                plan = plan.take(int(rng.integers(1, 40)))
            case 4:
                plan = plan.skip(int(rng.integers(0, 4)))
            case 5:
                plan = plan.shard(2, int(rng.integers(0, 2)))
            case 6 if size:
                plan = plan.select(rng.integers(0, size, rng.integers(1, 30)).tolist())
            case 7 if size:
                plan = plan.sample((rng.random(size) + 0.01).tolist(), count=int(rng.integers(1, 30)))
    return plan.map(jitter, outputs=OUTPUTS) if depth == 0 and rng.integers(0, 3) == 0 else plan


def test_random_plans_deliver_the_same_from_their_pickles_and_texts(stored):
    rng = np.random.default_rng(20261122)
    several = 0
    for number in range(300):
        plan = random_plan(rng, stored)
        expected = digest_of(plan)
        several += expected != "0" * 32
        assert digest_of(pickle.loads(pickle.dumps(plan))) == expected, f"{number}: {plan}"
        text = plan.to_json(allow_pickle=True)
        again = ps.Dataset.from_json(text, allow_pickle=True)
        assert digest_of(again) == expected, f"{number}: {plan}"
        assert again.to_json(allow_pickle=True) == text
    assert several > 200


def test_a_copy_is_the_plan(stored):
    plan = stored.shuffle()
    assert digest_of(copy.copy(plan)) == digest_of(copy.deepcopy(plan)) == digest_of(plan)


def test_a_plan_is_unpickled_in_a_process_that_was_spawned(stored):
    plan = stored.shuffle().map(double, outputs=OUTPUTS)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(digest_in_a_process, (pickle.dumps(plan),)) == digest_of(plan)


def test_nothing_is_unpickled_unasked(stored):
    plan = stored.map(double, outputs=OUTPUTS)
    with pytest.raises(ps.Error, match=r"operation 2 \(map\).*'double' travels by pickle only"):
        plan.to_json()
    text = plan.to_json(allow_pickle=True)
    with pytest.raises(ps.Error, match=r"operation 2 \(map\).*allow_pickle=True"):
        ps.Dataset.from_json(text)


def test_what_cannot_travel_is_named(stored):
    with pytest.raises(ps.Error, match=r"operation 0 \(read\): memory.*\.npy"):
        numbers(9).to_json()
    with pytest.raises(ps.Error, match="is a stream"):
        pickle.dumps(ps.Dataset(ps.Queue({"x": ("f32", ())})))
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(stored.map(lambda number: number, outputs=OUTPUTS, name="local"))
    with pytest.raises(ps.Error, match="operation 1: there is no operation"):
        ps.Dataset.from_json(stored.to_json().replace('"op":"seed"', '"op":"sead"'))


def test_data_may_have_moved(stored, tmp_path):
    plan = stored.shuffle()
    text, expected = plan.to_json(), digest_of(plan)
    (tmp_path / "there").mkdir()
    os.rename(tmp_path / "number.npy", tmp_path / "there" / "number.npy")
    with pytest.raises(ps.Error, match=r"number\.npy"):
        ps.Dataset.from_json(text)
    moved = {str(tmp_path): str(tmp_path / "there")}
    assert digest_of(ps.Dataset.from_json(text, moved=moved)) == expected


def test_a_plan_may_get_other_devices(stored):
    text = stored.batch(4).prefetch_to_devices("host:2").to_json()
    assert len(ps.Dataset.from_json(text).loader().devices) == 2
    assert len(ps.Dataset.from_json(text, devices="host:4").loader().devices) == 4


@pytest.mark.skipif(not os.path.exists(os.environ.get("PENSTOCK_THROUGHPUT", "")), reason="no penstock-throughput here")
def test_penstock_throughput_measures_plans_of_python_and_python_its_plans(images, tmp_path, capsys):
    crop = ps.random_resized_crop(32)
    plan = ps.images(images).seed(3).shuffle().map(ps.decode_image(crop=crop, flip=0.5)).batch(8)
    plan.select([0, 2, 1] * 400).save(tmp_path / "plan.json")
    assert len(list(tmp_path.glob("*.npy"))) == 1

    def cpp(*flags: str) -> str:
        command = [os.environ["PENSTOCK_THROUGHPUT"], *flags, "--digest", "--quiet", "--json", "-", "--steps", "9"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=seconds_left())
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)["digest"]

    def python(*flags: str) -> str:
        assert main(["throughput", *flags, "--digest", "--json", "-", "--steps", "9"]) == 0
        return json.loads(capsys.readouterr().out)["digest"]

    flags = ["--plan", str(tmp_path / "plan.json"), "--devices", "host:2"]
    assert cpp(*flags) == python(*flags)
    flags = ["--seed", "5", "--crop", "24", "--batch", "8", "--devices", "host:1"]
    expected = cpp("--data", str(images), *flags, "--save-plan", str(tmp_path / "cpp.json"))
    assert python("--plan", str(tmp_path / "cpp.json")) == expected
    assert python(str(images), *flags, "--save-plan", str(tmp_path / "python.json")) == expected
    assert cpp("--plan", str(tmp_path / "python.json")) == expected


def test_nothing_leaks_through_a_pickle(stored):
    run_python(
        "import pickle, sys\n"
        "plan = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
        "assert len(plan) == 30\n",
        pickle.dumps(stored.shuffle()).hex(),
    )
