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
