"""The stub beside the sources, which shows every change of the interface; the one of the wheel; the reference."""

from __future__ import annotations

import ast
import difflib
import importlib.util
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import penstock as ps
from penstock import _penstock

ROOT = Path(__file__).parents[2]
STUB = ROOT / "python" / "penstock" / "_penstock.pyi"
sys.path.insert(0, str(ROOT / "python" / "tools"))
import header_docs
import reference
import stub


def same(found: str, expected: str) -> None:
    lines = difflib.unified_diff(expected.splitlines(), found.splitlines(), str(STUB), "found", lineterm="")
    difference = "\n".join(lines)
    assert not difference, f"{difference}\n\nwrite it anew: scripts/python-reference"


def require_the_stubs_nanobind() -> None:
    pytest.importorskip("nanobind", reason="nanobind, whose stubgen makes the stub, is not installed")
    made_with = re.search(r"nanobind (\d+\.\d+)", STUB.read_text().splitlines()[0])
    assert made_with
    if stub.nanobind_version() != made_with[1]:
        pytest.skip(f"the stub was made with nanobind {made_with[1]}, and here is {stub.nanobind_version()}")


def test_the_stub_is_that_of_the_module():
    require_the_stubs_nanobind()
    same(reference.make_golden_stub(), STUB.read_text())


def without_docstrings(text: str) -> str:
    """The statements of a stub, whose bodies are nothing but docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass() if isinstance(node, ast.ClassDef) else ast.Expr(ast.Constant(...))]
    return ast.unparse(tree)


def test_the_installed_stub_has_docstrings():
    require_the_stubs_nanobind()
    installed = (Path(ps.__file__).parent / "_penstock.pyi").read_text()
    if installed == STUB.read_text():
        pytest.skip("this build cannot import the module: a sanitizer's, or one for another machine")
    if not installed.startswith(f"# Made with nanobind {stub.nanobind_version()}."):
        pytest.skip("the installed stub was made with another nanobind")
    same(without_docstrings(installed), without_docstrings(STUB.read_text()))
    (batch,) = [node for node in ast.walk(ast.parse(installed)) if isinstance(node, ast.FunctionDef) and node.name == "batch"]
    assert ast.get_docstring(batch) == ps.Dataset.batch.__doc__


def test_the_reference_has_all_that_is_public():
    pytest.importorskip("nanobind", reason="nanobind, whose stubgen makes the stub, is not installed")
    page = reference.make_reference()
    for module in (ps, ps.augment, ps.sync):
        public = [name for name in module.__all__ if not isinstance(getattr(module, name), (str, types.ModuleType))]
        assert [name for name in public if f"\n### {name}\n" not in page] == []
    assert "\n### DataLoader\n" in page and ps.Dataset.batch.__doc__.splitlines()[0] in page


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


HEADER = """
/// What decodes.
enum class Decoder : std::uint8_t {
  fast,  ///< its own
  slow,
};

struct DecodeOptions {
  std::string field = "image";  ///< the bytes
  std::string bucket = "s3://a";  ///< where
  bool exif =  // a note
      true;  ///< whether images are turned
             ///< upright
  /// what decodes
  Decoder decoder = Decoder::fast;
  /// which
  /// sizes
  std::vector<Decoder> sizes = {Decoder::fast,
                                Decoder::slow};
  std::vector<std::pair<int, int>> pairs{{1, 2}};
  [[nodiscard]] bool is_empty() const { return field.empty(); }
};
struct ViewOptions {
  bool exif = true;  ///< as in DecodeOptions, here and below
  Decoder decoder = Decoder::fast;
  int count = 0;  ///< how many, as DecodeOptions::field
};

class Decoders {
 public:
  /// Counts.
  [[nodiscard]] Dataset count(const std::string& name) const;
};

/// Decodes
/// (`{.field = "a"}`).
///
/// Shapes  in: u8
///         [?]
/// Errors  std::invalid_argument  an empty name;
///                                at bind: no field
///         Error  none
[[nodiscard]] TransformPtr decode(DecodeOptions options, std::vector<int> sizes = {1, 2},
                                  double flip = 0.5);
void other(int value);
"""


def test_comments_of_headers_become_docstrings():
    structs, enums, (method, function), _ = header_docs.read_header(HEADER)
    assert (method.owner, method.name, method.parameters) == ("Decoders", "count", [("std::string", "name", None)])
    assert method.comment == ["Counts."] and function.owner == ""
    assert header_docs.sentences_of("DecodeOptions", structs, enums) == {
        "field": "the bytes",
        "bucket": "where",
        "exif": "whether images are turned upright",
        "decoder": 'what decodes: "fast" (its own); "slow"',
        "sizes": 'which sizes: "fast" (its own); "slow"',
        "pairs": "",
    }
    views = header_docs.sentences_of("ViewOptions", structs, enums)
    assert views["exif"] == "whether images are turned upright" and views["decoder"].startswith("what decodes: ")
    assert views["count"] == "how many, as field of decode"
    assert function.name == "decode"
    assert function.parameters == [("DecodeOptions", "options", None), ("std::vector<int>", "sizes", "{1, 2}"), ("double", "flip", "0.5")]
    assert header_docs.docstring(function.comment) == """Decodes (`field="a"`).

Shapes   in: u8 [?]
Errors   ValueError  an empty name; in Dataset.map: no field
         Error       none"""


SOURCES = """
namespace penstock {
namespace core {
class Sink;
}
/// What counts.
struct Options {
  /// called with the number that is done
  std::function<void(int done)> progress{};
};
namespace source {
/// Reads `files`.
///
/// Damage moves no record:
/// - one that is
///   cut off;
/// - one that is gone.
[[nodiscard]] SourcePtr files(const std::filesystem::path& path, Options options = {});
template <class T>
int count(T value) {
  return value;
}
[[nodiscard]] SourcePtr more();
}  // namespace source
[[nodiscard]] Dataset files(const std::filesystem::path& path);
}  // namespace penstock
"""


def test_functions_of_a_namespace_have_its_name(tmp_path):
    structs, enums, functions, _ = header_docs.read_header(SOURCES)
    assert [(one.owner, one.name) for one in functions] == [("source", "files"), ("source", "more"), ("", "files")]
    assert structs["Options"].comment == ["What counts."]
    assert header_docs.sentences_of("Options", structs, enums) == {"progress": "called with the number that is done"}
    assert header_docs.docstring(functions[0].comment) == """Reads `files`.

Damage moves no record:
- one that is cut off;
- one that is gone."""
    assert header_docs.docstring(["Counts:", "", "  count({.a = 1});", "", "Faults  gone"]) == "Counts.\n\nFaults   gone"
    header = tmp_path / "include" / "penstock" / "sources.hpp"
    header.parent.mkdir(parents=True)
    header.write_text(SOURCES)
    made = header_docs.make([header])
    assert "#include <penstock/sources.hpp>\n" in made
    assert "inline auto source_files()" in made and "&penstock::source::files" in made


LOOPS = """
namespace penstock::gpu {
/// Loops over data.
///
/// Threads  any number
class Loop final : public Loops {
 public:
  /// For `count` of them.
  explicit Loop(int count);
  /// The next one.
  ///
  /// Errors  Fault                   it is bad
  ///         std::out_of_range       none is left
  [[nodiscard]] static Result<int> next();
  /// The same, at most.
  [[nodiscard]] static Result<int> next(int most);

 private:
  struct Parts {
    int hidden = 0;  ///< no option
  };
};
/// An iterator.
class Loop::Iterator {
};
enum class Kind {
  fast,  ///< a short one
  slow,
};
/// What a loop found.
struct Found {
  int steps = 0;  ///< how many
  gpu::Kind kind = gpu::Kind::fast;  ///< which
  /// Memory is none of it.
  [[nodiscard]] int bytes() const;
};
/// Counts. Null where it cannot: `state()` and LoaderOptions::digest say why; null when it is over.
std::optional<int> count(const Loop& loop);
}  // namespace penstock::gpu
"""


def test_other_functions_and_classes_have_docstrings(tmp_path):
    structs, enums, functions, others = header_docs.read_header(LOOPS)
    assert header_docs.sentences_of("Found", structs, enums)["kind"] == 'which: "fast" (a short one); "slow"'
    assert not functions and list(structs) == ["Found"] and structs["Found"].namespace == "gpu"
    texts = {name: header_docs.docstring(comment) for name, comment in others.items()}
    assert texts == {
        "Loop": "Loops over data.\n\nThreads  any number",
        "loop_init": "For `count` of them.",
        "loop_next": "The next one.\n\nErrors   ValueError  it is bad\n         IndexError  none is left",
        "found_bytes": "Memory is none of it.",
        "count": "Counts. None where it cannot: `state_dict()` and loader(digest=...) say why; None when it is over.",
    }
    header = tmp_path / "include" / "penstock" / "loop.hpp"
    header.parent.mkdir(parents=True)
    header.write_text(LOOPS)
    made = header_docs.make([header])
    assert "struct StructDoc<gpu::Found> {" in made and 'inline constexpr const char* loop_init = R"doc(For `count` of them.)doc";' in made


def test_a_comment_that_refers_to_an_unknown_struct_fails():
    structs, enums, _, _ = header_docs.read_header("struct A {\n  int a = 0;  ///< as in B\n};\n")
    with pytest.raises(KeyError):
        header_docs.sentences_of("A", structs, enums)
