"""From peers.json to peers.md and its picture.

Usage: python3 bench/peers/report.py bench/results/peers.json
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from summary import Row, Run, Spread, ratios, table

_PEERS = ("dali_loader", "tf_data", "ffcv_loader", "grain_loader", "spdl_loader")
_OURS, _LEARN = "Penstock (C++)", "Penstock (C++), --index build"


@dataclass
class Results:
    """All that a call of peers.py found out."""

    machine: str
    photographs: str
    job: dict
    cores: list[int]
    rounds: int
    minutes: float
    rows: list[Row]

    def to_json(self) -> dict:
        return asdict(self)

    @staticmethod
    def from_json(found: dict) -> Results:
        rows = [Row(**row) for row in found.pop("rows")]
        for row in rows:
            row.runs = {int(cores): [Run(**run) for run in runs] for cores, runs in row.runs.items()}
            row.elements = [Run(**run) for run in row.elements]
        return Results(rows=rows, **found)


def _rate(run) -> float:
    return run.per_cpu_s


def _of(rows, name: str, source: str):
    return next((row for row in rows if row.name == name and row.source == source), None)


def _fastest(rows, families, cores: int):
    """The row with the most images per CPU second among those of these families."""
    timed = [row for row in rows if row.family in families and row.runs.get(cores)]
    return max(timed, key=lambda row: Spread.of(map(_rate, row.runs[cores])).median, default=None)


def targets(rows, cores: int) -> list[list[str]]:
    """Our own targets beside what was found."""
    lines = []
    for text, name, source, families, wanted in (
        ("as they are, of torchvision's DataLoader", _OURS, "as they are", ("torchvision_loader",), 5),
        ("as they are with an index, of torchvision's DataLoader", _LEARN, "as they are", ("torchvision_loader",), 7),
        ("prepared, of torchvision's DataLoader", _OURS, "prepared", ("torchvision_loader",), 8),
        ("as they are, of the best other", _OURS, "as they are", _PEERS, 1.5),
        ("prepared, of the best other", _OURS, "prepared", _PEERS, 3),
        ("prepared, of libjpeg-turbo's bare region decode", _OURS, "prepared", ("ceiling",), 2.5),
    ):
        ours, other = _of(rows, name, source), _fastest(rows, families, cores)
        # A row that failed in a round has fewer of them: no pairs, no ratio.
        paired = ours and other and len(ours.runs.get(cores, [])) == len(other.runs.get(cores, []))
        if not paired:
            lines.append([text, f"{wanted}×", "not measured", ""])
            continue
        found = ratios(ours.runs[cores], other.runs[cores], _rate)
        verdict = "" if found.median >= wanted else ", **missed**"
        lines.append([text, f"{wanted}×", f"{found.median:.2f}× ({found.least:.2f}..{found.most:.2f}){verdict}", other.name])
    return lines


def _line(row, cores: list[int]) -> list[str]:
    if row.trouble and not row.runs:
        return [row.name, row.source, row.trouble.replace("|", "/"), *[""] * (len(cores) + 3)]
    per_cpu = Spread.of(run.per_cpu_s for run in row.runs[cores[0]])
    cpu_ms = Spread.of(1e3 / run.per_cpu_s for run in row.runs[cores[0]])
    peak = max(run.peak_mib for runs in row.runs.values() for run in runs)
    wall = [Spread.of(run.per_s for run in row.runs[count]).text() if row.runs.get(count) else "" for count in cores]
    return [
        row.name,
        row.source,
        row.form,
        per_cpu.text(),
        f"{cpu_ms.median:.2f}",
        *wall,
        f"{peak:.0f}" if peak else "",
    ]


def markdown(results: Results) -> str:
    """The whole page."""
    rows, cores, job = results.rows, results.cores, results.job
    shown = [row for row in rows if row.family != "overhead"]
    head = ["", "files", "delivers", "images per CPU second", "CPU ms per image"]
    head += [f"images/s, {count} core{'s' if count > 1 else ''}" for count in cores] + ["memory, MiB"]
    overhead = []
    for row in rows:
        if row.elements:
            cost = Spread.of(1e9 * run.cpu_s / run.samples for run in row.elements)
            overhead.append([row.name, cost.text(), Spread.of(1e9 * run.seconds / run.samples for run in row.elements).text()])
    versions = dict.fromkeys(row.version for row in rows if row.version)
    notes = [[row.name, row.source, "; ".join(row.notes).replace("|", "/")] for row in rows if row.notes]
    parts = [
        "# Beside other loaders\n\n",
        f"{results.photographs}, training crops of {224}x{224} (area 0.08 to 1, aspect 3/4 to 4/3, flip 0.5), "
        f"batches of {job['batch']}, {job['epochs']} timed epochs a run, {results.rounds} rounds in which all rows took turns: "
        f"median (least..most). {results.machine}. {'; '.join(versions)}. It took {results.minutes:.0f} minutes.\n\n",
        "```\nscripts/bench --peers --data DIR\n```\n\n",
        "Every row is the fastest way that its own documentation names; the files in [bench/peers](../peers) cite the pages. CPU time "
        f"is that of all threads and processes, on {cores[0]} core{'s' if cores[0] > 1 else ''}; memory is their proportional set size "
        "at its largest. Frameworks' first epochs are not timed. Prepared files are those of penstock-prepare, as files of their "
        "own for other loaders. All runs are in [peers.json](peers.json).\n\n",
        table(head, [_line(row, cores) for row in shown]),
        "\n## Our own targets\n\nBy images per CPU second, round by round.\n\n",
        table(["images per CPU second", "target", "found", "against"], targets(rows, cores[0])),
        "\n## The same images\n\nCentral crops of all photographs, in dB from Pillow's antialiased bilinear ones, which are upright; "
        "resizers without antialiasing are further off. Below 24 dB nothing is timed.\n\n",
        table(["", "files", "PSNR, dB"], [[row.name, row.source, row.quality] for row in rows if row.quality]),
    ]
    if notes:
        parts += ["\nWhat is unusual about some photographs:\n\n", table(["", "files", "what it does with them"], notes)]
    parts += [
        "\n## What a pipeline costs that has nothing to do\n\n"
        f"Elements of {job.get('element_bytes', 16)} bytes, batches of {job['batch']} (Penstock's: 256), one core; ns per element.\n\n",
        table(["", "CPU", "wall clock"], overhead),
    ]
    return "".join(parts)


def picture(rows, path: Path, cores: list[int]) -> None:
    """Images per CPU second as bars, and libjpeg-turbo's bare region decode as a line."""
    from matplotlib.figure import Figure

    timed = [row for row in rows if row.runs.get(cores[0])]
    rates = {id(row): Spread.of(map(_rate, row.runs[cores[0]])) for row in timed}
    bars = sorted((row for row in timed if row.family != "ceiling"), key=lambda row: rates[id(row)].median)
    figure = Figure(figsize=(9, 0.5 + 0.4 * len(bars)), layout="constrained")
    axes = figure.subplots()
    names = [row.name if row.source == "as they are" else f"{row.name}, {row.source}" for row in bars]
    colours = ["#1f77b4" if row.family == "penstock" else "#b0b0b0" for row in bars]
    found = [rates[id(row)] for row in bars]
    spread = [[one.median - one.least for one in found], [one.most - one.median for one in found]]
    axes.barh(names, [one.median for one in found], xerr=spread, color=colours)
    for row in timed:
        if row.family == "ceiling":
            axes.axvline(rates[id(row)].median, color="black", linestyle="--", label=row.name)
            axes.legend(loc="lower right")
    axes.set_xlabel("images/s per core (CPU time)")
    figure.savefig(path)


_IN_README = {
    ("Penstock (C++)", "prepared"): "**penstock**, prepared files",
    ("Penstock (C++), --index build", "as they are"): "**penstock**, with an index",
    ("Penstock (C++)", "as they are"): "**penstock**",
    ("Penstock (Python)", "as they are"): "**penstock** from Python",
    ("libjpeg-turbo, bare region decode, no resize", "as they are"): "libjpeg-turbo, region only, no resize",
    ("tf.data", "as they are"): "tf.data",
    ("FFCV", "its own format"): "FFCV, its own format",
    ("Grain with OpenCV, threads", "as they are"): "Grain with OpenCV",
    ("DALI, CPU", "as they are"): "DALI on the CPU",
    ("LibTorch DataLoader (C++)", "as they are"): "LibTorch's DataLoader (C++)",
    ("torchvision DataLoader, decode_image", "as they are"): "torchvision's DataLoader",
    ("SPDL", "as they are"): "SPDL",
}


def readme_table(results: Results) -> str:
    """What README.md shows: the fastest way of each loader, the fastest first."""
    lines = []
    for row in results.rows:
        name = _IN_README.get((row.name, row.source))
        if name is None or not row.runs:
            continue
        per_cpu = Spread.of(map(_rate, row.runs[1]))
        wall, peak = "", ""
        if row.family != "ceiling":
            wall = f"{Spread.of(run.per_s for run in row.runs[2]).median:,.0f}"
            peak = f"{max(run.peak_mib for runs in row.runs.values() for run in runs):.0f}"
        lines.append((-per_cpu.median, [name, per_cpu.text(), wall, peak]))
    return table(["", "images per CPU second", "images/s, 2 cores", "memory, MiB"], [line for _, line in sorted(lines)])


def write(path: Path) -> None:
    """Beside the JSON at `path`."""
    results = Results.from_json(json.loads(path.read_text()))
    path.with_suffix(".md").write_text(markdown(results))
    picture(results.rows, path.with_suffix(".svg"), results.cores)
    print(f"README.md's table:\n\n{readme_table(results)}")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
