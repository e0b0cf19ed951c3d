"""Token files, blocks and packed rows."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import re
from pathlib import Path

import numpy as np
import penstock as ps
import pytest
from conftest import evaluate


def numbers(loader, field="tokens"):
    return np.concatenate([step[field].numpy().copy() for step in loader])


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A file as nanoGPT's prepare.py makes it: seven documents that end with 0."""
    draw = np.random.default_rng(7)
    parts = [np.append(draw.integers(1, 60000, length), 0) for length in (3, 9, 1, 30, 12, 5, 7)]
    np.concatenate(parts).astype(np.uint16).tofile(tmp_path / "train.bin")
    return tmp_path / "train.bin"


def test_blocks_are_the_file_cut_up(texts):
    tokens = np.fromfile(texts, dtype=np.uint16).astype(np.int64)
    plan = ps.token_files(texts).blocks(8)
    count = (len(tokens) - 1) // 8
    assert len(plan) == count
    assert [(field.name, field.dtype, field.shape) for field in plan.fields] == [("tokens", "i64", (8,)), ("labels", "i64", (8,))]
    assert (numbers(plan.batch(4).loader()) == tokens[: 8 * count].reshape(-1, 8)).all()
    assert (numbers(plan.batch(4).loader(), "labels") == tokens[1 : 8 * count + 1].reshape(-1, 8)).all()


def test_every_window_as_nanogpt_draws_them(texts):
    tokens = np.fromfile(texts, dtype=np.uint16)
    plan = ps.token_files(texts).blocks(8, stride=1, dtype="u16", labels=False)
    assert (numbers(plan.batch(16).loader()) == np.lib.stride_tricks.sliding_window_view(tokens, 8)).all()


def documents_of(texts):
    tokens = np.fromfile(texts, dtype=np.uint16).astype(np.int64)
    ends = np.flatnonzero(tokens == 0) + 1
    return np.split(tokens, ends[:-1])


def test_rows_hold_every_document_once(texts):
    plan = ps.token_files(texts, document_end=0).pack(16)
    step = next(iter(plan.batch(len(plan)).loader()))
    batch = {name: step[name].numpy().copy() for name in ("tokens", "labels", "positions", "segment_ids")}
    found = []
    for row in range(len(plan)):
        for segment in range(1, batch["segment_ids"][row].max() + 1):
            places = np.flatnonzero(batch["segment_ids"][row] == segment)
            assert (batch["positions"][row, places] == np.arange(len(places))).all()
            found.append(batch["tokens"][row, places].tolist())
    whole = [list(one) for one in documents_of(texts)]
    expected = [one for one in whole if len(one) <= 16] + [whole[3][:16], whole[3][16:]]
    assert sorted(found) == sorted(expected)
    # Every token but the first of a document is a label once.
    labels = np.sort(batch["labels"][batch["labels"] != -100])
    assert (labels == np.sort(np.concatenate([one[1:] for one in documents_of(texts)]))).all()
    packed = plan.packed
    assert (packed.rows, packed.documents, packed.tokens, packed.dropped) == (len(plan), 7, 74, 0)
    assert packed.padding_fraction == pytest.approx(1 - 74 / (16 * len(plan)))
    assert "padding_fraction=" in repr(packed)
    assert ps.token_files(texts).packed is None


def test_the_other_outputs(texts):
    outputs = ("cu_seqlens", "max_seqlen", "loss_mask")
    plan = ps.token_files(texts, document_end=0).pack(40, outputs=outputs, method="wrap", dtype="i32")
    assert [field.name for field in plan.fields] == list(outputs)
    step = next(iter(plan.batch(2).loader()))
    assert step["cu_seqlens"].numpy().tolist() == [[0, 4, 14, 16, 40, 40], [0, 7, 20, 26, 34, 40]]
    assert step["max_seqlen"].numpy().tolist() == [24, 13]
    assert step["loss_mask"].numpy().sum() == 74 - 7


class Offsets:
    def __array__(self, dtype=None, copy=None):
        return np.array([0, 4, 4, 10])


def test_megatron_and_documents(tmp_path):
    golden = Path(__file__).parents[2] / "tests" / "source" / "golden"
    plan = ps.megatron(golden / "megatron_u16")
    tokens, offsets = np.arange(10, dtype=np.int32), np.array([0, 4, 4, 10])
    assert len(plan) == 6
    lines = [list(map(int, line.split())) for line in (golden / "megatron_u16.txt").read_text().split("\n")[:-1]]
    row = numbers(plan.pack(512, method="first_fit").batch(1).loader())[0]
    assert row[: sum(map(len, lines))].tolist() == list(itertools.chain(*lines))
    memory = ps.documents(tokens, offsets)
    assert numbers(memory.pack(6).batch(2).loader()).tolist() == [[4, 5, 6, 7, 8, 9], [0, 1, 2, 3, 0, 0]]
    with pytest.raises(ValueError, match="found 2 after 3"):
        ps.documents(tokens, [0, 3, 2])
    for form in (np.uint64, np.int32, np.uint8):  # of numpy, or of another library that has __array__
        assert len(ps.documents(tokens, offsets.astype(form))) == 3
    assert len(ps.documents(tokens, Offsets())) == 3
    with pytest.raises(TypeError, match=r"'offsets' \[0\] must be an integer"):
        ps.documents(tokens, ["a"])


class Tokenised:
    """As a tokenised Hugging Face data set gives its items."""

    def __len__(self):
        return 5

    def __getitem__(self, number):
        return {"input_ids": list(range(10 * number, 10 * number + number + 2)), "number": number}


def test_any_data_set_whose_lengths_are_known():
    plan = ps.Dataset(Tokenised(), lengths=[2, 3, 4, 5, 6]).pack(8, field="input_ids")
    rows = numbers(plan.batch(3).loader())
    assert rows.tolist() == [[0, 1, 40, 41, 42, 43, 44, 45], [10, 11, 12, 30, 31, 32, 33, 34], [20, 21, 22, 23, 0, 0, 0, 0]]
    for again in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
        assert (numbers(again.batch(3).loader()) == rows).all()
    with pytest.raises(ps.Error, match="its length is not known"):
        ps.Dataset(Tokenised()).pack(8, field="input_ids")
    with pytest.raises(ValueError, match="lengths has 2 numbers, and there are 5 items"):
        ps.Dataset(Tokenised(), lengths=[1, 2])
    with pytest.raises(ValueError, match="from 0 on, found -1"):
        ps.Dataset(Tokenised(), lengths=[1, 2, 3, 4, -1])
    # Three items of one length by chance: lengths say that others differ.
    class Alike(Tokenised):
        def __getitem__(self, number):
            return [number] * (4 if number in (0, 2, 4) else 2)

    assert len(ps.Dataset(Alike(), lengths=[4, 2, 4, 2, 4]).pack(16, field="item")) == 1
    wrong = ps.Dataset(Tokenised(), lengths=[2, 3, 4, 5, 7]).pack(8, field="input_ids").batch(1).loader()
    with pytest.raises(ps.DataError, match=r"Tokenised\[4\].*is i64 \[6\] here, and i64 \[7\]"):
        list(wrong)


def test_plans_travel_and_print(texts):
    for plan in (
        ps.token_files(texts, document_end=0).pack(16, seed=3, outputs=["tokens", "cu_seqlens"], dtype="i32"),
        ps.token_files(texts).blocks(8, stride=4),
    ):
        plan = plan.shuffle(seed=1).batch(3)
        again = ps.Dataset.from_json(plan.to_json())
        assert (numbers(again.loader()) == numbers(plan.loader())).all()
        shown = repr(plan)
        assert shown.startswith(f"token_files(files=[{str(texts)!r}]")
        assert json.loads(evaluate(shown).to_json()) == json.loads(plan.to_json())


@pytest.mark.parametrize(
    "make, why",
    [
        (lambda plan: plan.pack(16, method="best"), "method must be one of 'best_fit', 'first_fit', 'wrap'"),
        (lambda plan: plan.pack(16, outputs=["token"]), "outputs must be one of 'tokens', 'labels'"),
        (lambda plan: plan.pack(16, outputs=[]), "rows need an output"),
        (lambda plan: plan.shuffle().pack(16), "right behind the source, before shuffle"),
        (lambda plan: plan.blocks(0), "a length from 1"),
    ],
)
def test_what_cannot_be_is_said(texts, make, why):
    with pytest.raises(ValueError, match=re.escape(why)):
        make(ps.token_files(texts))


def test_resumed_in_the_middle(texts):
    plan = ps.token_files(texts, document_end=0).pack(10).shuffle(seed=1).repeat(3).batch(2)
    whole = [step["tokens"].numpy().copy() for step in plan.loader()]
    loader = plan.loader()
    for _ in range(5):
        next(loader)
    state = loader.state_dict()
    again = plan.loader()
    again.load_state_dict(state)
    rest = [step["tokens"].numpy().copy() for step in again]
    assert len(rest) == len(whole) - 5
    assert all((a == b).all() for a, b in zip(rest, whole[5:]))


class Random(Tokenised):
    def __getitem__(self, number):
        import random

        return [number, random.randrange(10**9)]


def test_each_document_has_random_numbers_of_its_own():
    plan = ps.Dataset(Random(), lengths=[2] * 5, workers=2).pack(10, field="item").repeat(2).batch(1)
    first, second = (numbers(plan.seed(3).loader()) for _ in range(2))
    assert (first == second).all()
    assert len(set(first[:, 1::2].flatten().tolist())) == 10  # five documents in two epochs


def test_a_label_mask_may_be_truth_values():
    tokens = {"tokens": [1, 2, 3], "answer": [False, True, True]}

    def labels(answer):
        plan = ps.Dataset([{**tokens, "answer": answer}], lengths=[3]).pack(4, label_mask="answer", outputs=["labels", "loss_mask"])
        step = next(iter(plan.batch(1).loader()))
        return step["labels"].numpy().tolist(), step["loss_mask"].numpy()

    found, loss = labels([False, False, True])
    assert found == labels([0, 0, 1])[0] == [[-100, 3, -100, -100]]
    assert loss.dtype == np.bool_ and loss.tolist() == [[False, True, False, False]]
    with pytest.raises(ValueError, match="label_mask: expected a field 'answer' of integers"):
        labels([0.0, 0.0, 1.0])


def test_labels_for_models_that_shift_them():
    plan = ps.documents(np.array([1, 2, 3, 4, 5], np.int32), [0, 2, 5]).pack(6, shift_labels=False, outputs=["tokens", "labels", "loss_mask"])
    step = next(iter(plan.batch(1).loader()))
    assert step["tokens"].numpy().tolist() == [[1, 2, 3, 4, 5, 0]]
    assert step["labels"].numpy().tolist() == [[-100, 2, -100, 4, 5, -100]]
    assert step["loss_mask"].numpy().tolist() == [[0, 1, 0, 1, 1, 0]]


def test_packed_data_sets_with_cu_seqlens_can_be_mixed():
    def packed(lengths, **options):
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return ps.documents(np.arange(offsets[-1], dtype=np.int32), offsets).pack(6, outputs=["tokens", "cu_seqlens"], **options)

    with pytest.raises(ValueError, match="cu_seqlens"):
        ps.mix([packed([6]), packed([2, 2, 2])])
    mixed = ps.mix([packed([6], max_documents_per_row=3), packed([2, 2, 2], max_documents_per_row=3)], until="all_exhausted").seed(1)
    assert sorted(numbers(mixed.batch(2).loader(), "cu_seqlens").tolist()) == [[0, 2, 4, 6, 6], [0, 6, 6, 6, 6]]
    assert mixed.packed is None
    with pytest.raises(ps.Error, match="a row has 3 documents, and max_documents_per_row is 2"):
        packed([2, 2, 2], max_documents_per_row=2)


def test_bytes_read_are_those_of_the_pieces(texts):
    for plan in (ps.token_files(texts).pack(10), ps.token_files(texts, document_end=0).pack(10), ps.token_files(texts).blocks(37, labels=False)):
        loader = plan.batch(4).loader()
        for _ in loader:
            pass
        assert loader.stats().bytes_read == 2 * 74
    loader = ps.documents(np.arange(74), [0, 74]).pack(10).batch(4).loader()
    for _ in loader:
        pass
    assert loader.stats().bytes_read == 0


def test_other_lengths_are_other_data():
    tokens = np.arange(10)
    loader = ps.documents(tokens, [0, 4, 10]).pack(6).batch(1).loader()
    state = loader.state_dict()
    with pytest.raises(ps.Error, match="pack"):
        ps.documents(tokens, [0, 6, 10]).pack(6).batch(1).loader().load_state_dict(state)


def by_length(texts, **options):
    return ps.token_files(texts, document_end=0).batch_by_length([4, 10, 32], tokens=64, seed=3, **options)


def test_batches_by_length_hold_every_document_once(texts):
    plan = by_length(texts)
    assert [(one.edge, one.rows, one.samples) for one in plan.buckets.buckets] == [(4, 16, 2), (10, 6, 3), (32, 2, 2)]
    assert plan.buckets.batches == len(plan) == 3
    assert plan.buckets.dropped == 0
    assert plan.fields[0].shape == (None,)
    found, shapes = [], set()
    for step in plan.loader():
        tokens = step["tokens"].numpy()
        shapes.add(tokens.shape)
        assert step["lengths"].numpy().max() <= tokens.shape[1]
        found += [row[:length].tolist() for row, length in zip(tokens, step["lengths"].numpy(), strict=True)]
        assert all((row[length:] == 0).all() for row, length in zip(tokens, step["lengths"].numpy(), strict=True))
    assert shapes == {(2, 4), (3, 10), (2, 32)}
    assert sorted(found) == sorted(one.tolist() for one in documents_of(texts))
    padded = sum(rows * edge for rows, edge in shapes)
    assert plan.buckets.padding_fraction == pytest.approx(1 - sum(map(len, found)) / padded)


def test_batches_by_length_travel_and_go_on(texts):
    plan = by_length(texts).repeat(3)
    again = pickle.loads(pickle.dumps(ps.Dataset.from_json(plan.to_json())))
    whole = plan.loader(digest=True)
    digests = [step.digest for step in whole]
    loader = again.loader(digest=True)
    iterator = iter(loader)
    first = [next(iterator).digest for _ in range(4)]
    state = loader.state_dict()
    resumed = by_length(texts).repeat(3).loader(digest=True)
    resumed.load_state_dict(state)
    assert first + [step.digest for step in resumed] == digests


def test_batches_by_length_pad_several_fields_of_own_data():
    class Pairs:
        def __init__(self, lengths):
            self.lengths = lengths

        def __len__(self):
            return len(self.lengths)

        def __getitem__(self, index):
            length = self.lengths[index]
            return {"tokens": np.full(length, index + 1), "labels": np.full(length, -index - 1)}

    lengths = [3, 1, 2]
    plan = ps.Dataset(Pairs(lengths), lengths=lengths).batch_by_length(
        [3], rows=[3], fields={"tokens": 0, "labels": -100}, lengths="", shuffle=False
    )
    (step,) = plan.loader()
    assert step["tokens"].numpy().tolist() == [[1, 1, 1], [2, 0, 0], [3, 3, 0]]
    assert step["labels"].numpy().tolist() == [[-1, -1, -1], [-2, -100, -100], [-3, -3, -100]]


def test_batches_by_length_refuse_what_cannot_be(texts):
    documents = ps.token_files(texts, document_end=0)
    with pytest.raises(ps.Error, match="has a length of 31, and the last edge is 30"):
        documents.batch_by_length([30], rows=[2])
    with pytest.raises(ValueError, match="tokens or rows, found both"):
        documents.batch_by_length([40], rows=[2], tokens=100)
    with pytest.raises(ValueError, match="leave shuffle out"):
        documents.shuffle().batch_by_length([40], rows=[2])
    assert documents.batch_by_length([30], rows=[2], long_samples="drop").buckets.dropped == 1
    assert documents.buckets is None
