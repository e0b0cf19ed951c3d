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
