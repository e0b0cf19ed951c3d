#!/usr/bin/env python3
"""Makes the files beside it with the tools whose files Penstock reads. Run by hand, in a throw-away
environment; the tests only read what is here.

  python3 -m venv /tmp/golden && /tmp/golden/bin/pip install webdataset==1.0.2 tensorflow-cpu==2.21.0 \
      tfrecord==1.14.6 crc32c==2.9.post0
  /tmp/golden/bin/python make.py

Each shard has a list beside it, of what the tool itself reads from it: one line per value, its parts
separated by tabs, the bytes as length and CRC-32C.
"""
import io
import os
import random
import subprocess
import sys
import tarfile
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import crc32c
import webdataset as wds

here = os.path.dirname(os.path.abspath(__file__))
draw = random.Random(7)


def path(name):
    return os.path.join(here, name)


def described(data):
    return f"{len(data)}\t{crc32c.crc32c(data):08x}"


def list_tar(name):
    """What the webdataset package makes of a shard."""
    stream = wds.tariterators.tarfile_samples([dict(url=path(name))])
    with open(path(name + ".txt"), "w", newline="\n") as out:
        for sample in stream:
            for extension, data in sample.items():
                if not extension.startswith("__"):
                    out.write(f"{sample['__key__']}\t{extension}\t{described(data)}\n")


def make_webdataset():
    with wds.TarWriter(path("webdataset.tar")) as sink:
        for i in range(5):
            sink.write({
                "__key__": f"folder/{i:06d}",
                "jpg": draw.randbytes(300 + 300 * i),
                "cls": 10 * i - 10,
                "json": {"number": i, "text": "ä" * i},
            })
    list_tar("webdataset.tar")


def members():
    """Names and contents that ask for all that the formats have."""
    yield "a.jpg", draw.randbytes(700)
    yield "a.cls", b" 3\n"
    yield "b.JPG", draw.randbytes(512)
    yield "b.cls", b"-4"
    yield "b.empty", b""
    yield "deep/" * 12 + "c.seg.png", draw.randbytes(10)
    yield "deep/" * 12 + "c.cls", b"5"
    yield "l" * 120 + ".jpg", draw.randbytes(20)
    yield "l" * 120 + ".cls", b"6"
    yield "with.dots/d.jpg", draw.randbytes(1500)
    yield "with.dots/d.cls", b"7"
    yield "__note__", b"not a sample"
    yield "__notes__/e.jpg", b"not a sample"
    yield "no_extension", b"not a sample"
    yield ".hidden", b"not a sample"
    yield "\u00fcml\u00e4ut.jpg", draw.randbytes(30)
    yield "\u00fcml\u00e4ut.cls", b"8"


def make_tarfile(name, form):
    with tarfile.open(path(name), "w", format=form, encoding="utf-8") as out:
        folder = tarfile.TarInfo("folder.jpg")
        folder.type = tarfile.DIRTYPE
        out.addfile(folder)
        for member, data in members():
            if form == tarfile.USTAR_FORMAT and len(member) > 100 and "/" not in member:
                continue
            info = tarfile.TarInfo(member)
            info.size = len(data)
            info.mtime = 1.5 if form == tarfile.PAX_FORMAT else 1
            out.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("z.jpg")
        link.type = tarfile.SYMTYPE
        link.linkname = "a.jpg"
        out.addfile(link)
    list_tar(name)


def make_gnu_tar():
    """GNU tar itself, with its own long names."""
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for member, data in members():
            file = os.path.join(folder, member)
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with open(file, "wb") as out:
                out.write(data)
            names.append(member)
        subprocess.run(["tar", "--format=gnu", "--owner=0", "--group=0", "--mtime=@1", "-cf",
                        path("gnu_tar.tar"), "-C", folder, *names], check=True)
    list_tar("gnu_tar.tar")


def feature(value):
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    if isinstance(value[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=value))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=value))


def list_tfrecord(name):
    """What TensorFlow reads from a file."""
    with open(path(name + ".txt"), "w", newline="\n") as out:
        for number, record in enumerate(tf.data.TFRecordDataset(path(name))):
            example = tf.io.parse_single_example(record, {
                "image/encoded": tf.io.FixedLenFeature([], tf.string),
                "image/class/label": tf.io.FixedLenFeature([], tf.int64),
                "box": tf.io.FixedLenFeature([4], tf.float32),
            })
            box = " ".join(f"{x:.9g}" for x in example["box"].numpy())
            out.write(f"{number}\t{described(example['image/encoded'].numpy())}"
                      f"\t{example['image/class/label'].numpy()}\t{box}\n")


def values(i):
    return {
        "image/encoded": draw.randbytes(400 * i),
        "image/class/label": [(-1) ** i * 7 ** (4 * i)],
        "box": [i / 3, -1e-30 * i, float(i), 1e30],
        "image/filename": f"{i}.jpg".encode(),
        "image/object/label": list(range(i + 1)),
    }


def make_tensorflow():
    with tf.io.TFRecordWriter(path("tensorflow.tfrecord")) as out:
        for i in range(5):
            features = {name: feature(value) for name, value in values(i).items()}
            example = tf.train.Example(features=tf.train.Features(feature=features))
            out.write(example.SerializeToString())
    list_tfrecord("tensorflow.tfrecord")


def make_sequences():
    """SequenceExamples with lists of any length, and what TensorFlow reads of them: of each list the number of rows and
    its values, of ragged ones also the rows' lengths."""
    draw = random.Random(8)
    text = lambda most: bytes(draw.choices(b"abcdefgh", k=draw.randint(0, most)))
    numbers = lambda: [draw.randint(-9, 9) for _ in range(draw.randint(0, 4))]
    with tf.io.TFRecordWriter(path("sequences.tfrecord")) as out:
        for i in range(12):
            steps = i % 5
            context = {"ids": feature(numbers() or [0]),
                       "words": tf.train.Feature(bytes_list=tf.train.BytesList(value=[text(5) for _ in range(i % 4)]))}
            if i % 3 == 0:
                del context["ids"]
            lists = {"pose": [feature([draw.randint(-8, 8) / 4, i / 2]) for _ in range(steps)],
                     "frames": [feature(text(9)) for _ in range(steps)],
                     "tokens": [tf.train.Feature(int64_list=tf.train.Int64List(value=numbers())) for _ in range(steps)]}
            example = tf.train.SequenceExample(
                context=tf.train.Features(feature=context),
                feature_lists=tf.train.FeatureLists(
                    feature_list={name: tf.train.FeatureList(feature=all_of) for name, all_of in lists.items()}))
            out.write(example.SerializeToString())
    plain = lambda values: f"[{len(values)}] " + "".join(f"{x:.9g} " for x in values)
    joined = lambda texts: f"[{sum(map(len, texts))}] {b''.join(texts).decode()} " + plain([len(one) for one in texts])
    with open(path("sequences.tfrecord.txt"), "w", newline="\n") as out:
        for record in tf.data.TFRecordDataset(path("sequences.tfrecord")):
            context, lists = tf.io.parse_single_sequence_example(
                record,
                {"ids": tf.io.VarLenFeature(tf.int64), "words": tf.io.RaggedFeature(tf.string)},
                {"pose": tf.io.FixedLenSequenceFeature([2], tf.float32),
                 "frames": tf.io.FixedLenSequenceFeature([], tf.string),
                 "tokens": tf.io.RaggedFeature(tf.int64)})
            pose = lists["pose"].numpy()
            line = (plain(context["ids"].values.numpy()) + joined(context["words"].numpy().tolist())
                    + f"[{len(pose)},2] " + "".join(f"{x:.9g} " for x in pose.ravel())
                    + joined(lists["frames"].numpy().tolist()) + plain(lists["tokens"].flat_values.numpy())
                    + plain(lists["tokens"].row_lengths().numpy()))
            out.write(line.rstrip() + "\n")


def make_tfrecord_package():
    import tfrecord
    kinds = {int: "int", float: "float"}
    out = tfrecord.TFRecordWriter(path("tfrecord_package.tfrecord"))
    for i in range(3):
        out.write({name: (value, "byte" if isinstance(value, bytes) else kinds[type(value[0])])
                   for name, value in values(i).items()})
    out.close()


if sys.argv[1:] == ["tfrecord_package"]:  # does not live in one process with TensorFlow
    make_tfrecord_package()
    sys.exit()
subprocess.run([sys.executable, __file__, "tfrecord_package"], check=True)
import tensorflow as tf

make_webdataset()
make_tarfile("python_ustar.tar", tarfile.USTAR_FORMAT)
make_tarfile("python_gnu.tar", tarfile.GNU_FORMAT)
make_tarfile("python_pax.tar", tarfile.PAX_FORMAT)
make_gnu_tar()
make_tensorflow()
make_sequences()
list_tfrecord("tfrecord_package.tfrecord")
