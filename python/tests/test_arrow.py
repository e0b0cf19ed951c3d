"""arrow() and arrow_table(): every value compared with pyarrow's, and with those that parquet() reads of the same table."""
import json
import os
import pickle
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from test_parquet import IMAGE, NUMBERS, edges, few_bytes, read

import penstock as ps

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ipc = pytest.importorskip("pyarrow.ipc")

FORMS = ("stream", "file", "table")


def as_rows(table, form, folder, columns=None, batch=13, **options):
    """The table as a data set."""
    if form == "table":
        return ps.arrow_table(pa.Table.from_batches(table.to_batches(max_chunksize=batch), table.schema), columns=columns)
    path = folder / f"{form}.arrow"
    new = ipc.new_stream if form == "stream" else ipc.new_file
    with new(path, table.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=batch)
    return ps.arrow(path, columns=columns)


def ragged(data):
    return [field.name for field in data.fields if list(field.shape)[:1] == [None]]


def wide_table(count=157):
    columns = {name: pa.array(edges(name, count), kind) for name, kind in NUMBERS.items()}
    columns["text"] = pa.array(["wörter" * (i % 7) for i in range(count)])
    columns["data"] = pa.array([few_bytes(i, i % 50) for i in range(count)], pa.large_binary())
    columns["fixed"] = pa.array([few_bytes(i, 3) for i in range(count)], pa.binary(3))
    columns["list"] = pa.array([list(range(i % 9)) for i in range(count)], pa.list_(pa.int32()))
    columns["reals"] = pa.array([[i / 2] * (i % 4) for i in range(count)], pa.large_list(pa.float32()))
    columns["bools"] = pa.array([[k % 2 == 0 for k in range(i % 5)] for i in range(count)], pa.list_(pa.bool_()))
    columns["words"] = pa.array([[f"{k}" * k for k in range(i % 4)] for i in range(count)])
    columns["image"] = pa.array([{"bytes": few_bytes(i, 40 + i), "path": f"{i}.jpg"} for i in range(count)], IMAGE)
    columns["images"] = pa.array([[{"bytes": few_bytes(k, 9), "path": None}] * (i % 3) for i in range(count) for k in [i]], pa.list_(IMAGE))
    columns["box"] = pa.array([{"left": i, "sides": [i, i + 1]} for i in range(count)])
    columns["kind"] = pa.array([f"kind {i % 3}" for i in range(count)]).dictionary_encode()
    columns["rare"] = pa.array([None if i % 5 == 0 else i for i in range(count)], pa.int16())
    columns["gaps"] = pa.array([None if i % 5 == 0 else [None, i] for i in range(count)], pa.list_(pa.int64()))
    columns["when"] = pa.array(range(count), pa.timestamp("us", tz="UTC"))
    return pa.table(columns)


COLUMNS = [
    *NUMBERS, "text", "data", "fixed", "list", "reals", "bools", ps.TableColumn("words", lengths="word lengths"), "image", "image.path",
    ps.TableColumn("images", lengths="image lengths"), "box.left", "box.sides", "kind", ps.TableColumn("rare", required=False, default_value=-7),
    ps.TableColumn("gaps", required=False, default_value=3), "when",
]


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_those_that_parquet_has_of_the_same_table(tmp_path, form):
    table = wide_table()
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=50)
    wanted = ps.parquet(tmp_path / "t.parquet", columns=COLUMNS)
    found = as_rows(table, form, tmp_path, COLUMNS)
    assert [str(field) for field in found.fields] == [str(field) for field in wanted.fields]
    assert read(found.shuffle(seed=3), ragged=ragged(found)) == read(wanted.shuffle(seed=3), ragged=ragged(wanted))


@pytest.mark.parametrize("form", FORMS)
def test_values_are_those_of_pyarrow(tmp_path, form):
    table = wide_table()
    data = as_rows(table, form, tmp_path, [*NUMBERS, "text", "list", "kind", "fixed", "when"])
    for row, wanted in zip(read(data, ragged=["text", "list", "kind"]), table.to_pylist(), strict=True):
        for name in NUMBERS:
            np.testing.assert_array_equal(row[name], wanted[name], name)
        assert row["text"] == wanted["text"].encode() and row["kind"] == wanted["kind"].encode()
        assert row["list"] == wanted["list"] and row["fixed"] == wanted["fixed"]
        assert row["when"] == wanted["when"].microsecond


def test_views_and_sliced_tables(tmp_path):
    count = 60
    table = pa.table({
        "s": pa.array(["x" * (i % 40) for i in range(count)], pa.string_view()),
        "b": pa.array([few_bytes(i, i % 30) for i in range(count)], pa.binary_view()),
        "n": pa.array(range(count), pa.int32()),
        "l": pa.array([[i] * (i % 3) for i in range(count)]),
        "t": pa.array([i % 2 == 0 for i in range(count)]),
    })
    for form in FORMS:
        data = as_rows(table, form, tmp_path)
        assert read(data, ragged=["s", "b", "l"])[11:13] == [
            {"s": b"x" * 11, "b": few_bytes(11, 11), "n": 11, "l": [11, 11], "t": False},
            {"s": b"x" * 12, "b": few_bytes(12, 12), "n": 12, "l": [], "t": True}]
    part = table.slice(7, 20)
    assert read(ps.arrow_table(part), ragged=["s", "b", "l"]) == read(ps.arrow_table(table, rows=range(7, 27)), ragged=["s", "b", "l"])


def test_lists_of_one_size_have_a_shape(tmp_path):
    table = pa.table({"v": pa.array([[i, i + 1, i + 2, i + 3] for i in range(5)], pa.list_(pa.float32(), 4))})
    for form in FORMS:
        assert as_rows(table, form, tmp_path).fields[0].shape == (4,)
        matrix = as_rows(table, form, tmp_path, [ps.TableColumn("v", shape=(2, 2))])
        batch = next(matrix.batch(5).loader())
        np.testing.assert_array_equal(np.asarray(batch["v"])[3], [[3, 4], [5, 6]])
    with pytest.raises(ValueError, match="4 elements, which each list has"):
        ps.arrow_table(table, columns=[ps.TableColumn("v", shape=(3,))])


def test_compressed_batches_are_decompressed_and_lz4_is_named(tmp_path):
    table = pa.table({"n": range(100), "s": [f"{i}" * 30 for i in range(100)]})
    wanted = read(ps.arrow_table(table), ragged=["s"])
    try:
        found = read(as_rows(table, "file", tmp_path, compression="zstd").shuffle(seed=1), ragged=["s"])
    except ps.DataError as error:
        assert "libzstd" in str(error)
    else:
        assert sorted(found, key=lambda row: row["n"]) == wanted
    with pytest.raises(ps.Error, match="LZ4_FRAME, which is not read here; pyarrow reads it"):
        as_rows(table, "file", tmp_path, compression="lz4")


def test_nulls_are_faults_of_their_rows():
    table = pa.table({"n": pa.array([1, None, 3], pa.int32()), "s": ["a", "b", None]})
    loader = ps.arrow_table(table, columns=["n"]).batch(3).loader(on_fault="mask")
    step = next(loader)
    assert np.asarray(step["valid"]).tolist() == [True, False, True]
    assert "column 'n': the value is null" in loader.faults()[0].reason
    with pytest.raises(ps.DataError, match="column 's': the value is null"):
        read(ps.arrow_table(table, columns=["s"]), ragged=["s"])


def test_labels_classes_lengths_and_names(tmp_path):
    features = '{"info": {"features": {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}'
    table = pa.table({"label": pa.array([1, 0, 1]), "tokens": [[1, 2, 3], [], [4]]}).replace_schema_metadata({"huggingface": features})
    for form in FORMS:
        data = as_rows(table, form, tmp_path, batch=2)
        assert data.labels().tolist() == [1, 0, 1] and data.class_names == ["cat", "dog"]
        packed = data.pack(4, field="tokens") if form != "table" else ps.arrow_table(table).pack(4, field="tokens")
        assert packed.packed.tokens == 4
    data = ps.arrow(tmp_path / "stream.arrow")
    step = next(ps.arrow(tmp_path / "stream.arrow", columns=["label"]).batch(3).loader())
    assert [name.key for name in step.names()] == [f"stream.arrow:{i}" for i in range(3)]
    other = table.replace_schema_metadata({"huggingface": features.replace('"cat", "dog"', '"dog", "cat"')})
    with ipc.new_stream(tmp_path / "z.arrow", other.schema) as writer:
        writer.write_table(other)
    with pytest.raises(ps.Error, match="the same number would be two classes"):
        ps.arrow([tmp_path / "stream.arrow", tmp_path / "z.arrow"])


def test_digests_are_equal_with_any_threads_form_and_chunks(tmp_path):
    table = pa.table({"n": range(300), "v": [[i, i * i] for i in range(300)]})
    columns = ["n", ps.TableColumn("v", shape=(2,))]
    digests = set()
    for form in FORMS:
        for threads, batch in ((1, 7), (4, 300)):
            plan = as_rows(table, form, tmp_path, columns, batch=batch).shuffle(seed=5).repeat(2).batch(16)
            digests.add(tuple(step.digest for step in plan.loader(threads=threads, digest=True)))
    assert len(digests) == 1


def test_a_table_in_memory_is_told_from_others_and_not_by_its_chunks():
    table = pa.table({"n": range(300)})
    chunked = pa.Table.from_batches(table.to_batches(max_chunksize=9))
    plan = ps.arrow_table(table).shuffle(seed=5).batch(16)
    loader = plan.loader()
    steps = [np.asarray(step["n"]).tolist() for step in loader]
    first = plan.loader()
    next(first)
    again = ps.arrow_table(chunked).shuffle(seed=5).batch(16).loader()
    again.load_state_dict(first.state_dict())
    assert [np.asarray(step["n"]).tolist() for step in again] == steps[1:]
    with pytest.raises(ps.Error, match="data"):
        ps.arrow_table(pa.table({"n": range(1, 301)})).shuffle(seed=5).batch(16).loader().load_state_dict(first.state_dict())


def test_rows_are_chosen_by_their_numbers():
    table = pa.table({"n": range(10)})
    assert [row["n"] for row in read(ps.arrow_table(table, rows=[3, 3, 9]))] == [3, 3, 9]
    assert [row["n"] for row in read(ps.arrow_table(table, rows=np.array([4, 1], np.int16)))] == [4, 1]
    for rows, error, text in (([10], ps.Error, "row 10 was chosen of 10"), ([-1], ValueError, "row -1 is below 0"),
                              ([0.5], TypeError, "rows are the numbers"), ([[1]], TypeError, "of one dimension")):
        with pytest.raises(error, match=text):
            ps.arrow_table(table, rows=rows)


def test_what_is_no_table_is_refused():
    table = pa.table({"n": range(10)})
    for given, error, text in (([1, 2], TypeError, "found a builtins.list"),
                               ({"train": table}, TypeError, "takes one table, found a builtins.dict of 'train'"),
                               (pa.chunked_array([[1, 2]]), ps.Error, "expected a table, found an array of type Int64"),
                               (pa.table({"d": pa.array([1], pa.decimal128(5))}), ps.Error, r"'d' is of type Decimal128\(5, 0\)"),
                               (pa.table({"l": [[[1]]]}), ps.Error, "has lists of lists"),
                               (pa.table({"x": pa.nulls(2)}), ps.Error, "is of type Null")):
        with pytest.raises(error, match=text):
            ps.arrow_table(given)
    with pytest.raises(ps.Error, match="has no column 'm'; its columns are n"):
        ps.arrow_table(table, columns=["m"])
    with pytest.raises(ValueError, match="mapped, from local disks only"):
        ps.arrow("s3://bucket/a.arrow")


def test_plans_travel(tmp_path):
    table = pa.table({"n": range(10)})
    plan = ps.arrow_table(table, columns=[ps.TableColumn("m", "n")], rows=[5, 6]).batch(1)
    again = pickle.loads(pickle.dumps(plan))
    assert [int(np.asarray(step["m"])[0]) for step in again.loader()] == [5, 6]
    with pytest.raises(ps.Error, match="pickle"):
        plan.to_json()
    assert ps.Dataset.from_json(plan.to_json(allow_pickle=True), allow_pickle=True).size == 2
    files = as_rows(table, "file", tmp_path).shuffle(seed=1).batch(2)
    assert ps.Dataset.from_json(files.to_json()).describe() == files.describe()


def test_a_table_lives_as_long_as_its_plan():
    """Its memory is the producer's, which has no other reference to it."""
    plan = ps.arrow_table(pa.table({"s": [f"{i:03}" * 100 for i in range(1000)]})).map(ps.pad("s", 300)).batch(100)
    loader = plan.loader()
    del plan
    other = [pa.array([f"{i:03}" * 100 for i in range(1000, 0, -1)]) for _ in range(20)]
    found = [bytes(row) for step in loader for row in np.asarray(step["s"])]
    assert found == [f"{i:03}".encode() * 100 for i in range(1000)] and len(other) == 20


def test_a_program_that_ends_with_a_live_loader_ends(tmp_path):
    code = """
import pyarrow as pa, penstock as ps
loader = ps.arrow_table(pa.table({"n": range(100)})).shuffle(seed=1).repeat().batch(4).loader()
next(loader)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=os.environ)


def test_a_resumed_process_goes_on(tmp_path):
    table = pa.table({"n": range(100)})
    as_rows(table, "stream", tmp_path)
    code = f"""
import json, sys, numpy as np, penstock as ps
loader = ps.arrow({str(tmp_path / 'stream.arrow')!r}).shuffle(seed=1).batch(10).loader()
loader.load_state_dict(json.load(open({str(tmp_path / 'state')!r})))
print(json.dumps([np.asarray(step["n"]).tolist() for step in loader]))
"""
    loader = ps.arrow(tmp_path / "stream.arrow").shuffle(seed=1).batch(10).loader()
    for _ in range(4):
        next(loader)
    (tmp_path / "state").write_text(json.dumps(loader.state_dict()))
    out = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=os.environ, capture_output=True, text=True)
    assert out.stdout.strip() == str([np.asarray(step["n"]).tolist() for step in loader])


def test_hugging_face_data_sets(tmp_path):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"label": datasets.ClassLabel(names=["cat", "dog"]), "n": datasets.Value("int32")})
    data = datasets.Dataset.from_dict({"label": [i % 2 for i in range(50)], "n": list(range(50))}, features=features)
    plain = ps.arrow_table(data)
    assert plain.class_names == ["cat", "dog"] and [row["n"] for row in read(plain)] == list(range(50))
    chosen = data.shuffle(seed=4).select(range(7))
    assert [row["n"] for row in read(ps.arrow_table(chosen))] == list(chosen["n"])
    assert [row["n"] for row in read(ps.arrow_table(chosen, rows=[1, 0]))] == list(chosen["n"])[1::-1]
    assert pickle.loads(pickle.dumps(ps.arrow_table(chosen))).labels().tolist() == list(chosen["label"])
    assert [field.name for field in ps.arrow_table(data.with_format(None, columns=["n"])).fields] == ["n"]
    with pytest.raises(ValueError, match="has the format 'numpy'"):
        ps.arrow_table(data.with_format("numpy"))
    with pytest.raises(TypeError, match="datasets.IterableDataset"):
        ps.arrow_table(data.to_iterable_dataset())
    chosen.save_to_disk(tmp_path / "saved")
    assert [row["n"] for row in read(ps.arrow(tmp_path / "saved"))] == list(chosen["n"])
    datasets.DatasetDict(train=data, test=chosen).save_to_disk(tmp_path / "splits")
    with pytest.raises(ps.Error, match="several splits, train, test"):
        ps.arrow(tmp_path / "splits")
    assert ps.arrow(tmp_path / "splits" / "test").size == 7


@pytest.mark.parametrize("kind", ["polars", "pandas", "duckdb"])
def test_tables_of_others(kind):
    module = pytest.importorskip(kind)
    columns = {"n": [1, 2, 3], "s": ["a", "b" * 20, "c"]}
    if kind == "duckdb":
        table = module.sql("select * from (values (1, 'a'), (2, 'bbbbbbbbbbbbbbbbbbbb'), (3, 'c')) t(n, s)")
    else:
        table = module.DataFrame(columns)
    assert read(ps.arrow_table(table), ragged=["s"]) == [{"n": n, "s": s.encode()} for n, s in zip(columns["n"], columns["s"])]


def saved_images(folder, count=6, label=pa.int64()):
    import io

    from PIL import Image
    images = []
    for i in range(count):
        out = io.BytesIO()
        Image.new("RGB", (20 + i, 16), (i * 30, 9, 200)).save(out, "JPEG")
        images.append({"bytes": out.getvalue(), "path": f"{i}.jpg"})
    features = '{"info": {"features": {"kind": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}'
    table = pa.table({"photo": pa.array(images, IMAGE), "kind": pa.array([i % 2 for i in range(count)], label)})
    table = table.replace_schema_metadata({"huggingface": features})
    with ipc.new_stream(folder / "data-00000-of-00001.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=4)
    (folder / "state.json").write_text('{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}')
    pq.write_table(table, folder.parent / "t.parquet")
    return table


def test_images_and_prepare_find_the_columns(tmp_path):
    pytest.importorskip("PIL")
    (tmp_path / "saved").mkdir()
    saved_images(tmp_path / "saved")
    images, wanted = ps.images(tmp_path / "saved"), ps.images(tmp_path / "t.parquet")
    assert [str(field) for field in images.fields] == ["image u8 [?]", "label i64 []"]
    assert images.class_names == ["cat", "dog"] and images.labels().tolist() == [0, 1] * 3
    assert read(images, ragged=["image"], most=2000) == read(wanted, ragged=["image"], most=2000)
    report = ps.prepare(tmp_path / "saved", tmp_path / "out")
    assert report.samples == 6
    crop = ps.decode_image(crop=ps.center_crop(16, resize=16))
    assert read(ps.webdataset(tmp_path / "out").map(crop)) == read(wanted.map(crop))


def test_prepare_says_what_images_says_of_a_label(tmp_path):
    pytest.importorskip("PIL")
    (tmp_path / "saved").mkdir()
    saved_images(tmp_path / "saved", label=pa.int32())
    for path in (tmp_path / "saved", tmp_path / "t.parquet"):
        for call in (lambda: ps.images(path), lambda: ps.prepare(path, tmp_path / "out")):
            with pytest.raises(ps.Error, match=r"expected the column 'kind' to be label i64 \[\], found label i32 \[\]"):
                call()


def test_classes_in_structs_are_found(tmp_path):
    def table(names):
        features = {"info": {"features": {"objects": {"label": {"names": names, "_type": "ClassLabel"}}}}}
        return pa.table({"objects": [{"label": 0}]}).replace_schema_metadata({"huggingface": json.dumps(features)})

    column = [ps.TableColumn("label", "objects.label")]
    assert ps.arrow_table(table(["cat", "dog"]), columns=column).class_names == ["cat", "dog"]
    pq.write_table(table(["cat", "dog"]), tmp_path / "a.parquet")
    pq.write_table(table(["dog", "cat"]), tmp_path / "b.parquet")
    with pytest.raises(ps.Error, match="the same number would be two classes"):
        ps.parquet(tmp_path, columns=column)


def test_a_renamed_label_is_not_that_of_another_field(tmp_path):
    data = ps.arrow_table(pa.table({"fine": [5, 6], "label": [0, 1]}))
    renamed = data.rename({"fine": "label", "label": "coarse"})
    assert [row["label"] for row in read(renamed)] == [5, 6]
    with pytest.raises(ps.Error, match="label"):
        renamed.labels()
    assert data.rename({"fine": "x"}).labels().tolist() == [0, 1]
    assert data.rename({"label": ["label", "again"]}).labels().tolist() == [0, 1]
    assert data.rename({"label": "a"}).rename({"a": "label"}).labels().tolist() == [0, 1]
    assert data.rename({"label": "a"}).labels().tolist() == [0, 1]


def test_a_pattern_for_folders_at_any_depth_is_refused(tmp_path):
    (tmp_path / "a").mkdir()
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a" / "t.parquet")
    pq.write_table(pa.table({"n": [1]}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"\*\* is no pattern here"):
        ps.parquet(f"{tmp_path}/**/*.parquet")
    assert ps.parquet(f"{tmp_path}/*/*.parquet").size == 1


def test_a_file_that_is_rewritten_while_it_is_read_is_a_fault(tmp_path):
    """Also where it has the same size, and rows of it were read before."""
    path = tmp_path / "t.parquet"

    def write(first):
        pq.write_table(pa.table({"s": [f"{i + first:05}" for i in range(40)]}), path, row_group_size=7, compression="none", use_dictionary=False)

    write(0)
    os.utime(path, (1e9, 1e9))
    plan = ps.parquet(path).map(ps.pad("s", 5)).batch(4)
    assert sum(1 for _ in plan.loader(threads=1)) == 10
    size = path.stat().st_size
    write(10000)
    assert path.stat().st_size == size
    loader = plan.loader(threads=1, on_fault="mask")
    assert not any(np.asarray(step["valid"]).any() for step in loader)
    assert "was changed" in loader.faults()[0].reason


def test_many_files_of_several_sources_leave_room_for_the_programs_own(tmp_path):
    code = f"""
import resource, penstock as ps
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 4096))
parts = [ps.parquet(f"{tmp_path}/{{k}}") for k in range(3)]
rows = sum(len(step["n"].numpy()) for step in ps.concatenate(parts).batch(10).loader())
files = [open("/dev/null") for _ in range(80)]
print(rows)
"""
    for k in range(3):
        (tmp_path / str(k)).mkdir()
        for i in range(80):
            pq.write_table(pa.table({"n": [k, i]}), tmp_path / str(k) / f"{i:03}.parquet")
    out = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=os.environ, capture_output=True, text=True)
    assert out.stdout.strip() == "480"


def test_the_first_list_of_numbers_has_the_lengths(tmp_path):
    table = pa.table({"text": ["a", "bb"], "input_ids": [[1, 2, 3], [4, 5]], "completion_mask": [[0, 1, 1], [0, 1]], "short": [[1], [2]]})
    for form in FORMS:
        data = as_rows(table, form, tmp_path, ["input_ids", "completion_mask"])
        step = next(data.pack(5, field="input_ids", label_mask="completion_mask").batch(1).loader())
        assert np.asarray(step["tokens"]).tolist() == [[1, 2, 3, 4, 5]]
        step = next(as_rows(table, form, tmp_path).pack(5, field="input_ids").batch(1).loader())
        assert np.asarray(step["tokens"]).tolist() == [[1, 2, 3, 4, 5]]
        by_length = data.batch_by_length([2, 4], tokens=8, fields=["input_ids", "completion_mask"])
        assert sorted(len(np.asarray(step["input_ids"])[0]) for step in by_length.loader()) == [2, 4]
        with pytest.raises(ps.DataError, match="length"):
            list(as_rows(table, form, tmp_path).pack(5, field="short").batch(1).loader())


def test_a_batch_larger_than_the_cache_is_decompressed_once_for_its_rows(tmp_path):
    table = pa.table({"l": [[i] * 300 for i in range(3000)]})
    try:
        data = as_rows(table, "file", tmp_path, batch=3000, compression="zstd")
    except ps.Error as error:
        pytest.skip(str(error))
    loader = ps.arrow(tmp_path / "file.arrow", batch_cache_bytes=1 << 10).pack(2048, field="l").batch(8).loader(threads=1)
    begin = time.process_time()
    assert sum(1 for _ in loader) > 40
    # Once for each row would be 3,000 times 7 MB, twice.
    assert time.process_time() - begin < 10 and data.size == 3000


def test_nulls_of_lists_and_their_lengths():
    table = pa.table({"l": [[1, 2], None, [3]]})
    with pytest.raises(ps.Error, match="the value is null"):
        ps.arrow_table(table).pack(4, field="l")
    packed = ps.arrow_table(table, columns=[ps.TableColumn("l", required=False)]).pack(4, field="l")
    assert np.asarray(next(packed.batch(1).loader())["tokens"])[0, :3].tolist() == [1, 2, 3]
    inside = ps.arrow_table(pa.table({"l": [[1, None], [3]]})).pack(2, field="l")
    loader = inside.batch(2).loader(on_fault="mask")
    assert np.asarray(next(loader)["valid"]).tolist() == [False, True]


def test_a_folder_of_splits_says_so_to_images(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train"]}')
    with pytest.raises(ps.Error, match="several splits, train"):
        ps.images(tmp_path)


def write_stream(path, table, batch=10, new=ipc.new_stream, **options):
    with new(path, table.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=batch)
    return path.read_bytes()


def messages(data, begin=0):
    """Where each message begins, and where the last one ends."""
    places = [begin]
    while int.from_bytes(data[places[-1] + 4:places[-1] + 8], "little") > 0:
        message = ipc.read_message(pa.BufferReader(data[places[-1]:]))
        metadata = 8 + int.from_bytes(data[places[-1] + 4:places[-1] + 8], "little")
        places.append(places[-1] + metadata + (message.body.size if message.body else 0))
    return places


def faults_of(data, count):
    loader = data.batch(count).loader(on_fault="mask", max_fault_rate=1, threads=1)
    next(loader)
    return [fault.reason for fault in loader.faults()]


def test_a_stream_that_lost_its_end_warns_and_one_that_goes_on_is_refused(tmp_path):
    table, path = pa.table({"n": range(40)}), tmp_path / "a.arrow"

    def notices():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ps.arrow(path).batch(5).loader()
        return [str(warning.message) for warning in caught]

    for legacy in (False, True):
        data = write_stream(path, table, use_legacy_format=legacy)
        assert len(ps.arrow(path)) == 40 and not notices()
        path.write_bytes(data + data)
        with pytest.raises(ps.Error, match=f"a.arrow.*found {len(data)} bytes behind it"):
            ps.arrow(path)
        path.write_bytes(data + b"?")
        with pytest.raises(ps.Error, match="found 1 bytes behind it"):
            ps.arrow(path)
    data = write_stream(path, table)
    places = messages(data)
    path.write_bytes(data[:places[3]])  # as the file of a program that was killed
    assert len(ps.arrow(path)) == 20
    (notice,) = notices()
    assert "a.arrow has no end mark of a stream" in notice
    for length in (4, 8, len(data) - places[3]):  # a write that was broken off
        path.write_bytes(data[:places[3]] + bytes(length))
        with pytest.raises(ps.Error, match="expected a message or the stream's end mark, and found zeros"):
            ps.arrow(path)


def test_a_footer_that_lost_batches_is_refused(tmp_path):
    path, wanted = tmp_path / "a.arrow", 30
    data = write_stream(path, pa.table({"n": range(wanted), "s": [str(i) for i in range(wanted)]}), new=ipc.new_file)
    footer = len(data) - 10 - int.from_bytes(data[-10:-6], "little")
    refused = 0
    for bit in range(footer * 8, len(data) * 8):
        broken = bytearray(data)
        broken[bit // 8] ^= 1 << bit % 8
        path.write_bytes(broken)
        try:
            assert len(ps.arrow(path)) == wanted, bit
        except (ps.Error, ValueError) as error:
            refused += "the footer lacks a RecordBatch of 10 rows" in str(error)
    assert refused > 5


@pytest.mark.parametrize("form", FORMS)
def test_columns_that_are_left_out_may_have_any_type(tmp_path, form):
    pairs = pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64()))
    numbers = pa.array([1, 2])
    views = pa.array([[1], []], pa.list_view(pa.int64()))
    table = pa.table({"n": numbers, "pairs": pairs, "views": views, "box": pa.StructArray.from_arrays([pairs, numbers], ["pairs", "n"])})
    table = pa.concat_tables([table, table]).slice(1)
    data = as_rows(table, form, tmp_path, columns=["n", ps.TableColumn("m", "box.n")])
    assert [int(row["n"]) for row in read(data)] == [int(row["m"]) for row in read(data)] == [2, 1, 2]
    with pytest.raises(ps.Error, match="pairs"):
        as_rows(table, form, tmp_path, columns=["pairs"])


def test_a_damaged_batch_is_decompressed_once(tmp_path):
    path = tmp_path / "a.arrow"
    good = write_stream(path, pa.table({"n": range(4000)}), batch=2000, compression="zstd")
    place = messages(good)[1]
    at = good.index(b"\x28\xb5\x2f\xfd", place) + 8
    data = ps.arrow(path)
    with path.open("r+b") as file:  # the file that is mapped
        file.seek(at)
        file.write(bytes(byte ^ 0xFF for byte in good[at:at + 40]))
    first = faults_of(data, 2000)
    assert len(first) == 100 and "damaged" in first[0]  # of the batch's rows those that are kept
    with path.open("r+b") as file:
        file.write(good)
    assert faults_of(data, 2000) == first  # what is wrong with it is known
    assert faults_of(ps.arrow(path), 2000) == []


def test_saved_rows_that_are_null_are_refused(tmp_path):
    write_stream(tmp_path / "data.arrow", pa.table({"n": range(40)}))
    write_stream(tmp_path / "indices.arrow", pa.table({"indices": pa.array([3, None, 5], pa.uint64())}))
    state = {"_data_files": [{"filename": "data.arrow"}], "_indices_data_files": [{"filename": "indices.arrow"}]}
    (tmp_path / "state.json").write_text(json.dumps(state))
    with pytest.raises(ps.Error, match="indices.arrow: row 1 of the rows of the data set is null"):
        ps.arrow(tmp_path)


def test_saved_rows_that_lost_their_end_are_refused(tmp_path):
    write_stream(tmp_path / "data.arrow", pa.table({"n": range(40)}))
    rows = write_stream(tmp_path / "indices.arrow", pa.table({"indices": pa.array([3, 5], pa.uint64())}), batch=1)
    state = {"_data_files": [{"filename": "data.arrow"}], "_indices_data_files": [{"filename": "indices.arrow"}]}
    (tmp_path / "state.json").write_text(json.dumps(state))
    assert len(ps.arrow(tmp_path)) == 2
    (tmp_path / "indices.arrow").write_bytes(rows[:messages(rows)[2]])
    with pytest.raises(ps.Error, match="indices.arrow: the rows of the data set have no end mark"):
        ps.arrow(tmp_path)


def test_a_plan_keeps_the_rows_that_it_was_given():
    def values(data):
        return [int(row["n"]) for row in read(data)]

    table = pa.table({"n": range(40)})
    for rows in (np.array([0, 1, 2]), [0, 1, 2]):
        data = ps.arrow_table(table, rows=rows)
        rows[:] = [7, 8, 9]
        assert values(data) == values(pickle.loads(pickle.dumps(data))) == [0, 1, 2]


def test_a_data_set_whose_format_changes_later_still_pickles():
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_dict({"n": list(range(6)), "m": list(range(6))}).select([4, 2, 0])
    made.set_format(columns=["n"])
    data = ps.arrow_table(made, rows=[1, 0])
    made.set_format("numpy")
    for one in (data, pickle.loads(pickle.dumps(data))):
        assert [(sorted(row), int(row["n"])) for row in read(one)] == [(["n"], 2), (["n"], 4)]
