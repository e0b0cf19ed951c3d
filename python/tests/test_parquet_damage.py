"""parquet(): files that are damaged, or whose parts do not fit together, and what their rows are then."""
import os

import numpy as np
import pytest

import penstock as ps

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def write(path, columns, **options):
    """A table of (type, values) by name."""
    table = pa.table({name: pa.array(values, type=kind) for name, (kind, values) in columns.items()})
    pq.write_table(table, path, **options)
    return table


def overwrite(path, at, by):
    """Overwrites bytes of a file, whose size and time of change stay."""
    times = os.stat(path).st_atime_ns, os.stat(path).st_mtime_ns
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(by)
    os.utime(path, ns=times)


def patch(path, old, new):
    data = path.read_bytes()
    assert data.count(old) >= 1 and len(old) == len(new)
    path.write_bytes(data.replace(old, new))


def rows_of(data, name, count, most=None):
    """Values of a field by row, and the reasons of some of the rows that are faults."""
    if most:
        data = data.map(ps.pad(name, most, lengths="length"))
    loader = data.batch(count).loader(on_fault="mask", max_fault_rate=1)
    step = next(loader)
    faults = {fault.row: fault.reason for fault in loader.faults()}
    values, valid = np.asarray(step[name]), np.asarray(step["valid"])
    lengths = np.asarray(step["length"]) if most else None
    return {row: (values[row][:lengths[row]] if most else values[row]).tolist() for row in range(count) if valid[row]}, faults


@pytest.mark.parametrize("page_version", ["1.0", "2.0"])
@pytest.mark.parametrize("with_index", [False, True])
def test_lists_before_a_damaged_page_are_read(tmp_path, page_version, with_index):
    path = tmp_path / "t.parquet"
    count = 20_000
    lists = [[i, i * 7 % 1001] for i in range(count)]
    write(path, {"tokens": (pa.list_(pa.int32()), lists)}, compression="zstd", use_dictionary=False, data_page_size=8192,
          data_page_version=page_version, write_page_index=with_index)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    end = chunk.data_page_offset + chunk.total_compressed_size
    overwrite(path, end - 40, b"\xFF" * 40)
    good, faults = rows_of(ps.parquet(path, index_location="memory"), "tokens", count, most=2)
    assert len(good) > count * 0.7 and good == {row: lists[row] for row in range(len(good))}
    assert 0 < len(good) < count and "column 'tokens'" in faults[len(good)]


@pytest.mark.parametrize("with_index", [False, True])
def test_numbers_around_a_damaged_header_are_read(tmp_path, with_index):
    path = tmp_path / "t.parquet"
    count = 5000
    write(path, {"x": (pa.int64(), [i * 3 for i in range(count)])}, compression="none", use_dictionary=False, data_page_size=800,
          write_batch_size=50, write_page_index=with_index, write_statistics=False)
    header = path.read_bytes().index((count * 27 // 10 - 3).to_bytes(8, "little"))  # the value of row count * 0.9 - 1
    following = header + 8
    while True:  # the page of that row ends where 8 bytes are not the next value
        value = int.from_bytes(path.read_bytes()[following:following + 8], "little")
        if value != int.from_bytes(path.read_bytes()[following - 8:following], "little") + 3:
            break
        following += 8
    first = int.from_bytes(path.read_bytes()[following - 8:following], "little") // 3 + 1
    overwrite(path, following, b"\xFF" * 4)
    good, _ = rows_of(ps.parquet(path, index_location="memory"), "x", count)
    assert all(value == row * 3 for row, value in good.items())
    # Behind it lead the places of an OffsetIndex alone.
    bad = [row for row in range(count) if row not in good]
    assert bad == list(range(first, bad[-1] + 1))
    assert bad[-1] < first + 200 if with_index else bad[-1] == count - 1


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("kind", ["number", "null", "list"])
def test_no_bit_of_a_header_moves_rows(tmp_path, kind, version, with_index):
    path = tmp_path / "t.parquet"
    count = 200
    values = [row * 1_000_003 for row in range(count)]
    if kind == "null":
        values = [None if row % 7 == 3 else value for row, value in enumerate(values)]
    if kind == "list":
        values = [[value] * (1 + row % 3) for row, value in enumerate(values)]
    of_list = pa.list_(pa.int64()) if kind == "list" else pa.int64()
    write(path, {"x": (of_list, values)}, compression="none", use_dictionary=False, data_page_size=100, write_batch_size=20,
          write_page_index=with_index, write_statistics=False, write_page_checksum=True, data_page_version=version)
    column = ps.TableColumn("x", required=False, **({} if kind == "list" else {"default_value": -1}))
    good = path.read_bytes()
    page = good.index((100 * 1_000_003).to_bytes(8, "little"))
    seen = set()
    for at in range(page - 64, page):
        for bit in range(8):
            path.write_bytes(good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1:])
            try:
                data = ps.parquet(path, columns=[column], index_location="memory")
            except ps.Error:
                seen.add("refused")
                continue
            rows = rows_of(data, "x", count, most=3 if kind == "list" else None)[0]
            for row, value in rows.items():
                assert value == (-1 if values[row] is None else values[row]), (at - page, bit, row)
            seen.add(len(rows) == count)
    assert False in seen


@pytest.mark.parametrize("in_header", [True, False])
def test_what_is_wrong_with_a_page_is_found_out_once(tmp_path, in_header):
    path = tmp_path / "t.parquet"
    write(path, {"x": (pa.int64(), list(range(1000)))}, compression="none", use_dictionary=False, write_page_checksum=True)
    good = path.read_bytes()
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    overwrite(path, chunk.data_page_offset + (0 if in_header else chunk.total_compressed_size - 8), b"\xFF" * 4)
    data = ps.parquet(path, index_location="memory")
    reasons = list(rows_of(data.select([5, 6]), "x", 2)[1].values())
    # The file is whole again: each row that looked at it once more would be good, or would say something else.
    overwrite(path, 0, good)
    reasons += rows_of(data.select([7, 8]), "x", 2)[1].values()
    assert len(reasons) == 4 and len(set(reasons)) == 1


def test_labels_that_i64_has_not_are_good_rows(tmp_path):
    path = tmp_path / "t.parquet"
    values = [1, 2**63, 2**64 - 1, None, 2**63 - 1]
    write(path, {"label": (pa.uint64(), values)})
    column = ps.TableColumn("label", required=False, default_value=2.0**63)
    data = ps.parquet(path, columns=column)
    good, faults = rows_of(data, "label", 5)
    assert faults == {} and list(good.values()) == [1, 2**63, 2**64 - 1, 2**63, 2**63 - 1]
    labels = []
    data.filter(lambda info: labels.append(info.label) is None)
    assert labels == [1, None, None, None, 2**63 - 1]


def test_names_of_the_groups_of_lists_do_not_matter(tmp_path):
    lists = [[1, 2, 3], [], [4]]
    for name, compliant in (("a", True), ("b", False)):
        write(tmp_path / f"{name}.parquet", {"tokens": (pa.list_(pa.int32()), lists)}, use_compliant_nested_type=compliant)
    paths = {pq.ParquetFile(path).metadata.row_group(0).column(0).path_in_schema for path in tmp_path.glob("*.parquet")}
    assert len(paths) == 2
    data = ps.parquet(tmp_path)
    tokens = [np.asarray(step["tokens"]).ravel().tolist() for step in data.pack(8).batch(1).loader()]
    assert sorted(value for row in tokens for value in row if value) == [1, 1, 2, 2, 3, 3, 4, 4]
    made = {path: os.stat(path).st_mtime_ns for path in tmp_path.glob("*.penstock-index")}
    assert len(made) == 2
    ps.parquet(tmp_path)
    assert {path: os.stat(path).st_mtime_ns for path in made} == made


TIMES = [(pa.timestamp("ms"), pa.timestamp("us"), "a timestamp in us", "a timestamp in ms"),
         (pa.time64("us"), pa.time64("ns"), "a time in ns", "a time in us"),
         (pa.timestamp("ms"), pa.int64(), "x i64", "a timestamp in ms"),
         (pa.date32(), pa.time32("ms"), "a time in ms", "a date in days")]


@pytest.mark.parametrize("first, second, own, other", TIMES)
def test_files_with_times_of_other_units_are_refused(tmp_path, first, second, own, other):
    for name, kind in (("a", first), ("b", second)):
        values = pa.array([1], type=pa.int32() if kind.bit_width == 32 else pa.int64())
        pq.write_table(pa.table({"x": values.cast(kind)}), tmp_path / f"{name}.parquet")
    with pytest.raises(ps.Error, match=f"b.parquet: .*'x' is .*{own}.* in .*a.parquet it is .*{other}.*same types and units"):
        ps.parquet(tmp_path)


def test_narrow_integers_in_wide_ones_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    for bits in (8, 16, 32):
        write(path, {"x": (pa.uint64(), [1, 2**40])}, store_schema=False)
        patch(path, b"\x13\x40\x12", bytes([0x13, bits, 0x12]))  # bitWidth and isSigned
        with pytest.raises(ps.Error, match=f"'x' is INT64 that says it has integers of {bits} bits"):
            ps.parquet(path)
    write(path, {"x": (pa.float16(), [np.float16(1)] * 8)}, store_schema=False)
    patch(path, b"\x15\x0e\x15\x04", b"\x15\x0e\x15\x02")  # type and type_length
    with pytest.raises(ps.Error, match="'x' is a FLOAT16 of 1 bytes"):
        ps.parquet(path)


def test_a_null_text_has_the_length_0(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, {"text": (pa.string(), ["abc", None, "d"])}, compression="none", use_dictionary=False)
    data = ps.parquet(path, columns=ps.TableColumn("text", required=False))
    plan = data.batch_by_length([4, 8], rows=[3, 1], fields="text", shuffle=False)
    (step,) = plan.loader()
    assert [bytes(row).rstrip(b"\0") for row in np.asarray(step["text"])] == [b"abc", b"", b"d"]
    assert np.asarray(step["lengths"]).tolist() == [3, 0, 1]


def test_a_null_list_that_is_required_is_not_passed_over(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, {"tokens": (pa.list_(pa.int32()), [[1, 2], None, [], [3]])})
    with pytest.raises(ps.Error, match="column 'tokens': the value is null; with required = false"):
        next(ps.parquet(path).pack(4).batch(1).loader())
    optional = ps.parquet(path, columns=ps.TableColumn("tokens", required=False))
    found = [np.asarray(step["tokens"]).ravel().tolist() for step in optional.pack(4).batch(1).loader()]
    assert sorted(value for row in found for value in row if value) == [1, 2, 3]


def test_rows_that_a_footer_claims_take_no_memory(tmp_path):
    import resource
    path = tmp_path / "t.parquet"
    write(path, {"label": (pa.int64(), [1, 2, 3]), "text": (pa.string(), ["a" * 200_000, "b", "c"])}, compression="none",
          use_dictionary=False, store_schema=False, write_statistics=False)
    assert ps.parquet(path).fields
    # num_rows of the file and of its row group: 3 becomes 500 million.
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    claimed, rows = b"", 500_000_000 << 1
    while rows >= 128:
        claimed, rows = claimed + bytes([rows & 127 | 128]), rows >> 7
    claimed += bytes([rows])
    text = data[footer:-8]
    at = text.index(b"\x16\x06\x19")  # num_rows of the file, before the list of row groups
    text = text[:at + 1] + claimed + text[at + 2:]
    at = max(i for i in range(len(text)) if text[i:i + 2] == b"\x16\x06")  # of the row group
    text = text[:at + 1] + claimed + text[at + 2:]
    path.write_bytes(data[:footer] + text + len(text).to_bytes(4, "little") + b"PAR1")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    data = ps.parquet(path, index_location="memory")
    assert len(data) == 500_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # KiB


@pytest.mark.parametrize("name", ["metadata.parquet", "train_metadata.parquet", "stray.parquet"])
def test_a_table_beside_folders_of_images_does_not_decide(tmp_path, name):
    image = pytest.importorskip("PIL.Image")
    for kind in ("cat", "dog"):
        (tmp_path / kind).mkdir()
        image.new("RGB", (8, 8)).save(tmp_path / kind / "1.png")
    write(tmp_path / name, {"file_name": (pa.string(), ["cat/1.png"])})
    data = ps.images(tmp_path)
    assert data.class_names == ["cat", "dog"] and len(data) == 2


def test_a_table_of_4000_columns_has_all_their_values(tmp_path):
    path = tmp_path / "t.parquet"
    names = [f"c{i}" for i in range(4000)]
    table = pa.table({name: pa.array([f"{name} {row}" for row in range(2)]) for name in names})
    pq.write_table(table, path, compression="none", use_dictionary=False)
    chosen = [ps.TableColumn(name, shape=(len(name) + 2,)) for name in reversed(names)]
    step = next(ps.parquet(path, columns=chosen).batch(2).loader())
    for name in names:
        assert [bytes(row) for row in np.asarray(step[name])] == [f"{name} {row}".encode() for row in range(2)]
