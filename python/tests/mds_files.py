"""MDS data sets, made without MosaicML's streaming."""

import json

import numpy as np


def write_mds(folder, columns, rows, shard_rows=50):
    """As MDSWriter does: columns are (name, encoding, size or None); rows are lists of bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    shards = []
    for first in range(0, len(rows), shard_rows):
        data = []
        for row in rows[first:first + shard_rows]:
            sizes = [len(value) for value, (_, _, size) in zip(row, columns, strict=True) if size is None]
            data.append(np.array(sizes, np.uint32).tobytes() + b"".join(row))
        offsets = np.array([0, *map(len, data)]).cumsum().astype(np.uint32) + 4 * (len(data) + 2)
        shard = np.uint32(len(data)).tobytes() + offsets.astype(np.uint32).tobytes() + b"".join(data)
        name = f"shard.{len(shards):05}.mds"
        (folder / name).write_bytes(shard)
        shards.append({"column_names": [c[0] for c in columns], "column_encodings": [c[1] for c in columns],
                       "column_sizes": [c[2] for c in columns], "compression": None, "format": "mds", "hashes": [],
                       "raw_data": {"basename": name, "bytes": len(shard), "hashes": {}}, "samples": len(data), "size_limit": None,
                       "version": 2, "zip_data": None})
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": shards}))
