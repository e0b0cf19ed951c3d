"""docs/python.md is true: its code runs, from the first line to the last, on a folder of photographs."""

from __future__ import annotations

import json
import importlib.util
import re
import shutil
from pathlib import Path

import pytest
from mds_files import write_mds
from tfrecords import example, sequence_example, write_tfrecord

import penstock as ps

TUTORIAL = Path(__file__).parents[2] / "docs" / "python.md"


def blocks() -> list[str]:
    found = re.findall(r"^```python\n(.*?)^```$", TUTORIAL.read_text(), re.MULTILINE | re.DOTALL)
    assert len(found) >= 7
    return found


def test_the_code_runs_in_its_order(images, tmp_path, monkeypatch, capsys):
    for folder in ("photos", "masks"):
        (tmp_path / folder).symlink_to(images)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate(blocks()):
        if "penstock.torch" in block:
            if importlib.util.find_spec("torch") is None:
                continue
            import torch

            names["model"] = lambda image: image.float().flatten(1)[:, :4]
            names["criterion"] = torch.nn.functional.cross_entropy
            crop = ps.decode_image(crop=ps.random_resized_crop(32))
            names["plan_that_ends_in_batch"] = ps.image_folder("photos").seed(1).shuffle().map(crop).batch(8)
        exec(compile(block.replace("90", "2"), f"block {number} of {TUTORIAL}", "exec"), names)
    out = capsys.readouterr().out
    assert "40 ['" in out and "1 (40, 224, 224, 3)" in out


class Writer:
    """What torch.utils.tensorboard has, without the package."""

    def __init__(self) -> None:
        self.scalars: dict[str, dict[str, float]] = {}

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        self.scalars[tag] = {tag: float(value)}

    def add_scalars(self, tag: str, values: dict[str, float], step: int) -> None:
        self.scalars[tag] = {name: float(value) for name, value in values.items()}


def lines_of_torch() -> list[tuple[str, str]]:
    section = TUTORIAL.read_text().split("## From torch's DataLoader")[1].split("\n## ")[0]
    rows = [row for row in section.splitlines() if row.startswith("|")][2:]
    found = [re.fullmatch(r"\| `([^`]+)` \| `([^`]+)` \|.*\|", row) for row in rows]
    assert all(found) and len(found) == 16
    return [match.groups() for match in found]


def samples_of(made, names) -> int | None:
    """How many samples a loader, a plan or a data set has; a torch loader is run, and so is one of ours."""
    import torch

    if isinstance(made, ps.Dataset):
        return made.samples
    if isinstance(made, (torch.utils.data.DataLoader, names["Loader"])):
        return sum(len(next(iter(batch.values())) if isinstance(batch, dict) else batch) for batch in made)
    return len(made) if hasattr(made, "__len__") else None


def test_each_line_of_torchs_loader_runs_and_so_does_ours(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    import itertools

    import numpy as np
    from torch.utils import data as of_torch

    monkeypatch.chdir(tmp_path)
    (prelude,) = [block for block in blocks() if "DataLoader as Loader" in block]
    names: dict[str, object] = {"ps": ps, "np": np, "itertools": itertools, "writer": Writer()}
    names |= {name: getattr(of_torch, name) for name in of_torch.__all__}
    exec(compile(prelude, "the beginning", "exec"), names)
    compared = 0
    for theirs, ours in lines_of_torch():
        made = []
        for line in (theirs, ours):
            exec(f"made = {line}" if not re.match(r"[\w, ]+ = ", line) else f"{line}\nmade = valid", names)
            made.append(samples_of(names["made"], names))
        if "DistributedSampler" in theirs:
            assert made == [10, 40]  # a quarter, and all in a single process
        elif "islice" in theirs:
            assert made == [3, 24]  # batches, and samples
        elif "collate_fn" in theirs or None not in made:
            assert made[0] == made[1], ours
            compared += 1
    assert compared == 12
    writer = names["writer"]
    assert isinstance(writer, Writer) and set(writer.scalars["input"]) == {"samples_per_s", "stall"}
    assert (tmp_path / "batch.png").exists() and (tmp_path / "0.png").exists()


def test_the_readmes_code_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    text = (TUTORIAL.parents[1] / "README.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})
    assert capsys.readouterr().out.splitlines()[-1] == "3 (8, 224, 224, 3)"


def test_the_code_of_tokens_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (TUTORIAL.parent / "tokens.md").read_text()
    names: dict[str, object] = {}
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)):
        exec(compile(block, f"block {number} of tokens.md", "exec"), names)
    out = capsys.readouterr().out
    assert out.startswith("4 documents") and "(2, 16) (2, 16)" in out and "PackSummary(rows=3" in out and "0 64 " in out


def test_the_code_of_tfrecords_runs(images, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    photo = next(images.rglob("*.jpg")).read_bytes()
    sides = [f"image/object/bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax")]
    detection = [example({"image/encoded": [photo], **{side: [0.25] * objects for side in sides}}) for objects in (3, 0)]
    texts = [example({"words": words}) for words in ([b"one", b"more"], [b"another"])]
    clips = [sequence_example({"label": [n]}, {"pose": [[0.5] * 4] * n}) for n in (5, 2)]
    for name, records in {"detection": detection, "texts": texts, "clips": clips}.items():
        (tmp_path / name).mkdir()
        write_tfrecord(tmp_path / name / "a.tfrecord", records)
    text = (TUTORIAL.parent / "tfrecords.md").read_text()
    names: dict[str, object] = {}
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)):
        exec(compile(block, f"block {number} of tfrecords.md", "exec"), names)
    assert capsys.readouterr().out.splitlines() == [
        "(2, 64, 64, 3) (2, 10, 4) [3 0]",
        "words u8 [?] word_bytes i64 [?]",
        "['one', 'another']",
        "[5 2] (2, 16, 4) [5 2]",
    ]


def test_the_programs_about_parquet_files_run_as_they_are(tmp_path, monkeypatch, capsys, images, hub):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    photo = next(images.rglob("*.jpg")).read_bytes()
    features = {"image": {"_type": "Image"}, "label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}
    image = pa.array([{"bytes": photo, "path": None}] * 8, type=pa.struct({"bytes": pa.binary(), "path": pa.string()}))
    pets = pa.table({"image": image, "label": [0, 1] * 4})
    (tmp_path / "pets").mkdir()
    pq.write_table(pets.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})}), "pets/a.parquet")
    pq.write_table(pa.table({"image": image, "caption": ["a", None] * 4, "embedding": [[1.0, 2.0, 3.0, 4.0]] * 8,
                             "score": [1, None] * 4, "words": [["a", "b"], []] * 4}), "captions.parquet")
    for folder, revisions in (("data", ("main", "v1.0")), ("default/train", ("refs/convert/parquet",))):
        (tmp_path / "hub" / folder).mkdir(parents=True)
        pq.write_table(pets, tmp_path / "hub" / folder / "train-0.parquet")
        for revision in revisions:
            hub.push(tmp_path / "hub", revision)
    names_of_files = [f"{kind}/{number}.jpg" for kind in ("cat", "dog") for number in range(2)]
    for name in names_of_files:
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "photos" / name).write_bytes(photo)
    pq.write_table(pa.table({"file": names_of_files, "score": [1.0, 2.0, 3.0, 4.0]}), "meta.parquet")
    Path("scans.csv").write_text("scan,label,patient\n" + "".join(f"photos/{name},0,{number % 2}\n" for number, name in enumerate(names_of_files)))
    pq.write_table(pa.table({"patient": [1, 0], "age": [50, 60]}), "patients.parquet")
    text = (TUTORIAL.parent / "tables.md").read_text()
    names: dict[str, object] = {}
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)):
        exec(compile(block, f"block {number} of tables.md", "exec"), names)
        if "hf://" in block:
            assert [field.name for field in names["train"].fields] == ["image", "label"] and len(names["train"]) == 8
    assert [field.name for field in names["scored"].fields] == ["image", "label", "score"] and len(names["scored"]) == 4
    assert [field.name for field in names["aged"].fields] == ["image", "label", "patient", "age"] and len(names["aged"]) == 4
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("(8, 224, 224, 3) [")
    assert out[1:] == ["['cat', 'dog']",
                       "image u8 [?] text u8 [?] vector f64 [4] score i64 [] words u8 [?] word_bytes i64 [?]",
                       "1 ['a', 'a', 'c']"]


def test_the_program_about_csv_files_runs(tmp_path, monkeypatch, images):
    monkeypatch.chdir(tmp_path)
    photo = next(images.rglob("*.jpg")).read_bytes()
    (tmp_path / "dogs" / "train").mkdir(parents=True)
    for name in ("a1", "b2"):
        (tmp_path / "dogs" / "train" / f"{name}.jpg").write_bytes(photo)
    (tmp_path / "dogs" / "train.csv").write_text("id,breed,age\na1,pug,3\nb2,beagle,7\na1,pug,4\n")
    text = (TUTORIAL.parent / "images.md").read_text()
    names: dict[str, object] = {"ps": ps}
    exec(re.search(r"^```python\n(# frame = pandas.read_csv.*?)^```$", text, re.MULTILINE | re.DOTALL)[1], names)
    step = next(names["plan"].loader())
    assert step["image"].shape == (3, 224, 224, 3) and names["dogs"].class_names == ["beagle", "pug"]
    assert sorted(zip(step["label"].numpy().tolist(), step["age"].numpy().tolist())) == [(0, 7), (1, 3), (1, 4)]


def test_the_programs_about_mds_run_as_they_are(tmp_path, monkeypatch, capsys, images):
    monkeypatch.chdir(tmp_path)
    photo = next(images.rglob("*.jpg")).read_bytes()
    write_mds(tmp_path / "pets" / "train", [("x", "jpeg", None), ("y", "int", 8)], [[photo, bytes([i % 2, *[0] * 7])] for i in range(8)])
    shutil.copytree(TUTORIAL.parents[1] / "tests/source/mds/files/litdata_of_dict", tmp_path / "boxes")
    text = (TUTORIAL.parent / "mds.md").read_text()
    names: dict[str, object] = {}
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)):
        exec(compile(block, f"block {number} of mds.md", "exec"), names)
    assert capsys.readouterr().out.startswith("(8, 224, 224, 3) [")
    assert len(ps.images("pets/train")) == 8
    for line in re.findall(r"`(ps\.mix\(.*?\))` ", text):
        for folder in "ab":
            write_mds(tmp_path / folder, [("x", "int", 8)], [[bytes(8)]])
        assert len(eval(line).fields) == 1
    for encoding, says in re.findall(r"^\| `(int|ndarray:\S+|str|bytes)`(?! that are).*? \| (.*?) \|$", text, re.MULTILINE):
        write_mds(tmp_path / "c", [("c", encoding, {"int": 8, "ndarray:float32:3,4": 48}.get(encoding))], [[bytes(48 if ":" in encoding else 8)]])
        made = str(ps.mds("c", index_location="memory").fields[0]).split(" ", 1)[1]
        assert made in says or (encoding, made) == ("int", "i64 []"), (encoding, made, says)


def test_the_fields_of_tfrecords_are_what_the_page_says(tmp_path):
    write_tfrecord(tmp_path / "a.tfrecord", [])
    text = (TUTORIAL.parent / "tfrecords.md").read_text()
    rows = re.findall(r"^\| `.*? \| `\((.*?)\)` \| (.*?) \|$", text, re.MULTILINE)
    assert len(rows) == 10
    for number, (arguments, says) in enumerate(rows):
        sequence = ", sequence=True" if number >= 6 else ""
        field = eval(f"ps.ExampleField({arguments}{sequence})")
        made = [str(one).split(" ", 1)[1] for one in ps.tfrecord(tmp_path, fields=[field], index_location="memory").fields]
        assert re.findall(r"\b[uif]\d+ \[.*?\]", says) == made, arguments


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\(([^)#:]+)\)", TUTORIAL.read_text()))))
def test_what_it_points_to_is_there(path):
    assert (TUTORIAL.parent / path).exists()


def test_what_it_says_of_penstock_exists():
    for name in re.findall(r"\bps\.(\w+)", TUTORIAL.read_text()):
        assert hasattr(ps, name), name
