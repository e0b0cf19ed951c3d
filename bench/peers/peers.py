"""The same photographs, the same crop, the same cores: Penstock beside other loaders.

Usage: scripts/bench --peers --data DIR [--rounds N] [--epochs N] [--cores 1,2] [--only TEXT]

Every framework lives in a virtual environment of its own and is run as its own documentation says it is fastest (see the
head of each file here). First all deliver the same central crops, and those that differ by more than resizing does are not timed; then
rounds, in each of which every row runs once, in a process of its own. What cannot be installed is a row that says why, and
photographs that a framework refuses are left out of its row, which says so.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import report
from environments import Environments
from photographs import Photographs
from rows import Setting, all_rows, disk_gb
from summary import NoResult, psnr

PSNR_FLOOR_DB = 24.0  # between resizers with and without antialiasing
NOT_THE_SAME_DB = 18.0  # one that lies on its side, or whose colours are others


class Bench:
    """All rows, and what is done to each of them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.photographs = Photographs.below(Path(options.data).resolve())
        self.cores = [int(text) for text in options.cores.split(",")]
        self.rounds, self.minutes = options.rounds, options.minutes
        work = Path(options.work).resolve()
        self.setting = Setting(
            photographs=self.photographs,
            work=work / "photographs" / self.photographs.key,
            programs=Path(options.programs).resolve(),
            environments=Environments(work / "venv"),
            job={"batch": options.batch, "epochs": options.epochs, "elements": options.elements},
            most_cores=max(self.cores),
        )
        self.setting.work.mkdir(parents=True, exist_ok=True)
        self.rows = [one for one in all_rows(self.setting) if options.only.lower() in one.row.name.lower()]
        if not self.rows:
            raise SystemExit(f"peers: no row's name contains '{options.only}'")
        self.kept = {id(one): list(range(len(self.photographs.files))) for one in self.rows}

    def announce(self) -> None:
        """What it is going to take.

        Errors  SystemExit  the disk is too full
        """
        photographs = sum(Path(path).stat().st_size for path in self.photographs.files) / 1e9
        disk = disk_gb(self.rows) + 4 * photographs + 0.1
        images = len(self.photographs.files) * (self.setting.job["epochs"] + 1)
        timed = self.rounds * len(self.cores) * len(self.rows) * (5 + images / 400) / 60
        free = shutil.disk_usage(self.setting.work).free / 1e9
        print(
            f"{self.photographs.describe()}; {len(self.rows)} rows, {self.rounds} rounds; takes about "
            f"{min(timed, self.minutes) + 3 * disk_gb(self.rows):.0f} minutes, and {disk:.1f} GB below "
            f"{self.setting.work.parent.parent} ({free:.0f} GB are free)",
            file=sys.stderr,
        )
        if disk > free:
            raise SystemExit("peers: the disk is too full; make room, or name another folder with --work")

    def each(self, what: str, call) -> None:
        """Of the rows without errors; an error here is recorded in its row."""
        for one in self.rows:
            if one.row.trouble:
                continue
            try:
                call(one)
            except (NoResult, OSError, ValueError, KeyError, subprocess.CalledProcessError) as error:
                one.row.trouble = f"{what}: {error}"
                print(f"{one.row.name}, {one.row.source}: {one.row.trouble}", file=sys.stderr)

    def compare(self, one) -> None:
        """With Pillow's crops, kind by kind; leaves out what the row refuses."""
        if one.outputs is None:
            return
        try:
            found = one.outputs(self.kept[id(one)])
        except NoResult:
            self.leave_out(one)
            found = one.outputs(self.kept[id(one)])
        kept = self.kept[id(one)]
        expected = self.photographs.crops[kept]
        for kind, numbers in sorted(self.photographs.kinds.items()):
            own = [place for place, number in enumerate(kept) if number in numbers]
            if own and (quality := psnr(expected[own], found[own])) < NOT_THE_SAME_DB:
                one.row.notes.append(f"{kind} ones are other images ({quality:.0f} dB)")
        quality = psnr(expected, found)
        one.row.quality = f"{quality:.1f}"
        if quality < PSNR_FLOOR_DB:
            raise ValueError(f"{one.row.quality} dB from Pillow's crops: not the same images, so not timed")

    def leave_out(self, one) -> None:
        """The kinds of photographs that it refuses; says the first error where that explains nothing."""
        refused = []
        for kind, numbers in sorted(self.photographs.kinds.items()):
            try:
                one.outputs(numbers)
            except NoResult as none:
                refused += numbers
                why = str(none).replace(f"{self.photographs.folder}/", "")
                one.row.notes.append(f"refuses {kind} ones: {why}")
        self.kept[id(one)] = [number for number in self.kept[id(one)] if number not in refused]

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
                    result = one.run(cores, self.kept[id(one)])
                    one.row.runs.setdefault(cores, []).append(result)
                    print(
                        f"round {turn + 1}, {cores} cores, {one.row.name}, {one.row.source}: {result.per_s:,.0f} images/s, "
                        f"{result.per_cpu_s:,.0f} per CPU second",
                        file=sys.stderr,
                    )

                self.each("run", once)

            def pass_elements(one) -> None:
                if one.elements is not None and not getattr(one, "variant", "") and not getattr(one, "prepared", False):
                    one.row.elements.append(one.elements())

            self.each("no-op elements", pass_elements)

    def run(self) -> report.Results:
        about, began = machine(), time.monotonic()
        self.announce()
        self.each("install", lambda one: one.prepare())
        self.each("outputs", self.compare)
        self.time()
        return report.Results(
            machine=about,
            photographs=f"{self.photographs.describe()} of {self.photographs.folder.name}",
            job=self.setting.job,
            cores=self.cores,
            rounds=self.rounds,
            minutes=(time.monotonic() - began) / 60,
            rows=[one.row for one in self.rows],
        )


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
    add("--work", default=str(ROOT / "build/peers"), help="environments and prepared files, kept between calls")
    add("--programs", default=str(ROOT / "build/bench"), help="where the C++ programs were built")
    add("--results", default=str(ROOT / "bench/results"), help="where peers.json, peers.md and peers.svg go")
    options = parser.parse_args()
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))  # and with it what is being measured
    results = Bench(options).run()
    print(report.markdown(results))
    if not options.only:
        path = Path(options.results, "peers.json")
        path.write_text(json.dumps(results.to_json(), indent=1) + "\n")
        report.write(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
