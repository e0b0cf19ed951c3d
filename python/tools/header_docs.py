"""Makes header_docs.hpp of the public headers: what the module needs of them to bind a function without saying anything twice.

Of each function and method that returns one of RETURNED: its name, its parameters with their defaults, and its comment
as a Python docstring; lists of those that belong together, but for those that take a function of C++. Of the others and
of classes: this docstring alone. Of each struct: its comment, its fields, and the
sentence of each.

Usage: python header_docs.py OUTPUT HEADER...
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

RETURNED = ("Crop", "Augmentation", "TransformPtr", "SourcePtr", "Dataset", "std::vector<ImageSize>")
LISTED = ("Crop", "Augmentation")  # whose functions are bound alike
WIDTH = 110
CALLED = re.compile(r"std::function|TransformPtr")  # what Python passes is another thing

LABEL = re.compile(r"(Shapes|Units|Threads|Errors|Faults|Source|Stream|Owns|Memory)( {2,})(.*)")
EXCEPTION = re.compile(r"(\w*Error|Fault|QueueClosed)  +(.*)")
# Of a class or of a namespace.
FUNCTION = re.compile(r"(?!using|template|struct|class|enum|namespace|return|friend|#)(?:\[\[nodiscard\]\] )?(?:[\w:<>,&* ]+[ *&])?~?(\w+)\(.*")
SAME_AS = re.compile(r"as in (\w+)(, here and below)?$")

# What C++ and Python call differently.
WORDS = [
    (r"std::invalid_argument", "ValueError"),
    (r"std::logic_error", "RuntimeError"),
    (r"std::out_of_range", "IndexError"),
    (r"\bnullptr\b|\bkDynamic\b", "None"),
    (r"^( *Errors +|      +)Fault(?=  )", r"\1ValueError"),  # what a Result without a value becomes
    (r"([;.]) [Nn](?:one|ull) (when|where|if|at)\b", r"\1 None \2"),
    (r"\bprepare_shards\(\)", "prepare()"),
    (r"\b(devices|size|fields)\(\)", r"\1"),
    (r"^Null (when|where|if)\b", r"None \1"),
    (r"\b(?:Loader|Source)::notices\(\)", "Loader.report().notices"),
    (r"\brestore\(\)", "load_state_dict()"),
    (r"\bstate\(\)", "state_dict()"),
    (r"InputContext::from\b", "InputContext.from_environment"),
    (r"LoaderOptions::(\w+)", r"loader(\1=...)"),
    (r"\bat bind: ", "in Dataset.map: "),
    (r"\{\.(\w+) = ([^{}]*)\}", r"\1=\2"),
    (r"(\w+)Options::(\w+)", lambda match: f"{match[2]} of {snake(match[1])}"),
    (r"\b([A-Z]\w+|penstock)::(\w+)", r"\1.\2"),
]


@dataclass
class Struct:
    """The fields of a struct, or the values of an enum."""

    namespace: str = ""  # inside penstock
    sentences: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    comment: list[str] = field(default_factory=list)
    functions: dict[str, list[str]] = field(default_factory=dict)  # their comments


@dataclass
class Function:
    owner: str  # the class of a method, or a namespace inside penstock; empty
    name: str
    parameters: list[tuple[str, str, str | None]]  # type, name, default
    comment: list[str]
    returned: str

    @property
    def group(self) -> str | None:
        """The list of calls that it belongs to; None of those that are bound one by one."""
        if any(CALLED.match(kind) for kind, _, _ in self.parameters):
            return None
        if self.owner[:1].isupper():
            return f"methods_of_{snake(self.owner)}"
        return f"functions_that_return_{snake(self.returned)}" if self.returned in LISTED else None


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def in_python(text: str) -> str:
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    return text


# ---- reading ----


def comment_of(line: str) -> str | None:
    """The text of a line that is nothing but a comment for documentation."""
    match = re.match(r"\s*///(?!<) ?(.*)", line)
    return match[1] if match else None


def split_parameters(text: str) -> list[str]:
    """Parts between commas that are in no brackets."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in "<({[") - (character in ">)}]")
        if character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def read_members(lines: Iterator[str], statement: re.Pattern[str]) -> Struct:
    """Up to the closing brace; `statement` finds the type and the name of a whole one."""
    found = Struct()
    above: list[str] = []
    code, last = "", ""
    for line in lines:
        if line.startswith("};"):
            break
        text = comment_of(line)
        if text is not None:
            above.append(text)
            continue
        written, _, beside = line.partition("///<")
        code = f"{code} {re.split(r'(?<!:)//', written)[0].strip()}".strip()  # and not that of s3://
        match = statement.fullmatch(code)
        if match:
            last, code = match["name"], ""
            found.types[last] = match.groupdict().get("type") or ""
            found.sentences[last] = " ".join(above)
        elif code.endswith((";", "}")):
            if above and (function := FUNCTION.match(code)):
                found.functions.setdefault(function[1], above)
            last, code = "", ""
        if beside and last:
            found.sentences[last] = f"{found.sentences[last]} {beside.strip()}".strip()
        if written.strip() and not code:
            above = []
    return found


FIELD = re.compile(r"(?!static|friend|using|return)(?P<type>[\w:][\w:<>(), ]*?)\s+(?P<name>\w+)(?:\s*=[^;]*|\{[^;]*\})?;")
VALUE = re.compile(r"(?P<name>\w+)(?:\s*=[^,]*)?,?")


def read_header(text: str) -> tuple[dict[str, Struct], dict[str, Struct], list[Function], dict[str, list[str]]]:
    """Structs, enums, functions and methods that return one of RETURNED, and the comments of classes and of all others."""
    structs: dict[str, Struct] = {}
    enums: dict[str, Struct] = {}
    functions = []
    others: dict[str, list[str]] = {}
    comment: list[str] = []
    namespace, owner = "", ""
    lines = iter(text.splitlines())
    before = ""
    for line in lines:
        written = comment_of(line)
        if written is not None:
            comment.append(written)
            continue
        if line == "};":
            owner = ""
        elif line.startswith("}  // namespace") or (line == "}" and re.match(r"(class|struct) \w+;", before)):
            namespace = ""
        before = line
        if owner:
            line = line.removeprefix("  ")
        if match := re.match(r"class (\w+)(?!\w|::)[^;]*\{$", line):
            owner = owner or match[1]
            if owner == match[1]:
                others[owner] = comment
        elif match := re.match(r"namespace (?:penstock::)?(?!penstock)(\w+) \{$", line):
            namespace = match[1]
        elif (match := re.match(r"struct (\w+) \{$", line)) and not owner:
            structs[match[1]] = read_members(lines, FIELD)
            structs[match[1]].comment = comment
            structs[match[1]].namespace = namespace
            others |= {f"{snake(match[1])}_{name}": text for name, text in structs[match[1]].functions.items()}
        elif match := re.match(r"enum class (\w+)[^{]*\{$", line):
            enums[match[1]] = read_members(lines, VALUE)
        elif match := re.match(rf"(?:\[\[nodiscard\]\] )?({'|'.join(RETURNED)}) (\w+)\(", line):
            while not line.rstrip().endswith(";"):
                line = f"{line.rstrip()} {next(lines).strip()}"
            inside = line[match.end() : line.rindex(")")]
            parameters: list[tuple[str, str, str | None]] = []
            for part in split_parameters(inside):
                declared, has_default, default = part.partition(" = ")
                kind, _, name = declared.rpartition(" ")
                kind = kind.removeprefix("const ").removesuffix("&")
                parameters.append((kind, name, default if has_default else None))
            if any(kind == "Source" for kind, _, _ in parameters):  # Python has data sets
                others.setdefault(match[2], comment)
            else:
                functions.append(Function(owner or namespace, match[2], parameters, comment, match[1]))
        elif comment and (match := FUNCTION.match(line)):
            name = "init" if match[1] == owner else match[1]
            others.setdefault(f"{snake(owner)}_{name}" if owner else name, comment)
        comment = []
    return structs, enums, functions, others


# ---- writing ----


def filled(text: str, **indents: str) -> str:
    return textwrap.fill(text, WIDTH, break_on_hyphens=False, **indents)


def docstring(comment: list[str]) -> str:
    """Paragraphs filled anew, and labels with their entries below each other."""
    blocks: list[str] = []
    labels: list[str] = []
    paragraph: list[str] = []
    entries: list[list[str]] = []  # of the label that is being read: exception or "", text

    def end_paragraph() -> None:
        if not paragraph:
            return
        if paragraph[0].startswith("  "):  # C++, which is no example in Python
            paragraph.clear()
            if blocks:
                blocks[-1] = re.sub(":$", ".", blocks[-1])
            return
        if any(line.startswith("- ") for line in paragraph):
            items = re.split(r"\n(?=- )", "\n".join(map(str.strip, paragraph)))
            text = "\n".join(filled(item, subsequent_indent="  " if item.startswith("- ") else "") for item in items)
        else:
            text = filled("\n".join(paragraph))
        blocks.append(text)
        paragraph.clear()

    def end_label() -> None:
        longest = max((len(exception) for _, exception, _ in entries), default=0)
        for number, (label, exception, text) in enumerate(entries):
            first = f"{label if number == 0 else '':<9}{exception.ljust(longest + 2) if exception else ''}"
            labels.append(filled(text, initial_indent=first, subsequent_indent=" " * len(first)))
        entries.clear()

    for line in map(in_python, comment):
        match = LABEL.fullmatch(line)
        if match:
            end_paragraph()
            end_label()
            line = match[3]
            entries.append([match[1], "", ""])
        if entries:
            exception = EXCEPTION.fullmatch(line.strip())
            if exception and entries[-1][2]:
                entries.append([entries[-1][0], "", ""])
            if exception:
                entries[-1][1], line = exception[1], exception[2]
            entries[-1][2] = f"{entries[-1][2]} {line.strip()}".strip()
        elif line.strip():
            paragraph.append(line)
        else:
            end_paragraph()
    end_paragraph()
    end_label()
    if labels:
        blocks.append("\n".join(labels))
    return "\n\n".join(blocks)


def sentences_of(name: str, structs: dict[str, Struct], enums: dict[str, Struct]) -> dict[str, str]:
    """With those of another struct where a comment says so, and what the values of an enum do."""
    found = {}
    same_as = ""
    for one, sentence in structs[name].sentences.items():
        reference = SAME_AS.match(sentence)
        if reference or (same_as and not sentence):
            other = reference[1] if reference else same_as
            same_as = other if not reference or reference[2] else ""
            found[one] = sentences_of(other, structs, enums)[one]
            continue
        same_as = ""
        kind = re.sub(r"std::(?:optional|vector)<([\w:]+)>", r"\1", structs[name].types[one]).rpartition("::")[2]
        values = enums.get(kind, Struct()).sentences
        if any(values.values()):
            said = "; ".join(f'"{value}"{" (" + text + ")" if text else ""}' for value, text in values.items())
            sentence = f"{sentence}: {said}"
        found[one] = in_python(sentence)
    return found


def text_in_cpp(text: str) -> str:
    return f'R"doc({text})doc"'


def make(headers: list[Path]) -> str:
    """All of the generated header."""
    structs: dict[str, Struct] = {}
    enums: dict[str, Struct] = {}
    functions: list[Function] = []
    others: dict[str, list[str]] = {}
    for header in headers:
        more_structs, more_enums, more_functions, more_others = read_header(header.read_text())
        structs |= more_structs
        enums |= more_enums
        functions += more_functions
        others = more_others | others
    out = ["// Made by python/tools/header_docs.py of the public headers.", "#pragma once", ""]
    out += [f"#include <penstock/{header.as_posix().rpartition('/include/penstock/')[2]}>" for header in headers]
    out += ['#include "calls.hpp"', "", "namespace penstock::python {"]
    for name, struct in structs.items():
        rows = [f"{{{text_in_cpp(one)}, {text_in_cpp(text)}}}" for one, text in sentences_of(name, structs, enums).items() if text]
        if rows:
            qualified = f"{struct.namespace}::{name}" if struct.namespace else name
            out += ["template <>", f"struct StructDoc<{qualified}> {{"]
            out.append(f"  static constexpr const char* kText = {text_in_cpp(docstring(structs[name].comment))};")
            out += [f"  static constexpr FieldSentence kFields[] = {{{', '.join(rows)}}};", "};"]
    out.append("namespace calls {")
    groups: dict[str, list[str]] = {}
    for function in functions:
        parts = []
        for kind, name, default in function.parameters:
            value = "" if default is None else f", {kind}{default if default.startswith('{') else '{' + default + '}'}"
            parts.append(f'Parameter<{kind}>{{"{name}"{value}}}')
        prefix = f"{function.owner}::" if function.owner else ""
        called = f"&penstock::{prefix}{function.name}"
        if function.name in others and not function.owner[:1].isupper():  # the address of an overloaded one is not known
            declared = ", ".join(f"{kind} {name}" for kind, name, _ in function.parameters)
            names = ", ".join(name for _, name, _ in function.parameters)
            called = f"[]({declared}) {{ return penstock::{prefix}{function.name}({names}); }}"
        arguments = ", ".join([f'"{function.name}"', called, text_in_cpp(docstring(function.comment)), *parts])
        own_name = f"{snake(function.owner)}_{function.name}" if function.owner else function.name
        out += [f"inline auto {own_name}() {{", f"  return Call{{{arguments}}};", "}"]
        if function.group:
            groups.setdefault(function.group, []).append(f"{own_name}()")
    out += [f"inline auto {group}() {{ return std::tuple{{{', '.join(found)}}}; }}" for group, found in groups.items()]
    out += ["}  // namespace calls", "namespace docs {"]
    out += [f"inline constexpr const char* {name} = {text_in_cpp(docstring(comment))};" for name, comment in others.items() if comment]
    out += ["}  // namespace docs", "}  // namespace penstock::python"]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    output, *paths = sys.argv[1:]
    Path(output).write_text(make([Path(path) for path in paths]))
