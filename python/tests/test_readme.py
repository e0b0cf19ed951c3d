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
FOLDERS = ("include", "src", "pipelines", "python/src", "python/penstock")
SOURCES = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*") if path.suffix in {".hpp", ".cpp", ".cu", ".py"}]

# Processes, threads and callers are named, and there is a standard term for the others.
NOT_NAMED = r"who|whom|whoever|nobody|anybody|somebody|everybody|anyone|someone|no one"
NOT_PLAIN = rf"{NOT_NAMED}|one behind the other|the begin of|at the most|what came of"


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


def find_words(words, paths):
    found = []
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            prose = line.replace("who-gets-which-sample", "")  # a page
            for match in re.finditer(rf"\b({words})\b", prose, re.IGNORECASE):
                found.append(f"{path.relative_to(ROOT)}:{number}: '{match[0]}'")
    return found


def test_pages_are_in_plain_english():
    assert not find_words(NOT_PLAIN, PAGES)


def test_code_names_processes_threads_and_callers():
    assert len(SOURCES) > 500
    assert not find_words(NOT_NAMED, SOURCES)


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
