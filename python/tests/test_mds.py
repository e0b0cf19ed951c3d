"""mds(): every value of data sets that MosaicML's streaming wrote, compared with what its StreamingDataset reads."""
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest
from mds_files import write_mds

import penstock as ps

FILES = pathlib.Path(__file__).parents[2] / "tests" / "source" / "mds" / "files"
VALUES = json.loads((FILES / "values.json").read_text()) if FILES.exists() else {}
pytestmark = pytest.mark.skipif(not FILES.exists(), reason="tests of the sources, which are not here")
IN_MEMORY = {"index_location": "memory"}


@pytest.fixture(autouse=True)
def cache_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))


def read(data, ragged=(), most=2000):
    """All rows in their order: arrays by name."""
    for name in ragged:
        data = data.map(ps.pad(name, most, lengths=f"{name} length"))
    rows = []
    for step in data.batch(1).loader():
        row = {}
        for name in step.keys():
            value = np.asarray(step[name])[0].copy()
            if name in ragged:
                value = value[:int(np.asarray(step[f"{name} length"])[0])]
            if not name.endswith(" length"):
                row[name] = value
        rows.append(row)
    return rows


def same(found, wanted, name):
    """Whether a field has the value that streaming reads."""
    found = np.asarray(found)
    if isinstance(wanted, dict) and "dtype" in wanted:
        assert (found.dtype.name, list(found.shape)) == (wanted["dtype"], wanted["shape"]), name
        assert found.tobytes().hex() == wanted["hex"], name
    elif isinstance(wanted, dict) and "bytes" in wanted:
        assert found.tobytes().hex() == wanted["bytes"], name
    elif isinstance(wanted, dict) and "float" in wanted:
        assert float(found) == float.fromhex(wanted["float"]), name
    elif isinstance(wanted, str):
        assert found.tobytes().decode() == wanted, name
    elif isinstance(wanted, dict):
        assert json.loads(found.tobytes()) == wanted, name
    else:
        assert (found.dtype.kind, int(found)) == ("i", wanted), name


def compare(name, data, ragged=(), **columns):
    rows = read(data, ragged)
    assert len(rows) == len(VALUES[name]) > 0
    for row, wanted in zip(rows, VALUES[name], strict=True):
        assert set(row) == set(columns or wanted)
        for field in row:
            same(row[field], wanted[columns.get(field, field)], field)


def test_numbers_are_those_of_streaming():
    data = ps.mds(FILES / "numbers", **IN_MEMORY)
    assert {str(field).split()[1] for field in data.fields} >= {"u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64"}
    compare("numbers", data, ragged=["str_decimal"])


@pytest.mark.parametrize("name", ["texts", "zstd"])
def test_texts_and_bytes_are_those_of_streaming(name):
    data = ps.mds(FILES / name, **IN_MEMORY)
    compare(name, data, ragged=["text", "data", "json"])
    assert list(data.labels()) == [i % 3 for i in range(23)]
    assert len(data.filter(lambda info: info.label == 1)) == 8


def test_arrays_are_those_of_streaming():
    columns = ["fixed", "half", "tokens", ps.MdsColumn("m", "matrix", shape=(None, 2)), ps.MdsColumn("any", dtype="int64"), "wide"]
    data = ps.mds(FILES / "arrays", columns=columns, **IN_MEMORY)
    assert [str(field) for field in data.fields] == ["fixed f32 [2,3]", "half f16 [3]", "tokens i32 [?]", "m u16 [?,2]", "any i64 [?]",
                                                     "wide u8 [?]"]
    compare("arrays", data, ragged=["tokens", "m", "any", "wide"], fixed="fixed", half="half", tokens="tokens", m="matrix", any="any", wide="wide")
    with pytest.raises(ps.Error, match=r"the column 'any' has arrays.*MdsColumn\(\"any\", dtype=\"float32\"\)"):
        ps.mds(FILES / "arrays", **IN_MEMORY)
    loader = ps.mds(FILES / "arrays", columns=ps.MdsColumn("matrix"), **IN_MEMORY).map(ps.pad("matrix", 9)).batch(1).loader()
    with pytest.raises(ps.DataError, match=r"expected an array u16 \[\?\], found u16 \[1,2\]"):
        next(loader)


def test_images_and_lists_of_images_are_those_of_streaming():
    compare("images", ps.mds(FILES / "images", **IN_MEMORY), ragged=["x"])
    columns = [ps.MdsColumn(name, lengths=f"{name} sizes") for name in ("array", "jpegs", "pngs")] + [ps.MdsColumn("png")]
    names = ["array", "jpegs", "pngs", "png"]
    rows = read(ps.mds(FILES / "lists", columns=columns, **IN_MEMORY), ragged=[*names, *(f"{name} sizes" for name in names[:3])], most=3000)
    for row, wanted in zip(rows, VALUES["lists"], strict=True):
        for name in names[:3]:
            images = [bytes.fromhex(one["bytes"]) for one in wanted[name]]
            assert row[name].tobytes() == b"".join(images)
            assert row[f"{name} sizes"].tolist() == [len(image) for image in images]
        same(row["png"], wanted["png"], "png")
    with pytest.raises(ps.Error, match=r"the column 'array' has lists of images"):
        ps.mds(FILES / "lists", **IN_MEMORY)


def test_a_merged_index_and_lists_of_folders():
    compare("merged", ps.mds(FILES / "merged", **IN_MEMORY))
    parts = ps.mds([FILES / "merged" / "a", FILES / "merged" / "b"], **IN_MEMORY)
    compare("merged", parts)
    names = [name.key for step in ps.mds(FILES / "merged" / "index.json", **IN_MEMORY).batch(5).loader() for name in step.names()]
    assert names == [f"a/shard.00000.mds:{i}" for i in range(3)] + [f"b/shard.00000.mds:{i}" for i in range(2)]
    with pytest.raises(ps.Error, match="its columns are .*, and before it they are x int"):
        ps.mds([FILES / "merged", FILES / "texts"], **IN_MEMORY)


def test_images_of_an_mds_folder_are_decoded(tmp_path):
    image = pytest.importorskip("PIL.Image")
    shutil.copytree(FILES / "images", tmp_path / "images")
    data = ps.images(tmp_path / "images")
    assert list(data.labels()) == [i % 4 for i in range(9)]
    numbers = [0, 3, 6]  # of 10 rows, which need no resampling
    step = next(data.select(numbers).map(ps.decode_image(crop=ps.resize_to((10, 12)))).batch(3).loader())
    assert step["image"].shape == (3, 10, 12, 3)
    for row, i in enumerate(numbers):
        encoded = tmp_path / f"{i}.jpg"
        encoded.write_bytes(bytes.fromhex(VALUES["images"][i]["x"]["bytes"]))
        difference = np.asarray(step["image"])[row].astype(int) - np.asarray(image.open(encoded).convert("RGB"))
        assert abs(difference).max() <= 2


def test_columns_that_are_refused_say_why():
    def refused(match, name, error=ps.Error, **options):
        with pytest.raises(error, match=match):
            ps.mds(FILES / name, **options, **IN_MEMORY)

    refused("'pickle' has the encoding 'pkl', and reading a pickle runs what is in it", "refused", columns=["pickle"])
    refused("'pil' has the encoding 'pil', and its pixels are not encoded: write the column again as png", "refused", columns=["x", "pil"])
    assert len(ps.mds(FILES / "refused", columns="x", **IN_MEMORY)) == 3
    refused("expected no compression, or zstd, found 'gz'", "gzip")
    refused("has no column 'z'; its columns are data bytes, json json, label int32, text str", "texts", columns="z")
    refused("columns is empty", "texts", columns=[], error=TypeError)
    refused("or MdsColumns, found 7", "texts", columns=[7], error=TypeError)
    refused("two fields are named 'text'", "texts", columns=["text", "text"], error=ValueError)
    refused(r"expected shape to be left out: each row has one number, found \[3\]", "texts", error=ValueError,
            columns=ps.MdsColumn("label", shape=(3,)))
    refused("expected dtype to be i32, or i64 for an integer, found f32", "texts", columns=ps.MdsColumn("label", dtype="float32"), error=ValueError)
    refused("'text', whose encoding is str: its values are no array", "texts", columns=ps.MdsColumn("text", dtype="int32"), error=ValueError)
    refused("expected dtype to be u8", "texts", columns=ps.MdsColumn("data", dtype="bool"), error=ValueError)
    refused("lengths are those of a list's images", "texts", columns=ps.MdsColumn("text", lengths="l"), error=ValueError)
    refused(r"expected shape to be \[2,3\], or left out", "arrays", columns=ps.MdsColumn("fixed", shape=(3, 2)), error=ValueError)
    refused("the first alone may be None", "arrays", columns=ps.MdsColumn("matrix", shape=(2, None)), error=ValueError)
    refused("max_record_bytes is 0", "texts", max_record_bytes=0, error=ValueError)
    with pytest.raises(ps.Error, match=r"name a split in it, such as .*/files/"):
        ps.mds(FILES)
    with pytest.raises(ps.Error, match=r"found a shard, .*shard.00000.mds: give the folder that index.json is in"):
        ps.mds(FILES / "texts" / "shard.00000.mds")


def tokens_of(i):
    return np.arange(i, i + 1 + i * 7 % 60, dtype=np.int32)


def test_what_these_tests_write_is_what_streaming_writes(tmp_path):
    """Its shards have a text more, which neither reads."""
    write_mds(tmp_path / "x", [("x", "int", 8)], [[np.int64(i).tobytes()] for i in range(3)])
    own = (tmp_path / "x" / "shard.00000.mds").read_bytes()
    theirs = (FILES / "merged" / "a" / "shard.00000.mds").read_bytes()
    text = len(theirs) - len(own)
    assert theirs[:4] == own[:4] and theirs[20 + text:] == own[20:]
    assert (np.frombuffer(theirs[4:20], np.uint32) - np.frombuffer(own[4:20], np.uint32)).tolist() == [text] * 4


def test_digests_are_equal_for_any_threads_indexes_and_compression(tmp_path):
    shutil.copytree(FILES / "zstd", tmp_path / "zstd")
    shutil.copytree(FILES / "unzipped", tmp_path / "unzipped")

    def digest(name="zstd", threads=2, **options):
        data = ps.mds(tmp_path / name, columns=["text", "label"], **options).map(ps.pad("text", 80)).shuffle(seed=5).repeat(2).batch(4)
        steps = [(np.asarray(step["text"]).tobytes(), np.asarray(step["label"]).tobytes()) for step in data.loader(threads=threads)]
        return hash(tuple(steps)), len(steps)

    wanted = digest()
    assert wanted[1] == 12
    assert digest(threads=1) == wanted
    assert digest(threads=4, **IN_MEMORY) == wanted
    assert digest(threads=4, unpacked_bytes=1300, index_cache=tmp_path / "small") == wanted
    assert digest("unzipped") == wanted
    plan = ps.mds(tmp_path / "zstd", columns=["text", "label"]).map(ps.pad("text", 80)).shuffle(seed=5).repeat(2).batch(4)
    for again in (ps.Dataset.from_json(plan.to_json()), pickle.loads(pickle.dumps(plan))):
        steps = [(np.asarray(step["text"]).tobytes(), np.asarray(step["label"]).tobytes()) for step in again.loader()]
        assert hash(tuple(steps)) == wanted[0]


RESUME = """
import json, sys, penstock as ps
folder, state, devices = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
loader = ps.mds(folder).shuffle(seed=1).repeat(2).batch(12).prefetch_to_devices(devices).loader()
loader.load_state_dict(state)
print(json.dumps([[v for part in step.parts for v in part["x"].numpy().tolist()] for step in loader]))
"""


def test_a_state_resumes_in_another_process_and_on_other_devices(tmp_path):
    write_mds(tmp_path / "x", [("x", "int", 8)], [[np.int64(i * 3).tobytes()] for i in range(200)])
    plan = ps.mds(tmp_path / "x").shuffle(seed=1).repeat(2).batch(12)
    steps = [np.asarray(step["x"]).tolist() for step in plan.loader()]
    assert sorted(v for step in steps for v in step) == sorted(2 * list(range(0, 600, 3)))
    loader = plan.loader()
    for _ in range(9):
        next(loader)
    state = json.dumps(loader.state_dict())
    for devices in ("host:1", "host:2", "host:4"):
        out = subprocess.run([sys.executable, "-c", RESUME, tmp_path / "x", state, devices], capture_output=True, text=True, check=True)
        assert json.loads(out.stdout) == steps[9:]
    # Of other rows it does not.
    write_mds(tmp_path / "x", [("x", "int", 8)], [[np.int64(i * 3).tobytes()] for i in range(199)])
    with pytest.raises(ps.Error, match="199"):
        ps.mds(tmp_path / "x").shuffle(seed=1).repeat(2).batch(12).loader().load_state_dict(json.loads(state))


SHARED = """
import sys, penstock as ps
for round in range(4):
    data = ps.mds(sys.argv[1], columns=["text", "label"], unpacked_bytes=1300, index_location="memory").map(ps.pad("text", 80))
    loader = data.shuffle(seed=7).repeat(3).batch(4).loader(digest=True)
    for step in loader:
        pass
    print(loader.digest)
"""


def test_processes_that_share_room_for_one_shard_read_the_same(tmp_path):
    shutil.copytree(FILES / "zstd", tmp_path / "zstd")
    processes = [subprocess.Popen([sys.executable, "-c", SHARED, tmp_path / "zstd"], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    digests = [line for process in processes for line in process.communicate()[0].split()]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(digests) == 12 and len(set(digests)) == 1
    assert not list((tmp_path / "cache" / "shards").glob("*.tmp.*"))


def test_tokens_are_packed_without_reading_them_first(tmp_path):
    rows = [tokens_of(i) for i in range(100)]
    columns = {"ndarray": [("tokens", "ndarray:int32", None)], "bytes": [("id", "int", 8), ("text", "str", None), ("tokens", "bytes", None)]}
    for kind, layout in columns.items():
        if kind == "ndarray":
            values = [[bytes([1 << 2, len(row)]) + row.tobytes()] for row in rows]
        else:
            values = [[np.int64(i).tobytes(), b"t" * i, row.tobytes()] for i, row in enumerate(rows)]
        write_mds(tmp_path / kind, layout, values)
        column = ps.MdsColumn("tokens", dtype="int32")
        data = ps.mds(tmp_path / kind, columns=column).pack(64)
        found = []
        for step in data.batch(1).loader():
            found += np.asarray(step["tokens"])[0].tolist()
        assert sorted(v for v in found if v) == sorted(int(v) for row in rows for v in row if v)
    shaped = ps.mds(tmp_path / "bytes", columns=ps.MdsColumn("tokens", shape=(3,), dtype="int32"), **IN_MEMORY)
    faults = faults_of(shaped, 100)
    assert len(faults) == sum(len(row) != 3 for row in rows)
    assert "expected 3 values, for the shape [3], found 1" in faults[0]


def faults_of(data, rows):
    loader = data.batch(rows).loader(on_fault="mask", max_fault_rate=1)
    next(loader)
    return {fault.row: fault.reason for fault in loader.faults()}


def test_damaged_rows_are_faults_and_move_no_other(tmp_path):
    folder = tmp_path / "x"
    write_mds(folder, [("label", "int", 8), ("text", "str", None)], [[np.int64(i).tobytes(), b"x" * (i % 9)] for i in range(60)], shard_rows=20)
    data = ps.mds(folder).map(ps.pad("text", 9))
    good = [np.asarray(step["label"]).tolist() for step in data.batch(60).loader()][0]
    shard = bytearray((folder / "shard.00001.mds").read_bytes())
    times = os.stat(folder / "shard.00001.mds").st_atime_ns, os.stat(folder / "shard.00001.mds").st_mtime_ns
    at = int(np.frombuffer(shard[4 * 8:4 * 9], np.uint32)[0])  # row 7 of the shard: its text's size
    shard[at:at + 4] = np.uint32(99).tobytes()
    (folder / "shard.00001.mds").write_bytes(shard)
    os.utime(folder / "shard.00001.mds", ns=times)
    loader = ps.mds(folder).map(ps.pad("text", 9)).batch(60).loader(on_fault="mask", max_fault_rate=1)
    step = next(loader)
    faults = list(loader.faults())
    assert [fault.row for fault in faults] == [27]
    assert "shard.00001.mds:7" in faults[0].file and "the columns of the row take" in faults[0].reason
    assert [v for i, v in enumerate(np.asarray(step["label"]).tolist()) if i != 27] == [v for i, v in enumerate(good) if i != 27]
    (folder / "shard.00002.mds").write_bytes((folder / "shard.00002.mds").read_bytes()[:-1])
    with pytest.raises(ps.Error, match="shard.00002.mds: expected .* bytes, as index.json says, found"):
        ps.mds(folder)


def test_empty_shards_and_data_sets(tmp_path):
    write_mds(tmp_path / "none", [("x", "int", 8)], [])
    with pytest.raises(ps.Error, match="there are no shards: nothing was written to the data set"):
        ps.mds(tmp_path / "none")
    write_mds(tmp_path / "one", [("x", "int", 8)], [[np.int64(5).tobytes()]])
    assert [row["x"].item() for row in read(ps.mds([tmp_path / "none", tmp_path / "one"]))] == [5]
    write_mds(tmp_path / "empty", [("x", "str", None)], [[b""], [b""]])
    assert [row["x"].size for row in read(ps.mds(tmp_path / "empty"), ragged=["x"])] == [0, 0]


def test_reprs_and_types():
    column = ps.MdsColumn("v", "vector", shape=(None, 2), dtype="float32")
    assert repr(column) == "MdsColumn(name='v', column='vector', shape=(None, 2), dtype='f32')"
    assert repr(pickle.loads(pickle.dumps(column))) == repr(column)
    data = ps.mds(FILES / "texts", columns=["text"], **IN_MEMORY)
    assert "mds(" in repr(data) and "'text'" in repr(data)


def packed(folder, change=lambda data: data):
    """Compresses the one shard of a data set with zstd, and removes the other."""
    pa = pytest.importorskip("pyarrow")
    raw = folder / "shard.00000.mds"
    data = change(pa.Codec("zstd").compress(raw.read_bytes()).to_pybytes())
    raw.unlink()
    (folder / "shard.00000.mds.zstd").write_bytes(data)
    index = json.loads((folder / "index.json").read_text())
    index["shards"][0] |= {"compression": "zstd", "zip_data": {"basename": "shard.00000.mds.zstd", "bytes": len(data), "hashes": {}}}
    (folder / "index.json").write_text(json.dumps(index))
    return folder / "shard.00000.mds.zstd"


def test_tokens_are_packed_beside_a_text_and_a_mask(tmp_path):
    def tokens(count):
        return np.arange(count, dtype=np.int64).tobytes()

    counts = [3, 5, 2, 7]
    write_mds(tmp_path / "a", [("text", "str", None), ("tokens", "bytes", None), ("mask", "bytes", None)],
              [[b"t" * k, tokens(k), bytes(k)] for k in counts])
    columns = ["text", ps.MdsColumn("tokens", dtype="int64"), "mask"]
    data = ps.mds(tmp_path / "a", columns=columns)
    alone = ps.mds(tmp_path / "a", columns=columns[1:2])
    assert len(data.blocks(4)) == len(alone.blocks(4)) == (sum(counts) - 1) // 4
    rows = [np.asarray(step["tokens"]).tolist() for step in data.pack(8, field="tokens").batch(1).loader()]
    assert rows == [np.asarray(step["tokens"]).tolist() for step in alone.pack(8).batch(1).loader()]
    assert len(data.pack(8, field="tokens", label_mask="mask")) == len(rows)


def test_a_small_file_of_many_rows_takes_little_memory(tmp_path):
    rows = 2_000_000
    write_mds(tmp_path / "a", [("x", "int", 8)], [[bytes(8)]])
    raw = np.uint32(rows).tobytes() + bytes(4 * (rows + 1) + 8 * rows)
    (tmp_path / "a" / "shard.00000.mds").write_bytes(raw)
    index = json.loads((tmp_path / "a" / "index.json").read_text())
    index["shards"][0] |= {"samples": rows, "raw_data": {"basename": "shard.00000.mds", "bytes": len(raw), "hashes": {}}}
    (tmp_path / "a" / "index.json").write_text(json.dumps(index))
    for _ in range(2):  # also where it is compressed
        with pytest.raises(ps.Error, match="its header has more than 65536 rows where they cannot be"):
            ps.mds(tmp_path / "a", **IN_MEMORY)
        if (tmp_path / "a" / "shard.00000.mds").exists():
            packed(tmp_path / "a")


def test_damage_in_a_compressed_header_names_the_shard_and_no_sample(tmp_path):
    write_mds(tmp_path / "a", [("x", "int", 8)], [[bytes(8)]] * 3)
    packed(tmp_path / "a", lambda data: b"?" + data[1:])
    with pytest.raises(ps.Error, match="shard.00000.mds.zstd: the shard is no zstd, or is damaged") as raised:
        ps.mds(tmp_path / "a", **IN_MEMORY)
    assert "sample" not in str(raised.value)


def test_a_damaged_shard_is_decompressed_once(tmp_path):
    random = np.random.default_rng(0)
    write_mds(tmp_path / "a", [("x", "bytes", None)], [[random.bytes(2000)] for _ in range(200)], shard_rows=200)
    shard = packed(tmp_path / "a")
    good, stat = shard.read_bytes(), shard.stat()

    def write(data):
        with shard.open("r+b") as file:
            file.write(data)
        os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def reasons(data):
        loader = data.map(ps.pad("x", 2000)).batch(200).loader(on_fault="mask", max_fault_rate=1, threads=1)
        next(loader)
        return [fault.reason for fault in loader.faults()]

    write(good[:-20000] + b"\xff" * 20000)
    data = ps.mds(tmp_path / "a", **IN_MEMORY)
    first = reasons(data)
    assert len(first) == 100 and "damaged" in first[0]  # of the shard's rows those that are kept
    write(good)
    assert reasons(data) == first  # what is wrong with it is known
    assert reasons(ps.mds(tmp_path / "a", **IN_MEMORY)) == []


def test_an_index_is_that_of_all_columns(tmp_path):
    columns = [(f"c{i:02}", "int8", 1) for i in range(31)]
    for names in (["label", "other"], ["other", "label"]):
        write_mds(tmp_path / "new", [*columns, *[(name, "int8", 1) for name in names]], [[b"\1"] * 31 + [b"\2", b"\3"]] * 4)
        (tmp_path / "a").mkdir(exist_ok=True)
        for file in (tmp_path / "new").iterdir():
            if not (tmp_path / "a" / file.name).exists() or file.name == "index.json":
                shutil.copy(file, tmp_path / "a")
        assert ps.mds(tmp_path / "a").labels().tolist() == [2 + names.index("label")] * 4


def test_messages_show_no_control_characters_of_the_data(tmp_path):
    write_mds(tmp_path / "a", [("x", "str_int", None)], [[b"12\xff\x1b[2J"]])
    loader = ps.mds(tmp_path / "a").batch(1).loader(on_fault="mask", max_fault_rate=1)
    next(loader)
    assert r"\x1b[2J" in loader.faults()[0].reason and "\x1b" not in loader.faults()[0].reason
    for name, encoding in (("x\x1b[2J", "int"), ("x\x1b[2J", "pkl"), ("x", "\x1b[2J")):
        write_mds(tmp_path / "b", [(name, encoding, 8 if encoding == "int" else None)], [[bytes(8)]])
        for columns in (None, ["y"], [ps.MdsColumn("y", name, shape=(2,))]):
            try:
                ps.mds(tmp_path / "b", columns=columns)
                assert columns is None and encoding == "int"
            except (ps.Error, ValueError) as error:
                assert "\x1b" not in str(error)


def test_a_folder_may_be_called_as_a_shard(tmp_path):
    write_mds(tmp_path / "c.mds", [("y", "int", 8)], [[bytes(8)]] * 3)
    assert len(ps.mds(tmp_path / "c.mds")) == 3
    with pytest.raises(ps.Error, match="found a shard, .*shard.00000.mds"):
        ps.mds(tmp_path / "c.mds" / "shard.00000.mds")


# ---- LitData ----

LITDATA = json.loads((FILES / "litdata.json").read_text()) if FILES.exists() else {}
LITDATA_COLUMNS = ["image", "label", "text", "data", "score", "good", "reals", "tokens", "box.left",
                   ps.MdsColumn("corners", "box.corners", dtype="int16", shape=(2, 3)),
                   ps.MdsColumn("matrix", dtype="float64", shape=(None, 2))]


def test_litdata_has_the_values_that_its_own_reader_has():
    data = ps.mds(FILES / "litdata_of_dict", columns=LITDATA_COLUMNS, **IN_MEMORY)
    assert {field.name: (str(field.dtype), field.shape) for field in data.fields} == {
        "image": ("u8", (None,)), "label": ("i64", ()), "text": ("u8", (None,)), "data": ("u8", (None,)), "score": ("f64", ()),
        "good": ("bool", ()), "reals": ("f32", (None,)), "tokens": ("i64", (None,)), "box.left": ("i64", ()),
        "corners": ("i16", (2, 3)), "matrix": ("f64", (None, 2))}
    rows = read(data, ragged=["image", "text", "data", "reals", "tokens", "matrix"])
    assert len(rows) == len(LITDATA["litdata_of_dict"]) == 12
    for row, wanted in zip(rows, LITDATA["litdata_of_dict"], strict=True):
        assert bool(row["good"]) == wanted["good"]
        wanted |= {"box.left": wanted["box"]["left"], "corners": wanted["box"]["corners"]}
        for name, value in row.items():
            if name != "good":
                same(value, wanted[name], name)
    assert data.labels().tolist() == [row["label"] for row in LITDATA["litdata_of_dict"]]
    for row, wanted in zip(read(ps.mds(FILES / "litdata_of_tuple", **IN_MEMORY), ragged=["1.0"]), LITDATA["litdata_of_tuple"], strict=True):
        assert [row["0"], row["1.0"].tobytes(), row["1.1"]] == [wanted[0], bytes.fromhex(wanted[1][0]["bytes"]), float.fromhex(wanted[1][1]["float"])]
    tensors = ps.mds(FILES / "litdata_of_tensor", **IN_MEMORY)
    for row, wanted in zip(read(tensors, ragged=["value"]), LITDATA["litdata_of_tensor"], strict=True):
        same(row["value"], wanted, "value")
    tokens = np.concatenate([row["value"] for row in read(tensors, ragged=["value"])])
    packed = tensors.pack(16, field="value")
    assert packed.packed.tokens == len(tokens)
    found = np.concatenate([step["tokens"].numpy().ravel()[step["segment_ids"].numpy().ravel() > 0] for step in packed.batch(1).loader()])
    assert sorted(found) == sorted(tokens)


def litdata_index(folder, **config):
    shutil.copytree(FILES / "litdata_of_dict", folder)
    index = json.loads((folder / "index.json").read_text())
    index["config"] |= config
    (folder / "index.json").write_text(json.dumps(index))
    return folder


def test_what_is_not_read_of_litdata_is_refused_by_name(tmp_path):
    def refuses(match, folder, **options):
        with pytest.raises(ps.Error, match=match):
            ps.mds(folder, **options)

    refuses("'any' has the encoding 'pickle', and reading a pickle runs what is in it", FILES / "litdata_of_pickle")
    assert len(ps.mds(FILES / "litdata_of_pickle", columns=["label"], **IN_MEMORY)) == 12
    refuses('compression "zstd", which is not read here: write them again', litdata_index(tmp_path / "a", compression="zstd"))
    refuses("the encryption {", litdata_index(tmp_path / "b", encryption={"algorithm": "fernet"}))
    refuses("LitData's \"TokensLoader\"", litdata_index(tmp_path / "c", item_loader="TokensLoader"))
    refuses("data_spec has 11 fields, and data_format 1", litdata_index(tmp_path / "d", data_format=["int"]))
    refuses("data_spec to be a tree of fields", litdata_index(tmp_path / "e", data_spec="[1, 2]"))
    refuses("'box.corners' has arrays, and its encoding, numpy, says no type", FILES / "litdata_of_dict", columns=["box.corners"])


def test_litdata_that_was_cut_or_damaged(tmp_path):
    folder = litdata_index(tmp_path / "a")
    chunk = folder / "chunk-0-1.bin"
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:-1])
    with pytest.raises(ps.Error, match="chunk-0-1.bin: its header says that it has .* bytes, and it has .*: the chunk is cut short"):
        ps.mds(folder, columns=LITDATA_COLUMNS, **IN_MEMORY)
    # A float has the size of one of 4 bytes, and the text takes the rest.
    damaged = bytearray(whole)
    begin = int.from_bytes(whole[4:8], "little")
    order = ["image", "label", "text", "data", "score", "good", "reals", "tokens", "box.left", "box.corners", "matrix"]
    for name, more in (("score", -4), ("text", 4)):
        at = begin + 4 * order.index(name)
        damaged[at:at + 4] = (int.from_bytes(damaged[at:at + 4], "little") + more).to_bytes(4, "little")
    chunk.write_bytes(damaged)
    data = ps.mds(folder, columns=["label", "score"], **IN_MEMORY)
    loader = data.batch(12).loader(on_fault="mask", max_fault_rate=1)
    step = next(loader)
    fault, = loader.faults()
    assert "column 'score'" in fault.reason and "expected f64 of 8 bytes, found 4" in fault.reason
    assert [step["label"].numpy().tolist()[i] for i in range(12) if i != fault.row] == [
        row["label"] for i, row in enumerate(LITDATA["litdata_of_dict"]) if i != fault.row]


def write_litdata(folder, spec, formats, rows):
    """One chunk; a row is the bytes of its values."""
    items = [b"".join(len(value).to_bytes(4, "little") for value in row) + b"".join(row) for row in rows]
    head = 4 * (len(rows) + 2)
    ends = np.cumsum([head, *map(len, items)]).astype(np.uint32)
    folder.mkdir(parents=True)
    (folder / "chunk-0-0.bin").write_bytes(np.uint32(len(rows)).tobytes() + ends.tobytes() + b"".join(items))
    chunk = {"chunk_bytes": int(ends[-1]), "chunk_size": len(rows), "dim": None, "filename": "chunk-0-0.bin"}
    config = {"compression": None, "data_format": formats, "data_spec": spec, "encryption": None, "item_loader": "PyTreeLoader"}
    (folder / "index.json").write_text(json.dumps({"chunks": [chunk], "config": config}))
    return folder


LEAF = {"type": None, "context": None, "children_spec": []}


def test_litdata_of_odd_trees(tmp_path):
    def spec_of(context, leaves, kind="builtins.dict"):
        return json.dumps([1, {"type": kind, "context": context, "children_spec": [LEAF] * leaves}])

    values = [np.int64(11).tobytes(), np.int64(22).tobytes()]
    for context, kind in (("[1, 0]", "builtins.dict"), ('{"default_factory_module": "builtins", "dict_context": [1, 0]}', "collections.defaultdict")):
        folder = write_litdata(tmp_path / kind, spec_of(context, 2, kind), ["int", "int"], [values])
        step = next(ps.mds(folder, **IN_MEMORY).batch(1).loader())
        assert {name: int(step[name].numpy()[0]) for name in step.keys()} == {"1": 11, "0": 22}
    deep = '{"type":"l","context":null,"children_spec":[' * 100_000 + json.dumps(LEAF) + "]}" * 100_000
    for spec in (f"[1, {deep}]", "[" * 200_000 + "]" * 200_000):
        with pytest.raises(ps.Error, match="data_spec"):
            ps.mds(write_litdata(tmp_path / f"deep{len(spec)}", spec, ["int"], [values[:1]]), **IN_MEMORY)
    tokens = write_litdata(tmp_path / "tokens", json.dumps([1, LEAF]), ["no_header_tensor:15"], [[bytes(8)]])
    index = json.loads((tokens / "index.json").read_text())
    del index["config"]["item_loader"]
    index["chunks"][0]["dim"] = 2
    (tokens / "index.json").write_text(json.dumps(index))
    with pytest.raises(ps.Error, match="TokensLoader"):
        ps.mds(tokens, **IN_MEMORY)


def test_litdata_arrays_without_elements(tmp_path):
    def numpy_of(array):
        return np.asarray([9, array.ndim, *array.shape], np.uint32).tobytes() + array.tobytes()

    boxes = [np.zeros((0, 4), np.float32), np.arange(8, dtype=np.float32).reshape(2, 4)]
    spec = json.dumps([1, {"type": "builtins.dict", "context": '["boxes"]', "children_spec": [LEAF]}])
    folder = write_litdata(tmp_path / "a", spec, ["numpy"], [[numpy_of(box)] for box in boxes])
    data = ps.mds(folder, columns=[ps.MdsColumn("boxes", dtype="float32", shape=(None, 4))], **IN_MEMORY)
    for row, box in zip(read(data, ragged=["boxes"]), boxes, strict=True):
        np.testing.assert_array_equal(row["boxes"], box)
