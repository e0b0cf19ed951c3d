"""Tables of Parquet: how long opening takes, what is read and held, and tokens in packed rows beside other loaders.

Usage: python bench/tables_opening.py PHOTOGRAPHS FOLDER [--rounds 3] [--seconds 3]
       pip install penstock pyarrow datasets

PHOTOGRAPHS is a folder of JPEG files, which a table of 500 MB repeats. FOLDER gets the tables. Opening is measured in a process of its
own, as often as there are rounds, with the file in the page cache; numbers are medians, with the lowest and highest. Memory is what a
process holds of its own (RssAnon) more than before the table was opened. Tokens are documents of 500 tokens in the mean as lists of
i32, in rows of 4,096, on one core; padding does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

LENGTH = 4096
BATCH = 32
ROWS = 1_000_000
LISTS = 10_000_000
DOCUMENTS = 200_000


def make_data(photographs: Path, folder: Path) -> None:
    if (folder / "done").exists():
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(1)
    images = [path.read_bytes() for path in sorted(photographs.iterdir()) if path.suffix.lower() in (".jpg", ".jpeg")]
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    schema = pa.schema({"image": kind, "label": pa.int64()})
    plain = {"compression": {"image.bytes": "none", "label": "snappy"}, "use_dictionary": ["label"]}
    with pq.ParquetWriter(folder / "images.parquet", schema, **plain) as writer:
        written = 0
        while written < 500_000_000:
            some = images[:100]
            images = images[100:] + some
            written += sum(map(len, some))
            rows = [{"bytes": image, "path": None} for image in some]
            writer.write_table(pa.table({"image": pa.array(rows, kind), "label": np.arange(100)}, schema))
    texts = pa.array([f"{number:0100}" for number in range(1000)])
    pq.write_table(pa.table({"label": draw.integers(0, 1000, ROWS), "score": draw.random(ROWS),
                             "text": texts.take(pa.array(draw.integers(0, 1000, ROWS)))}), folder / "rows.parquet")
    write_lists(folder / "lists.parquet", draw.integers(1, 60, LISTS), draw)
    write_lists(folder / "tokens.parquet", np.maximum(draw.exponential(500, DOCUMENTS), 1).astype(np.int64), draw)
    (folder / "done").touch()


def write_lists(path: Path, lengths: np.ndarray, draw: np.random.Generator) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema({"tokens": pa.list_(pa.int32())})
    with pq.ParquetWriter(path, schema) as writer:
        for some in np.array_split(lengths, max(len(lengths) // 500_000, 1)):
            ends = np.concatenate([[0], np.cumsum(some)]).astype(np.int32)
            tokens = draw.integers(0, 50256, ends[-1], dtype=np.int32)
            writer.write_table(pa.table([pa.ListArray.from_arrays(ends, tokens)], schema))


def held() -> int:
    """MiB that only this process has."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) >> 10
    return 0


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


# ---- opening ----


def index_of(file: Path) -> dict[str, float]:
    import penstock as ps

    index = file.with_name(f".{file.name}.penstock-index")
    index.unlink(missing_ok=True)
    before = held()
    seconds, data = timed(lambda: ps.parquet(file))
    return {"seconds": seconds, "MiB": held() - before, "index MiB": index.stat().st_size / 2**20,
            "rows": data.size}


def first_batch(file: Path) -> dict[str, float]:
    import penstock as ps

    ps.parquet(file)  # makes the index
    before = held()

    def work() -> Any:
        rows = ps.parquet(file, columns=["label", "score"]).shuffle(seed=1).batch(256).loader(threads=2)
        return next(iter(rows)), rows

    seconds, _ = timed(work)
    return {"seconds": seconds, "MiB": held() - before}


def bytes_read(file: Path) -> dict[str, float]:
    import penstock as ps
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    images = pq.read_table(file, columns=["image.bytes"]).flatten().column(0)
    wanted = pc.sum(pc.binary_length(images)).as_py()
    loader = ps.parquet(file).map(ps.decode_image(crop=ps.center_crop(32))).shuffle(seed=1).batch(64).loader(threads=2)
    for _ in loader:
        pass
    return {"of those wanted": loader.stats().bytes_read / wanted}


def packed_lists(file: Path) -> dict[str, float]:
    import penstock as ps

    ps.parquet(file)
    before = held()
    seconds, plan = timed(lambda: ps.parquet(file).pack(LENGTH).shuffle(seed=1).batch(BATCH))
    opened = held() - before
    loader = plan.loader(threads=2)
    for _ in range(500):
        next(loader)
    return {"seconds": seconds, "MiB when opened": opened, "MiB after 500 batches": held() - before}


OPENING: dict[str, tuple[str, Callable[[Path], dict[str, float]], str]] = {
    "images": ("Index of a table of images of 500 MB", index_of, "images.parquet"),
    "rows": ("Index of 1,000,000 rows of an integer, a float and a text", index_of, "rows.parquet"),
    "first": ("First batch of 256 of these, shuffled, with an index", first_batch, "rows.parquet"),
    "read": ("Bytes read for an epoch of the images", bytes_read, "images.parquet"),
    "lists": ("Index of 10,000,000 lists of i32", index_of, "lists.parquet"),
    "packed": ("10,000,000 lists packed into rows of 4,096, page_cache_bytes = 256 MiB", packed_lists, "lists.parquet"),
}


# ---- tokens: how many each batch has, padding left out ----


def penstock_pack(file: Path) -> Iterator[int]:
    import penstock as ps

    rows = ps.parquet(file).pack(LENGTH, dtype="i64")
    assert rows.packed is not None
    used = LENGTH * (1 - rows.packed.padding_fraction)
    for step in rows.shuffle(seed=1).repeat().batch(BATCH).loader(threads=1):
        yield round(len(step["tokens"]) * used)


def datasets_groups(file: Path) -> Iterator[int]:
    """Documents one behind another, cut into rows: group_texts() of Hugging Face's examples, in a stream."""
    import datasets

    def group(rows: dict[str, Any]) -> dict[str, Any]:
        tokens = [token for one in rows["tokens"] for token in one]
        whole = len(tokens) // LENGTH * LENGTH
        return {"tokens": [tokens[k:k + LENGTH] for k in range(0, whole, LENGTH)]}

    stream = datasets.load_dataset("parquet", data_files=str(file), split="train", streaming=True)
    while True:
        for batch in stream.map(group, batched=True, batch_size=1000).shuffle(seed=1, buffer_size=100).with_format("numpy").iter(BATCH):
            yield int(np.stack(list(batch["tokens"])).astype(np.int64).size)


def pyarrow_groups(file: Path) -> Iterator[int]:
    """The same by pyarrow and numpy, without a shuffle."""
    import pyarrow.parquet as pq

    while True:
        left = np.empty(0, np.int64)
        for some in pq.ParquetFile(file).iter_batches(batch_size=1000):
            left = np.concatenate([left, some.column(0).flatten().to_numpy().astype(np.int64)])
            while len(left) >= BATCH * LENGTH:
                yield left[:BATCH * LENGTH].reshape(BATCH, LENGTH).size
                left = left[BATCH * LENGTH:]


TOKENS: dict[str, tuple[str, Callable[[Path], Iterator[int]]]] = {
    "penstock": ("Penstock, best fit, shuffled (tokens, labels, positions, segments, i64)", penstock_pack),
    "datasets": ("datasets, streaming, group_texts, buffer of 100 rows (tokens, i64)", datasets_groups),
    "pyarrow": ("pyarrow and numpy, cut up in order (tokens, i64)", pyarrow_groups),
}


def tokens_a_second(name: str, file: Path, seconds: float) -> float:
    batches = TOKENS[name][1](file)
    for _ in range(3):
        next(batches)
    tokens, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        tokens += next(batches)
    return tokens / (time.perf_counter() - begin)


# ---- tables ----


def child(arguments: argparse.Namespace) -> None:
    if arguments.only in OPENING:
        _, measure, file = OPENING[arguments.only]
        (arguments.folder / file).read_bytes()  # into the page cache
        print(json.dumps(measure(arguments.folder / file)))
    else:
        os.sched_setaffinity(0, {0})
        print(json.dumps({"tokens": tokens_a_second(arguments.only, arguments.folder / "tokens.parquet", arguments.seconds)}))
    sys.stdout.flush()
    os._exit(0)


def run(name: str, arguments: argparse.Namespace) -> dict[str, float] | None:
    command = [sys.executable, __file__, str(arguments.photographs), str(arguments.folder), "--only", name, "--seconds", str(arguments.seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        print(f"{name}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def spread(numbers: list[float], digits: int) -> str:
    return f"{statistics.median(numbers):,.{digits}f} ({min(numbers):,.{digits}f} to {max(numbers):,.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photographs", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--only", choices=[*OPENING, *TOKENS])
    arguments = parser.parse_args()
    if arguments.only:
        return child(arguments)
    make_data(arguments.photographs, arguments.folder)
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in (*OPENING, *TOKENS)}
    for _ in range(arguments.rounds):
        for name, results in runs.items():
            if (one := run(name, arguments)) is not None:
                results.append(one)
    print("| What | Median (lowest to highest) |\n|---|---|")
    for name, (what, _, _) in OPENING.items():
        for figure in runs[name][0] if runs[name] else ():
            print(f"| {what}: {figure} | {spread([one[figure] for one in runs[name]], 3)} |")
    print("\n| Tokens in Parquet | Million tokens a second | Of the first row |\n|---|---|---|")
    best = statistics.median(one["tokens"] for one in runs["penstock"])
    for name, (what, _) in TOKENS.items():
        numbers = [one["tokens"] / 1e6 for one in runs[name]]
        print(f"| {what} | {spread(numbers, 1)} | {statistics.median(numbers) * 1e6 / best:.3f} |" if numbers else f"| {what} | | |")


if __name__ == "__main__":
    main()
