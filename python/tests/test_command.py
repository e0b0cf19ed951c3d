"""python -m penstock throughput and prepare."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys

import pytest
from time_limit import seconds_left

import penstock as ps
from penstock.__main__ import main


def test_it_reports_as_text_and_as_json(images, tmp_path, capsys):
    flags = ["--crop", "32", "--batch", "8", "--devices", "host:2", "--seed", "1", "--threads", "2"]
    assert main(["throughput", str(images), *flags, "--epochs", "2", "--json", str(tmp_path / "report")]) == 0
    text = capsys.readouterr().out
    for word in ("throughput", "80 samples in 10 steps", "epoch 1: 40 samples", "bottleneck", "host:0 40, host:1 40"):
        assert word in text
    report = json.loads((tmp_path / "report").read_text())
    assert report["samples"] == 80 and report["threads"] == 2 and report["seed"] == 1
    assert sum(stage["wait_s"] for stage in report["stages"].values()) + report["consume_s"] == pytest.approx(
        report["seconds"], rel=0.02
    )
    assert main(["throughput", str(images), *flags, "--steps", "2", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 2


def test_an_index_is_built_and_kept(images, tmp_path, capsys):
    flags = [str(images), "--crop", "32", "--batch", "8", "--seed", "1", "--digest", "--json", "-"]
    digests = []
    for index in ("off", "build", str(tmp_path / "index"), str(tmp_path / "index")):
        assert main(["throughput", *flags, "--index", index]) == 0
        digests.append(json.loads(capsys.readouterr().out)["digest"])
    assert len(set(digests)) == 1 and (tmp_path / "index").stat().st_size > 0
    assert main(["throughput", *flags, "--index", "build", "--decode", "libjpeg"]) == 2


def test_wrong_flags_are_2_and_bad_data_is_1(tmp_path, capsys):
    assert main(["throughput", str(tmp_path / "nowhere")]) == 1
    assert "nowhere" in capsys.readouterr().err
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    assert main(["throughput", str(tmp_path)]) == 1
    assert "bad.jpg" in capsys.readouterr().err
    assert main(["throughput", str(tmp_path), "--shuffle", "some"]) == 2
    assert main(["throughput", str(tmp_path), "--devices", "gpu"]) == 2
    assert main(["throughput", str(tmp_path), "--on-fault", "ignore"]) == 2
    assert "--on-fault" in capsys.readouterr().err
    assert main(["throughput", str(tmp_path), "--index", "on"]) == 2
    assert "found 'on'" in capsys.readouterr().err
    assert main(["thoughput"]) == 2
    assert "found 'thoughput'" in capsys.readouterr().err


def test_files_are_prepared(images, tmp_path, capsys):
    shards = tmp_path / "shards"
    assert main(["prepare", str(images), str(shards), "--shard-samples", "16", "--json", str(tmp_path / "report")]) == 0
    assert "40 samples" in capsys.readouterr().out
    assert json.loads((tmp_path / "report").read_text())["samples"] == 40
    assert len(ps.images(shards)) == 40 and len(list(shards.glob("*.tar"))) == 3
    assert main(["prepare", str(tmp_path / "nowhere"), str(tmp_path / "other")]) == 1
    assert "nowhere" in capsys.readouterr().err
    assert main(["prepare", str(images)]) == 2
    assert "OUTPUT" in capsys.readouterr().err
    assert main(["prepare", "--help"]) == 0
    assert "--longest-side" in capsys.readouterr().out


def test_help_is_the_programs(capsys):
    assert main(["throughput", "--help"]) == 0
    text = capsys.readouterr().out
    for flag in ("--io-threads", "--timeline", "--plot"):
        assert flag in text
    assert main(["--help"]) == 0
    assert "throughput" in capsys.readouterr().out


def test_a_loader_reports_on_itself(images):
    decode = ps.decode_image(crop=ps.random_resized_crop(32))
    loader = ps.image_folder(images).map(decode).batch(8).loader(digest=True)
    for _ in loader:
        pass
    report = loader.report()
    assert "limits the speed" in report.advice or "slot" in report.advice
    assert str(report) == report.to_text() and report.advice in str(report) and loader.digest in str(report)
    found = json.loads(report.to_json())
    assert found["samples"] == 40 and found["advice"] == report.advice and found["digest"] == loader.digest


def test_a_fault_can_be_masked_and_is_listed(tmp_path, images, capsys):
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    (tmp_path / "good.jpg").write_bytes(next(images.rglob("*.jpg")).read_bytes())
    assert main(["throughput", str(tmp_path), "--on-fault", "mask", "--crop", "16"]) == 0
    assert "bad samples   1" in capsys.readouterr().out


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_it_draws_a_picture(images, tmp_path):
    path = tmp_path / "picture.png"
    assert main(["throughput", str(images), "--crop", "32", "--batch", "4", "--epochs", "4", "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_picture_needs_a_file(images, capsys):
    assert main(["throughput", str(images), "--plot"]) == 2
    assert "--plot run.png" in capsys.readouterr().err


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is not None, reason="matplotlib is installed")
def test_without_matplotlib_a_picture_is_refused_at_once(images, tmp_path, capsys):
    assert main(["throughput", str(images), "--plot", str(tmp_path / "picture.png")]) == 2
    assert "pip install matplotlib" in capsys.readouterr().err


def test_ctrl_c_still_reports(images):
    command = [sys.executable, "-m", "penstock", "throughput", str(images), "--crop", "16", "--epochs", "1000000"]
    terminal, its_terminal = os.openpty()  # where it shows its progress
    try:
        with subprocess.Popen([*command, "--consume-ms", "5"], stdout=subprocess.PIPE, stderr=its_terminal, text=True) as process:
            try:
                said = b""
                while b"  step " not in said:
                    said += os.read(terminal, 1000)
                process.send_signal(signal.SIGINT)
                out, _ = process.communicate(timeout=seconds_left())
            finally:
                process.kill()
        assert process.returncode == 130 and out.startswith("throughput")
    finally:
        os.close(terminal)
        os.close(its_terminal)


def test_the_version_is_the_librarys(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == ps.__version__


def test_processes_share_an_index(images, tmp_path):
    """Two indices of one file stand for two processes."""
    path = tmp_path / "index"
    first = ps.SharedJpegIndex(path, max_bytes=1 << 20)
    decode = ps.decode_image(crop=ps.random_resized_crop(32), index=first)
    for _ in ps.image_folder(images).map(decode).batch(8).loader():
        pass
    second, stats = ps.SharedJpegIndex(path), ps.JpegStats()
    assert len(second) == len(first) == 40 and 0 < second.nbytes < 1 << 21
    decode = ps.decode_image(crop=ps.random_resized_crop(32), index=second, stats=stats)
    for _ in ps.image_folder(images).map(decode).batch(8).loader():
        pass
    assert stats.counts()["indexed"] == 40
    with pytest.raises(ps.Error, match="nowhere"):
        ps.SharedJpegIndex("/nowhere/index")


@pytest.mark.parametrize("command", [
    ["--help"], ["--version"], [], ["throughput", "--help"], ["prepare", "--help"], ["tokenize", "--help"], ["tokenize"],
    ["prepare", "--ray", "auto", "--help"], ["throughput", "IMAGES", "--crop", "16", "--batch", "8"],
    ["prepare", "IMAGES", "OUTPUT", "--quiet"],
])  # fmt: skip
def test_a_reader_that_has_ended_ends_it_quietly(images, tmp_path, command):
    """As `head -1` does."""
    command = [{"IMAGES": str(images), "OUTPUT": str(tmp_path / "out")}.get(word, word) for word in command]
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as pipe:
        both = pipe if command in ([], ["tokenize"]) else subprocess.PIPE  # these write to stderr
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        ended = subprocess.run(
            [sys.executable, "-m", "penstock", *command], stdout=pipe, stderr=both, env=environment, timeout=seconds_left()
        )
    assert ended.returncode == 1 and not ended.stderr


def test_a_connection_that_breaks_is_no_reader_that_has_ended(monkeypatch):
    def broken():
        raise BrokenPipeError("a worker's")

    from penstock.__main__ import command

    monkeypatch.setattr("penstock.__main__.main", broken)
    with pytest.raises(BrokenPipeError, match="a worker's"):
        command()
