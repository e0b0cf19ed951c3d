"""The same photographs, the same crop, the same cores: Penstock beside other loaders.

Usage: scripts/bench --peers [--data DIR] [--rounds N] [--epochs N] [--cores 1,2] [--only TEXT]

Every framework lives in a virtual environment of its own and is run as its own documentation says it is fastest (see the
head of each file here). First all deliver the same central crops, and those that differ by more than resizing does are not timed; then
rounds, in each of which every row runs once, in a process of its own. What cannot be installed is a row that says why.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import datetime
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import report
from job import Job
from summary import NoResult, Run, parse, psnr, reason

PSNR_FLOOR_DB = 24.0  # between resizers with and without antialiasing
TIMEOUT_S = 900


@dataclass
class Row:
    """What stands in one line of the table."""

    name: str
    family: str  # the rows of one framework, of which the fastest counts
    form: str  # what it delivers
    source: str = "as they are"
    version: str = ""
    trouble: str = ""  # the error, where there are no numbers
    quality: str = ""
    runs: dict[int, list[Run]] = field(default_factory=dict)  # by cores
    elements: list[Run] = field(default_factory=list)


def measured(command: list[str], cores: int, **options) -> tuple[dict, float]:
    """Runs it on so many cores; its JSON, and the most memory that its processes held at a time, in MiB."""
    from child import tree

    given = ["taskset", "-c", ",".join(str(core) for core in sorted(os.sched_getaffinity(0))[:cores])]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(given + command, start_new_session=True, **pipes, **options)
    peak, done = 0.0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.25):
            held = 0
            for pid in tree(process.pid):
                try:
                    held += int(Path(f"/proc/{pid}/smaps_rollup").read_text().partition("\nPss:")[2].split()[0])
                except (OSError, IndexError):
                    continue
            peak = max(peak, held / 1024)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        out, err = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise NoResult(f"no result within {TIMEOUT_S} s") from None
    finally:
        done.set()
        watcher.join()
        with contextlib.suppress(ProcessLookupError):  # a framework's workers, where it left some behind
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode != 0:
        raise NoResult(reason(err) or f"exit status {process.returncode}")
    return parse(out, err), peak


class Environments:
    """Virtual environments, each made once; a failure is kept as one line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def python(self, module: str) -> Path:
        """Of the environment that a module here names, or of its own, with what it requires."""
        place = self.folder / constant(module, "ENVIRONMENT", module)
        failed, complete = place / f"failed-{module}", place / f"complete-{module}"
        if failed.exists():
            raise NoResult(failed.read_text())
        python = place / "bin" / "python"
        if complete.exists():
            return python
        print(f"installing what {module}.py requires into {place}", file=sys.stderr)
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
        commands = [constant(module, "REQUIREMENTS", [])]
        commands += [["--no-build-isolation", "--no-deps", text] for text in constant(module, "BUILT_HERE", [])]
        for command in filter(None, commands):
            done = subprocess.run([python, "-m", "pip", "install", "-q", *command], capture_output=True, text=True)
            if done.returncode != 0:
                why = f"pip: {reason(done.stderr)}"
                failed.write_text(why)
                raise NoResult(why)
        complete.touch()
        return python


def constant(module: str, name: str, default):
    """A constant of a module here, read without importing what the module needs."""
    for node in ast.parse((HERE / f"{module}.py").read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return ast.literal_eval(node.value)
    return default


class Peer:
    """A framework with a Python module here."""

    def __init__(self, bench: Bench, name: str, module: str, form: str, variant: str = "", family: str = "") -> None:
        self.bench, self.module, self.variant = bench, module, variant
        self.row = Row(name, family or module, form, source="its own format" if module == "ffcv_loader" else "as they are")
        self.folder = bench.work / module

    def _child(self, mode: str, cores: int, **changes) -> tuple[dict, float]:
        job = Job(**{**self.bench.job, "threads": cores, "variant": self.variant, "folder": str(self.folder), **changes})
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "job.json"
        job.write(path)
        return measured([str(self.python), str(HERE / "child.py"), self.module, mode, str(path)], cores)

    def prepare(self) -> None:
        self.python = self.bench.environments.python(self.module)
        if "def prepare" in (HERE / f"{self.module}.py").read_text():
            self._child("prepare", self.bench.most_cores)

    def outputs(self):
        import numpy as np

        found, _ = self._child("outputs", self.bench.most_cores, files=self.bench.compared)
        self.row.version = found["version"]
        return np.load(self.folder / "outputs.npy")

    def _run(self, mode: str, cores: int) -> Run:
        found, peak = self._child(mode, cores)
        return Run(found["samples"], found["seconds"], found["cpu_s"], peak)

    def run(self, cores: int) -> Run:
        return self._run("run", cores)

    def elements(self) -> Run:
        return self._run("elements", 1)


class LibTorch:
    """The C++ program beside this file, built with the torch wheel's headers and libraries."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.row = Row("LibTorch DataLoader (C++)", "libtorch", "u8 NCHW")
        self.folder = bench.work / "libtorch"

    def prepare(self) -> None:
        python = self.bench.environments.python("torchvision_loader")
        (site,) = python.parent.parent.glob("lib/python*/site-packages")
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "libtorch_loader").exists():
            for command in (
                ["cmake", "-S", HERE / "libtorch", "-B", self.folder, f"-DTORCH_ROOT={site}/torch"],
                ["cmake", "--build", self.folder],
            ):
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode != 0:
                    raise NoResult(f"build: {reason(done.stderr) or reason(done.stdout)}")
        nvidia = ":".join(str(path) for path in sorted(site.glob("nvidia/*/lib")))
        self.environment = {**os.environ, "LD_LIBRARY_PATH": nvidia}

    def _run(self, mode: str, cores: int, count: int, files: list[str]) -> tuple[dict, float]:
        listed = self.folder / "files.txt"
        listed.write_text("".join(f"{path}\n" for path in files))
        program = str(self.folder / "libtorch_loader")
        arguments = [mode, str(cores), str(self.bench.job["batch"]), str(count), str(listed)]
        return measured([program, *arguments, str(self.folder / "outputs.raw")], cores, env=self.environment)

    def outputs(self):
        import numpy as np

        try:
            self._run("outputs", 1, 1, self.bench.compared)
        except NoResult as none:
            if str(none) != "it printed nothing":
                raise
        return np.fromfile(self.folder / "outputs.raw", np.uint8).reshape(-1, 224, 224, 3)

    def _measured(self, mode: str, cores: int, count: int) -> Run:
        found, peak = self._run(mode, cores, count, self.bench.job["files"])
        self.row.version = found["version"]
        return Run(found["samples"], found["seconds"], found["cpu_s"], peak)

    def run(self, cores: int) -> Run:
        return self._measured("run", cores, self.bench.job["epochs"])

    def elements(self) -> Run:
        return self._measured("elements", 1, self.bench.job["elements"])


class Penstock:
    """penstock-throughput, or the Python package's command of the same flags.

    CPU time is that of a long run without that of one of a single epoch: neither program can leave out how it starts. It
    has three times the epochs of the others, so that a run takes about as long.
    """

    def __init__(self, bench: Bench, name: str, package: bool, index: str, data: Path, source: str) -> None:
        self.bench, self.index, self.data = bench, index, data
        program = bench.programs / "pipelines" / "penstock-throughput"
        self.command = [sys.executable, "-m", "penstock", "throughput"] if package else [str(program), "--data"]
        self.package = package
        self.row = Row(name, "penstock", "u8 NHWC", source)

    def prepare(self) -> None:
        if not self.data.exists():
            program = self.bench.programs / "pipelines" / "penstock-prepare"
            subprocess.run([program, self.bench.data, self.data], check=True, stdout=subprocess.DEVNULL)

    def outputs(self):
        import numpy as np
        import penstock as ps

        self.row.version = f"Penstock {ps.__version__}"
        decode = ps.decode_image(crop=ps.center_crop(224, resize=256), decoder="fast")
        plan = ps.images(self.data).map(decode).batch(self.bench.job["batch"])
        wanted = len(self.bench.compared)
        found: list = []
        for step in plan.loader():
            found += list(np.array(step["image"]))
            if len(found) >= wanted:
                break
        return np.stack(found[:wanted])

    def _once(self, cores: int, epochs: int) -> Run:
        import resource

        flags = ["--decode", "fast", "--index", self.index, "--epochs", str(epochs), "--batch", str(self.bench.job["batch"])]
        more = ["--threads", str(cores), "--devices", "host:1", "--seed", "7", "--quiet", "--json"]
        path = self.bench.work / "penstock.json"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _, peak = measured(["sh", "-c", '"$@" && echo "{}"', "-", *self.command, str(self.data), *flags, *more, str(path)], cores)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = json.loads(path.read_text())
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        timed = found["per_epoch"][1:] or found["per_epoch"]
        return Run(sum(e["samples"] for e in timed), sum(e["seconds"] for e in timed), cpu, peak)

    def run(self, cores: int) -> Run:
        short = self._once(cores, 1)
        long = self._once(cores, 1 + 3 * self.bench.job["epochs"])
        return Run(long.samples, long.seconds, long.cpu_s - short.cpu_s, long.peak_mib)

    elements = None


class Ceiling:
    """libjpeg-turbo decoding the very regions of Penstock's first epoch from memory, resizing nothing: one thread."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.row = Row("libjpeg-turbo, bare region decode, no resize", "ceiling", "rows of pixels")

    def prepare(self) -> None:
        pass

    outputs = None
    elements = None

    def run(self, cores: int) -> Run:
        seconds = 0.2 * self.bench.job["epochs"]
        command = [str(self.bench.programs / "bench" / "penstock_decode_bench"), "--benchmark_filter=BM_Ceiling_LibjpegRegion"]
        flags = [f"--benchmark_min_time={seconds}", "--benchmark_format=json", "--benchmark_repetitions=1"]
        environment = {**os.environ, "PENSTOCK_BENCH_DATA": str(self.bench.data)}
        given = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
        done = subprocess.run(given + command + flags, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            raise NoResult(reason(done.stderr))
        found = json.loads(done.stdout)["benchmarks"][0]
        images = len(self.bench.job["files"])
        return Run(images, found["real_time"] / 1e3, found["cpu_time"] / 1e3)


class Overhead(Ceiling):
    """16-byte elements through our own loader, in order."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self.row = Row("Penstock (C++)", "overhead", "")

    run = None

    def elements(self) -> Run:
        command = [str(self.bench.programs / "bench" / "penstock_overhead_bench"), "--benchmark_format=json"]
        flags = ["--benchmark_filter=BM_Loader_InOrder/256/", "--benchmark_min_time=0.5", "--benchmark_repetitions=1"]
        given = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
        done = subprocess.run(given + command + flags, capture_output=True, text=True)
        if done.returncode != 0:
            raise NoResult(reason(done.stderr))
        found = json.loads(done.stdout)["benchmarks"][0]
        # A batch an iteration, in nanoseconds. The program counts its main thread's CPU time only: on one core all
        # threads together cannot have had more than wall clock time.
        seconds = found["real_time"] / 1e9
        return Run(256, seconds, seconds)


class Package(Peer):
    """The same through the Python package, which the environment that runs this has."""

    outputs = None
    run = None

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, "Penstock (Python)", "penstock_loader", "", family="overhead")

    def prepare(self) -> None:
        self.python = Path(sys.executable)


class Bench:
    """All rows, and what they are given."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.data = Path(options.data).resolve()
        self.work = Path(options.work).resolve()
        self.programs = Path(options.programs).resolve()
        self.cores = [int(text) for text in options.cores.split(",")]
        self.most_cores = max(self.cores)
        self.rounds = options.rounds
        self.minutes = options.minutes
        files = sorted(str(path) for path in self.data.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
        if not files:
            raise SystemExit(f"peers: no .jpg or .jpeg file in '{self.data}'")
        self.compared = files[:: max(1, len(files) // 64)] if options.sample else files
        self.job = {"files": files, "batch": options.batch, "epochs": options.epochs, "elements": options.elements}
        self.environments = Environments(self.work / "venv")
        prepared = self.work / "prepared"
        ours = "Penstock (C++)"
        self.rows = [
            Penstock(self, ours, False, "off", self.data, "as they are"),
            Penstock(self, f"{ours}, --index build", False, "build", self.data, "as they are"),
            Penstock(self, "Penstock (Python)", True, "off", self.data, "as they are"),
            Penstock(self, "Penstock (Python), --index build", True, "build", self.data, "as they are"),
            Penstock(self, ours, False, "auto", prepared, "prepared"),
            Penstock(self, f"{ours}, --index off", False, "off", prepared, "prepared"),
            Ceiling(self),
            Peer(self, "torchvision DataLoader, decode_image", "torchvision_loader", "u8 NCHW"),
            Peer(self, "torchvision DataLoader, Pillow", "torchvision_loader", "u8 NCHW", "pil"),
            LibTorch(self),
            Peer(self, "DALI, CPU", "dali_loader", "u8 NHWC"),
            Peer(self, "tf.data", "tf_data", "f32 NHWC"),
            Peer(self, "FFCV", "ffcv_loader", "u8 NHWC"),
            Peer(self, "Grain with OpenCV, threads", "grain_loader", "u8 NHWC"),
            Peer(self, "Grain with OpenCV, processes", "grain_loader", "u8 NHWC", "processes"),
            Peer(self, "SPDL", "spdl_loader", "u8 NHWC"),
            Overhead(self),
            Package(self),
        ]
        if options.only:
            self.rows = [one for one in self.rows if options.only.lower() in one.row.name.lower()]

    def each(self, what: str, call) -> None:
        """Of the rows without errors; an error here is recorded in its row."""
        for one in self.rows:
            if one.row.trouble:
                continue
            try:
                call(one)
            except (NoResult, OSError, ValueError, KeyError, subprocess.CalledProcessError) as error:
                one.row.trouble = f"{what}: {error}"
                print(f"{one.row.name}: {one.row.trouble}", file=sys.stderr)

    def compare(self, one) -> None:
        if one.outputs is None:
            return
        expected = reference(self.compared)
        found = one.outputs()
        if one.row.source == "as they are" and isinstance(one, Penstock) and len(self.compared) < len(self.job["files"]):
            found = found[: len(expected)]
        least = min(psnr(a, b) for a, b in zip(expected, found, strict=True))
        one.row.quality = f"{psnr(expected, found):.1f}"
        if psnr(expected, found) < PSNR_FLOOR_DB:
            raise ValueError(f"{one.row.quality} dB from Pillow's crops (least {least:.1f}): not the same images, so not timed")

    def time(self) -> None:
        began = time.monotonic()
        for turn in range(self.rounds):
            if turn and (time.monotonic() - began) * (turn + 1) / turn > 60 * self.minutes:
                self.rounds = turn
                return
            for cores in self.cores:

                def once(one, cores=cores) -> None:
                    if one.run is None:
                        return
                    result = one.run(cores)
                    one.row.runs.setdefault(cores, []).append(result)
                    print(
                        f"round {turn + 1}, {cores} cores, {one.row.name}, {one.row.source}: {result.per_s:,.0f} images/s, "
                        f"{result.per_cpu_s:,.0f} per CPU second",
                        file=sys.stderr,
                    )

                self.each("run", once)

            def pass_elements(one) -> None:
                if one.elements is not None and not getattr(one, "variant", ""):
                    one.row.elements.append(one.elements())

            self.each("no-op elements", pass_elements)


_REFERENCES: dict[int, object] = {}


def reference(files: list[str]):
    """The central crops as Pillow makes them, which are those that torchvision's Resize and CenterCrop would."""
    import numpy as np
    from job import SIZE, centre_region
    from PIL import Image

    if len(files) not in _REFERENCES:
        crops = []
        for path in files:
            with Image.open(path) as image:
                x, y, w, h = centre_region(*image.size)
                rgb = image.convert("RGB")
                crops.append(np.asarray(rgb.resize((SIZE, SIZE), Image.Resampling.BILINEAR, (x, y, x + w, y + h))))
        _REFERENCES[len(files)] = np.stack(crops)
    return _REFERENCES[len(files)]


def machine() -> str:
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}, " \
           f"commit {commit}, {today}; load when it began: {load}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench --peers", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--data", required=True, metavar="DIR", help="a folder of JPEGs")
    add("--rounds", type=int, default=5, help="in each of which every row runs once")
    add("--minutes", type=float, default=120, help="no round begins that would end later")
    add("--epochs", type=int, default=5, help="timed ones of a run")
    add("--cores", default="1,2", help="how many, one after the other")
    add("--batch", type=int, default=100, help="images in a batch")
    add("--elements", type=int, default=100_000, help="of the no-op table")
    add("--only", default="", metavar="TEXT", help="rows whose name contains it; then nothing is written")
    add("--sample", action="store_true", help=argparse.SUPPRESS)
    add("--work", default=str(ROOT / "build/peers"), help="environments and prepared files, kept between calls")
    add("--programs", default=str(ROOT / "build/bench"), help="where the C++ programs were built")
    add("--results", default=str(ROOT / "bench/results"), help="where peers.md and peers.svg go")
    options = parser.parse_args()
    bench = Bench(options)
    bench.work.mkdir(parents=True, exist_ok=True)
    about = machine()
    began = time.monotonic()
    bench.each("install", lambda one: one.prepare())
    bench.each("outputs", bench.compare)
    bench.time()
    rows = [one.row for one in bench.rows]
    text = report.markdown(rows, about, bench.data, bench.job, bench.cores, bench.rounds, time.monotonic() - began)
    print(text)
    if not options.only:
        Path(options.results, "peers.md").write_text(text)
        report.picture(rows, Path(options.results, "peers.svg"), bench.cores)
    return 0


if __name__ == "__main__":
    sys.exit(main())
