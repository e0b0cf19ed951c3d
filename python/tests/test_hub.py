"""hf:// paths, read from a stand-in for the Hugging Face Hub: the same rows as of the same files on a disk."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import run_python
from hub_server import TOKEN, Answer, Request
from tfrecords import example, write_tfrecord

import penstock as ps
from penstock.__main__ import main

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROOT = "hf://datasets/owner/name"


def write_table(path: Path, first: int, count: int = 40, **options) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(
        {
            "text": pa.array([f"row {i} " * (1 + i % 5) for i in range(first, first + count)]),
            "number": pa.array(range(first, first + count), pa.int64()),
        }
    )
    pq.write_table(table, path, row_group_size=16, data_page_size=256, write_batch_size=8, **options)


@pytest.fixture
def tables(tmp_path) -> Path:
    """A data set as the Hub has them: a card, and tables in folders."""
    folder = tmp_path / "files"
    for part in range(5):
        write_table(folder / "data" / f"train-{part:05}-of-00005.parquet", 40 * part)
    (folder / "data" / "README.md").write_text("the tables")
    (folder / "README.md").write_text("the card")
    (folder / ".gitattributes").write_text("*.parquet filter=lfs")
    return folder


def plan_of(data: ps.Dataset) -> ps.Dataset:
    return data.map(ps.pad("text", 64)).shuffle(seed=3).batch(16)


def digest_of(data: ps.Dataset, threads: int = 2, **options) -> str:
    loader = plan_of(data).loader(digest=True, threads=threads, **options)
    for _ in loader:
        pass
    return loader.digest


def fingerprint_of(data: ps.Dataset) -> str:
    return json.loads(data.to_json())["operations"][0]["fingerprint"]


def numbers_of(data: ps.Dataset) -> list[int]:
    return [int(n) for step in data.map(ps.pad("text", 64)).batch(7).loader() for n in np.asarray(step["number"])]


def test_rows_are_those_of_the_same_files_on_a_disk(hub, tables):
    commit = hub.push(tables)
    local = ps.parquet(tables / "data")
    wanted = digest_of(local)
    for path in (f"{ROOT}/data", f"{ROOT}@main/data", f"{ROOT}@{commit}/data/", f"{ROOT}/data/train-*.parquet",
                 f"{ROOT}/*/*.parquet", ROOT + "/data/train-{00000..00004}-of-00005.parquet"):
        remote = ps.parquet(path)
        assert len(remote) == 200 and fingerprint_of(remote) == fingerprint_of(local), path
        assert digest_of(remote, 1) == digest_of(remote, 4) == wanted, path
    assert not any("authorization" in request.headers for request in hub.requests)


def test_a_state_goes_on_in_a_new_process_and_from_a_disk_to_the_hub(hub, tables):
    hub.push(tables)
    code = """
import json, sys
import penstock as ps
plan = ps.parquet(sys.argv[1]).map(ps.pad("text", 64)).shuffle(seed=3).batch(16)
loader = plan.loader(digest=True, threads=int(sys.argv[2]))
if len(sys.argv) > 3:
    loader.load_state_dict(sys.argv[3])
for step in loader:
    if len(sys.argv) == 3 and step.number == 4:
        break
print(json.dumps(loader.state_dict()) if len(sys.argv) == 3 else loader.digest)
"""
    wanted = digest_of(ps.parquet(tables / "data"))
    for first, second in ((f"{ROOT}/data", f"{ROOT}/data"), (str(tables / "data"), f"{ROOT}/data")):
        state = run_python(code, first, "4").stdout.strip()
        assert run_python(code, second, "1", state).stdout.strip() == wanted


def test_the_second_opening_reads_no_footer(hub, tables):
    hub.push(tables)
    first = ps.parquet(f"{ROOT}/data")
    assert hub.count("cdn") > 0
    hub.requests.clear()
    second = ps.parquet(f"{ROOT}/data")
    assert len(second) == len(first)
    # What the table's columns are is read from the first file, as of a disk.
    assert hub.count("cdn") == hub.count("cdn", "train-00000") == 2 and hub.count("hub", "resolve/") == 1
    assert hub.count("hub", "/tree/") == 2 and hub.count("hub", "/revision/") == 1 and len(hub.requests) == 6
    hub.requests.clear()
    ps.parquet(f"{ROOT}/data/train-*.parquet")
    assert hub.count("hub", "/tree/") == 2  # a pattern costs no more than its folder
    # The indexes are the files' and not the revision's: of five, one was pushed anew.
    write_table(tables / "data" / "train-00002-of-00005.parquet", 1000)
    hub.push(tables)
    hub.requests.clear()
    assert numbers_of(ps.parquet(f"{ROOT}/data"))[80:82] == [1000, 1001]
    footers = {request.path for request in hub.requests if request.server == "hub" and "/resolve/" in request.path}
    assert len(footers) == 5  # each file's rows, by one redirect


def test_a_read_costs_one_request_until_its_url_expires(hub, tables):
    hub.push(tables)
    data = ps.parquet(f"{ROOT}/data", page_cache_bytes=0)
    wanted = digest_of(data)
    before = hub.count("hub")
    assert digest_of(data) == wanted and hub.count("hub") == before
    hub.signature += 1
    assert digest_of(data, 1, io_threads=0) == wanted
    assert hub.count("hub") == before + 5
    assert not any("authorization" in request.headers for request in hub.requests if request.server == "cdn")


def test_a_push_in_between_changes_no_row(hub, tables):
    hub.push(tables)
    data = ps.parquet(f"{ROOT}/data", page_cache_bytes=0)
    first = numbers_of(data)
    for part in range(5):
        write_table(tables / "data" / f"train-{part:05}-of-00005.parquet", 10_000 + 40 * part)
    hub.push(tables)
    hub.signature += 1
    assert numbers_of(data) == first == list(range(200))
    assert numbers_of(ps.parquet(f"{ROOT}/data")) == list(range(10_000, 10_200))


def test_a_state_of_other_rows_is_refused(hub, tables):
    hub.push(tables)
    state = plan_of(ps.parquet(f"{ROOT}/data")).loader().state_dict()
    write_table(tables / "data" / "train-00005-of-00005.parquet", 500)
    hub.push(tables)
    with pytest.raises(ps.Error, match="^this state belongs to another dataset: .*: give the loader the same files, or start again"):
        plan_of(ps.parquet(f"{ROOT}/data")).loader().load_state_dict(state)


def test_branches_pull_requests_and_converted_files(hub, tables, tmp_path):
    hub.push(tables)
    converted = tmp_path / "converted"
    write_table(converted / "default" / "train" / "0000.parquet", 5, 3)
    hub.push(converted, "refs/convert/parquet")
    write_table(converted / "default" / "train" / "0000.parquet", 70, 2)
    hub.push(converted, "refs/pr/3")
    write_table(converted / "default" / "train" / "0000.parquet", 80, 1)
    hub.push(converted, "a branch/of ours")
    assert numbers_of(ps.parquet(f"{ROOT}@refs/convert/parquet/default/train")) == [5, 6, 7]
    assert numbers_of(ps.parquet(f"{ROOT}@refs/pr/3/default/train/0000.parquet")) == [70, 71]
    assert numbers_of(ps.parquet(f"{ROOT}@a branch%2Fof ours/default/train")) == [80]


def test_names_may_have_any_characters(hub, tmp_path):
    names = ["a b", "größe 日本", "a#b", "a?b", "100%25", "a+b", "a&b=c", "[x]", "it's@home", "~a;b,c"]
    folder = tmp_path / "strange"
    for number, name in enumerate(names):
        write_table(folder / name / f"{name}.parquet", number, 1)
    hub.push(folder)
    for number, name in enumerate(names):
        assert numbers_of(ps.parquet(f"{ROOT}/{name}/{name}.parquet")) == [number], name
        if not set("[?") & set(name):  # which would be a pattern
            assert numbers_of(ps.parquet(f"{ROOT}/{name}")) == [number], name


def test_shards_records_images_files_and_their_labels(hub, tmp_path, images, monkeypatch, capsys):
    folder = tmp_path / "all"
    for path in sorted(images.rglob("*.jpg"))[::3]:
        target = folder / "photos" / path.relative_to(images)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    photos = sorted((folder / "photos").rglob("*.jpg"))
    (folder / "photos" / "README.md").write_text("photos")
    (folder / "shards").mkdir()
    for shard in range(2):
        with tarfile.open(folder / "shards" / f"{shard}.tar", "w") as tar:
            for i, path in enumerate(photos[shard::2]):
                for ending, data in (("jpg", path.read_bytes()), ("cls", str(i % 3).encode())):
                    member = tarfile.TarInfo(f"{shard}-{i:03}.{ending}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    (folder / "records").mkdir()
    write_tfrecord(folder / "records" / "a.tfrecord",
                   [example({"image/encoded": [path.read_bytes()], "image/class/label": [i % 5]}) for i, path in enumerate(photos)])
    hub.push(folder)

    def digest(data):
        loader = data.map(ps.decode_image(crop=ps.random_resized_crop(32))).shuffle(seed=1).batch(8).loader(digest=True)
        for _ in loader:
            pass
        return loader.digest

    kinds = {"shards": (ps.webdataset, ps.images), "records": (ps.tfrecord,), "photos": (ps.image_folder, ps.images)}
    for name, make in ((name, make) for name, makers in kinds.items() for make in makers):
        local, remote = make(folder / name), make(f"{ROOT}/{name}")
        assert len(local) == len(remote) > 0 and local.class_names == remote.class_names
        assert fingerprint_of(local) == fingerprint_of(remote) and digest(local) == digest(remote), name
    listed = [str(path.relative_to(folder)) for path in photos]
    local = ps.files([folder / name for name in listed], labels=list(range(len(listed))), field="image")
    remote = ps.files([f"{ROOT}/{name}" for name in listed], labels=list(range(len(listed))), field="image")
    assert digest(local) == digest(remote)
    # The programs take such paths, too.
    assert main(["prepare", f"{ROOT}/photos", str(tmp_path / "prepared"), "--shard-samples", "16"]) == 0
    assert len(ps.images(tmp_path / "prepared")) == len(photos)
    flags = ["--crop", "32", "--batch", "8", "--seed", "1", "--digest", "--json", "-"]
    digests = []
    for path in (str(folder / "shards"), f"{ROOT}/shards"):
        capsys.readouterr()
        assert main(["throughput", path, *flags]) == 0
        digests.append(json.loads(capsys.readouterr().out)["digest"])
    assert digests[0] == digests[1]
    assert main(["prepare", str(images), f"{ROOT}/out"]) != 0
    assert "nothing is written to the Hugging Face Hub" in capsys.readouterr().err


def test_images_beside_a_table_are_what_they_are_on_a_disk(hub, tmp_path, images):
    photo = next(images.rglob("*.jpg")).read_bytes()
    folder = tmp_path / "all"
    for name in ("pets/cat/0.jpg", "pets/dog/0.jpg", "tables/notes/readme.txt", "tables/.hidden/0.jpg"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(photo)
    table = pa.table({"image": [photo] * 3, "label": [0, 1, 0]})
    pq.write_table(table, folder / "pets" / "annotations.parquet")
    pq.write_table(table, folder / "tables" / "a.parquet")
    hub.push(folder)
    for name, count in (("pets", 2), ("tables", 3)):
        local, remote = ps.images(folder / name), ps.images(f"{ROOT}/{name}")
        assert len(local) == len(remote) == count
        assert fingerprint_of(local) == fingerprint_of(remote)


def test_small_files_that_come_as_a_whole_are_read_by_ranges(hub, tables, monkeypatch):
    commit = hub.push(tables)
    files = hub.commits[commit]

    def whole(request: Request) -> Answer | None:
        if request.server == "cdn":
            return Answer(200, files[request.path.partition("?")[0].split("/", 2)[2]])
        return None

    hub.instead = whole
    assert digest_of(ps.parquet(f"{ROOT}/data")) == digest_of(ps.parquet(tables / "data"))


def test_the_token_is_found_where_huggingface_hub_finds_it_and_is_never_shown(hub, tables, tmp_path, monkeypatch):
    hub.push(tables)
    hub.is_private = True

    def opens() -> bool:
        hub.requests.clear()
        try:
            ps.parquet(f"{ROOT}/data")
        except ps.Error as error:
            assert TOKEN not in str(error)
            return False
        assert all("authorization" not in request.headers for request in hub.requests if request.server == "cdn")
        return True

    assert not opens()
    for variable in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.setenv(variable, f" {TOKEN}\n")
        assert opens(), variable
        monkeypatch.setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")
        assert not opens()
        monkeypatch.delenv("HF_HUB_DISABLE_IMPLICIT_TOKEN")
        monkeypatch.delenv(variable)
    for variable, path in (("HF_TOKEN_PATH", tmp_path / "elsewhere"), ("HF_HOME", tmp_path / "hf" / "token"),
                           ("XDG_CACHE_HOME", tmp_path / "xdg" / "huggingface" / "token"),
                           ("HOME", tmp_path / "home" / ".cache" / "huggingface" / "token")):
        for other in ("HF_TOKEN_PATH", "HF_HOME", "XDG_CACHE_HOME"):
            monkeypatch.delenv(other, raising=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TOKEN + "\n")
        value = {"HF_TOKEN_PATH": path, "HF_HOME": path.parent, "XDG_CACHE_HOME": path.parents[1], "HOME": path.parents[2]}[variable]
        monkeypatch.setenv(variable, str(value))
        assert opens(), variable
    plan = plan_of(ps.parquet(f"{ROOT}/data"))
    loader = plan.loader()
    for _ in loader:
        pass
    for text in (plan.to_json(), str(plan), json.dumps(loader.state_dict()), str(loader.report())):
        assert TOKEN not in text
    monkeypatch.setenv("HF_TOKEN", "two words")
    with pytest.raises(ps.Error, match="characters that no token has") as refused:
        ps.parquet(f"{ROOT}/data")
    assert "two words" not in str(refused.value)


REFUSALS = [
    (401, "GatedRepo", "Access to dataset owner/name is restricted", ["gated", "/datasets/owner/name", "accept the conditions"]),
    (403, "GatedRepo", "you are not in the authorized list", ["gated", "accept the conditions"]),
    (401, "RepoNotFound", "Repository not found", ["misspelt", "private", "the variable HF_TOKEN"]),
    (404, "RepoNotFound", "Repository not found", ["misspelt", "private"]),
    (401, "", "Invalid credentials in Authorization header", ["does not know the token of the variable HF_TOKEN"]),
    (404, "RevisionNotFound", "Invalid rev id", ["has no revision 'main'"]),
    (403, "", "This repository is disabled", ["denied access", "This repository is disabled"]),
    (500, "", "Internal error", ["answered with status 500"]),
]


@pytest.mark.parametrize(("status", "code", "message", "wanted"), REFUSALS)
def test_refusals_say_what_to_do_and_never_the_token(hub, tables, monkeypatch, status, code, message, wanted):
    hub.push(tables)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.instead = lambda request: Answer(status, b"", {"X-Error-Code": code, "X-Error-Message": f"{message}: {TOKEN}"})
    with pytest.raises(ps.Error) as refused:
        ps.parquet(f"{ROOT}/data")
    for part in wanted:
        assert part in str(refused.value)
    assert TOKEN not in str(refused.value)
    assert len(hub.requests) == (5 if status == 500 else 1)


def test_what_is_not_there_is_named_with_what_is(hub, tables):
    hub.push(tables)
    for path, wanted in (
        ("data/valid", ["no folder 'data/valid'", "'data' has README.md, train-00000-of-00005.parquet"]),
        ("dta/train-*.parquet", ["no folder 'dta'", "the root has .gitattributes, README.md and data"]),
        ("data/train.parquet", ["no file 'data/train.parquet'", "'data' has README.md"]),
        ("a/b/c/d.parquet", ["no file 'a/b/c/d.parquet'", "the root has"]),
        ("data/valid-*.parquet", ["no shard fits"]),
        ("", ["no shards in", "; it has the folder data; "]),
    ):
        with pytest.raises(ps.Error) as refused:
            ps.parquet(f"{ROOT}/{path}")
        for part in wanted:
            assert part in str(refused.value), path
    with pytest.raises(ps.Error, match="has no revision 'v2'"):
        ps.parquet(f"{ROOT}@v2/data")
    with pytest.raises(ps.Error, match="shows no data set owner/other"):
        ps.parquet("hf://datasets/owner/other/data")


def test_other_hf_paths_are_refused_with_the_right_form(tmp_path):
    for path, wanted in (
        ("hf://owner/name/data", "write hf://datasets/owner/name/data"),
        ("hf://models/owner/name", "models are not"),
        ("hf://spaces/owner/name", "spaces are not"),
        ("hf://buckets/owner/name", "buckets are not"),
        ("hf://datasets/squad", "names no owner"),
        ("hf://datasets/squad@main/x", "names no owner"),
        ("hf://datasets/owner/name@", "no revision behind the @"),
        ("hf://datasets/ow ner/name", "letters, digits"),
        ("hf:/datasets/owner/name", "did you mean hf://datasets/owner/name"),
    ):
        for make in (ps.parquet, ps.webdataset, ps.tfrecord, ps.image_folder, ps.images):
            with pytest.raises(ValueError) as refused:
                make(path)
            assert wanted in str(refused.value), (path, make)
    with pytest.raises(ValueError, match="mapped"):
        ps.token_files([f"{ROOT}/a.bin"])


def test_a_rate_limit_is_waited_for(hub, tables, monkeypatch):
    hub.push(tables)
    times: list[float] = []

    def limited(request: Request) -> Answer | None:
        if request.server != "hub" or "/tree/" not in request.path:
            return None
        times.append(time.monotonic())
        return Answer(429, b"", {"Retry-After": "1"}) if len(times) == 1 else None

    hub.instead = limited
    ps.parquet(f"{ROOT}/data")
    assert times[1] - times[0] >= 1


@pytest.mark.parametrize("how", ["500", "429", "cut", "403"])
def test_what_fails_once_loses_nothing(hub, tables, how):
    hub.push(tables)
    wanted = digest_of(ps.parquet(tables / "data" / "train-0000[01]*"))
    failed: set[str] = set()

    def once(request: Request) -> Answer | None:
        key = f"{request.server} {request.path.partition('?')[0]} {request.headers.get('range')}"
        if key in failed or "/datasets/" in request.path and how == "cut":
            return None
        failed.add(key)
        if how == "cut":
            content = hub.commits[hub.revisions["main"]][request.path.partition("?")[0].split("/", 2)[2]]
            first, last = (int(number) for number in request.headers["range"].removeprefix("bytes=").split("-"))
            return Answer(206, content[first : last + 1], {"Content-Range": f"bytes {first}-{last}/{len(content)}"}, cut=1)
        if how == "403" and request.server == "hub":
            return None
        return Answer(int(how))

    hub.instead = once
    assert digest_of(ps.parquet(f"{ROOT}/data/train-0000[01]*")) == wanted
    assert failed


@pytest.mark.parametrize("how", ["size", "range", "lies", "commit"])
def test_answers_that_are_not_the_bytes_are_errors(hub, tables, how):
    hub.push(tables)

    def wrong(request: Request) -> Answer | None:
        first, _, last = request.headers.get("range", "bytes=0-9").removeprefix("bytes=").partition("-")
        if how == "commit" and "/resolve/" in request.path:
            return Answer(302, b"", {"Location": f"{hub.cdn_url}/x", "X-Repo-Commit": "0" * 40})
        if request.server == "hub":
            if how == "lies" and "/tree/" in request.path:
                usual = hub._hub(request)
                entries = json.loads(usual.body)
                for entry in entries:
                    if "lfs" in entry:
                        entry["size"] = entry["lfs"]["size"] = entry["size"] - 1
                return Answer(200, json.dumps(entries).encode(), usual.headers)
            return None
        size = {"size": 12_345_678, "range": "*"}.get(how)
        if size is None:
            return None
        begin = int(first) + (how == "range")
        body = bytes(int(last) - int(first) + 1)
        return Answer(206, body, {"Content-Range": f"bytes {begin}-{last}/{size}"})

    hub.instead = wrong
    with pytest.raises(ps.Error, match={"size": "12345678 bytes", "range": "does not read ranges", "lies": "bytes, and its list says",
                                        "commit": "at commit 0000"}[how]):
        ps.parquet(f"{ROOT}/data")


def test_options_that_are_of_s3_alone_are_no_part_of_it(hub, tables, monkeypatch):
    hub.push(tables)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ps.Error, match="HF_HUB_OFFLINE"):
        ps.parquet(f"{ROOT}/data")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("HF_ENDPOINT", "huggingface.co")
    with pytest.raises(ps.Error, match="https://huggingface.co, found 'huggingface.co'; check HF_ENDPOINT"):
        ps.parquet(f"{ROOT}/data")
    monkeypatch.setenv("HF_ENDPOINT", hub.url + "/")
    monkeypatch.setenv("PENSTOCK_OBJECT_CACHE", os.path.join(os.environ["PENSTOCK_CACHE"], "objects"))
    data = ps.parquet(f"{ROOT}/data", page_cache_bytes=0)
    wanted = digest_of(data)
    before = hub.count("cdn")
    assert digest_of(data) == wanted and hub.count("cdn") == before
    with pytest.raises(ps.Error, match="the option region is of s3:// paths"):
        ps.Dataset.from_json(data.to_json().replace('"region":""', '"region":"eu-west-1"'))


def test_huggingface_hub_reads_the_same_bytes_from_the_stand_in(hub, tables, tmp_path, monkeypatch):
    pytest.importorskip("huggingface_hub")
    commit = hub.push(tables)
    hub.is_private = True
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    code = """
import hashlib, json
from huggingface_hub import HfApi, HfFileSystem
files = HfFileSystem()
found = {}
for revision in ("", "@main"):
    root = f"datasets/owner/name{revision}"
    for path in files.find(root):
        found[revision + path.removeprefix(root)] = hashlib.sha256(files.cat_file(path)).hexdigest()
known = HfApi().get_paths_info("owner/name", ["README.md", "none"], repo_type="dataset")
print(json.dumps([found, HfApi().dataset_info("owner/name", expand=["sha"]).sha, [(file.path, file.size) for file in known]]))
"""
    found, sha, known = json.loads(run_python(code).stdout)
    contents = {name: hashlib.sha256(data).hexdigest() for name, data in hub.commits[commit].items()}
    assert found == {f"{revision}/{name}": digest for name, digest in contents.items() for revision in ("", "@main")}
    assert sha == commit and known == [["README.md", len("the card")]]


def test_mds_data_sets(hub):
    folder = Path(__file__).parents[2] / "tests" / "source" / "mds" / "files"
    hub.push(folder)
    names = [field.name for field in ps.mds(folder / "numbers", index_location="memory").fields if None not in field.shape]
    local, remote = ps.mds(folder / "numbers", columns=names, index_location="memory"), ps.mds(f"{ROOT}/numbers", columns=names)

    def digest(data: ps.Dataset) -> str:
        loader = data.shuffle(seed=1).batch(3).loader(digest=True)
        for _ in loader:
            pass
        return loader.digest

    assert len(local) == len(remote) > 10
    assert fingerprint_of(local) == fingerprint_of(remote) and digest(local) == digest(remote)
