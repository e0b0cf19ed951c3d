"""Tokens in blocks and packed rows, through Penstock and through what others use, side by side on one core.

Usage: python bench/tokens_peers.py FOLDER [--rounds 3] [--seconds 3] [--core 0]
       pip install penstock torch grain mosaicml-streaming litdata megatron-core trl datasets

FOLDER gets the data: 2^27 random tokens u16 with documents of 500 tokens in the mean (exponential) that end with 50256, and copies in
the formats of LitData, Mosaic and Megatron. Each loader runs in a process of its own, in turn, as many rounds as asked for; what counts is
the time from the third batch on. Numbers are medians of million tokens a second, with the lowest and highest. A loader whose package is
not there has an empty row. "numpy copies" is the ceiling: the same rows, copied into one batch after the other by numpy.

The last table packs real lengths: those of the paragraphs below /usr/share/doc, four bytes a token.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

TOKENS = 1 << 27
LENGTH = 4096
BATCH = 32
END = 50256

BLOCKS = {
    "ceiling": "numpy copies, u16",
    "penstock-u16": "Penstock, u16",
    "penstock": "Penstock, i64",
    "nanogpt": "nanoGPT's get_batch, i64",
    "torch": "torch DataLoader, memory map, i64",
    "grain": "Grain, u16",
    "litdata": "LitData TokensLoader, i64",
    "mosaic": "Mosaic streaming, u16",
    "megatron": "megatron-core GPTDataset, i64",
}
PACKED = {
    "penstock-pack": "Penstock, best fit (tokens, labels, positions, segments, i64)",
    "grain-first": "Grain, first fit, 64 bins (tokens, positions, segments)",
    "grain-best": "Grain, best fit, 64 bins (tokens, positions, segments)",
    "megatron-reset": "megatron-core GPTDataset, positions reset (no segments)",
}


def make_data(folder: Path) -> None:
    if (folder / "train.bin").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(7)
    tokens = draw.integers(0, END, TOKENS, dtype=np.uint16)
    ends = np.cumsum(1 + draw.exponential(500, TOKENS // 400).astype(np.int64)) - 1
    tokens[ends[ends < TOKENS]] = END
    tokens[-1] = END
    tokens.tofile(folder / "part.bin")
    (folder / "part.bin").rename(folder / "train.bin")


def tokens_of(folder: Path) -> Any:
    return np.memmap(folder / "train.bin", dtype=np.uint16, mode="r")


def ends_of(folder: Path) -> Any:
    return np.flatnonzero(tokens_of(folder) == END) + 1


# ---- what each of them delivers: batches, as their users get them ----


def ceiling(folder: Path) -> Iterator[int]:
    tokens = np.asarray(tokens_of(folder))  # without the slow slices of a memory map
    slots = [np.empty((2, BATCH, LENGTH), np.uint16) for _ in range(3)]
    draw = np.random.default_rng(1)
    for step in range(1 << 60):
        slot = slots[step % 3]
        for row, block in enumerate(draw.integers(0, (TOKENS - 1) // LENGTH, BATCH)):
            begin = block * LENGTH
            slot[0, row] = tokens[begin : begin + LENGTH]
            slot[1, row] = tokens[begin + 1 : begin + 1 + LENGTH]
        yield BATCH * LENGTH


def penstock(folder: Path, dtype: str = "i64") -> Iterator[int]:
    import penstock as ps

    plan = ps.token_files(folder / "train.bin").blocks(LENGTH, dtype=dtype).shuffle(seed=1).repeat().batch(BATCH)
    for step in plan.loader(threads=1):
        yield np.asarray(step["tokens"]).size


def penstock_pack(folder: Path) -> Iterator[int]:
    import penstock as ps

    rows = ps.token_files(folder / "train.bin", document_end=END).pack(LENGTH)
    assert rows.packed is not None
    used = LENGTH * (1 - rows.packed.padding_fraction)
    for step in rows.shuffle(seed=1).repeat().batch(BATCH).loader(threads=1):
        yield round(len(step["tokens"]) * used)


def nanogpt(folder: Path) -> Iterator[int]:
    import torch

    while True:  # as in its train.py
        data = np.memmap(folder / "train.bin", dtype=np.uint16, mode="r")
        ix = torch.randint(len(data) - LENGTH, (BATCH,))
        x = torch.stack([torch.from_numpy((data[i : i + LENGTH]).astype(np.int64)) for i in ix])
        torch.stack([torch.from_numpy((data[i + 1 : i + 1 + LENGTH]).astype(np.int64)) for i in ix])
        yield x.numel()


class Blocks:
    def __init__(self, folder: Path, dtype: Any) -> None:
        self.tokens, self.dtype = tokens_of(folder), dtype

    def __len__(self) -> int:
        return (TOKENS - 1) // LENGTH

    def __getitem__(self, number: int) -> Any:
        begin = int(number) * LENGTH
        chunk = self.tokens[begin : begin + LENGTH + 1].astype(self.dtype)
        return {"tokens": chunk[:-1], "labels": chunk[1:]}


def torch_loader(folder: Path) -> Iterator[int]:
    from torch.utils.data import DataLoader

    while True:
        for batch in DataLoader(Blocks(folder, np.int64), BATCH, shuffle=True, drop_last=True):  # type: ignore[arg-type, var-annotated]
            yield batch["tokens"].numel()


def grain(folder: Path) -> Iterator[int]:
    import grain

    data = grain.MapDataset.source(Blocks(folder, np.uint16)).shuffle(seed=1).repeat().batch(BATCH)
    for batch in data.to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=4)):
        yield batch["tokens"].size


class Documents:
    def __init__(self, folder: Path) -> None:
        self.tokens, self.ends = tokens_of(folder), ends_of(folder)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> Any:
        number = int(number)
        begin = self.ends[number - 1] if number else 0
        return {"tokens": np.asarray(self.tokens[begin : self.ends[number]], np.int64)[:LENGTH]}


def grain_pack(folder: Path, kind: str) -> Iterator[int]:
    import grain

    documents = grain.MapDataset.source(Documents(folder)).shuffle(seed=1).repeat()
    pack = {"first": grain.experimental.FirstFitPackIterDataset, "best": grain.experimental.BestFitPackIterDataset}[kind]
    rows = pack(
        documents.to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=64)),
        length_struct={"tokens": LENGTH},
        num_packing_bins=64,
    )
    for batch in rows.batch(BATCH):
        yield int((batch["tokens_segment_ids"] != 0).sum())


def litdata(folder: Path) -> Iterator[int]:
    import torch
    from litdata import StreamingDataLoader, StreamingDataset, TokensLoader, optimize

    out = folder / "litdata"
    if not out.exists():
        optimize(
            fn=_litdata_part,
            inputs=[(str(folder), k) for k in range(64)],
            output_dir=str(out),
            item_loader=TokensLoader(block_size=LENGTH + 1),
            chunk_size=(LENGTH + 1) * 2048,
            num_workers=1,
        )
    while True:
        data = StreamingDataset(str(out), item_loader=TokensLoader(block_size=LENGTH + 1), shuffle=True, drop_last=True)
        for batch in StreamingDataLoader(data, batch_size=BATCH, num_workers=0):
            yield batch[:, :-1].to(torch.int64).numel()


def _litdata_part(part: tuple[str, int]) -> Any:
    import torch

    folder, k = part
    size = TOKENS // 64
    yield torch.from_numpy(tokens_of(Path(folder))[k * size : (k + 1) * size].astype(np.int32))


def mosaic(folder: Path) -> Iterator[int]:
    from streaming import MDSWriter, StreamingDataset
    from torch.utils.data import DataLoader

    out = folder / "mosaic"
    if not out.exists():
        tokens = tokens_of(folder)
        with MDSWriter(out=str(out), columns={"tokens": f"ndarray:uint16:{LENGTH + 1}"}) as writer:
            for block in range((TOKENS - 1) // LENGTH):
                writer.write({"tokens": np.asarray(tokens[block * LENGTH : (block + 1) * LENGTH + 1])})
    while True:
        data = StreamingDataset(local=str(out), shuffle=True, batch_size=BATCH)
        for batch in DataLoader(data, BATCH, drop_last=True):
            yield batch["tokens"][:, :-1].numel()


def megatron(folder: Path, reset: bool = False) -> Iterator[int]:
    import torch
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder
    from megatron.core.datasets.utils import Split
    from torch.utils.data import DataLoader

    prefix = str(folder / "megatron")
    if not Path(prefix + ".idx").exists():
        builder = IndexedDatasetBuilder(prefix + ".bin", dtype=np.uint16)
        tokens, begin = tokens_of(folder), 0
        for end in ends_of(folder):
            builder.add_item(torch.from_numpy(tokens[begin:end].astype(np.int32)))
            builder.end_document()
            begin = end
        builder.finalize(prefix + ".idx")

    class Tokenizer:
        eod = END
        vocab_size = 1 << 16
        pad = 0
        unique_identifiers = {"class": "bench"}

    config = GPTDatasetConfig(
        random_seed=1,
        sequence_length=LENGTH,
        blend=([prefix], None),
        split="1,0,0",
        tokenizer=Tokenizer(),
        reset_position_ids=reset,
        reset_attention_mask=False,
        eod_mask_loss=reset,
        create_attention_mask=False,
    )
    indexed = IndexedDataset(prefix, mmap=True)
    documents = np.arange(len(indexed.document_indices) - 1, dtype=np.int32)
    data = GPTDataset(indexed, prefix, documents, None, Split.train, config)
    while True:
        for batch in DataLoader(data, BATCH, drop_last=True):
            yield batch["tokens"].numel()


LOADERS = {
    "ceiling": ceiling,
    "penstock-u16": lambda folder: penstock(folder, "u16"),
    "penstock": penstock,
    "nanogpt": nanogpt,
    "torch": torch_loader,
    "grain": grain,
    "litdata": litdata,
    "mosaic": mosaic,
    "megatron": megatron,
    "penstock-pack": penstock_pack,
    "grain-first": lambda folder: grain_pack(folder, "first"),
    "grain-best": lambda folder: grain_pack(folder, "best"),
    "megatron-reset": lambda folder: megatron(folder, True),
}


def child(name: str, folder: Path, seconds: float) -> None:
    batches = LOADERS[name](folder)
    for _ in range(2):
        next(batches)
    begin, tokens = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        tokens += next(batches)
    print("RESULT", json.dumps(tokens / (time.perf_counter() - begin)), flush=True)
    os._exit(0)  # some leave threads behind


# ---- packing real lengths ----


def paragraph_lengths() -> list[int]:
    lengths = []
    for path in sorted(Path("/usr/share/doc").rglob("*")):
        if not path.is_file():
            continue
        try:
            text = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
        except OSError:
            continue
        lengths += [len(part) // 4 for part in re.split(rb"\n\s*\n", text) if len(part) >= 4]
    return lengths


def padding(name: str, lengths: list[int], row: int) -> tuple[float, float]:
    """The share of padding, and seconds. Longer documents are split by all of them, by the row, before they are packed."""
    if name == "penstock":
        import penstock as ps

        offsets = np.concatenate([[0], np.cumsum(lengths)])
        documents = ps.documents(np.zeros(offsets[-1], np.uint8), offsets)
        begin = time.perf_counter()
        packed = documents.pack(row).packed
        assert packed is not None
        return packed.padding_fraction, time.perf_counter() - begin
    parts = [part for length in lengths for part in [row] * (length // row) + ([length % row] if length % row else [])]
    begin = time.perf_counter()
    if name == "trl":
        from datasets import Dataset
        from trl import pack_dataset

        data = Dataset.from_dict({"input_ids": [[0] * part for part in parts]})
        begin = time.perf_counter()
        rows = len(pack_dataset(data, row, strategy="bfd", map_kwargs={"batch_size": 65_536}))
    else:
        import grain

        class Parts:
            def __len__(self) -> int:
                return len(parts)

            def __getitem__(self, number: int) -> Any:
                return {"tokens": np.zeros(parts[int(number)], np.int32)}

        pack = {"grain-first": grain.experimental.FirstFitPackIterDataset, "grain-best": grain.experimental.BestFitPackIterDataset}
        documents = grain.MapDataset.source(Parts()).to_iter_dataset(grain.ReadOptions(num_threads=0))
        rows = sum(1 for _ in pack[name](documents, length_struct={"tokens": row}, num_packing_bins=64))
    return 1 - sum(parts) / (rows * row), time.perf_counter() - begin


def pack_child(name: str) -> None:
    lengths = paragraph_lengths()
    found = {row: padding(name, lengths, row) for row in (512, 2048, 8192)}
    print("RESULT", json.dumps([len(lengths), sum(lengths), found]), flush=True)
    os._exit(0)


# ---- the tables ----


def run(arguments: list[str], core: int) -> Any:
    command = ["taskset", "-c", str(core), sys.executable, __file__, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    for line in ended.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line.removeprefix("RESULT "))
    print(f"{arguments}: {ended.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
    return None


def speeds(names: dict[str, str], options: argparse.Namespace) -> None:
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            speed = run(["--child", name, str(options.folder), "--seconds", str(options.seconds)], options.core)
            if speed:
                found[name].append(speed / 1e6)
    first = next(name for name in names if found[name])
    print("| Loader | Million tokens/s | Lowest to highest | Of the first row |\n|---|---|---|---|")
    for name, what in names.items():
        if not found[name]:
            print(f"| {what} | | | |")
            continue
        middle = statistics.median(found[name])
        share = middle / statistics.median(found[first])
        print(f"| {what} | {middle:,.1f} | {min(found[name]):,.1f} to {max(found[name]):,.1f} | {share:.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--pack-child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child, options.folder, options.seconds)
    if options.pack_child:
        return pack_child(options.pack_child)
    make_data(options.folder)
    print("\nBlocks of 4,096 tokens with labels, shuffled, batches of 32, one core\n")
    speeds(BLOCKS, options)
    print("\nDocuments of 500 tokens in the mean, packed into rows of 4,096, batches of 32, one core; padding does not count\n")
    speeds(PACKED, options)
    print("\nPadding: paragraphs below /usr/share/doc, longer ones split\n")
    names = {"penstock": "Penstock, best fit", "trl": "TRL, bfd", "grain-first": "Grain, first fit, 64 bins", "grain-best": "Grain, best fit, 64 bins"}
    print("| Packer | Rows of 512 | of 2,048 | of 8,192 | Seconds for all three |\n|---|---|---|---|---|")
    documents = tokens = 0
    for name, what in names.items():
        found = run(["--pack-child", name], options.core)
        if found is None:
            print(f"| {what} | | | | |")
            continue
        documents, tokens, shares = found
        cells = " | ".join(f"{100 * share:.3f}%" for share, _ in shares.values())
        print(f"| {what} | {cells} | {sum(seconds for _, seconds in shares.values()):.3f} |")
    print(f"\n{documents:,} paragraphs, {tokens:,} tokens.")


if __name__ == "__main__":
    main()
