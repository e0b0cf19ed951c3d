"""What rows made elsewhere cost: through worker processes and Ray's actors, beside the loader's own threads; and images per CPU
second beside Ray Data, on the same photographs and CPUs.

    python bench/remote_rows.py --photos DIR [--runs 5]        prints tables in Markdown

Needs ray[data], torch, torchvision and psutil. DIR has a folder of JPEGs for each class.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import ray

import penstock as ps
import penstock.ray
from penstock.remote import Processes

BATCH = 256
ROW = (224, 224, 3)
MB = 1e6
WORKERS = ("ray::", "raylet", "gcs_server", "spawn_main")


class Cpu:
    """CPU seconds since it was made: of this process, and of those of Ray and others that work for it. What a process that has ended
    meanwhile used is not known."""

    def __init__(self) -> None:
        self._before = self._times()

    @staticmethod
    def _times() -> dict[int, float]:
        own = psutil.Process().pid
        times = {}
        for process in psutil.process_iter(["pid", "name", "cmdline", "cpu_times"]):
            line = " ".join([process.info["name"] or "", *(process.info["cmdline"] or [])])
            if process.info["cpu_times"] and (process.info["pid"] == own or any(word in line for word in WORKERS)):
                times[process.info["pid"]] = sum(process.info["cpu_times"][:2])
        return times

    def seconds(self) -> tuple[float, float]:
        own = psutil.Process().pid
        used = {pid: seconds - self._before.get(pid, 0.0) for pid, seconds in self._times().items()}
        return used.pop(own), sum(used.values())


def spread(values: list[float], form: str = "{:.0f}") -> str:
    return f"{form.format(statistics.median(values))} ({form.format(min(values))}..{form.format(max(values))})"


def table(title: str, heads: list[str], rows: list[list[str]]) -> None:
    print(f"\n## {title}\n\n| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


# ---- slices of bytes that cost nothing to make ----


def bytes_plan(folder: str) -> ps.Dataset:
    path = Path(folder) / "rows.npy"
    if not path.exists():
        np.save(path, np.random.default_rng(1).integers(0, 255, (BATCH, *ROW), dtype=np.uint8))
    return ps.arrays({"image": path}).repeat().batch(BATCH).prefetch_to_devices("host:1", depth=4)


def slices(plan: ps.Dataset, remote: object, steps: int) -> dict[str, float]:
    loader = plan.loader(threads=1, remote=remote)
    for _ in range(8):  # the workers start
        next(loader)
    cpu, began, first = Cpu(), time.monotonic(), loader.stats().remote
    for _ in range(steps):
        next(loader)
    seconds = time.monotonic() - began
    (driver, others), last = cpu.seconds(), loader.stats().remote
    tasks = max(1, last.tasks - first.tasks)
    return {
        "ms": 1e3 * seconds / steps,
        "driver": 1e3 * driver / steps,
        "others": 1e3 * others / steps,
        "made": 1e3 * (last.made_s - first.made_s) / tasks,
        "way": 1e3 * (last.wait_s - first.wait_s - last.made_s + first.made_s) / tasks,
        "copy": 1e3 * (last.copy_s - first.copy_s) / tasks,
    }


def measure_slices(runs: int, steps: int) -> None:
    kinds: dict[str, Callable[[], object]] = {
        "ceiling: the loader's own thread": lambda: None,
        "1 process, 64 rows a task": lambda: Processes(1, local=False),
        "1 actor, 64 rows a task": lambda: penstock.ray.Workers(1, local=False),
        "1 actor, 256 rows a task": lambda: penstock.ray.Workers(1, local=False, rows=256),
        "2 actors, 64 rows a task": lambda: penstock.ray.Workers(2, local=False),
        "2 actors, 256 rows a task": lambda: penstock.ray.Workers(2, local=False, rows=256),
    }
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as folder:
        plan = bytes_plan(folder)
        for _ in range(runs):
            for kind, make in kinds.items():
                found[kind].append(slices(plan, make(), steps))
    size = BATCH * int(np.prod(ROW)) / MB
    rows = []
    for kind, all_runs in found.items():
        of = {name: [run[name] for run in all_runs] for name in all_runs[0]}
        speed = [size / ms for ms in of["ms"]]
        rows.append(
            [kind, spread(of["ms"], "{:.1f}"), spread(speed, "{:.2f}"), spread(of["driver"], "{:.1f}"), spread(of["others"], "{:.1f}")]
            + ["" if "thread" in kind else spread(of[name], "{:.1f}") for name in ("made", "way", "copy")]
        )
    heads = ["rows made by", "ms a slice", "GB/s", "CPU ms of the trainer", "CPU ms of the others", "ms a task: making", "on the way", "copied in"]
    table(f"Slices of {size:.1f} MB ({BATCH} rows of 224 × 224 × 3) that are copied from memory", heads, rows)


# ---- photographs ----


def ours(photos: str, count: int, remote: object) -> Callable[[], int]:
    plan = ps.image_folder(photos).seed(7).shuffle().map(ps.decode_image(crop=ps.random_resized_crop(224), flip=0.5))
    loader = plan.repeat().batch(64).prefetch_to_devices("host:1", depth=4).loader(threads=1, remote=remote)
    next(loader)

    def run() -> int:
        samples = 0
        while samples < count:
            samples += len(next(loader).samples)
        return samples

    return run


def ray_data(photos: str, count: int) -> Callable[[], int]:
    import ray.data
    from torchvision.transforms import v2

    crop = v2.Compose([v2.ToImage(), v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()])

    def prepare(row: dict) -> dict:
        return {"image": crop(row["image"]).permute(1, 2, 0).numpy()}

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    # One pass over each photograph as often as is needed, timed from its second batch on: it takes Ray Data seconds to begin.
    files = [str(path) for path in sorted(Path(photos).rglob("*")) if path.suffix.lower() in (".jpeg", ".jpg")]
    files *= -(-count // len(files))
    data = ray.data.read_images(files, mode="RGB").map(prepare)

    batches = iter(data.iter_torch_batches(batch_size=64))
    next(batches)

    def run() -> int:
        return sum(len(batch["image"]) for batch in batches)

    return run


def measure_photos(photos: str, runs: int, count: int) -> None:
    kinds = {
        "penstock: its own thread": lambda: ours(photos, count, None),
        "penstock: 2 actors of 1 CPU": lambda: ours(photos, count, penstock.ray.Workers(2, local=False)),
        "penstock: 2 processes": lambda: ours(photos, count, Processes(2, local=False)),
        "Ray Data, torchvision v2, iter_torch_batches": lambda: ray_data(photos, count),
    }
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for _ in range(runs):
        for kind, make in kinds.items():
            run = make()
            cpu, began = Cpu(), time.monotonic()
            samples = run()
            seconds = time.monotonic() - began
            found[kind].append((samples / seconds, samples / sum(cpu.seconds())))
            del run
            time.sleep(1)
    rows = [
        [kind, spread([speed for speed, _ in values]), spread([share for _, share in values])] for kind, values in found.items()
    ]
    table("Photographs, decoded, cropped to 224 × 224 at random and mirrored", ["what", "images/s", "images a CPU second"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60, help="slices a run; 0: only photographs")
    parser.add_argument("--count", type=int, default=1600, help="photographs a run")
    options = parser.parse_args()
    ray.init(num_cpus=os.cpu_count(), object_store_memory=2_000_000_000, log_to_driver=False)
    if options.steps:
        measure_slices(options.runs, options.steps)
    measure_photos(options.photos, options.runs, options.count)


if __name__ == "__main__":
    main()
