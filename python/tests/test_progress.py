"""How far long work is, and that Ctrl-C ends it."""

import os
import pathlib
import pickle
import pty
import signal
import subprocess
import sys
import threading

import pytest

import penstock as ps


def many_files(folder: pathlib.Path, count: int) -> pathlib.Path:
    (folder / "a").mkdir(parents=True)
    original = folder / "a" / "0.jpg"
    original.write_bytes(b"x")
    for i in range(1, count):
        os.link(original, folder / "a" / f"{i}.jpg")
    return folder


@pytest.fixture
def callback():
    told: list[ps.Progress] = []
    ps.set_progress(told.append)
    yield told
    ps.set_progress(None)


def test_a_callback_is_told_of_a_listing_in_the_thread_that_waits(tmp_path, callback):
    threads = set()
    ps.set_progress(lambda progress: (callback.append(progress), threads.add(threading.get_ident())))
    many_files(tmp_path, 3000)
    assert len(ps.image_folder(tmp_path)) == 3000
    assert callback[-1] == ps.Progress(f"listing {tmp_path}", "files", 3000, 0, True)
    assert threads == {threading.get_ident()}


def test_what_a_callback_raises_ends_the_work(tmp_path, callback):
    def refuse(progress: ps.Progress) -> None:
        raise ZeroDivisionError

    ps.set_progress(refuse)
    many_files(tmp_path, 10)
    with pytest.raises(ZeroDivisionError):
        ps.image_folder(tmp_path)
    with pytest.raises(TypeError, match="set_progress takes a function"):
        ps.set_progress(3)


def test_ctrl_c_ends_a_listing(tmp_path, callback):
    many_files(tmp_path, 3000)
    ps.set_progress(lambda progress: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        ps.image_folder(tmp_path)


def test_an_unpickled_plan_tells_of_its_listing(tmp_path, callback):
    plan = pickle.dumps(ps.image_folder(many_files(tmp_path, 10)))
    del callback[:]
    assert len(pickle.loads(plan)) == 10
    assert callback[-1].has_ended


def test_nothing_is_written_where_there_is_no_terminal(tmp_path):
    many_files(tmp_path, 10)
    code = f"import penstock; penstock.image_folder({str(tmp_path)!r})"
    run = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, check=True)
    assert run.stderr == b""


def test_short_work_writes_nothing_to_a_terminal(tmp_path):
    many_files(tmp_path, 10)
    code = f"import penstock; penstock.image_folder({str(tmp_path)!r})"
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", code], stderr=theirs, check=True)
    os.set_blocking(ours, False)
    with pytest.raises(BlockingIOError):
        os.read(ours, 100)
    os.close(theirs)
    os.close(ours)
