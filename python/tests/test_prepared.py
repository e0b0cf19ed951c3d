"""What penstock-prepare writes, read by others: Python's tarfile, the webdataset package, Pillow.

PENSTOCK_TEST_PHOTOS=FOLDER PENSTOCK_TEST_IMAGES=2000 scripts/python-test -k prepared takes photographs, too, and more generated images.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

import penstock as ps

np = pytest.importorskip("numpy")
image = pytest.importorskip("PIL.Image")

PROGRAM = Path(os.environ.get("PENSTOCK_THROUGHPUT") or "nowhere").with_name("penstock-prepare")

pytestmark = pytest.mark.skipif(not PROGRAM.is_file(), reason="no penstock-prepare beside PENSTOCK_THROUGHPUT")


def synthetic(folder: Path) -> Path:
    """The folder of a generated set."""
    ps.synthetic_images(int(os.environ.get("PENSTOCK_TEST_IMAGES", "120")), cache=folder)
    return next(folder.glob("images-*"))


@pytest.fixture(scope="module", params=["synthetic", "photos"])
def originals(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files by the key that they have in a shard."""
    if request.param == "synthetic":
        folder = synthetic(tmp_path_factory.mktemp("cache"))
    elif "PENSTOCK_TEST_PHOTOS" in os.environ:
        folder = Path(os.environ["PENSTOCK_TEST_PHOTOS"])
    else:
        pytest.skip("PENSTOCK_TEST_PHOTOS does not name a folder of photographs")
    files = [path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg")]
    assert files
    return {str(path.relative_to(folder).with_suffix("")).lower(): path for path in files}


@pytest.fixture(scope="module")
def shards(originals: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    out = tmp_path_factory.mktemp("prepared") / "shards"
    some = next(iter(originals.items()))
    folder = some[1].parents[some[0].count("/")]
    run = subprocess.run(
        [PROGRAM, folder, out, "--shard-samples", "50", "--json", "-", "--quiet"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["samples"] == len(originals)
    assert report["bytes_out"] <= 1.01 * report["bytes_in"]
    return sorted(out.glob("*.tar"))


def pixels(jpeg: bytes) -> np.ndarray:
    with image.open(io.BytesIO(jpeg)) as opened:
        return np.asarray(opened)


def compare(originals: dict[str, Path], packed: dict[str, bytes]) -> None:
    assert len(packed) == len(originals)
    for key, jpeg in packed.items():
        original = originals[key.lower()].read_bytes()
        assert len(jpeg) <= 1.01 * len(original) + 16, key
        np.testing.assert_array_equal(pixels(jpeg), pixels(original), err_msg=key)


def test_tarfile_finds_every_pixel(originals: dict[str, Path], shards: list[Path]) -> None:
    packed = {}
    for shard in shards:
        with tarfile.open(shard, "r:") as tar:
            for member in tar:
                key, extension = member.name.split(".", 1)
                if extension == "jpg":
                    packed[key] = tar.extractfile(member).read()
    compare(originals, packed)


def test_webdataset_finds_every_pixel(originals: dict[str, Path], shards: list[Path]) -> None:
    wds = pytest.importorskip("webdataset")
    samples = list(wds.WebDataset([str(shard) for shard in shards], shardshuffle=False))
    compare(originals, {sample["__key__"]: sample["jpg"] for sample in samples})
    classes = sorted({key.split("/")[0] for key in originals if "/" in key})
    for sample in samples if classes else ():
        assert int(sample["cls"]) == classes.index(sample["__key__"].split("/")[0])
