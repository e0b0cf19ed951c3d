"""README.md's Python program, run as it stands there, prints what stands below it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from time_limit import seconds_left

README = Path(__file__).parents[2] / "README.md"


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
