"""Texts to token files, in parallel, killed and gone on with."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import penstock as ps
import pytest
from conftest import TIMEOUT_S
from penstock import tokenize as module
from penstock.__main__ import main
from penstock.tokenize import tokenize


@pytest.fixture(autouse=True)
def own_tokenizer(tmp_path, monkeypatch):
    """A module that worker processes can import, too."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "byte_tokens.py").write_text(
        "import os, time\ndef encode(text):\n    time.sleep(float(os.environ.get('SLOW', 0)))\n    return list(text.encode())\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))


def texts_of(prefix):
    """What penstock.megatron reads, and numpy by the format's own words."""
    data = ps.megatron(prefix)
    index = Path(f"{prefix}.idx").read_bytes()
    assert index[:9] == b"MMIDIDX\0\0"
    count = int(np.frombuffer(index, np.uint64, 1, 18)[0])
    lengths = np.frombuffer(index, np.int32, count, 34)
    assert len(data) == count
    kinds = {1: np.uint8, 8: np.uint16, 4: np.int32, 5: np.int64}
    tokens = np.fromfile(f"{prefix}.bin", kinds[index[17]])
    return [part.tolist() for part in np.split(tokens, np.cumsum(lengths)[:-1])]


def write_lines(path, texts, field="text"):
    path.write_text("".join(json.dumps({field: text, "other": 1}) + "\n" for text in texts))
    return path


TEXTS = [f"text number {i}: " + "ä" * (i % 7) for i in range(500)]


def test_all_kinds_of_files_in_their_order(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    write_lines(folder / "b.jsonl", TEXTS[:3])
    (folder / "c.txt").write_text(TEXTS[3])
    with gzip.open(folder / "a.jsonl.gz", "wt") as file:
        file.write(json.dumps({"text": TEXTS[4]}) + "\n\n" + json.dumps({"text": ""}))
    (folder / "notes.pdf").write_text("none of these")
    extra = write_lines(tmp_path / "extra.jsonl", TEXTS[5:7])
    summary = tokenize([folder, extra], tmp_path / "out" / "train", "byte_tokens:encode", end=300, workers=2)
    expected = [[*text.encode(), 300] for text in (TEXTS[4], "", *TEXTS[:4], *TEXTS[5:7])]
    assert texts_of(tmp_path / "out" / "train") == expected
    assert (summary.documents, summary.tokens, summary.dtype) == (8, sum(map(len, expected)), "i32")
    assert sorted(os.listdir(tmp_path / "out")) == ["train.bin", "train.idx"]


@pytest.mark.parametrize("piece", [1, 40, 1000])
def test_a_file_is_cut_between_lines(tmp_path, monkeypatch, piece):
    lines = write_lines(tmp_path / "a.jsonl", TEXTS)
    monkeypatch.setattr(module, "PIECE", piece)
    documents = [text for one in module._pieces([lines]) for _, text in module._documents(one, "text")]
    assert documents == TEXTS


def test_killed_it_goes_on_and_makes_the_same(tmp_path):
    inputs = [write_lines(tmp_path / f"{i}.jsonl", TEXTS[50 * i : 50 * i + 50]) for i in range(10)]
    tokenize(inputs, tmp_path / "whole", "byte_tokens:encode", workers=2)
    command = [sys.executable, "-m", "penstock", "tokenize", *map(str, inputs), "--output", str(tmp_path / "cut"), "--tokenizer"]
    command += ["byte_tokens:encode", "--workers", "2"]
    process = subprocess.Popen(command, env={**os.environ, "SLOW": "0.01"}, start_new_session=True)
    parts = tmp_path / "cut.parts"
    deadline = time.monotonic() + TIMEOUT_S / 2
    while len(list(parts.glob("*.lengths"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    made = len(list(parts.glob("*.lengths")))
    assert 3 <= made < 10 and not (tmp_path / "cut.idx").exists()
    with pytest.raises(ps.Error, match="parts of another job"):
        tokenize(inputs[:9], tmp_path / "cut", "byte_tokens:encode")
    result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert f"500 documents, {sum(len(text.encode()) for text in TEXTS):,} tokens i32, 10 parts, {made} of them" in result.stdout
    for ending in (".bin", ".idx"):
        assert (tmp_path / f"cut{ending}").read_bytes() == (tmp_path / f"whole{ending}").read_bytes()
    assert not parts.exists()


def test_bad_lines_and_tokens_are_named(tmp_path):
    def error_of(text, **options):
        (tmp_path / "a.jsonl").write_text(text)
        with pytest.raises(ps.Error) as found:
            tokenize(tmp_path / "a.jsonl", tmp_path / "out", "byte_tokens:encode", workers=1, **options)
        assert not (tmp_path / "out.idx").exists()
        for left in (tmp_path / "out.parts").iterdir():
            left.unlink()
        return str(found.value)

    good = json.dumps({"text": "a"}) + "\n"
    assert "a.jsonl at byte 14: this line is no JSON" in error_of(good + "{nothing\n")
    assert "at byte 14: expected an object with a text in 'text', found body; field= names" in error_of(good + '{"body": "a"}\n')
    assert "the token 300 does not fit into u8" in error_of(good, end=300, dtype="u8")
    with pytest.raises(ps.Error, match="nowhere.jsonl is not there"):
        tokenize(tmp_path / "nowhere.jsonl", tmp_path / "out", "byte_tokens:encode")
    with pytest.raises(ps.Error, match="no function 'decode'"):
        tokenize(tmp_path / "a.jsonl", tmp_path / "out", "byte_tokens:decode")
    with pytest.raises(ps.Error, match="expected a tokenizer.json, or 'module:function'"):
        tokenize(tmp_path / "a.jsonl", tmp_path / "out", "tokenizer.json")
    with pytest.raises(ValueError, match="no texts"):
        (tmp_path / "empty").mkdir()
        tokenize(tmp_path / "empty", tmp_path / "out", "byte_tokens:encode")
    with pytest.raises(ValueError, match="dtype must be one of"):
        tokenize(tmp_path / "a.jsonl", tmp_path / "out", "byte_tokens:encode", dtype="f32")


def test_the_commands_flags(tmp_path, capsys):
    lines = write_lines(tmp_path / "a.jsonl", ["b"], field="body")
    command = ["tokenize", str(lines), "--output", str(tmp_path / "out"), "--tokenizer", "byte_tokens:encode"]
    assert main(command) == 1 and "field= names another one" in capsys.readouterr().err
    (tmp_path / "out.parts" / "job.json").unlink()
    assert main([*command, "--field", "body", "--end", "7"]) == 0
    assert "1 documents, 2 tokens i32, 1 parts" in capsys.readouterr().out
    assert texts_of(tmp_path / "out") == [[98, 7]]
    assert main(["tokenize"]) == 2 and "INPUT" in capsys.readouterr().err
    assert main(["tokenize", "--help"]) == 0 and "--tokenizer" in capsys.readouterr().out


@pytest.mark.skipif(importlib.util.find_spec("tokenizers") is None, reason="tokenizers is not installed")
def test_a_tokenizer_of_hugging_face(tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>", "<end>"]))
    made.save(str(tmp_path / "tokenizer.json"))
    lines = write_lines(tmp_path / "a.jsonl", TEXTS)
    summary = tokenize(lines, tmp_path / "out", tmp_path / "tokenizer.json", end="<end>", workers=1)
    assert summary.dtype == "u16"
    assert texts_of(tmp_path / "out") == [[*made.encode(text).ids, 1] for text in TEXTS]
    with pytest.raises(ValueError, match="no token '<eos>'"):
        tokenize(lines, tmp_path / "other", tmp_path / "tokenizer.json", end="<eos>")
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(ps.Error, match="is no tokenizer.json"):
        tokenize(lines, tmp_path / "other", tmp_path / "bad.json")
