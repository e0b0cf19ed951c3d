"""Writes the Parquet files beside it, and of each what pyarrow reads in it.

python3 -m venv V && V/bin/pip install pyarrow polars duckdb && V/bin/python make.py

FILE.txt has a line for the file, then one for each leaf: path, type, highest definition and repetition level, slots, values that
are not null, and the CRC-32 of all slots: a byte for the repetition level, one for the definition level, and where there is a
value its length (4 bytes) and its bytes as Parquet stores them.
"""
import datetime
import decimal
import itertools
import pathlib
import random
import struct
import zlib

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent
IMAGE = pa.struct({"bytes": pa.binary(), "path": pa.string()})


def physical(value, arrow, column):
    """The bytes of a value as Parquet stores them."""
    kind = column.physical_type
    if pa.types.is_decimal(arrow):
        value = int(value.scaleb(arrow.scale))
        if kind == "FIXED_LEN_BYTE_ARRAY":
            return value.to_bytes(column.length, "big", signed=True)
    if kind == "BOOLEAN":
        return bytes([value])
    if kind in ("INT32", "INT64"):
        size = 4 if kind == "INT32" else 8
        return (value % (1 << 8 * size)).to_bytes(size, "little")
    if pa.types.is_float16(arrow):
        return struct.pack("<e", value)
    if kind == "FLOAT":
        return struct.pack("<f", value)
    if kind == "DOUBLE":
        return struct.pack("<d", value)
    return value.encode() if isinstance(value, str) else bytes(value)


def shred(value, field, names, column, definition, repetition, depth, out):
    """Adds the slots (repetition level, definition level, bytes or None) of one value."""
    arrow = field.type
    if field.nullable:
        if value is None:
            return out.append((repetition, definition, None))
        definition += 1
    if pa.types.is_struct(arrow):
        child = arrow.field(names[0])
        return shred(value[names[0]], child, names[1:], column, definition, repetition, depth, out)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        if not value:
            return out.append((repetition, definition, None))
        for i, element in enumerate(value):
            again = repetition if i == 0 else depth + 1
            shred(element, arrow.value_field, names[2:], column, definition + 1, again, depth + 1, out)
        return
    if pa.types.is_map(arrow):
        if not value:
            return out.append((repetition, definition, None))
        for i, (key, item) in enumerate(value):
            again = repetition if i == 0 else depth + 1
            is_key = names[1] == "key"
            shred(key if is_key else item, arrow.key_field if is_key else arrow.item_field, names[2:], column, definition + 1,
                  again, depth + 1, out)
        return
    out.append((repetition, definition, physical(value, arrow, column)))


def plain_values(column):
    """Times and dates as integers."""
    arrow = column.type
    if pa.types.is_temporal(arrow):
        integer = pa.int32() if arrow.bit_width == 32 else pa.int64()
        column = column.cast(integer)
    return column.to_pylist()


def describe(path):
    file = pq.ParquetFile(path)
    table = file.read()
    lines = [f"rows {file.metadata.num_rows} groups {file.metadata.num_row_groups} leaves {len(file.schema)}"]
    for i in range(len(file.schema)):
        column = file.schema.column(i)
        names = column.path.split(".")
        slots = []
        for value in plain_values(table.column(names[0])):
            shred(value, table.schema.field(names[0]), names[1:], column, 0, 0, 0, slots)
        crc = 0
        for repetition, definition, value in slots:
            crc = zlib.crc32(bytes([repetition, definition]), crc)
            if value is not None:
                crc = zlib.crc32(struct.pack("<I", len(value)) + value, crc)
        present = sum(value is not None for _, _, value in slots)
        lines.append(f"{column.path} {column.physical_type} {column.max_definition_level} {column.max_repetition_level} "
                     f"{len(slots)} {present} {crc:08x}")
    path.with_suffix(".txt").write_text("\n".join(lines) + "\n")


def some_null(values, nulls):
    return [None if nulls and i % 7 in (2, 3) else value for i, value in enumerate(values)]


def flat_columns(rows, nulls):
    """A column of each type."""
    rng = random.Random(rows + nulls)
    words = ["", "a photo of a cat", "a photo of a dog", "é", "x" * 40]
    day = datetime.date(2020, 2, 29)
    when = datetime.datetime(2024, 5, 6, 7, 8, 9, 123000)
    columns = {
        "bool": (pa.bool_(), [rng.random() < 0.5 for _ in range(rows)]),
        "runs": (pa.bool_(), [i // 20 % 2 == 0 for i in range(rows)]),
        "i8": (pa.int8(), [rng.randint(-128, 127) for _ in range(rows)]),
        "u32": (pa.uint32(), [rng.choice((0, 2**32 - 1, 77)) for _ in range(rows)]),
        "i32": (pa.int32(), [rng.choice((-2**31, 2**31 - 1, i)) for i in range(rows)]),
        "i64": (pa.int64(), [rng.choice((-2**63, 2**63 - 1, i)) for i in range(rows)]),
        "label": (pa.int64(), [i % 10 for i in range(rows)]),
        "f16": (pa.float16(), [i / 4 for i in range(rows)]),
        "f32": (pa.float32(), [i / 8 for i in range(rows)]),
        "f64": (pa.float64(), [rng.random() for _ in range(rows)]),
        "string": (pa.string(), [rng.choice(words) for _ in range(rows)]),
        "binary": (pa.binary(), [rng.randbytes(rng.randint(0, 20)) for _ in range(rows)]),
        "fixed": (pa.binary(5), [rng.randbytes(5) for _ in range(rows)]),
        "decimal": (pa.decimal128(20, 3), [decimal.Decimal(i - 9).scaleb(-3) for i in range(rows)]),
        "date": (pa.date32(), [day + datetime.timedelta(i) for i in range(rows)]),
        "time": (pa.time64("us"), [datetime.time(1, i % 60, 3) for i in range(rows)]),
        "ms": (pa.timestamp("ms"), [when + datetime.timedelta(i) for i in range(rows)]),
        "us": (pa.timestamp("us", "UTC"), [when] * rows),
    }
    fields, arrays = [], []
    for name, (arrow, values) in columns.items():
        fields.append(pa.field(name, arrow, nullable=nulls))
        arrays.append(pa.array(some_null(values, nulls), arrow))
    return pa.table(arrays, schema=pa.schema(fields))


def nested_columns(rows):
    rng = random.Random(rows)

    def image(i):
        return None if i % 11 == 5 else {"bytes": None if i % 5 == 4 else rng.randbytes(rng.randint(0, 40)), "path": f"{i}.jpg"}

    ints = [None if i % 9 == 8 else [None if j == 2 else i * j for j in range(i % 5)] for i in range(rows)]
    lists = [[None if i % 4 == 3 else [f"w{i + j + k}" for k in range(i % 3)] for j in range(i % 4)] for i in range(rows)]
    return pa.table({
        "image": pa.array([image(i) for i in range(rows)], IMAGE),
        "ints": pa.array(ints, pa.list_(pa.int32())),
        "images": pa.array([[image(j) for j in range(i % 4)] for i in range(rows)], pa.list_(IMAGE)),
        "words": pa.array(lists, pa.list_(pa.list_(pa.string()))),
        "tags": pa.array([None if i % 8 == 7 else [(f"k{j}", j if j else None) for j in range(i % 3)] for i in range(rows)],
                         pa.map_(pa.string(), pa.int64())),
        "deep": pa.array([{"a": {"b": None if i % 3 == 0 else i}} if i % 6 else {"a": None} for i in range(rows)],
                         pa.struct({"a": pa.struct({"b": pa.int16()})})),
    })


def write(name, table, rows_per_group=None, **options):
    options = {"write_statistics": False, "store_schema": False, **options}
    pq.write_table(table, HERE / f"{name}.parquet", row_group_size=rows_per_group, **options)


def write_all():
    # Codecs and page versions; dictionaries, with and without nulls.
    for codec, version in itertools.product(("none", "snappy", "gzip", "zstd"), ("1.0", "2.0")):
        write(f"{codec}_v{version[0]}", flat_columns(48, version == "2.0"), 30, compression=codec, data_page_version=version,
              data_page_size=64, write_batch_size=16, write_page_checksum=True)
        write(f"nested_{codec}_v{version[0]}", nested_columns(34), 20, compression=codec, data_page_version=version,
              data_page_size=128, write_batch_size=8)
    # Encodings of each type.
    encodings = {"bool": "RLE", "runs": "RLE", "i8": "DELTA_BINARY_PACKED", "u32": "DELTA_BINARY_PACKED",
                 "i32": "DELTA_BINARY_PACKED", "i64": "DELTA_BINARY_PACKED", "label": "BYTE_STREAM_SPLIT",
                 "f16": "BYTE_STREAM_SPLIT", "f32": "BYTE_STREAM_SPLIT", "f64": "BYTE_STREAM_SPLIT",
                 "string": "DELTA_BYTE_ARRAY", "binary": "DELTA_LENGTH_BYTE_ARRAY", "fixed": "DELTA_BYTE_ARRAY",
                 "decimal": "BYTE_STREAM_SPLIT", "date": "BYTE_STREAM_SPLIT", "time": "DELTA_BINARY_PACKED",
                 "ms": "DELTA_BINARY_PACKED", "us": "DELTA_BINARY_PACKED"}
    for nulls, version in itertools.product((False, True), ("1.0", "2.0")):
        write(f"encodings_{'nulls' if nulls else 'all'}_v{version[0]}", flat_columns(150, nulls), 140, compression="none",
              data_page_version=version, use_dictionary=False, column_encoding=encodings)
    write("plain", flat_columns(50, True), compression="none", use_dictionary=False)
    write("plain_nested", nested_columns(40), 25, compression="none", use_dictionary=False, data_page_size=200, write_batch_size=4,
          write_page_index=True)
    write("indexed_nested", nested_columns(40), 25, compression="zstd", data_page_size=200, write_batch_size=4, write_page_index=True)
    # A dictionary that is given up within a chunk.
    write("fallback", pa.table({"s": [f"value {i}" for i in range(200)]}), compression="snappy", dictionary_pagesize_limit=300,
          data_page_size=200, write_batch_size=10)
    # As Hugging Face writes images.
    images = nested_columns(40).select(["image", "images"]).append_column("label", pa.array([i % 3 for i in range(40)]))
    images = images.replace_schema_metadata({"huggingface": '{"info": {"features": {}}}'})
    write("huggingface", images, 20, compression={"image": "none", "images": "none", "label": "snappy"}, use_dictionary=["label"],
          column_encoding={"image": "PLAIN", "images": "PLAIN"}, write_page_index=True, store_schema=True,
          use_content_defined_chunking={"min_chunk_size": 256, "max_chunk_size": 1024, "norm_level": 0})
    write("no_rows", flat_columns(0, True))
    write("all_null", pa.table({"n": pa.array([None] * 100, pa.int64()), "s": pa.array([None] * 100, pa.string())}))
    with pq.ParquetWriter(HERE / "empty_group.parquet", pa.schema([pa.field("a", pa.int32())])) as writer:
        for values in ([1, 2], [], [3]):
            writer.write_table(pa.table({"a": pa.array(values, pa.int32())}))
    pq.write_table(pa.table({"a": pa.array([1, 2], pa.timestamp("ns"))}), HERE / "int96.parquet", use_deprecated_int96_timestamps=True)
    pq.write_table(pa.table({"a": [1, 2]}), HERE / "brotli.parquet", compression="brotli")

    # Other writers.
    frame = polars.DataFrame({"i": [1, None, 3] * 20, "s": ["a", "bb", None] * 20, "l": [[1, 2], [], None] * 20, "f": [0.5, 1.5, None] * 20,
                              "b": [True, False, None] * 20, "d": [{"x": 1, "y": "p"}, {"x": None, "y": "q"}, None] * 20})
    for codec in ("uncompressed", "snappy", "gzip", "zstd"):
        frame.write_parquet(HERE / f"polars_{codec}.parquet", compression=codec, row_group_size=40)
    query = ("select i::integer as i, case when i % 3 = 0 then null else 'name ' || (i % 5) end as s, [i, i + 1] as l, "
             "{'x': i, 'y': i::varchar} as d, i % 2 = 0 as b, i / 4.0 as f, (i::varchar)::blob as raw from range(100) t(i)")
    for codec, version in (("uncompressed", "V1"), ("snappy", "V1"), ("zstd", "V2"), ("gzip", "V2")):
        duckdb.sql(f"copy ({query}) to '{HERE}/duckdb_{codec}_{version.lower()}.parquet' "
                   f"(format parquet, compression {codec}, parquet_version {version})")


if __name__ == "__main__":
    for old in [*HERE.glob("*.parquet"), *HERE.glob("*.txt")]:
        old.unlink()
    write_all()
    for path in sorted(HERE.glob("*.parquet")):
        if path.stem not in ("int96", "brotli"):
            describe(path)
