"""The ends of things: Ctrl-C, fork, and an interpreter that goes while a loader runs. In processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from conftest import run_python, wait_until_it_sleeps
from time_limit import seconds_left

START = """
import os, sys, signal, threading, time
import numpy as np, penstock as ps
values = np.arange(200_000).reshape(100_000, 2)
def loader(threads=2, function=None):
    dataset = ps.memory({"x": values})
    if function:
        dataset = dataset.map(function, outputs={"x": ("i64", (2,))})
    return dataset.batch(10).repeat().prefetch_to_devices("host:1").loader(threads=threads)
def same(x):
    return x
"""


def sent_ctrl_c(code: str, sleeps: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs code that prints "waiting" and then waits for something that does not come within the test's time; sends Ctrl-C as it waits.
    Code whose main thread has always something to do does not sleep."""
    with subprocess.Popen(
        [sys.executable, "-c", START + code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PENSTOCK_LEAK_WARNINGS": "1"},
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "waiting\n"
            if sleeps:
                wait_until_it_sleeps(process.pid)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=seconds_left())
        finally:
            process.kill()
    return subprocess.CompletedProcess("", process.returncode, out, err)


def interrupted(code: str, sleeps: bool = True) -> None:
    """The same of code that Ctrl-C must end, by KeyboardInterrupt."""
    result = sent_ctrl_c(code, sleeps)
    assert result.returncode == -signal.SIGINT, result.stderr
    assert result.stderr.rstrip().endswith("KeyboardInterrupt") and "leak" not in result.stderr, result.stderr


@pytest.mark.parametrize(
    "wait",
    [
        "next(it)",
        "next(it.device(0))",
        "it.next_epoch()",
        "next(iter(it.epochs()))",
        "for _ in it: pass",
    ],
)
def test_ctrl_c_ends_a_wait_for_data_that_does_not_come(wait):
    interrupted(
        f"""
queue = ps.Queue({{"x": ("f32", ())}})
it = ps.Dataset(queue).batch(2).loader()
print("waiting", flush=True)
{wait}
"""
    )


def test_ctrl_c_ends_a_push_into_a_full_queue():
    interrupted(
        """
queue = ps.Queue({"x": ("f32", ())}, capacity=1)
queue.push([1])
print("waiting", flush=True)
queue.push([2])
"""
    )


def test_ctrl_c_ends_a_loop_of_python_functions():
    interrupted("for step in loader(function=same):\n    if step.number == 3: print('waiting', flush=True)\n", sleeps=False)


def test_ctrl_c_ends_the_making_of_images(tmp_path):
    interrupted(
        f"""
def tell():
    while not os.listdir({str(tmp_path)!r}):
        time.sleep(0.01)
    print("waiting", flush=True)
threading.Thread(target=tell, daemon=True).start()
ps.synthetic_images(100_000, cache={str(tmp_path)!r})
"""
    )


# A request without an answer ends after 30 s, and is sent again; one whose answer goes on and on does not end.
SILENT = ""
ENDLESS = """
    connection.send(b"HTTP/1.1 200 OK\\r\\nContent-Length: 1000000000000\\r\\n\\r\\n")
    try:
        while True:
            connection.send(b" " * 1000)
            time.sleep(0.02)
    except OSError:  # the client has gone
        pass
"""


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("image_folder('s3://photos/train')", SILENT),
        ("image_folder('s3://photos/train')", ENDLESS),
        ("webdataset('s3://photos/train/*.tar')", SILENT),
        ("images('s3://photos/a.tar')", SILENT),
    ],
)
def test_ctrl_c_ends_the_wait_for_a_server_that_does_not_answer(call, answer):
    interrupted(
        f"""
import socket
server = socket.create_server(("127.0.0.1", 0))
kept = []
def serve():
    connection, _ = server.accept()
    kept.append(connection)
    connection.recv(1)
    print("waiting", flush=True)
    {answer}
threading.Thread(target=serve, daemon=True).start()
os.environ |= {{
    "AWS_ENDPOINT_URL": f"http://127.0.0.1:{{server.getsockname()[1]}}",
    "AWS_ACCESS_KEY_ID": "a key",
    "AWS_SECRET_ACCESS_KEY": "a secret",
    "AWS_REGION": "here",
}}
ps.{call}
"""
    )


def test_ctrl_c_ends_a_step_that_is_made_by_its_number():
    interrupted(
        """
calls = []
def slow(x):
    calls.append(x)
    if len(calls) == 3:
        print("waiting", flush=True)
    time.sleep(0.05)
    return x
it = ps.memory({"x": values}).map(slow, outputs={"x": ("i64", (2,))}).batch(20_000).loader(threads=1)
it.batch_at(3)
"""
    )


def test_ctrl_c_ends_the_reading_of_images_sizes():
    interrupted(
        """
calls = []
class Slow:
    def __len__(self):
        return 20_000
    def __getitem__(self, number):
        calls.append(number)
        if len(calls) == 3:
            print("waiting", flush=True)
        time.sleep(0.05)
        return {"image": np.zeros(10, np.uint8)}
dataset = ps.Dataset(Slow(), fields={"image": ("u8", (None,))})
ps.image_sizes(dataset, zero_if_damaged=True)
"""
    )


# A thread that called Python takes the GIL once more when it ends. Here the main thread, in a handler, takes it just before that, and
# comes back when the result is there. Where the GIL was kept for the last wait, 4 of 6 runs hung.
def test_a_call_that_reads_python_items_in_another_thread_ends():
    run_python(
        """
import os, queue, signal, sys, time, weakref
import numpy as np, penstock as ps
gone, kept, long_in_c = queue.SimpleQueue(), [], [0] * 500_000
def handler(*_):
    gone.get()
    sys.setswitchinterval(1000)  # who has the GIL keeps it while it computes
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        pass
class Items:
    def __len__(self):
        return 1
    def __getitem__(self, number):
        image = np.zeros(10, np.uint8)
        # When it goes, after the read, the handler is to wait for the GIL before this thread gives it up.
        calls = long_in_c.__contains__, gone.put, long_in_c.__contains__
        kept.extend(weakref.ref(image, call) for call in calls)
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.1)
        return {"image": image}
signal.signal(signal.SIGUSR1, handler)
dataset = ps.Dataset(Items(), fields={"image": ("u8", (None,))})
for _ in range(15):
    sys.setswitchinterval(1e-6)
    ps.image_sizes(dataset, zero_if_damaged=True)
"""
    )


def test_after_ctrl_c_a_loop_can_go_on():
    result = sent_ctrl_c(
        """
queue = ps.Queue({"x": ("f32", ())})
it = ps.Dataset(queue).batch(1).loader()
try:
    print("waiting", flush=True)
    next(it)
except KeyboardInterrupt:
    queue.push([3])
    assert next(it)["x"].numpy().tolist() == [3]
else:
    raise SystemExit("no interrupt")
queue.close()
"""
    )
    assert result.returncode == 0 and result.stderr == "", result.stderr


@pytest.mark.parametrize("function", ["None", "same"])
@pytest.mark.parametrize(
    "end",
    [
        "",  # at once
        "next(it)",
        "step = next(it)",
        "array = np.asarray(next(it)['x'])",
        "tensor = next(it)['x'].__dlpack__()",
        "for step in it: break",
        "it.start()",
        "del it",
        "step = next(it); del it",
        "for step in it:\n    del it, step\n    break",
        "sys.exit(0)",
        "next(it); globals()['forever'] = [it]; forever.append(forever)",
        "began = threading.Event(); threading.Thread(target=lambda: [began.set() for step in it], daemon=True).start(); began.wait()",
    ],
)
def test_an_interpreter_may_end_while_a_loader_runs(end, function):
    result = run_python(START + f"it = loader(function={function})\n{end}\n", check=False)
    assert result.returncode == 0 and "terminate" not in result.stderr, result.stderr
    if "daemon" not in end:  # its frames hold what they hold
        assert result.stderr == ""


def test_an_interpreter_may_end_by_an_exception_in_the_loop():
    result = run_python(START + "for step in loader(function=same): 1 / 0\n", check=False)
    assert result.returncode == 1 and result.stderr.rstrip().endswith("ZeroDivisionError: division by zero")
    assert "leak" not in result.stderr


def test_no_loader_begins_while_the_interpreter_ends():
    result = run_python(
        START
        + """
import atexit
class Late:
    def __del__(self):
        try:
            loader()
        except ps.Error as error:
            print(error)
late = Late()
it = loader()
next(it)
"""
    )
    assert result.stderr == ""


def test_a_loader_does_not_live_through_a_fork_and_says_so():
    run_python(
        START
        + """
import multiprocessing
it = loader()
step = next(it)
array = np.asarray(step["x"])

def child():
    for call in (lambda: next(it), it.stats, it.state_dict, it.stop, lambda: it.device(0), lambda: iter(it)):
        try:
            call()
        except ps.Error as error:
            assert "spawn" in str(error), error
        else:
            raise SystemExit("not refused")
    assert array[3].tolist() == [6, 7]      # memory is there, as ever
    own = loader(function=same)             # and a loader of its own works
    assert next(own)["x"].numpy()[1].tolist() == [2, 3]

for _ in range(5):
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 0, process.exitcode
assert next(it).number == 1
"""
    )


def test_children_that_fork_and_exit_leave_the_parents_loader_alone():
    run_python(
        START
        + """
import warnings
warnings.simplefilter("ignore")
it = loader(function=same)
for step, _ in zip(it, range(20)):
    pid = os.fork()
    if pid == 0:
        del it, step
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""
    )


def test_loaders_can_be_made_and_dropped_a_thousand_times():
    run_python(
        START
        + """
import resource
def round():
    it = loader(threads=3)
    next(it)
for _ in range(50):
    round()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(1000):
    round()
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert after - before < 20_000, (before, after)
assert threading.active_count() == 1 and len(os.listdir("/proc/self/task")) < 8
"""
    )


DROPPED = """
import gc, sys, threading
import numpy as np
import penstock as ps

kind, by_collector = sys.argv[1], sys.argv[2] == "collector"
last = []
wait = threading.Event()

def drop():
    if threading.current_thread() is threading.main_thread():
        return
    wait.wait(30)
    last.clear()
    if by_collector:
        gc.collect()

class Items:
    def __len__(self):
        return 1000
    def __getitem__(self, number):
        if number == 2:
            drop()
        return {"x": np.float32(number)}

def turned(x):
    if x == 2:
        drop()
    return {"x": x}

def records():
    for number in range(1000):
        if number == 2:
            drop()
        yield {"x": np.float32(number)}

def plan():
    fields = {"x": ("f32", ())}
    if kind == "items":
        return ps.Dataset(Items())
    if kind == "map":
        return ps.memory({"x": np.arange(1000, dtype=np.float32)}).map(turned, inputs=["x"], outputs=fields)
    return ps.generator(fields, records())

class Cycle:
    pass

gc.disable()
for _ in range(3):
    wait.clear()
    loader = plan().batch(2).loader(threads=2)
    if by_collector:
        cycle = Cycle()
        cycle.itself, cycle.loader = cycle, loader
        last.append(cycle)
        del cycle
    else:
        last.append(loader)
    del loader
    next(last[0].loader if by_collector else last[0])
    wait.set()
    while last:
        threading.Event().wait(0.01)
print("ends")
"""


@pytest.mark.parametrize("by", ["reference", "collector"])
@pytest.mark.parametrize("kind", ["items", "map", "generator"])
def test_a_loader_may_be_dropped_on_a_thread_of_its_own(kind, by):
    assert run_python(DROPPED, kind, by).stdout == "ends\n"


def test_a_raising_function_leaks_nothing():
    run_python(
        START
        + """
def bad(x):
    raise ValueError("bad")
it = loader(function=bad)
for _ in range(3):
    try:
        next(it)
    except ps.DataError as error:
        kept = error
"""
    )


def test_penstock_imports_nothing_that_is_not_asked_for():
    run_python(
        """
import sys, penstock
assert not {"numpy", "torch", "jax", "matplotlib"} & set(sys.modules)
"""
    )
