"""Files that a table names, compared with what programs write around pandas.read_csv; and rows of a table beside samples."""

from __future__ import annotations

import csv
import io
import json
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import bytes_of, run_python

import penstock as ps
from penstock.remote import Processes

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ipc = pytest.importorskip("pyarrow.ipc")

NAMES = ["cats/1.jpg", "cats/2, small.jpg", "dogs/ü 3.jpg", "dogs/4.jpg"]
LABELS = ["cat", "cat", "dog", "dog"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"bytes of " + name.encode())
    return tmp_path


def rows(plan: ps.Dataset, *fields: str) -> list[tuple[Any, ...]]:
    """The bytes and the label of each row, and other fields: texts as str, numbers as they are."""
    ragged = [field.name for field in plan.fields if list(field.shape) == [None]]
    for name in ragged:
        plan = plan.map(ps.pad(name, 64, lengths=f"{name} length"))
    step = next(plan.batch(1000).loader())
    columns = []
    for name in ("image", "label", *fields):
        values = step[name].numpy()
        if name in ragged:
            columns.append([row[:length].tobytes() for row, length in zip(values, step[f"{name} length"].numpy())])
            if name != "image":
                columns[-1] = [text.decode() for text in columns[-1]]
        else:
            columns.append(values.tolist())
    return list(zip(*columns))


EXPECTED = [(b"bytes of " + name.encode(), int(label == "dog")) for name, label in zip(NAMES, LABELS)]


def columns(path: str = "file", label: str = "label") -> dict[str, list[Any]]:
    return {path: NAMES, label: LABELS, "n": [4, 5, 6, 7], "x": [0.5, 1, -2, 3], "note": ["a", "b, c", 'say "d"', ""]}


def write(folder: Path, table: dict[str, list[Any]], form: str) -> Path:
    path = folder / f"table.{form}"
    if form == "parquet":
        pq.write_table(pa.table(table), path)
    elif form == "arrow":
        with ipc.new_file(path, pa.table(table).schema) as writer:
            writer.write_table(pa.table(table))
    else:
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="\t" if form == "tsv" else ",")
            writer.writerow(table)
            writer.writerows(zip(*table.values()))
    return path


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet", "arrow"])
def test_each_form_of_a_table_has_the_same_rows(folder: Path, form: str) -> None:
    path = write(folder, columns(), form)
    plan = ps.images_from(path)
    assert rows(plan) == EXPECTED and plan.class_names == ["cat", "dog"]
    more = ps.images_from(path, columns=["n", ps.TableColumn("real", "x"), "note"])
    assert rows(more, "n", "real", "note") == [(*row, n, x, note) for row, n, x, note in zip(EXPECTED, *list(columns().values())[2:])]
    other = write(folder, columns("path", "breed"), form)
    assert rows(ps.images_from(other, path="path", label="breed")) == EXPECTED
    assert rows(ps.images_from(other, "path", "breed", classes=["dog", "cat"])) == [(row[0], 1 - row[1]) for row in EXPECTED]
    assert [label for _, label in rows(ps.images_from(other, "path", ""))] == [0] * 4
    assert ps.images_from(folder / other.name, "path", "breed").labels().tolist() == [0, 0, 1, 1]


def test_tables_in_memory(folder: Path) -> None:
    table = pa.table(columns())
    assert rows(ps.images_from(table, root=folder)) == EXPECTED
    plan = ps.images_from(table, root=folder, columns=["n", "note"]).seed(1).shuffle()
    again = pickle.loads(pickle.dumps(plan))
    assert rows(again, "n", "note") == rows(plan, "n", "note")
    assert sorted(rows(plan, "n"))[0] == (*EXPECTED[0], 4)
    with pytest.raises(ps.Error, match="has no column 'path'; its columns are file"):
        ps.images_from(table, path="path", root=folder)
    labels = {"label": [str(folder / name) for name in NAMES], "y": [1, 2, 3, 4]}
    assert [label for _, label in rows(ps.images_from(pa.table(labels), "label", "y"))] == [1, 2, 3, 4]
    assert [label for _, label in rows(ps.images_from(pa.table(labels), "label", ""))] == [0] * 4
    for path in (pa.table(labels), write(folder, labels, "csv")):
        with pytest.raises(ValueError, match="the column 'y' is named for both paths and labels"):
            ps.images_from(path, "y", "y")


@pytest.mark.parametrize("given", [NAMES, dict(columns()), 7, None])
def test_what_is_no_table_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match=r"images_from takes the path of a table, .* for files\(paths, labels\)"):
        ps.images_from(given)


class Query:
    """As a relation of DuckDB, whose rows may come in another order each time."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.asked = 0

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        self.asked += 1
        order = list(range(len(self.table)))
        return self.table.take(order if self.asked == 1 else order[::-1]).__arrow_c_stream__()


def test_a_query_is_run_once(folder: Path) -> None:
    query = Query(pa.table(columns()))
    plan = ps.images_from(query, root=folder, columns=["n", "file", ps.TableColumn("file ", "note")])
    assert rows(plan, "n", "file", "file ") == [(*row, n, name, note) for row, n, name, note in zip(EXPECTED, [4, 5, 6, 7], NAMES, columns()["note"])]
    assert query.asked == 1


def test_categories_are_the_classes(folder: Path) -> None:
    kinds = pa.DictionaryArray.from_arrays(pa.array([2, 2, 0, 0]), ["dog", "eel", "cat"])
    table = pa.table({"file": NAMES, "label": kinds})
    plan = ps.images_from(table, root=folder)
    assert plan.class_names == ["dog", "eel", "cat"] and [label for _, label in rows(plan)] == [2, 2, 0, 0]
    two = pa.concat_tables([table, pa.table({"file": NAMES[:1], "label": pa.array(["ant"]).dictionary_encode()}).cast(table.schema)])
    with pytest.raises(ValueError, match="pass classes, or table.unify_dictionaries"):
        ps.images_from(two, root=folder)
    assert ps.images_from(two.unify_dictionaries(), root=folder).class_names == ["dog", "eel", "cat", "ant"]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"file": NAMES, "label": pandas.Categorical(LABELS, categories=["dog", "eel", "cat"])})
    plan = ps.images_from(frame, root=folder)
    assert [label for _, label in rows(plan)] == frame.label.cat.codes.tolist() and plan.class_names == ["dog", "eel", "cat"]


def test_polars_enums_are_the_classes(folder: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"file": NAMES, "label": polars.Series(LABELS, dtype=polars.Enum(["dog", "eel", "cat"]))})
    plan = ps.images_from(frame, root=folder)
    assert [label for _, label in rows(plan)] == frame["label"].to_physical().to_list() and plan.class_names == ["dog", "eel", "cat"]


def test_class_labels_of_hugging_face(folder: Path) -> None:
    features = {"label": {"names": ["dog", "cat"], "_type": "ClassLabel"}, "file": {"dtype": "string", "_type": "Value"}}
    schema = pa.schema([("file", pa.string()), ("label", pa.int64())], {"huggingface": json.dumps({"info": {"features": features}})})
    table = pa.table([NAMES, [1, 1, 0, 0]], schema)
    pq.write_table(table, folder / "t.parquet")
    for plan in (ps.images_from(folder / "t.parquet"), ps.images_from(table, root=folder)):
        assert plan.class_names == ["dog", "cat"] and [label for _, label in rows(plan)] == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ([1, None, 0, 0], pa.int64(), "row 1: the label, in the column 'label', is null; fill it in, or remove the row"),
        ([1.0, 2.5, 0.0, 0.0], pa.float64(), "row 1: the column 'label' is 2.5, and a label is an integer"),
        (["1", "x", "2", "3"], pa.string(), "row 1: the label 'x' is a name, but row 0 has an integer"),
        ([[1], [2], [0], [0]], pa.list_(pa.int64()), "a label is an integer or the name of a class"),
        ([2**63, 1, 1, 1], pa.uint64(), "row 0: the column 'label' is above"),
    ],
)
def test_doubtful_labels_of_tables_are_errors(folder: Path, values: list[Any], kind: Any, message: str) -> None:
    pq.write_table(pa.table({"file": NAMES, "label": pa.array(values, kind)}), folder / "t.parquet")
    with pytest.raises((ps.Error, ValueError), match=message):
        ps.images_from(folder / "t.parquet")


def test_labels_of_every_type(folder: Path) -> None:
    for values, kind in (([3, 2, 1, 0], pa.int8()), ([3, 2, 1, 0], pa.uint64()), ([3, 2, 1, 0], pa.float32()), (["3", "2.0", "1", "0"], pa.string())):
        table = pa.table({"file": NAMES, "label": pa.array(values, kind)})
        assert [label for _, label in rows(ps.images_from(table, root=folder))] == [3, 2, 1, 0]
    table = pa.table({"file": NAMES, "label": [True, False, True, True]})
    assert [label for _, label in rows(ps.images_from(table, root=folder))] == [1, 0, 1, 1]
    with pytest.raises(ps.Error, match="row 2: the path, in the column 'file', is null; fill it in"):
        ps.images_from(pa.table({"file": [*NAMES[:2], None, NAMES[3]], "label": [1] * 4}), root=folder)


def test_ids_get_an_ending(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(bytes([number]))
    table = pa.table({"id": [2, 0, 1], "label": [5, 6, 7]})
    assert rows(ps.images_from(table, "id", ending=".png", root=tmp_path)) == [(b"\x02", 5), (b"\x00", 6), (b"\x01", 7)]
    with pytest.raises(ps.Error, match=r'there is one that ends in .png: pass ending=".png"'):
        ps.images_from(table, "id", root=tmp_path)


def pandas_rows(path: Path, **options: Any) -> tuple[list[str], list[tuple[Any, ...]]]:
    """What a torch Dataset around pandas.read_csv gives: the file's bytes, and the other columns."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(path, keep_default_na=False, **options)
    items = [((path.parent / row.file).read_bytes(), *[getattr(row, name) for name in frame.columns if name != "file"]) for row in frame.itertuples()]
    kinds = ["i64" if dtype.kind == "i" else "f64" if dtype.kind == "f" else "u8" for dtype in frame.drop(columns="file").dtypes]
    return kinds, items


@pytest.mark.parametrize("seed", range(40))
def test_csv_files_of_many_dialects_are_those_of_pandas(tmp_path: Path, seed: int) -> None:
    pytest.importorskip("pandas")
    dice = random.Random(seed)
    delimiter = dice.choice(",;\t|")
    count = dice.randrange(1, 30)
    words = ["a", "Ü", "", " b ", 'q"q', "two\nlines", "semi;colon", "com,ma", "tab\tular", "bar|red", "x.y", "true"]
    files = [f"{dice.choice(['', 'a b/', 'c,d/'])}{number}{dice.choice(['', ';', ' é'])}.bin" for number in range(count)]
    for number, name in enumerate(files):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(bytes([number, 7]))
    makers = {
        "whole": lambda: dice.randrange(-(10**6), 10**6),
        "real": lambda: round(dice.uniform(-5, 5), dice.randrange(1, 9)),
        "word": lambda: dice.choice(words),
        "mixed": lambda: f"{dice.choice('xyz')}{dice.randrange(10)}",
    }
    names = ["file", *dice.sample(list(makers), dice.randrange(1, 5))]
    dice.shuffle(names)
    table = {name: files if name == "file" else [makers[name]() for _ in range(count)] for name in names}
    if "real" in table:
        table["real"][0] = 0.5  # so that the column has a fraction
    if "word" in table:
        table["word"][0] = "a"
    text = io.StringIO()
    quoting = dice.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    writer = csv.writer(text, delimiter=delimiter, lineterminator=dice.choice(["\n", "\r\n"]), quoting=quoting)
    writer.writerow(table)
    writer.writerows(zip(*table.values()))
    path = tmp_path / "table.csv"
    mark = dice.choice(["", "\ufeff"])
    path.write_bytes((mark + text.getvalue()).encode())
    others = [name for name in names if name != "file"]
    plan = ps.images_from(path, label="", columns=others)
    kinds, expected = pandas_rows(path, sep=delimiter, encoding="utf-8-sig")
    assert [str(field.dtype) for field in plan.fields[2:]] == kinds
    assert [(row[0], *row[2:]) for row in rows(plan, *others)] == expected


def test_faults_and_missing_files(folder: Path) -> None:
    path = write(folder, {"file": ["none.jpg", *NAMES], "label": ["dog", *LABELS]}, "csv")
    loader = ps.images_from(path).map(ps.pad("image", 64)).batch(2).loader(on_fault="mask")
    assert [step["valid"].numpy().tolist() for step in loader] == [[0, 1], [1, 1], [1]]
    assert "none.jpg" in str(loader.faults()[0])
    with pytest.raises(ps.Error, match="none of the first 4 files .* looked for .*elsewhere/cats/1.jpg first; .* below root"):
        ps.images_from(write(folder, columns(), "csv"), root=folder / "elsewhere")


def test_a_plan_travels_and_resumes_at_every_step(folder: Path, tmp_path: Path) -> None:
    path = write(folder, columns(), "csv")
    plan = ps.images_from(path, columns=["n"]).map(ps.pad("image", 64)).seed(3).shuffle().repeat(3).batch(3)
    text = plan.to_json()
    assert "cats/1.jpg" not in text and str(path) in text
    assert ps.Dataset.from_json(text).to_json() == text
    assert pickle.loads(pickle.dumps(plan)).describe() == plan.describe()
    whole = plan.loader()
    states, expected = [whole.state_dict()], []
    for step in whole:
        expected.append((step["image"].numpy().tobytes(), step["n"].numpy().tolist()))
        states.append(whole.state_dict())
    assert len(expected) == 4
    for at, state in enumerate(states):
        loader = ps.Dataset.from_json(text).loader()
        loader.load_state_dict(state)
        assert [(step["image"].numpy().tobytes(), step["n"].numpy().tolist()) for step in loader] == expected[at:]
    other = write(folder, {**columns(), "label": LABELS[::-1]}, "csv")
    assert other == path
    with pytest.raises(ps.Error, match="data"):
        ps.images_from(path, columns=["n"]).map(ps.pad("image", 64)).seed(3).shuffle().repeat(3).batch(3).loader().load_state_dict(states[1])


def test_a_table_on_the_hub_names_files_beside_it_and_anywhere(hub: Any, tmp_path: Path) -> None:
    there = tmp_path / "hub"
    for name in NAMES:
        (there / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (there / "data" / name).write_bytes(b"bytes of " + name.encode())
    paths = [NAMES[0], f"hf://datasets/owner/name/data/{NAMES[2]}", NAMES[3]]
    write(there / "data", {"file": paths, "label": ["cat", "dog", "dog"], "n": [1, 2, 3]}, "csv")
    write(there / "data", {"file": paths[::2], "label": ["cat", "dog"], "n": [1, 3]}, "parquet")
    hub.push(there)
    expected = [(*EXPECTED[0], 1), (*EXPECTED[2], 2), (*EXPECTED[3], 3)]
    plan = ps.images_from("hf://datasets/owner/name/data/table.csv", columns=["n"])
    assert rows(plan, "n") == expected
    assert rows(ps.Dataset.from_json(plan.to_json()), "n") == expected
    relative = ps.images_from("hf://datasets/owner/name/data/table.parquet", columns=["n"])
    assert rows(relative, "n") == expected[::2]
    local = tmp_path / "local.csv"
    local.write_text("".join(f"{path},{label}\n" for path, label in [("file", "label"), (NAMES[0], "cat"), (NAMES[3], "dog")]))
    assert rows(ps.images_from(local, root="hf://datasets/owner/name/data")) == [EXPECTED[0], EXPECTED[3]]
    with pytest.raises(ValueError, match="all paths are hf:// or none is"):
        local.write_text(f"file,label\nhf://datasets/owner/name/data/{NAMES[0]},1\n{there}/data/{NAMES[0]},1\n")
        ps.images_from(local)


def test_worker_processes_make_the_same_rows(folder: Path) -> None:
    table = pa.table({"file": NAMES * 6, "label": LABELS * 6, "n": range(24)})
    meta = ps.arrow_table(pa.table({"key": list(range(23, -1, -1)), "value": [n * n for n in range(23, -1, -1)]}))
    plan = ps.images_from(table.rename_columns(["file", "label", "key"]), root=folder, columns=["key"]).join(meta, "key")
    plan = plan.map(ps.pad("image", 64)).seed(3).shuffle().batch(5)
    expected = [bytes_of(step) for step in plan.loader()]
    loader = plan.loader(remote=Processes(2, local=False))
    assert [bytes_of(step) for step in loader] == expected
    assert loader.stats().remote.rows == 24


@pytest.mark.parametrize("seed", range(60))
def test_join_is_a_lookup_in_a_dict(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    count, size = dice.randrange(1, 40), dice.randrange(1, 40)
    key = (lambda k: k) if seed % 2 else (lambda k: f"k{k}")
    keys = [key(dice.randrange(size + 2)) for _ in range(count)]
    own = list(dict.fromkeys(key(dice.randrange(size + 2)) for _ in range(size)))
    model = {one: (dice.random(), [dice.randrange(9)] * 3) for one in own}
    path = tmp_path / "meta.parquet"
    pq.write_table(pa.table({"key": own, "score": [a for a, _ in model.values()], "box": [b for _, b in model.values()]}), path, row_group_size=7)
    meta = ps.parquet(path, columns=["key", "score", ps.TableColumn("box", shape=(3,))])
    pq.write_table(pa.table({"n": range(count), "key": keys}), tmp_path / "left.parquet")
    left = ps.parquet(tmp_path / "left.parquet")
    known = [(n, *model[one]) for n, one in enumerate(keys) if one in model]
    if len(known) < count:
        with pytest.raises(ps.Error, match=f"join: {count - len(known)} of {count} samples have no row in the table"):
            left.join(meta, on="key")
        if not known:
            return
    joined = left.join(meta, "key", missing="drop")
    assert [field.name for field in joined.fields] == ["n", "key", "score", "box"]
    plan = (joined if seed % 2 else joined.map(ps.pad("key", 8))).seed(seed).shuffle().batch(4)
    for made in (plan, ps.Dataset.from_json(plan.to_json())):
        found = [row for step in made.loader() for row in zip(step["n"].numpy().tolist(), step["score"].numpy().tolist(), step["box"].numpy().tolist())]
        assert sorted(found) == known


def test_join_of_images_and_what_is_known_of_them(folder: Path) -> None:
    meta = {"file": [*NAMES[::-1], "unused.jpg"], "score": [4.0, 3.0, 2.0, 1.0, 9.0]}
    pq.write_table(pa.table(meta), folder.parent / "meta.parquet")
    photos = ps.image_folder(folder)
    order = sorted(range(4), key=lambda number: NAMES[number].encode())  # of the folder
    expected = [(*EXPECTED[number], number + 1.0) for number in order]
    joined = photos.join(ps.parquet(folder.parent / "meta.parquet"), on="file")
    assert rows(joined, "score") == expected
    stems = ps.arrow_table(pa.table({"id": [Path(name).stem for name in NAMES], "score": [1.0, 2.0, 3.0, 4.0]}))
    assert rows(photos.join(stems, on="id"), "score") == rows(joined, "score")
    assert rows(joined.select([2, 0]), "score") == [expected[2], expected[0]]
    joined.save(folder.parent / "plan.json")
    assert rows(ps.Dataset.load(folder.parent / "plan.json"), "score") == rows(joined, "score")
    with pytest.raises(ValueError, match="both have 'label': rename"):
        photos.join(ps.arrow_table(pa.table({"file": NAMES, "label": [1, 2, 3, 4]})), on="file")
    with pytest.raises(ps.Error, match=r"1 of 4 samples have no row in the table: 'cats/1.jpg'; .* pass missing"):
        photos.join(ps.arrow_table(pa.table({"file": NAMES[1:], "score": [2.0, 3.0, 4.0]})), on="file")
    left = photos.join(ps.arrow_table(pa.table({"file": NAMES[1:], "score": [2.0, 3.0, 4.0]})), on="file", missing="drop")
    assert rows(left, "score") == expected[1:]
    assert [name.key for name in next(left.map(ps.pad("image", 64)).batch(3).loader()).names()] == [NAMES[number] for number in order[1:]]


def test_fields_are_left_out_by_an_empty_name(folder: Path) -> None:
    plan = ps.image_folder(folder).rename({"image": ""})
    assert [field.name for field in plan.fields] == ["label"]
    assert ps.Dataset.from_json(plan.to_json()).describe() == plan.describe()


def test_pandas_is_not_needed(folder: Path) -> None:
    write(folder, columns(), "csv")
    run_python(f"""
import sys, penstock as ps
assert len(ps.images_from({str(folder / "table.csv")!r}, columns=["n"])) == 4
assert "pandas" not in sys.modules and "pyarrow" not in sys.modules
""")


def test_integers_that_i64_has_not_are_texts(folder: Path) -> None:
    table = folder / "t.csv"
    table.write_text(f"file,label,n,m\n{NAMES[0]},0,-9223372036854775809,-007\n{NAMES[2]},1,9007199254740993,5\n")
    data = ps.images_from(table, columns=["n", "m"])
    assert data.column("n") == ["-9223372036854775809", "9007199254740993"]
    assert data.column("m") == ["-007", "5"]


def test_paths_may_begin_with_points_and_slashes(folder: Path) -> None:
    table = folder / "t.csv"
    table.write_text(f"file,label\n.//{NAMES[0]},0\n././/{NAMES[2]},1\n")
    data = ps.images_from(table)
    assert [row[1] for row in rows(data)] == [0, 1]
    table.write_text(f"file,label\n{NAMES[0]},0\n./,1\n")
    with pytest.raises(ps.Error, match="line 3.* is empty"):
        ps.images_from(table)


def test_pairs_of_one_folder(tmp_path: Path) -> None:
    from PIL import Image

    for k in range(5):
        Image.new("RGB", (8, 8), (k, k, k)).save(tmp_path / f"{k}.png")
    frames = ps.image_folder(tmp_path)
    pairs = ps.zip([frames.take(4), frames.rename({"image": "next", "label": "next_label"}).skip(1)])
    decoded = pairs.map(ps.decode_image(crop=ps.resize_to(8))).map(ps.decode_image(field="next", crop=ps.resize_to(8)))
    (step,) = decoded.batch(4).loader()
    assert [int(x) for x in step["image"].numpy()[:, 0, 0, 0]] == [0, 1, 2, 3]
    assert [int(x) for x in step["next"].numpy()[:, 0, 0, 0]] == [1, 2, 3, 4]


def test_shards_in_a_zip_of_each_process() -> None:
    def plan(rank: int) -> ps.Dataset:
        one, other = (ps.memory({name: np.arange(8)}).shard(2, rank) for name in "ab")
        return ps.zip([one, other]).batch(2)

    context = ps.InputContext(num_input_pipelines=2, input_pipeline_id=0)
    with pytest.raises(ValueError, match=r"shard\(2, 0\) is this process's own share"):
        plan(0).loader(context=context, mode="per_worker")
    seen = []
    for rank in range(2):
        context = ps.InputContext(num_input_pipelines=2, input_pipeline_id=rank)
        for step in plan(rank).loader(context=context, mode="per_worker", shards="off"):
            seen += np.asarray(step["a"]).tolist()
    assert sorted(seen) == list(range(8))


def test_chosen_rows_have_their_chunks(tmp_path: Path) -> None:
    table = pa.table({"key": np.arange(100), "text": [f"{k:03}" * 20 for k in range(100)]})
    pq.write_table(table, tmp_path / "t.parquet", compression="gzip", row_group_size=25)
    more = ps.memory({"key": np.arange(0, 100, 2), "more": np.arange(50)})
    data = ps.parquet(tmp_path / "t.parquet").join(more, on="key", missing="drop")
    order = [int(k) for step in data.map(ps.pad("text", 60)).seed(1).shuffle_chunks().batch(10).loader() for k in np.asarray(step["key"])]
    assert sorted(order) == list(range(0, 100, 2)) and order != sorted(order)
    assert sum(b != a + 2 for a, b in zip(order, order[1:])) <= 3
