"""What an all-reduce costs: penstock's over Gloo beside torch.distributed's Gloo, call by call in the same processes.

Usage: python bench/sync_cost.py [--processes 2,4,8,16] [--rounds 3]

All processes are on this machine, over the loopback device. A call of one and of the other are timed in turn, each after a barrier, on
process 0; the numbers are medians over all calls of all rounds, with the lowest and highest of the rounds' medians.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import socket
import statistics
import subprocess
import sys
import time

SIZES = {"8 B": (1, 200), "64 KiB": (1 << 14, 60), "1 MiB": (1 << 18, 30), "25 MiB": (25 << 18, 6)}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def measure(rank: int, world: int, ports: list[int]) -> None:
    import numpy as np
    import torch
    import torch.distributed as distributed
    from penstock.sync import connect

    torch.set_num_threads(1)
    own = connect("gloo", address=f"127.0.0.1:{ports[0]}", rank=rank, world=world, timeout_s=120)
    distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{ports[1]}", rank=rank, world_size=world, timeout=datetime.timedelta(seconds=120)
    )
    found: dict[str, dict[str, float]] = {}
    for name, (count, calls) in SIZES.items():
        dtype = np.float64 if count == 1 else np.float32
        array = np.ones(count, dtype)
        tensor = torch.from_numpy(np.ones(count, dtype))
        reduces = {"penstock": lambda a=array: own.all_reduce(a), "torch": lambda t=tensor: distributed.all_reduce(t)}
        times: dict[str, list[float]] = {who: [] for who in reduces}
        for call in range(calls + 2):
            for who, reduce in reduces.items():
                array[:] = 1
                tensor[:] = 1
                own.barrier()
                begin = time.perf_counter()
                reduce()
                if call >= 2:
                    times[who].append((time.perf_counter() - begin) * 1e6)
                assert (array if who == "penstock" else tensor)[0] == world
        found[name] = {who: statistics.median(all_of) for who, all_of in times.items()}
    own.barrier()
    distributed.destroy_process_group()
    if rank == 0:
        print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", default="2,4,8,16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", nargs=4, type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        measure(given.one[0], given.one[1], given.one[2:])
        return
    print("| processes | bytes | penstock, us | lowest to highest | torch, us | lowest to highest | penstock / torch |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for world in map(int, given.processes.split(",")):
        rounds = []
        for _ in range(given.rounds):
            ports = [str(free_port()), str(free_port())]
            command = [sys.executable, __file__, "--one"]
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "PENSTOCK_SECRET": "for this measurement only"}
            started = [
                subprocess.Popen([*command, str(rank), str(world), *ports], stdout=subprocess.PIPE, text=True, env=environment)
                for rank in range(world)
            ]
            outputs = [process.communicate()[0] for process in started]
            if any(process.returncode for process in started):
                sys.exit("a process failed")
            rounds.append(json.loads(outputs[0]))
        for name in SIZES:
            cells, medians = [], []
            for who in ("penstock", "torch"):
                of_rounds = [one[name][who] for one in rounds]
                medians.append(statistics.median(of_rounds))
                cells.append(f"{medians[-1]:,.0f} | {min(of_rounds):,.0f} to {max(of_rounds):,.0f}")
            print(f"| {world} | {name} | {cells[0]} | {cells[1]} | {medians[0] / medians[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
