"""Writes the Arrow files beside it, and of each what pyarrow reads in it.

python3 -m venv V && V/bin/pip install pyarrow polars datasets && V/bin/python make.py

FILE.txt has a line for the file, one for each field (path, type, nullable or not), and one for each column of each batch: rows, nulls,
and the CRC-32 of all values. A value is a 0 for a null, or a 1 and: the bytes of its width, or its length (4 bytes) and its bytes, or
the number of its elements (4 bytes) and these, or the fields of a struct. 'not read' stands for columns of types that are refused.
"""
import datetime
import decimal
import pathlib
import random
import shutil
import struct
import tempfile
import zlib

import datasets
import polars
import pyarrow as pa
import pyarrow.ipc as ipc
from datasets.arrow_writer import ArrowWriter

HERE = pathlib.Path(__file__).parent
IMAGE = pa.struct({"bytes": pa.binary(), "path": pa.string()})
NOT_READ = (pa.types.is_map, pa.types.is_union, pa.types.is_run_end_encoded, pa.types.is_list_view, pa.types.is_large_list_view)


def children(type):
    if pa.types.is_dictionary(type):
        return children(type.value_type)
    if pa.types.is_map(type):
        return [pa.field("entries", pa.struct([type.key_field, type.item_field]), False)]
    if pa.types.is_run_end_encoded(type):
        return [pa.field("run_ends", type.run_end_type, False), pa.field("values", type.value_type)]
    return [type.field(i) for i in range(type.num_fields)]


def is_read(type):
    if pa.types.is_dictionary(type):
        return is_read(type.value_type)
    return not any(check(type) for check in NOT_READ) and all(is_read(child.type) for child in children(type))


def name_of(type):
    if pa.types.is_dictionary(type):
        return f"{name_of(type.value_type)} by {name_of(type.index_type)}"
    if pa.types.is_decimal(type):
        return f"Decimal{type.bit_width}({type.precision}, {type.scale})"
    if pa.types.is_timestamp(type):
        return f"Timestamp({type.unit}, {type.tz})" if type.tz else f"Timestamp({type.unit})"
    if pa.types.is_duration(type):
        return f"Duration({type.unit})"
    if pa.types.is_fixed_size_binary(type):
        return f"FixedSizeBinary({type.byte_width})"
    if pa.types.is_fixed_size_list(type):
        return f"FixedSizeList({type.list_size})"
    if pa.types.is_union(type):
        return "Union"
    text = str(type).split("<")[0].split("[")[0]
    names = {"null": "Null", "bool": "Bool", "halffloat": "Float16", "float": "Float32", "double": "Float64", "string": "Utf8",
             "large_string": "LargeUtf8", "binary": "Binary", "large_binary": "LargeBinary", "list": "List", "large_list": "LargeList",
             "struct": "Struct", "map": "Map", "run_end_encoded": "RunEndEncoded", "list_view": "ListView",
             "large_list_view": "LargeListView", "binary_view": "BinaryView", "string_view": "Utf8View",
             "month_day_nano_interval": "Interval"}
    return names.get(text) or text.replace("uint", "UInt").replace("int", "Int").capitalize().replace("int", "Int").replace("UInt", "UInt") \
        .replace("Uint", "UInt")


def describe_fields(fields, parent, lines):
    for field in fields:
        path = f"{parent}.{field.name}" if parent else field.name
        lines.append(f"{path} {name_of(field.type)}{' nullable' if field.nullable else ''}")
        describe_fields(children(field.type), path, lines)


def encode(array):
    """The bytes of each value of an array."""
    type = array.type
    if isinstance(array, pa.ExtensionArray):
        return encode(array.storage)
    if pa.types.is_null(type):
        return [b"\0"] * len(array)
    if pa.types.is_dictionary(type):
        entries = encode(array.dictionary)
        return [b"\0" if i is None else entries[i] for i in array.indices.to_pylist()]
    if pa.types.is_struct(type):
        parts = [encode(array.field(i)) for i in range(type.num_fields)]
        values = [b"".join(part[i] for part in parts) for i in range(len(array))]
    elif pa.types.is_list(type) or pa.types.is_large_list(type):
        elements, ends = encode(array.values), array.offsets.to_pylist()
        values = [struct.pack("<I", b - a) + b"".join(elements[a:b]) for a, b in zip(ends, ends[1:])]
    elif pa.types.is_fixed_size_list(type):
        elements, size = encode(array.values), type.list_size
        begins = [(array.offset + i) * size for i in range(len(array))]
        values = [struct.pack("<I", size) + b"".join(elements[at:at + size]) for at in begins]
    elif pa.types.is_boolean(type):
        values = [bytes([bool(value)]) for value in array.to_pylist()]
    elif pa.types.is_binary(type) or pa.types.is_large_binary(type) or pa.types.is_binary_view(type):
        values = [struct.pack("<I", len(value)) + value if value is not None else b"" for value in array.to_pylist()]
    elif pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type):
        return encode(array.cast(pa.large_binary()))
    else:
        width = type.bit_width // 8
        raw = array.buffers()[1].to_pybytes() if len(array) else b""
        values = [raw[(array.offset + i) * width:(array.offset + i + 1) * width] for i in range(len(array))]
    return [b"\1" + value if valid else b"\0" for value, valid in zip(values, array.is_valid().to_pylist())]


def open_any(path):
    source = pa.memory_map(str(path))
    if path.read_bytes()[:6] == b"ARROW1":
        reader = ipc.open_file(source)
        return reader.schema, [reader.get_batch(i) for i in range(reader.num_record_batches)]
    reader = ipc.open_stream(source)
    return reader.schema, list(reader)


def describe(path):
    schema, batches = open_any(path)
    lines = [f"rows {sum(batch.num_rows for batch in batches)} batches {len(batches)}"]
    describe_fields(schema, "", lines)
    for number, batch in enumerate(batches):
        for name, column in zip(schema.names, batch.columns):
            if not is_read(column.type):
                lines.append(f"{number} {name} not read")
                continue
            values = encode(column)
            crc = 0
            for value in values:
                crc = zlib.crc32(value, crc)
            lines.append(f"{number} {name} {len(values)} {sum(value == b'%c' % 0 for value in values)} {crc:08x}")
    return "\n".join(lines) + "\n"


def some_null(values, nulls):
    return [None if nulls and i % 7 in (2, 3) else value for i, value in enumerate(values)]


def flat_columns(rows, nulls):
    """A column of each type."""
    rng = random.Random(rows + nulls)
    words = ["", "a photo of a cat", "a photo of a dog", "é", "x" * 40]
    day = datetime.date(2020, 2, 29)
    when = datetime.datetime(2024, 5, 6, 7, 8, 9, 123000)
    columns = {
        "null": (pa.null(), [None] * rows),
        "bool": (pa.bool_(), [rng.random() < 0.5 for _ in range(rows)]),
        **{f"{'i' if signed else 'u'}{bits}": (
            getattr(pa, f"{'' if signed else 'u'}int{bits}")(),
            [rng.choice((-2**(bits - 1), 2**(bits - 1) - 1, i) if signed else (0, 2**bits - 1, i)) for i in range(rows)])
           for bits in (8, 16, 32, 64) for signed in (True, False)},
        "f16": (pa.float16(), [i / 4 for i in range(rows)]),
        "f32": (pa.float32(), [i / 8 for i in range(rows)]),
        "f64": (pa.float64(), [rng.random() for _ in range(rows)]),
        "string": (pa.string(), [rng.choice(words) for _ in range(rows)]),
        "large_string": (pa.large_string(), [rng.choice(words) for _ in range(rows)]),
        "binary": (pa.binary(), [rng.randbytes(rng.randint(0, 20)) for _ in range(rows)]),
        "large_binary": (pa.large_binary(), [rng.randbytes(rng.randint(0, 20)) for _ in range(rows)]),
        "fixed": (pa.binary(5), [rng.randbytes(5) for _ in range(rows)]),
        "decimal32": (pa.decimal32(7, 2), [decimal.Decimal(i - 9).scaleb(-2) for i in range(rows)]),
        "decimal": (pa.decimal128(20, 3), [decimal.Decimal(i - 9).scaleb(-3) for i in range(rows)]),
        "decimal256": (pa.decimal256(50, 3), [decimal.Decimal(i - 9).scaleb(-3) for i in range(rows)]),
        "date": (pa.date32(), [day + datetime.timedelta(i) for i in range(rows)]),
        "date64": (pa.date64(), [day + datetime.timedelta(i) for i in range(rows)]),
        "time32": (pa.time32("ms"), [datetime.time(1, i % 60, 3) for i in range(rows)]),
        "time64": (pa.time64("us"), [datetime.time(1, i % 60, 3) for i in range(rows)]),
        "seconds": (pa.timestamp("s"), [when.replace(microsecond=0)] * rows),
        "ns": (pa.timestamp("ns", "Europe/Berlin"), [when] * rows),
        "duration": (pa.duration("us"), [datetime.timedelta(i) for i in range(rows)]),
        "interval": (pa.month_day_nano_interval(), [pa.MonthDayNano([i, -i, i]) for i in range(rows)]),
    }
    fields, arrays = [], []
    for name, (arrow, values) in columns.items():
        fields.append(pa.field(name, arrow, nullable=nulls or name == "null"))
        arrays.append(pa.array(some_null(values, nulls), arrow))
    return pa.table(arrays, schema=pa.schema(fields))


def nested_columns(rows):
    rng = random.Random(rows)

    def image(i):
        return None if i % 11 == 5 else {"bytes": None if i % 5 == 4 else rng.randbytes(rng.randint(0, 40)), "path": f"{i}.jpg"}

    ints = [None if i % 9 == 8 else [None if j == 2 else i * j for j in range(i % 5)] for i in range(rows)]
    words = [[None if i % 4 == 3 else [f"w{i + j + k}" for k in range(i % 3)] for j in range(i % 4)] for i in range(rows)]
    boxes = [None if i % 6 == 5 else [[i + j + k / 4 for k in range(4)] for j in range(i % 3)] for i in range(rows)]
    return pa.table({
        "image": pa.array([image(i) for i in range(rows)], IMAGE),
        "ints": pa.array(ints, pa.list_(pa.int32())),
        "large": pa.array(ints, pa.large_list(pa.int16())),
        "images": pa.array([[image(j) for j in range(i % 4)] for i in range(rows)], pa.list_(IMAGE)),
        "words": pa.array(words, pa.list_(pa.list_(pa.string()))),
        "boxes": pa.array(boxes, pa.list_(pa.list_(pa.float32(), 4))),
        "triple": pa.array([None if i % 4 == 1 else [i, None, i + 2] for i in range(rows)], pa.list_(pa.int8(), 3)),
        "flags": pa.array([[i % 2 == 0, i % 3 == 0] for i in range(rows)], pa.list_(pa.bool_(), 2)),
        "deep": pa.array([{"a": {"b": None if i % 3 == 0 else i}} if i % 6 else {"a": None} for i in range(rows)],
                         pa.struct({"a": pa.struct({"b": pa.int16()})})),
        "empty": pa.array([{} if i % 2 else None for i in range(rows)], pa.struct([])),
    })


def dictionary_columns(rows):
    words = pa.array(["cat", "dog", None, "", "bird"])
    columns = {}
    for bits in (8, 16, 32, 64):
        for signed in (True, False):
            index = getattr(pa, f"{'' if signed else 'u'}int{bits}")()
            numbers = pa.array([None if i % 7 == 6 else i % 5 for i in range(rows)], index)
            columns[f"{'i' if signed else 'u'}{bits}"] = pa.DictionaryArray.from_arrays(numbers, words)
    numbers = pa.array([i % 3 for i in range(rows)], pa.int8())
    columns["structs"] = pa.DictionaryArray.from_arrays(numbers, pa.array([{"bytes": b"a", "path": "p"}, None, {"bytes": None, "path": "q"}], IMAGE))
    columns["dates"] = pa.DictionaryArray.from_arrays(numbers, pa.array([1, None, 3], pa.date32()))
    columns["bools"] = pa.DictionaryArray.from_arrays(numbers, pa.array([True, None, False]))
    inner = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1, 4, 3], pa.int8()), words)
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 6], pa.int32()), inner)
    columns["lists"] = pa.DictionaryArray.from_arrays(numbers, lists)
    columns["in_list"] = pa.ListArray.from_arrays(pa.array([*range(rows), rows + 3], pa.int32()), pa.DictionaryArray.from_arrays(
        pa.array([i % 5 for i in range(rows + 3)], pa.int8()), words))
    return pa.table(columns)


def write(name, table, rows_per_batch=None, forms=("stream", "file"), batches=None, **options):
    options = ipc.IpcWriteOptions(**options)
    for form in forms:
        path = HERE / f"{name}_{form}.arrow"
        with (ipc.new_stream if form == "stream" else ipc.new_file)(path, table.schema, options=options) as writer:
            for batch in batches if batches is not None else table.to_batches(rows_per_batch):
                writer.write_batch(batch)


def write_all():
    for nulls in (False, True):
        write("nulls" if nulls else "flat", flat_columns(30, nulls), 20)
    write("nested", nested_columns(40), 25)
    write("dictionary", dictionary_columns(30), 20)
    write("sliced", pa.concat_tables([nested_columns(40).slice(7, 9), nested_columns(40).slice(16, 20)]))
    sliced = dictionary_columns(30).slice(5, 11)
    write("sliced_dictionary", sliced, forms=("stream",))
    write("sliced_flat", flat_columns(30, True).slice(9, 13), forms=("file",))
    write("no_rows", flat_columns(0, True), batches=flat_columns(1, True).slice(0, 0).to_batches() or None)
    write("no_batches", nested_columns(1), batches=[])
    write("no_columns", pa.table({}), batches=[])
    empty = pa.table({"a": [1, 2], "s": ["x", None], "l": [[1], []]}).to_batches()[0]
    write("empty_batches", pa.Table.from_batches([empty]), batches=[empty.slice(0, 0), empty, empty.slice(0, 0), empty.slice(1)])
    for codec in ("zstd", "lz4"):
        both = flat_columns(60, True).select(["bool", "i64", "string", "binary", "f64"])
        write(codec, both.append_column("image", pa.array([{"bytes": b"ab" * i, "path": None} for i in range(60)], IMAGE)), 40,
              compression=codec)
    write("zstd_dictionary", dictionary_columns(30).select(["i8", "structs", "lists"]), forms=("stream",), compression="zstd")
    # Formats of before 2020: no FF FF FF FF, and metadata of version 4.
    write("legacy", nested_columns(12), 8, use_legacy_format=True, metadata_version=ipc.MetadataVersion.V4)
    # Dictionaries that grow, and, in streams, that others replace.
    parts = [["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d", "e"], ["a", "b", "c", "d", "e"]]
    growing = [pa.record_batch({"s": pa.DictionaryArray.from_arrays(pa.array([len(part) - 1, 0, None], pa.int8()), pa.array(part))})
               for part in parts]
    write("deltas", pa.Table.from_batches(growing[:1]), batches=growing, emit_dictionary_deltas=True)
    replaced = [pa.record_batch({"s": pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int8()), pa.array(part))})
                for part in (["a", "b"], ["c", "d"], ["e", "f"])]
    write("replaced", pa.Table.from_batches(replaced[:1]), batches=replaced, forms=("stream",))
    # Types that are refused, each before a column that is read.
    rows = 6
    refused = {
        "map": pa.array([[("k", i)] for i in range(rows)], pa.map_(pa.string(), pa.int64())),
        "dense": pa.UnionArray.from_dense(pa.array([0, 1] * 3, pa.int8()), pa.array([0, 0, 1, 1, 2, 2], pa.int32()),
                                          [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])]),
        "sparse": pa.UnionArray.from_sparse(pa.array([0, 1] * 3, pa.int8()), [pa.array(range(rows)), pa.array(["a"] * rows)]),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 6], pa.int32()), pa.array(["x", "y"])),
        "list_view": pa.array([[i] for i in range(rows)], pa.list_view(pa.int8())),
        "large_list_view": pa.array([[i] for i in range(rows)], pa.large_list_view(pa.int8())),
        "binary_view": pa.array([b"long enough to be in a buffer %d" % i for i in range(rows)], pa.binary_view()),
        "utf8_view": pa.array(["short"] * rows, pa.string_view()),
    }
    columns = {}
    for i, (name, column) in enumerate(refused.items()):
        columns[name] = column
        columns[f"after_{name}"] = pa.array([f"{name} {j}" if j != i else None for j in range(rows)])
    write("refused", pa.table(columns))
    unions = pa.table({name: columns[name] for name in ("dense", "after_dense", "sparse", "after_sparse")})
    write("refused_v4", unions, forms=("stream",), metadata_version=ipc.MetadataVersion.V4)
    metadata = pa.schema([pa.field("a", pa.int8(), metadata={"unit": "mm"})], metadata={"huggingface": '{"info": {}}', "empty": ""})
    write("metadata", pa.table([pa.array([1], pa.int8())], schema=metadata))
    write("wide", pa.table({f"c{i}": pa.array([i], pa.int8()) for i in range(60)}), forms=("stream",))

    # Hugging Face's cache, and its save_to_disk.
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"]), "text": datasets.Value("string"),
                                  "boxes": datasets.Sequence(datasets.Sequence(datasets.Value("float32"), length=4))})
    rows = [{"image": {"bytes": bytes([i] * (i + 3)), "path": f"{i}.jpg"}, "label": i % 2, "text": f"picture {i}", "boxes": [[i, 1, 2, 3]] * (i % 3)}
            for i in range(11)]
    with ArrowWriter(features=features, path=str(HERE / "huggingface_cache.arrow"), writer_batch_size=4) as writer:
        for row in rows:
            writer.write(row)
        writer.finalize()
    with tempfile.TemporaryDirectory() as folder:
        table = pa.Table.from_pylist([{**row} for row in rows], schema=features.arrow_schema)
        datasets.Dataset(table).select(range(2, 9)).save_to_disk(folder)
        shutil.copy(f"{folder}/data-00000-of-00001.arrow", HERE / "huggingface_saved.arrow")

    # Polars.
    frame = polars.DataFrame({"i": [1, None, 3] * 5, "s": ["a", "bb", None] * 5, "l": [[1, 2], [], None] * 5, "b": [True, False, None] * 5,
                              "d": [{"x": 1, "y": "p"}, {"x": None, "y": "q"}, None] * 5,
                              "a": polars.Series([[1, 2]] * 15, dtype=polars.Array(polars.Int16, 2))})
    frame = frame.with_columns(polars.col("s").cast(polars.Categorical).alias("c"))
    for codec in ("uncompressed", "zstd"):
        frame.write_ipc(HERE / f"polars_{codec}_file.arrow", compression=codec, compat_level=polars.CompatLevel.oldest())
    frame.write_ipc_stream(HERE / "polars_stream.arrow", compression="uncompressed", compat_level=polars.CompatLevel.oldest())
    frame.write_ipc_stream(HERE / "polars_views.arrow", compression="uncompressed", compat_level=polars.CompatLevel.newest())


if __name__ == "__main__":
    for old in [*HERE.glob("*.arrow"), *HERE.glob("*.txt")]:
        old.unlink()
    write_all()
    for path in sorted(HERE.glob("*.arrow")):
        if path.stem.startswith("lz4_"):  # refused
            continue
        path.with_suffix(".txt").write_text(describe(path))
