"""Random plans and data in random worlds, killed, damaged and resumed. scripts/soak builds the programs and runs this.

Trials, each drawn from a number of its own:
  order    a random plan in several runs of several processes each, which are killed or stop; every run resumes from the last state of any
           process, in another world. The worker compares every step with the sequential model. Damaged states must be refused.
  files    penstock-throughput over images, prepared shards, tokens, and tables, some damaged: digests are those of one thread without a
           pause.
  prepare  penstock-prepare, killed and started again: the same bytes as in one go.
  train    penstock-train-classifier in several processes over Gloo, killed and resumed: the losses of one process.
"""

import argparse
import collections
import filecmp
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

TIMEOUT_S = 180  # of a process that nobody kills
REFUSED = 4
# Sums in another order differ by 1e-8, until that turns a ReLU: 2e-4 some steps later. A sample more or less makes 1e-2.
LOSS_TOLERANCE = 3e-3


SOURCES = pathlib.Path(__file__).parent.parent / "source"
# Tables that other programs wrote, a page or more for a few rows; of ragged fields how long the longest is.
TABLES = {
    "polars zstd": ("parquet", "parquet/files/polars_zstd.parquet", ["i", "s", "l", "f", "b"], {"s": 100, "l": 100}),
    "duckdb snappy": ("parquet", "parquet/files/duckdb_snappy_v1.parquet", ["i", "s", "l", "f", "b"], {"s": 100, "l": 100}),
    "pyarrow": ("parquet", "parquet/files/snappy_v2.parquet", ["i64", "f32", "string", "u32"], {"string": 100}),
    "dictionary": ("parquet", "parquet/files/fallback.parquet", ["s"], {"s": 400}),
    "arrow zstd": ("arrow", "arrow/files/zstd_file.arrow", ["i64", "f64", "string"], {"string": 100}),
    "arrow dictionaries": ("arrow", "arrow/files/deltas_stream.arrow", ["s"], {"s": 100}),
    "mds zstd": ("mds", "mds/files/zstd", ["label", "text"], {"text": 400}),
}


class Finding(Exception):
    pass


class Counts(collections.Counter):
    """What was done, for the table."""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class World:
    """Processes that a launcher would start."""

    def __init__(self, folder, commands, port=None):
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI", "PMI", "SLURM", "TORCHELASTIC"))}
        ours |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port or 29500), "PENSTOCK_SECRET": "known to the soak alone"}
        self.processes = []
        self.commands = commands
        self.outputs = [folder / f"output.{rank}" for rank in range(len(commands))]
        for rank, command in enumerate(commands):
            variables = ours | {"RANK": str(rank), "WORLD_SIZE": str(len(commands))}
            with open(self.outputs[rank], "w") as output:
                self.processes.append(subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=variables))

    def kill(self, how):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(how)

    def join(self):
        """Their exit statuses."""
        end = time.monotonic() + TIMEOUT_S
        statuses = []
        for rank, process in enumerate(self.processes):
            try:
                statuses.append(process.wait(max(0.1, end - time.monotonic())))
            except subprocess.TimeoutExpired:
                self.kill(signal.SIGKILL)
                raise Finding(f"process {rank} hangs: {self.said()}") from None
        return statuses

    def said(self):
        lines = []
        for rank, (command, output) in enumerate(zip(self.commands, self.outputs)):
            lines.append(f"[{rank}] {' '.join(map(str, command))}: {output.read_text(errors='replace')[-500:].strip()}")
        return "\n    ".join(lines)


def damage(data, draw):
    """Other bytes."""
    data = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 4])):
        at = draw.randrange(max(1, len(data)))
        how = draw.randrange(4)
        if how == 0 and data:
            data[at] ^= 1 << draw.randrange(8)
        elif how == 1:
            del data[at : at + draw.randrange(1, 64)]
        elif how == 2:
            data[at:at] = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 16)))
        else:
            del data[at:]
    return bytes(data)


def same_json(one, other):
    try:
        return json.loads(one) == json.loads(other)
    except ValueError:
        return False


class Soak:
    def __init__(self, given, folder):
        self.given = given
        self.folder = folder
        self.counts = Counts()

    # ---- order ----

    def order(self, draw, folder):
        plan = draw.randrange(1 << 40)
        slow = draw.choice([0, 500, 3000, 10_000])  # us for a sample
        resume = None
        for run in range(draw.randrange(1, 7)):
            state = folder / f"state.{run}"
            world = draw.choice([1, 1, 2, 4])
            devices = draw.choice([1, 1, 2, 3])
            how = draw.choice(["kill", "kill", "steps", "term"])
            commands = []
            for rank in range(world):
                threads, depth = draw.choice([1, 1, 2, 3, 8]), draw.choice([1, 2, 4])
                command = [self.given.worker, plan, devices, threads, depth, f"{state}.{rank}", "--slow", slow]
                command += ["--resume", resume] if resume else []
                command += ["--steps", draw.randrange(1, 12)] if how == "steps" else []
                command += ["--plant"] if self.given.plant else []
                commands.append([str(part) for part in command])
            processes = World(folder, commands)
            if how in ("kill", "term"):
                time.sleep(draw.choice([0.01, 0.03, 0.1, 0.3]))
                processes.kill(signal.SIGKILL if how == "kill" else signal.SIGTERM)
                self.counts["processes killed"] += world
            for rank, status in enumerate(processes.join()):
                if status not in (0, -signal.SIGKILL, -signal.SIGTERM) or (status < 0 and how == "steps"):
                    raise Finding(f"process {rank} ended with {status}\n    {processes.said()}")
            self.count_rows(processes)
            saved = [path for path in (pathlib.Path(f"{state}.{rank}") for rank in range(world)) if path.exists()]
            if saved:
                resume = draw.choice(saved)
                self.counts["states resumed from"] += 1
                if draw.randrange(3) == 0:
                    self.damaged_state(draw, folder, plan, resume)
        command = [self.given.worker, plan, draw.choice([1, 2]), draw.choice([1, 4]), 2, folder / "state.end"]
        command += ["--resume", resume] if resume else []
        last = World(folder, [[str(part) for part in command]])
        if last.join() != [0]:
            raise Finding(f"the last run failed\n    {last.said()}")
        self.count_rows(last)

    def count_rows(self, processes):
        for output in processes.outputs:
            rows = [line.split()[2] for line in output.read_text().splitlines() if line.endswith(" rows")]
            self.counts["steps compared with the model"] += len(rows)
            self.counts["rows compared with the model"] += sum(map(int, rows))

    def damaged_state(self, draw, folder, plan, good):
        path = folder / "state.damaged"
        text = good.read_bytes()
        path.write_bytes(damage(text, draw))
        if same_json(path.read_bytes(), text):
            return
        command = [self.given.worker, plan, 1, 1, 2, folder / "state.after", "--resume", path, "--steps", 1]
        process = World(folder, [[str(part) for part in command]])
        self.counts["states damaged"] += 1
        if process.join() != [REFUSED]:
            kept = folder / "state.accepted"
            shutil.copy(path, kept)
            raise Finding(f"the damaged state {kept} was not refused\n    {process.said()}")

    # ---- files ----

    def data(self):
        """Data sets, made once: images in a folder, the same prepared, with damaged ones, and tokens."""
        photos = self.folder / "photos"
        if not photos.exists():
            os.environ["XDG_CACHE_HOME"] = str(self.folder / "cache")
            count = "120"
            self.run([self.given.throughput, "--synthetic", count, "--epochs", "1", "--crop", "32", "--quiet"])
            folders = {path.parent.parent for path in (self.folder / "cache").rglob("*.jpg")}
            shutil.copytree(folders.pop(), photos)
            self.run([self.given.prepare, photos, self.folder / "prepared", "--shard-samples", "25", "--quiet"])
            draw = random.Random(1)
            bad = self.folder / "bad"
            shutil.copytree(photos, bad)
            for path in sorted(bad.rglob("*.jpg"))[::7]:
                path.write_bytes(draw.choice([b"", path.read_bytes()[: path.stat().st_size // 2], damage(path.read_bytes(), draw)]))
            self.run([self.given.prepare, photos, self.folder / "parquet", "--shard-samples", "25", "--format", "parquet", "--quiet"])
            (self.folder / "tokens.bin").write_bytes(struct.pack("<50000H", *(draw.randrange(1000) for _ in range(50_000))))
        return {name: self.folder / name for name in ("photos", "prepared", "parquet", "bad")} | {"tokens": self.folder / "tokens.bin"}

    def tables(self):
        """Copies of the tables: their indexes are written beside them."""
        folder = self.folder / "tables"
        for _, name, _, _ in TABLES.values() if not folder.exists() else ():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (SOURCES / name).is_dir() else shutil.copy)(SOURCES / name, folder / name)
        return folder

    def table_plan(self, draw, path):
        """Writes a random plan of a table."""
        kind, name, columns, ragged = TABLES[draw.choice(sorted(TABLES))]
        columns = [{"name": column, "required": False} for column in columns] if kind != "mds" else [{"name": column} for column in columns]
        files = {"folders" if kind == "mds" else "files": [str(self.tables() / name)]}
        operations = [{"op": "read", "source": {kind: files | {"columns": columns}}}]
        operations += [{"op": "map", "transform": {"pad": {"field": field, "to": to}}} for field, to in ragged.items()]
        for operation in draw.sample(["take", "shuffle_chunks", "repeat_each", "shuffle", "window"], draw.randrange(1, 4)):
            operations.append({
                "take": {"op": "take", "count": draw.randrange(5, 60)},
                "shuffle_chunks": {"op": "shuffle_chunks", "seed": draw.randrange(1 << 30)},
                "repeat_each": {"op": "repeat_each", "times": draw.randrange(1, 4)},
                "shuffle": {"op": "shuffle", "seed": draw.randrange(1 << 30)},
                "window": {"op": "shuffle", "buffer": draw.randrange(1, 30), "seed": draw.randrange(1 << 30)},
            }[operation])
        # What shuffle_chunks() permutes are chunks of the source.
        operations.sort(key=lambda one: {"read": 0, "map": 1, "shuffle_chunks": 2}.get(one["op"], 3))
        operations.append({"op": "repeat", "times": draw.randrange(1, 6)})
        operations.append({"op": "batch", "global_batch": draw.choice([3, 7, 8]), "remainder": draw.choice(["keep", "drop", "pad"]), "uneven": True})
        path.write_text(json.dumps({"penstock_plan": 2, "operations": operations}))

    def run(self, command):
        command = [str(part) for part in command]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        if done.returncode:
            raise Finding(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr[-500:]}")
        return done.stdout

    def files(self, draw, folder):
        data = self.data()
        kind = draw.choice([*data, "table", "table"])
        flags = ["--seed", str(draw.randrange(1 << 30)), "--batch", str(draw.choice([7, 12, 16])), "--epochs", "2", "--uneven"]
        flags += ["--shuffle", draw.choice(["full", "off", "20"]), "--remainder", draw.choice(["keep", "drop", "pad"])]
        if kind == "table":
            self.table_plan(draw, folder / "plan.json")
            flags = ["--plan", str(folder / "plan.json"), "--epochs", "100"]  # to its end
        elif kind == "tokens":
            flags += ["--data", str(data[kind]), draw.choice(["--blocks", "--pack"]), str(draw.choice([64, 100])), "--document-end", "7"]
        else:
            flags += ["--data", str(data[kind]), "--crop", str(draw.choice([32, 48]))]
        if kind == "bad":
            flags += ["--on-fault", draw.choice(["mask", "replace"])]
        reference = folder / "reference"
        alone = ["--devices", "host:1", "--threads", "1", "--io-threads", "0", *([] if kind in ("table", "tokens") else ["--index", "off"])]
        self.run([self.given.throughput, *flags, *alone, "--record", reference, "--quiet"])
        expected = {line.split()[0]: int(line.split()[1], 16) for line in reference.read_text().splitlines()[1:]}
        state = None
        for run in range(draw.randrange(2, 5)):
            mine = folder / f"state.{run}"
            record = folder / f"record.{run}"
            world = draw.choice([1, 1, 2, 4])
            command = [str(self.given.throughput), *flags, "--state-out", str(mine), "--state-every", "1", "--record", str(record), "--quiet"]
            command += ["--devices", f"host:{draw.choice([1, 2, 3])}", "--threads", str(draw.choice([1, 2, 8]))]
            command += ["--io-threads", str(draw.choice([0, 2, 8]))]
            command += ["--depth", str(draw.choice([1, 2, 4]))] if kind != "table" else []
            if kind not in ("table", "tokens"):
                command += ["--index", draw.choice(["auto", "off", "build", str(folder / "index")] if world == 1 else ["auto", "off", "build"])]
            command += ["--state-in", str(state)] if state else []
            how = draw.choice(["kill", "int", "steps", "end"])
            command += ["--steps", str(draw.randrange(1, 10))] if how == "steps" else []
            processes = World(folder, [command] * world)
            if how in ("kill", "int"):
                time.sleep(draw.choice([0.02, 0.05, 0.1, 0.2]))
                processes.kill(signal.SIGKILL if how == "kill" else signal.SIGINT)
                self.counts["processes killed"] += world
            for rank, status in enumerate(processes.join()):
                if status not in {"kill": (0, -9), "int": (0, 130, -2)}.get(how, (0,)):
                    raise Finding(f"process {rank} ended with {status} ({how})\n    {processes.said()}")
            if how in ("steps", "end"):
                self.compare_records(expected, record, world, processes)
            saved = [mine] if world == 1 else [pathlib.Path(f"{mine}.{rank}") for rank in range(world)]
            if all(path.exists() for path in saved):
                state = mine
                self.counts["states resumed from"] += 1
        last = World(folder, [[str(self.given.throughput), *flags, "--record", str(folder / "record.end"), "--quiet"]
                              + (["--state-in", str(state)] if state else [])])  # fmt: skip
        if last.join() != [0]:
            raise Finding(f"the last run failed\n    {last.said()}")
        first = 0
        if state:
            saved = state if state.exists() else pathlib.Path(f"{state}.0")
            first = json.loads(saved.read_text())["step"]
        self.compare_records(expected, folder / "record.end", 1, last, range(first, len(expected)))
        left = [path for path in folder.iterdir() if path.suffix in (".part", ".new", ".lock")]
        # Those of processes that were killed may stay.
        self.counts["files left by those that were killed"] += len(left)

    def compare_records(self, expected, record, world, processes, steps=()):
        """All of `steps` must be there."""
        sums = collections.defaultdict(int)
        for path in [record] if world == 1 else [pathlib.Path(f"{record}.{rank}") for rank in range(world)]:
            for line in path.read_text().splitlines()[1:]:
                step, digest = line.split()
                sums[step] += int(digest, 16)
        for step, digest in sums.items():
            self.counts["steps compared by digest"] += 1
            if step not in expected or digest % (1 << 128) != expected[step]:
                raise Finding(f"step {step} has other bytes\n    {processes.said()}")
        if missing := [step for step in steps if str(step) not in sums]:
            raise Finding(f"steps {missing} are missing\n    {processes.said()}")

    # ---- prepare ----

    def prepare(self, draw, folder):
        data = self.data()
        source = draw.choice([data["photos"], data["parquet"], data["bad"]])
        flags = ["--shard-samples", str(draw.choice([10, 25])), "--interval", str(draw.choice([4, 8])), "--quiet"]
        flags += ["--skip-bad"] if source == data["bad"] else []
        flags += ["--format", "parquet"] if draw.randrange(3) == 0 else []
        flags += ["--longest-side", "64"] if draw.randrange(4) == 0 else []
        self.run([self.given.prepare, source, folder / "whole", *flags, "--threads", "1"])
        for _ in range(draw.randrange(1, 5)):
            command = [str(self.given.prepare), str(source), str(folder / "parts"), *flags, "--threads", str(draw.choice([1, 2, 4]))]
            processes = World(folder, [command])
            time.sleep(draw.choice([0.005, 0.02, 0.05, 0.1]))
            processes.kill(draw.choice([signal.SIGKILL, signal.SIGTERM]))
            self.counts["processes killed"] += 1
            if processes.join()[0] not in (0, 130, 143, -signal.SIGKILL, -signal.SIGTERM):
                raise Finding(f"ended oddly\n    {processes.said()}")
        self.run([self.given.prepare, source, folder / "parts", *flags])
        whole, parts = (sorted(path.name for path in (folder / name).iterdir()) for name in ("whole", "parts"))
        if whole != parts:
            raise Finding(f"other files: {sorted(set(whole) ^ set(parts))}")
        for name in whole:
            if name.endswith(".penstock-index"):  # says when its shard was written; a reader refuses one that is wrong
                continue
            self.counts["prepared files compared"] += 1
            if not filecmp.cmp(folder / "whole" / name, folder / "parts" / name, shallow=False):
                raise Finding(f"{name} has other bytes")
        self.run([self.given.prepare, source, folder / "parts", *flags, "--verify"])

    # ---- train ----

    def train(self, draw, folder):
        flags = ["--synthetic", "120", "--batch", "24", "--steps", "12", "--seed", str(draw.randrange(1000)), "--threads", "1", "--quiet"]
        self.run([self.given.trainer, *flags, "--devices", "host:1", "--losses", folder / "reference"])
        files = ["--losses", str(folder / "losses"), "--checkpoint", str(folder / "checkpoint"), "--checkpoint-every", "2", "--resume"]
        for run in range(draw.randrange(1, 4)):
            world, devices = draw.choice([(1, 1), (1, 2), (2, 1), (3, 1), (2, 2), (4, 1)])
            command = [str(self.given.trainer), *flags, *files, "--devices", f"host:{devices}", "--transport", "gloo" if world > 1 else "none"]
            processes = World(folder, [command] * world, free_port())
            time.sleep(draw.choice([0.05, 0.2, 0.4, 0.8]))
            victims = draw.choice(["all", "one"])
            if victims == "all" or world == 1:
                processes.kill(signal.SIGKILL)
            elif processes.processes[victim := draw.randrange(world)].poll() is None:
                processes.processes[victim].kill()
            self.counts["processes killed"] += world if victims == "all" else 1
            for rank, status in enumerate(processes.join()):
                if status not in (0, 1, -signal.SIGKILL):
                    raise Finding(f"process {rank} ended with {status}\n    {processes.said()}")
        last = World(folder, [[str(self.given.trainer), *flags, *files, "--devices", "host:2", "--transport", "none"]])
        if last.join() != [0]:
            raise Finding(f"the last run failed\n    {last.said()}")
        expected, found = (dict(line.split() for line in (folder / name).read_text().splitlines()) for name in ("reference", "losses"))
        # Of a run that was killed none are written: those since its checkpoint are.
        if sorted(found, key=int) != sorted(expected, key=int)[len(expected) - len(found) :]:
            raise Finding(f"losses of steps {sorted(found)}, expected {sorted(expected)}\n    {last.said()}")
        for step, loss in found.items():
            self.counts["losses compared"] += 1
            if abs(float(loss) - float(expected[step])) > LOSS_TOLERANCE:
                raise Finding(f"step {step} has the loss {loss}, expected {expected[step]}\n    {last.said()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", required=True, type=pathlib.Path)
    parser.add_argument("--throughput", required=True, type=pathlib.Path)
    parser.add_argument("--prepare", required=True, type=pathlib.Path)
    parser.add_argument("--trainer", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=0, help="how long; or")
    parser.add_argument("--trials", type=int, default=0, help="how many")
    parser.add_argument("--seed", type=int, default=None, help="of the first trial; each next one's is one more")
    parser.add_argument("--only", nargs="+", choices=["order", "files", "prepare", "train"])
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for what is written; by default a temporary one, kept if anything was found")
    parser.add_argument("--plant", action="store_true", help="a difference in every order, that must be found")
    given = parser.parse_args()
    for name in ("worker", "throughput", "prepare", "trainer"):
        if getattr(given, name):
            setattr(given, name, getattr(given, name).resolve())
    folder = given.keep or pathlib.Path(tempfile.mkdtemp(prefix="penstock-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    kinds = given.only or ["order"] * 6 + ["files"] * 3 + ["prepare"] + (["train"] if given.trainer else [])
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1 << 40)
    soak = Soak(given, folder)
    begin, trials, findings = time.monotonic(), collections.Counter(), []
    while sum(trials.values()) < given.trials or time.monotonic() - begin < given.minutes * 60:
        kind = random.Random(f"the kind of {seed}").choice(kinds)
        draw = random.Random(seed)
        own = folder / f"{kind}-{seed}"
        own.mkdir(exist_ok=True)
        trials[kind] += 1
        try:
            getattr(soak, kind)(draw, own)
            shutil.rmtree(own)
        except Exception as error:  # a finding, or the soak's own: both are told, and it continues
            findings.append(own)
            print(f"FOUND  --only {kind} --seed {seed} --trials 1: {type(error).__name__}: {error}\n    kept in {own}", flush=True)
        seed += 1
    print(f"\n{(time.monotonic() - begin) / 60:.1f} minutes, {sum(trials.values())} trials, seeds to {seed - 1}\n")
    print("| what | how many |\n| --- | ---: |")
    for what, count in [*sorted((f"trials: {kind}", count) for kind, count in trials.items()), *sorted(soak.counts.items())]:
        print(f"| {what} | {count:,} |")
    print(f"| findings | {len(findings)} |")
    if findings:
        sys.exit(1)
    if not given.keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
