"""What an all-reduce costs: penstock's over Gloo and MPI beside torch.distributed's Gloo, call by call in the same processes.

Usage: python bench/sync_cost.py [--processes 2,4,8,16] [--rounds 3]

All processes are on this machine: Gloo's go over the loopback device, MPI's through shared memory. A call of each is timed in turn, each
after a barrier: from when the last process has called to when the last one has its result. The numbers are medians over all calls of all
rounds, with the lowest and highest of the rounds' medians; beside torch's each has their quotient. "any order" is connect(any_order=True).
MiB are those that a process sends over the loopback device in a call. MPI is measured where mpirun is found and the package was built with
PENSTOCK_PYTHON_MPI=ON.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time

SIZES = {"8 B": (1, 200), "64 KiB": (1 << 14, 60), "1 MiB": (1 << 18, 30), "25 MiB": (25 << 18, 6)}
TORCH = "torch's Gloo"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def loopback_bytes() -> int:
    with open("/proc/net/dev") as counters:
        return next(int(line.split()[9]) for line in counters if line.lstrip().startswith("lo:"))


def measure(rank: int, world: int, ports: list[int], over_mpi: bool) -> None:
    import numpy as np
    import torch
    import torch.distributed as distributed
    from penstock.sync import connect

    torch.set_num_threads(1)
    by_hand = {"rank": rank, "world": world, "timeout": 120}
    groups = {
        "Gloo": connect("gloo", address=f"127.0.0.1:{ports[0]}", **by_hand),
        "Gloo, any order": connect("gloo", address=f"127.0.0.1:{ports[1]}", any_order=True, **by_hand),
    }
    if over_mpi:
        groups |= {"MPI": connect("mpi", timeout=120), "MPI, any order": connect("mpi", timeout=120, any_order=True)}
    two_minutes = datetime.timedelta(seconds=120)
    at = f"tcp://127.0.0.1:{ports[2]}"
    distributed.init_process_group("gloo", init_method=at, rank=rank, world_size=world, timeout=two_minutes)
    barrier = groups["Gloo"].barrier
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for name, (count, calls) in SIZES.items():
        dtype = np.float64 if count == 1 else np.float32
        array = np.ones(count, dtype)
        tensor = torch.from_numpy(array)
        reduces = {who: lambda group=group: group.all_reduce(array) for who, group in groups.items()}
        reduces[TORCH] = lambda: distributed.all_reduce(tensor)
        times: dict[str, list[tuple[int, int]]] = {who: [] for who in reduces}
        sent: dict[str, float] = {}
        for call in range(calls + 2):
            for who, reduce in reduces.items():
                array[:] = 1
                barrier()
                begin = time.perf_counter_ns()
                reduce()
                if call >= 2:
                    times[who].append((begin, time.perf_counter_ns()))
                assert array[0] == world
        for who, reduce in reduces.items():
            barrier()
            before = loopback_bytes()
            for _ in range(4):
                reduce()
            barrier()
            sent[who] = (loopback_bytes() - before) / 4 / world
        from_all: list[dict[str, list[tuple[int, int]]]] = [{}] * world
        distributed.all_gather_object(from_all, times)
        found[name] = {}
        for who in reduces:
            by_call = zip(*(of_rank[who] for of_rank in from_all))
            took = [(max(end for _, end in call) - max(begin for begin, _ in call)) / 1e3 for call in by_call]
            found[name][who] = (statistics.median(took), sent[who])
    barrier()
    distributed.destroy_process_group()
    if rank == 0:
        print(json.dumps(found), flush=True)


def run_round(world: int, over_mpi: bool) -> dict[str, dict[str, tuple[float, float]]]:
    ports = [str(free_port()) for _ in range(3)]
    command = [sys.executable, __file__, "--one", str(int(over_mpi)), *ports]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PENSTOCK_SECRET": "for this measurement only",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    if over_mpi:
        done = subprocess.run(["mpirun", "--bind-to", "none", "-np", str(world), *command], stdout=subprocess.PIPE, text=True, env=environment)
        if done.returncode:
            sys.exit("mpirun failed")
        return json.loads(done.stdout)
    started = []
    for rank in range(world):
        by_hand = {**environment, "RANK": str(rank), "WORLD_SIZE": str(world)}
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=by_hand))
    outputs = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        sys.exit("a process failed")
    return json.loads(outputs[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", default="2,4,8,16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", nargs=4, type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        mpi = "OMPI_COMM_WORLD_RANK" in os.environ
        rank, world = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE") if mpi else ("RANK", "WORLD_SIZE")
        measure(int(os.environ[rank]), int(os.environ[world]), given.one[1:], bool(given.one[0]))
        return
    from penstock.sync import transports

    over_mpi = shutil.which("mpirun") is not None and "mpi" in transports()
    print("| processes | bytes | over | us | lowest to highest | beside torch's | MiB |")
    print("| ---: | --- | --- | ---: | ---: | ---: | ---: |")
    for world in map(int, given.processes.split(",")):
        rounds = [run_round(world, over_mpi) for _ in range(given.rounds)]
        for name in SIZES:
            medians = {who: statistics.median(one[name][who][0] for one in rounds) for who in rounds[0][name]}
            for who, median in medians.items():
                of_rounds = [one[name][who][0] for one in rounds]
                sent = statistics.median(one[name][who][1] for one in rounds) / 2**20
                spread = f"{min(of_rounds):,.0f} to {max(of_rounds):,.0f}"
                print(f"| {world} | {name} | {who} | {median:,.0f} | {spread} | {median / medians[TORCH]:.2f} | {sent:.2f} |", flush=True)


if __name__ == "__main__":
    main()
