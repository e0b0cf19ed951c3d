"""What only a GPU shows: the handshake of streams, and that nothing is copied there either."""

from __future__ import annotations

import pytest
from conftest import numbers

import penstock as ps

torch = pytest.importorskip("torch", reason="torch is not installed")
if ps.gpu_count() == 0 or not torch.cuda.is_available():
    pytest.skip("no GPU, or a torch without CUDA", allow_module_level=True)

import penstock.torch as pt


def steps(count: int = 64):
    return numbers(count).batch(4).prefetch_to_devices("cuda:0").loader()


def test_torch_gets_the_memory_itself():
    tensor = next(steps())["number"]
    taken = torch.from_dlpack(tensor)
    assert taken.data_ptr() == tensor.address and taken.device == torch.device("cuda:0")
    assert taken.cpu().tolist() == [[0, 0], [1, 1], [2, 4], [3, 9]]


def test_a_stream_that_takes_a_tensor_waits_for_its_arrival():
    stream = torch.cuda.Stream()
    for step in steps(4000):
        with torch.cuda.stream(stream):
            taken = torch.from_dlpack(step["number"])
            first = step.samples[0].number
            wanted = torch.arange(first, first + len(taken), device="cuda")
            assert bool((taken[:, 0] == wanted).all())


def test_the_array_interface_is_cudas():
    tensor = next(steps())["number"]
    interface = tensor.__cuda_array_interface__
    assert interface["data"] == (tensor.address, False) and interface["version"] == 3
    assert torch.as_tensor(tensor, device="cuda").data_ptr() == tensor.address


def test_copy_to_fills_a_captured_steps_input():
    static = torch.full((4, 2), -1, dtype=torch.int64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        doubled = static * 2
    for step in steps():
        step.parts[0].copy_to("number", static)
        graph.replay()
        first = step.samples[0].number
        assert doubled[:, 0].tolist() == [2 * number for number in range(first, first + 4)]


def test_the_iterator_of_dicts_yields_tensors_on_the_gpu():
    loader = pt.DataLoader(numbers(64).batch(4), devices="cuda:0")
    batches = list(loader)
    assert all(batch["number"].device == torch.device("cuda:0") for batch in batches)
    assert sorted(number for batch in batches for number in batch["number"][:, 0].tolist()) == list(range(64))


def test_a_decoder_of_batches_has_the_hosts_pixels(photographs):
    files = [path.read_bytes() for path in sorted(photographs.rglob("*.jpg"))]
    decoder = ps.JpegBatchDecoder(96)
    on_host, on_gpu = (torch.zeros(24, 96, 96, 3, dtype=torch.uint8, device="cuda") for _ in range(2))
    assert decoder.decode(files, on_host).on_host == 24
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        assert decoder.decode(files, on_gpu).on_gpu >= 12
    stream.synchronize()
    torch.cuda.synchronize()
    assert bool((on_host == on_gpu).all()) and int(on_gpu.max()) > 0
