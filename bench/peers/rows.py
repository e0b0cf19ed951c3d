"""The rows of the table: how each is prepared, compared and timed."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from environments import HERE, constant, finished, measured
from job import Job
from photographs import Photographs
from summary import NoResult, Row, Run


@dataclass
class Setting:
    """What all rows are given."""

    photographs: Photographs
    work: Path  # of these photographs
    programs: Path
    environments: object
    job: dict
    most_cores: int

    def prepared(self) -> Path:
        """The photographs as penstock-prepare packs them; what an interrupted call began, it finishes."""
        shards = self.work / "prepared"
        finished([self.programs / "pipelines" / "penstock-prepare", self.photographs.folder, shards, "--quiet"], None)
        return shards

    def prepared_files(self) -> list[str]:
        """The same as files again, in the same order."""
        folder, made = self.work / "prepared_files", self.work / "prepared_files.complete"
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            count = 0
            for shard in sorted(self.prepared().glob("*.tar")):
                with tarfile.open(shard) as tar:
                    for member in tar:
                        if member.name.endswith(".jpg"):
                            (folder / f"{count:08}.jpg").write_bytes(tar.extractfile(member).read())
                            count += 1
            made.touch()
        return sorted(map(str, folder.iterdir()))


class Peer:
    """A framework with a Python module here."""

    def __init__(
        self, setting: Setting, name: str, module: str, form: str, variant: str = "", family: str = "", prepared: bool = False
    ) -> None:
        self.setting, self.module, self.variant, self.prepared = setting, module, variant, prepared
        source = "its own format" if module == "ffcv_loader" else "prepared" if prepared else "as they are"
        self.row = Row(name, family or module, form, source)
        self.folder = setting.work / (module + ("_prepared" if prepared else ""))
        self.files = setting.photographs.files

    def _child(self, mode: str, cores: int, **changes) -> tuple[dict, float]:
        job = Job(**{**self.setting.job, "threads": cores, "variant": self.variant, "folder": str(self.folder), **changes})
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "job.json"
        job.write(path)
        return measured([self.python, HERE / "child.py", self.module, mode, path], cores)

    def prepare(self) -> None:
        self.python = self.setting.environments.python(self.module)
        if self.prepared:
            self.files = self.setting.prepared_files()
        if "def prepare" in (HERE / f"{self.module}.py").read_text():
            self._child("prepare", self.setting.most_cores, files=self.files)

    def outputs(self, kept: list[int]) -> np.ndarray:
        found, _ = self._child("outputs", self.setting.most_cores, files=[self.files[number] for number in kept])
        self.row.version = found["version"]
        return np.load(self.folder / "outputs.npy")

    def _run(self, mode: str, cores: int, **changes) -> Run:
        found, peak = self._child(mode, cores, **changes)
        return Run(found["samples"], found["seconds"], found["cpu_s"], peak)

    def run(self, cores: int, kept: list[int]) -> Run:
        return self._run("run", cores, files=[self.files[number] for number in kept])

    def elements(self) -> Run:
        return self._run("elements", 1)


class LibTorch:
    """The C++ program beside this file, built with the torch wheel's headers and libraries."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.row = Row("LibTorch DataLoader (C++)", "libtorch", "u8 NCHW")
        self.folder = setting.work / "libtorch"

    def prepare(self) -> None:
        python = self.setting.environments.python("torchvision_loader")
        (site,) = python.parent.parent.glob("lib/python*/site-packages")
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "libtorch_loader").exists():
            finished(["cmake", "-S", HERE / "libtorch", "-B", self.folder, f"-DTORCH_ROOT={site}/torch"])
            finished(["cmake", "--build", self.folder])
        nvidia = ":".join(str(path) for path in sorted(site.glob("nvidia/*/lib")))
        self.environment = {**os.environ, "LD_LIBRARY_PATH": nvidia}

    def _run(self, mode: str, cores: int, count: int, kept: list[int]) -> tuple[dict, float]:
        listed = self.folder / "files.txt"
        listed.write_text("".join(f"{self.setting.photographs.files[number]}\n" for number in kept))
        arguments = [mode, cores, self.setting.job["batch"], count, listed, self.folder / "outputs.raw"]
        return measured([self.folder / "libtorch_loader", *arguments], cores, env=self.environment)

    def outputs(self, kept: list[int]) -> np.ndarray:
        try:
            self._run("outputs", 1, 1, kept)
        except NoResult as none:
            if str(none) != "it printed nothing":
                raise
        return np.fromfile(self.folder / "outputs.raw", np.uint8).reshape(-1, 224, 224, 3)

    def _measured(self, mode: str, cores: int, count: int, kept: list[int]) -> Run:
        found, peak = self._run(mode, cores, count, kept)
        self.row.version = found["version"]
        return Run(found["samples"], found["seconds"], found["cpu_s"], peak)

    def run(self, cores: int, kept: list[int]) -> Run:
        return self._measured("run", cores, self.setting.job["epochs"], kept)

    def elements(self) -> Run:
        return self._measured("elements", 1, self.setting.job["elements"], [])


class Penstock:
    """penstock-throughput, or the Python package's command of the same flags.

    CPU time is that of a long run without that of one of a single epoch: neither program can leave out how it starts. It
    has three times the epochs of the others, so that a run takes about as long.
    """

    def __init__(self, setting: Setting, name: str, package: bool, index: str, prepared: bool = False) -> None:
        self.setting, self.index, self.is_prepared = setting, index, prepared
        program = setting.programs / "pipelines" / "penstock-throughput"
        self.command = [sys.executable, "-m", "penstock", "throughput"] if package else [program, "--data"]
        self.row = Row(name, "penstock", "u8 NHWC", "prepared" if prepared else "as they are")

    def prepare(self) -> None:
        self.data = self.setting.prepared() if self.is_prepared else self.setting.photographs.folder

    def outputs(self, kept: list[int]) -> np.ndarray:
        import penstock as ps

        self.row.version = f"Penstock {ps.__version__}"
        decode = ps.decode_image(crop=ps.center_crop(224, resize=256))
        steps = ps.images(self.data).map(decode).batch(self.setting.job["batch"]).loader()
        return np.concatenate([np.array(step["image"]) for step in steps])[kept]

    def _once(self, cores: int, epochs: int) -> Run:
        flags = ["--index", self.index, "--epochs", epochs, "--batch", self.setting.job["batch"], "--threads", cores]
        path = self.setting.work / "penstock.json"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _, _, peak = finished([*self.command, self.data, *flags, "--devices", "host:1", "--seed", 7, "--quiet", "--json", path], cores)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = json.loads(path.read_text())
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        timed = found["per_epoch"][1:] or found["per_epoch"]
        return Run(sum(e["samples"] for e in timed), sum(e["seconds"] for e in timed), cpu, peak)

    def run(self, cores: int, kept: list[int]) -> Run:
        short = self._once(cores, 1)
        long = self._once(cores, 1 + 3 * self.setting.job["epochs"])
        return Run(long.samples, long.seconds, long.cpu_s - short.cpu_s, long.peak_mib)

    elements = None


class Ceiling:
    """libjpeg-turbo decoding the very regions of Penstock's first epoch from memory, resizing nothing: one thread."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.row = Row("libjpeg-turbo, bare region decode, no resize", "ceiling", "rows of pixels")

    def prepare(self) -> None:
        pass

    def _benchmark(self, program: str, name: str, seconds: float) -> dict:
        flags = [f"--benchmark_filter={name}", f"--benchmark_min_time={seconds}", "--benchmark_repetitions=1"]
        environment = {**os.environ, "PENSTOCK_BENCH_DATA": str(self.setting.photographs.folder)}
        command = [self.setting.programs / "bench" / program, *flags, "--benchmark_format=json"]
        out, _, _ = finished(command, 1, env=environment)
        return json.loads(out)["benchmarks"][0]

    def run(self, cores: int, kept: list[int]) -> Run:
        found = self._benchmark("penstock_decode_bench", "BM_Ceiling_LibjpegRegion", 0.2 * self.setting.job["epochs"])
        seconds = found["real_time"] / 1e3
        return Run(found["items_per_second"] * seconds, seconds, found["cpu_time"] / 1e3)

    outputs = None
    elements = None


class Overhead(Ceiling):
    """16-byte elements through our own loader, in order."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.row = Row("Penstock (C++)", "overhead", "")

    run = None

    def elements(self) -> Run:
        found = self._benchmark("penstock_overhead_bench", "BM_Loader_InOrder/256/", 0.5)
        # A batch an iteration, in nanoseconds. The program counts its main thread's CPU time only: on one core all
        # threads together cannot have had more than wall clock time.
        seconds = found["real_time"] / 1e9
        return Run(256, seconds, seconds)


class Package(Peer):
    """The same through the Python package, which the environment that runs this has."""

    outputs = None
    run = None

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, "Penstock (Python)", "penstock_loader", "", family="overhead")

    def prepare(self) -> None:
        self.python = Path(sys.executable)


def all_rows(setting: Setting) -> list:
    """In the order of the table."""
    ours, learn = "Penstock (C++)", ", --index build"
    return [
        Penstock(setting, ours, False, "off"),
        Penstock(setting, ours + learn, False, "build"),
        Penstock(setting, "Penstock (Python)", True, "off"),
        Penstock(setting, "Penstock (Python)" + learn, True, "build"),
        Penstock(setting, ours, False, "auto", prepared=True),
        Penstock(setting, f"{ours}, --index off", False, "off", prepared=True),
        Ceiling(setting),
        Peer(setting, "torchvision DataLoader, decode_image", "torchvision_loader", "u8 NCHW"),
        Peer(setting, "torchvision DataLoader, decode_image", "torchvision_loader", "u8 NCHW", prepared=True),
        Peer(setting, "torchvision DataLoader, Pillow", "torchvision_loader", "u8 NCHW", "pil"),
        LibTorch(setting),
        Peer(setting, "DALI, CPU", "dali_loader", "u8 NHWC"),
        Peer(setting, "DALI, CPU", "dali_loader", "u8 NHWC", prepared=True),
        Peer(setting, "tf.data", "tf_data", "f32 NHWC"),
        Peer(setting, "tf.data", "tf_data", "f32 NHWC", prepared=True),
        Peer(setting, "FFCV", "ffcv_loader", "u8 NHWC"),
        Peer(setting, "Grain with OpenCV, threads", "grain_loader", "u8 NHWC"),
        Peer(setting, "Grain with OpenCV, threads", "grain_loader", "u8 NHWC", prepared=True),
        Peer(setting, "Grain with OpenCV, processes", "grain_loader", "u8 NHWC", "processes"),
        Peer(setting, "SPDL", "spdl_loader", "u8 NHWC"),
        Peer(setting, "SPDL", "spdl_loader", "u8 NHWC", prepared=True),
        Overhead(setting),
        Package(setting),
    ]


def disk_gb(rows: list) -> float:
    """What the environments that are missing will take."""
    modules = {one.module for one in rows if isinstance(one, Peer) and not isinstance(one, Package)}
    if any(isinstance(one, LibTorch) for one in rows):
        modules.add("torchvision_loader")
    return sum(constant(module, "DISK_GB", 0) for module in modules if not rows[0].setting.environments.has(module))
