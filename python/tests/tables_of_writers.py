"""Tables that many versions of other libraries write, every value of which is compared with what they were given.

Usage: python python/tests/tables_of_writers.py FOLDER [--only TEXT]

Run it by a Python that has penstock. FOLDER gets a virtual environment for each set of packages below, installed by pip, and the
tables that each of them writes. Packages that have no wheel for this Python are named as such. Prints a table: how many files, columns
and values were the same, and each that was not. Fails if there is one, or if a set of packages wrote nothing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Names of packages, and what writes with them.
WRITERS = [
    *[(["pyarrow==" + version, "numpy<2"], "pyarrow") for version in ("12.0.1", "13.0.0", "14.0.2", "15.0.2", "16.1.0")],
    *[(["pyarrow==" + version, "numpy"], "pyarrow") for version in ("17.0.0", "18.1.0", "19.0.1", "20.0.0", "21.0.0", "22.0.0")],
    (["pyarrow", "numpy"], "pyarrow"),
    (["datasets==2.10.1", "pyarrow==12.0.1", "numpy<2", "pandas<2.2", "fsspec<2023.10", "huggingface_hub<0.24", "Pillow"], "datasets"),
    (["datasets==2.14.7", "pyarrow==14.0.2", "numpy<2", "huggingface_hub<0.24", "Pillow"], "datasets"),
    (["datasets==2.21.0", "pyarrow==17.0.0", "numpy<2", "Pillow"], "datasets"),
    (["datasets==3.6.0", "Pillow"], "datasets"),
    (["datasets", "Pillow"], "datasets"),
    (["polars==0.20.31", "pyarrow==16.1.0", "numpy<2"], "polars"),
    (["polars==1.9.0", "pyarrow"], "polars"),
    (["polars", "pyarrow"], "polars"),
    (["duckdb==0.10.3", "pyarrow==16.1.0", "numpy<2"], "duckdb"),
    (["duckdb==1.1.3", "pyarrow"], "duckdb"),
    (["duckdb", "pyarrow"], "duckdb"),
    (["fastparquet", "pandas<3", "pyarrow"], "fastparquet"),
]
ROWS = 230
# Of errors of versions that do not write something.
NOT_WRITTEN = ("Unrecognized option for PARQUET: parquet_version", "Selected encoding is not supported",
               "unexpected keyword argument 'store_decimal_as_integer'",
               "unexpected keyword argument 'write_page_checksum'", "unexpected keyword argument 'write_page_index'")


# ---- what is written: Python's values by column; a value is None, a number, a text, bytes, or a list of numbers ----


def columns(nulls: bool) -> dict[str, tuple[str, list[Any]]]:
    """The type of each column, and its values."""
    def with_nulls(values: list[Any]) -> list[Any]:
        return [None if nulls and i % 7 == 3 else value for i, value in enumerate(values)]

    def ints(least: int, most: int) -> list[int]:
        edges = [least, most, 0, 1, most // 3]
        return [edges[i % 5] if i % 3 else max(least, min(most, i * 37 - 900)) for i in range(ROWS)]

    found: dict[str, tuple[str, list[Any]]] = {}
    for bits in (8, 16, 32, 64):
        found[f"int{bits}"] = (f"int{bits}", ints(-(1 << bits - 1), (1 << bits - 1) - 1))
        found[f"uint{bits}"] = (f"uint{bits}", ints(0, (1 << bits) - 1))
    reals = [0.0, -0.0, 1.5, math.inf, -1.25, 2.0**-20]
    found["float32"] = ("float32", [reals[i % 6] for i in range(ROWS)])
    found["float64"] = ("float64", [reals[i % 6] * (i + 1) for i in range(ROWS)])
    found["bool"] = ("bool", [i % 3 == 0 for i in range(ROWS)])
    found["few"] = ("string", [("cat", "dog", "wörter")[i % 3] for i in range(ROWS)])
    found["text"] = ("string", [f"{i} " * (i % 11) for i in range(ROWS)])
    found["data"] = ("binary", [bytes([i % 256]) * (i % 40) for i in range(ROWS)])
    found["ids"] = ("list int32", [[i * 7 + k for k in range(i % 13)] for i in range(ROWS)])
    found["reals"] = ("list float32", [[i / 4 + k for k in range(i % 5)] for i in range(ROWS)])
    return {name: (kind, with_nulls(values)) for name, (kind, values) in found.items()}


def as_json(value: Any) -> Any:
    return {"hex": value.hex()} if isinstance(value, bytes) else {"hex": value.encode().hex()} if isinstance(value, str) else value


class Case:
    """A folder with files, and what is in them."""

    def __init__(self, folder: Path, name: str, reader: str = "parquet") -> None:
        self.folder = folder / name
        self.reader = reader
        self.folder.mkdir(parents=True)

    def write(self, name: str, write: Callable[[str], Any], given: dict[str, list[Any]]) -> None:
        """Calls `write` with a path, and keeps what the file has."""
        path = self.folder / name
        try:
            write(str(path))
        except Exception as error:
            if not any(text in str(error) for text in NOT_WRITTEN):
                raise
            if path.is_file():
                path.unlink()
            with (self.folder / "not-written.txt").open("a") as out:
                print(name, type(error).__name__, str(error).splitlines()[:1], file=out)
            return
        text = {"reader": self.reader, "path": name, "columns": {key: [as_json(v) for v in values] for key, values in given.items()}}
        (self.folder / f"{name}.json").write_text(json.dumps(text))


# ---- writers ----


def arrow_type(kind: str) -> Any:
    import pyarrow as pa

    if kind.startswith("list "):
        return pa.list_(arrow_type(kind[5:]))
    return {"bool": pa.bool_(), "string": pa.string(), "binary": pa.binary()}.get(kind) or getattr(pa, kind)()


def arrow_table(nulls: bool) -> tuple[Any, dict[str, list[Any]]]:
    import pyarrow as pa

    given = columns(nulls)
    table = pa.table({name: pa.array(values, arrow_type(kind)) for name, (kind, values) in given.items()})
    return table, {name: values for name, (_, values) in given.items()}


def write_pyarrow(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    for nulls in (False, True):
        table, given = arrow_table(nulls)
        case = Case(folder, f"parquet-nulls-{nulls}")
        for codec, version, dictionary in itertools.product(("none", "snappy", "gzip", "zstd"), ("1.0", "2.0"), (False, True)):
            case.write(f"{codec}-{version}-{dictionary}.parquet",
                       lambda path, c=codec, v=version, d=dictionary: pq.write_table(
                           table, path, compression=c, data_page_version=v, use_dictionary=d, row_group_size=90,
                           data_page_size=700, write_batch_size=16), given)
        encodings = {"DELTA_BINARY_PACKED": ["int32", "int64", "uint32", "uint64"],
                     "DELTA_LENGTH_BYTE_ARRAY": ["few", "text", "data"], "DELTA_BYTE_ARRAY": ["few", "text", "data"],
                     "BYTE_STREAM_SPLIT": ["float32", "float64"]}
        for encoding, names in encodings.items():
            for version in ("1.0", "2.0"):
                case.write(f"{encoding}-{version}.parquet",
                           lambda path, n=names, e=encoding, v=version: pq.write_table(
                               table.select(n), path, column_encoding=dict.fromkeys(n, e), use_dictionary=False,
                               data_page_version=v, data_page_size=300, write_batch_size=16),
                           {name: given[name] for name in names})
        for options in ({"write_page_index": True}, {"write_page_checksum": True}, {"store_decimal_as_integer": True},
                        {"use_compliant_nested_type": False}, {"version": "1.0"}, {"version": "2.4"}, {"version": "2.6"}):
            name = "-".join(f"{key}-{value}" for key, value in options.items())
            case.write(f"{name}.parquet", lambda path, o=options: pq.write_table(table, path, **o), given)

        def groups(path: str) -> None:
            with pq.ParquetWriter(path, table.schema) as writer:
                for part in (table.slice(0, 0), table.slice(0, 100), table.slice(0, 0), table.slice(100)):
                    writer.write_table(part)

        case.write("empty-groups.parquet", groups, given)
        case.write("no-rows.parquet", lambda path: pq.write_table(table.slice(0, 0), path), {name: [] for name in given})

        def dataset(path: str) -> None:
            import pyarrow.dataset as ds

            ds.write_dataset(table, path, format="parquet", max_rows_per_file=70, max_rows_per_group=40, use_threads=False)

        case.write("many-files", dataset, given)
        ipc = Case(folder, f"arrow-nulls-{nulls}", "arrow")
        for codec in (None, "zstd"):
            options = pa.ipc.IpcWriteOptions(compression=codec)

            def stream(path: str, new: Any = pa.ipc.new_stream, options: Any = options) -> None:
                with new(path, table.schema, options=options) as writer:
                    writer.write_table(table, max_chunksize=60)

            ipc.write(f"stream-{codec}.arrow", stream, given)
            ipc.write(f"file-{codec}.arrow", lambda path, s=stream: s(path, pa.ipc.new_file), given)
        ipc.write("feather.feather", lambda path: feather.write_feather(table, path, compression="uncompressed"), given)


def write_datasets(folder: Path) -> None:
    import datasets
    import numpy as np
    from PIL import Image

    table, given = arrow_table(False)
    data = datasets.Dataset(table) if hasattr(table, "schema") else None
    case = Case(folder, "parquet")
    case.write("to_parquet.parquet", lambda path: data.to_parquet(path), given)
    arrow = Case(folder, "arrow", "arrow")
    arrow.write("save_to_disk", lambda path: data.save_to_disk(path), given)
    arrow.write("picked", lambda path: data.select(range(200, 20, -3)).save_to_disk(path),
                {name: values[200:20:-3] for name, values in given.items()})
    files = []
    for i in range(12):
        path = folder / f"{i}.png"
        Image.fromarray(np.full((5, 7, 3), i * 20, np.uint8)).save(path)
        files.append(path)
    pictures = datasets.Dataset.from_dict({"image": [str(path) for path in files], "label": [i % 3 for i in range(12)]})
    pictures = pictures.cast_column("image", datasets.Image())
    pictures = pictures.cast_column("label", datasets.ClassLabel(names=["a", "b", "c"]))
    of_pictures = {"image": [path.read_bytes() for path in files], "label": [i % 3 for i in range(12)]}
    case.write("images.parquet", lambda path: embedded(pictures).to_parquet(path), of_pictures)
    arrow.write("images", lambda path: embedded(pictures).save_to_disk(path), of_pictures)


def embedded(data: Any) -> Any:
    """The bytes of images in the table, as push_to_hub() puts them there."""
    from datasets.table import embed_table_storage

    form = data.format
    return data.with_format("arrow").map(embed_table_storage, batched=True, batch_size=5).with_format(**form)


def write_polars(folder: Path) -> None:
    import polars as pl

    for nulls in (False, True):
        table, given = arrow_table(nulls)
        frame = pl.from_arrow(table)
        case = Case(folder, f"parquet-nulls-{nulls}")
        for codec in ("uncompressed", "snappy", "gzip", "zstd"):
            case.write(f"{codec}.parquet", lambda path, c=codec: frame.write_parquet(path, compression=c), given)
            case.write(f"{codec}-pages.parquet", lambda path, c=codec: frame.write_parquet(
                path, compression=c, data_page_size=500, row_group_size=100, statistics=True), given)
        arrow = Case(folder, f"arrow-nulls-{nulls}", "arrow")
        for codec in ("uncompressed", "zstd"):
            arrow.write(f"file-{codec}.arrow", lambda path, c=codec: frame.write_ipc(path, compression=c), given)
            arrow.write(f"stream-{codec}.arrow", lambda path, c=codec: frame.write_ipc_stream(path, compression=c), given)


def write_duckdb(folder: Path) -> None:
    import duckdb

    for nulls in (False, True):
        table, given = arrow_table(nulls)
        case = Case(folder, f"parquet-nulls-{nulls}")
        connection = duckdb.connect()
        connection.register("given", table)
        for codec, version in itertools.product(("uncompressed", "snappy", "gzip", "zstd"), ("", ", parquet_version v2")):
            case.write(f"{codec}{version[-2:]}.parquet", lambda path, c=codec, v=version: connection.execute(
                f"copy given to '{path}' (format parquet, compression {c}, row_group_size 2048{v})"), given)


def write_fastparquet(folder: Path) -> None:
    import fastparquet
    import pandas as pd

    given = columns(False)
    wanted = {name: values for name, (kind, values) in given.items() if not kind.startswith("list")}
    frame = pd.DataFrame({name: pd.Series(values, dtype=kind if kind[:3] in ("int", "uin", "flo", "boo") else object)
                          for name, (kind, values) in given.items() if name in wanted})
    case = Case(folder, "parquet")
    for codec in (None, "SNAPPY", "GZIP", "ZSTD"):
        case.write(f"{codec}.parquet", lambda path, c=codec: fastparquet.write(path, frame, compression=c, row_group_offsets=100,
                                                                               object_encoding={"few": "utf8", "text": "utf8", "data": "bytes"}), wanted)


# ---- comparing ----


def read_columns(path: Path, reader: str, names: list[str]) -> Iterator[dict[str, Any]]:
    """All rows, texts and bytes as bytes, a null as the default value 0 or as nothing."""
    import numpy as np

    import penstock as ps

    data = getattr(ps, reader)(path, columns=[ps.TableColumn(name, required=False) for name in names])
    ragged = [field.name for field in data.fields if None in field.shape]
    for name in ragged:
        data = data.map(ps.pad(name, 600, lengths=f"{name} length"))
    for step in data.batch(1).loader(threads=1):
        row = {}
        for name in names:
            value = np.asarray(step[name])[0]
            if name in ragged:
                value = value[:int(np.asarray(step[f"{name} length"])[0])]
            row[name] = value.tobytes() if value.dtype == np.uint8 and value.ndim == 1 else value.tolist()
        yield row


def nothing_of(given: list[Any]) -> Any:
    """What a null of a column is read as."""
    kinds = {type(value) for value in given} - {type(None)}
    return b"" if dict in kinds else [] if list in kinds else 0


def is_same(found: Any, given: Any, nothing: Any) -> bool:
    if isinstance(given, dict):
        return bool(found == bytes.fromhex(given["hex"]))
    if given is None:
        return bool(found == nothing and isinstance(found, (bytes, list)) == isinstance(nothing, (bytes, list)))
    if isinstance(given, list):
        return list(found) == given
    return bool(found == given and math.copysign(1, found) == math.copysign(1, given))


def compare(file: Path) -> tuple[int, list[str]]:
    """How many values were the same, and what was not."""
    said = json.loads(file.read_text())
    names = list(said["columns"])
    rows = len(said["columns"][names[0]])
    same = 0
    wrong = []
    try:
        found = list(read_columns(file.with_name(said["path"]), said["reader"], names)) if rows else []
        if rows == 0:
            import penstock as ps

            found = [{}] * getattr(ps, said["reader"])(file.with_name(said["path"])).size
    except Exception as error:
        return 0, [f"{type(error).__name__}: {str(error).splitlines()[0]}"]
    if len(found) != rows:
        return 0, [f"{len(found)} rows, and {rows} were written"]
    for name in names:
        nothing = nothing_of(said["columns"][name])
        bad = [i for i, row in enumerate(found) if not is_same(row[name], said["columns"][name][i], nothing)]
        same += rows - len(bad)
        if bad:
            wrong.append(f"{name}: {len(bad)} values, first in row {bad[0]}: {found[bad[0]][name]!r}, and {said['columns'][name][bad[0]]!r} was written")
    return same, wrong


def installed(folder: Path, packages: list[str]) -> Path | None:
    """The Python of an environment with these packages; None if pip finds no wheel."""
    python = folder / "venv/bin/python"
    if not (folder / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        result = subprocess.run([str(python), "-m", "pip", "install", "-q", "--only-binary", ":all:", *packages],
                                capture_output=True, text=True)
        if result.returncode != 0:
            (folder / "pip.log").write_text(result.stdout + result.stderr)
            return None
        (folder / "installed").touch()
    return python


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="sets of packages whose names contain this")
    parser.add_argument("--write", help=argparse.SUPPRESS)  # this program, in an environment of its own
    options = parser.parse_args()
    if options.write:
        globals()["write_" + options.write](options.folder)
        return 0
    failed = 0
    print("| packages | files | values the same | not written | wrong |\n|---|---|---|---|---|")
    for packages, writer in WRITERS:
        name = " ".join(packages)
        if options.only not in name:
            continue
        folder = options.folder / name.replace(" ", ",").replace("<", "below").replace("==", "-")
        folder.mkdir(parents=True, exist_ok=True)
        python = installed(folder, packages)
        if python is None:
            print(f"| {name} | no wheels: {folder / 'pip.log'} | | | |", flush=True)
            failed += 1
            continue
        tables = folder / "tables"
        subprocess.run(["rm", "-rf", str(tables)], check=True)
        written = subprocess.run([str(python), __file__, str(tables), "--write", writer], capture_output=True, text=True)
        if written.returncode != 0:
            print(written.stderr, file=sys.stderr)
            failed += 1
        files = sorted(tables.rglob("*.json")) if tables.exists() else []
        files = [file for file in files if file.with_suffix("").exists() and "reader" in json.loads(file.read_text())]
        same = 0
        wrong: list[str] = []
        for file in files:
            try:
                values, bad = compare(file)
            except Exception:
                values, bad = 0, [traceback.format_exc()]
            same += values
            wrong += [f"{file.relative_to(tables).with_suffix('')}: {text}" for text in bad]
        lines = [line for path in tables.rglob("not-written.txt") for line in path.read_text().splitlines()]
        print(f"| {name} | {len(files)} | {same:,} | {len(lines)} | {len(wrong)} |", flush=True)
        for text in wrong:
            print(f"  {text}")
        failed += len(wrong) + (not files)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
