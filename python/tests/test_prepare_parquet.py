"""penstock.prepare(..., format="parquet"): what pyarrow, datasets and a loader find in its files."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.__main__ import main

pq = pytest.importorskip("pyarrow.parquet")
pa = pytest.importorskip("pyarrow")

COUNT = 24
SHARD = 7

# json.dumps({"info": {"features": features.to_dict()}}), which datasets 5.2 writes for such Features.
ENDS = '"json": {"dtype": "string", "_type": "Value"}, "npy": {"dtype": "binary", "_type": "Value"}}}}'
NAMED = '{"info": {"features": {"image": {"_type": "Image"}, "label": {"names": [%s], "_type": "ClassLabel"}}}}'
UNNAMED = '{"info": {"features": {"image": {"_type": "Image"}, "label": {"dtype": "int64", "_type": "Value"}, ' + ENDS


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache = tmp_path_factory.mktemp("cache")
    ps.synthetic_images(COUNT, cache=cache)
    return next(cache.glob("images-*"))


@pytest.fixture(scope="module")
def whole(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same photographs in either format."""
    out = tmp_path_factory.mktemp("prepared")
    for form in ("tar", "parquet"):
        assert ps.prepare(photos, out / form, name="train", shard_samples=SHARD, format=form).samples == COUNT
    return {form: out / form for form in ("tar", "parquet")}


def members(folder: Path) -> list[tuple[str, bytes]]:
    found = []
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as tar:
            found += [(info.name, tar.extractfile(info).read()) for info in tar]  # type: ignore[union-attr]
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".penstock-index"}


def test_pyarrow_reads_what_the_tar_shards_hold(whole: dict[str, Path]) -> None:
    names = [f"train-{number:05}-of-00004.parquet" for number in range(4)]
    assert sorted(path.name for path in whole["parquet"].iterdir() if not path.name.startswith(".")) == names
    table = pq.read_table(whole["parquet"])  # the folder: what lies beside the files is hidden
    rows = table.to_pylist()
    found = [(row["image"]["path"], row["image"]["bytes"], row["label"]) for row in rows]
    packed = members(whole["tar"])
    jpegs = [member for member in packed if member[0].endswith(".jpg")]
    labels = [int(text) for name, text in packed if name.endswith(".cls")]
    assert found == [(name, jpeg, label) for (name, jpeg), label in zip(jpegs, labels)]
    assert table.schema.types == [pa.struct({"bytes": pa.binary(), "path": pa.string()}), pa.int64()]


def test_the_files_are_as_datasets_writes_them(photos: Path, whole: dict[str, Path]) -> None:
    classes = sorted({path.parent.name for path in photos.rglob("*.jpg")})
    named = ", ".join(f'"{name}"' for name in classes)
    for path in whole["parquet"].glob("*.parquet"):
        file = pq.ParquetFile(path, page_checksum_verification=True)
        file.read()  # with the pages' checksums
        metadata = file.metadata
        assert metadata.metadata == {b"huggingface": (NAMED % named).encode()}
        assert metadata.format_version == "2.6"
        assert metadata.created_by == "penstock version 1"
        for number in range(metadata.num_columns):
            column = metadata.row_group(0).column(number)
            assert (column.compression, column.encodings) == ("UNCOMPRESSED", ("PLAIN", "RLE"))
            assert column.has_offset_index
            assert column.has_column_index == (column.path_in_schema != "image.bytes")  # as with pyarrow
            assert column.statistics.null_count == 0
            assert column.dictionary_page_offset is None
        labels = file.read(["label"])["label"].to_pylist()
        label = metadata.row_group(0).column(2).statistics
        assert (label.min, label.max) == (min(labels), max(labels))
        path_of = metadata.row_group(0).column(1).statistics
        assert path_of.min == min(row["path"] for row in file.read(["image.path"])["image"].to_pylist())
        schema = file.schema
        assert [(schema.column(k).path, schema.column(k).max_definition_level) for k in range(3)] == [
            ("image.bytes", 2), ("image.path", 2), ("label", 1)]


def test_row_groups_have_a_hundred_rows_and_filters_find_theirs(tmp_path: Path, photos: Path) -> None:
    photo = min(photos.rglob("*.jpg")).read_bytes()
    with tarfile.open(tmp_path / "in.tar", "w") as tar:
        for number in range(230):
            parts = {"jpg": photo, "cls": str(number // 10 - 3).encode(), "json": json.dumps({"n": number}).encode()}
            if number % 5 == 0:
                parts["npy"] = bytes([255, number])
            if number == 7:
                del parts["cls"], parts["json"]
            for ending, content in parts.items():
                info = tarfile.TarInfo(f"{number:04}.{ending}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    ps.prepare(tmp_path / "in.tar", tmp_path / "out", also=["json", "txt", "npy"], format="parquet")
    path = tmp_path / "out" / "data-00000-of-00001.parquet"
    metadata = pq.read_metadata(path)
    assert [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)] == [100, 100, 30]
    assert metadata.metadata == {b"huggingface": UNNAMED.encode()}  # no column for txt, which no sample has
    table = pq.read_table(path)
    assert table.schema.names == ["image", "label", "json", "npy"]
    assert table["label"].to_pylist() == [None if n == 7 else n // 10 - 3 for n in range(230)]
    assert table["json"].to_pylist() == [None if n == 7 else json.dumps({"n": n}) for n in range(230)]
    assert table["npy"].to_pylist() == [bytes([255, n]) if n % 5 == 0 else None for n in range(230)]
    assert metadata.row_group(0).column(2).statistics.null_count == 1
    assert pq.read_table(path, filters=[("label", "==", 12)]).num_rows == 10
    paths = pq.read_table(path, filters=[("label", "<", -2)])["image"].to_pylist()
    assert [row["path"] for row in paths] == [f"{n:04}.jpg" for n in range(10) if n != 7]


def test_a_loader_delivers_what_it_does_of_tar_shards(whole: dict[str, Path]) -> None:
    def digest(folder: Path) -> str:
        index = ps.MemoryJpegIndex()
        assert index.load(folder) == COUNT
        crop = ps.decode_image(crop=ps.random_resized_crop(32), index=index)
        loader = ps.images(folder).map(crop).shuffle(seed=3).batch(8).loader(digest=True)
        for _ in loader:
            pass
        return loader.digest

    assert digest(whole["parquet"]) == digest(whole["tar"]) != ""
    assert ps.images(whole["parquet"]).class_names == ps.parquet(whole["parquet"]).class_names != ()


def test_a_run_goes_on_after_a_kill(photos: Path, whole: dict[str, Path], tmp_path: Path) -> None:
    program = (
        "import os, signal, sys, penstock as ps\n"
        "plan = ps.Preparation(sys.argv[1], sys.argv[2], name='train', shard_samples=7, format='parquet')\n"
        "run = ps.PrepareRun(plan)\n"
        "run.add(run.missing()[0], plan.make(run.missing()[0]))\n"
        "plan.make(run.missing()[-1])\n"  # which is not recorded
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", program, photos, tmp_path / "out"], check=False)
        assert killed.returncode == -9
    report = ps.prepare(photos, tmp_path / "out", name="train", shard_samples=SHARD, format="parquet")
    assert report.samples == COUNT
    assert contents(tmp_path / "out") == contents(whole["parquet"])


def test_shards_that_are_made_one_by_one_are_the_same(photos: Path, whole: dict[str, Path], tmp_path: Path) -> None:
    options: dict[str, Any] = {"name": "train", "shard_samples": SHARD, "format": "parquet"}
    plan = ps.Preparation(photos, tmp_path / "out", **options)
    assert plan.shards[3].file == str(tmp_path / "out" / "train-00003-of-00004.parquet")
    run = ps.PrepareRun(plan)
    for shard in reversed(run.missing()):
        elsewhere = ps.Preparation(photos, tmp_path / "out", **pickle.loads(pickle.dumps(options)))
        run.add(shard, ps.PrepareReport.from_json(elsewhere.make(shard).to_json()))
    assert run.finish().samples == COUNT
    assert contents(tmp_path / "out") == contents(whole["parquet"])
    assert all(plan.differences(shard.number) == [] for shard in plan.shards)


def test_the_program_takes_the_format(photos: Path, whole: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["prepare", str(photos), str(tmp_path / "out"), "--name", "train", "--shard-samples", str(SHARD), "--format"]
    assert main([*flags, "parquet"]) == 0
    assert contents(tmp_path / "out") == contents(whole["parquet"])
    assert main([*flags, "tar"]) == 1
    assert 'was made with format "parquet", and now it is "tar"' in capsys.readouterr().err


def test_mistakes_are_named(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="format must be one of 'tar', 'parquet', found 'arrow'"):
        ps.prepare(photos, tmp_path / "out", format="arrow")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="other columns than the image and the label in `also`"):
        ps.prepare(photos, tmp_path / "out", format="parquet", also=["label"])
    beyond = tmp_path / "beyond"
    beyond.mkdir()
    photo = min(photos.rglob("*.jpg")).read_bytes()
    features = {"image": {"_type": "Image"}, "label": {"names": ["cat"], "_type": "ClassLabel"}}
    table = pa.table({"image": pa.array([{"bytes": photo, "path": "a.jpg"}] * 3), "label": [0, -1, 1]})
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(table, beyond / "a.parquet")
    with pytest.raises(ps.DataError, match="a label below 1, as there are names of classes, and found 1"):
        ps.prepare(beyond, tmp_path / "out", format="parquet")
    report = ps.prepare(beyond, tmp_path / "skipped", format="parquet", skip_bad=True)
    assert (report.samples, report.left_out) == (2, 1)


def test_datasets_opens_it(photos: Path, whole: dict[str, Path], tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    np = pytest.importorskip("numpy")
    image = pytest.importorskip("PIL.Image")
    classes = sorted({path.parent.name for path in photos.rglob("*.jpg")})
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=classes)})
    cache = str(tmp_path / "cache")
    for found in (
        datasets.load_dataset("parquet", data_dir=str(whole["parquet"]), split="train", cache_dir=cache),
        datasets.load_dataset(str(whole["parquet"]), split="train", cache_dir=cache),
    ):
        assert found.features == features
        assert found.num_rows == COUNT
        jpegs = [content for name, content in members(whole["tar"]) if name.endswith(".jpg")]
        for row, jpeg in zip(found, jpegs):
            assert (np.asarray(row["image"]) == np.asarray(image.open(io.BytesIO(jpeg)))).all()
    # The metadata are the bytes that datasets writes itself.
    own = tmp_path / "own.parquet"
    found.to_parquet(own)
    key = b"huggingface"
    path = min(whole["parquet"].glob("*.parquet"))
    assert pq.read_metadata(path).metadata[key] == pq.read_metadata(own).metadata[key]
    assert pq.read_schema(path).remove_metadata() == pq.read_schema(own).remove_metadata()
    others = {"image": datasets.Image(), "label": datasets.Value("int64"), "json": datasets.Value("string"), "npy": datasets.Value("binary")}
    empty = datasets.Dataset.from_dict({name: [] for name in others}, features=datasets.Features(others))
    empty.to_parquet(own)
    assert pq.read_metadata(own).metadata[key].decode() == UNNAMED


def test_others_read_it(whole: dict[str, Path]) -> None:
    pattern = os.fspath(whole["parquet"] / "*.parquet")
    labels = pq.read_table(whole["parquet"])["label"].to_pylist()
    polars = pytest.importorskip("polars")
    table = polars.read_parquet(pattern)
    assert table["label"].to_list() == labels
    assert table["image"].struct.field("bytes").to_list() == [
        row["bytes"] for row in pq.read_table(whole["parquet"])["image"].to_pylist()
    ]
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql(f"select label, image.path, octet_length(image.bytes) from '{pattern}'").fetchall()
    assert sorted(row[0] for row in rows) == sorted(labels)
