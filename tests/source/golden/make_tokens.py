#!/usr/bin/env python3
"""Makes the token files beside it: Megatron's by megatron-core's own builder, and the layouts of nanoGPT, llm.c and numpy.
Run by hand, in a throw-away environment; the tests only read what is here.

  python3 -m venv /tmp/golden && /tmp/golden/bin/pip install megatron-core==0.16.1 torch numpy
  /tmp/golden/bin/python make_tokens.py

Each file has a list beside it, of what megatron-core or numpy itself reads from it: a line a document.
"""
import os

import numpy as np
import torch
from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder

here = os.path.dirname(os.path.abspath(__file__))
draw = np.random.default_rng(7)


def path(name):
    return os.path.join(here, name)


def make_list(name, documents):
    with open(path(name + ".txt"), "w", newline="\n") as out:
        for document in documents:
            out.write(" ".join(str(int(token)) for token in document) + "\n")


def make_megatron(name, dtype, highest, multimodal=False):
    builder = IndexedDatasetBuilder(path(name + ".bin"), dtype=dtype, multimodal=multimodal)
    for i, length in enumerate([5, 1, 0, 300, 17, 2]):
        tokens = torch.tensor(draw.integers(0, highest, length, endpoint=True))
        builder.add_item(tokens, *([i % 2] if multimodal else []))
        if i != 3:  # a document of two sequences
            builder.end_document()
    builder.finalize(path(name + ".idx"))
    data = IndexedDataset(path(name), multimodal=multimodal)
    make_list(name, [data[i][0] if multimodal else data[i] for i in range(len(data))])


def make_nanogpt():
    """As data/openwebtext/prepare.py: a memory map of u16, documents end with 50256."""
    lengths = [40, 1, 200, 7]
    tokens = np.memmap(path("nanogpt.bin"), dtype=np.uint16, mode="w+", shape=(sum(lengths),))
    at, documents = 0, []
    for length in lengths:
        documents.append(np.append(draw.integers(0, 50255, length - 1, endpoint=True), 50256).astype(np.uint16))
        tokens[at : at + length] = documents[-1]
        at += length
    tokens.flush()
    make_list("nanogpt.bin", documents)


def make_llmc(name, magic, version, dtype, highest):
    """As dev/data/data_common.py writes them: 256 words, of which three say something."""
    tokens = draw.integers(0, highest, 123, endpoint=True).astype(dtype)
    header = np.zeros(256, dtype=np.int32)
    header[:3] = magic, version, len(tokens)
    with open(path(name), "wb") as file:
        file.write(header.tobytes())
        file.write(tokens.tobytes())
    make_list(name, [tokens])


def make_npy():
    tokens = draw.integers(0, 2**40, 77)
    np.save(path("tokens.npy"), tokens)
    make_list("tokens.npy", [tokens])


make_megatron("megatron_u16", np.uint16, 2**16 - 1)
make_megatron("megatron_i32", np.int32, 2**31 - 1)
make_megatron("megatron_modes", np.int64, 2**62, multimodal=True)
make_nanogpt()
make_llmc("llmc_gpt2.bin", 20240520, 1, np.uint16, 50256)
make_llmc("llmc_llama3.bin", 20240801, 7, np.uint32, 128255)
make_npy()
