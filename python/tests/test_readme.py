"""README.md's Python program prints what stands below it; the pages of docs/ are in plain English, and are listed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from time_limit import seconds_left

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [*sorted((ROOT / "docs").glob("*.md")), README, ROOT / "CONTRIBUTING.md"]

# Processes, threads and callers are named, and there is a standard term for the others.
NOT_PLAIN = r"\b(who|whom|whoever|nobody|anybody|somebody|one behind the other|the begin of|at the most|what came of)\b"


def test_the_program_prints_what_stands_below_it(tmp_path):
    program, output = re.search(r"```python\n(.*?)```\n```\n(.*?)```", README.read_text(), re.DOTALL).groups()
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=seconds_left(),
        env={**os.environ, "PENSTOCK_CACHE": str(tmp_path)},
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == output


def test_it_is_short_enough_to_be_read_once():
    lines = README.read_text().splitlines()
    assert len(lines) <= 200
    assert [line for line in lines if len(line) > 120] == []


def test_pages_are_in_plain_english():
    found = []
    for page in PAGES:
        for number, line in enumerate(page.read_text().splitlines(), 1):
            words = line.replace("who-gets-which-sample", "")  # a page
            found += [f"{page.name}:{number}: '{match[0]}'" for match in re.finditer(NOT_PLAIN, words, re.IGNORECASE)]
    assert not found


def test_lines_of_pages_are_short():
    long = []
    for page in PAGES:
        in_code = False
        for number, line in enumerate(page.read_text().splitlines(), 1):
            in_code ^= line.startswith("```")
            if not in_code and not line.startswith("|") and len(line) > 120:
                long.append(f"{page.name}:{number}")
    assert not long


def test_the_glossary_is_short_enough_to_be_read_once():
    rows = [line for line in (ROOT / "docs" / "glossary.md").read_text().splitlines() if line.startswith("| ")]
    terms = [row.split(" | ")[0] for row in rows if not row.startswith(("| ---", "| term"))]
    assert 20 <= len(terms) <= 40 and len(set(terms)) == len(terms)


def test_all_pages_are_listed():
    listed = (ROOT / "docs" / "README.md").read_text()
    assert [page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md" and f"({page.name})" not in listed] == []
