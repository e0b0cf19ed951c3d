"""Which samples there are, and of which class, by the values of columns: compared with pyarrow's own."""

from __future__ import annotations

import functools
import operator
import pickle
import random
import shutil
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from tfrecords import example, write_tfrecord

import penstock as ps

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = 997
FIRST_DAY = date(2020, 2, 27)


def table(rows: int = ROWS, seed: int = 1) -> pa.Table:
    """Columns of every kind with nulls, and an image that no condition is about."""
    rng = random.Random(seed)

    def some(make) -> list:
        return [None if rng.random() < 0.1 else make() for _ in range(rows)]

    return pa.table(
        {
            "number": pa.array(range(rows), pa.int64()),
            "score": pa.array(some(lambda: rng.choice([0.1, 0.25, 0.3, 0.9, float("nan"), -1.0])), pa.float32()),
            "price": pa.array(some(lambda: rng.choice([0.1, 2.0**53, -0.5, 3.0])), pa.float64()),
            "width": pa.array(some(lambda: rng.randrange(250, 260)), pa.int32()),
            "id": pa.array(some(lambda: 2**64 - 1 - rng.randrange(4)), pa.uint64()),
            "key": pa.array(some(lambda: rng.choice([2**53, 2**53 + 1, -(2**63), 5])), pa.int64()),
            "day": pa.array(some(lambda: FIRST_DAY + timedelta(rng.randrange(10))), pa.date32()),
            "text": pa.array(some(lambda: rng.choice(["", "cat", "cats", "dog", "it's", "é", "z" * 40])), pa.string()),
            "ok": pa.array(some(lambda: rng.random() < 0.5), pa.bool_()),
            "box": pa.array(some(lambda: {"left": rng.choice([None, 1, 2, 3]), "top": 1}), pa.struct([("left", pa.int16()), ("top", pa.int16())])),
            "an odd name": pa.array(some(lambda: rng.randrange(3)), pa.uint8()),
            "image": pa.array([bytes([k % 256]) * 50 for k in range(rows)], pa.binary()),
        }
    )


DATA = table()


@pytest.fixture(scope="module", params=["parquet", "uncompressed", "arrow", "table"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ps.Dataset:
    folder = tmp_path_factory.mktemp("where")
    if request.param == "table":
        return ps.arrow_table(DATA)
    if request.param == "arrow":
        with pa.OSFile(str(folder / "a.arrow"), "wb") as file, pa.ipc.new_file(file, DATA.schema) as writer:
            writer.write_table(DATA, max_chunksize=300)
        return ps.arrow(folder / "a.arrow")
    plain = {"compression": "none", "use_dictionary": False} if request.param == "uncompressed" else {}
    pq.write_table(DATA.slice(0, 600), folder / "a.parquet", row_group_size=170, data_page_size=500, **plain)
    pq.write_table(DATA.slice(600), folder / "b.parquet", **plain)
    return ps.parquet(folder)


def numbers(plan: ps.Dataset) -> list[int]:
    return plan.column("number").tolist()


field = pc.field


def among(name: str, values: list):
    """As SQL's IN; of a null pyarrow's isin says that it is not there."""
    return functools.reduce(operator.or_, [field(name) == value for value in values])


DAYS = (FIRST_DAY - date(1970, 1, 1)).days
# Each with pyarrow's own expression. pyarrow compares integers with floats as doubles; those that this changes are below.
CONDITIONS = {
    "score > 0.3 and width >= 256": (field("score") > 0.3) & (field("width") >= 256),
    "score == 0.25 or price <= -0.5": (field("score") == 0.25) | (field("price") <= -0.5),
    "score == 0.1": field("score") == 0.1,  # 0.1 as a float is no 0.1
    "not score > 0.3": ~(field("score") > 0.3),
    "score != score": field("score") != field("score"),
    "score is null": field("score").is_null(),
    "score is not null and not (ok or width < 255)": field("score").is_valid() & ~(field("ok") | (field("width") < 255)),
    "id == 18446744073709551615": field("id") == pa.scalar(2**64 - 1, pa.uint64()),
    "id >= 18446744073709551614": field("id") >= pa.scalar(2**64 - 2, pa.uint64()),
    "id not in (18446744073709551615, 18446744073709551613)": ~among("id", [pa.scalar(2**64 - 1, pa.uint64()), pa.scalar(2**64 - 3, pa.uint64())]),
    "key == 9007199254740993": field("key") == 2**53 + 1,
    "key < -9223372036854775807": field("key") < -(2**63) + 1,
    "key in (5, 9007199254740992)": among("key", [5, 2**53]),
    f"day > {DAYS + 4}": field("day") > FIRST_DAY + timedelta(4),
    "text == 'cat'": field("text") == "cat",
    "text >= \"cats\" and text < 'é'": (field("text") >= "cats") & (field("text") < "é"),
    "text in ('dog', 'it''s', '')": among("text", ["dog", "it's", ""]),
    "text != 'cat'": field("text") != "cat",
    "ok": field("ok"),
    "not ok and text is not null": ~field("ok") & field("text").is_valid(),
    "ok == false": field("ok") == False,  # noqa: E712
    "box.left < 3 or box.left is null": (field("box", "left") < 3) | field("box", "left").is_null(),
    "`an odd name` == 2 OR `box.left` == 1": (field("an odd name") == 2) | (field("box", "left") == 1),
    "width < number": field("width") < field("number"),
    "image is not null and number >= 990": field("number") >= 990,
}  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_rows_that_pyarrow_filters(stored: ps.Dataset, condition: str) -> None:
    expected = DATA.filter(CONDITIONS[condition])["number"].to_pylist()
    assert 0 < len(expected) < ROWS or condition == "score == 0.1"
    if not expected:
        with pytest.raises(ValueError, match=rf"none of {ROWS} samples satisfies: {condition}"):
            stored.where(condition)
        return
    chosen = stored.where(condition)
    assert numbers(chosen) == expected and len(chosen) == len(expected)
    # The same wherever it stands.
    order = list(range(0, ROWS, 3)) + [5, 5]
    if some := [number for number in order if number in set(expected)]:
        assert numbers(stored.select(order).where(condition)) == some
    joined = ps.concatenate([stored.skip(500), stored.take(500)])
    assert sorted(numbers(joined.where(condition))) == expected


def test_random_conditions_as_pyarrow_has_them(stored: ps.Dataset) -> None:
    rng = random.Random(7)
    simple = [(text, own) for text, own in CONDITIONS.items() if "image" not in text and text != "score == 0.1"]

    def make(depth: int):
        if depth == 0:
            return rng.choice(simple)
        kind, (left, left_own) = rng.choice(["and", "or", "not"]), make(depth - 1)
        if kind == "not":
            return f"not ({left})", ~left_own
        right, right_own = make(depth - 1)
        return f"({left}) {kind} ({right})", left_own & right_own if kind == "and" else left_own | right_own

    for _ in range(40):
        condition, own = make(rng.randrange(1, 4))
        expected = DATA.filter(own)["number"].to_pylist()
        if expected:
            assert numbers(stored.where(condition)) == expected, condition
        else:
            with pytest.raises(ValueError, match="none of"):
                stored.where(condition)


def test_integers_and_floats_are_compared_exactly() -> None:
    data = ps.arrow_table(pa.table({"number": pa.array([0, 1, 2]), "a": pa.array([2**53 - 1, 2**53, 2**53 + 1]), "b": pa.array([2.0**53] * 3)}))
    assert numbers(data.where("a == 9007199254740992.0")) == [1]
    assert numbers(data.where("a > b")) == [2] and numbers(data.where("b > a")) == [0]


def test_columns_as_pyarrow_has_them(stored: ps.Dataset) -> None:
    for name in ("score", "price", "width", "id", "key", "ok", "an odd name", "text"):
        full = stored.where(f"`{name}` is not null")
        expected = DATA[name].drop_null()
        found = full.column(name)
        if name == "text":
            assert found == expected.to_pylist()
            continue
        np.testing.assert_array_equal(found, expected.to_numpy())
        assert found.dtype == expected.to_numpy().dtype
        np.testing.assert_array_equal(full.select([7, 3, 3]).column(name), expected.to_numpy()[[7, 3, 3]])
    days = stored.where("day is not null").column("day")
    assert days.dtype == np.int32 and days.tolist() == DATA["day"].drop_null().cast(pa.int32()).to_pylist()
    assert stored.where("box.left is not null").column("box.left").tolist() == [one["left"] for one in DATA["box"].to_pylist() if one and one["left"]]
    row = DATA["score"].to_pylist().index(None)
    with pytest.raises(ps.Error, match=rf"column: .*:? ?{row}.*column 'score': the value is null"):
        stored.column("score")


def test_a_null_with_a_default_value(tmp_path: Path) -> None:
    pq.write_table(pa.table({"score": pa.array([0.5, None, -1.0]), "name": pa.array(["a", None, ""])}), tmp_path / "a.parquet")
    columns = [ps.TableColumn("score", required=False, default_value=-1), ps.TableColumn("name", required=False)]
    for data in (ps.parquet(tmp_path / "a.parquet", columns=columns), ps.arrow_table(pq.read_table(tmp_path / "a.parquet"), columns=columns)):
        assert data.column("score").tolist() == [0.5, -1, -1] and data.column("name") == ["a", "", ""]
        # A condition sees what the table has.
        assert data.where("score == -1").column("name") == [""] and len(data.where("score is null")) == 1
        assert data.where("name == ''").column("score").tolist() == [-1] and data.where("name is null").column("score").tolist() == [-1]


def test_only_what_is_needed_is_read(tmp_path: Path) -> None:
    rows = 4000
    image = pa.array([np.random.default_rng(k).bytes(5000) for k in range(rows)], pa.binary())
    scores = np.random.default_rng(1).random(rows, np.float32)
    pq.write_table(pa.table({"image": image, "score": scores}), tmp_path / "a.parquet", compression="none", use_dictionary=False)
    data = ps.parquet(tmp_path / "a.parquet")

    def bytes_read() -> int:
        counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
        return int(counters["rchar"])

    if not Path("/proc/self/io").exists():
        pytest.skip("needs /proc/self/io")
    before = bytes_read()
    chosen = data.where("score > 0.5")
    assert bytes_read() - before < 1 << 20  # of 20 MB
    np.testing.assert_array_equal(chosen.column("score"), scores[scores > 0.5])
    assert bytes_read() - before < 1 << 20
    folder = tmp_path / "photos"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        for k in range(20):
            (folder / name / f"{k}.jpg").write_bytes(bytes(100_000))
    images = ps.image_folder(folder)
    shutil.rmtree(folder)  # no file is opened
    assert len(images.where("label == 1")) == 20 and images.column("label").tolist() == [0] * 20 + [1] * 20


def test_it_travels_and_resumes_at_every_step(tmp_path: Path) -> None:
    rows = 3000  # whose list lies beside the plan
    pq.write_table(pa.table({"number": pa.array(range(rows)), "score": np.random.default_rng(1).random(rows)}), tmp_path / "a.parquet")
    data = ps.parquet(tmp_path / "a.parquet")
    chosen = data.where("score > 0.4")
    assert repr(chosen).endswith(".where('score > 0.4')")
    plan = chosen.seed(3).shuffle().batch(128)
    plan.save(tmp_path / "plan.json")
    assert any(path.name.startswith("penstock-list-") for path in tmp_path.iterdir())
    assert "score > 0.4" in (tmp_path / "plan.json").read_text()
    loader = plan.loader(digest=True)
    states, digests = [loader.state_dict()], []
    for step in loader:
        digests.append(step.digest)
        states.append(loader.state_dict())
    assert len(digests) > 10
    for other in (ps.Dataset.load(tmp_path / "plan.json"), pickle.loads(pickle.dumps(plan)), ps.Dataset.from_json(plan.to_json())):
        assert repr(other) == repr(plan)
        for k, state in enumerate(states):
            resumed = other.loader(digest=True)
            resumed.load_state_dict(state)
            assert [step.digest for step in resumed] == digests[k:]
    # A condition that chooses other rows is another plan.
    with pytest.raises(ps.Error, match="another plan"):
        data.where("score > 0.5").seed(3).shuffle().batch(128).loader().load_state_dict(states[1])


def test_every_source_has_columns(tmp_path: Path) -> None:
    arrays = ps.memory({"x": np.arange(10.0), "k": np.arange(10) % 3})
    assert arrays.where("x >= 2 and k == 0").column("x").tolist() == [3, 6, 9]
    items = ps.Dataset([{"x": k, "name": f"n{k % 2}"} for k in range(8)])
    assert items.where("name == 'n1'").column("x").tolist() == [1, 3, 5, 7]
    assert items.column("name") == ["n0", "n1"] * 4
    two = ps.zip([arrays, ps.memory({"y": np.arange(9, -1, -1)})])
    assert two.where("x > y").column("y").tolist() == [4, 3, 2, 1, 0]
    assert ps.zip([arrays.rename({"x": ["x", "same"]}), ps.memory({"y": np.arange(10)})]).where("same < 1 or y == 9").column("x").tolist() == [0, 9]
    decoded = ps.synthetic_images(6).map(ps.decode_image(crop=ps.center_crop(8)))
    assert len(decoded.where("label >= 0")) == 6  # of the source, whatever maps make of it


def test_rows_that_are_packed_have_their_documents_whole(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["abcdef", "gh", "ijk"]}), tmp_path / "a.parquet", compression="none", use_dictionary=False)
    packed = ps.parquet(tmp_path / "a.parquet").pack(4, field="text", labels_across_documents=True)
    assert len(packed.where("tokens is not null")) == len(packed)


def test_bytes_that_are_no_text_are_kept() -> None:
    data = ps.arrow_table(pa.table({"id": pa.array([b"\xff\x00", b"ok"], pa.binary())}))
    first, second = data.column("id")
    assert first.encode("utf-8", "surrogateescape") == b"\xff\x00" and second == "ok"


def test_classes_groups_and_weights_by_the_name_of_a_field(stored: ps.Dataset) -> None:
    columns = ["score", "price", "width", "id", "key", "day", "text", "ok", "box.left", "box.top", "an odd name"]
    data = stored.where(" and ".join(f"`{name}` is not null" for name in columns))
    texts, keys = data.column("text"), data.column("key")

    def parts(**options) -> list[list[int]]:
        return [numbers(part) for part in data.split(0.8, seed=4, **options)]

    assert parts(by="text") == parts(by=texts) != parts()
    assert parts(by="key") == parts(by=keys)
    assert parts(group="width") == parts(group=data.column("width"))
    train, valid = data.split(0.8, group="width")
    assert not set(train.column("width")) & set(valid.column("width"))
    named = data.split({"train": 0.8, "valid": 0.2}, seed=4, by="text")
    assert list(named) == ["train", "valid"] and [numbers(part) for part in named.values()] == parts(by="text")
    with pytest.raises(ValueError, match="classes and groups are integers or texts, found price f64"):
        data.split(0.8, by="price")

    def drawn(weights) -> list[int]:
        plan = data.map(ps.pad("text", 64)).map(ps.pad("image", 64)).seed(2).sample(weights, count=200).batch(50)
        return [sample.number for step in plan.loader() for sample in step.samples]

    assert drawn("width") == drawn(data.column("width").astype(float))
    with pytest.raises(ValueError, match=r"sample: a weight is 0 or more and finite, and 'price' is -0.5 in "):
        data.sample("price")
    with pytest.raises(ValueError, match="weights are numbers, and 'text' has texts"):
        data.sample("text")
    with pytest.raises(TypeError, match="weights"):
        data.sample(3)


def test_errors_name_the_place(stored: ps.Dataset) -> None:
    for condition, because in [
        ("scor > 3", r"the records have no field 'scor': they have number i64 \[\], score f32 \[\]"),
        ("width > 3 and text < 4", r"text is a text, and 4 is a number: they cannot be compared \(at character 22 of: "),
        ("box > 1", "no field 'box'"),
        ("width > 10000", f"none of {ROWS} samples satisfies: width > 10000"),
        ("width = 3", "found =: write '=='"),
        ("score > nan", "no field 'nan'"),
    ]:
        with pytest.raises(ValueError, match=because):
            stored.where(condition)
    with pytest.raises(ValueError, match="put it before shuffle"):
        stored.shuffle().where("ok")
    with pytest.raises(TypeError, match="condition"):
        stored.where(lambda row: True)


def test_a_damaged_page_is_named_and_not_taken_for_no(tmp_path: Path) -> None:
    pq.write_table(pa.table({"score": np.arange(1000.0), "ok": [True] * 1000}), tmp_path / "a.parquet", compression="zstd", use_dictionary=False)
    at = pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0).column(0).data_page_offset
    damaged = bytearray((tmp_path / "a.parquet").read_bytes())
    damaged[at + 60 : at + 90] = bytes(30)
    (tmp_path / "a.parquet").write_bytes(damaged)
    data = ps.parquet(tmp_path / "a.parquet")
    with pytest.raises(ps.Error, match=r"where: .*a\.parquet.*column 'score'"):
        data.where("score > 3")
    with pytest.raises(ps.Error, match=r"column: .*a\.parquet.*column 'score'"):
        data.column("score")
    assert len(data.where("ok")) == 1000


def test_missing_numbers_of_csv_are_nulls(tmp_path: Path) -> None:
    for k in range(4):
        (tmp_path / f"{k}.jpg").write_bytes(b"x")
    (tmp_path / "t.csv").write_text("file,label,age\n0.jpg,0,5\n1.jpg,1,\n2.jpg,0,50\n3.jpg,1,\n")
    column = ps.TableColumn("age", required=False, default_value=0)
    data = ps.images_from(tmp_path / "t.csv", columns=[column])
    assert data.column("age").tolist() == [5, 0, 50, 0]
    kept = {condition: data.where(condition).column("age").tolist() for condition in ("age < 10", "age is null", "age is not null")}
    assert kept == {"age < 10": [5], "age is null": [0, 0], "age is not null": [5, 50]}


def test_lists_that_a_tfrecord_lacks_are_nulls(tmp_path: Path) -> None:
    write_tfrecord(tmp_path / "a.tfrecord", [example({"n": [k], **({"tokens": list(range(k))} if k % 2 else {})}) for k in range(4)])
    data = ps.tfrecord(tmp_path / "a.tfrecord", fields=[
        ps.ExampleField("n", "n", dtype="i64"), ps.ExampleField("tokens", "tokens", dtype="i64", shape=(None,), required=False)])
    assert data.where("tokens is null").column("n").tolist() == [0, 2]
    assert data.where("tokens is not null").column("n").tolist() == [1, 3]


def test_halves_are_weights() -> None:
    data = ps.memory({"w": np.array([0, 1, 3], dtype=np.float16)})
    by_hand = data.sample(weights=[0.0, 1.0, 3.0], count=20, seed=1)
    assert [i.number for s in data.sample(weights="w", count=20, seed=1).batch(20).loader() for i in s.samples] == [
        i.number for s in by_hand.batch(20).loader() for i in s.samples]


def test_a_second_condition_of_shards_is_named() -> None:
    data = ps.memory({"x": np.arange(20)}).where("x > 2")
    context = ps.InputContext(num_input_pipelines=2, input_pipeline_id=0)
    assert data.seed(1).batch(2).loader(context=context, mode="per_worker")
    with pytest.raises(ValueError, match="a second where goes by positions .* one where, with 'and'"):
        data.where("x < 9").batch(2).loader(context=context, mode="per_worker")
