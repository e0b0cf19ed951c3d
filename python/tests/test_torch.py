"""penstock.torch: dicts of tensors, pass by pass, saved and resumed."""

from __future__ import annotations

import inspect
import re
import socket
import typing

import numpy as np
import pytest
from conftest import numbers, order_of, run_python

torch = pytest.importorskip("torch", reason="torch is not installed")

import penstock as ps
import penstock.torch as pt
from penstock._calls import OF_FROM_DATASET, OF_TORCH_LOADER


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


def test_targets_are_the_rows_of_each_image():
    batch = {
        "image": torch.zeros(3, 20, 30, 3, dtype=torch.uint8),
        "boxes": torch.arange(3 * 4 * 4, dtype=torch.float32).reshape(3, 4, 4),
        "labels": torch.arange(1, 13).reshape(3, 4),
        "points": torch.ones(3, 4, 5, 3),
        "count": torch.tensor([2, 0, 4]),
    }
    targets = pt.as_targets(batch)
    assert [list(target) for target in targets] == [["boxes", "labels"]] * 3
    assert [len(target["boxes"]) for target in targets] == [2, 0, 4]
    assert targets[2]["labels"].tolist() == [9, 10, 11, 12] and targets[1]["boxes"].shape == (0, 4)
    targets[0]["boxes"][1, 3] = -1  # nothing is copied
    assert batch["boxes"][0, 1, 3] == -1
    for fields, lengths, words in [(("crowds",), "count", "no field 'crowds'"), (("labels",), "labels", "'labels' has one number for each image")]:
        with pytest.raises(ValueError, match=words):
            pt.as_targets(batch, fields, lengths=lengths)
    for wrong in ([2, 0, 5], [2, 0, -1]):
        with pytest.raises(ValueError, match="'count' .* does not say"):
            pt.as_targets({**batch, "count": torch.tensor(wrong)})
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    first = pt.as_targets(batch, ["boxes", "labels", "points"], tv_tensors_of="image")[0]
    assert isinstance(first["boxes"], tv_tensors.BoundingBoxes) and first["boxes"].canvas_size == (20, 30)
    assert type(first["labels"]) is torch.Tensor and first["points"].shape == (2, 5, 2)
    masks = torch.randint(0, 2, (3, 4, 20, 30), dtype=torch.uint8)
    first = pt.as_targets({**batch, "masks": masks}, ["masks"], tv_tensors_of="image")[0]["masks"]
    assert isinstance(first, tv_tensors.Mask) and torch.equal(first, masks[0, :2])
    assert type(pt.as_targets({**batch, "masks": masks[..., 1:]}, ["masks"], tv_tensors_of="image")[0]["masks"]) is torch.Tensor


def test_a_label_of_the_background_is_no_target_unawares():
    batch = {"boxes": torch.zeros(2, 3, 4), "labels": torch.tensor([[5, 0, 0], [7, 0, -1]]), "count": torch.tensor([2, 1])}
    with pytest.raises(ValueError, match="'labels' has the label 0, and .* add_to_labels=1"):
        pt.as_targets(batch)
    assert [target["labels"].tolist() for target in pt.as_targets(batch, add_to_labels=1)] == [[6, 1], [8]]
    assert [target["labels"].tolist() for target in pt.as_targets(batch, add_to_labels=0)] == [[5, 0], [7]]
    assert batch["labels"].tolist() == [[5, 0, 0], [7, 0, -1]]  # is not changed
    # Rows that pad() added are not looked at, and there may be none.
    pt.as_targets({**batch, "count": torch.tensor([1, 1])})
    pt.as_targets({**batch, "count": torch.tensor([0, 0])})
    with pytest.raises(ValueError, match="'kinds' has the label -1"):
        pt.as_targets({"kinds": batch["labels"], "count": torch.tensor([1, 3])}, ["kinds"], labels="kinds")


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
    next(iter(loader))
    with pytest.raises(RuntimeError, match="newer loop"):
        next(first)


def test_a_batch_that_was_not_made_comes_again_after_a_resume():
    """What collate raised at is no batch that was delivered: in the middle of a pass, and at its last step."""
    plan = ps.memory({"x": np.arange(20)}).seed(1).shuffle().batch(5)
    expected = [batch["x"].tolist() for batch in pt.DataLoader(plan, devices="host:1", copy="x")]
    for at in range(4):
        calls = iter(range(100))

        def collate(batch):
            if next(calls) == at:
                raise KeyError("for a test")
            return batch["x"].tolist()

        loader = pt.DataLoader(plan, devices="host:1", collate=collate)
        seen = []
        with pytest.raises(KeyError, match="for a test"):
            for batch in loader:
                seen.append(batch)
        assert seen == expected[:at] and loader.position == at
        other = pt.DataLoader(plan, devices="host:1", copy="x")
        other.load_state_dict(loader.state_dict())
        assert [batch["x"].tolist() for batch in other] == expected[at:]


def test_a_batch_that_was_not_made_is_counted_once():
    """Samples, faults and digest after a collate that raised are those of a run without it."""
    class Data:
        def __len__(self):
            return 40

        def __getitem__(self, number):
            if number % 10 == 3:
                raise ValueError("a bad item")
            return {"x": number}

    plan = ps.Dataset(Data(), fields={"x": ("i64", ())}).seed(1).shuffle().batch(8)
    options = {"devices": "host:1", "on_fault": "mask", "max_fault_rate": 1, "digest": True}
    whole = pt.DataLoader(plan, copy="x", **options)
    for _ in whole:
        pass
    calls = iter(range(100))

    def collate(batch):
        if next(calls) in (1, 3):
            raise KeyError("for a test")
        return batch["x"].tolist()

    loader = pt.DataLoader(plan, collate=collate, **options)
    for _ in range(3):
        try:
            for _ in loader:
                pass
        except KeyError:
            state = loader.state_dict()
            loader = pt.DataLoader(plan, collate=collate, **options)
            loader.load_state_dict(state)
    found, wanted = loader.state_dict(), whole.state_dict()
    for name in ("samples", "faults", "digest"):
        assert found[name] == wanted[name], name


def test_a_collate_that_raises_over_a_stream_says_why():
    def collate(batch):
        raise KeyError("for a test")

    rows = ({"x": np.int64(n)} for n in range(9))
    loader = pt.DataLoader(ps.generator({"x": ("i64", ())}, rows).batch(3), devices="host:1", collate=collate)
    with pytest.raises(KeyError, match="for a test"):
        next(iter(loader))


def test_a_part_of_a_stream_is_one_pass():
    rows = ({"x": np.int64(n)} for n in range(9))
    loader = pt.DataLoader(ps.generator({"x": ("i64", ())}, rows).take(7).batch(3), devices="host:1", copy="x")
    assert [batch["x"].tolist() for batch in loader] == [[0, 1, 2], [3, 4, 5], [6]]


def test_small_fields_may_be_kept_as_copies():
    two = ps.memory({"image": np.zeros((40, 8), np.float32), "label": np.arange(40)}).batch(2)
    kept = [batch["label"] for batch in pt.DataLoader(two, devices="host:1", copy=("label",))]
    assert torch.cat(kept).tolist() == list(range(40))
    with pytest.raises(ps.Error, match=r"\.clone\(\) of a torch tensor"):
        _ = [batch["label"] for batch in pt.DataLoader(two, devices="host:1")]
    with pytest.raises(ValueError, match="copy: there is no field 'lable'; there are image, label"):
        pt.DataLoader(two, devices="host:1", copy=["lable"])


def test_collate_makes_what_a_loop_takes():
    loader = pt.DataLoader(plan(), devices="host:1", collate=lambda batch: (batch["number"][:, 0], batch["number"][:, 1]))
    for x, y in loader:
        assert (x * x == y).all()
    parts = next(iter(pt.DataLoader(numbers(4).batch(4), devices="host:2", collate=lambda batch: batch["number"][:, 0].tolist())))
    assert parts == [[0, 1], [2, 3]]


def test_a_stream_has_one_pass_and_no_length():
    loader = pt.DataLoader(ps.generator({"x": ("f32", ())}, iter([[1.0], [2.0], [3.0]])).batch(2), devices="host:1")
    with pytest.raises(TypeError, match="reads a stream, which ends when it ends"):
        len(loader)
    assert [batch["x"].tolist() for batch in loader] == [[1.0, 2.0], [3.0]]
    with pytest.raises(RuntimeError, match="records come once, and it has ended"):
        list(loader)
    with pytest.raises(TypeError, match="endless"):
        len(pt.DataLoader(numbers(4).repeat().batch(2), devices="host:1"))


def test_plans_that_are_no_batches_are_refused_in_words_of_this_call():
    with pytest.raises(ValueError, match=r"ends in prefetch_to_devices: leave it out.*\(it has host:0, host:1\)"):
        pt.DataLoader(numbers(4).batch(2).prefetch_to_devices("host:2"))
    with pytest.raises(ValueError, match=r"this one has none: put .batch\(256\)"):
        pt.DataLoader(numbers(4))


def test_what_trainers_ask_a_loader():
    loader = pt.DataLoader(plan(), devices="host:1")
    assert loader.batch_size == 5 and len(loader) == 5 and len(loader.dataset) == 22 and not loader.drop_last
    assert loader.plan.size == 5 and loader.dataset.plan is not None and loader.sampler is None
    assert repr(loader).startswith("<penstock.torch.DataLoader of memory(22 rows") and "5 steps a pass" in repr(loader)
    next(iter(loader))
    assert loader.progress()["samples_per_s"] > 0


def ids(batch) -> list[int]:
    return batch["number"][:, 0].tolist()


def test_set_epoch_chooses_the_pass():
    passes = pt.DataLoader(numbers(22).seed(3).shuffle().batch(5), devices="host:1")
    expected = [[ids(batch) for batch in passes] for _ in range(4)]
    loader = pt.DataLoader(numbers(22).seed(3).shuffle().batch(5), devices="host:1")
    for epoch in (0, 2, 2, 1, 3):
        loader.set_epoch(epoch)
        assert loader.epoch == epoch
        assert [ids(batch) for batch in loader] == expected[epoch]
    running = iter(loader)
    next(running)
    loader.set_epoch(1)
    with pytest.raises(RuntimeError, match=r"set_epoch\(\) has moved this loader"):
        next(running)
    saved = pt.DataLoader(numbers(22).seed(3).shuffle().batch(5), devices="host:1")
    saved.set_epoch(1)
    loop = iter(saved)
    assert [ids(next(loop)) for _ in range(2)] == expected[1][:2]
    loader.load_state_dict(saved.state_dict())
    loader.set_epoch(1)  # as trainers say it before each epoch: the rest of the saved pass stays
    assert [ids(batch) for batch in loader] == expected[1][2:]
    with pytest.raises(ValueError, match="count from 0"):
        loader.set_epoch(-1)
    endless = pt.DataLoader(numbers(22).repeat().batch(5), devices="host:1")
    endless.set_epoch(3)  # there are no passes
    assert ids(next(iter(endless))) == [0, 1, 2, 3, 4]


def test_another_batch_sampler_chooses_among_the_steps():
    """What Accelerate's skip_first_batches makes of a loader."""

    class Skip(torch.utils.data.BatchSampler):
        def __init__(self, steps, count):
            self.steps, self.count = steps, count

        def __iter__(self):
            return (step for k, step in enumerate(self.steps) if k >= self.count)

        def __len__(self):
            return len(self.steps) - self.count

    plan = numbers(22).seed(3).shuffle().batch(5)
    passes = pt.DataLoader(plan, devices="host:1")
    expected = [[ids(batch) for batch in passes] for _ in range(4)]
    loader = pt.DataLoader(plan, devices="host:1")
    skipping = torch.utils.data.DataLoader(
        loader.dataset, batch_sampler=Skip(loader.batch_sampler, 3), collate_fn=loader.collate_fn, num_workers=loader.num_workers
    )
    assert [ids(batch) for batch in skipping] == expected[0][3:] and len(skipping) == 2
    assert [ids(batch) for batch in loader] == expected[1]
    next(iter(skipping))  # left early: the next begins the next pass
    assert [ids(batch) for batch in skipping] == expected[3][3:]
    loader.set_epoch(1)
    by_number = [0, 0, 3, 1, 4, 4]  # any of the pass, again and again
    assert [ids(loader.dataset.__getitems__([k])) for k in by_number] == [expected[1][k] for k in by_number]
    assert ids(loader.dataset.__getitems__([0])) == expected[2][0]  # after the last the next pass
    whole = pt.DataLoader(numbers(22).seed(3).shuffle().batch(22), devices="host:1")
    passes = [ids(next(iter(whole))) for _ in range(3)]
    for epoch in range(3):
        whole.set_epoch(epoch)
        assert [ids(whole.dataset.__getitems__([0])) for _ in range(2)] == [passes[epoch]] * 2
    with pytest.raises(IndexError, match="a pass has 5 steps, found 5"):
        loader.dataset.__getitems__([5])
    with pytest.raises(TypeError, match="samples come in batches"):
        loader.dataset[0]


def test_rows_of_different_lengths_are_a_nested_tensor():
    lines = [{"line": np.arange(2 * n, dtype=np.float32).reshape(n, 2) + n} for n in range(6)]
    plan = ps.Dataset(lines).map(ps.pad("line", 8, value=-1, lengths="length")).batch(6)
    batch = next(iter(pt.DataLoader(plan, devices="host:1")))
    nested = pt.as_nested(batch["line"], batch["length"])
    assert nested.values().data_ptr() == batch["line"].data_ptr()
    compact = pt.as_nested(batch["line"], batch["length"], compact=True)
    assert compact.offsets().tolist() == [0, 0, 1, 3, 6, 10, 15] and compact.values().shape == (15, 2)
    for found in (nested, compact):
        assert [row.tolist() for row in found.unbind()] == [one["line"].tolist() for one in lines]
    assert torch.equal(compact.to_padded_tensor(-1)[:, :5], batch["line"][:, :5])
    for wrong in ([0, 1, 2, 3, 4, 9], [0, 1, 2, 3, 4, -1], [1]):
        for is_compact in (False, True):
            with pytest.raises(ValueError, match="as_nested: (lengths from|expected 6 lengths)"):
                pt.as_nested(batch["line"], torch.tensor(wrong), compact=is_compact)


class Pairs(torch.utils.data.Dataset):
    def __len__(self):
        return 22

    def __getitem__(self, number):
        return torch.full((2, 3), float(number)), number


@pytest.mark.parametrize("data", [Pairs(), [{"x": np.float32(n), "y": n} for n in range(22)], list(range(22))])
def test_a_map_style_data_set_comes_as_torchs_loader_has_it(data):
    theirs = list(torch.utils.data.DataLoader(data, batch_size=4))
    ours = list(pt.from_dataset(data, 4, devices="host:1", depth=8))
    assert len(theirs) == len(ours)
    for one, other in zip(theirs, ours):
        assert type(one) is type(other)
        if isinstance(one, dict):
            assert one.keys() == other.keys()
            one, other = list(one.values()), list(other.values())
        for a, b in zip(one, other) if isinstance(one, list) else [(one, other)]:
            assert a.dtype == b.dtype and torch.equal(a, b)


class Point(typing.NamedTuple):
    x: float
    name: str


NESTED = [
    [{"a": n, "meta": {"id": n, "pair": (n, float(n))}, "name": "x" * n} for n in range(5)],
    [(n, (f"é{n}", n % 2 == 0)) for n in range(5)],
    [Point(float(n), str(n)) for n in range(5)],
    [{"p": Point(n, "same"), "b": b"\0" * n} for n in range(5)],
    ["", "a", "bc", "d\n", "\0"],
    [(torch.tensor([True, n > 2]), n % 2 == 0) for n in range(5)],
    [{"image": np.full((2, 2), n, np.uint16)} for n in range(5)],
    [[torch.full((2,), n), np.full((3,), n), n] for n in range(5)],  # lists are as tuples
    [{"pair": [torch.full((2,), n), f"é{n}"], "texts": ["a", str(n)]} for n in range(5)],
    [{0: n, 1: float(n)} for n in range(5)],
    [{"": n, "b": n} for n in range(5)],
]


def same(one, other) -> bool:
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if type(one) is tuple:  # torch has texts in a tuple where they come from tuples
        one = list(one)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return one == other


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("data", NESTED)
def test_items_in_one_another_and_texts_come_as_torchs_loader_has_them(data, workers):
    theirs = list(torch.utils.data.DataLoader(data, batch_size=2))
    ours = list(pt.from_dataset(data, 2, devices="host:1", depth=8, workers=workers))
    assert len(theirs) == len(ours) == 3 and all(map(same, theirs, ours))


def test_a_list_of_numbers_is_one_tensor():
    """Of which torch makes one for each place: they are the same in the tensor's columns."""
    data = [{"tokens": [n, n + 1, n + 2], "pairs": [[n, 1], [2, 3]]} for n in range(4)]
    batch = next(iter(pt.from_dataset(data, 4, devices="host:1")))
    assert batch["tokens"].tolist() == [one["tokens"] for one in data] and batch["pairs"].tolist() == [one["pairs"] for one in data]


def test_a_text_that_is_too_long_says_how_long():
    data = [{"id": 1, "name": name} for name in ("a", "b" * 9, "c", "d")]
    with pytest.raises(ps.DataError, match="sample 1 .*'name' has 9 bytes, and from_dataset has room for 8: give it text_bytes=9"):
        list(pt.from_dataset(data, 4, text_bytes=8, devices="host:1"))
    (batch,) = pt.from_dataset(data, 4, text_bytes=9, devices="host:1")
    assert batch["name"] == ["a", "b" * 9, "c", "d"]
    (masked,) = pt.from_dataset(data, 4, text_bytes=8, devices="host:1", on_fault="mask")
    assert masked["name"] == ["a", "", "c", "d"] and masked["valid"].tolist() == [True, False, True, True]
    (fields,) = pt.from_dataset(data, 4, text_bytes=9, devices="host:1", collate=dict)
    assert list(fields) == ["id", "name", "name.bytes"] and fields["name.bytes"].tolist() == [1, 9, 1, 1]


def test_items_that_lack_a_part_say_which():
    for data, why in [
        ([{"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}, {"a": {"b": 1}}], "it has no 'b', which the first item has"),
        ([(1, (2, 3)), (1, (2,)), (1, (2, 3)), (1, (2, 3))], "it has a tuple of 1, and the first item one of 2"),
    ]:
        with pytest.raises(ps.DataError, match="sample 1 .*" + why):
            list(pt.from_dataset(data, 4, devices="host:1"))


def test_parts_of_one_name_are_refused():
    for data in ([{"a.b": 1, "a": {"b": 2}}], [{0: 1, "0": {"c": 2}, "x": {"y": 3}, "0.c": 4}], [{"t": "x", "t.bytes": 1}]):
        with pytest.raises(ValueError, match="two parts of an item would be the field '"):
            pt.from_dataset(data, 1)
    with pytest.raises(ValueError, match="the key 0 of an item is no string: rename it, such as '0'"):
        ps.Dataset([{0: 1, "0": 2}])


def test_what_is_no_text_is_named():
    assert next(iter(pt.from_dataset([np.str_("a"), np.str_("b")], 2, devices="host:1"))) == ["a", "b"]
    for value in (None, 3, ["x"]):
        with pytest.raises(ps.DataError, match=r"sample 1 .*'t' is .*, and a text in the first item: give '' where"):
            list(pt.from_dataset([{"t": "x"}, {"t": value}, {"t": "y"}, {"t": "y"}], 4, devices="host:1"))
    with pytest.raises(ValueError, match="'t' of item 0, a list, makes no array: a field is numbers or one text"):
        ps.Dataset([{"t": ["a", "b"]}])


def test_masked_rows_are_told_or_refused():
    bad = [(float(n), "a" * (9 if n == 1 else 1)) for n in range(4)]
    with pytest.raises(ValueError, match="on_fault='mask' needs a place for the field 'valid'"):
        pt.from_dataset(bad, 4, text_bytes=8, on_fault="mask")
    (batch,) = pt.from_dataset(bad, 4, text_bytes=8, on_fault="mask", collate=dict, devices="host:1")
    assert batch["valid"].tolist() == [True, False, True, True]
    with pytest.raises(ValueError, match="on_fault='mask' needs a place"):
        pt.from_dataset([{"valid": {"z": 1}}], 1, on_fault="mask")


def test_what_from_dataset_cannot_take_says_where_it_goes():
    with pytest.raises(TypeError, match=r"this is a plan: DataLoader\(plan.batch\(8\)\)"):
        pt.from_dataset(plan(), 2)
    with pytest.raises(TypeError, match=r"can only be iterated: generator\(fields, data\)"):
        pt.from_dataset(iter([1]), 2)
    with pytest.raises(ValueError, match=r"'image' is an encoded image: make the plan yourself, DataLoader\(ps.Dataset\(data\).map"):
        pt.from_dataset([{"image": {"bytes": b"x", "path": None}}], 1)
    with pytest.raises(ValueError, match=r"'photo' is an encoded image: .*decode_image\(field='photo', crop=ps.random_resized_crop\(224\)\)"):
        pt.from_dataset([{"photo": {"bytes": b"x", "path": None}}], 1)


def test_what_torchs_loader_has_is_answered():
    with pytest.raises(TypeError, match=r"takes a plan, found Pairs: for a data set of your own, penstock.torch.from_dataset\(data, 8, shuffle=True\)"):
        pt.DataLoader(Pairs(), batch_size=8, shuffle=True)
    for word, of_loader, of_dataset in [
        ("num_workers", "it is threads", "it is workers=2, processes, where the items' code holds the GIL for long"),
        ("sampler", "it is .sample(weights) or .select(numbers) of the plan", "make the plan yourself: DataLoader(ps.Dataset(data).sample(weights).batch(8))"),
        ("generator", "it is .seed(7) of the plan", "it is seed"),
        ("pin_memory", "leave it out: batches for GPUs are always pinned", "leave it out: batches for GPUs are always pinned"),
        ("prefetch_factor", "it is depth", "it is depth"),
        ("collate_fn", "it is collate", "it is collate"),
        ("shufle", "it is .shuffle() of the plan", "did you mean 'shuffle'?"),
    ]:
        with pytest.raises(TypeError, match=re.escape(f"DataLoader() has no option '{word}': {of_loader}")):
            pt.DataLoader(plan(), **{word: 1})
        with pytest.raises(TypeError, match=re.escape(f"from_dataset() has no option '{word}': {of_dataset}")):
            pt.from_dataset(Pairs(), 4, **{word: 1})
    for word in inspect.signature(torch.utils.data.DataLoader).parameters:
        if word != "dataset":
            with pytest.raises(TypeError, match=re.escape(f"DataLoader() has no option '{word}': {OF_TORCH_LOADER[word]}")):
                pt.DataLoader(plan(), **{word: 1})
        if word not in ("dataset", "batch_size", "shuffle", "drop_last"):
            with pytest.raises(TypeError, match=re.escape(f"from_dataset() has no option '{word}': {OF_FROM_DATASET[word]}")):
                pt.from_dataset(Pairs(), 4, **{word: 1})
    with pytest.raises(TypeError, match=r"DataLoader\(\) takes 1 argument by position \(dataset\); if the next one is the batch_size .*: it is the plan's: .batch\(256\)"):
        pt.DataLoader(plan(), 256)
    with pytest.raises(TypeError, match=r"takes 2 arguments by position \(dataset, batch_size\); if the next one is the shuffle .*: shuffle=..."):
        pt.from_dataset(Pairs(), 256, True)
    for word, of_loader in [("shuffle", "it is .shuffle() of the plan"), ("batch_size", "it is the plan's: .batch(256) at its end")]:
        with pytest.raises(TypeError, match=re.escape(f"DataLoader() has no option '{word}': {of_loader}")):
            pt.DataLoader(plan(), **{word: 1})


def test_what_the_answers_say_to_write_runs():
    data = Pairs()
    assert len(pt.DataLoader(ps.Dataset(data, names=["x", "y"]).sample(torch.ones(22), count=8).batch(8), devices="host:1")) == 1
    assert len(pt.DataLoader(ps.Dataset(data, names=["x", "y"]).select(torch.arange(9)).batch(8), threads=1, depth=1, devices="host:1")) == 2
    assert len(pt.from_dataset(data, 8, shuffle=True, workers=1, seed=7, devices="host:1")) == 3


def test_tensors_are_taken_where_numbers_are():
    source = numbers(5)
    assert repr(source.select(torch.tensor([4, 0]))) == repr(source.select([4, 0]))
    for weights in (torch.tensor([1.0, 2, 3, 4, 5]), torch.tensor([1, 2, 3, 4, 5]), torch.tensor([1.0, 2, 3, 4, 5], dtype=torch.float16, requires_grad=True)):
        assert repr(source.sample(weights, seed=1)) == repr(source.sample([1.0, 2, 3, 4, 5], seed=1))
    assert repr(source.take(torch.tensor(3)).batch(torch.tensor(2))) == repr(source.take(3).batch(2))
    with pytest.raises(TypeError, match=r"select\(\): 'positions' \[0\] must be an integer, found tensor\(True\)"):
        source.select(torch.tensor([True, False]))
    with pytest.raises(TypeError, match=r"sample\(\): 'weights' \[0\] must be a number, found"):
        source.sample(torch.ones(5, 2))


def test_every_dtype_of_torch_stays_so_or_is_refused_by_name():
    kept = "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64 bool".split()
    for name in kept:
        values = torch.ones(2, 3).to(getattr(torch, name))
        (batch,) = pt.from_dataset([{"x": row} for row in values], 2, devices="host:1")
        assert batch["x"].dtype == values.dtype and torch.equal(batch["x"], values), name
    for name in ("complex64", "float8_e4m3fn"):
        with pytest.raises(ValueError, match=f"(?i)'x' of item 0, a Tensor, makes no array.*{name}"):
            pt.from_dataset([{"x": torch.ones(2).to(getattr(torch, name))}], 1)


def test_a_map_style_data_set_is_shuffled_dropped_and_resumed():
    def loader():
        return pt.from_dataset(Pairs(), 4, shuffle=True, seed=1, drop_last=True, devices="host:1", copy=("0", "1"))

    passes = [[y.tolist() for _, y in one] for one in [loader()] for _ in range(2)]
    assert all(len(one) == 5 for one in passes) and passes[0] != passes[1]
    first = loader()
    begin = [y.tolist() for _, (_, y) in zip(range(2), first)]
    other = loader()
    other.load_state_dict(first.state_dict())
    assert begin + [y.tolist() for _, y in other] == passes[0]


def test_bfloat16_goes_through_memory_and_items():
    pytest.importorskip("ml_dtypes", reason="numpy's bfloat16 is in ml_dtypes")
    values = torch.arange(6).reshape(3, 2).to(torch.bfloat16)
    for dataset in (ps.memory({"x": values}), ps.Dataset([{"x": row} for row in values])):
        assert str(dataset.fields[0]) == "x bf16 [2]"
        assert torch.equal(torch.from_dlpack(next(dataset.batch(3).loader())["x"]), values)


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
    assert [[part["number"][:, 0].tolist() for part in step] for step in loader] == [
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


def test_an_empty_dataset_is_refused():
    with pytest.raises(ValueError, match=r"would deliver nothing: take\(0\) leaves none of 4 samples"):
        pt.DataLoader(numbers(4).take(0).batch(2), devices="host:1")


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
parts = dict(found.get() for _ in both)
for process in both: process.join()
import penstock as ps
plan = ps.memory({{"x": np.arange(16)}}).seed(1).shuffle().batch(4)
whole = [step["x"].numpy().tolist() for step in plan.prefetch_to_devices("host:1", depth=8).loader()]
assert [a + b for a, b in zip(parts[0], parts[1])] == whole, (parts, whole)
"""
    )
