"""The runner, without any framework: python3 -m pytest bench/peers"""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import report
from environments import finished
from job import Job, centre_region, random_region
from summary import NoResult, Row, Run, Spread, parse, psnr, ratios, reason, table
from time_limit import wait_until


def row(name, family, source="as they are", rates=(), trouble=""):
    runs = {1: [Run(100, 100 / rate, 100 / rate) for rate in rates]} if rates else {}
    return Row(name, family, "u8", source, trouble=trouble, runs=runs)


def results(rows):
    return report.Results("machine", "7 photographs of photos", {"batch": 1, "epochs": 1}, [1], 2, 1.0, rows)


def test_the_result_is_the_last_line_of_json():
    assert parse('warming up\n{"samples": 1}\n{"samples": 2}\nbye {\n') == {"samples": 2}
    with pytest.raises(NoResult, match="ImportError: no libavcodec"):
        parse("nothing", "Traceback\nImportError: no libavcodec\n")


def test_a_reason_is_the_last_line_that_speaks_of_an_error():
    log = "Collecting x\nERROR: Failed building wheel for ffcv\n[notice] A new release of pip\nnote: this error originates\n"
    assert reason(log) == "ERROR: Failed building wheel for ffcv"
    assert reason("terminate called after throwing an instance of 'std::runtime_error'\n  what():  a.jpg: no\n") == "a.jpg: no"
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
        row("Penstock (C++)", "penstock", rates=[400, 400]),
        row("slow", "torchvision_loader", rates=[50, 50]),
        row("fast", "torchvision_loader", rates=[100, 100]),
        row("gone", "spdl_loader", trouble="pip: ERROR | nothing"),
    ]
    rows[1].notes.append("refuses CMYK ones: nothing")
    lines = report.targets(rows, 1)
    assert lines[0][2:] == ["4.00× (4.00..4.00), **missed**", "fast"]
    assert lines[3][2] == "not measured"
    page = report.markdown(results(rows))
    assert "pip: ERROR / nothing" in page and "| fast |" in page and "refuses CMYK ones" in page


def test_results_survive_their_file(tmp_path):
    found = results([row("fast", "torchvision_loader", rates=[100, 50])])
    assert report.Results.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_what_a_killed_runner_measured_ends_with_it(tmp_path):
    pids = tmp_path / "pids"
    runner = subprocess.Popen([sys.executable, "-c", f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from environments import finished
finished(["sh", "-c", "echo $$ > {pids}; exec sleep 600"])
"""])
    pid = wait_until(lambda: pids.exists() and pids.read_text().strip(), "what it measures has begun")
    runner.kill()
    runner.wait()

    def has_ended() -> bool:
        try:
            return ") Z " in Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return True

    wait_until(has_ended, "what it measured has ended")


def test_a_run_that_fails_says_why_and_one_that_does_not_end_is_ended():
    with pytest.raises(NoResult, match="error: no such thing"):
        finished(["sh", "-c", "echo error: no such thing >&2; exit 3"])
    with pytest.raises(NoResult, match="no result within 0.2 s"):
        finished(["sleep", "600"], timeout=0.2)
    assert finished(["echo", "done"])[0] == "done\n"


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


def test_photographs_are_known_by_their_kinds_and_another_folder_is_another(tmp_path):
    image = pytest.importorskip("PIL.Image")
    from photographs import Photographs

    turned = image.Exif()
    turned[0x0112] = 6
    image.new("RGB", (40, 30)).save(tmp_path / "a.jpg")
    image.new("CMYK", (40, 30)).save(tmp_path / "b.jpg")
    image.new("L", (40, 30)).save(tmp_path / "c.jpeg", progressive=True)
    image.new("RGB", (40, 30)).save(tmp_path / "d.jpg", exif=turned)
    found = Photographs.below(tmp_path)
    assert found.kinds == {"CMYK": [1], "grey": [2], "progressive": [2], "turned": [3]}
    assert found.describe() == "4 photographs (1 CMYK, 1 grey, 1 progressive, 1 turned)"
    assert found.crops.shape == (4, 224, 224, 3)
    key = found.key
    (tmp_path / "d.jpg").unlink()
    assert Photographs.below(tmp_path).key != key
    with pytest.raises(SystemExit, match="no .jpg or .jpeg file"):
        Photographs.below(tmp_path / "none")


def test_readme_and_the_page_show_what_was_measured():
    root = Path(__file__).parent.parent.parent
    found = report.Results.from_json(json.loads((root / "bench/results/peers.json").read_text()))
    assert (root / "bench/results/peers.md").read_text() == report.markdown(found)
    assert report.readme_table(found) in (root / "README.md").read_text()
