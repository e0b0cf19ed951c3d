"""Texts to token files, in parallel, killed and gone on with."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import penstock as ps
import pytest
from penstock import tokenize as module
from penstock.__main__ import main
from penstock._output import output_file
from penstock.tokenize import tokenize
from time_limit import seconds_left, wait_until


@pytest.fixture(autouse=True)
def own_tokenizer(tmp_path, monkeypatch):
    """A module that worker processes can import, too."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "byte_tokens.py").write_text(
        "import os, time\n"
        "def encode(text):\n"
        "    while text >= os.environ.get('STAND_STILL_FROM', text + '.'):\n"
        "        time.sleep(1)\n"
        "    return list(text.encode())\n"
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


TEXTS = [f"text number {i:03}: " + "ä" * (i % 7) for i in range(500)]


def test_all_kinds_of_files_in_their_order(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    write_lines(folder / "b.jsonl", TEXTS[:3])
    (folder / "c.txt").write_text(TEXTS[3])
    with gzip.open(folder / "a.jsonl.gz", "wt") as file:
        file.write(json.dumps({"text": TEXTS[4]}) + "\n\n" + json.dumps({"text": ""}))
    (folder / "notes.pdf").write_text("none of these")
    (folder / "table.csv").write_text("nor this")
    (folder / "._c.txt").write_text("what macOS keeps beside a file")
    (folder / ".git").mkdir()
    (folder / ".git" / "config.txt").write_text("none of these")
    extra = write_lines(tmp_path / "extra.jsonl", TEXTS[5:7])
    with pytest.warns(UserWarning) as warned:
        summary = tokenize([folder, extra], tmp_path / "out" / "train", "byte_tokens:encode", end=300, workers=2)
    said = [str(one.message) for one in warned]
    assert len(said) == 2 and all(one.filename == __file__ for one in warned)
    assert said[0] == f"tokenize: left out of {folder}, as their names begin with a point: ._c.txt and 1 more"
    assert "as they do not end in .jsonl" in said[1] and said[1].endswith(": notes.pdf and 1 more")
    expected = [[*text.encode(), 300] for text in (TEXTS[4], "", *TEXTS[:4], *TEXTS[5:7])]
    assert texts_of(tmp_path / "out" / "train") == expected
    assert (summary.documents, summary.tokens, summary.dtype) == (8, sum(map(len, expected)), "i32")
    assert sorted(os.listdir(tmp_path / "out")) == ["train.bin", "train.idx"]


def test_links_to_folders_are_followed_and_circles_left_out(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    write_lines(tmp_path / "elsewhere" / "a.jsonl", TEXTS[:3])
    folder = tmp_path / "texts"
    folder.mkdir()
    write_lines(folder / "b.jsonl", TEXTS[3:4])
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    (folder / "same").symlink_to(tmp_path / "elsewhere")  # twice is what its links say
    summary = tokenize(folder, tmp_path / "train", "byte_tokens:encode", workers=1)
    assert summary.documents == 7
    (folder / "latest").symlink_to(".")
    with pytest.warns(UserWarning, match="as they link to a folder that they lie in: latest"):
        assert tokenize(folder, tmp_path / "train", "byte_tokens:encode", workers=1).documents == 7


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
    parts = tmp_path / "cut.parts"
    # The workers make the parts before these in whatever order, and stand still in two of these.
    process = subprocess.Popen(command, env={**os.environ, "STAND_STILL_FROM": "text number 220"}, start_new_session=True)
    try:
        wait_until(lambda: len(list(parts.glob("*.lengths"))) == 4 and len(list(parts.glob("*.tokens.*"))) == 2, "4 parts are made, and 2 begun")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    made = len(list(parts.glob("*.lengths")))
    assert made == 4 and not (tmp_path / "cut.idx").exists()
    with pytest.raises(ps.Error, match="parts of another job"):
        tokenize(inputs[:9], tmp_path / "cut", "byte_tokens:encode")
    result = subprocess.run(command, capture_output=True, text=True, timeout=seconds_left())
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
        return str(found.value)

    good = json.dumps({"text": "a"}) + "\n"
    assert "a.jsonl at byte 14: this line is no JSON" in error_of(good + "{nothing\n")
    assert "at byte 14: expected an object with a string in 'text', found body; field= names" in error_of(good + '{"body": "a"}\n')
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
    assert "expected a string in 'text', found null" in error_of('{"text": null}\n')
    for end in (1.5, True, -1):
        with pytest.raises(ValueError, match="end: expected"):
            tokenize(tmp_path / "a.jsonl", tmp_path / "out", "byte_tokens:encode", end=end)
    for output in (".", str(tmp_path) + "/", tmp_path):
        with pytest.raises(ValueError, match="begin of two files' names"):
            tokenize(tmp_path / "a.jsonl", output, "byte_tokens:encode")
    with pytest.raises(ValueError, match="dtype must be one of"):
        tokenize(tmp_path / "a.jsonl", tmp_path / "out", "byte_tokens:encode", dtype="f32")


@pytest.mark.parametrize(
    "body, why",
    [
        ("raise RuntimeError('kaboom')", "the tokenizer raised RuntimeError: kaboom"),
        ("raise ValueError('bad text')", "the tokenizer raised ValueError: bad text"),
        ("raise SystemExit(3)", "the tokenizer raised SystemExit: 3"),
        ("return [1.5]", "no row of integers, but [1.5]"),
        ("return None", "no row of integers, but None"),
        ("return [[1, 2]]", "no row of integers, but [[1, 2]]"),
        ("return [[1, 2], [3]]", "no row of integers"),
        ("return [-1]", "made the token -1"),
        ("import os; os._exit(3)", "a worker process ended before its work"),
    ],
)
def test_what_a_tokenizer_does_wrong_is_said_with_its_document(tmp_path, capsys, body, why):
    (tmp_path / "modules" / "wrong_tokens.py").write_text(f"def encode(text):\n    if text == 'b':\n        {body}\n    return [1]\n")
    lines = write_lines(tmp_path / "a.jsonl", ["a", "b"])
    assert main(["tokenize", str(lines), "--output", str(tmp_path / "out"), "--tokenizer", "wrong_tokens:encode", "--workers", "1"]) == 1
    said = capsys.readouterr().err
    assert why in said and ("_exit" in body or "a.jsonl at byte 26" in said)


def test_a_tokenizer_that_was_mended_begins_anew_and_not_in_the_middle(tmp_path):
    source = tmp_path / "modules" / "mended_tokens.py"
    inputs = [write_lines(tmp_path / f"{i}.jsonl", ["a", "stop"] if i == 1 else ["a"]) for i in range(2)]
    run = [sys.executable, "-m", "penstock", "tokenize", *map(str, inputs), "--output", str(tmp_path / "out"), "--workers", "1"]
    run += ["--tokenizer", "mended_tokens:encode"]
    source.write_text("def encode(text):\n    assert text != 'stop'\n    return [1]\n")
    assert subprocess.run(run, capture_output=True).returncode == 1
    source.write_text("def encode(text):\n    return [2, 22]\n")
    result = subprocess.run(run, capture_output=True, text=True)
    assert result.returncode == 1 and "parts of another job" in result.stderr


def test_a_new_result_in_place_of_an_old_one_is_never_half_of_each(tmp_path, monkeypatch):
    old, new = (write_lines(tmp_path / f"{name}.jsonl", texts) for name, texts in (("old", ["aaaaa", "bbb"]), ("new", ["ccc", "ddddd"])))
    tokenize(old, tmp_path / "out", "byte_tokens:encode", workers=1)
    replace = os.replace

    def die_at_the_index(source, target):
        if str(target).endswith("out.idx"):
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(module.os, "replace", die_at_the_index)
    with pytest.raises(KeyboardInterrupt):
        tokenize(new, tmp_path / "out", "byte_tokens:encode", workers=1)
    monkeypatch.undo()
    with pytest.raises(ps.Error, match="out.idx"):
        ps.megatron(tmp_path / "out")


def test_its_files_are_written_through_links_and_to_the_disk_before_their_names(tmp_path, monkeypatch):
    lines = write_lines(tmp_path / "a.jsonl", ["aaaaa", "bbb"])
    (tmp_path / "far").mkdir()
    for ending in (".bin", ".idx"):
        (tmp_path / f"out{ending}").symlink_to(tmp_path / "far" / f"kept{ending}")
    (tmp_path / "far" / "kept.idx").write_bytes(b"old")
    (tmp_path / "far" / "kept.idx").chmod(0o600)
    done = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(module.os, "fsync", lambda file: (done.append(os.path.basename(os.readlink(f"/proc/self/fd/{file}"))), fsync(file))[1])
    monkeypatch.setattr(module.os, "replace", lambda source, target: (done.append((source, target)), replace(source, target))[1])
    tokenize(lines, tmp_path / "out", "byte_tokens:encode", workers=1)
    monkeypatch.undo()
    assert texts_of(tmp_path / "out") == [[97] * 5, [98] * 3]
    assert (tmp_path / "out.bin").is_symlink() and (tmp_path / "out.idx").is_symlink()
    assert (tmp_path / "far" / "kept.idx").stat().st_mode & 0o777 == 0o600
    renamed = [one for one in done if isinstance(one, tuple)]
    assert [os.path.basename(target) for _, target in renamed][-2:] == ["kept.bin", "kept.idx"]
    for source, target in renamed:  # the file before its name is given, its folder after that
        at = done.index((source, target))
        assert os.path.basename(source) in done[:at] and os.path.basename(os.path.dirname(target)) in done[at:]
    assert sorted(path.name for path in (tmp_path / "far").iterdir()) == ["kept.bin", "kept.idx"]


def test_an_output_file_never_takes_the_place_of_a_device_and_stays_what_it_was_after_an_error(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with output_file(pipe) as out:
        out.write(b"through")
    assert os.read(reader, 100) == b"through" and pipe.is_fifo()
    os.close(reader)
    file = tmp_path / "file"
    file.write_bytes(b"old")
    with pytest.raises(KeyError), output_file(file) as out:
        out.write(b"new")
        raise KeyError
    assert file.read_bytes() == b"old" and sorted(path.name for path in tmp_path.iterdir()) == ["file", "modules", "pipe"]


@contextmanager
def one_that_does_not_end(tmp_path):
    inputs = [write_lines(tmp_path / f"{i}.jsonl", ["text"]) for i in range(6)]
    command = [sys.executable, "-m", "penstock", "tokenize", *map(str, inputs), "--output", str(tmp_path / "out"), "--tokenizer"]
    command += ["byte_tokens:encode", "--workers", "2"]
    environment = {**os.environ, "STAND_STILL_FROM": ""}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        wait_until(lambda: len(list((tmp_path / "out.parts").glob("*.tokens.*"))) == 2, "both workers have begun a part")
        yield process, command
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def workers_of(group):
    """Processes of this group that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(stat.parent.name)
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_running(tmp_path, number):
    with one_that_does_not_end(tmp_path) as (process, _):
        assert len(workers_of(process.pid)) >= 3
        process.send_signal(number)
        _, said = process.communicate(timeout=seconds_left())  # what the workers are at is never done
        if number == signal.SIGINT:
            assert process.returncode == 130 and "the same command goes on" in said
        wait_until(lambda: not workers_of(process.pid), "all its processes have ended")


def test_two_runs_do_not_share_an_output(tmp_path):
    with one_that_does_not_end(tmp_path) as (_, command):
        second = subprocess.run(command, capture_output=True, text=True, timeout=seconds_left())
    assert second.returncode == 1 and "another run is at work here" in second.stderr


def test_an_output_beside_its_inputs(tmp_path):
    write_lines(tmp_path / "a.jsonl", ["a"])
    (tmp_path / "B.TXT").write_text("\ufeffb")
    (tmp_path / "empty.jsonl").write_text("")
    for _ in range(2):
        assert tokenize(tmp_path, tmp_path / "out", "byte_tokens:encode", workers=1).documents == 2
        assert texts_of(tmp_path / "out") == [[98], [97]]
        (tmp_path / "out.parts").mkdir()
        (tmp_path / "out.parts" / "job").write_text("{}")


def test_the_commands_flags(tmp_path, capsys):
    lines = write_lines(tmp_path / "a.jsonl", ["b"], field="body")
    command = ["tokenize", str(lines), "--output", str(tmp_path / "out"), "--tokenizer", "byte_tokens:encode"]
    assert main(command) == 1 and "field= names another one" in capsys.readouterr().err
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
    made.enable_truncation(2)  # as files of sentence encoders have them
    made.enable_padding(length=6, pad_id=0, pad_token="<unk>")
    made.save(str(tmp_path / "cut.json"))
    made.no_truncation()
    made.no_padding()
    tokenize(lines, tmp_path / "whole", tmp_path / "cut.json", end="<end>", workers=1)
    assert texts_of(tmp_path / "whole") == texts_of(tmp_path / "out")
    with pytest.raises(ValueError, match="no token '<eos>'"):
        tokenize(lines, tmp_path / "other", tmp_path / "tokenizer.json", end="<eos>")
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(ps.Error, match="is no tokenizer.json"):
        tokenize(lines, tmp_path / "other", tmp_path / "bad.json")
