"""Names that are not UTF-8, as os.fsdecode() gives them: wherever Python passes a text, C++ has the bytes, and Python gets the text back."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import penstock as ps

STRANGE = os.fsdecode(b"l\xe4t")


def rows(count=4, name=STRANGE):
    return ps.memory({name: np.arange(count, dtype=np.int64)})


def double(x):
    return 2 * x


def copy_of(images, folder):
    """A photograph in a folder of any name."""
    target = Path(folder)
    target.mkdir(parents=True)
    shutil.copy(next(images.rglob("*.jpg")), target / "1.jpg")
    return target


def test_plans_are_read_with_names_of_any_bytes(images, tmp_path):
    old, new = tmp_path / os.fsdecode(b"old\xff"), tmp_path / os.fsdecode(b"new\xfe")
    plan = ps.image_folder(copy_of(images, old))
    text = plan.to_json()
    raw = json.dumps(json.loads(text), ensure_ascii=False)  # with halves of pairs in it
    assert "\udcff" in raw and "\udcff" not in text
    assert ps.Dataset.from_json(raw).to_json() == text
    plan.save(tmp_path / os.fsdecode(b"plan\xff.json"))
    old.rename(new)
    moved = {str(old): str(new)}
    for form in (text, raw):
        assert ps.Dataset.from_json(form, moved=moved).to_json() == ps.image_folder(new).to_json()
    assert len(ps.Dataset.load(tmp_path / os.fsdecode(b"plan\xff.json"), moved=moved)) == 1
    with pytest.raises(ps.Error, match=r"old\\xff"):
        ps.Dataset.from_json(text, moved={"/" + STRANGE: "/other"})


def test_states_are_read_with_names_of_any_bytes():
    loader = rows().batch(1).loader()
    next(loader)
    state = loader.state_dict()
    for form in (state, json.dumps(state), json.dumps(state, ensure_ascii=False)):
        loader.load_state_dict(form)
        assert next(loader)[STRANGE].numpy().tolist() == [1]
    with pytest.raises(ValueError, match=r"found 'l\\udce4t'"):
        loader.load_state_dict(STRANGE)
    with pytest.raises(ps.Error, match="not a saved state"):
        loader.load_state_dict({STRANGE: 1})


def test_fields_may_have_any_names(images, tmp_path):
    spec = ps.FieldSpec(STRANGE, "u8", (2,))
    assert spec.name == STRANGE and hash(spec) == hash(ps.FieldSpec(STRANGE, "u8", (2,)))
    plan = rows().rename({STRANGE: (STRANGE + "2", "other")}).batch(2)
    assert [field.name for field in plan.fields] == [STRANGE + "2", "other"]
    step = next(plan.loader())
    assert list(step.keys()) == [STRANGE + "2", "other"] and STRANGE + "2" in step and STRANGE not in step
    with pytest.raises(KeyError):
        step[STRANGE]
    items = ps.Dataset([{STRANGE: [1, 2]}, {STRANGE: [3]}]).map(ps.pad(STRANGE, 3, lengths=STRANGE + "n")).batch(2)
    assert next(items.loader())[STRANGE + "n"].numpy().tolist() == [2, 1]
    assert pickle.loads(pickle.dumps(items)).to_json(allow_pickle=True) == items.to_json(allow_pickle=True)
    with pytest.raises(ValueError, match=r"needs a field 'image', and there is none: there are l\\xe4t i64 \[\]"):
        rows().map(ps.decode_image(crop=ps.resize_to(8)))
    named = ps.image_folder(images).rename({"image": STRANGE}).map(ps.decode_image(field=STRANGE, crop=ps.resize_to(8)))
    assert ps.Dataset.from_json(named.to_json()).fields == named.fields and named.fields[0].name == STRANGE
    views = ps.image_folder(images).map(ps.decode_views({STRANGE: ps.ImageView(ps.resize_to(8))}))
    assert views.fields[0].name == STRANGE

    doubled = ps.Dataset([{"x": n} for n in range(4)]).map(ps.map_function(double, outputs={STRANGE: ("i64", ())}, inputs=["x"], name=STRANGE)).batch(4)
    assert next(doubled.loader())[STRANGE].numpy().tolist() == [0, 2, 4, 6]
    assert next(pickle.loads(pickle.dumps(doubled)).loader())[STRANGE].numpy().tolist() == [0, 2, 4, 6]
    np.save(tmp_path / "x.npy", np.arange(3))
    assert ps.arrays({STRANGE: tmp_path / "x.npy"}).fields[0].name == STRANGE
    assert ps.arrays({STRANGE: ps.ArrayField(tmp_path / "x.npy")}).fields[0].name == STRANGE
    assert ps.WebDatasetField(STRANGE, [STRANGE]).extensions == [STRANGE]
    assert ps.ExampleField(STRANGE, STRANGE).name == STRANGE
    assert repr(ps.ExampleField(STRANGE, STRANGE)).startswith(r"ExampleField(name='l\udce4t'")


def test_texts_of_items_are_their_bytes():
    step = next(ps.Dataset([{"name": STRANGE}]).map(ps.pad("name", 4)).batch(1).loader())
    assert bytes(step["name"].numpy()[0]) == b"l\xe4t\0"


def test_streams_have_fields_of_any_name():
    stream = ps.generator({STRANGE: ("i64", ())}, iter([{STRANGE: 7}]))
    assert next(stream.batch(1).loader())[STRANGE].numpy().tolist() == [7]


def test_functions_may_return_fields_of_any_name():
    both = {STRANGE: ("i64", ()), "y": ("i64", ())}
    plan = rows(name="x").map(lambda x: {"y": x, STRANGE: x + 1}, outputs=both, inputs=["x"], name=STRANGE).batch(4)
    loader = plan.loader()
    assert next(loader)[STRANGE].numpy().tolist() == [1, 2, 3, 4]
    assert list(loader.stats().functions) == [f"the Python function '{STRANGE}'"]


def test_preparing_takes_names_of_any_bytes(images, tmp_path):
    source = copy_of(images, tmp_path / STRANGE)
    ps.prepare(source, tmp_path / os.fsdecode(b"out\xff"), name=STRANGE, also=[STRANGE])
    (tar,) = (tmp_path / os.fsdecode(b"out\xff")).glob("*.tar")
    assert tar.name == STRANGE + "-000000.tar"
    assert ps.Preparation(source, tmp_path / "other", name=STRANGE).shards[0].file.endswith(STRANGE + "-000000.tar")


def test_preparing_goes_on_with_names_of_any_bytes(images, tmp_path):
    source = copy_of(images, tmp_path / STRANGE)
    (source / os.fsdecode(b"bad\xff.jpg")).write_bytes(b"\xff\xd8\xff no photograph")
    report = ps.prepare(source, tmp_path / "out", name=STRANGE)
    assert any("bad\udcff" in line for line in report.listed)
    assert ps.PrepareReport.from_json(report.to_json()) == report
    assert ps.prepare(source, tmp_path / "out", name=STRANGE) == report
    with pytest.raises(ps.Error, match=r"was made with name \"l\\udce4t\", and now it is \"l\\udcf6t\""):
        ps.prepare(source, tmp_path / "out", name=os.fsdecode(b"l\xf6t"))


def test_buckets_are_refused_by_their_names():
    with pytest.raises((ps.Error, ValueError), match=r"l\\xe4t"):
        ps.image_folder(f"s3://{STRANGE}/x")


def test_gradients_may_have_any_names():
    from penstock.sync import GradientSync, broadcast_state, connect

    group = connect()
    values = {STRANGE: np.ones(3, np.float32)}
    broadcast_state(values, group)
    sync = GradientSync(values, group, combine="row_means")
    sync.begin(1)
    sync.ready(0)
    sync.wait()
    with pytest.raises((ValueError, TypeError), match=r"l\\xe4t"):
        GradientSync({STRANGE: np.ones(3, "U3")}, group)


def test_enums_say_what_was_found():
    with pytest.raises(ValueError, match=r"must be one of .*, found 'l\\xe4t'"):
        rows().batch(2, remainder=STRANGE)
    with pytest.raises(ValueError, match=r"l\\xe4t"):
        rows().batch(2).prefetch_to_devices(STRANGE)


@pytest.mark.parametrize("call", [
    lambda half: ps.Dataset.from_json(half),
    lambda half: ps.pad(half, 3),
    lambda half: ps.WebDatasetField("x", [half]),
    lambda half: ps.Dataset.from_json("{}", moved={half: "x"}),
    lambda half: rows().rename({"x": half}),
])  # fmt: skip
def test_other_halves_of_pairs_are_refused(call):
    with pytest.raises((TypeError, ValueError), match=r"half of a pair that stands for no byte.*ud800|found 'a.*ud800"):
        call("a\ud800")
