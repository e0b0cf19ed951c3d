"""penstock-throughput as a command of this package: feeds images to every device as a training loop
would, and reports how fast, how evenly, and what the loop had to wait for."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from typing import Any

from penstock._program import run_program

PLOT = "  --plot FILE                         Plot throughput and stalls over time; needs matplotlib\n"


def run(arguments: list[str]) -> int:
    """Runs penstock-throughput with its own flags and `--plot FILE`. Returns its exit status."""
    if arguments and arguments[-1] == "--plot":
        print("penstock: --plot needs a file to draw to: --plot run.png", file=sys.stderr)
        return 2
    arguments, picture = _without_plot(arguments)
    if picture is None:
        status = run_program("_throughput", arguments)
        if "-h" in arguments or "--help" in arguments:
            sys.stdout.write(PLOT)
        return status
    if importlib.util.find_spec("matplotlib") is None:
        print("penstock: --plot needs matplotlib: pip install matplotlib", file=sys.stderr)
        return 2
    if any(argument.split("=")[0] == "--json" for argument in arguments):
        print("penstock: --plot and --json cannot be used together", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        status = run_program("_throughput", [*arguments, "--json", os.path.join(folder, "report")])
        for name in os.listdir(folder):  # report, or report.RANK where there are several processes
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                root, extension = os.path.splitext(picture)
                plot(json.load(file), root + name.removeprefix("report") + extension)
        return status


def _without_plot(arguments: list[str]) -> tuple[list[str], str | None]:
    for at, argument in enumerate(arguments):
        if argument == "--plot" and at + 1 < len(arguments):
            return arguments[:at] + arguments[at + 2 :], arguments[at + 1]
        if argument.startswith("--plot="):
            return arguments[:at] + arguments[at + 1 :], argument.removeprefix("--plot=")
    return arguments, None


def plot(report: dict[str, Any], path: str) -> None:
    """Throughput over time, and below it what share of the time was spent waiting for which stage, from the object that
    --json writes.

    Errors  ImportError  matplotlib is not installed
    """
    from matplotlib.figure import Figure

    times, rates = [], []
    stalls: dict[str, list[float]] = {name: [] for name in report["stages"]}
    before: dict[str, Any] = {"seconds": 0.0, "samples": 0, "wait_s": dict.fromkeys(stalls, 0.0)}
    for moment in report["history"]:
        seconds = moment["seconds"] - before["seconds"]
        if seconds <= 0:
            continue
        times.append(moment["seconds"])
        rates.append((moment["samples"] - before["samples"]) / seconds)
        for name, shares in stalls.items():
            shares.append(100 * (moment["wait_s"][name] - before["wait_s"][name]) / seconds)
        before = moment
    figure = Figure(figsize=(9, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(times, rates)
    above.set_ylabel("images/s")
    above.set_ylim(bottom=0)
    above.set_title(f"{report['samples_per_s']:.0f} images/s, bottleneck: {report['bottleneck']}")
    below.stackplot(times, *stalls.values(), labels=list(stalls))
    below.set_ylabel("% of the time waited for")
    below.set_ylim(0, 100)
    below.set_xlabel("seconds")
    below.legend(loc="upper right")
    figure.savefig(path)
