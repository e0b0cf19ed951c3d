"""Writes the stub of a module that was built, with docstrings, for the wheel: editors show them.

Usage: python stub.py MODULE OUTPUT     MODULE is the file of penstock._penstock
"""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import sys
import types
from pathlib import Path

PRIVATE = """\
__version__: str
def _map_python(function: object, inputs: object, outputs: object, name: str, make_generator: object) -> Transform: ...
def _stop_all() -> None: ...
def _serve_items(items: object, fields: object, socket: int, blocks: object, seed: object) -> None: ...
def _run_through(loader: Loader) -> int: ...
"""


def load(file: Path) -> types.ModuleType:
    """The module, without what the package puts around its functions."""
    package = types.ModuleType("penstock")
    package.__path__ = [str(file.parent), str(Path(__file__).parents[1] / "penstock")]  # the exceptions are in the latter
    sys.modules["penstock"] = package
    return importlib.import_module("penstock._penstock")


def make_stub(module: types.ModuleType, *, with_docstrings: bool) -> str:
    """As nanobind's stubgen makes it."""
    import nanobind.stubgen

    generator = nanobind.stubgen.StubGen(module, include_docstrings=with_docstrings, include_private=False)
    generator.put(module)
    # The last overload of a constructor only says what is wrong with a call.
    text = re.sub(r"( +)@overload\n +def __init__\(self, \*arguments: Any, \*\*options: Any\) -> None: \.\.\.\n\n?", "", generator.get())
    text = re.sub(r" +@overload\n( +def __init__)", r"\1", text)
    text = re.sub(r"os\.PathLike\b(?!\[)", "os.PathLike[str]", text)
    return "\n".join(line.rstrip() for line in f"{text.rstrip()}\n\n{PRIVATE}".splitlines()) + "\n"


def nanobind_version() -> str:
    """Without the last number."""
    return importlib.metadata.version("nanobind").rsplit(".", 1)[0]


if __name__ == "__main__":
    module_file, output = map(Path, sys.argv[1:])
    try:
        text = f"# Made with nanobind {nanobind_version()}.\n" + make_stub(load(module_file), with_docstrings=True)
    except (ImportError, RuntimeError) as error:  # no typing_extensions before Python 3.11, a library that is found at run time only
        print(f"warning: the stub has no docstrings: {error}", file=sys.stderr)
        text = (Path(__file__).parents[1] / "penstock" / "_penstock.pyi").read_text()
    output.write_text(text)
