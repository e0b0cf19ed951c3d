"""Google Benchmark's JSON as a line for each row: its speed, and its share of the ceiling's, the row of the same family
and arguments with _Ceiling_ in its name. Fails where a row failed, and where there is none.

    python3 bench/of_ceiling.py gpu_bench.json
"""

from __future__ import annotations

import json
import re
import sys


def lines(rows: list[dict]) -> list[str]:
    """What the medians say, or the single runs where nothing was repeated."""
    found: dict[str, dict] = {}
    for row in rows:
        if row.get("error_occurred"):
            sys.exit(f"{row['name']}: {row['error_message']}")
        if row["run_type"] == "iteration" or row["aggregate_name"] == "median":
            found[row["run_name"].removeprefix("BM_").removesuffix("/real_time")] = row
    if not found:
        sys.exit("no rows: did the filter match any?")
    ceilings = {
        (parts[1], parts[3]): (parts[2], row)
        for name, row in found.items()
        if (parts := re.fullmatch(r"(.*)_Ceiling_([^/]*)(/?.*)", name))
    }
    said = []
    for name, row in found.items():
        for (family, arguments), (ceiling, top) in ceilings.items():
            own, slash, rest = name.partition("/")
            if own.startswith(f"{family}_") and slash + rest == arguments and top is not row:
                speeds = row["bytes_per_second"], top["bytes_per_second"]
                share = f"{100 * speeds[0] / speeds[1]:.0f}% of {ceiling}'s {speeds[1] / 1e9:.1f}"
                said.append(f"{name:<44} {speeds[0] / 1e9:8.1f} GB/s  {share}")
        if "overlap" in row:
            said.append(f"{name:<44} {100 * row['overlap']:8.1f}% of a step is the kernel, stalled {100 * row['stall']:.1f}%")
    return said


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        text = file.read()
    print("\n".join(lines(json.loads(text)["benchmarks"] if text else [])))
