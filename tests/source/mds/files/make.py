"""Writes the MDS data sets beside this file with MosaicML's streaming, and what its StreamingDataset reads of them.

    python tests/source/mds/files/make.py        # needs mosaicml-streaming (0.13.0), numpy and Pillow

python/tests/test_mds.py compares every value with values.json, which has one list of rows for each data set.
"""
import decimal
import io
import json
import pathlib
import shutil
import tempfile

import numpy as np
from PIL import Image
from streaming import MDSWriter, StreamingDataset
from streaming.base.util import merge_index

HERE = pathlib.Path(__file__).parent
TYPES = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def number(dtype, i):
    dtype = np.dtype(dtype)
    info = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    edges = [info.min, info.max, 0, 1] if dtype.kind != "f" else [info.min, info.max, 0.0, -0.0, float("inf"), 0.5]
    return dtype.type(edges[i % len(edges)])


def numbers(i):
    row = {name: number(name, i) for name in TYPES}
    row["int"] = -i if i % 2 else 2**63 - 1 - i
    row["str_int"] = [0, -5, 2**63 - 1, -(2**63), 77][i % 5]
    row["str_float"] = [0.1, -1e300, float("inf"), 3.0, 1e-7][i % 5]
    row["str_decimal"] = decimal.Decimal("12345678901234567890.0625") + i
    return row


def texts(i):
    return {"text": "wörter " * (i % 5), "data": bytes((i * 31 + k) % 256 for k in range(i * 7 % 60)), "json": {"i": i, "of": ["a", None]},
            "label": i % 3}


def arrays(i):
    return {"fixed": np.arange(6, dtype=np.float32).reshape(2, 3) * (i + 1), "half": np.full((3,), i / 2, np.float16),
            "tokens": np.arange(i, i + 1 + i * 97 % 400, dtype=np.int32), "matrix": np.full((i % 4 + 1, 2), i, np.uint16),
            "any": np.arange(1 + i % 7, dtype=np.int64) - i, "wide": np.arange(i + 250, dtype=np.uint8)}


def picture(i):
    return Image.fromarray(np.asarray([[[x * 20, y * 20, i * 9] for x in range(12)] for y in range(10 + i % 3)], np.uint8))


def encoded(i, form):
    out = io.BytesIO()
    picture(i).save(out, form)
    return out.getvalue()


def images(i):
    return {"x": encoded(i, "JPEG"), "y": i % 4}


def lists(i):
    return {"array": [encoded(i + k, "JPEG") for k in range(1 + i % 3)], "jpegs": [picture(i + k) for k in range(i % 3)],
            "pngs": [picture(i + k) for k in range(i % 2)], "png": picture(i)}


def refused(i):
    return {"pickle": {"i": i}, "pil": picture(i), "x": i}


SETS = {
    "numbers": (numbers, {**{name: name for name in TYPES}, "int": "int", "str_int": "str_int", "str_float": "str_float",
                          "str_decimal": "str_decimal"}, 14, {"size_limit": 900}),
    "texts": (texts, {"text": "str", "data": "bytes", "json": "json", "label": "int32"}, 23, {"size_limit": 1200, "hashes": ["sha1", "xxh3_64"]}),
    "zstd": (texts, {"text": "str", "data": "bytes", "json": "json", "label": "int32"}, 23,
             {"size_limit": 1200, "hashes": ["sha1", "xxh3_64"], "compression": "zstd:7"}),
    "arrays": (arrays, {"fixed": "ndarray:float32:2,3", "half": "ndarray:float16:3", "tokens": "ndarray:int32", "matrix": "ndarray:uint16",
                        "any": "ndarray", "wide": "ndarray:uint8"}, 13, {"size_limit": 4000}),
    "images": (images, {"x": "jpeg", "y": "int"}, 9, {"size_limit": 3000}),
    "lists": (lists, {"array": "jpegarray", "jpegs": "list[jpeg]", "pngs": "list[png]", "png": "png"}, 5, {}),
    "refused": (refused, {"pickle": "pkl", "pil": "pil", "x": "uint8"}, 3, {}),
    "gzip": (lambda i: {"x": i}, {"x": "int"}, 3, {"compression": "gz"}),
    "merged/a": (lambda i: {"x": i}, {"x": "int"}, 3, {}),
    "merged/b": (lambda i: {"x": 10 + i}, {"x": "int"}, 2, {"size_limit": 300}),
}


def plain(value):
    """What JSON can hold."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, Image.Image):
        return {"bytes": value.fp.getvalue().hex()}
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.name, "shape": list(value.shape), "hex": value.tobytes().hex()}
    if isinstance(value, np.generic):
        return {"dtype": value.dtype.name, "shape": [], "hex": value.tobytes().hex()}
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, list) and value and isinstance(value[0], Image.Image):
        return [plain(one) for one in value]
    return value


def main(scratch):
    dumped = {}
    for name, (make, columns, count, options) in SETS.items():
        folder = HERE / name
        shutil.rmtree(folder, ignore_errors=True)
        with MDSWriter(columns=columns, out=str(folder), **options) as writer:
            for i in range(count):
                writer.write(make(i))
        if name == "refused":
            continue
        copy = pathlib.Path(scratch) / name  # it decompresses shards beside themselves
        shutil.copytree(folder, copy)
        data = StreamingDataset(local=str(copy), batch_size=1, shuffle=False)
        dumped[name] = [{key: plain(value) for key, value in data[i].items()} for i in range(count)]
        if name == "zstd":  # as StreamingDataset leaves a data set that it has read
            for shard in copy.glob("*.mds"):
                (HERE / "unzipped").mkdir(exist_ok=True)
                shutil.copy(shard, HERE / "unzipped")
            shutil.copy(folder / "index.json", HERE / "unzipped")
    merge_index(str(HERE / "merged"))
    dumped["merged"] = dumped.pop("merged/a") + dumped.pop("merged/b")
    lines = [f"{json.dumps(name)}:{json.dumps(rows, separators=(',', ':'))}" for name, rows in dumped.items()]
    (HERE / "values.json").write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
