"""What people reported of other loaders, tried on this one: each case is the smallest program of its kind, by the public reports that it
comes from. Details have tests of their own beside the code; this file is the list."""

from __future__ import annotations

import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import numpy as np
import pytest

import penstock as ps

Image = pytest.importorskip("PIL.Image")


def jpeg(mode: str = "RGB", size: tuple[int, int] = (16, 16)) -> bytes:
    out = io.BytesIO()
    Image.new(mode, size).save(out, format="JPEG")
    return out.getvalue()


JPEG = jpeg()
DECODE = ps.decode_image(crop=ps.resize_to(8))


def write(root: pathlib.Path, **files: bytes) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def tar(path: pathlib.Path, members: list[tuple[str, bytes]]) -> None:
    with tarfile.open(path, "w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def labels(data: ps.Dataset) -> list[int]:
    return [int(label) for step in data.map(DECODE).batch(3).loader() for label in step["label"].numpy()]


def test_an_empty_class_does_not_renumber(tmp_path: pathlib.Path) -> None:
    """pytorch/vision#4925, ultralytics/ultralytics#13936, huggingface/pytorch-image-models#957"""
    for name in "abc":
        write(tmp_path, **{f"train/{name}/0.jpg": JPEG, f"valid/{name}/0.jpg": JPEG})
    os.remove(tmp_path / "valid/b/0.jpg")
    with pytest.raises(ps.Error, match="class folders.*b"):
        ps.image_folder(tmp_path / "valid")
    train = ps.image_folder(tmp_path / "train")
    assert labels(ps.image_folder(tmp_path / "valid", classes=train.class_names)) == [0, 2]


def test_a_shard_that_was_relabelled_does_not_keep_old_labels(tmp_path: pathlib.Path) -> None:
    """Lightning-AI/litData#292, ultralytics/ultralytics#26207"""

    def shard(first: int) -> None:
        tar(tmp_path / "a.tar", [m for k in range(3) for m in ((f"{k}.jpg", JPEG), (f"{k}.cls", str(k + first).encode()))])
        os.utime(tmp_path / "a.tar", (0, 0))

    shard(1)
    assert labels(ps.webdataset(tmp_path)) == [1, 2, 3]
    shard(5)
    with pytest.raises(ps.DataError, match="index"):
        labels(ps.webdataset(tmp_path))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_threads_are_those_of_the_process() -> None:
    """SpikeInterface/spikeinterface#4723, seanmonstar/num_cpus#96"""
    program = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); import numpy, penstock as ps; "
        "loader = ps.memory({'x': numpy.arange(9)}).batch(3).loader(); list(s['x'].numpy().copy() for s in loader); "
        "print(loader.report().to_text())"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "1: the CPU affinity" in told


def test_labels_that_are_floats_are_numbers(tmp_path: pathlib.Path) -> None:
    """fastai/fastai#1169; pandas writes integers as floats where one is missing"""
    write(tmp_path, **{f"flat/img_{k:02}.jpg": JPEG for k in range(12)})
    (tmp_path / "labels.csv").write_text("".join(f"img_{k:02}.jpg,{k}.0\n" for k in range(12)))
    assert labels(ps.image_folder(tmp_path / "flat", labels=tmp_path / "labels.csv")) == list(range(12))


def test_names_that_are_not_utf8(tmp_path: pathlib.Path) -> None:
    folder = os.fsencode(tmp_path) + b"/\xb0\xa1"
    os.makedirs(folder)
    pathlib.Path(os.fsdecode(folder + b"/1.jpg")).write_bytes(JPEG)
    data = ps.image_folder(tmp_path)
    assert list(data.class_names) == [os.fsdecode(b"\xb0\xa1")]
    assert len(labels(data.filter(lambda info: os.fsencode(info.key).startswith(b"\xb0")))) == 1


def test_items_of_hugging_face(tmp_path: pathlib.Path) -> None:
    """huggingface/datasets#6735, activeloopai/deeplake#1619"""
    grey = [Image.new("L" if k == 1 else "RGB", (8, 8)) for k in range(4)]
    (step,) = ps.Dataset([{"image": image} for image in grey]).map(ps.crop_image(crop=ps.resize_to(4))).batch(4).loader()
    assert step["image"].numpy().shape == (4, 4, 4, 3)
    items = [{"image": {"bytes": JPEG, "path": None}, "label": k} for k in range(4)]
    assert labels(ps.Dataset(items)) == [0, 1, 2, 3]


def test_files_that_are_left_out_are_said(tmp_path: pathlib.Path) -> None:
    """pytorch/vision#461, mseitzer/pytorch-fid#50"""
    write(tmp_path, **{"a/1.jpg": JPEG, "a/2.jfif": JPEG, "a/3.dat": JPEG, "a/4": JPEG, "a/.hidden": JPEG})
    data = ps.image_folder(tmp_path)
    with pytest.warns(UserWarning, match=r"left out.*\.dat.*sniff"):
        assert len(labels(data)) == 2
    assert len(labels(ps.image_folder(tmp_path, sniff=True))) == 4


def test_members_that_do_not_lie_together(tmp_path: pathlib.Path) -> None:
    """webdataset/webdataset#11, #407"""
    tar(tmp_path / "a.tar", [("0.jpg", JPEG), ("1.jpg", JPEG), ("0.cls", b"0"), ("1.cls", b"1")])
    with pytest.warns(UserWarning), pytest.raises(ps.DataError, match="side by side|next to each other|again"):
        labels(ps.webdataset(tmp_path))


def test_shards_that_were_made_on_macos(tmp_path: pathlib.Path) -> None:
    """OpenNeuroOrg/openneuro#2520, NVIDIA/DALI#3306"""
    extra = b"\x00\x05\x16\x07" + bytes(80)
    tar(
        tmp_path / "a.tar",
        [m for k in range(4) for m in ((f"t/._{k}.jpg", extra), (f"t/{k}.jpg", JPEG), (f"t/._{k}.cls", extra), (f"t/{k}.cls", b"%d" % k))],
    )
    assert labels(ps.webdataset(tmp_path)) == [0, 1, 2, 3]


def test_a_loop_of_no_steps_is_an_error() -> None:
    """libffcv/ffcv#171, open-mmlab/mmengine#945"""
    with pytest.raises(ValueError, match="no steps|no batch|batch"):
        list(ps.memory({"x": np.arange(10)}).batch(16, remainder="drop").loader())


@pytest.mark.parametrize("kind", ["WEBP", "PNG"])
def test_pictures_that_lie_on_their_side(kind: str) -> None:
    """kohya-ss/sd-scripts#1316, huggingface/diffusers#3465"""
    exif, out = Image.Exif(), io.BytesIO()
    exif[274] = 6
    Image.new("RGB", (30, 20)).save(out, format=kind, exif=exif)
    data = ps.Dataset([{"image": out.getvalue()}])
    assert ps.image_sizes(data).tolist() == [[30, 20]]


def test_weights_and_positions_are_arrays() -> None:
    """pytorch/pytorch#2576, ufoym/imbalanced-dataset-sampler#58"""
    data = ps.memory({"x": np.arange(6)})
    (step,) = data.sample(np.array([0, 0, 0, 0, 0, 1], dtype=np.float32), seed=1).batch(6).loader()
    assert step["x"].numpy().tolist() == [5] * 6
    (step,) = data.select(np.arange(3)).batch(3).loader()
    assert step["x"].numpy().tolist() == [0, 1, 2]


def test_boxes_of_differing_number() -> None:
    """pytorch/pytorch#1512, amdegroot/ssd.pytorch#546"""
    items = [{"boxes": np.zeros((k, 4), np.float32)} for k in (2, 0, 1)]
    plan = ps.Dataset(items).map(ps.pad("boxes", 2, lengths="count"))
    (step,) = plan.batch(3).loader()
    assert step["boxes"].numpy().shape == (3, 2, 4)


def test_texts_lead_to_pad() -> None:
    """webdataset/webdataset#316"""
    with pytest.raises(ValueError, match="pad"):
        ps.Dataset([{"text": "a"}, {"text": "abc"}]).batch(2).loader()


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tfrecord.gz", "a.zip", "a.parquet"])
def test_what_is_no_folder_is_named(tmp_path: pathlib.Path, name: str) -> None:
    """webdataset/webdataset#5, huggingface/datasets#6931"""
    (tmp_path / name).write_bytes(b"\x1f\x8b" + bytes(100))
    with pytest.raises((ps.Error, ValueError), match=name.split(".")[-1]):
        ps.images(tmp_path / name)


def test_labels_with_a_header_and_folders(tmp_path: pathlib.Path) -> None:
    """fastai/fastai#253"""
    write(tmp_path, **{"all/x/1.jpg": JPEG, "all/y/2.jpg": JPEG})
    (tmp_path / "labels.csv").write_text('id,breed\n"x/1","a, b"\ny/2,c\n')
    data = ps.image_folder(tmp_path / "all", labels=tmp_path / "labels.csv")
    assert labels(data) == [0, 1] and list(data.class_names) == ["a, b", "c"]


def test_other_kinds_of_images_are_read_or_named() -> None:
    """NVIDIA/DALI#5151, #842, nothings/stb#427, tensorflow/tensorflow#24065"""
    for kind, library in (("BMP", None), ("GIF", "giflib"), ("TIFF", "libtiff")):
        out = io.BytesIO()
        Image.new("RGB", (9, 9)).save(out, format=kind)
        data = ps.Dataset([{"image": out.getvalue()}])
        if library is None or library in ps.image_libraries():
            assert ps.image_sizes(data).tolist() == [[9, 9]]
        else:
            with pytest.raises(ps.Error, match=f"{kind}.*{library}"):
                ps.image_sizes(data)
    for content, name in ((b"version https://git-lfs.github.com/spec/v1", "Git LFS"), (b"<!DOCTYPE html>", "HTML")):
        with pytest.raises(ps.Error, match=name):
            ps.image_sizes(ps.Dataset([{"image": content}]))


def test_bools_stay_bools() -> None:
    (step,) = ps.Dataset([{"m": np.array([True, False])}] * 2).batch(2).loader()
    assert (~step["m"].numpy()).tolist() == [[False, True]] * 2


def test_a_shard_that_was_cut_is_said(tmp_path: pathlib.Path) -> None:
    tar(tmp_path / "a.tar", [m for k in range(20) for m in ((f"{k:02}.jpg", JPEG), (f"{k:02}.cls", b"%d" % k))])
    with tarfile.open(tmp_path / "a.tar") as archive:
        at = archive.getmember("10.jpg").offset
    os.truncate(tmp_path / "a.tar", at)
    shutil.rmtree(tmp_path / "a.tar.penstock-index", ignore_errors=True)
    with pytest.warns(UserWarning, match="end-of-archive"):
        assert len(labels(ps.webdataset(tmp_path))) == 10


def test_dicts_in_dicts_are_a_clear_error() -> None:
    with pytest.raises((ps.Error, TypeError, ValueError), match="dict"):
        ps.Dataset([{"a": 1, "b": {"c": 2}}])


def test_what_newcomers_write_first_leads_to_loader() -> None:
    """fastai/fastai#1169"""
    data = ps.memory({"x": np.arange(4)})
    with pytest.raises(TypeError, match=r"\.loader\(\)"):
        iter(data)
    with pytest.raises(TypeError, match=r"\.loader\(\)"):
        data[0]


def test_a_folder_of_shards_is_one_split(tmp_path: pathlib.Path) -> None:
    """As repositories of the Hub lie: train, validation and test files in one folder."""
    for name in "train-000.tar", "val-000.tar":
        tar(tmp_path / name, [("0.jpg", JPEG), ("0.cls", b"1")])
    for read in ps.webdataset, ps.images:
        with pytest.raises(ps.Error, match=r"several splits, train \(train-000.tar\), validation \(val-000.tar\)"):
            read(tmp_path)
        assert len(read(tmp_path / "*train*.tar")) == 1


def test_folders_of_classes_beside_a_shard_are_an_error(tmp_path: pathlib.Path) -> None:
    write(tmp_path, **{"cat/0.jpg": JPEG, "dog/0.jpg": JPEG})
    tar(tmp_path / "extra.tar", [("0.jpg", JPEG), ("0.cls", b"7")])
    with pytest.raises(ps.Error, match="has shards, and images in the folders beside them"):
        ps.images(tmp_path)
    assert ps.image_folder(tmp_path).class_names == ["cat", "dog"]
    assert len(ps.images(tmp_path / "*.tar")) == 1


@pytest.mark.parametrize(
    ("photos", "masks"),
    [
        (["a_1_left", "a_2_left"], ["a_1_ids", "a_1_train", "a_2_ids", "a_2_train"]),  # Cityscapes
        (["1", "2", "3"], ["1_m", "2_m"]),
        (["1", "2"], ["1", "2", "3"]),
        (["cat", "dog"], ["dog_mask", "zebra_mask"]),
        (["1", "2", "3"], ["2_m", "3_m", "4_m"]),
        (["a", "b", "d"], ["a", "c", "d"]),  # each folder lacks one
        (["cat_1", "cat_2", "cat_4"], ["cat_1_m", "cat_3_m", "cat_4_m"]),
        (["1", "2", "10"], ["1", "2", "12"]),
    ],
)
def test_masks_of_other_photographs_are_an_error(tmp_path: pathlib.Path, photos: list[str], masks: list[str]) -> None:
    write(tmp_path / "photos", **{f"{name}.jpg": JPEG for name in photos})
    write(tmp_path / "masks", **{f"{name}.jpg": JPEG for name in masks})
    with pytest.raises(ValueError, match="zip pairs files in the order of their names"):
        ps.zip([ps.images(tmp_path / "photos"), ps.images(tmp_path / "masks").rename({"image": "mask", "label": "other"})])


def test_names_that_mostly_differ_say_nothing_of_pairs(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "photos", **{f"{name}.jpg": JPEG for name in ("1", "2", "3", "cover")})
    write(tmp_path / "masks", **{f"{name}.jpg": JPEG for name in ("a", "b", "c", "cover")})
    assert len(ps.zip([ps.images(tmp_path / "photos"), ps.images(tmp_path / "masks").rename({"image": "mask", "label": "other"})])) == 4


def test_integers_that_are_written_as_texts_are_no_names(tmp_path: pathlib.Path) -> None:
    write(tmp_path, **{f"{name}.jpg": JPEG for name in "abcd"})
    paths = [tmp_path / f"{name}.jpg" for name in "abcd"]
    data = ps.files(paths, ["3", "1", "10", "2"])
    assert data.labels().tolist() == [3, 1, 10, 2] and data.class_names == []
    assert ps.files(paths, ["3", "1", "10", "2"], classes=["1", "2", "3", "10"]).labels().tolist() == [2, 0, 3, 1]
    with pytest.raises(ps.Error, match="the label 'x' is a name, but label 0 has an integer"):
        ps.files(paths, ["3", "x", "10", "2"])


def test_a_series_of_pandas_goes_by_its_labels() -> None:
    class Series(list):  # type: ignore[type-arg]
        iloc = None
        index = (0, 1)  # type: ignore[assignment]

    assert len(ps.Dataset(Series([1, 2]))) == 2
    Series.index = (1, 0)  # type: ignore[assignment]
    with pytest.raises(TypeError, match="goes by its labels, and not by position"):
        ps.Dataset(Series([1, 2]))


def test_cutmix_fraction_needs_both() -> None:
    data = ps.memory({"image": np.zeros((2, 4, 4, 3), np.uint8), "label": np.zeros(2, np.int64)}).batch(2)
    with pytest.raises(ValueError, match="cutmix_fraction chooses between mixup and cutmix"):
        data.transform_on_device(cutmix=1.0, cutmix_fraction=0.3)


def test_copies_of_a_sample_stay_in_one_part() -> None:
    data = ps.memory({"x": np.arange(4)})
    with pytest.raises(ValueError, match="select has positions several times"):
        data.select([0, 0, 1, 2]).split(0.5)
    assert sorted(value for part in data.select([3, 0, 2]).split([0.5, 0.5]) for value in part.column("x").tolist()) == [0, 2, 3]


def test_what_is_ignored_is_refused() -> None:
    images = ps.memory({"image": np.zeros((2, 8, 8, 3), np.uint8)}).batch(2)
    with pytest.raises(ValueError, match="mix_probability is that of mixup and cutmix"):
        images.transform_on_device(mix_probability=0.5)


def test_numbers_and_names_of_a_table_are_told_apart(tmp_path: pathlib.Path) -> None:
    write(tmp_path, **{f"{k}.jpg": JPEG for k in range(3)}, **{" 0.jpg": JPEG})

    def read(names: list[str], text: str = "", **options: object) -> list[int]:
        rows = "".join(f"{k}.jpg,{name}\n" for k, name in enumerate(names))
        (tmp_path / "t.csv").write_text("file,label\n" + (text or rows))
        return ps.images_from(tmp_path / "t.csv", **options).labels().tolist()  # type: ignore[arg-type]

    assert read(["1", "2", "0"], classes=["1", "2", "0"]) == [0, 1, 2]
    with pytest.raises(ps.Error, match="'1.0' is none of the 3 names"):
        read(["1.0", "2.0", "0.0"], classes=["1", "2", "0"])
    assert read(["1", "2.0", "0"], classes=["a", "b", "c"]) == [1, 2, 0]
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"label": [1, 2, 0], "file": [0, 1, 2]})
    with pytest.raises(ValueError, match="has integers, and classes has the name '1'"):
        ps.images_from(table, classes=["1", "2", "0"], ending=".jpg", root=tmp_path)
    assert ps.images_from(table, classes=["a", "b", "c"], ending=".jpg", root=tmp_path).labels().tolist() == [1, 2, 0]
    with pytest.raises(ps.Error, match="the labels '007' and '7' are one number"):
        read(["007", "7", "08"])
    assert read(["007", "007", "08"]) == [7, 7, 8]
    assert ps.images_from(tmp_path / "t.csv").class_names == []
    assert read([], text='" 0.jpg","cat "\n0.jpg,cat\n 1.jpg , cat \n') == [1, 0, 0]
    assert ps.images_from(tmp_path / "t.csv").class_names == ["cat", "cat "]
