"""penstock.sync: gradients that become one over processes which the tests start as torchrun would."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from conftest import run_python, wait_until_it_sleeps
from time_limit import seconds_left

import penstock as ps
from penstock.sync import Communicator, GradientSync, SyncError, connect, broadcast_state, transports

gloo = pytest.mark.skipif("gloo" not in transports(), reason="this penstock was built without Gloo")

gpus = pytest.mark.skipif(ps.gpu_count() < 2, reason="fewer than two GPUs here")

START = """
import os, sys, time
import numpy as np
from penstock.sync import *
rank = int(os.environ["RANK"])
"""


@contextmanager
def processes(code: str, count: int = 2) -> Iterator[list[subprocess.Popen[str]]]:
    """Runs code in processes with the variables of a torchrun of their own."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    started = [
        subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-c", START + code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PENSTOCK_LEAK_WARNINGS": "1",
                **{"RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(count)},
                **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": f"test-{port}"},
            },
        )
        for rank in range(count)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def outputs(code: str, count: int = 2) -> list[str]:
    """What each process wrote; all must end well."""
    with processes(code, count) as started:
        ends = [process.communicate(timeout=seconds_left()) for process in started]
        for process, (_, err) in zip(started, ends):
            assert process.returncode == 0 and "leak" not in err, err
    return [out for out, _ in ends]


def errors(code: str, count: int = 2) -> list[str]:
    """The messages of the SyncErrors that each process must end in."""
    caught = "\n".join(f"    {line}" for line in code.splitlines())
    return outputs(f"try:\n{caught}\nexcept SyncError as error:\n    print(error)\nelse:\n    sys.exit('no error')", count)


@pytest.mark.parametrize("name", ["timeout", "join_timeout"])
@pytest.mark.parametrize("seconds", [-1, float("nan")])
def test_a_timeout_is_a_time(name, seconds):
    with pytest.raises(ValueError, match=f"connect: expected a timeout of 0 s or more, found {seconds}"):
        connect(**{name: seconds})


def test_a_world_of_one_copies_nothing():
    gradients = [np.full(3, 2.0, np.float32), np.full((2, 2), 5.0)]
    addresses = [array.ctypes.data for array in gradients]
    sync = GradientSync(gradients, connect())
    assert connect().size == 1 and sync.packed_bytes == 0
    for _ in range(2):
        sync.ready(1)
        sync.ready(0)
        assert sync.wait() is True
    assert [array.ctypes.data for array in gradients] == addresses
    assert gradients[0].tolist() == [2, 2, 2] and (gradients[1] == 5).all()


def test_rows_and_micro_steps_are_divided_by():
    gradient = np.zeros(2, np.float32)
    sync = GradientSync([gradient], combine="row_sums", micro_steps=2)
    for rows, done in ((3, False), (5, True)):
        gradient[:] = rows
        sync.begin(rows)
        sync.ready(0)
        assert sync.wait() is done
    assert gradient.tolist() == [1, 1]


def test_what_is_no_memory_to_write_to_is_refused_with_its_name():
    fixed = np.zeros(3)
    fixed.flags.writeable = False
    for value, message in (
        (fixed, "'w'.*cannot be written to"),
        (np.zeros((4, 4))[:, 1], "'w'.*not contiguous"),
        ([1.0], "'w'.*found a list"),
        (np.zeros(2, np.complex64), "'w'.*no dtype for complex64"),
    ):
        with pytest.raises(ValueError, match=message):
            GradientSync({"w": value})
    with pytest.raises(ValueError, match="put it in a list"):
        GradientSync(np.zeros(3))
    with pytest.raises(ValueError, match="at least 1"):
        GradientSync([])


def test_misuse_is_told():
    sync = GradientSync({"w": np.zeros(2), "b": np.zeros(1)})
    sync.ready(1)
    with pytest.raises(RuntimeError, match="'b', was ready before"):
        sync.ready(1)
    with pytest.raises(RuntimeError, match="not ready: 'w'"):
        sync.wait()
    with pytest.raises(IndexError):
        sync.ready(2)
    with pytest.raises(ValueError, match="'row_means', found 'best'"):
        GradientSync([np.zeros(1)], combine="best")  # type: ignore[arg-type]
    assert len(sync) == 2 and sync.names == ["w", "b"] and sync.buckets == [[1, 0]]


def test_truth_values_are_not_reduced():
    with pytest.raises(ValueError, match="all_reduce of bool: numbers are reduced, not truth values; convert to u8 or i32"):
        connect().all_reduce(np.array([True, False]))


def test_a_transport_that_is_not_there_is_refused_with_the_remedy():
    for name in ("gloo", "mpi", "nccl"):
        if name not in transports():
            with pytest.raises(ps.Error, match=f"without the transport '{name}'.*build penstock"):
                connect(name)
    with pytest.raises(ValueError, match="'smoke'"):
        connect("smoke")
    with pytest.raises(ValueError, match="need an address"):
        connect(rank=0, world=2)


@gpus
def test_on_gpus_a_check_tells_who_has_died(tmp_path):
    found = outputs(
        f"checked = {str(tmp_path / 'checked')!r}\n"
        """
group = connect(device=f"cuda:{rank}")
import penstock as ps
loader = ps.memory({"x": np.zeros((8, 2), np.float32)}).seed(7).batch(8).prefetch_to_devices(f"cuda:{rank}").loader()
values = next(loader)["x"]
group.all_reduce(values)
group.barrier()
group.check()  # nothing has happened yet
if rank == 1:
    while not os.path.exists(checked):
        time.sleep(0.02)
    os._exit(0)
group.all_reduce(values)  # returns before it is done, while the other process lives: it would throw where that has died
open(checked, "w").close()
try:
    while True:
        group.check()
        time.sleep(0.02)
except SyncError as error:
    print(error)
"""
    )
    assert "process 1" in found[0] and not found[1]


# On another thread the handle would name another stream.
@gpus
def test_a_threads_own_stream_is_that_of_who_calls():
    found = outputs(
        """
import ctypes
import penstock as ps
for name in ("libpenstock_simulated_cuda.so", "libcudart.so.13", "libcudart.so.12", "libcudart.so"):
    try:
        cuda = ctypes.CDLL(name)
        break
    except OSError:
        continue
else:
    sys.exit("no CUDA runtime")
group = connect(device=f"cuda:{rank}")
loader = ps.memory({"x": np.ones((8, 2), np.float32)}).batch(8).prefetch_to_devices(f"cuda:{rank}").loader()
values = next(loader)["x"]
assert cuda.cudaSetDevice(rank) == 0 and cuda.cudaDeviceSynchronize() == 0
own = ctypes.c_void_p(2)
result = np.zeros((4, 2), np.float32)  # half a batch each


def read():
    to, origin = ctypes.c_void_p(result.ctypes.data), ctypes.c_void_p(values.address)
    assert cuda.cudaMemcpyAsync(to, origin, ctypes.c_size_t(result.nbytes), 4, own) == 0
    assert cuda.cudaStreamSynchronize(own) == 0
    return result.sum()


group.barrier()
for expected in (16, 32):
    if rank == 1:
        time.sleep(0.3)
    group.all_reduce(values, stream=2)
    assert read() == expected, (expected, result.sum())
group.broadcast(values, stream=2)
assert read() == 32
broadcast_state([values], group, stream=2)
assert read() == 32
group.barrier()
group.check()
"""
    )
    assert found == ["", ""]


def test_a_communicator_does_not_live_through_a_fork():
    run_python(
        """
import os, penstock.sync as sync
group = sync.connect()
child = os.fork()
if child == 0:
    try:
        group.barrier()
    except RuntimeError as error:
        os._exit(0 if "forked" in str(error) else 1)
    os._exit(2)
assert os.waitpid(child, 0)[1] == 0
"""
    )


@gloo
@pytest.mark.parametrize("wire", [None, "bf16"])
def test_gradients_become_the_mean_in_place(wire):
    out = outputs(
        f"""
gradients = {{"w": np.full((2, 3), 1.0 + 2 * rank, np.float32), "b": np.arange(4.0) * rank}}
sync = GradientSync(gradients, connect(), wire={wire!r}, bucket_bytes=16)
before = [a.ctypes.data for a in gradients.values()]
for _ in range(3):
    gradients["w"][:] = 1.0 + 2 * rank
    gradients["b"][:] = np.arange(4.0) * rank
    for index in (1, 0):
        sync.ready(index)
    assert sync.wait()
assert before == [a.ctypes.data for a in gradients.values()]
print(gradients["w"].ravel().tolist(), gradients["b"].tolist(), sync.buckets)
"""
    )
    assert out == ["[2.0, 2.0, 2.0, 2.0, 2.0, 2.0] [0.0, 0.5, 1.0, 1.5] [[1], [0]]\n"] * 2


@gloo
def test_a_mean_of_rows_weighs_those_that_have_more():
    out = outputs(
        """
gradient = np.array([10.0 * (rank + 1)])
sync = GradientSync([gradient], connect(), combine="row_means")
sync.begin(3 if rank == 0 else 1)
sync.ready(0)
sync.wait()
print(gradient.tolist())
"""
    )
    assert out == ["[12.5]\n"] * 2


@gloo
def test_everybody_begins_with_the_first_ones_weights(tmp_path):
    out = outputs(
        f"""
os.environ.pop("MASTER_ADDR"), os.environ.pop("MASTER_PORT")
group = connect(file={str(tmp_path / "meeting")!r})
weights = {{"w": np.full(3, 7.0 + rank, np.float32), "steps": np.array(rank, np.int64)}}
broadcast_state(weights, group)
total = np.array([rank + 1])
group.all_reduce(total)
group.barrier()
print(group, weights["w"].tolist(), int(weights["steps"]), total)
"""
    )
    assert out == [f"<penstock.sync.Communicator {rank} of 2, gloo on host:0> [7.0, 7.0, 7.0] 0 [3]\n" for rank in (0, 1)]


@gloo
def test_sums_in_any_order_are_the_same_in_all_processes():
    out = outputs(
        """
group = connect(any_order=True)
values = np.linspace(0.1, 0.9, 1000, dtype=np.float32) * (rank + 1)
group.all_reduce(values, "mean")
print(float(abs(values - np.linspace(0.1, 0.9, 1000) * 1.5).max()) < 1e-6)
"""
    )
    assert out == ["True\n"] * 2
    found = errors("connect(any_order=rank == 1).barrier()")
    assert all("processes 0 and 1 have different any_order" in text for text in found), found
    with pytest.raises(ValueError, match="any_order is for 'gloo' and 'mpi'"):
        connect("nccl", device="cuda:0", any_order=True)


@gloo
def test_other_gradients_are_an_error_that_names_both():
    found = errors('GradientSync({"w": np.zeros(3 + rank)}, connect())')
    assert all("replica 0 has 'w' f64 [3], replica 1 has 'w' f64 [4]" in text for text in found), found


@gloo
def test_a_killed_peer_is_named_by_those_that_wait():
    code = """
gradient = np.zeros(1000)
sync = GradientSync([gradient], connect(timeout=1000))
print("made", flush=True)
if rank == 1:
    time.sleep(1000)
try:
    sync.ready(0)
    sync.wait()
except SyncError as error:
    print(error)
try:
    sync.wait()
except (SyncError, RuntimeError) as error:
    print("again:", error)
"""
    with processes(code) as (survivor, victim):
        assert victim.stdout is not None and victim.stdout.readline() == "made\n"
        victim.kill()
        assert survivor.stdout is not None and survivor.stdout.readline() == "made\n"
        out, err = survivor.communicate(timeout=seconds_left())
    assert survivor.returncode == 0, err
    assert out.count("process 1 has died") == 2, out


@gloo
@pytest.mark.parametrize("wait", ["sync.ready(0); sync.wait()", "group.barrier()", "GradientSync([gradient], group)"])
def test_ctrl_c_ends_a_wait_and_the_others_are_told(wait):
    code = f"""
group = connect(timeout=1000)
gradient = np.zeros(10)
sync = GradientSync([gradient], group)
print("waiting", flush=True)
if rank == 0:
    {wait}
else:
    sys.stdin.readline()
    try:
        {wait}
    except SyncError as error:
        print(error)
"""
    with processes(code) as (first, second):
        assert first.stdout is not None and first.stdout.readline() == "waiting\n"
        wait_until_it_sleeps(first.pid)
        first.send_signal(signal.SIGINT)
        _, err = first.communicate(timeout=seconds_left())
        assert first.returncode == -signal.SIGINT and err.rstrip().endswith("KeyboardInterrupt"), err
        out, err = second.communicate("go on\n", timeout=seconds_left())
    assert second.returncode == 0 and "process 0" in out, out + err


@gloo
def test_ctrl_c_ends_a_wait_for_those_that_do_not_come():
    with processes('print("waiting", flush=True)\nif rank == 0: connect(join_timeout=1000)') as (first, second):
        assert first.stdout is not None and first.stdout.readline() == "waiting\n"
        second.wait()
        wait_until_it_sleeps(first.pid)
        first.send_signal(signal.SIGINT)
        _, err = first.communicate(timeout=seconds_left())
    assert first.returncode == -signal.SIGINT, err


@gloo
def test_those_that_do_not_come_are_named():
    out = outputs(
        """
if rank == 0:
    try:
        connect(join_timeout=0.5)
    except RuntimeError as error:
        print(error)
"""
    )
    assert "1" in out[0] and "0.5 s" in out[0], out


def test_a_launchers_process_needs_a_communicator():
    with processes("try:\n    GradientSync([np.zeros(1)])\nexcept ValueError as error:\n    print(error)", 2) as started:
        for process in started:
            out, err = process.communicate(timeout=seconds_left())
            assert "torchrun started 2 processes: pass communicator=penstock.sync.connect()" in out, out + err


def test_torch_tensors_are_taken_in_place():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    weight = torch.nn.Parameter(torch.full((2, 2), 3.0))
    weight.grad = torch.full((2, 2), 8.0)
    gradients = [weight.grad, torch.ones(3, dtype=torch.bfloat16)]
    sync = GradientSync(gradients, combine="row_sums")
    sync.begin(4)
    sync.ready(1)
    sync.ready(0)
    assert sync.wait() and weight.grad.tolist() == [[2.0, 2.0]] * 2 and gradients[1].tolist() == [0.25] * 3
    broadcast_state([weight], connect())
    with pytest.raises(ValueError, match="not contiguous"):
        GradientSync([torch.zeros(4, 4).t()[1:]])


@gloo
def test_a_torch_model_learns_the_same_in_both_processes():
    pytest.importorskip("torch", reason="torch is not installed")
    out = outputs(
        """
import torch
torch.manual_seed(rank)
model = torch.nn.Linear(3, 2)
group = connect()
broadcast_state(model.state_dict(), group)
for parameter in model.parameters():
    parameter.grad = torch.zeros_like(parameter)
sync = GradientSync([parameter.grad for parameter in model.parameters()], group)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    model(torch.randn(5, 3)).square().mean().backward()
    for index in reversed(range(len(sync))):
        sync.ready(index)
    sync.wait()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
print([parameter.tolist() for parameter in model.parameters()])
"""
    )
    assert out[0] == out[1]


def test_names_are_those_of_the_package():
    assert ps.sync.GradientSync is GradientSync and isinstance(connect(), Communicator)
    assert issubclass(SyncError, ps.Error)


@gloo
def test_loaders_compare_themselves_at_their_first_step() -> None:
    code = """
import penstock as ps
group = connect()
def loader(seed):
    return (ps.memory({"x": np.arange(10)}).seed(seed).shuffle().batch(2)
            .loader(exchange=group.exchange))
assert group.exchange(f"from {rank}") == ["from 0", "from 1"]
assert sum(1 for _ in loader(7)) == 5
for attempt in (lambda: next(iter(loader(7 + rank))),
                lambda: require_agreement(group.exchange, loader(3).facts() | {"rate": str(rank)})):
    try:
        attempt()
        print("nothing")
    except ps.Error as error:
        print(error)
print("end")
"""
    with processes(code) as started:
        for process in started:
            out, err = process.communicate(timeout=seconds_left())
            assert "the seed is '7' in process 0, '8' in process 1" in out, out + err
            assert "rate is '0' in process 0, '1' in process 1" in out, out + err
            assert out.endswith("end\n")


def test_an_exchange_that_raises_ends_the_loader_with_its_error() -> None:
    def loader(exchange: object) -> ps.Loader:
        return ps.memory({"x": np.arange(10)}).batch(2).loader(exchange=exchange)

    def broken(own: str) -> list[str]:
        raise KeyError("the network")

    with pytest.raises(KeyError, match="the network"):
        next(iter(loader(broken)))
    with pytest.raises(ps.Error, match="a list of str"):
        next(iter(loader(lambda own: 3)))
    for texts in ([], ["{}"]):
        with pytest.raises(ps.Error, match=f"the exchange gave {len(texts)} texts, and"):
            next(iter(loader(lambda own, texts=texts: texts)))
    assert sum(1 for _ in loader(lambda own: [own])) == 5


@gloo
def test_process_0_warns_where_nothing_tells_a_launch_from_others() -> None:
    code = """
import warnings
del os.environ["TORCHELASTIC_RUN_ID"]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    group = connect()
group.barrier()
print([str(each.message) for each in caught if each.category is RuntimeWarning])
"""
    with processes(code) as started:
        first, second = (process.communicate(timeout=seconds_left())[0] for process in started)
    assert "nothing tells this launch from another one" in first
    assert second.strip() == "[]"


@gloo
def test_an_address_that_cannot_be_resolved_is_warned_of_before_the_time_to_join_is_over() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="the name 'no-such-host.invalid' cannot be resolved"):
            connect(address="no-such-host.invalid:29500", rank=1, world=2, join_timeout=1000)
