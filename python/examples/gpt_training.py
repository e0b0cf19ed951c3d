"""A small GPT learns a text, character by character, on the CPU: paragraphs packed into rows, each attending to itself alone.

    python gpt_training.py TEXT --steps 40 --checkpoint gpt.pt
    torchrun --nproc-per-node 2 gpt_training.py TEXT --steps 80 --checkpoint gpt.pt     goes on, with the same losses

TEXT is any text file; its paragraphs are the documents. Needs torch.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

import penstock as ps
import penstock.torch

ROW = 128  # tokens
BATCH = 8  # rows of a global batch, over all processes
WIDTH, HEADS, LAYERS = 64, 4, 2


def encode(text: Path, tokens: Path) -> int:
    """A byte a character, in the order of their code points; 0 ends a paragraph. The number of different ones."""
    paragraphs = [part.strip() for part in text.read_text().split("\n\n") if part.strip()]
    characters = sorted(set("".join(paragraphs)))
    if not characters:
        raise SystemExit(f"{text} has no text")
    if len(characters) > 255:
        raise SystemExit(f"{text} has {len(characters)} different characters; a byte can tell 255")
    number = {character: i + 1 for i, character in enumerate(characters)}
    np.array([n for paragraph in paragraphs for n in [*map(number.get, paragraph), 0]], np.uint8).tofile(tokens)
    return len(characters) + 1


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(self.before(x)).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.after(x))


class GPT(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, WIDTH), nn.Embedding(ROW, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, vocabulary)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
        # A token sees those before it in its own document, and itself.
        same = segments[:, :, None] == segments[:, None, :]
        mask = (same & torch.ones(ROW, ROW, dtype=torch.bool).tril())[:, None]
        x = self.token(tokens) + self.place(positions)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("--steps", type=int, default=40, help="in all, those before a checkpoint included")
    parser.add_argument("--checkpoint", type=Path, default=Path("gpt.pt"))
    options = parser.parse_args()
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1:
        dist.init_process_group("gloo")
    torch.manual_seed(1)

    tokens = options.checkpoint.with_suffix(".tokens.bin")
    size = torch.tensor(encode(options.text, tokens) if world == 1 or dist.get_rank() == 0 else 0)
    if world > 1:
        dist.broadcast(size, 0)  # one process writes the tokens, and all read them
    vocabulary = int(size)
    rows = ps.token_files(tokens, dtype="u8", document_end=0).pack(ROW)
    plan = rows.seed(7).shuffle().repeat().batch(BATCH, uneven=True)  # 8 rows in all, on any number of processes
    loader = penstock.torch.DataLoader(plan)
    model = GPT(vocabulary)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    first = 0
    if options.checkpoint.exists():
        saved = torch.load(options.checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        first = saved["step"]
    elif int(os.environ.get("RANK", "0")) == 0:
        print(f"{vocabulary} characters; {rows.packed}")

    if first >= options.steps:
        raise SystemExit(f"{options.checkpoint} has {first} steps already; --steps counts them, too")
    batches = iter(loader)
    for step in range(first, options.steps):
        batch = next(batches)
        logits = model(batch["tokens"], batch["positions"], batch["segment_ids"])
        # Sums, and one division by the labels of the whole batch: so the loss is that of one process.
        loss = functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), ignore_index=-100, reduction="sum")
        count = (batch["labels"] != -100).sum()
        optimizer.zero_grad()
        loss.backward()
        total = torch.stack([loss.detach().double(), count.double()])
        if world > 1:
            dist.all_reduce(total)
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
        for parameter in model.parameters():
            assert parameter.grad is not None
            parameter.grad /= float(total[1])
        optimizer.step()
        if int(os.environ.get("RANK", "0")) == 0:
            print(f"step {step}: loss {float(total[0] / total[1]):.4f}", flush=True)
    if int(os.environ.get("RANK", "0")) == 0:
        saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict(), "step": options.steps}
        part = options.checkpoint.with_suffix(".part")
        torch.save(saved, part)
        part.rename(options.checkpoint)
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
