"""Writes python/penstock/_penstock.pyi of the installed module, and build/python-reference.md of its docstrings.

Usage: python python/tools/reference.py
"""

from __future__ import annotations

import ast
import contextlib
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path

import stub

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "penstock"
STUB = PACKAGE / "_penstock.pyi"
REFERENCE = ROOT / "build" / "python-reference.md"

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
# Files with what penstock itself exports, beside the module in C++.
FILES = ("_errors.py", "_look.py", "_map.py", "_progress.py")


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


def make_stub(*, with_docstrings: bool) -> str:
    """Of the installed module."""
    import penstock._penstock

    with _natives(penstock._penstock):
        return stub.make_stub(penstock._penstock, with_docstrings=with_docstrings)


def make_golden_stub() -> str:
    """The one beside the sources."""
    first = f"# Made by scripts/python-reference with nanobind {stub.nanobind_version()}. Kept, so that a change shows; wheels have one with docstrings.\n"
    return first + make_stub(with_docstrings=False)


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


def _definitions(text: str) -> dict[str, list[ast.AST]]:
    found: dict[str, list[ast.AST]] = {}
    for node in ast.parse(text).body:
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
    for text in (make_stub(with_docstrings=True), *((PACKAGE / file).read_text() for file in FILES)):
        known.update(_definitions(text))
    source = (PACKAGE / "__init__.py").read_text()
    listed = source[source.index("__all__ = [") :].split("]")[0].splitlines()[1:]
    borrowed = {"penstock.augment": augment.__all__, "penstock.sync": sync.__all__}  # modules of what others define
    out = ["# The Python interface\n", "Made of the docstrings by `scripts/python-reference`. A tour is in [python.md](../docs/python.md).\n"]
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
        definitions = _definitions((PACKAGE / file).read_text())
        definitions.update((name, known[name]) for name in borrowed.get(module, ()))
        for name, nodes in definitions.items():
            if not name.startswith("_"):
                out.append(_describe(nodes))
        if "DataLoader" in definitions:
            shared = _definitions((PACKAGE / "_passes.py").read_text())["PassLoader"][0]
            assert isinstance(shared, ast.ClassDef)
            shared.name = "DataLoader, beside that"
            shared.bases = []
            shared.body = [item for item in shared.body if getattr(item, "name", "") not in ("__init__", "__iter__")]
            out.append(_describe_class(shared))
    return "\n".join(part.rstrip() + "\n" for part in out)


if __name__ == "__main__":
    STUB.write_text(make_golden_stub())
    REFERENCE.parent.mkdir(exist_ok=True)
    REFERENCE.write_text(make_reference())
