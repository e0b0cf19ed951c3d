"""Labelled photographs in tables, through Penstock and through what others use, side by side.

Usage: python bench/tables_peers.py PHOTOGRAPHS FOLDER [--rounds 3] [--seconds 4] [--cores 2]
       pip install penstock torch torchvision datasets mosaicml-streaming litdata "ray[data]"

PHOTOGRAPHS is a folder of JPEG files, whose copies FOLDER gets in the formats that are compared: Parquet as Hugging Face writes it
now (images uncompressed) and wrote it before (Snappy, in pages of a whole row group), what save_to_disk() writes, MDS and LitData.

Each loader runs in a process of its own, in turn, as many rounds as asked for, and delivers batches of 32 of shuffled random crops of
224 pixels; what counts is the time from the second batch on, over whole passes. Penstock's crops are those of its own decoder, the others'
those of torchvision's RandomResizedCrop on what Pillow decodes. Numbers are medians of images a second of processor time of the process and
its workers, with the lowest and highest, and images a second of time. A loader whose package is not there has an empty row. The ceiling is
Penstock with the photographs as files of a folder.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BATCH = 32
SIZE = 224
LOADERS = {
    "folder": "Penstock, a folder of files",
    "parquet": "Penstock, Parquet, images uncompressed",
    "parquet-old": "Penstock, Parquet, Snappy",
    "parquet-old-no-cache": "Penstock, Parquet, Snappy, no page cache",
    "parquet-plain-no-cache": "Penstock, Parquet, Snappy without a dictionary, no page cache",
    "arrow": "Penstock, Arrow (save_to_disk)",
    "mds": "Penstock, MDS",
    "datasets": "datasets, map style, torch DataLoader",
    "datasets-stream": "datasets, streaming Parquet, torch DataLoader",
    "mosaic": "Mosaic streaming, torch DataLoader",
    "litdata": "LitData, StreamingDataLoader",
    "ray": "Ray Data, Parquet",
}


def photographs(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in (".jpg", ".jpeg"))


# ---- the data ----


def make_data(source: Path, folder: Path) -> None:
    if (folder / "done").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rows = [{"image": path.read_bytes(), "label": number} for number, path in enumerate(photographs(source))]
    (folder / "files").mkdir()
    for row in rows:
        (folder / "files" / f"{row['label']:05}.jpg").write_bytes(row["image"])
    for write in (write_tables, write_mds, write_litdata):
        try:
            write(rows, folder)
        except ImportError as error:
            print(f"{write.__name__}: {error}", file=sys.stderr)
    (folder / "done").touch()


def write_tables(rows: list[dict[str, Any]], folder: Path) -> None:
    import datasets
    import pyarrow.parquet as pq

    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    images = [{"bytes": row["image"], "path": None} for row in rows]
    data = datasets.Dataset.from_dict({"image": images, "label": [row["label"] for row in rows]}, features=features)
    data.to_parquet(folder / "new.parquet")
    pq.write_table(data.data.table, folder / "old.parquet", row_group_size=100)
    pq.write_table(data.data.table, folder / "plain.parquet", row_group_size=100, use_dictionary=False)
    data.save_to_disk(folder / "saved")


def write_mds(rows: list[dict[str, Any]], folder: Path) -> None:
    from streaming import MDSWriter

    with MDSWriter(out=str(folder / "mds"), columns={"image": "jpeg", "label": "int"}) as writer:
        for row in rows:
            writer.write(row)


def write_litdata(rows: list[dict[str, Any]], folder: Path) -> None:
    import litdata

    litdata.optimize(_same, rows, str(folder / "litdata"), chunk_bytes="64MB", num_workers=1, verbose=False)


def _same(row: dict[str, Any]) -> dict[str, Any]:
    return row


# ---- what each of them delivers: the sizes of its batches ----


def penstock_batches(data: Any, cores: int) -> Iterator[int]:
    import penstock as ps

    plan = data.map(ps.decode_image(crop=ps.random_resized_crop(SIZE))).seed(1).shuffle().repeat().batch(BATCH)
    for step in plan.loader(threads=cores):
        yield len(step["label"].numpy())


def folder(data: Path, cores: int) -> Iterator[int]:
    import penstock as ps

    return penstock_batches(ps.images(data / "files"), cores)


def parquet(data: Path, cores: int) -> Iterator[int]:
    import penstock as ps

    return penstock_batches(ps.parquet(data / "new.parquet"), cores)


def parquet_old(data: Path, cores: int) -> Iterator[int]:
    import penstock as ps

    return penstock_batches(ps.parquet(data / "old.parquet"), cores)


def parquet_old_no_cache(data: Path, cores: int) -> Iterator[int]:
    import penstock as ps

    return penstock_batches(ps.parquet(data / "old.parquet", page_cache_bytes=0), cores)


def parquet_plain_no_cache(data: Path, cores: int) -> Iterator[int]:
    import penstock as ps

    return penstock_batches(ps.parquet(data / "plain.parquet", page_cache_bytes=0), cores)


def arrow(data: Path, cores: int) -> Iterator[int]:
    import penstock as ps

    return penstock_batches(ps.arrow(data / "saved"), cores)


def mds(data: Path, cores: int) -> Iterator[int]:
    import penstock as ps

    return penstock_batches(ps.mds(data / "mds"), cores)


def crop() -> Any:
    from torchvision.transforms import v2

    return v2.Compose([v2.PILToTensor(), v2.RandomResizedCrop(SIZE, antialias=True)])


class Cropped:
    """Turns the rows of other loaders into what is compared."""

    def __init__(self) -> None:
        self.crop = crop()

    def __call__(self, row: Any) -> Any:
        import torch
        from PIL import Image

        torch.set_num_threads(1)
        image = row["image"]
        if isinstance(image, dict):
            image = image["bytes"]
        if isinstance(image, bytes):
            image = Image.open(io.BytesIO(image))
        return {"image": self.crop(image.convert("RGB")), "label": int(row["label"])}


class Mapped:
    def __init__(self, data: Any) -> None:
        self.data, self.cropped = data, Cropped()

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, number: int) -> Any:
        return self.cropped(self.data[number])


def torch_batches(data: Any, cores: int, **options: Any) -> Iterator[int]:
    import torch

    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH, num_workers=cores, **options)
    while True:
        for batch in loader:
            yield len(batch["label"])


def datasets_map(data: Path, cores: int) -> Iterator[int]:
    import datasets

    return torch_batches(Mapped(datasets.load_from_disk(str(data / "saved"))), cores, shuffle=True, persistent_workers=True)


def datasets_stream(data: Path, cores: int) -> Iterator[int]:
    import datasets

    files = [str(data / "new.parquet")] * cores  # one a worker
    stream = datasets.load_dataset("parquet", data_files={"train": files}, split="train", streaming=True)
    return torch_batches(stream.shuffle(seed=1, buffer_size=100).map(Cropped()), cores)


def mosaic(data: Path, cores: int) -> Iterator[int]:
    from streaming import StreamingDataset

    stream = StreamingDataset(local=str(data / "mds"), shuffle=True, batch_size=BATCH)
    return torch_batches(Mapped(stream), cores, persistent_workers=True)


def litdata(data: Path, cores: int) -> Iterator[int]:
    import litdata
    import torch

    torch.set_num_threads(1)
    stream = litdata.StreamingDataset(str(data / "litdata"), shuffle=True, transform=Cropped())
    loader = litdata.StreamingDataLoader(stream, batch_size=BATCH, num_workers=cores)
    while True:
        for batch in loader:
            yield len(batch["label"])


def ray(data: Path, cores: int) -> Iterator[int]:
    import logging

    import ray.data

    ray.init(num_cpus=cores, logging_level=logging.ERROR, include_dashboard=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    while True:
        rows = ray.data.read_parquet(str(data / "new.parquet")).map(Cropped())
        for batch in rows.iter_batches(batch_size=BATCH, local_shuffle_buffer_size=100):
            yield len(batch["label"])


BATCHES = {
    "folder": folder, "parquet": parquet, "parquet-old": parquet_old, "parquet-old-no-cache": parquet_old_no_cache,
    "parquet-plain-no-cache": parquet_plain_no_cache, "arrow": arrow, "mds": mds, "datasets": datasets_map,
    "datasets-stream": datasets_stream, "mosaic": mosaic, "litdata": litdata, "ray": ray,
}


# ---- measuring ----


def processor_seconds() -> float:
    """Of this process and of all that it started, also those that run."""
    ticks = os.sysconf("SC_CLK_TCK")
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[int(entry.name)] = int(fields[1])
        used[int(entry.name)] = (int(fields[11]) + int(fields[12])) / ticks

    def is_ours(process: int) -> bool:
        while process not in (0, 1):
            if process == os.getpid():
                return True
            process = parents.get(process, 0)
        return False

    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(seconds for process, seconds in used.items() if is_ours(process)) + ended.ru_utime + ended.ru_stime


def measure(name: str, data: Path, cores: int, seconds: float) -> dict[str, float]:
    per_pass = len(photographs(data / "files"))
    batches = BATCHES[name](data, cores)
    for _ in range(2 * per_pass // BATCH):  # a pass, and what was fetched ahead of it
        next(batches)
    images, begin, begin_cpu = 0, time.perf_counter(), processor_seconds()
    while images < per_pass or time.perf_counter() - begin < seconds:
        images += next(batches)
    return {"cpu": images / (processor_seconds() - begin_cpu), "time": images / (time.perf_counter() - begin)}


def run(name: str, arguments: argparse.Namespace) -> dict[str, float] | None:
    command = [sys.executable, __file__, str(arguments.photographs), str(arguments.folder), "--only", name, "--seconds", str(arguments.seconds),
               "--cores", str(arguments.cores)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        print(f"{name}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def row(name: str, runs: list[dict[str, float]], ceiling: float) -> str:
    if not runs:
        return f"| {LOADERS[name]} | | | | |"
    cpu = [one["cpu"] for one in runs]
    middle = statistics.median(cpu)
    return (f"| {LOADERS[name]} | {middle:,.0f} | {min(cpu):,.0f} to {max(cpu):,.0f} | {middle / ceiling:.2f} | "
            f"{statistics.median(one['time'] for one in runs):,.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photographs", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--only", choices=BATCHES)
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps(measure(arguments.only, arguments.folder, arguments.cores, arguments.seconds)), flush=True)
        os._exit(0)  # some loaders' workers do not end
    make_data(arguments.photographs, arguments.folder)
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in LOADERS}
    for _ in range(arguments.rounds):
        for name in LOADERS:
            if (one := run(name, arguments)) is not None:
                runs[name].append(one)
    print("| Loader | Images per processor second | Lowest to highest | Of the first row | Images a second |\n|---|---|---|---|---|")
    ceiling = statistics.median(one["cpu"] for one in runs["folder"])
    for name in LOADERS:
        print(row(name, runs[name], ceiling))


if __name__ == "__main__":
    main()
