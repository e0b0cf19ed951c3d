"""Loaders on GPUs, without a framework that could read their memory: digests and addresses tell."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import numbers

import penstock as ps

if ps.gpu_count() == 0:
    pytest.skip("no GPU", allow_module_level=True)

ALL = "cuda:" + ",".join(str(index) for index in range(ps.gpu_count()))


def delivered(devices: str) -> str:
    plan = numbers(1000).seed(7).shuffle().batch(40, uneven=True).prefetch_to_devices(devices)
    loader = plan.loader(digest=True, threads=2)
    assert sum(len(step.samples) for step in loader) == 1000
    return loader.digest


@pytest.mark.parametrize("devices", sorted({"cuda:0", "cuda:0,0", ALL}))
def test_the_same_bytes_come_as_on_the_host(devices):
    assert delivered(devices) == delivered("host:1")


@pytest.mark.parametrize("devices", sorted({"cuda:0", "cuda:0,0", ALL}))
def test_what_transforms_make_there_is_what_they_make_on_the_host(devices):
    def transformed(devices: str) -> str:
        images = ps.memory({"image": (np.arange(96 * 4 * 5 * 3) % 251).astype(np.uint8).reshape(96, 4, 5, 3)})
        plan = images.seed(7).batch(40, uneven=True).transform_on_device(flip=0.5, mean=[0.5])
        loader = plan.prefetch_to_devices(devices).loader(digest_transformed=True)
        steps = [int(step.transformed_digest, 16) for step in loader]
        assert f"{sum(steps) % 2**128:032x}" == loader.transformed_digest == loader.state_dict()["transformed_digest"]
        assert loader.digest == "0" * 32
        return loader.transformed_digest

    assert transformed(devices) == transformed("host:1") != "0" * 32


def test_every_device_gets_its_part():
    step = next(numbers(64).batch(32, uneven=True).prefetch_to_devices(ALL).loader())
    assert [str(part.device) for part in step.parts] == [f"cuda:{index}" for index in range(ps.gpu_count())]


def test_a_tensor_is_for_cudas_array_interface_alone():
    tensor = next(numbers(64).batch(4).prefetch_to_devices("cuda:0").loader())["number"]
    interface = tensor.__cuda_array_interface__
    assert (interface["data"], interface["shape"], interface["typestr"]) == ((tensor.address, False), (4, 2), "<i8")
    assert tensor.__dlpack_device__() == (2, 0) and not hasattr(tensor, "__array_interface__")
    with pytest.raises(TypeError, match="on a GPU"):
        tensor.numpy()


def test_tensors_outlive_their_loader():
    loader = numbers(64).batch(4).prefetch_to_devices("cuda:0").loader()
    kept = [step["number"] for step, _ in zip(loader, range(2))]
    del loader
    assert kept[0].address != kept[1].address


def test_jpegs_that_gpus_decode_are_the_hosts(photographs):
    def digest(devices: str, **options) -> tuple[str, dict[str, int]]:
        stats = ps.JpegStats()
        decode = ps.decode_image(crop=ps.random_resized_crop(224), index=ps.MemoryJpegIndex(), stats=stats)
        plan = ps.image_folder(photographs).map(decode).seed(3).shuffle().repeat(3).batch(8, uneven=True)
        loader = plan.prefetch_to_devices(devices).loader(digest=True, **options)
        assert sum(len(step.samples) for step in loader) == 72
        return loader.digest, stats.counts()

    expected, _ = digest("host:1")
    found, counts = digest(ALL, decode_on_gpu=True)
    assert found == expected
    assert sum(counts.values()) - counts["indexed"] >= 72 and counts["on_gpu"] >= 24


def test_a_decoder_of_batches_learns(photographs):
    files = [path.read_bytes() for path in sorted(photographs.rglob("*.jpg"))]
    out = next(ps.memory({"x": np.zeros((24, 32, 40, 3), np.uint8)}).batch(24).prefetch_to_devices("cuda:0").loader())["x"]
    decoder = ps.JpegBatchDecoder((32, 40))
    assert repr(decoder.decode(files, out)) == "JpegBatchReport(on_gpu=0, on_host=24, faults=0)"
    boxes = [(10, 5, 60, 40), None] * 12
    report = decoder.decode([memoryview(file) for file in files], out, boxes=boxes, mirror=[True] * 24)
    assert report.on_gpu >= 12 and report.on_gpu + report.on_host == 24 and report.faults == [None] * 24
    report = decoder.decode([*files[:7], files[7][:500], *files[8:]], out)
    assert [number for number, fault in enumerate(report.faults) if fault] == [7]
    decoder.wait()
    with pytest.raises(ValueError, match=r"a box of 9000x40 pixels at \(10, 5\) is not within its image, which has \d+x\d+"):
        decoder.decode(files, out, boxes=[(10, 5, 9000, 40)] + [None] * 23)
    with pytest.raises(ValueError, match="expected 24 boxes, one an image, found 1"):
        decoder.decode(files, out, boxes=[None])
    with pytest.raises(ValueError, match=r"out has to be uint8 \[3, 32, 40, 3\], found uint8 \[24, 32, 40, 3\]"):
        decoder.decode(files[:3], out)
    with pytest.raises(ValueError, match="out is on host:0, and the decoder on cuda:0"):
        decoder.decode(files, np.zeros((24, 32, 40, 3), np.uint8))
    with pytest.raises(TypeError, match=r"images\[1\]: expected bytes, or an array of them"):
        decoder.decode([files[0], 3], out)
