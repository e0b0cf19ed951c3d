"""https:// and http:// URLs, read from a web server: the same rows as of the same files on a disk."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import run_python
from mds_files import write_mds
from tfrecords import example, write_tfrecord
from web_server import Answer, Request, Web

import penstock as ps
from penstock.__main__ import main

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

SECRET = "Signature=aSecretOfTheTests"


@pytest.fixture
def files(tmp_path: Path, images: Path) -> Path:
    """Photographs, alone and in tar shards, TFRecord and Parquet files, and tables of them."""
    folder = tmp_path / "files"
    photos = []
    for number, path in enumerate(sorted(images.rglob("*.jpg"))[::3]):
        target = folder / "photos" / f"{number:02}.jpg"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
        photos.append(target)
    for shard in range(2):
        with tarfile.open(folder / f"{shard}.tar", "w") as tar:
            for i, path in enumerate(photos[shard::2]):
                for ending, data in (("jpg", path.read_bytes()), ("cls", str(i % 3).encode())):
                    member = tarfile.TarInfo(f"{shard}-{i:03}.{ending}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    content = [path.read_bytes() for path in photos]
    write_tfrecord(folder / "a.tfrecord", [example({"image/encoded": [data], "image/class/label": [i % 5]}) for i, data in enumerate(content)])
    labels = pa.array([i % 4 for i in range(len(photos))], pa.int64())
    pq.write_table(pa.table({"image": content, "label": labels}), folder / "a.parquet", row_group_size=4)
    names = [f"photos/{path.name}" for path in photos]
    pq.write_table(pa.table({"file": names, "label": labels}), folder / "table.parquet")
    (folder / "table.csv").write_text("file,label\n" + "".join(f"{name},{i % 4}\n" for i, name in enumerate(names)))
    write_mds(folder / "mds", [("image", "bytes", None), ("label", "int64", 8)],
              [[data, np.int64(i).tobytes()] for i, data in enumerate(content)], 5)
    return folder


@pytest.fixture
def web(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    for name in ("NETRC", "PENSTOCK_OBJECT_CACHE", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    with Web(files) as server:
        yield server


def plan_of(data: ps.Dataset) -> ps.Dataset:
    return data.map(ps.decode_image(crop=ps.random_resized_crop(32))).shuffle(seed=1).batch(4)


def digest_of(plan: ps.Dataset, **options) -> str:
    loader = plan.loader(digest=True, **options)
    for _ in loader:
        pass
    return loader.digest


def fingerprint_of(data: ps.Dataset) -> str:
    return json.loads(data.to_json())["operations"][0]["fingerprint"]


def names_in(files: Path) -> list[str]:
    return [f"photos/{path.name}" for path in sorted((files / "photos").iterdir())]


# How each kind of data is opened, at a folder or at a URL, with a text behind each name.
KINDS = {
    "braces": lambda at, query, files: ps.webdataset(f"{at}/{{0..1}}.tar{query}"),
    "list": lambda at, query, files: ps.webdataset([f"{at}/0.tar{query}", f"{at}/1.tar{query}"]),
    "images": lambda at, query, files: ps.images(f"{at}/{{0,1}}.tar{query}"),
    "tfrecord": lambda at, query, files: ps.tfrecord(f"{at}/a.tfrecord{query}"),
    "parquet": lambda at, query, files: ps.images(f"{at}/a.parquet{query}"),
    "table": lambda at, query, files: ps.parquet(f"{at}/a.parquet{query}", columns=["image", "label"]),
    "files": lambda at, query, files: ps.files([f"{at}/{name}{query}" for name in names_in(files)], field="image",
                                              labels=list(range(len(names_in(files))))),
    "root": lambda at, query, files: ps.files([f"{name}{query}" for name in names_in(files)], field="image", root=at,
                                              labels=list(range(len(names_in(files))))),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("query", ["", SECRET])
def test_rows_are_those_of_the_same_files_on_a_disk(web, files, kind, query, tmp_path):
    web.query = query
    local = KINDS[kind](files, "", files)
    remote = KINDS[kind](web.url, f"?{query}" if query else "", files)
    assert len(remote) == len(local) > 0 and fingerprint_of(remote) == fingerprint_of(local)
    wanted = digest_of(plan_of(local))
    assert digest_of(plan_of(remote), threads=1) == digest_of(plan_of(remote), threads=4) == wanted
    # A plan has the whole URLs, so that it can be opened elsewhere.
    text = plan_of(remote).to_json()
    assert digest_of(ps.Dataset.from_json(text)) == wanted
    assert (SECRET in text) == bool(query)
    loader = plan_of(remote).loader()
    names = [str(name) for step in loader for name in step.names()]
    assert names[0].find(" in http://127.0.0.1:") > 0
    shown = [str(loader.state_dict()), str(loader.report()), str(names), fingerprint_of(remote), str(plan_of(remote)), repr(remote)]
    shown += [str(path) for path in (tmp_path / "cache").rglob("*")]
    assert SECRET not in "".join(shown)


def test_a_state_goes_on_from_a_disk_at_a_url_with_another_signature(web, files):
    code = """
import json, sys
import penstock as ps
plan = ps.webdataset(sys.argv[1]).map(ps.decode_image(crop=ps.random_resized_crop(32))).shuffle(seed=1).batch(4)
loader = plan.loader(digest=True, threads=int(sys.argv[2]))
if len(sys.argv) > 3:
    loader.load_state_dict(sys.argv[3])
for step in loader:
    if len(sys.argv) == 3 and step.number == 1:
        break
print(json.dumps(loader.state_dict()) if len(sys.argv) == 3 else loader.digest)
"""
    wanted = digest_of(plan_of(ps.webdataset(files / "{0..1}.tar")))
    web.query = SECRET
    for first in (files / "{0..1}.tar", f"{web.url}/{{0..1}}.tar?{SECRET}"):
        web.query = SECRET
        state = run_python(code, str(first), "4").stdout.strip()
        assert SECRET not in state
        web.query = "another"
        assert run_python(code, f"{web.url}/{{0..1}}.tar?another", "1", state).stdout.strip() == wanted


def test_the_files_of_a_table(web, files):
    def rows(data: ps.Dataset) -> str:
        return digest_of(plan_of(data))

    wanted = rows(ps.images_from(files / "table.csv"))
    assert rows(ps.images_from(f"{web.url}/table.csv")) == wanted
    assert rows(ps.images_from(f"{web.url}/table.parquet")) == wanted
    assert rows(ps.images_from(files / "table.csv", root=web.url)) == wanted
    web.query = SECRET
    lines = [line.split(",") for line in (files / "table.csv").read_text().splitlines()[1:]]
    (files / "signed.csv").write_text("file,label\n" + "".join(f"{web.url}/{name}?{SECRET},{label}\n" for name, label in lines))
    data = ps.images_from(f"{web.url}/signed.csv?{SECRET}")
    assert rows(data) == wanted == digest_of(ps.Dataset.from_json(plan_of(data).to_json()))
    stems = "file,label\n" + "".join(f"{web.url}/{name.removesuffix('.jpg')}?{SECRET},{label}\n" for name, label in lines)
    (files / "stems.csv").write_text(stems)
    assert rows(ps.images_from(files / "stems.csv", ending=".jpg")) == wanted
    with pytest.raises(ps.Error) as refused:
        ps.images_from(f"{web.url}/table.csv?{SECRET}", path="nothing")
    assert "nothing" in str(refused.value) and SECRET not in str(refused.value)
    with pytest.raises(ValueError, match="has a '\\?'") as refused:
        ps.images_from(files / "table.csv", root=f"{web.url}/?{SECRET}")
    assert SECRET not in str(refused.value)


def test_a_data_set_of_mosaicml_needs_no_list(web, files):
    data = ps.mds(f"{web.url}/mds", columns=["image", "label"])
    local = ps.mds(files / "mds", columns=["image", "label"])
    assert fingerprint_of(data) == fingerprint_of(local) and digest_of(plan_of(data)) == digest_of(plan_of(local))


def test_indexes_beside_shards_and_of_the_last_opening_are_used(web, files):
    ps.webdataset(f"{web.url}/0.tar")
    web.requests.clear()
    ps.webdataset(f"{web.url}/0.tar")
    assert [(r.path, r.headers.get("range")) for r in web.requests] == [("/0.tar", "bytes=0-0")]


def test_a_cache_on_a_disk_keeps_what_was_read(web, files, tmp_path, monkeypatch):
    web.query = SECRET
    monkeypatch.setenv("PENSTOCK_OBJECT_CACHE", str(tmp_path / "objects"))
    plan = plan_of(KINDS["braces"](web.url, f"?{SECRET}", files))
    wanted = digest_of(plan)
    web.requests.clear()
    assert digest_of(plan) == wanted and not web.requests
    kept = [path.read_bytes() for path in (tmp_path / "objects").rglob("*") if path.is_file()]
    assert kept and not any(SECRET.encode() in content for content in kept)


def test_failures_that_pass_change_no_row(web, files):
    wanted = digest_of(plan_of(KINDS["braces"](files, "", files)))
    data = KINDS["braces"](web.url, "", files)
    seen: dict[tuple[str, str], int] = {}

    def fails_once(request: Request) -> Answer | None:
        key = (request.path, request.headers.get("range", ""))
        seen[key] = seen.get(key, 0) + 1
        return Answer(503) if seen[key] == 1 and len(seen) % 3 == 0 else None

    web.instead = fails_once
    assert digest_of(plan_of(data)) == wanted
    assert any(count > 1 for count in seen.values())


def test_a_row_that_cannot_be_read_is_a_fault_without_the_signature(web, files):
    web.query = SECRET
    data = KINDS["files"](web.url, f"?{SECRET}", files)
    web.query = "a new one"
    loader = plan_of(data).loader(on_fault="mask")
    for _ in loader:
        pass
    text = str(loader.report())
    assert "denied access (status 403)" in text and "/photos/0" in text and SECRET not in text


def test_a_server_without_ranges_gives_whole_files(web, files):
    web.has_ranges = False
    assert digest_of(plan_of(KINDS["files"](web.url, "", files))) == digest_of(plan_of(KINDS["files"](files, "", files)))
    assert len(ps.images_from(f"{web.url}/table.csv")) == len(names_in(files))
    for kind in ("braces", "tfrecord", "parquet"):
        with pytest.raises(ps.Error, match="does not read ranges, it gives files as a whole: download the file"):
            KINDS[kind](web.url, "", files)


def test_shards_are_prepared_from_a_server(web, files, tmp_path, capsys):
    web.query = SECRET
    out = tmp_path / "out"
    assert main(["prepare", f"{web.url}/{{0..1}}.tar?{SECRET}", str(out), "--shard-samples", "8"]) == 0
    assert len(ps.images(out)) == len(names_in(files))
    shown = capsys.readouterr()
    assert SECRET not in shown.err + shown.out
    assert not any(SECRET.encode() in path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert main(["prepare", f"{web.url}/{{0..1}}.tar?{SECRET}", str(out), "--shard-samples", "8"]) == 0  # goes on, finds all
    assert main(["prepare", str(files / "photos"), f"{web.url}/out"]) != 0
    assert "nothing is written to web servers" in capsys.readouterr().err
    flags = ["--crop", "32", "--batch", "4", "--seed", "1", "--digest", "--json", "-"]
    digests = []
    for path in (str(files / "{0..1}.tar"), f"{web.url}/{{0..1}}.tar?{SECRET}"):
        capsys.readouterr()
        assert main(["throughput", path, *flags]) == 0
        digests.append(json.loads(capsys.readouterr().out)["digest"])
    assert digests[0] == digests[1]


def test_names_as_they_stand_in_urls(web, files):
    for name, written in (("a b", "a b"), ("a b", "a%20b"), ("größe", "größe"), ("100%", "100%25"), ("a#b?c", "a%23b%3Fc"), ("[x]+&=", "[x]+&=")):
        (files / f"{name}.tar").write_bytes((files / "0.tar").read_bytes())
        assert len(ps.webdataset(f"{web.url}/{written}.tar")) > 0, written
    with pytest.raises(ValueError, match="two different texts behind its '\\?'"):
        ps.files([f"{web.url}/a?1", f"{web.url}/a?2"])
    with pytest.raises(ValueError, match="all paths are http:// or none is"):
        ps.files([f"{web.url}/a", "/b"])
    with pytest.raises(ps.Error, match="web servers give no list of their files; name each file"):
        ps.images(f"{web.url}/photos")
    with pytest.raises(ValueError, match="did you mean https://host/a"):
        ps.webdataset(Path("https://host/a.tar"))


def test_files_of_several_servers_travel(web, files):
    names = names_in(files)
    other = web.url.replace("127.0.0.1", "localhost")
    data = ps.files([f"{(web.url, other)[i % 2]}/{name}" for i, name in enumerate(names)])
    wanted = digest_of(plan_of(ps.files([files / name for name in names])))
    assert digest_of(plan_of(data)) == wanted
    assert digest_of(ps.Dataset.from_json(plan_of(data).to_json())) == wanted


def test_where_a_server_has_no_versions_sizes_are_compared(web, files):
    web.instead = lambda request: Answer(200, b"first")
    loader = ps.files([f"{web.url}/a.jpg"]).map(ps.pad("image", 8)).batch(1).loader(threads=1)
    for _ in range(2):
        assert bytes(loader.batch_at(0)["image"].numpy()[0]).rstrip(b"\0") == b"first"
    web.instead = lambda request: Answer(200, b"longer")
    with pytest.raises(ps.DataError, match="was changed after it had been read first"):
        loader.batch_at(0)
