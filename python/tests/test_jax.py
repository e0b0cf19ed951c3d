"""penstock.jax: arrays sharded over the local devices. Four CPU devices, in a process of their own."""

from __future__ import annotations

import importlib.util
import os

import pytest
from conftest import run_python

if importlib.util.find_spec("jax") is None:
    pytest.skip("jax is not installed", allow_module_level=True)

START = """
import warnings
import jax, numpy as np, penstock as ps, penstock.jax as pj
jax.config.update("jax_enable_x64", True)
assert len(jax.local_devices()) == 4
def plan(remainder="drop"):
    values = np.arange(44).reshape(22, 2)
    return ps.memory({"x": values, "label": np.arange(22)}).batch(8, remainder=remainder)
"""


def run(code: str, devices: int = 4) -> None:
    flags = f"--xla_force_host_platform_device_count={devices}"
    old = os.environ.get("XLA_FLAGS")
    os.environ["XLA_FLAGS"] = flags
    os.environ["JAX_PLATFORMS"] = "cpu"
    try:
        run_python(START.replace("== 4", f"== {devices}") + code)
    finally:
        del os.environ["XLA_FLAGS"]
        if old is not None:
            os.environ["XLA_FLAGS"] = old


def test_rows_are_spread_over_the_devices():
    run(
        """
loader = pj.DataLoader(plan())
assert len(loader) == 2
for epoch in range(2):
    for number, batch in enumerate(loader):
        rows = np.arange(8 * number, 8 * number + 8)
        assert batch["x"].shape == (8, 2) and (np.asarray(batch["label"]) == rows).all()
        shards = [(str(s.device), np.asarray(s.data).tolist()) for s in batch["label"].addressable_shards]
        assert [d for d, _ in shards] == [str(d) for d in jax.local_devices()]
        assert [rows for _, rows in shards] == rows.reshape(4, 2).tolist()
        assert float(jax.jit(lambda x: x.sum())(batch["x"])) == float(np.arange(44)[16 * number : 16 * number + 16].sum())
"""
    )


def test_names_of_rows_are_beside_them():
    run(
        """
loader = pj.DataLoader(plan(), names="name")
for batch, step in zip(loader, plan().loader()):
    assert batch.pop("name") == step.names() and len(step.names()) == 8
    assert np.asarray(batch["label"]).tolist() == [sample.number for sample in step.samples]
    jax.jit(lambda batch: batch["x"].sum())(batch)
try:
    pj.DataLoader(plan(), names="label")
except ValueError as error:
    assert "names: the batches have a field 'label': choose another key" in str(error)
else:
    raise AssertionError
"""
    )


def test_padding_and_short_batches():
    run(
        """
batches = list(dict(b) for b in pj.DataLoader(plan("pad"), depth=4))
assert np.asarray(batches[-1]["valid"]).tolist() == [1] * 6 + [0] * 2
try:
    list(pj.DataLoader(plan("keep"), depth=4))
except ValueError as error:
    assert "drop" in str(error)
else:
    raise SystemExit("not refused")
"""
    )


@pytest.mark.parametrize("devices", [1, 4])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_computations_may_be_queued_for_steps_ahead(devices, depth):
    # What XLA has queued holds or reads its arguments after Python has dropped them.
    run(
        f"""
@jax.jit
def slow(x):
    weights = jax.lax.fori_loop(0, 20, lambda i, w: jax.numpy.tanh(w @ w), jax.numpy.ones((200, 200)))
    return x.max(axis=1) + (0 * weights[0, 0]).astype(x.dtype)
rows = np.arange(30 * 8)[:, None] + np.zeros((1, 4096), int)
loader = pj.DataLoader(ps.memory({{"x": rows}}).batch(8), depth={depth})
for epoch in range(2):
    got = []
    for batch in loader:
        got.append(slow(batch["x"]))
        del batch
    assert np.concatenate([np.asarray(x) for x in got]).tolist() == list(range(240))
""",
        devices=devices,
    )


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_what_a_loop_yields_may_be_donated_and_deleted(depth):
    run(
        f"""
doubled = jax.jit(lambda x: 2 * x, donate_argnums=0)
rows = np.arange(30 * 8)[:, None] + np.zeros((1, 64), int)
got = []
for batch in pj.DataLoader(ps.memory({{"x": rows, "y": rows}}).batch(8), depth={depth}):
    got.append(doubled(batch["x"]))
    batch["y"].delete()
assert np.concatenate([np.asarray(x)[:, 0] for x in got]).tolist() == list(range(0, 480, 2))
"""
    )


def test_what_a_loop_keeps_is_its_own():
    run(
        """
loader = pj.DataLoader(plan(), depth=1)
kept = [batch for epoch in range(3) for batch in loader]
assert [np.asarray(batch["label"]).tolist() for batch in kept] == 3 * [list(range(8)), list(range(8, 16))]
"""
    )


def test_one_device_copies_nothing_and_keeps_its_slot():
    run(
        """
loader = plan().prefetch_to_devices("host:1").loader()
step = next(loader)
array = pj.as_arrays(step, jax.local_devices())["x"]
assert array.addressable_shards[0].data.unsafe_buffer_pointer() == step["x"].address
del step
assert loader.stats().held_slots == 1
assert np.asarray(array)[1].tolist() == [2, 3]
del array
import gc; gc.collect()
assert loader.stats().held_slots == 0
""",
        devices=1,
    )


def test_options_of_torchs_loader_are_answered():
    run(
        """
from penstock._calls import OF_JAX_LOADER
options = ["batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory", "drop_last", "timeout",
           "worker_init_fn", "multiprocessing_context", "generator", "prefetch_factor", "persistent_workers", "pin_memory_device", "in_order"]
def said(*args, **options):
    try:
        pj.DataLoader(*args, **options)
    except TypeError as error:
        return str(error)
for word in options:
    assert said(plan(), **{word: 1}) == f"DataLoader() has no option '{word}': {OF_JAX_LOADER[word]}"
assert said(plan(), 8).endswith("if the next one is the batch_size of torch's DataLoader: it is the plan's: .batch(256) at its end, the global batch")
"""
    )
