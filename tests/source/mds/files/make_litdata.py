"""Writes the LitData data sets beside this file, and what its StreamingDataset reads of them, litdata.json.

    python tests/source/mds/files/make_litdata.py        # needs litdata (0.2.76), torch and numpy
"""
import json
import pathlib
import shutil
import tempfile

import numpy as np
import torch
from litdata import StreamingDataset, optimize
from PIL import Image

HERE = pathlib.Path(__file__).parent


def picture(i):
    path = pathlib.Path(tempfile.gettempdir()) / f"litdata-{i}.jpg"
    Image.fromarray(np.full((6, 8, 3), i * 9, np.uint8)).save(path)
    return Image.open(path)


def of_dict(i):
    return {"image": picture(i), "label": i * 3 - 20, "text": "wörter " * (i % 4) + ".", "data": bytes(range(i)), "score": i / 8, "good": i % 2 == 0,
            "reals": np.arange(i, dtype=np.float32) / 4, "tokens": torch.arange(i + 1), "box": {"left": i, "corners": np.full((2, 3), i, np.int16)},
            "matrix": torch.full((i % 3 + 1, 2), i / 2, dtype=torch.float64)}


def of_tuple(i):
    return i, [b"x" * i, 0.5 * i]


def of_tensor(i):
    return torch.arange(i, 2 * i + 1, dtype=torch.int32)


def of_pickle(i):
    return {"label": i, "any": {1, 2, i}}


def as_json(value):
    if isinstance(value, dict):
        return {name: as_json(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(inner) for inner in value]
    if isinstance(value, (bytes, memoryview)):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, (np.ndarray, torch.Tensor)):
        array = np.asarray(value)
        return {"dtype": array.dtype.name, "shape": list(array.shape), "hex": array.tobytes().hex()}
    return {"float": value.hex()} if isinstance(value, float) else value


if __name__ == "__main__":
    values = {}
    for make in (of_dict, of_tuple, of_tensor, of_pickle):
        name = "litdata_" + make.__name__
        shutil.rmtree(HERE / name, ignore_errors=True)
        optimize(fn=make, inputs=list(range(12)), output_dir=str(HERE / name), chunk_bytes=6000, num_workers=1)
        rows = [dict(row) if isinstance(row, dict) else row for row in StreamingDataset(str(HERE / name), shuffle=False)]
        for i, row in enumerate(rows):
            if isinstance(row, dict) and "image" in row:
                row["image"] = pathlib.Path(picture(i).filename).read_bytes()
        if make is not of_pickle:
            values[name] = [as_json(row) for row in rows]
    (HERE / "litdata.json").write_text(json.dumps(values, indent=1, sort_keys=True) + "\n")
