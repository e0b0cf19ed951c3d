"""What penstock-throughput does, from Python: feeds images to every device as a training loop would,
and reports how fast, how evenly, and what the loop had to wait for."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import penstock as ps

_PROGRESS_S = 0.25
_SAMPLE_S = 0.1


def add_command(commands: Any) -> None:
    """The flags are those of penstock-throughput, as far as both have them."""
    parser = commands.add_parser(
        "throughput",
        help="feed a folder of images to every device, and say what limits the speed",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("data", nargs="?", metavar="DIR", help="images: a folder, tar shards or TFRecord files")
    add("--plan", metavar="FILE", help="a plan that Dataset.save or --save-plan wrote, instead of the flags that describe one")
    add("--save-plan", metavar="FILE", help="write the plan that these flags describe")
    add("--synthetic", type=int, metavar="N", help="N generated photographs, kept in a cache folder, instead")
    add("--labels", metavar="FILE", help="for a flat folder: a file of 'name label' lines")
    add("--crop", type=int, default=224, metavar="N", help="training crop: random resized crop to NxN, and flip")
    add("--batch", type=int, default=256, metavar="G", help="global batch, over all devices")
    add("--shuffle", default="full", metavar="full|off|N", help="full, off, or the size of a window")
    add("--seed", type=int, metavar="S", help="of shuffle and crops; drawn and reported when not given")
    add("--remainder", choices=("keep", "drop", "pad"), default="keep", help="what to do with an epoch's last, short batch")
    add("--on-fault", choices=("raise", "replace", "mask"), default="raise", help="what to do with a bad sample")
    add("--epochs", type=int, metavar="E", help="counted from the very start; 1 when --steps is not given either")
    add("--steps", type=int, metavar="K", help="steps of this run")
    add("--devices", default="auto", metavar="LIST", help="auto, host:4, cuda:0,1")
    add("--threads", type=int, default=0, metavar="T", help="decoding threads; 0: one per core")
    add("--io-threads", type=int, metavar="I", help="threads that read ahead of decoding; by default 4 for files")
    add("--depth", type=int, default=2, metavar="D", help="global batches ready ahead")
    add("--budget-mb", type=int, default=0, metavar="M", help="most MiB that the loader may hold; 0: no limit")
    add("--uneven", action="store_true", help="allow a batch that does not divide over the devices")
    splits = ("scatter", "round_robin", "shard_early")
    add("--split", choices=splits, default="scatter", help="how batches reach the replicas")
    decoders = ("fast", "reference", "libjpeg")
    help_of_decode = "Penstock's own decoder, chroma repeated or smooth; or libjpeg-turbo, with the pixels of fast"
    add("--decode", choices=decoders, default="reference", help=help_of_decode)
    add("--index", default="off", metavar="off|build|FILE", help="record where in each JPEG decoding can begin")
    add("--consume-ms", type=float, default=0.0, metavar="X", help="simulate a training step of X ms")
    add("--state-in", metavar="FILE", help="resume from this state, also one of penstock-throughput")
    add("--state-out", metavar="FILE", help="write the state at the end")
    add("--digest", action="store_true", help="digest of everything delivered")
    add("--json", metavar="FILE", help="the report as JSON; - for stdout")
    add("--plot", metavar="FILE", help="plot throughput and stalls over time; needs matplotlib")
    add("--quiet", action="store_true", help="no progress bar")


def make_epoch(
    options: argparse.Namespace,
    progress: Callable[[int, int], object] | None = None,
    index: ps.MemoryJpegIndex | None = None,
) -> ps.Dataset:
    """One epoch's batches, as penstock-throughput plans them."""
    if options.data and options.synthetic:
        raise ValueError("choose between DIR and --synthetic N")
    if options.data:
        dataset = ps.images(options.data, labels=options.labels)
    else:
        dataset = ps.synthetic_images(options.synthetic or 2000, progress=progress)
    if options.seed is not None:
        dataset = dataset.seed(options.seed)
    if options.shuffle == "full":
        dataset = dataset.shuffle()
    elif options.shuffle != "off":
        if not options.shuffle.isdigit():
            raise ValueError(f"--shuffle must be full, off or a number, found {options.shuffle!r}")
        dataset = dataset.shuffle(buffer=int(options.shuffle))
    crop = ps.random_resized_crop(options.crop)
    decode = ps.decode_image(crop=crop, flip=0.5, decoder=options.decode, index=index)
    return dataset.map(decode).batch(options.batch, remainder=options.remainder, uneven=options.uneven)


@dataclass
class Sample:
    """Totals at one moment, for the picture."""

    seconds: float
    samples: int
    waits: dict[str, float]


@dataclass
class Report:
    """What a run was like."""

    stats: ps.Stats
    devices: list[tuple[str, int]]
    seed: int
    digest: str | None
    faults: list[ps.Fault]
    epochs: list[dict[str, Any]] = field(default_factory=list)
    timeline: list[Sample] = field(default_factory=list)

    def to_text(self) -> str:
        """As penstock-throughput prints it."""
        stats = self.stats
        waits = [f"{name} {stage.wait_s:.3f} s" for name, stage in stats.stages.items() if stage.wait_s >= 0.0005]
        lines = [
            (
                "throughput",
                f"{_rate(stats.samples, stats.seconds):.0f} images/s, "
                f"{_rate(stats.bytes_read, stats.seconds) / 1e6:.1f} MB/s read",
            ),
            ("delivered", f"{stats.samples} images in {stats.steps} steps, {stats.seconds:.2f} s"),
            *(
                ("", f"epoch {e['epoch']}: {e['samples']} images, {e['samples_per_s']:.0f} images/s")
                for e in self.epochs
            ),
            ("first batch", f"{stats.first_batch_s * 1e3:.0f} ms"),
            ("stall", f"{stats.stall_fraction * 100:.1f}% of the time after the first batch"),
            ("waited for", ", ".join(waits) or "nothing"),
            ("bottleneck", f"{stats.bottleneck}: {_ADVICE[stats.bottleneck].format(threads=stats.threads)}"),
            ("memory", f"{stats.memory_peak_bytes / 2**20:.0f} MiB by the loader ({stats.slots} slots)"),
            ("devices", ", ".join(f"{name} {samples}" for name, samples in self.devices)),
            ("seed", str(self.seed)),
        ]
        if self.digest is not None:
            lines.append(("digest", self.digest))
        if stats.faults:
            lines.append(("bad samples", str(stats.faults)))
            lines += [("", str(fault)) for fault in self.faults[:10]]
        return "".join(f"{label:<14}{value}\n" for label, value in lines)

    def to_json(self) -> str:
        """The keys of penstock-throughput's."""
        stats = self.stats
        return json.dumps(
            {
                "samples": stats.samples,
                "steps": stats.steps,
                "epochs": len(self.epochs),
                "seconds": stats.seconds,
                "samples_per_s": _rate(stats.samples, stats.seconds),
                "per_epoch": self.epochs,
                "bytes_read": stats.bytes_read,
                "stall_fraction": stats.stall_fraction,
                "consume_s": stats.consume_s,
                "first_batch_ms": stats.first_batch_s * 1e3,
                "bottleneck": stats.bottleneck,
                "stages": {
                    name: {"wait_s": stage.wait_s, "busy_s": stage.busy_s} for name, stage in stats.stages.items()
                },
                "budget_peak_mb": stats.memory_peak_bytes / 2**20,
                "threads": stats.threads,
                "seed": self.seed,
                "devices": [{"name": name, "samples": samples} for name, samples in self.devices],
                "faults": {"count": stats.faults, "list": [str(fault) for fault in self.faults]},
                "digest": self.digest,
                "version": ps.__version__,
            },
            indent=2,
        )


# Flags that describe what a plan has of its own, at their defaults.
_PLANS_OWN = {
    "labels": None,
    "crop": 224,
    "batch": 256,
    "shuffle": "full",
    "seed": None,
    "remainder": "keep",
    "uneven": False,
    "split": "scatter",
    "depth": 2,
    "decode": "reference",
}

_ADVICE = {
    "consumer": "the input keeps up: the consumer is what limits the speed",
    "decode": "decoding limits the speed: {threads} threads were busy with it; give it more cores, or smaller images",
    "read": "reading limits the speed: the storage is slow or cold; keep the data nearer or in fewer, larger files",
    "slot": "no slot was free: batches are held too long, or copies are slow; raise --depth",
    "copy": "copying to the devices limits the speed",
    "device_transform": "transforming batches on the devices limits the speed",
    "order": "drawing the order limits the speed: is the shuffle window very large?",
}


def _rate(count: float, seconds: float) -> float:
    return count / seconds if seconds > 0 else 0.0


class _Bar:
    """One line on a terminal, four times a second."""

    def __init__(self, quiet: bool) -> None:
        self._shown = not quiet and sys.stderr.isatty()
        self._steps = 0
        self._last = 0.0

    def expect(self, steps: int) -> None:
        self._steps = steps

    def update(self, loader: ps.Loader, step: ps.Step) -> None:
        if not self._shown or time.monotonic() - self._last < _PROGRESS_S:
            return
        self._last = time.monotonic()
        stats = loader.stats()
        bar = ""
        if self._steps:
            filled = min(30, 30 * stats.steps // self._steps)
            bar = f"[{'=' * filled}{' ' * (30 - filled)}] "
        self._write(
            f"{bar}epoch {step.epoch + 1}  step {step.number + 1}  {stats.samples} images  "
            f"{_rate(stats.samples, stats.seconds):.0f}/s  stall {stats.stall_fraction * 100:.1f}% ({stats.bottleneck})"
        )

    def making(self, done: int, total: int) -> None:
        if self._shown:
            self._write(f"making images {done}/{total}" if done else "waiting for another process to make the images")

    def _write(self, text: str) -> None:
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _sample(loader: ps.Loader) -> Sample:
    stats = loader.stats()
    return Sample(stats.seconds, stats.samples, {name: stage.wait_s for name, stage in stats.stages.items()})


def measure(options: argparse.Namespace) -> tuple[Report, bool]:
    """Runs; says what it was like, and whether it came to its end."""
    if options.epochs is None and options.steps is None:
        options.epochs = 1
    bar = _Bar(options.quiet)
    budget = options.budget_mb << 20
    index = None
    if options.index != "off":
        if options.decode == "libjpeg":
            raise ValueError("--index needs --decode fast or reference: libjpeg-turbo has no use for an index")
        index = ps.MemoryJpegIndex(budget // 4 or 1 << 30)  # as penstock-throughput shares the budget
        budget -= budget // 4
        if options.index != "build":
            index.load(options.index)
    if options.plan:
        if options.data or options.synthetic:
            raise ValueError("choose between DIR, --synthetic N and --plan FILE")
        for flag, default in _PLANS_OWN.items():
            if getattr(options, flag) != default:
                raise ValueError(f"--{flag} has no place beside --plan, which says it itself")
        devices = None if options.devices == "auto" else options.devices  # auto: the plan's own
        plan = ps.Dataset.load(options.plan, devices=devices, index=index)
        bar.expect(options.steps or plan.size or 0)
    else:
        epoch_of_batches = make_epoch(options, bar.making, index)
        bar.expect(options.steps or len(epoch_of_batches) * options.epochs)
        # repeat stands after batch, so that each epoch has its own remainder; it is endless, so that a
        # state fits every --epochs and --steps, and those of penstock-throughput.
        plan = epoch_of_batches.repeat().prefetch_to_devices(
            options.devices, depth=options.depth, split=options.split
        )
    if options.save_plan:
        plan.save(options.save_plan)
    loader = plan.loader(
        on_fault=options.on_fault,
        digest=options.digest,
        threads=options.threads,
        io_threads=options.io_threads,
        budget_bytes=budget,
    )
    if options.state_in:
        with open(options.state_in, encoding="utf-8") as file:
            loader.load_state_dict(json.load(file))

    epochs: list[dict[str, Any]] = []
    timeline: list[Sample] = []
    finished = True
    began = last = time.monotonic()
    steps = 0
    try:
        while options.steps is None or steps < options.steps:
            if options.epochs is not None:
                epoch = loader.next_epoch()
                if epoch is None or epoch >= options.epochs:
                    break
            step = next(loader, None)
            if step is None:
                break
            due = time.monotonic() + options.consume_ms / 1e3
            for part in step:
                part.synchronize()
            if options.consume_ms > 0:
                time.sleep(max(0.0, due - time.monotonic()))
            steps += 1
            now = time.monotonic()
            if not epochs or epochs[-1]["epoch"] != step.epoch:
                epochs.append({"epoch": step.epoch, "samples": 0})
                began = last
            epochs[-1]["samples"] += sum(len(part.samples) for part in step)
            epochs[-1]["seconds"] = now - began
            last = now
            if options.plot and (not timeline or loader.stats().seconds - timeline[-1].seconds >= _SAMPLE_S):
                timeline.append(_sample(loader))
            bar.update(loader, step)
            del step
    except KeyboardInterrupt:
        finished = False
    finally:
        bar.clear()
    for entry in epochs:
        entry["samples_per_s"] = _rate(entry["samples"], entry["seconds"])
    if options.plot and steps:
        timeline.append(_sample(loader))
    if options.state_out:
        with open(options.state_out, "w", encoding="utf-8") as file:
            json.dump(loader.state_dict(), file, indent=2)
    if index and options.index != "build":
        index.save(options.index)
    names = [str(device) for device in loader.devices]
    report = Report(
        stats=loader.stats(),
        devices=list(zip(names, loader.samples_per_device())),
        seed=loader.seed,
        digest=loader.digest if options.digest else None,
        faults=loader.faults(),
        epochs=epochs,
        timeline=timeline,
    )
    loader.stop()
    return report, finished


def plot(report: Report, path: str) -> None:
    """Throughput over time, and below it what share of the time was spent waiting for which stage.

    Errors  ImportError  matplotlib is not installed
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("--plot needs matplotlib: pip install matplotlib") from error
    times, rates = [], []
    stalls: dict[str, list[float]] = {name: [] for name in report.stats.stages}
    previous = Sample(0.0, 0, dict.fromkeys(stalls, 0.0))
    for sample in report.timeline:
        seconds = sample.seconds - previous.seconds
        if seconds <= 0:
            continue
        times.append(sample.seconds)
        rates.append((sample.samples - previous.samples) / seconds)
        for name, shares in stalls.items():
            shares.append(100 * (sample.waits[name] - previous.waits[name]) / seconds)
        previous = sample
    figure = Figure(figsize=(9, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(times, rates)
    above.set_ylabel("images/s")
    above.set_ylim(bottom=0)
    above.set_title(f"{_rate(report.stats.samples, report.stats.seconds):.0f} images/s, "
                    f"bottleneck: {report.stats.bottleneck}")
    below.stackplot(times, *stalls.values(), labels=list(stalls))
    below.set_ylabel("% of the time waited for")
    below.set_ylim(0, 100)
    below.set_xlabel("seconds")
    below.legend(loc="upper right")
    figure.savefig(path)


def run(options: argparse.Namespace) -> int:
    """The command."""
    if options.plot:
        import importlib.util

        if importlib.util.find_spec("matplotlib") is None:
            raise ImportError("--plot needs matplotlib: pip install matplotlib")
    report, finished = measure(options)
    print(report.to_text(), end="", file=sys.stderr if options.json == "-" else sys.stdout)
    if options.json == "-":
        print(report.to_json())
    elif options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(report.to_json() + "\n")
    if options.plot:
        plot(report, options.plot)
    return 0 if finished else 130
