"""The slowest tests of each part of .ci/run, and the closing line for all parts: 'N passed, N failed, N skipped'."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

SLOWEST = 8  # shown for each part

build = Path(__file__).resolve().parent.parent / "build"
total = skipped = 0
for report in sorted(build.glob("ci-run-*.xml")):
    cases = list(ElementTree.parse(report).iter("testcase"))
    total += len(cases)
    skipped += sum(case.find("skipped") is not None or case.get("status") == "disabled" for case in cases)
    cases.sort(key=lambda case: -float(case.get("time", 0)))
    slowest = [f"{case.get('name')} {float(case.get('time', 0)):.0f} s" for case in cases[:SLOWEST]]
    print(f"slowest of {report.stem.removeprefix('ci-run-')}:", ", ".join(slowest))
failed = len((build / "ci-run-failed.txt").read_text().splitlines()) if (build / "ci-run-failed.txt").exists() else 0
for log in build.glob("ci-run-*-again.log"):
    failed -= sum(line.startswith("flaky: ") for line in log.read_text(errors="replace").splitlines())
print(f"{total - failed - skipped} passed, {failed} failed, {skipped} skipped")
