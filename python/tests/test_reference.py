"""What is kept beside the code: the stub, which shows every change of the interface, and the reference made of it."""

from __future__ import annotations

import ast
import difflib
import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as ps
from penstock import _penstock

ROOT = Path(__file__).parents[2]
STUB = ROOT / "python" / "penstock" / "_penstock.pyi"
sys.path.insert(0, str(ROOT / "python" / "tools"))
import reference


def same(found: str, path: Path) -> None:
    lines = difflib.unified_diff(path.read_text().splitlines(), found.splitlines(), str(path), "found", lineterm="")
    difference = "\n".join(lines)
    assert not difference, f"{difference}\n\nregenerate them: scripts/python-reference"


def test_the_stub_is_that_of_the_module():
    pytest.importorskip("nanobind", reason="nanobind, whose stubgen makes the stub, is not installed")
    found = importlib.metadata.version("nanobind").rsplit(".", 1)[0]
    made_with = re.search(r"nanobind (\d+\.\d+)", STUB.read_text().splitlines()[0])
    assert made_with
    if found != made_with[1]:
        pytest.skip(f"the stub was made with nanobind {made_with[1]}, and here is {found}")
    same(reference.make_stub(), STUB)


def test_the_reference_is_made_of_the_docstrings():
    same(reference.make_reference(), ROOT / "docs" / "python-reference.md")


def test_everything_public_is_exported_and_documented():
    for name in ps.__all__:
        assert getattr(ps, name) is not None
        assert name == "__version__" or getattr(ps, name).__doc__, name
    for module in (ps.augment, ps.recipes, ps.sync):
        for name in module.__all__:
            assert name.isupper() or getattr(module, name).__doc__, name
    public = {name for name in vars(_penstock) if not name.startswith("_")}
    exported = {*ps.__all__, *ps.augment.__all__, *ps.sync.__all__}
    assert public <= exported, public - exported


def test_the_stub_is_python():
    ast.parse(STUB.read_text())
    assert (STUB.parent / "py.typed").exists()


def test_pyright_knows_every_type(tmp_path):
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("basedpyright is not installed")
    command = [sys.executable, "-m", "basedpyright", "--verifytypes", "penstock", "--ignoreexternal", "--outputjson", "--pythonpath", sys.executable]
    where = {**os.environ, "PYTHONPATH": str(Path(ps.__file__).parents[1])}
    found = json.loads(subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, env=where).stdout)
    symbols = found["typeCompleteness"]["symbols"]
    assert len(symbols) > 300
    # Types of JAX's own are not always known.
    unknown = [one["name"] for one in symbols if not one["isTypeKnown"] and not one["name"].startswith("penstock.jax.")]
    assert not unknown


def test_the_package_is_typed():
    mypy = pytest.importorskip("mypy.api", reason="mypy is not installed")
    out, err, status = mypy.run(["--python-version", "3.10", "--ignore-missing-imports", str(STUB.parent)])
    assert status == 0, out + err
