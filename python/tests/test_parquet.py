"""parquet(): every value compared with pyarrow's, which writes the files."""
import json
import os
import pathlib
import pickle

import numpy as np
import pytest

import penstock as ps

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

IMAGE = pa.struct({"bytes": pa.binary(), "path": pa.string()})


def write(path, columns, **options):
    """A table of (type, values) by name."""
    table = pa.table({name: pa.array(values, type=kind) for name, (kind, values) in columns.items()})
    pq.write_table(table, path, **options)
    return table


def read(data, ragged=(), most=600):
    """All rows in their order, as Python's values; texts and bytes are bytes."""
    for name in ragged:
        data = data.map(ps.pad(name, most, lengths=f"{name} length"))
    rows = []
    for step in data.batch(1).loader():
        row = {}
        for name in step.keys():
            value = np.asarray(step[name])[0]
            if name.endswith(" length"):
                continue
            if name in ragged:
                value = value[:int(np.asarray(step[f"{name} length"])[0])]
            row[name] = value.tobytes() if value.dtype == np.uint8 and value.ndim == 1 else value.tolist()
        rows.append(row)
    return rows


def as_bytes(value):
    return value.encode() if isinstance(value, str) else value


def few_bytes(i, size):
    return bytes((i * 31 + k) % 256 for k in range(size))


NUMBERS = {
    "i8": pa.int8(), "u8": pa.uint8(), "i16": pa.int16(), "u16": pa.uint16(), "i32": pa.int32(), "u32": pa.uint32(),
    "i64": pa.int64(), "u64": pa.uint64(), "f16": pa.float16(), "f32": pa.float32(), "f64": pa.float64(), "bool": pa.bool_(),
}


def edges(name, count):
    """The least and the largest value of a type, and others."""
    if name == "bool":
        return [i % 3 == 0 for i in range(count)]
    if name.startswith("f"):
        dtype = np.dtype(f"float{name[1:]}")
        values = [0.0, -0.0, 1.5, float(np.finfo(dtype).max), float(np.finfo(dtype).tiny), float("inf")]
        return [dtype.type(values[i % len(values)]) for i in range(count)]
    info = np.iinfo(("u" if name[0] == "u" else "") + "int" + name[1:])
    values = [info.min, info.max, 0, 1, info.max // 3]
    return [values[i % len(values)] for i in range(count)]


@pytest.mark.parametrize("page_version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_values_are_those_of_pyarrow(tmp_path, page_version, codec, dictionary):
    count = 157
    columns = {name: (kind, edges(name, count)) for name, kind in NUMBERS.items()}
    columns["text"] = (pa.string(), ["wörter" * (i % 7) for i in range(count)])
    columns["data"] = (pa.binary(), [few_bytes(i, i % 50) for i in range(count)])
    columns["fixed"] = (pa.binary(3), [few_bytes(i, 3) for i in range(count)])
    columns["list"] = (pa.list_(pa.int32()), [list(range(i % 9)) for i in range(count)])
    columns["reals"] = (pa.large_list(pa.float32()), [[i / 2] * (i % 4) for i in range(count)])
    columns["image"] = (IMAGE, [{"bytes": few_bytes(i, 40 + i), "path": f"{i}.jpg"} for i in range(count)])
    table = write(tmp_path / "t.parquet", columns, data_page_version=page_version, compression=codec,
                  use_dictionary=dictionary, row_group_size=50, data_page_size=64, write_batch_size=8)
    rows = read(ps.parquet(tmp_path / "t.parquet"), ragged=["text", "data", "list", "reals", "image"])
    assert len(rows) == count
    for row, wanted in zip(rows, table.to_pylist(), strict=True):
        wanted["image"] = wanted["image"]["bytes"]
        for name, value in wanted.items():
            if name in NUMBERS or name in ("list", "reals"):
                np.testing.assert_array_equal(row[name], np.asarray(value, dtype=None if value != [] else np.int64), name)
            else:
                assert row[name] == as_bytes(value), name


def test_dtypes_and_shapes(tmp_path):
    columns = {name: (kind, edges(name, 5)) for name, kind in NUMBERS.items()}
    columns["when"] = (pa.timestamp("us"), [1, 2, 3, 4, 5])
    columns["day"] = (pa.date32(), [1, 2, 3, 4, 5])
    columns["fixed"] = (pa.binary(3), [b"abc"] * 5)
    columns["vector"] = (pa.list_(pa.float32(), 4), [[1, 2, 3, 4]] * 5)
    columns["tokens"] = (pa.list_(pa.uint16()), [[1, 2]] * 5)
    write(tmp_path / "t.parquet", columns)
    data = ps.parquet(tmp_path / "t.parquet", columns=[name for name in columns if name not in ("vector", "tokens")])
    batch = next(data.batch(5).loader())
    assert {name: np.asarray(batch[name]).dtype.name for name in batch.keys()} == {
        "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "i32": "int32", "u32": "uint32", "i64": "int64",
        "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64", "bool": "bool", "when": "int64", "day": "int32",
        "fixed": "uint8"}
    assert batch["fixed"].shape == (5, 3) and batch["i8"].shape == (5,)
    shaped = ps.parquet(tmp_path / "t.parquet", columns=[ps.TableColumn("v", "vector", shape=(4,)),
                                                        ps.TableColumn("m", "vector", shape=(None, 2))])
    batch = next(shaped.map(ps.pad("m", 3, value=9)).batch(5).loader())
    assert np.asarray(batch["v"]).tolist() == [[1, 2, 3, 4]] * 5
    assert np.asarray(batch["m"]).tolist() == [[[1, 2], [3, 4], [9, 9]]] * 5
    wrong = ps.parquet(tmp_path / "t.parquet", columns=[ps.TableColumn("v", "vector", shape=(3,))])
    with pytest.raises(ps.DataError, match=r"column 'vector': expected 3 values.*found 4"):
        next(wrong.batch(1).loader())


LISTS = [[], [1], None, [2, None], list(range(300)), [], [7] * 5]


@pytest.mark.parametrize("page_version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_nulls_are_stated_values_or_faults(tmp_path, page_version, codec):
    path = tmp_path / "t.parquet"
    columns = {
        "x": (pa.int32(), [1, None, 3, None, 5, 6, None]),
        "text": (pa.string(), ["a", None, "", "ccc", None, "e", "f"]),
        "list": (pa.list_(pa.int64()), LISTS),
        "image": (IMAGE, [{"bytes": b"1", "path": None}, None, {"bytes": None, "path": "a.jpg"}, *[{"bytes": b"4", "path": "b"}] * 4]),
        "words": (pa.list_(pa.string()), [["a", "bb"], None, [], [None, "c"], ["d"], [""], ["e"] * 40]),
    }
    write(path, columns, data_page_version=page_version, compression=codec, data_page_size=16, write_batch_size=2,
          use_dictionary=False, row_group_size=5)
    optional = [ps.TableColumn("x", required=False, default_value=-1), ps.TableColumn("text", required=False),
                ps.TableColumn("list", required=False, default_value=-2), ps.TableColumn("image", required=False),
                ps.TableColumn("words", required=False, lengths="sizes")]
    rows = read(ps.parquet(path, columns=optional), ragged=["text", "list", "image", "words", "sizes"])
    assert [row["x"] for row in rows] == [1, -1, 3, -1, 5, 6, -1]
    assert [row["text"] for row in rows] == [b"a", b"", b"", b"ccc", b"", b"e", b"f"]
    assert [row["list"] for row in rows] == [[-2 if v is None else v for v in values or []] for values in LISTS]
    assert [row["image"] for row in rows] == [b"1", b"", b"", b"4", b"4", b"4", b"4"]
    assert [row["words"] for row in rows] == [b"abb", b"", b"", b"c", b"d", b"", b"e" * 40]
    assert [row["sizes"] for row in rows] == [[1, 2], [], [], [0, 1], [1], [0], [1] * 40]

    def faulty(column, *ragged):
        data = ps.parquet(path, columns=[column])
        for name in ragged:
            data = data.map(ps.pad(name, 400))
        loader = data.batch(7).loader(on_fault="mask", max_fault_rate=1)
        next(loader)
        return [fault.row for fault in loader.faults()], [fault.reason for fault in loader.faults()]

    wrong, reasons = faulty("x")
    assert wrong == [1, 3, 6] and "column 'x': the value is null" in reasons[0]
    assert faulty("text", "text")[0] == [1, 4]
    assert faulty("list", "list")[0] == [2, 3]
    wrong, reasons = faulty("image", "image")
    assert wrong == [1, 2] and "has a path alone" in reasons[0]
    assert faulty(ps.TableColumn("words", lengths="sizes"), "words", "sizes")[0] == [1, 3]


def test_lists_go_on_over_pages_and_files_over_groups(tmp_path):
    for version in ("1.0", "2.0"):
        lists = [list(range(i, i + 700 * (i % 3))) for i in range(20)]
        for part in range(2):
            write(tmp_path / f"{version}-{part}.parquet", {"tokens": (pa.list_(pa.int32()), lists[part * 10:part * 10 + 10])},
                  data_page_version=version, data_page_size=256, write_batch_size=16, row_group_size=4, compression="snappy")
        data = ps.parquet(str(tmp_path / f"{version}-*.parquet"))
        assert [row["tokens"] for row in read(data, ragged=["tokens"], most=1500)] == lists


def test_a_list_that_v1_pages_share_is_one_row(tmp_path):
    # Each page ends within a row: pyarrow before 7 and parquet-mr write such files.
    path = tmp_path / "t.parquet"
    write(path, {"tokens": (pa.list_(pa.int32()), [list(range(5000)), [], [1, 2, 3]])}, data_page_size=64, write_batch_size=64,
          data_page_version="1.0", compression="none", use_dictionary=False)
    data = ps.parquet(path)
    assert [row["tokens"] for row in read(data, ragged=["tokens"], most=5000)] == [list(range(5000)), [], [1, 2, 3]]


def test_parts_of_structs_by_dotted_names(tmp_path):
    path = tmp_path / "t.parquet"
    kind = pa.struct({"left": pa.float32(), "size": pa.struct({"w": pa.int32(), "h": pa.int32()})})
    boxes = [{"left": 1.5, "size": {"w": 1, "h": 2}}, {"left": 2.5, "size": {"w": 3, "h": 4}}]
    objects = pa.list_(pa.struct({"category": pa.int64(), "name": pa.string()}))
    table = pa.table({"box": pa.array(boxes, type=kind),
                      "objects": pa.array([[{"category": 1, "name": "a"}, {"category": 2, "name": "b"}], []], type=objects),
                      "images": pa.array([[{"bytes": b"xy", "path": None}, {"bytes": b"z", "path": None}], []],
                                         type=pa.list_(IMAGE))})
    pq.write_table(table, path)
    columns = ["box.left", "box.size.w", ps.TableColumn("height", "box.size.h"), "objects.category",
               ps.TableColumn("images", lengths="sizes")]
    rows = read(ps.parquet(path, columns=columns), ragged=["objects.category", "images", "sizes"])
    assert rows == [
        {"box.left": 1.5, "box.size.w": 1, "height": 2, "objects.category": [1, 2], "images": b"xyz", "sizes": [2, 1]},
        {"box.left": 2.5, "box.size.w": 3, "height": 4, "objects.category": [], "images": b"", "sizes": []}]
    with pytest.raises(ps.Error, match=r"'box' is a struct; name its parts: box.left, box.size.w, box.size.h"):
        ps.parquet(path, columns="box")
    with pytest.raises(ps.Error, match=r"'objects.name' has lists of texts or bytes: name a field for their lengths"):
        ps.parquet(path)


def huggingface(path, names, labels, **options):
    """As datasets writes it: media uncompressed and without a dictionary, the features in the schema."""
    features = {"image": {"_type": "Image"}, "label": {"names": names, "_type": "ClassLabel"}}
    schema = pa.schema({"image": IMAGE, "label": pa.int64()}, metadata={"huggingface": json.dumps({"info": {"features": features}})})
    images = [{"bytes": few_bytes(i, 100 + i), "path": f"{i}.jpg"} for i in range(len(labels))]
    table = pa.table({"image": pa.array(images, type=IMAGE), "label": pa.array(labels, type=pa.int64())}, schema=schema)
    pq.write_table(table, path, row_group_size=100, use_dictionary=["label"],
                   compression={"image.bytes": "none", "image.path": "snappy", "label": "snappy"}, **options)
    return images


def test_hugging_face_labels_and_their_names(tmp_path):
    labels = [i % 3 for i in range(250)]
    images = huggingface(tmp_path / "train-00000-of-00001.parquet", ["cat", "dog", "eel"], labels)
    data = ps.parquet(tmp_path)
    assert data.class_names == ["cat", "dog", "eel"]
    assert list(data.labels()) == labels
    assert len(data.filter(lambda info: info.label == 1)) == 83
    rows = read(data, ragged=["image"])
    assert [row["image"] for row in rows] == [image["bytes"] for image in images]
    assert [row["label"] for row in rows] == labels
    one = data.select([7]).map(ps.pad("image", 400)).batch(1).loader()
    next(one)
    # The value with its length, and the pages of labels.
    assert one.stats().bytes_read < 107 + 4 + 200
    huggingface(tmp_path / "train-00001-of-00001.parquet", ["dog", "cat", "eel"], labels)
    with pytest.raises(ps.Error, match="the same number would be two classes"):
        ps.parquet(tmp_path)


def damaged(path, find, by, where=0):
    """Overwrites bytes of a file, whose size and time of change stay."""
    times = os.stat(path).st_atime_ns, os.stat(path).st_mtime_ns
    data = bytearray(path.read_bytes())
    at = data.index(find) + where
    data[at:at + len(by)] = by
    path.write_bytes(data)
    os.utime(path, ns=times)


def faults_of(data, rows):
    loader = data.batch(rows).loader(on_fault="mask", max_fault_rate=1)
    next(loader)
    return {fault.row: fault.reason for fault in loader.faults()}


def test_what_the_index_says_is_compared_with_what_is_read(tmp_path):
    path = tmp_path / "t.parquet"
    count = 12
    options = dict(use_dictionary=False, compression="none", row_group_size=4, write_page_checksum=False)
    write(path, {"data": (pa.binary(), [b"<%02d>" % i + b"x" * 10 for i in range(count)]),
                 "label": (pa.int64(), [0x11223300 + i for i in range(count)])}, **options)
    data = ps.parquet(path).map(ps.pad("data", 40))
    assert faults_of(data, count) == {}
    assert list(data.labels()) == [0x11223300 + i for i in range(count)]
    damaged(path, b"<05>", (13).to_bytes(4, "little"), where=-4)  # the value's length
    damaged(path, (0x11223300 + 9).to_bytes(8, "little"), (0x11223300 + 7).to_bytes(8, "little"))
    found = faults_of(ps.parquet(path).map(ps.pad("data", 40)), count)
    assert sorted(found) == [5, 9]
    assert "column 'data': the value's length is no longer the one that was indexed" in found[5]
    assert "column 'label': the value is 287453959 in the row, and 287453961 in the index" in found[9]

    write(path, {"tokens": (pa.list_(pa.int32()), [[i] * (i + 1) for i in range(count)])}, **options)
    lists = ps.parquet(path).map(ps.pad("tokens", 40))
    assert faults_of(lists, count) == {}
    # Another file of the same size and time: each list of a group gets the length of another one.
    times = os.stat(path).st_atime_ns, os.stat(path).st_mtime_ns
    before = path.stat().st_size
    write(path, {"tokens": (pa.list_(pa.int32()), [[i] * (i + 2 if i % 4 == 0 else i if i % 4 == 1 else i + 1) for i in range(count)])},
          **options)
    assert path.stat().st_size == before
    os.utime(path, ns=times)
    found = faults_of(ps.parquet(path).map(ps.pad("tokens", 40)), count)
    assert sorted(found) == [0, 1, 4, 5, 8, 9]
    assert "the list has 2 values, and 1 in the index" in found[0]


@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_a_damaged_page_is_a_fault_of_its_rows(tmp_path, codec):
    path = tmp_path / "t.parquet"
    count = 40
    table = {"x": (pa.int64(), list(range(count))), "y": (pa.int64(), [i * 3 for i in range(count)])}
    write(path, table, use_dictionary=False, compression=codec, row_group_size=10, write_page_checksum=True)
    good = path.read_bytes()
    found = pq.ParquetFile(path).metadata.row_group(2).column(0)
    at = found.data_page_offset
    broken = bytearray(good)
    broken[at + found.total_compressed_size - 3] ^= 0xFF
    path.write_bytes(broken)
    data = ps.parquet(path, index_location="memory")
    faults = faults_of(data, count)
    assert sorted(faults) == list(range(20, 30)) and "column 'x'" in faults[20]
    # A header that cannot be read: the column's pages are not found, and all other rows are there.
    broken = bytearray(good)
    broken[at:at + 4] = b"\xFF" * 4
    path.write_bytes(broken)
    faults = faults_of(ps.parquet(path, index_location="memory"), count)
    assert sorted(faults) == list(range(20, 30))
    loader = ps.parquet(path, index_location="memory").batch(count).loader(on_fault="mask", max_fault_rate=1)
    step = next(loader)
    x, y = np.asarray(step["x"]), np.asarray(step["y"])
    for row in [*range(20), *range(30, 40)]:
        assert (x[row], y[row]) == (row, row * 3)


def with_features(table, features):
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


F32 = {"dtype": "float32", "_type": "Value"}
BOXES = [[[i + k / 4, k, -1.0, 1e9] for k in range((i * 7) % 4)] for i in range(60)]  # some have none
CUBES = [[[[i, -i], [k, 2], [3, 4]] for k in range(2)] for i in range(60)]
OBJECTS = [[{"bbox": box, "id": k} for k, box in enumerate(boxes)] for boxes in BOXES]


@pytest.mark.parametrize("options", [{"data_page_size": 64, "use_dictionary": False, "write_batch_size": 1}, {"compression": "none"},
                                     {"data_page_size": 128, "data_page_version": "2.0", "compression": "zstd"}],
                         ids=["lists that go on in other pages", "uncompressed", "version 2"])  # fmt: skip
def test_lists_of_lists_have_a_shape(tmp_path, options):
    path = tmp_path / "t.parquet"
    f32s, i64s = pa.list_(pa.float32()), pa.list_(pa.int64())
    table = write(path, {"boxes": (pa.list_(f32s), BOXES), "cubes": (pa.list_(pa.list_(i64s)), CUBES), "n": (pa.int64(), list(range(60))),
                         "objects": (pa.list_(pa.struct({"bbox": f32s, "id": pa.int64()})), OBJECTS)}, **options)  # fmt: skip
    columns = [ps.TableColumn("boxes", shape=(None, 4)), ps.TableColumn("cubes", shape=(2, 3, 2)),
               ps.TableColumn("bbox", "objects.bbox", shape=(None, 4)), ps.TableColumn("ids", "objects.id"), "n"]  # fmt: skip
    for data in ps.parquet(path, columns=columns, index_location="memory"), ps.arrow_table(table, columns=columns):
        rows = read(data.shuffle(seed=3), ragged=["boxes", "bbox", "ids"])
        assert sorted(row["n"] for row in rows) == list(range(60))
        for row in rows:
            boxes, n = np.float32(BOXES[row["n"]]), row["n"]
            np.testing.assert_array_equal(np.float32(row["boxes"]).reshape(-1, 4), boxes.reshape(-1, 4))
            np.testing.assert_array_equal(np.float32(row["bbox"]).reshape(-1, 4), boxes.reshape(-1, 4))
            assert (row["cubes"], row["ids"]) == (CUBES[n], list(range(len(boxes))))


def test_lists_of_lists_of_another_shape_are_faults_of_their_rows(tmp_path):
    good = [[1, 2], [3, 4]]
    rows = [good, [[1, 2], [3]], [[1], [2, 3, 4]], [[1, 2], None], [[], []], [[1, 2], []], [[1, None], [3, 4]], None, [], good]
    path = tmp_path / "t.parquet"
    for kind in pa.list_(pa.list_(pa.int64())), pa.list_(pa.large_list(pa.int64())):
        table = write(path, {"x": (kind, rows)})
        for required, ok in (True, [0, 8, 9]), (False, [0, 6, 7, 8, 9]):
            column = ps.TableColumn("x", shape=(None, 2), required=required, default_value=-7)
            for data in ps.parquet(path, columns=column, index_location="memory"), ps.arrow_table(table, columns=column):
                loader = data.map(ps.pad("x", 3)).batch(10).loader(on_fault="mask", max_fault_rate=1)
                step = next(loader)
                assert np.flatnonzero(np.asarray(step["valid"])).tolist() == ok
                x = np.asarray(step["x"])
                assert x[0].tolist() == x[9].tolist() == [*good, [0, 0]]
                assert not x[8].any()
                if not required:
                    assert x[6].tolist() == [[1, -7], [3, 4], [0, 0]] and not x[7].any()
                reasons = " ".join(fault.reason for fault in loader.faults())
                assert "column 'x': expected lists of the shape [?,2], found an inner one of another size" in reasons
                assert "an inner one that is null" in reasons


def test_huggingface_says_how_long_inner_lists_are(tmp_path):
    """As datasets writes Array2D, lists of lists of one length, and lists of structs, before and since version 4."""
    old_list, box = {"feature": F32, "length": 4, "_type": "Sequence"}, {"feature": F32, "length": 4, "_type": "List"}
    f32s = pa.list_(pa.float32())
    table = pa.table({"matrix": pa.array([[[i, 1.0], [2.0, 3.0], [4.0, 5.0]] for i in range(60)], pa.list_(f32s)), "boxes": pa.array(BOXES, pa.list_(f32s)),
                      "old": pa.array(BOXES, pa.list_(f32s)), "objects": pa.array(OBJECTS, pa.list_(pa.struct({"bbox": f32s, "id": pa.int64()}))),
                      "parts": pa.array([{"bbox": boxes} for boxes in BOXES], pa.struct({"bbox": pa.list_(f32s)}))})  # fmt: skip
    table = with_features(table, {"matrix": {"shape": [3, 2], "dtype": "float32", "_type": "Array2D"}, "boxes": {"feature": box, "_type": "List"},
                                  "old": [old_list], "objects": {"feature": {"bbox": box, "id": {"dtype": "int64", "_type": "Value"}}, "_type": "List"},
                                  "parts": {"feature": {"bbox": old_list}, "_type": "Sequence"}})  # fmt: skip
    pq.write_table(table, tmp_path / "t.parquet")
    for data in ps.parquet(tmp_path / "t.parquet", index_location="memory"), ps.arrow_table(table):
        assert [str(field) for field in data.fields] == ["matrix f32 [3,2]", "boxes f32 [?,4]", "old f32 [?,4]", "objects.bbox f32 [?,4]", "objects.id i64 [?]",
                                                         "parts.bbox f32 [?,4]"]  # fmt: skip
        for i, row in enumerate(read(data, ragged=["boxes", "old", "objects.bbox", "objects.id", "parts.bbox"])):
            assert row["matrix"] == [[i, 1], [2, 3], [4, 5]]
            for name in "boxes", "old", "objects.bbox", "parts.bbox":
                np.testing.assert_array_equal(np.float32(row[name]).reshape(-1, 4), np.float32(BOXES[i]).reshape(-1, 4))


def test_lists_of_lists_in_large_pages_are_read_again(tmp_path):
    """Rows of numbers in such pages are otherwise read without the rest of the page, and so without the levels."""
    path, count = tmp_path / "t.parquet", 60_000
    values = np.arange(count * 4, dtype=np.int32).reshape(count, 2, 2)
    write(path, {"x": (pa.list_(pa.list_(pa.int32())), values.tolist())}, use_dictionary=False, compression="none", data_page_size=1 << 24,
          write_batch_size=count)  # fmt: skip
    rows = [7, count - 2, 31_000, 500] * 5
    data = ps.parquet(path, columns=ps.TableColumn("x", shape=(None, 2)), index_location="memory", page_cache_bytes=1 << 16)
    for row, found in zip(rows, read(data.select(rows).map(ps.pad("x", 2))), strict=True):
        assert found["x"] == values[row].tolist()


def test_shapes_that_lists_of_lists_cannot_have(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, {"x": (pa.list_(pa.list_(pa.int32())), [[[1]]])})
    for shape in (None,), (1, 1, 1), (None, None), (None, 0):
        with pytest.raises(ValueError, match="column 'x': expected .*found the shape"):
            ps.parquet(path, columns=ps.TableColumn("x", shape=shape), index_location="memory")
    fixed = pa.table({"x": pa.array([[[1, 2]]], pa.list_(pa.list_(pa.int32(), 2)))})
    with pytest.raises(ValueError, match=r"expected the sizes of the lists, \(any, 2\), found the shape \[\?,3\]"):
        ps.arrow_table(fixed, columns=ps.TableColumn("x", shape=(None, 3)))
    assert [str(field) for field in ps.arrow_table(fixed).fields] == ["x i32 [?,2]"]
    write(path, {"x": (pa.list_(pa.list_(pa.string())), [[["a"]]])})
    with pytest.raises(ps.Error, match="'x' has lists of lists of texts or bytes"):
        ps.parquet(path, columns="x", index_location="memory")
    deep = pa.int8()
    for _ in range(7):
        deep = pa.list_(deep)
    write(path, {"x": (deep, [[]])})
    with pytest.raises(ps.Error, match="'x' has lists 7 deep"):
        ps.parquet(path, columns="x", index_location="memory")


def test_files_that_are_refused_say_why(tmp_path):
    def refused(match, *arguments, error=ps.Error, **options):
        with pytest.raises(error, match=match):
            ps.parquet(*arguments, **options)

    path = tmp_path / "t.parquet"
    write(path, {"x": (pa.decimal128(5, 2), [None])})
    refused("'x' is a decimal; name the columns to be read in columns, or convert it with pyarrow", path)
    write(path, {"x": (pa.list_(pa.list_(pa.int32())), [[[1]]])})
    refused("'x' has lists of lists: say how many values the inner ones have, as in TableColumn", path)
    write(path, {"x": (pa.int32(), [1]), "y": (pa.int32(), [1])})
    refused("has no column 'z'; its columns are x, y", path, columns="z")
    refused("columns is empty", path, columns=[], error=TypeError)
    refused("expected names of columns", path, columns=[7], error=TypeError)
    refused("two fields are named 'x'", path, columns=["x", "x"], error=ValueError)
    refused("no shape for a column of numbers", path, columns=[ps.TableColumn("x", shape=(3,))], error=ValueError)
    refused("lengths are those of a list's texts", path, columns=[ps.TableColumn("x", lengths="l")], error=ValueError)
    refused("1.5 is no value of type i32", path, columns=[ps.TableColumn("x", default_value=1.5)], error=ValueError)
    refused("max_record_bytes is 0", path, max_record_bytes=0, error=ValueError)
    write(tmp_path / "u.parquet", {"x": (pa.int64(), [1]), "y": (pa.int32(), [1])})
    refused("the column 'x' is x i64 .*, and in .*t.parquet it is x i32", tmp_path)
    write(tmp_path / "u.parquet", {"x": (pa.int32(), [1])})
    refused("u.parquet has no column 'y'", tmp_path)
    path.write_bytes(path.read_bytes()[:-9])
    refused("t.parquet", path)
    path.write_bytes(b"")
    refused("t.parquet", path)
    (tmp_path / "none").mkdir()
    refused("no shards in", tmp_path / "none")
    (tmp_path / "none" / "a.arrow").write_bytes(b"")
    refused("a.arrow is an Arrow file", tmp_path / "none")


def test_empty_tables_and_groups(tmp_path):
    write(tmp_path / "a.parquet", {"x": (pa.int32(), [])})
    write(tmp_path / "b.parquet", {"x": (pa.int32(), [1, 2])})
    write(tmp_path / "c.parquet", {"x": (pa.int32(), [])})
    write(tmp_path / "d.parquet", {"x": (pa.int32(), [3])})
    assert [row["x"] for row in read(ps.parquet(tmp_path))] == [1, 2, 3]
    with pytest.raises(ValueError, match="no samples|empty|0 samples"):
        next(ps.parquet(tmp_path / "a.parquet").batch(1).loader())


def test_digests_are_equal_for_any_threads_caches_and_indexes(tmp_path):
    count = 400
    for part in range(3):
        write(tmp_path / f"{part}.parquet", {"text": (pa.string(), [f"{part}/{i}" * (i % 5) for i in range(count)]),
                                             "label": (pa.int64(), list(range(count)))},
              data_page_size=128, write_batch_size=8, row_group_size=90)

    def digest(threads=2, **options):
        data = ps.parquet(tmp_path, **options).map(ps.pad("text", 40)).shuffle(seed=5).batch(32)
        steps = [(np.asarray(step["text"]).tobytes(), np.asarray(step["label"]).tobytes()) for step in data.loader(threads=threads)]
        return hash(tuple(steps)), len(steps)

    wanted = digest()
    assert wanted[1] == 38
    assert digest(1, page_cache_bytes=0) == wanted
    assert digest(4, index_location="memory") == wanted
    plan = ps.parquet(tmp_path).map(ps.pad("text", 40)).shuffle(seed=5).batch(32)
    for again in (ps.Dataset.from_json(plan.to_json()), pickle.loads(pickle.dumps(plan))):
        steps = [(np.asarray(step["text"]).tobytes(), np.asarray(step["label"]).tobytes()) for step in again.loader()]
        assert hash(tuple(steps)) == wanted[0]


def test_a_state_resumes_exactly(tmp_path):
    write(tmp_path / "a.parquet", {"x": (pa.int64(), list(range(200)))}, row_group_size=17)
    plan = ps.parquet(tmp_path / "a.parquet").shuffle(seed=1).repeat(2).batch(7)
    loader = plan.loader()
    steps = [np.asarray(step["x"]).tolist() for step in loader]
    for at in range(0, len(steps), 5):
        loader = plan.loader()
        for _ in range(at):
            next(loader)
        state = loader.state_dict()
        again = plan.loader()
        again.load_state_dict(state)
        assert [np.asarray(step["x"]).tolist() for step in again] == steps[at:]


def test_lists_of_tokens_are_packed_without_reading_them_first(tmp_path):
    lists = [list(range(i, i + 1 + i * 7 % 60)) for i in range(100)]
    write(tmp_path / "a.parquet", {"tokens": (pa.list_(pa.int32()), lists)}, row_group_size=30)
    data = ps.parquet(tmp_path / "a.parquet", columns=["tokens"]).pack(64)
    found = []
    for step in data.batch(1).loader():
        found += np.asarray(step["tokens"])[0].tolist()
    assert sorted(v for v in found if v) == sorted(v for values in lists for v in values if v)


def test_names_and_places(tmp_path):
    images = huggingface(tmp_path / "a.parquet", ["x", "y"], [0, 1, 0])
    data = ps.parquet(tmp_path / "a.parquet").map(ps.pad("image", 200)).batch(3)
    names = next(data.loader()).names()
    assert [name.key for name in names] == ["a.parquet:0", "a.parquet:1", "a.parquet:2"]
    content = (tmp_path / "a.parquet").read_bytes()
    for name, image in zip(names, images, strict=True):
        assert content[name.offset:name.offset + len(image["bytes"])] == image["bytes"]


def test_reprs_and_types():
    column = ps.TableColumn("v", "vector", shape=(None, 2))
    assert repr(column) == "TableColumn(name='v', column='vector', shape=(None, 2))"
    assert repr(pickle.loads(pickle.dumps(column))) == repr(column)


FIXTURES = pathlib.Path(__file__).parents[2] / "tests" / "source" / "parquet" / "files"


def parts_of(kind, name):
    """The columns that parquet() has of an Arrow type: (dotted name, type of its values, whether in a list)."""
    if pa.types.is_struct(kind):
        names = [kind.field(i).name for i in range(kind.num_fields)]
        if sorted(names) == ["bytes", "path"]:
            return [(name, pa.binary(), False)]
        return [part for field in names for part in parts_of(kind.field(field).type, f"{name}.{field}")]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [(part, value, True if not in_list else None) for part, value, in_list in parts_of(kind.value_type, name)]
    if pa.types.is_map(kind):
        return []
    return [(name, kind, False)]


def value_at(value, names):
    if value is None:
        return None
    if isinstance(value, list):
        return [value_at(one, names) for one in value]
    if isinstance(value, dict) and sorted(value) == ["bytes", "path"] and not names:
        return value["bytes"]
    return value_at(value[names[0]], names[1:]) if names else value


def is_text(kind):
    return any(check(kind) for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary,
                                         pa.types.is_large_binary, pa.types.is_dictionary))


def as_integers(table):
    """Dates and times as the integers that they are stored as."""
    for i, field in enumerate(table.schema):
        if pa.types.is_temporal(field.type):
            kind = pa.int32() if field.type.bit_width == 32 else pa.int64()
            table = table.set_column(i, field.name, table.column(i).cast(kind))
    return table


@pytest.mark.parametrize("name", sorted(path.stem for path in FIXTURES.glob("*.parquet")))
def test_files_of_pyarrow_polars_and_duckdb(name):
    """Those beside tests/source/parquet/files/make.py, column by column."""
    path = FIXTURES / f"{name}.parquet"
    if name in ("brotli", "int96"):
        with pytest.raises((ps.Error, ps.DataError), match="BROTLI|INT96"):
            read(ps.parquet(path, index_location="memory"))
        return
    table = as_integers(pq.read_table(path))
    checked = 0
    for field in table.schema:
        rows = table.column(field.name).to_pylist()
        for part, kind, in_list in parts_of(field.type, field.name):
            text = is_text(kind)
            column = ps.TableColumn("v", part, required=False, default_value=0, lengths="n" if in_list and text else "")
            if in_list is None or pa.types.is_decimal(kind):
                with pytest.raises(ps.Error, match="lists of lists|decimal"):
                    ps.parquet(path, columns=column, index_location="memory")
                continue
            ragged = ["v", "n"] if in_list and text else ["v"] if in_list or text else []
            if len(rows) == 0:
                assert len(ps.parquet(path, columns=column, index_location="memory")) == 0
                continue
            found = read(ps.parquet(path, columns=column, index_location="memory"), ragged=ragged, most=3000)
            assert len(found) == len(rows)
            for row, value in zip(found, rows, strict=True):
                value = value_at(value, part.split(".")[1:] if "." in part else [])
                if in_list and text:
                    texts = [as_bytes(one) or b"" for one in value or []]
                    assert (row["v"], row["n"]) == (b"".join(texts), [len(one) for one in texts]), part
                elif in_list:
                    np.testing.assert_array_equal(np.asarray(row["v"]).ravel(), np.asarray([0 if one is None else one for one in value or []]).ravel(), part)
                elif text:
                    assert row["v"] == (as_bytes(value) or b""), part
                elif pa.types.is_fixed_size_binary(kind):
                    assert row["v"] == (value or bytes(kind.byte_width)), part
                else:
                    np.testing.assert_array_equal(row["v"], 0 if value is None else value, part)
            checked += 1
    assert checked > 0 or len(table) == 0


def test_the_first_list_of_numbers_has_the_lengths(tmp_path):
    write(tmp_path / "a.parquet", {"text": (pa.string(), ["a", "bb"]), "input_ids": (pa.list_(pa.int32()), [[1, 2, 3], [4, 5]]),
                                   "completion_mask": (pa.list_(pa.int8()), [[0, 1, 1], [0, 1]])})
    data = ps.parquet(tmp_path / "a.parquet")
    for plan in (data.pack(5, field="input_ids", label_mask="completion_mask"), data.pack(5, field="input_ids")):
        assert np.asarray(next(plan.batch(1).loader())["tokens"]).tolist() == [[1, 2, 3, 4, 5]]
    lists = ps.parquet(tmp_path / "a.parquet", columns=["input_ids", "completion_mask"])
    steps = lists.batch_by_length([2, 4], tokens=8, fields=["input_ids", "completion_mask"]).loader()
    assert sorted(len(np.asarray(step["input_ids"])[0]) for step in steps) == [2, 4]


@pytest.mark.parametrize("codec", ["lz4", "brotli"])
def test_what_cannot_be_decompressed_is_refused_at_once(tmp_path, codec):
    write(tmp_path / "a.parquet", {"x": (pa.int64(), [1, 2]), "y": (pa.int64(), [1, 2])}, compression={"x": codec, "y": "none"})
    with pytest.raises(ps.Error, match=f"column 'x': .*{codec.upper()}"):
        ps.parquet(tmp_path / "a.parquet")
    assert [row["y"] for row in read(ps.parquet(tmp_path / "a.parquet", columns=["y"]))] == [1, 2]


def test_values_of_a_dictionary_that_pyarrow_writes_are_decompressed_alone(tmp_path):
    random = np.random.default_rng(1)
    images = [random.bytes(int(size)) for size in random.integers(40_000, 200_000, 64)]
    texts = [None if random.random() < 0.1 else images[int(random.integers(64))] for _ in range(100)]
    pq.write_table(pa.table({"x": texts}), tmp_path / "t.parquet", row_group_size=50)
    chunk = pq.ParquetFile(tmp_path / "t.parquet").metadata.row_group(0).column(0)
    assert chunk.has_dictionary_page and chunk.compression == "SNAPPY"
    columns = [ps.TableColumn("x", required=False)]
    plan = ps.parquet(tmp_path / "t.parquet", columns=columns, page_cache_bytes=0).map(ps.pad("x", 200_000)).shuffle(seed=1).batch(1)
    loader = plan.repeat(2).loader(threads=1)
    rows = [(step["x"].numpy().tobytes(), step.samples[0].number) for step in loader]
    assert all(found == (texts[number] or b"").ljust(200_000, b"\0") for found, number in rows)
    # The two dictionaries once, and of each row its blocks: as wholes they were read some 100 times.
    assert loader.stats().bytes_read < 2 * chunk.total_compressed_size + 2 * 100 * 300_000


@pytest.mark.parametrize("use_dictionary", [False, True])
def test_blocks_of_snappy_need_no_more_of_the_budget_than_a_page(tmp_path, use_dictionary):
    random = np.random.default_rng(1)
    texts = [random.bytes(2_000_000) for _ in range(6)]
    pq.write_table(pa.table({"x": texts}), tmp_path / "t.parquet", compression="snappy", use_dictionary=use_dictionary,
                   row_group_size=3)
    plan = ps.parquet(tmp_path / "t.parquet", page_cache_bytes=0).map(ps.pad("x", 2_000_000)).batch(1).repeat(3)

    def epochs(budget):
        loader = plan.loader(threads=1, io_threads=0, budget_bytes=budget)
        return [step["x"].numpy().tobytes() == texts[k % 6] for k, step in enumerate(loader)]

    least = next(budget for budget in range(6 << 20, 16 << 20, 1 << 18) if enough(lambda: epochs(budget)[:1]))
    assert epochs(least) == [True] * 18


def enough(work):
    try:
        return work()
    except (ps.Error, ValueError, MemoryError):
        return False


@pytest.mark.parametrize("page_version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_numbers_of_rows_whose_pages_have_no_room(tmp_path, page_version, codec, dictionary):
    random = np.random.default_rng(2)
    lengths = random.integers(0, 900, 2000)

    def lists(kind, draw):
        values = pa.array(draw(int(lengths.sum())), kind)
        return pa.ListArray.from_arrays(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32), values)

    tokens = lists(pa.int32(), lambda n: random.integers(0, 40_000, n)).to_pylist()
    tokens[17] = tokens[1400] = None
    table = pa.table({
        "tokens": pa.array(tokens, pa.list_(pa.int32())),
        "mask": lists(pa.int8(), lambda n: random.integers(-1, 2, n).astype(np.int8)),
        "vector": pa.array(random.random((2000, 96)).tolist(), pa.list_(pa.float64())),
        "weight": pa.array(random.random(2000)),
    })
    pq.write_table(table, tmp_path / "t.parquet", data_page_version=page_version, compression=codec, use_dictionary=dictionary)
    data = ps.parquet(tmp_path / "t.parquet", columns=[
        ps.TableColumn("tokens", required=False), "mask", ps.TableColumn("vector", shape=[96]), "weight"], page_cache_bytes=0)
    data = data.map(ps.pad("tokens", 900, lengths="n")).map(ps.pad("mask", 900, lengths="m"))
    expected = table.to_pydict()
    seen = 0
    for step in data.shuffle(seed=1).take(300).repeat(2).batch(1).loader(threads=2):
        row = int(step.names()[0].key.rpartition(":")[2])
        n = int(step["n"].numpy()[0])
        assert step["tokens"].numpy()[0][:n].tolist() == (expected["tokens"][row] or [])
        assert step["mask"].numpy()[0][:int(step["m"].numpy()[0])].tolist() == expected["mask"][row]
        assert step["vector"].numpy()[0].tolist() == expected["vector"][row]
        assert step["weight"].numpy()[0] == expected["weight"][row]
        seen += 1
    assert seen == 600


def test_packing_reads_its_own_columns(tmp_path):
    lists = [list(range(i, i + 20)) for i in range(100)]
    texts = [f"text {i} " * 30 for i in range(100)]
    write(tmp_path / "a.parquet", {"tokens": (pa.list_(pa.int32()), lists), "text": (pa.string(), texts)},
          compression="snappy", use_dictionary=False)
    ps.parquet(tmp_path / "a.parquet")  # makes the index
    times = os.stat(tmp_path / "a.parquet")
    column = pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0).column(1)
    bytes_ = bytearray((tmp_path / "a.parquet").read_bytes())
    at = column.data_page_offset + column.total_compressed_size // 2
    bytes_[at:at + 40] = bytes(40)
    (tmp_path / "a.parquet").write_bytes(bytes_)
    os.utime(tmp_path / "a.parquet", ns=(times.st_atime_ns, times.st_mtime_ns))
    data = ps.parquet(tmp_path / "a.parquet")
    with pytest.raises(ps.Error, match="text"):
        list(data.map(ps.pad("tokens", 20)).map(ps.pad("text", 400)).batch(10).loader())
    assert sum(len(step["tokens"]) for step in data.pack(40).batch(10).loader()) == 50
    assert sum(len(step["tokens"]) for step in data.blocks(40).batch(10).loader()) >= 48
