"""How long a training loop waits when workers of a Ray cluster are lost or slow.

    python bench/remote_faults.py [--runs 5]        prints a table in Markdown

Needs ray. A cluster of three nodes on this machine: the loader's, and two with an actor each. The loop takes a step as soon as it is
there; after 4 s something happens, and the longest wait from then on is what the loop felt. The digest is compared with that of a
run without workers.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import ray
from ray.cluster_utils import Cluster

import penstock as ps
import penstock.ray

NODE = {"num_cpus": 1, "object_store_memory": 100_000_000}
SECONDS_AFTER = 20.0
SAMPLES = 4096


def plan_of(path: Path) -> ps.Dataset:
    def work(number: np.ndarray) -> np.ndarray:
        time.sleep(0.001)
        return number * 2

    dataset = ps.arrays({"number": path}).seed(7).shuffle()
    dataset = dataset.map(work, outputs={"number": ("i64", ())}, name="work").repeat()
    return dataset.batch(32).prefetch_to_devices("host:1", depth=4)


def makers() -> list[int]:
    """The processes of actors that make rows."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if b"_Maker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(int(pid))
        except OSError:
            continue
    return found


class Scene:
    """A cluster, and what can happen in it."""

    def __init__(self) -> None:
        self.cluster = Cluster(initialize_head=True, head_node_args=NODE)
        ray.init(address=self.cluster.address, log_to_driver=False)
        self.nodes = [self.cluster.add_node(**NODE, resources={"worker": 1}) for _ in range(2)]
        self.stopped: list[int] = []

    def nothing(self) -> None:
        """The longest wait without a fault."""

    def kill_one(self) -> None:
        os.kill(makers()[0], signal.SIGKILL)

    def kill_all(self) -> None:
        for pid in makers():
            os.kill(pid, signal.SIGKILL)

    def _stop(self, processes: list[int]) -> None:
        self.stopped = processes
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)

    def stop_one(self) -> None:
        self._stop(makers()[:1])

    def stop_all(self) -> None:
        self._stop(makers())

    def cut_off(self) -> None:
        """As a network that is cut: nothing of both nodes answers, and no connection is closed."""
        self._stop(makers() + [node.all_processes["raylet"][0].process.pid for node in self.nodes])

    def remove_node(self) -> None:
        self.cluster.remove_node(self.nodes.pop())

    def tidy(self) -> None:
        for pid in self.stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.stopped = []
        while len(self.nodes) < 2:
            self.nodes.append(self.cluster.add_node(**NODE, resources={"worker": 1}))

    def end(self) -> None:
        ray.shutdown()
        self.cluster.shutdown()


EVENTS: dict[str, tuple[Callable[[Scene], None], bool]] = {
    "nothing": (Scene.nothing, False),
    "one of two actors killed": (Scene.kill_one, False),
    "both killed; the loader's threads go on until they are back": (Scene.kill_all, False),
    "one of two actors stands still": (Scene.stop_one, False),
    "both stand still": (Scene.stop_all, False),
    "a node with an actor removed": (Scene.remove_node, False),
    "one killed, local threads on": (Scene.kill_one, True),
    "one stands still, local threads on": (Scene.stop_one, True),
    "both stand still, local threads on": (Scene.stop_all, True),
    "both nodes stand still, as behind a cut network": (Scene.cut_off, False),
}


def waits(plan: ps.Dataset, scene: Scene, event: Callable[[Scene], None], local: bool) -> tuple[float, float, bool]:
    """The median step before the event and the longest wait after it, in seconds; whether the digest is right."""
    workers = penstock.ray.Workers(2, local=local, rows=8, resources={"worker": 1})
    loader = plan.loader(digest=True, threads=1, remote=workers)
    before, after, steps = [], [], 0
    while len(makers()) < 2:
        next(loader)
        steps += 1
    begin = time.monotonic()
    happened = False
    while (now := time.monotonic()) - begin < 4 + SECONDS_AFTER:
        if not happened and now - begin > 4:
            event(scene)
            happened = True
        asked = time.monotonic()
        next(loader)
        steps += 1
        (after if happened else before).append(time.monotonic() - asked)
    digest = loader.digest
    del loader
    alone = plan.loader(digest=True)
    for _ in range(steps):
        next(alone)
    scene.tidy()
    return statistics.median(before), max(after), alone.digest == digest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "numbers.npy"
        np.save(path, np.arange(SAMPLES, dtype=np.int64))
        scene = Scene()
        print("| what happened | median step before, ms | longest wait after, s | digest as without workers |\n| --- | --- | --- | --- |")
        for name, (event, local) in EVENTS.items():
            found = [waits(plan_of(path), scene, event, local) for _ in range(options.runs)]
            longest = [wait for _, wait, _ in found]
            step = 1e3 * statistics.median(step for step, _, _ in found)
            spread = f"{statistics.median(longest):.2f} ({min(longest):.2f}..{max(longest):.2f})"
            print(f"| {name} | {step:.0f} | {spread} | {'yes' if all(right for *_, right in found) else 'NO'} |", flush=True)
        scene.end()


if __name__ == "__main__":
    main()
