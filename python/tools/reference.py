"""Makes python/penstock/_penstock.pyi of the module, and docs/python-reference.md of the docstrings.

Usage: python python/tools/reference.py [stub | reference]     writes them, with the installed penstock
"""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import re
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "penstock"
STUB = PACKAGE / "_penstock.pyi"
REFERENCE = ROOT / "docs" / "python-reference.md"

# Modules of the package that are documented, and what of them.
MODULES = {
    "penstock.augment": ("augment.py", "Operations on pixels."),
    "penstock.recipes": ("recipes.py", "Training recipes."),
    "penstock.sync": ("sync.py", "Gradients of several processes."),
    "penstock.remote": ("remote.py", "Rows made by others."),
    "penstock.ray": ("ray.py", "On a Ray cluster."),
    "penstock.torch": ("torch.py", "For PyTorch."),
    "penstock.jax": ("jax.py", "For JAX."),
}


@contextlib.contextmanager
def _natives(module: types.ModuleType) -> Iterator[None]:
    """While it lasts, the module has its own functions in place of those that penstock._calls has put around them."""
    from penstock import _calls

    found = _calls.natives(module)
    places = [(getattr(module, name.split(".")[0]) if "." in name else module, name.split(".")[-1]) for name in found]
    wrapped = [vars(owner)[name] for owner, name in places]
    for (owner, name), native in zip(places, found.values()):
        setattr(owner, name, native)
    signatures = {one: vars(one)["__signature__"] for one in vars(module).values() if isinstance(one, type) and "__signature__" in vars(one)}
    for owner in signatures:
        del owner.__signature__
    try:
        yield
    finally:
        for owner, signature in signatures.items():
            owner.__signature__ = signature
        for (owner, name), call in zip(places, wrapped):
            setattr(owner, name, call)


def make_stub() -> str:
    """The stub of penstock._penstock, as nanobind's stubgen makes it."""
    import nanobind.stubgen
    import penstock._penstock

    version = importlib.metadata.version("nanobind").rsplit(".", 1)[0]
    generator = nanobind.stubgen.StubGen(penstock._penstock, include_docstrings=True, include_private=False)
    with _natives(penstock._penstock):
        generator.put(penstock._penstock)
    # The last overload of a constructor only says what is wrong with a call.
    text = re.sub(r"( +)@overload\n +def __init__\(self, \*arguments: Any, \*\*options: Any\) -> None: \.\.\.\n\n?", "", generator.get())
    text = re.sub(r" +@overload\n( +def __init__)", r"\1", text)
    text = re.sub(r"os\.PathLike\b(?!\[)", "os.PathLike[str]", text)
    private = "__version__: str\ndef _map_python(function: object, inputs: object, outputs: object, name: str, make_generator: object) -> Transform: ...\ndef _stop_all() -> None: ...\ndef _serve_items(items: object, fields: object, socket: int, blocks: object, seed: object) -> None: ...\ndef _run_through(loader: Loader) -> int: ...\n"
    lines = [line.rstrip() for line in f"{text.rstrip()}\n\n{private}".splitlines()]
    return f"# Made by scripts/python-reference with nanobind {version}. Kept, so that a change shows.\n" + "\n".join(lines) + "\n"


def _signature(node: ast.FunctionDef, name: str | None = None) -> str:
    arguments = ast.unparse(node.args).replace("os.PathLike[str]", "os.PathLike")
    if arguments.startswith("self"):
        arguments = arguments.removeprefix("self").removeprefix(", /").lstrip(", ")
    text = f"{name or node.name}({arguments})"
    returns = ast.unparse(node.returns) if node.returns else "None"
    return text if returns == "None" else f"{text} -> {returns}"


def _has(node: ast.FunctionDef, decorator: str) -> bool:
    return any(ast.unparse(one).split(".")[-1] == decorator for one in node.decorator_list)


def _code(text: str) -> str:
    return f"```python\n{text}\n```\n"


def _doc(node: ast.AST) -> str:
    text = ast.get_docstring(node) or ""
    # Label columns and examples are laid out with blanks.
    paragraphs = []
    for paragraph in text.split("\n\n"):
        laid_out = any("  " in line.strip() or line.startswith("    ") for line in paragraph.splitlines())
        paragraphs.append(f"```\n{textwrap.dedent(paragraph)}\n```" if laid_out else paragraph)
    return "\n\n".join(paragraphs) + "\n" if text else ""


def _describe_class(node: ast.ClassDef) -> str:
    bases = [ast.unparse(base) for base in node.bases]
    out = [f"### {node.name}\n"]
    if bases and not bases[0].startswith("PassLoader"):
        out.append(f"A {bases[0].split('.')[-1]}.\n")
    out.append(_doc(node))
    seen: set[str] = set()
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            out.append(_code(f"{item.target.id}: {ast.unparse(item.annotation)}"))
        if not isinstance(item, ast.FunctionDef):
            continue
        if item.name.startswith("_") and item.name not in ("__init__", "__iter__", "__next__", "__len__", "__getitem__", "__dlpack__"):
            continue
        first = item.name not in seen
        seen.add(item.name)
        if _has(item, "property"):
            returns = ast.unparse(item.returns) if item.returns else ""
            text = _doc(item)
            out.append(_code(f".{item.name}: {returns}") + text)
        elif item.name == "__init__":
            out.insert(2 if first else len(out), _code(_signature(item, node.name)) + _doc(item))
        elif not item.name.startswith("__") or _doc(item):
            out.append(_code(f".{_signature(item)}") + _doc(item))
    return "\n".join(part.rstrip() + "\n" for part in out if part)


def _describe_functions(nodes: list[ast.FunctionDef]) -> str:
    signatures = "\n".join(_signature(node) for node in nodes)
    return f"### {nodes[0].name}\n\n{_code(signatures)}" + "".join(_doc(node) for node in nodes)


def _definitions(path: Path) -> dict[str, list[ast.AST]]:
    found: dict[str, list[ast.AST]] = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found.setdefault(node.name, []).append(node)
    return found


def _describe(nodes: list[ast.AST]) -> str:
    if isinstance(nodes[0], ast.ClassDef):
        return _describe_class(nodes[0])
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    typed = [node for node in functions if not _has(node, "overload")]
    return _describe_functions(typed if typed else functions)


def make_reference() -> str:
    """The reference, in the order of __all__ and under its headings."""
    from penstock import augment, sync

    known: dict[str, list[ast.AST]] = {}
    for path in (STUB, PACKAGE / "_errors.py", PACKAGE / "_map.py"):
        known.update(_definitions(path))
    source = (PACKAGE / "__init__.py").read_text()
    listed = source[source.index("__all__ = [") :].split("]")[0].splitlines()[1:]
    borrowed = {"penstock.augment": augment.__all__, "penstock.sync": sync.__all__}  # modules of what others define
    out = ["# The Python interface\n", "Made of the docstrings by `scripts/python-reference`. A tour is in [python.md](python.md).\n"]
    for line in listed:
        line = line.strip()
        if line.startswith("#"):
            out.append(f"## {line.removeprefix('# ').rstrip('.')}\n")
        elif (name := line.strip('",')) in known:
            out.append(_describe(known[name]))
    for module, (file, _) in MODULES.items():
        tree = ast.parse((PACKAGE / file).read_text())
        out.append(f"## {module}\n")
        out.append(_doc(tree))
        definitions = _definitions(PACKAGE / file)
        definitions.update((name, known[name]) for name in borrowed.get(module, ()))
        for name, nodes in definitions.items():
            if not name.startswith("_"):
                out.append(_describe(nodes))
        if "DataLoader" in definitions:
            shared = _definitions(PACKAGE / "_passes.py")["PassLoader"][0]
            assert isinstance(shared, ast.ClassDef)
            shared.name = "DataLoader, beside that"
            shared.bases = []
            shared.body = [item for item in shared.body if getattr(item, "name", "") not in ("__init__", "__iter__")]
            out.append(_describe_class(shared))
    return "\n".join(part.rstrip() + "\n" for part in out)


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["stub", "reference"]
    if "stub" in wanted:
        STUB.write_text(make_stub())
    if "reference" in wanted:
        REFERENCE.write_text(make_reference())
