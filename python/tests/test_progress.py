"""How far long work is, and that Ctrl-C ends it."""

import contextlib
import http.server
import os
import pathlib
import pickle
import pty
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

import numpy as np
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


def test_a_callback_is_told_of_what_reads_each_sample(tmp_path, callback):
    rows = 20_000
    data = ps.memory({"id": np.arange(rows), "x": np.arange(rows)})
    joined = data.join(ps.memory({"id": np.arange(rows), "y": np.arange(rows)}), on="id")
    assert len(joined) == rows
    assert ps.Progress("join: reading", "samples", rows, rows, True) in callback
    del callback[:]
    assert len(data.column("x")) == rows
    assert callback[-1] == ps.Progress("column: reading", "samples", rows, rows, True)


def test_a_callback_is_told_of_the_indexes_of_tables(tmp_path, callback):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for i in range(3):
        parquet.write_table(pyarrow.table({"x": np.arange(5)}), tmp_path / f"{i}.parquet")
    assert len(ps.parquet(tmp_path)) == 15
    assert callback[-1] == ps.Progress("indexing shards", "shards", 3, 3, True)


def test_ctrl_c_ends_a_join(callback):
    rows = 2_000_000
    data = ps.memory({"id": np.arange(rows)})
    ps.set_progress(lambda progress: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        data.join(ps.memory({"id": np.arange(rows), "y": np.arange(rows)}), on="id")


class SlowBucket(http.server.BaseHTTPRequestHandler):
    """Lists four objects, one a page, with a pause before each; has none of them."""

    def do_GET(self) -> None:
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        number = int(query.get("continuation-token", ["0"])[0])
        more = f"<NextContinuationToken>{number + 1}</NextContinuationToken>" if number < 3 else ""
        body = (f"<ListBucketResult><Contents><Key>train/{number}.jpg</Key><Size>3</Size></Contents>"
                f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>{more}</ListBucketResult>").encode()
        if "delimiter" not in query:
            time.sleep(1.1)
        self.send_response(200 if "list-type" in query else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def slow_bucket(monkeypatch):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), SlowBucket) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield
        server.shutdown()


def test_an_end_is_told_behind_ctrl_c_and_what_a_callback_raises(slow_bucket, callback):
    for end in (lambda: signal.raise_signal(signal.SIGINT), lambda: 1 / 0):
        del callback[:]

        def tell(progress: ps.Progress, end=end) -> None:
            callback.append(progress)
            end()

        ps.set_progress(tell)
        with pytest.raises((KeyboardInterrupt, ZeroDivisionError)):
            ps.image_folder("s3://bucket/train")
        assert [progress.has_ended for progress in callback] == [False, True]


@pytest.mark.parametrize("program", ["throughput", "prepare"])
def test_a_program_shows_a_line_on_a_terminal(slow_bucket, tmp_path, program):
    flags = {"throughput": ["--data", "s3://bucket/train", "--index", "off", "--steps", "1"],
             "prepare": ["s3://bucket/train", str(tmp_path / "out")]}[program]
    code = f"import sys; from penstock._program import run_program; sys.exit(run_program('_{program}', {flags!r}))"
    ours, theirs = pty.openpty()
    run = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # EIO is the end
        while part := os.read(ours, 10_000):
            shown += part
    os.close(ours)
    assert run.returncode != 0, run.stdout  # there is no image
    assert b"\r\x1b[Klisting s3://bucket/train/: 3 objects" in shown, shown


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
