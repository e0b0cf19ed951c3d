"""The cache of objects on a local disk: what it saves, what it says, and what a full or failing disk does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import penstock as ps

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROOT = "hf://datasets/owner/name/data"
ROWS, BYTES = 80, 30_000
TAKEN = 32_768  # of the disk, by a value with its head


def write_rows(folder: Path, name: str, seed: int = 1) -> Path:
    """Uncompressed values, each of which is one read."""
    rng = np.random.default_rng(seed)
    values = [rng.bytes(BYTES) for _ in range(ROWS)]
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.table({"value": pa.array(values, pa.binary()), "number": pa.array(range(ROWS), pa.int64())})
    pq.write_table(table.select(["value"]), folder / name, compression="none", use_dictionary=False)
    return folder


def mib(rows: float) -> str:
    return str(round(rows * TAKEN / 2**20))


def epoch(data: ps.Dataset, seed: int) -> tuple[dict[str, dict[str, int]], str, ps.Loader]:
    loader = data.map(ps.pad("value", BYTES)).shuffle(seed=seed).batch(8).loader(threads=2, digest=True)
    for _ in loader:
        pass
    return loader.stats().tiers, loader.digest, loader


@pytest.fixture
def remote(hub, tmp_path, monkeypatch):
    """A table on the stand-in, whose index is there already, and the folder of a cache."""
    hub.push(write_rows(tmp_path / "files" / "data", "rows.parquet").parent)
    ps.parquet(ROOT)  # makes the index without the cache
    folder = tmp_path / "objects"
    monkeypatch.setenv("PENSTOCK_OBJECT_CACHE", str(folder))
    return folder


def test_a_full_cache_saves_its_share_of_the_reads(hub, remote, monkeypatch):
    monkeypatch.setenv("PENSTOCK_OBJECT_CACHE_MB", "1")  # 32 of the 80 values
    wanted = epoch(ps.parquet(ROOT), 0)[1]
    data = ps.parquet(ROOT)
    shares = []
    for seed in range(1, 5):
        before = hub.count("cdn")
        tiers, _, _ = epoch(data, seed)
        disk = tiers[f"disk {remote}"]
        assert disk["reads"] + tiers["bucket"]["reads"] == ROWS
        assert hub.count("cdn") - before == tiers["bucket"]["reads"]
        shares.append(disk["reads"] / ROWS)
        assert disk["budget_bytes"] == 2**20
        assert 0 < disk["held_bytes"] <= 2**20
    held = disk["entries"]
    assert 30 <= held <= 34  # the footer is one, too
    assert all(abs(share - held / ROWS) < 0.03 for share in shares), shares
    assert epoch(ps.parquet(ROOT), 0)[1] == wanted


def test_all_that_fits_is_read_from_the_bucket_once(hub, remote, tmp_path):
    local = epoch(ps.parquet(tmp_path / "files" / "data"), 3)[1]
    data = ps.parquet(ROOT)
    assert epoch(data, 3)[1] == local
    before = hub.count("cdn")
    tiers, digest, loader = epoch(data, 3)
    assert digest == local and hub.count("cdn") == before
    assert tiers["bucket"]["reads"] == 0 and tiers[f"disk {remote}"]["bytes"] >= ROWS * BYTES
    report = loader.report()
    assert f"disk {remote}: {ROWS} reads" in str(report)
    assert "fit into the cache" in str(report)
    written = {tier["name"]: tier for tier in json.loads(report.to_json())["tiers"]}
    assert written["disk"]["reads"] == ROWS and written["disk"]["folder"] == str(remote)
    # A push of other bytes reads them, and no old ones.
    hub.push(write_rows(tmp_path / "files" / "data", "rows.parquet", seed=2).parent)
    local = epoch(ps.parquet(tmp_path / "files" / "data"), 3)[1]
    for _ in range(2):
        assert epoch(ps.parquet(ROOT), 3)[1] == local


def test_the_index_of_a_file_fills_the_cache_with_what_rows_are_read_from(hub, remote):
    hub.push(write_rows(remote.parent / "more" / "data", "rows.parquet", seed=5).parent)
    data = ps.parquet(ROOT, index_location="memory")
    before = hub.count("cdn")
    tiers, _, _ = epoch(data, 1)
    assert tiers[f"disk {remote}"]["reads"] + tiers["bucket"]["reads"] == ROWS
    assert hub.count("cdn") - before == tiers["bucket"]["reads"]


def test_without_a_cache_the_report_says_what_one_would_hold(hub, remote, monkeypatch):
    monkeypatch.delenv("PENSTOCK_OBJECT_CACHE")
    tiers, _, loader = epoch(ps.parquet(ROOT), 1)
    assert list(tiers) == ["bucket"] or list(tiers) == ["memory", "bucket"]
    assert tiers["bucket"]["reads"] == ROWS
    assert "would hold all of the data" in str(loader.report())
    assert not remote.exists()


def test_values_that_are_none_are_refused(remote, monkeypatch):
    monkeypatch.setenv("PENSTOCK_OBJECT_CACHE_POLICY", "newest")
    with pytest.raises(ps.Error, match="'keep' or 'lru', found 'newest'"):
        ps.parquet(ROOT)


def test_lru_takes_what_is_read_now(hub, remote, monkeypatch):
    monkeypatch.setenv("PENSTOCK_OBJECT_CACHE_POLICY", "lru")
    monkeypatch.setenv("PENSTOCK_OBJECT_CACHE_MB", "1")
    data = ps.parquet(ROOT)
    for seed in range(3):
        tiers, _, _ = epoch(data, seed)
    assert tiers[f"disk {remote}"]["reads"] < 0.25 * ROWS  # keep has 0.4, the formula says 0.09


def test_processes_share_a_folder(hub, remote):
    code = f"""
import sys
import penstock as ps
loader = ps.parquet({ROOT!r}).map(ps.pad("value", {BYTES})).shuffle(seed=int(sys.argv[1])).batch(8).loader(digest=True)
for _ in loader:
    pass
print(loader.stats().tiers["bucket"]["reads"])
"""
    environment = {**os.environ, "PENSTOCK_OBJECT_CACHE": str(remote)}
    children = [subprocess.Popen([sys.executable, "-c", code, str(seed)], env=environment, stdout=subprocess.PIPE, text=True)
                for seed in (1, 2)]
    for child in children:
        child.communicate()
        assert child.returncode == 0
    assert len(list(remote.glob("??/*.object"))) >= ROWS
    tiers, _, _ = epoch(ps.parquet(ROOT), 3)
    assert tiers["bucket"]["reads"] == 0
    # No value is there twice: each range has one entry.
    names = [path.name for path in remote.glob("??/*.object")]
    assert len(names) == len(set(names)) and sum(path.stat().st_size for path in remote.glob("??/*.object")) < 1.2 * ROWS * BYTES


def test_a_full_disk_is_a_notice_and_the_run_goes_on(hub, remote, tmp_path, monkeypatch):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", disk], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("no right to mount a small disk")
    try:
        wanted = epoch(ps.parquet(tmp_path / "files" / "data"), 2)[1]
        monkeypatch.setenv("PENSTOCK_OBJECT_CACHE", str(disk / "cache"))
        data = ps.parquet(ROOT)
        _, digest, loader = epoch(data, 2)
        assert digest == wanted
        told = [notice for notice in loader.report().notices if "takes nothing more" in str(notice)]
        assert len(told) == 1 and "No space left on device" in str(told[0]) and str(disk) in str(told[0])
        assert "No space left on device" in str(loader.report())
        tiers, digest, _ = epoch(data, 2)
        assert digest == wanted and tiers[f"disk {disk / 'cache'}"]["reads"] > 5  # what is there is read
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
