"""penstock.prepare: the program's shards, from Python, whole and in parts."""

from __future__ import annotations

import io
import json
import signal
import tarfile
import threading
import warnings
from pathlib import Path

import pytest
from mds_files import write_mds

import penstock as ps
from penstock.__main__ import main

COUNT = 24
SHARD = 7


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache = tmp_path_factory.mktemp("cache")
    ps.synthetic_images(COUNT, cache=cache)
    return next(cache.glob("images-*"))


def contents(folder: Path) -> dict[str, bytes]:
    """All but the shards' indexes, which hold their times of change."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".penstock-index"}


@pytest.fixture(scope="module")
def whole(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("prepared") / "out"
    report = ps.prepare(photos, out, shard_samples=SHARD)
    assert report.samples == COUNT
    assert report.indexed == COUNT
    return out


def test_parquet_files_are_prepared_as_the_folder_is(photos: Path, whole: Path, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    dataset = ps.image_folder(photos)
    names = sorted(photos.rglob("*.jpg"))
    classes = sorted({path.parent.name for path in names})
    images = [{"bytes": path.read_bytes(), "path": path.name} for path in names]
    features = {"image": {"_type": "Image"}, "label": {"names": classes, "_type": "ClassLabel"}}
    table = pa.table({"image": pa.array(images, type=pa.struct({"bytes": pa.binary(), "path": pa.string()})),
                      "label": [classes.index(path.parent.name) for path in names]})
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    (tmp_path / "table").mkdir()
    pq.write_table(table, tmp_path / "table" / "train-00000-of-00001.parquet", compression={"image.bytes": "none"})
    report = ps.prepare(tmp_path / "table", tmp_path / "out", shard_samples=SHARD)
    assert (report.samples, report.indexed) == (COUNT, COUNT)

    def rows(data: ps.Dataset) -> list[tuple[bytes, int]]:
        steps = data.map(ps.decode_image(crop=ps.resize_to(16))).batch(1).loader()
        return [(step["image"].numpy().tobytes(), int(step["label"].numpy()[0])) for step in steps]

    assert rows(ps.images(tmp_path / "out")) == rows(ps.images(tmp_path / "table")) == rows(dataset)


def test_mds_data_sets_are_prepared_as_the_folder_is(photos: Path, tmp_path: Path) -> None:
    names = sorted(photos.rglob("*.jpg"))
    classes = sorted({path.parent.name for path in names})
    rows = [[path.read_bytes(), classes.index(path.parent.name).to_bytes(8, "little")] for path in names]
    write_mds(tmp_path / "mds", [("x", "jpeg", None), ("y", "int", 8)], rows, shard_rows=10)
    report = ps.prepare(tmp_path / "mds", tmp_path / "out", shard_samples=SHARD)
    assert (report.samples, report.indexed) == (COUNT, COUNT)

    def samples(data: ps.Dataset) -> list[tuple[bytes, int]]:
        steps = data.map(ps.decode_image(crop=ps.resize_to(16))).batch(1).loader()
        return [(step["image"].numpy().tobytes(), int(step["label"].numpy()[0])) for step in steps]

    assert samples(ps.images(tmp_path / "out")) == samples(ps.images(tmp_path / "mds")) == samples(ps.image_folder(photos))
    index = ps.MemoryJpegIndex()
    index.load(tmp_path / "out")
    assert len(index) > 0
    with tarfile.open(min((tmp_path / "out").glob("*.tar"))) as tar:
        assert tar.getnames()[0] == "shard_00000_mds-0.jpg"


@pytest.mark.parametrize("also", [["cls"], ["JPG"], [".txt"], ["txt,json"], [""]])
def test_members_that_would_come_twice_are_refused(photos: Path, tmp_path: Path, also: list[str]) -> None:
    with pytest.raises(ValueError, match="`also`"):
        ps.prepare(photos, tmp_path / "out", also=also)
    with pytest.raises(ValueError, match="that does not begin with a point"):
        ps.prepare(photos, tmp_path / "out", name="..")


def test_a_loader_reads_what_was_prepared(photos: Path, whole: Path) -> None:
    def labels(dataset: ps.Dataset) -> list[int]:
        loader = dataset.map(ps.decode_image(crop=ps.resize_to(32), index=index)).batch(8).loader()
        return [int(label) for step in loader for label in step["label"].numpy()]

    index = ps.MemoryJpegIndex()
    assert index.load(whole) == COUNT
    assert labels(ps.webdataset(whole)) == labels(ps.image_folder(photos))


def test_shards_that_are_made_one_by_one_are_the_same(photos: Path, whole: Path, tmp_path: Path) -> None:
    plan = ps.Preparation(photos, tmp_path / "out", shard_samples=SHARD, threads=1)
    assert [(shard.number, shard.first, shard.end) for shard in plan.shards] == [(0, 0, 7), (1, 7, 14), (2, 14, 21), (3, 21, 24)]
    assert plan.shards[0].file == str(tmp_path / "out" / "data-000000.tar")
    run = ps.PrepareRun(plan)
    told: list[tuple[int, int]] = []
    for shard in reversed(run.missing()):
        elsewhere = ps.Preparation(photos, tmp_path / "out", shard_samples=SHARD)
        assert elsewhere.fingerprint == plan.fingerprint
        made = elsewhere.make(shard, progress=lambda done, of: told.append((done, of))).to_json()
        run.add(shard, ps.PrepareReport.from_json(made))
    report = run.finish()
    assert report.samples == COUNT
    assert json.loads(report.to_json())["tar_bytes"] == report.tar_bytes
    assert contents(tmp_path / "out") == contents(whole)
    assert told[-1] == (7, 7)
    assert all(plan.differences(shard.number) == [] for shard in plan.shards)
    assert ps.PrepareReport.from_json(report.to_json()) == report


@pytest.mark.parametrize("how", ["ctrl-c", "an exception"])
def test_what_is_stopped_goes_on(photos: Path, whole: Path, tmp_path: Path, how: str) -> None:
    told: list[int] = []

    def stop(done: int, of: int) -> None:
        assert threading.current_thread() is threading.main_thread()
        assert of == COUNT
        told.append(done)
        if how == "ctrl-c":
            signal.raise_signal(signal.SIGINT)
        else:
            raise ZeroDivisionError

    with pytest.raises(KeyboardInterrupt if how == "ctrl-c" else ZeroDivisionError):
        ps.prepare(photos, tmp_path / "out", shard_samples=SHARD, threads=1, progress=stop)
    assert len(told) == 1
    ps.prepare(photos, tmp_path / "out", shard_samples=SHARD)
    assert contents(tmp_path / "out") == contents(whole)


def test_mistakes_are_named(photos: Path, whole: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is inside the input"):
        ps.prepare(photos, photos / "out")
    with pytest.raises(ValueError, match="JPEG quality from 1 to 100"):
        ps.prepare(photos, tmp_path, quality=0)
    with pytest.raises(ps.Error, match="interval 8, and now it is 16"):
        ps.prepare(photos, whole, shard_samples=SHARD, interval=16)
    plan = ps.Preparation(photos, tmp_path / "out")
    with pytest.raises(ValueError, match="a shard from 0 to 0, found 1"):
        plan.make(1)


def test_labels_below_0_are_labels(photos: Path, tmp_path: Path) -> None:
    photo = next(photos.rglob("*.jpg")).read_bytes()
    labels = [-1, 0, None, -5]
    (tmp_path / "in").mkdir()
    with tarfile.open(tmp_path / "in" / "x.tar", "w") as tar:
        for number, label in enumerate(labels):
            for ending, content in (("jpg", photo), ("cls", b"" if label is None else str(label).encode())):
                if content:
                    info = tarfile.TarInfo(f"{number}.{ending}")
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
    ps.prepare(tmp_path / "in", tmp_path / "out")
    fields = [ps.WebDatasetField("image", "jpg"), ps.WebDatasetField("label", "cls", type="integer", required=False, default_value=7)]
    for folder in ("in", "out"):
        assert ps.webdataset(tmp_path / folder, fields=fields).labels().tolist() == [-1, 0, 7, -5]  # 7 where there is none, as in a batch


def test_what_is_left_out_of_the_input_is_said(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As loader() says it: warnings as those of Python, all notices as a property, and both by the program."""
    some = tmp_path / "some"
    some.mkdir()
    photo = next(photos.rglob("*.jpg")).read_bytes()
    (some / "1.jpg").write_bytes(photo)
    (some / "notes.txt").write_text("text")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ps.prepare(some, tmp_path / "out")
    assert ps.Preparation(some, tmp_path / "other").notices == [f"{some}: left out 1 .txt"]
    assert main(["prepare", str(some), str(tmp_path / "by-program")]) == 0
    assert f"penstock-prepare: {some}: left out 1 .txt" in capsys.readouterr().err
    (some / "2.picture").write_bytes(photo)
    with pytest.warns(UserWarning, match="left out 1 .picture, 1 .txt; of 2 files that were looked into, 1 is an image") as told:
        ps.prepare(some, tmp_path / "again")
    assert told[0].filename == __file__
    assert main(["prepare", str(some), str(tmp_path / "by-program-again"), "--quiet"]) == 0
    assert f"penstock-prepare: warning: {some}: left out 1 .picture" in capsys.readouterr().err
    assert ps.prepare(some, tmp_path / "sniffed", sniff=True).samples == 2
