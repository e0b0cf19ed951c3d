"""The runner's arithmetic, without any framework: python3 -m pytest bench/peers"""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import report
from job import Job, centre_region, random_region
from summary import NoResult, Run, Spread, parse, psnr, ratios, reason, table


class Row:
    def __init__(self, name, family, source="as they are", rates=(), trouble=""):
        self.name, self.family, self.source, self.trouble = name, family, source, trouble
        self.form, self.version, self.quality, self.elements = "u8", "", "", []
        self.runs = {1: [Run(100, 100 / rate, 100 / rate) for rate in rates]} if rates else {}


def test_the_result_is_the_last_line_of_json():
    assert parse('warming up\n{"samples": 1}\n{"samples": 2}\nbye {\n') == {"samples": 2}
    with pytest.raises(NoResult, match="ImportError: no libavcodec"):
        parse("nothing", "Traceback\nImportError: no libavcodec\n")


def test_a_reason_is_the_last_line_that_speaks_of_an_error():
    log = "Collecting x\nERROR: Failed building wheel for ffcv\n[notice] A new release of pip\nnote: this error originates\n"
    assert reason(log) == "ERROR: Failed building wheel for ffcv"
    assert reason("") == ""


def test_a_spread_is_median_least_and_most():
    assert Spread.of([3, 1, 2]) == Spread(2, 1, 3)
    assert Spread.of([1234.4, 1000, 2000]).text() == "1,234 (1,000..2,000)"
    with pytest.raises(ValueError, match="no rounds"):
        Spread.of([])


def test_ratios_are_of_the_same_round():
    ours, theirs = [Run(10, 1, 1), Run(10, 2, 2)], [Run(10, 2, 2), Run(10, 4, 4)]
    assert ratios(ours, theirs, lambda run: run.per_cpu_s) == Spread(2, 2, 2)
    with pytest.raises(ValueError):
        ratios(ours, theirs[:1], lambda run: run.per_s)


def test_the_faster_of_a_frameworks_ways_counts_and_misses_are_said():
    rows = [
        Row("Penstock (C++)", "penstock", rates=[400, 400]),
        Row("slow", "torchvision_loader", rates=[50, 50]),
        Row("fast", "torchvision_loader", rates=[100, 100]),
        Row("gone", "spdl_loader", trouble="pip: ERROR | nothing"),
    ]
    lines = report.asked(rows, 1)
    assert lines[0][2:] == ["4.00× (4.00..4.00), **missed**", "fast"]
    assert lines[3][2] == "not measured"
    page = report.markdown(rows, "machine", Path("photos"), {"files": ["a"], "batch": 1, "epochs": 1}, [1], 2, 60)
    assert "pip: ERROR / nothing" in page and "| fast |" in page


def test_psnr():
    np = pytest.importorskip("numpy")
    black = np.zeros((2, 2), np.uint8)
    assert psnr(black, black) == math.inf
    assert psnr(black, black + 255) == pytest.approx(0)
    with pytest.raises(ValueError, match="expected an array"):
        psnr(black, black[:1])


def test_regions_lie_in_the_image_and_have_the_asked_area():
    draw = random.Random(7)
    for width, height in ((500, 375), (20, 400), (1, 1)):
        for _ in range(200):
            x, y, w, h = random_region(width, height, draw)
            assert 0 <= x and 0 <= y and w >= 1 and h >= 1 and x + w <= width and y + h <= height
    assert centre_region(640, 512) == (96, 32, 448, 448)


def test_a_job_survives_its_file(tmp_path):
    job = Job(files=["a"], threads=2, variant="pil")
    job.write(tmp_path / "job")
    assert Job.read(str(tmp_path / "job")) == job


def test_a_table_is_markdown():
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
