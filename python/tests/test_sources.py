"""Where data comes from: each factory with its options, and what it says when something is wrong."""

from __future__ import annotations

import inspect
import io
import json
import os
import pickle
import tarfile
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import delivered, evaluate, numbers
from tfrecords import example, sequence_example, write_tfrecord

import penstock as ps


def test_an_image_folder_decodes(images):
    dataset = ps.image_folder(images)
    assert len(dataset) == 40 and dataset.class_names == sorted(dataset.class_names)
    assert [str(field) for field in dataset.fields] == ["image u8 [?]", "label i64 []"]
    decode = ps.decode_image(crop=ps.random_resized_crop((32, 48), scale=(0.5, 1.0)), flip=0.5, geometry="where")
    step = next(dataset.seed(1).map(decode).batch(40).loader())
    assert step["image"].shape == (40, 32, 48, 3) and step["where"].shape == (40, 8)
    assert np.bincount(step["label"].numpy()).tolist() == [10, 10, 10, 10]
    assert step["image"].numpy().std() > 10
    again = next(dataset.seed(1).map(decode).batch(40).loader(threads=1))
    assert (again["image"].numpy() == step["image"].numpy()).all()
    assert repr(ps.images(images)) == repr(dataset)
    assert delivered(dataset.filter(lambda info: info.label == 1).map(decode)) == list(range(10, 20))


def test_decoders_and_an_index_give_the_same_pixels(images, tmp_path):
    def pixels(**options):
        decode = ps.decode_image(crop=ps.random_resized_crop(24), **options)
        return next(ps.image_folder(images).seed(1).map(decode).batch(40).loader())["image"].numpy().copy()

    index, stats = ps.MemoryJpegIndex(), ps.JpegStats()
    fast = pixels(decoder="fast", index=index, stats=stats)
    assert stats.counts()["own"] == 40 and len(index) > 0 and index.nbytes > 0
    assert (fast == pixels(decoder="libjpeg")).all() and (fast != pixels()).any()
    assert (pixels() == pixels(decoder="reference")).all()
    assert (pixels() != pixels(filter="bicubic")).any()
    index.save(tmp_path / "index")
    other = ps.MemoryJpegIndex()
    assert other.load(tmp_path / "index") == len(index) == len(other)
    with pytest.raises(ps.Error, match="no such file or folder of JPEG indices"):
        other.load(tmp_path / "none")
    assert (pixels(decoder="fast", index=other, stats=stats) == fast).all() and stats.counts()["indexed"] > 0
    with pytest.raises(ValueError, match="decoder must be one of"):
        pixels(decoder="slow")


def test_views_are_the_crops_of_decode_image(images):
    dataset = ps.image_folder(images).seed(1)
    large = ps.ImageView(ps.random_resized_crop(32, scale=(0.4, 1)), count=2, flip=0.5, geometry="where")
    views = ps.decode_views({"global": large, "local": ps.ImageView(ps.random_resized_crop(16, scale=(0.05, 0.4)), count=8), "eval": ps.ImageView(ps.center_crop(24, resize=28))})
    step = next(dataset.map(views).batch(40).loader())
    assert {name: tensor.shape for name, tensor in step.items()} == {
        "global": (40, 2, 32, 32, 3),
        "where": (40, 2, 8),
        "local": (40, 8, 16, 16, 3),
        "eval": (40, 24, 24, 3),
        "label": (40,),
    }
    # The first has the random numbers of decode_image; the middle needs none.
    first = next(dataset.map(ps.decode_image(crop=large.crop, flip=0.5, geometry="where")).batch(40).loader())
    assert (step["global"].numpy()[:, 0] == first["image"].numpy()).all() and (step["where"].numpy()[:, 0] == first["where"].numpy()).all()
    assert (step["global"].numpy()[:, 0] != step["global"].numpy()[:, 1]).any()
    middle = next(dataset.map(ps.decode_image(crop=ps.center_crop(24, resize=28))).batch(40).loader())
    assert (step["eval"].numpy() == middle["image"].numpy()).all()


def test_decoded_images_are_cropped_in_memory():
    pixels = np.random.default_rng(1).integers(0, 256, (20, 32, 32, 3), dtype=np.uint8)
    crop = ps.random_crop(32, padding=4, fill=(1, 2, 3))
    step = next(ps.memory({"image": pixels}).seed(1).map(ps.crop_image(crop=crop, flip=0.5, geometry="where")).batch(20).loader())
    padded = np.full((20, 40, 40, 3), (1, 2, 3), np.uint8)
    padded[:, 4:36, 4:36] = pixels
    for found, image, (x, y, width, height, flipped, *_) in zip(step["image"].numpy(), padded, step["where"].numpy()):
        assert (width, height) == (32, 32)
        expected = image[y + 4 : y + 36, x + 4 : x + 36]
        assert (found == (expected[:, ::-1] if flipped else expected)).all()
    grey = next(ps.memory({"image": np.ascontiguousarray(pixels[..., :1])}).map(ps.crop_image(crop=ps.letterbox((16, 20)))).batch(20).loader())
    assert grey["image"].shape == (20, 16, 20, 1) and (grey["image"].numpy()[:, :, :2] == 114).all()


def test_transparent_pixels_lie_over_the_background():
    image = pytest.importorskip("PIL.Image")
    rgba = np.random.default_rng(2).integers(0, 256, (30, 40, 4), dtype=np.uint8)
    png = io.BytesIO()
    image.fromarray(rgba).save(png, "png")
    encoded = np.frombuffer(png.getvalue(), np.uint8)

    def decoded(**options):
        step = next(ps.memory({"image": encoded[None]}).map(as_encoded).map(ps.decode_image(crop=ps.resize_to((30, 40)), **options)).batch(1).loader())
        return step["image"].numpy()[0].copy()

    as_encoded = ps.map_function(lambda image: image, name="as_encoded", inputs=["image"], outputs={"image": ("u8", [None])})
    assert (decoded() == rgba[..., :3]).all()
    behind = image.new("RGBA", (40, 30), (255, 80, 0, 255))
    behind.alpha_composite(image.fromarray(rgba))
    assert (decoded(background=(255, 80, 0)) == np.asarray(behind)[..., :3]).all()


def test_every_draw_of_an_image_is_cropped_anew(images):
    def crops(dataset):
        decode = ps.decode_image(crop=ps.random_resized_crop(24), flip=0.5)
        step = next(dataset.map(decode).batch(64).loader())
        found = [(sample.number, sample.draw, image.tobytes()) for sample, image in zip(step.samples, step["image"].numpy())]
        del step
        return found

    dataset = ps.image_folder(images).seed(1)
    weights = np.zeros(len(dataset))
    weights[:3] = 1
    drawn = crops(dataset.sample(weights, count=64))
    assert {number for number, _, _ in drawn} == {0, 1, 2} and [draw for _, draw, _ in drawn] == list(range(1, 65))
    assert len({crop for _, _, crop in drawn}) == 64
    assert sorted(crops(dataset.sample(weights, count=64).shuffle())) == sorted(drawn)
    assert len({crop for _, _, crop in crops(dataset.select([5, 5, 5]))}) == 3


def test_re_marked_files_have_the_same_pixels(images, tmp_path):
    def pixels(folder):
        decode = ps.decode_image(crop=ps.resize_to(48))
        return next(ps.image_folder(folder).map(decode).batch(40).loader())["image"].numpy().copy()

    transcoded = 0
    for path in sorted(images.glob("*/*.jpg")):
        result = ps.transcode_jpeg(path.read_bytes(), interval=4, max_growth=0.5)
        (tmp_path / path.parent.name).mkdir(exist_ok=True)
        (tmp_path / path.parent.name / path.name).write_bytes(result.bytes)
        assert (result.bytes == path.read_bytes()) == (result.kept != "")
        transcoded += result.kept == "" and result.mcus_in_row % result.interval == 0
    assert transcoded == 40 and (pixels(tmp_path) == pixels(images)).all()
    with pytest.raises(ValueError, match="JPEG"):
        ps.transcode_jpeg(b"no picture")


def test_images_are_finished_on_their_device(images):
    batch = ps.image_folder(images).seed(1).map(ps.decode_image(crop=ps.center_crop(16))).batch(8)
    raw = next(batch.loader())["image"].numpy()
    mean, stddev = [0.4, 0.5, 0.6], [0.2, 0.3, 0.4]
    step = next(batch.transform_on_device(mean=mean, std=stddev).loader())
    expected = ((raw / 255 - mean) / stddev).transpose(0, 3, 1, 2)
    assert step["image"].dtype == "f32" and step["image"].shape == (8, 3, 16, 16)
    assert np.allclose(step["image"].numpy(), expected, atol=1e-5)
    erase = ps.RandomErasing(1.0, area=(0.1, 0.2), value=[9])
    mixed = next(batch.transform_on_device(layout="nhwc", dtype="f16", mixup=0.2, cutmix=1, flip=0.5, erase=erase).loader())
    assert mixed["image"].shape == (8, 16, 16, 3) and mixed["mix_row"].shape == mixed["mix_weight"].shape == (8,)
    assert (mixed["image"].numpy() == 9).any()
    with pytest.raises(ValueError, match="layout must be one of"):
        batch.transform_on_device(layout="chw")


def test_flat_folders_have_labels_of_their_own(tmp_path, images):
    for index, path in enumerate(sorted(images.rglob("*.jpg"))[:3]):
        (tmp_path / f"{index}.jpg").write_bytes(path.read_bytes())
    (tmp_path / "labels.txt").write_text("0.jpg 5\n1.jpg 6\n2.jpg 7\n")
    dataset = ps.image_folder(str(tmp_path), labels=tmp_path / "labels.txt")
    step = next(dataset.map(ps.decode_image(crop=ps.resize_to(8))).batch(3).loader())
    assert step["label"].numpy().tolist() == [5, 6, 7]


def test_synthetic_images_say_how_far_they_are(tmp_path):
    seen = []
    ps.synthetic_images(3, cache=tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (3, 3)

    threads = []
    ps.synthetic_images(2, cache=tmp_path, progress=lambda done, total: threads.append(threading.current_thread()))
    assert set(threads) == {threading.current_thread()}

    def fail(done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        ps.synthetic_images(4, cache=tmp_path, progress=fail)


def test_tar_shards(tmp_path, images):
    for shard in range(2):
        with tarfile.open(tmp_path / f"train-{shard}.tar", "w") as tar:
            for index, path in enumerate(sorted(images.rglob("*.jpg"))[:4]):
                for name, data in ((f"{index}.jpg", path.read_bytes()), (f"{index}.cls", b"%d" % index)):
                    info = tarfile.TarInfo(name)
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    for shards in (tmp_path, str(tmp_path / "train-{0..1}.tar"), sorted(tmp_path.glob("*.tar"))):
        assert len(ps.webdataset(shards, index_location="memory")) == 8
    fields = [ps.WebDatasetField("label", ["cls"], type="integer"), ps.WebDatasetField("x", ["x"], required=False)]
    assert fields[0].type == "integer" and fields[0].extensions == ["cls"]
    only = ps.webdataset(tmp_path, fields=fields[:1], index_location="cache", index_cache=tmp_path / "index")
    assert next(only.batch(8).loader())["label"].numpy().tolist() == [0, 1, 2, 3] * 2
    assert list((tmp_path / "index").rglob("*"))
    assert len(ps.images(tmp_path)) == len(ps.images(str(tmp_path / "train-{0..1}.tar"))) == 8
    with pytest.raises(ps.Error, match="missing"):
        ps.webdataset(tmp_path / "missing.tar")
    with pytest.raises(ValueError, match="index_location must be one of 'next_to_data'"):
        ps.webdataset(tmp_path, index_location="nowhere")


def test_tfrecords(tmp_path):
    write_tfrecord(tmp_path / "a.tfrecord", [example({"x": [float(i), i / 2], "label": [i]}) for i in range(3)])
    fields = [
        ps.ExampleField("x", ["x"], dtype="f32", shape=(2,)),
        ps.ExampleField("y", ["label"], dtype="i64"),
        ps.ExampleField("z", ["z"], dtype="i64", required=False, default_value=-1),
    ]
    step = next(ps.tfrecord(tmp_path, fields=fields, index_location="memory").batch(3).loader())
    assert step["x"].numpy().tolist() == [[0, 0], [1, 0.5], [2, 1]]
    assert step["y"].numpy().tolist() == [0, 1, 2] and step["z"].numpy().tolist() == [-1] * 3
    assert fields[0].dtype == "f32" and fields[0].shape == (2,)


def test_lists_of_tfrecords(tmp_path):
    write_tfrecord(tmp_path / "a.tfrecord", [example({"x": [0.5] * (4 * i), "words": [b"ab"] * i + [b"c"]}) for i in range(3)])
    fields = [ps.ExampleField("x", "x", dtype="f32", shape=(None, 4), required=False), ps.ExampleField("words", "words", lengths="sizes")]
    data = ps.tfrecord(tmp_path, fields=fields, index_location="memory")
    assert [str(field) for field in data.fields] == ["x f32 [?,4]", "words u8 [?]", "sizes i64 [?]"]
    padded = data.map(ps.pad("x", 3, lengths="rows")).map(ps.pad("words", 8)).map(ps.pad("sizes", 3, value=-1, lengths="count"))
    step = next(padded.batch(3).loader())
    assert step["x"].shape == (3, 3, 4) and step["rows"].numpy().tolist() == [0, 1, 2]
    assert step["x"].numpy().sum(axis=(1, 2)).tolist() == [0, 2, 4]
    assert step["sizes"].numpy().tolist() == [[1, -1, -1], [2, 1, -1], [2, 2, 1]] and step["count"].numpy().tolist() == [1, 2, 3]
    assert bytes(step["words"].numpy()[2]) == b"ababc\0\0\0"
    assert ps.Dataset.from_json(padded.batch(3).to_json()).describe() == padded.batch(3).describe()
    assert "ExampleField(name='words', features=['words'], lengths='sizes')" in repr(data)
    one = ps.tfrecord(tmp_path, fields=[ps.ExampleField("words", "words")], index_location="memory").map(ps.pad("words", 8)).batch(3)
    with pytest.raises(ps.DataError, match=r"expected one value of bytes, found 2 values; to read all of them, name a field"):
        next(one.loader())


def test_sequence_examples(tmp_path):
    record = sequence_example({"label": [7]}, {"pose": [[0.5, 1.0], [1.5, 2.0]], "frames": [[b"jpeg"], [b"jp"]]})
    write_tfrecord(tmp_path / "a.tfrecord", [record])
    fields = [
        ps.ExampleField("label", "label", dtype="i64"),
        ps.ExampleField("pose", "pose", dtype="f32", shape=(None, 2), sequence=True),
        ps.ExampleField("frames", "frames", lengths="frame_bytes", sequence=True),
    ]
    data = ps.tfrecord(tmp_path, fields=fields, index_location="memory")
    padded = data.map(ps.pad("pose", 3)).map(ps.pad("frames", 6)).map(ps.pad("frame_bytes", 2))
    step = next(padded.batch(1).loader())
    assert step["label"].numpy().tolist() == [7] and step["pose"].numpy().tolist() == [[[0.5, 1], [1.5, 2], [0, 0]]]
    assert bytes(step["frames"].numpy()[0]) == b"jpegjp" and step["frame_bytes"].numpy().tolist() == [[4, 2]]
    plain = ps.tfrecord(tmp_path, fields=[ps.ExampleField("frames", "frames")], index_location="memory")
    with pytest.raises(ps.DataError, match="it is a feature list of a tf.train.SequenceExample: give the field the option sequence"):
        next(plain.map(ps.pad("frames", 6)).batch(1).loader())


def test_array_files(tmp_path):
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "y.raw").write_bytes(b"head" + np.arange(4, dtype=np.int16).tobytes())
    raw = ps.ArrayField(tmp_path / "y.raw", dtype="i16", offset=4)
    step = next(ps.arrays({"x": tmp_path / "x.npy", "y": raw}).batch(4).loader())
    assert (step["x"].numpy() == x).all() and step["y"].numpy().tolist() == [0, 1, 2, 3]
    assert raw.offset == 4 and raw.dtype == "i16" and raw.path == tmp_path / "y.raw"
    with pytest.raises(ps.Error, match=r"gone\.npy"):
        ps.arrays({"x": tmp_path / "gone.npy"})
    with pytest.raises(ValueError, match=r"'x' is expected to be a path or an ArrayField, found ndarray; memory\(\) takes"):
        ps.arrays({"x": np.zeros(3)})  # type: ignore[dict-item]


def test_fields_of_sources_are_values():
    fields = [
        ps.WebDatasetField("label", "cls", type="integer", default_value=-1),
        ps.ExampleField("box", ["a", "b"], dtype="f32", shape=(None, 4), required=False),
        ps.ArrayField("x.raw", dtype="float32", shape=(2,), offset=4),
    ]
    for field in fields:
        assert repr(pickle.loads(pickle.dumps(field))) == repr(field)
        assert repr(evaluate(repr(field))) == repr(field)
    assert repr(fields[1]) == "ExampleField(name='box', features=('a', 'b'), dtype='f32', shape=(None, 4), required=False)"
    assert fields[1].shape == (None, 4) and fields[2].dtype == "f32" and fields[0].extensions == ["cls"]
    by_default = inspect.signature(ps.webdataset).parameters["fields"].default
    assert [one.name for one in by_default] == ["image", "label"] and by_default[1].type == "integer"


def test_the_path_of_an_array_need_not_be_utf8(tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.npy"))
    np.save(path, np.arange(3))
    field = ps.ArrayField(path)
    assert field.path == path and evaluate(repr(field)).path == path
    assert len(ps.arrays({"x": field})) == 3


def test_options_of_sources_that_do_not_fit_are_named():
    for call, message in [
        (lambda: ps.image_folder(None), "'path' must be a string or a path, found None"),
        (lambda: ps.image_folder("x", extensions=[3]), r"'extensions' \[0\] must be a string, found 3"),
        (lambda: ps.webdataset("x", fields=[3]), r"'fields' \[0\] must be a WebDatasetField, found 3"),
        (lambda: ps.webdataset("x", index_cache=3), "'index_cache' must be a string or a path or None, found 3"),
        (lambda: ps.ArrayField(None), "'path' must be a string or a path, found None"),
        (lambda: ps.arrays(3), "'fields' must be a dict, found 3"),
        (lambda: ps.synthetic_images(3, progress=4), "'progress' must be a function or None, found 4"),
    ]:
        with pytest.raises(TypeError, match=message):
            call()


def test_validation_has_the_labels_of_training_or_an_error(images, tmp_path):
    jpeg = next(images.rglob("*.jpg")).read_bytes()
    for name in ("train/a/1.jpg", "train/b/1.jpg", "train/c/1.jpg", "valid/a/1.jpg", "valid/c/1.jpg", "valid/b/1.tif"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(jpeg)
    train = ps.image_folder(tmp_path / "train")
    with pytest.raises(ps.Error, match=r"no images in 1 of the 3 class folders of .*valid: b \(1 \.tif\)"):
        ps.image_folder(tmp_path / "valid")
    valid = ps.image_folder(tmp_path / "valid", classes=train.class_names)
    assert valid.class_names == train.class_names == ["a", "b", "c"]
    batch = valid.map(ps.decode_image(crop=ps.resize_to(4))).batch(2)
    with pytest.warns(UserWarning, match="left out 1 .tif.*option sniff"):
        loader = batch.loader()
    assert next(iter(loader))["label"].numpy().tolist() == [0, 2]
    assert "left out 1 .tif" in str(loader.report()) and "left out 1 .tif" in loader.report().notices[0]
    copy = ps.Dataset.from_json(valid.to_json())
    assert copy.class_names == valid.class_names and repr(copy) == repr(valid)
    assert len(ps.image_folder(tmp_path / "valid", sniff=True)) == 3
    other = ps.image_folder(tmp_path / "valid", classes=["c", "b", "a"])
    with pytest.warns(UserWarning, match="label 0 is 'a' in one data set .* and 'c' in another"):
        ps.concatenate([train, other]).map(ps.decode_image(crop=ps.resize_to(4))).batch(1).loader()


def test_names_that_are_not_utf8_are_those_of_fsdecode(images, tmp_path):
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/l\xe4t"))
    jpeg = next(images.rglob("*.jpg")).read_bytes()
    for name in (b"\xb0\xa1/1.jpg", b"\xb0\xa1/bad.jpg", b"b/\xff.jpg", b"\xc3\xa4/1.jpg"):
        path = root / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg[:-1000] if b"bad" in name else jpeg)
    strange = os.fsdecode(b"\xb0\xa1")
    dataset = ps.image_folder(root)
    assert dataset.class_names == ["b", strange, "\xe4"] == [os.fsdecode(os.fsencode(name)) for name in dataset.class_names]
    keys = []
    dataset.filter(lambda info: keys.append(info.key) or True)
    assert keys == ["b/" + os.fsdecode(b"\xff.jpg"), f"{strange}/1.jpg", f"{strange}/bad.jpg", "\xe4/1.jpg"]
    assert all((root / key).exists() for key in keys)

    other = ps.image_folder(root, classes=[strange, "\xe4", "b"])
    assert other.class_names == [strange, "\xe4", "b"] and other.fields == dataset.fields
    text = other.to_json()
    assert strange in json.dumps(json.loads(text), ensure_ascii=False)
    for copy in (ps.Dataset.from_json(text), ps.Dataset.from_json(json.dumps(json.loads(text))), pickle.loads(pickle.dumps(other))):
        assert copy.class_names == other.class_names and repr(copy) == repr(other) and len(copy) == 4
    assert evaluate(repr(other)).class_names == other.class_names
    with pytest.raises(TypeError, match="half of a pair that stands for no byte"):
        ps.image_folder(root, classes=["\ud800"])
    with pytest.raises(ps.Error, match="none of the 1 classes"):
        ps.image_folder(root, classes=strange)

    labels = tmp_path / os.fsdecode(b"l\xe4bels.csv")
    flat = root / strange
    labels.write_text("1.jpg,7\nbad.jpg,8\n")
    assert len(ps.image_folder(flat, labels=labels)) == 2

    loader = dataset.map(ps.decode_image(crop=ps.resize_to(4))).batch(4).loader(on_fault="mask")
    assert len(next(iter(loader))["label"]) == 4
    (fault,) = loader.faults()
    assert fault.file == str(root / strange / "bad.jpg")
    state = json.loads(json.dumps(loader.state_dict()))
    assert state["faults"]["list"][0]["file"] == fault.file
    loader.load_state_dict(state)
    assert loader.faults()[0].file == fault.file
    assert json.loads(loader.report().to_json())["faults"]["list"][0]["file"] == fault.file


def test_keys_of_a_tar_that_are_not_utf8_are_those_of_fsdecode(images, tmp_path):
    jpeg = next(images.rglob("*.jpg")).read_bytes()
    path = tmp_path / os.fsdecode(b"\xe4.tar")
    with tarfile.open(path, "w", encoding="utf-8", errors="surrogateescape", format=tarfile.GNU_FORMAT) as tar:
        for name, data in (("a.jpg", jpeg), ("a.cls", b"1"), (os.fsdecode(b"\xb0/b.jpg"), jpeg)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    keys = []
    dataset = ps.webdataset(path)
    dataset.filter(lambda info: keys.append(info.key) or True)
    assert keys == ["a", os.fsdecode(b"\xb0/b")]
    with pytest.raises(ps.DataError) as caught:
        list(dataset.map(ps.decode_image(crop=ps.resize_to(4))).batch(2).loader())
    assert caught.value.fault.file == f"{path}: {keys[1]}"
    assert ps.Dataset.from_json(dataset.to_json()).describe() == dataset.describe()


def test_warnings_name_files_of_any_bytes(images, tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/l\xe4t"))
    (folder / "a").mkdir(parents=True)
    jpeg = next(images.rglob("*.jpg")).read_bytes()
    for name in (b"1.jpg", "2.\u65e5\u672c\u8a9e\u306e\u8aac\u660e\u6587".encode(), b"3.b\xe4p"):
        Path(os.fsdecode(os.fsencode(folder) + b"/a/" + name)).write_bytes(jpeg)
    with pytest.warns(UserWarning, match=r"l\\xe4t: left out 1 .*1 \.b\\xe4p"):
        ps.image_folder(folder).map(ps.decode_image(crop=ps.resize_to(4))).batch(1).loader()


def test_a_loop_that_would_deliver_nothing_is_an_error_that_says_why():
    ten = ps.memory({"x": np.arange(10)})
    with pytest.raises(ValueError, match="10 samples fill no batch of 16 with the remainder drop"):
        ten.batch(16, remainder="drop").repeat().loader()
    with pytest.raises(ValueError, match=r"select\(\[\]\) leaves none of 10 samples"):
        ten.select([]).batch(1).loader()


def test_a_missing_folder_is_an_error_that_says_so():
    with pytest.raises(ps.Error, match="/nowhere"):
        ps.image_folder("/nowhere")
    with pytest.raises(TypeError):
        ps.image_folder(3)


def test_memory_has_a_fingerprint_of_its_bytes_or_says_that_it_has_not():
    """A state of other values of the same shape: whatever the source promises, it loads or says why."""
    values = np.arange(8)
    state = ps.memory({"x": values}).batch(2).loader().state_dict()
    ps.memory({"x": values.copy()}).batch(2).loader().load_state_dict(state)
    with pytest.raises(ps.Error, match="another dataset"):
        ps.memory({"x": values[:6]}).batch(2).loader().load_state_dict(state)
    assert len(numbers(3)) == 3


def test_jpegs_can_be_left_to_gpus_where_an_index_says_how():
    plan = ps.memory({"label": np.arange(8)}).batch(4)
    with pytest.raises(ValueError, match="decode_on_gpu: no image of this plan can be decoded on a GPU: it has no decode_image"):
        plan.loader(decode_on_gpu=True)
    with pytest.raises(ValueError, match="a GPU decodes: name one, such as cuda:0, found host:0"):
        ps.JpegBatchDecoder(224, device="host:0")
    with pytest.raises(ValueError, match="the filter is bilinear or bicubic"):
        ps.JpegBatchDecoder(224, filter="nearest")
    if ps.gpu_count() == 0:
        with pytest.raises(ps.CudaError, match="cuda:0 cannot be used"):
            ps.JpegBatchDecoder(224)
