"""Texts to token files: Megatron's .bin and .idx, which penstock.megatron reads, made by many processes, and gone on with.

    from penstock.tokenize import tokenize

    tokenize(["wiki.jsonl", "books/"], "train", tokenizer="tokenizer.json", end="<|endoftext|>")

The same as a command: python -m penstock tokenize wiki.jsonl books --output train --tokenizer tokenizer.json --end "<|endoftext|>"
"""

from __future__ import annotations

import argparse
import fcntl
import gzip
import hashlib
import importlib
import itertools
import json
import multiprocessing
import os
import shutil
import signal
import struct
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from penstock._errors import Error
from penstock._output import output_file
from penstock._penstock import _default_threads  # type: ignore[attr-defined]

__all__ = ["tokenize", "TokenizeSummary"]

ENDINGS = (".jsonl", ".json", ".txt", ".md")
PIECE = 64 << 20  # bytes of a JSONL file that one task reads
DOCUMENTS = 1000  # that a tokenizer is given at once
TYPES: dict[str, tuple[int, Any]] = {"u8": (1, numpy.uint8), "u16": (8, numpy.uint16), "i32": (4, numpy.int32), "i64": (5, numpy.int64)}
LONGEST = 2**31 - 1


@dataclass(frozen=True)
class TokenizeSummary:
    """What was written."""

    documents: int
    tokens: int
    dtype: str
    parts: int
    resumed: int  # parts that an earlier run had made


@dataclass(frozen=True)
class _Piece:
    """Documents that one task tokenises: lines of a JSONL file that begin in [begin, end), or a whole text file."""

    path: str
    begin: int
    end: int


@dataclass(frozen=True)
class _Job:
    tokenizer: str
    end: int | None
    field: str
    dtype: str


def tokenize(
    inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    tokenizer: str | os.PathLike[str],
    *,
    end: str | int | None = None,
    field: str = "text",
    dtype: str | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> TokenizeSummary:
    """Writes output.bin and output.idx: a sequence for each document, in the order of the inputs.

    `inputs`: JSONL files, whose lines are objects with a string in `field`; text files (.txt, .md), a document each; either may
    end in .gz; a folder stands for all such files below it, in the order of their paths, but those whose name, or whose folder's
    name, begins with a point; what is left out is a warning. `tokenizer`: a tokenizer.json of Hugging Face's tokenizers, whose
    truncation and padding are left out, or "module:function", a function of your own that makes a list of numbers of a string.
    `end`: the token behind each document, by its text in a tokenizer.json, or its number. `dtype`: "u8", "u16", "i32" or "i64"; by
    default u16 where a tokenizer.json has at most 65,536 tokens, else i32.
    `workers`: processes, by default one for each core that the process may use, by its affinity and its container's quota.

    Each part of the work is a file in output.parts until all are done, so a run that was killed goes on where it was when it is
    called again with the same arguments; the result is the same. The two files appear when they are complete.
    `progress(done, parts)` is called after each part. A program that calls this needs its if __name__ == "__main__": each worker
    is a new process.

    Errors  Error       a file that is not there or cannot be read, a line that is no such object, a token that the dtype does not
                        hold, parts of another job; names the file and the line
            ValueError  no inputs, a dtype that there is not, no such `end`
    """
    tokenizer = _named(os.fspath(tokenizer))
    job = _job(tokenizer, end, field, dtype)
    pieces = _pieces([inputs] if isinstance(inputs, (str, os.PathLike)) else list(inputs))
    count = workers if workers is not None else _default_threads()
    if count < 1:
        raise ValueError(f"tokenize: expected 1 worker or more, found {count}")
    if os.fspath(output).endswith(os.sep) or not Path(output).name or Path(output).is_dir():
        raise ValueError(f"tokenize: the output is the begin of two files' names, such as data/train, found {os.fspath(output)}")
    output = Path(output)
    parts = output.with_name(output.name + ".parts")
    with _alone(parts):
        _begin(parts, job, pieces)
        left = [number for number in range(len(pieces)) if not _lengths_of(parts, number).exists()]
        _work(job, pieces, left, parts, count, progress)
        documents, tokens = _join(parts, len(pieces), output, job.dtype)
        shutil.rmtree(parts)
    return TokenizeSummary(documents, tokens, job.dtype, len(pieces), len(pieces) - len(left))


@contextmanager
def _alone(parts: Path) -> Iterator[None]:
    """Makes the folder, and holds it against other runs."""
    parts.mkdir(parents=True, exist_ok=True)
    with open(os.open(parts / "lock", os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Error(f"{parts}: another run is at work here; wait for its end, or name another output") from None
        yield


def _work(
    job: _Job, pieces: Sequence[_Piece], left: Sequence[int], parts: Path, count: int, progress: Callable[[int, int], object] | None
) -> None:
    if left:
        # A new process each: those that are forked from threads may hang, and tokenizers warns of it.
        context = multiprocessing.get_context("spawn")
        before = set(multiprocessing.active_children())
        done = itertools.count(len(pieces) - len(left) + 1)
        with ProcessPoolExecutor(min(count, len(left)), context, initializer=_start, initargs=(job,)) as pool:
            tasks = [pool.submit(_tokenize_piece, pieces[number], str(parts), number) for number in left]
            try:
                for task in as_completed(tasks):
                    task.result()
                    if progress is not None:
                        progress(next(done), len(pieces))
            except BaseException as error:
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in set(multiprocessing.active_children()) - before:
                    worker.terminate()  # what it was at is begun anew
                if isinstance(error, BrokenProcessPool):
                    raise Error(
                        "a worker process ended before its work was done, because the machine had too little memory or because "
                        "this program has no if __name__ == '__main__'; what is done is kept for the next run"
                    ) from error
                raise


# ---- what is to be done ----


def _named(tokenizer: str) -> str:
    """The tokenizer, as another process finds it."""
    if Path(tokenizer).exists():
        return str(Path(tokenizer).resolve())
    if ":" in tokenizer and not tokenizer.endswith(".json"):
        return tokenizer
    raise Error(f"{tokenizer} is not there: expected a tokenizer.json, or 'module:function'")


def _job(tokenizer: str, end: str | int | None, field: str, dtype: str | None) -> _Job:
    if dtype is not None and dtype not in TYPES:
        raise ValueError(f"dtype must be one of {', '.join(TYPES)}, found {dtype!r}")
    encode = _Encoder(tokenizer)
    if isinstance(end, (bool, float)) or (isinstance(end, int) and end < 0):
        raise ValueError(f"end: expected a token's text, or its number from 0 on, found {end!r}")
    if isinstance(end, str):
        number = encode.number_of(end)
        if number is None:
            raise ValueError(f"end: {tokenizer} has no token {end!r}; give one that it has, or its number")
        end = number
    if dtype is None:
        dtype = "u16" if encode.size is not None and encode.size <= 1 << 16 else "i32"
    return _Job(tokenizer, end, field, dtype)


class _Encoder:
    """Texts to numbers, by a tokenizer.json or a function."""

    def __init__(self, tokenizer: str) -> None:
        self.size: int | None = None
        self._file = Path(tokenizer)
        if self._file.exists():
            try:
                from tokenizers import Tokenizer
            except ImportError as error:
                raise Error("a tokenizer.json is read by Hugging Face's tokenizers: pip install tokenizers") from error
            try:
                self._tokenizer: Any = Tokenizer.from_file(tokenizer)
                # Which many such files have for sentences that become one batch; here all tokens of a text are wanted, and no others.
                self._tokenizer.no_truncation()
                self._tokenizer.no_padding()
            except Exception as error:  # it raises nothing narrower
                raise Error(f"{tokenizer} is no tokenizer.json: {error}") from error
            self._function = None
            self.size = self._tokenizer.get_vocab_size()
            return
        module, _, name = tokenizer.partition(":")
        try:
            self._function = getattr(importlib.import_module(module), name)
        except Exception as error:  # whatever the module does
            raise Error(f"there is no function {name!r} in the module {module!r}: {error}") from error

    def number_of(self, token: str) -> int | None:
        return None if self._function is not None else self._tokenizer.token_to_id(token)

    @property
    def source(self) -> Path | None:
        """The file whose change makes other tokens."""
        if self._function is None:
            return self._file
        file = getattr(sys.modules.get(self._function.__module__), "__file__", None)
        return None if file is None else Path(file)

    def __call__(self, where: Sequence[str], texts: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """The tokens of each text, with where it is."""
        place = where[0] if len(where) == 1 else f"between {where[0]} and {where[-1]}"
        try:
            if self._function is None:
                yield from zip(where, (found.ids for found in self._tokenizer.encode_batch(texts, add_special_tokens=False)))
                return
            for place, text in zip(where, texts):
                yield place, self._function(text)
        except (Exception, SystemExit) as error:  # whatever the tokenizer raises
            if isinstance(error, Error):
                raise
            raise Error(f"{place}: the tokenizer raised {type(error).__name__}: {error}") from error


def _pieces(inputs: Sequence[str | os.PathLike[str]]) -> list[_Piece]:
    pieces = []
    for path in (file for one in inputs for file in _files(Path(one))):
        size = path.stat().st_size
        cut = _is_lines(path) and path.suffix.lower() != ".gz"
        for begin in range(0, max(size, 1), PIECE) if cut else [0]:
            pieces.append(_Piece(str(path.resolve()), begin, min(begin + PIECE, size) if cut else -1))
    if not pieces:
        raise ValueError(f"tokenize: no texts: expected files that end in {', '.join(ENDINGS)}, or these and .gz")
    return pieces


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return _files_below(path)
    if not path.is_file():
        raise Error(f"{path} is {'no file' if path.exists() else 'not there'}")
    if _ending(path) not in ENDINGS:
        raise ValueError(f"{path}: expected a file that ends in {', '.join(ENDINGS)}, or these and .gz")
    return [path]


def _files_below(folder: Path) -> list[Path]:
    """Links to folders are followed; what is hidden or of another kind is left out, with a warning."""
    found: list[Path] = []
    hidden: list[Path] = []
    others: list[Path] = []
    circles: list[Path] = []

    def fail(error: OSError) -> None:
        raise Error(f"tokenize: {error.filename} cannot be read: {error.strerror}") from error

    for parent, folders, names in os.walk(folder, onerror=fail, followlinks=True):
        where = Path(parent)
        within = [above for above in where.parents if folder in (above, *above.parents)]
        if os.path.islink(parent) and any(os.path.samefile(parent, above) for above in within):
            circles.append(where)
            folders.clear()
            continue
        hidden += [where / name for name in folders if name.startswith(".")]
        folders[:] = [name for name in folders if not name.startswith(".")]
        for file in (where / name for name in names if (where / name).is_file()):
            if _ending(file) not in ENDINGS:
                others += [] if file.name.startswith(".") else [file]
            else:
                (hidden if file.name.startswith(".") else found).append(file)
    circle = (circles, "as they link to a folder that they lie in")
    for left, why in (circle, (hidden, "as their names begin with a point"), (others, f"as they do not end in {', '.join(ENDINGS)}, or these and .gz")):
        if left:
            more = f" and {len(left) - 1} more" if len(left) > 1 else ""
            warnings.warn(f"tokenize: left out of {folder}, {why}: {min(left).relative_to(folder)}{more}", stacklevel=6)
    return sorted(found)


def _ending(path: Path) -> str:
    """Without .gz."""
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def _is_lines(path: Path) -> bool:
    return _ending(path) in (".jsonl", ".json")


def _begin(parts: Path, job: _Job, pieces: Sequence[_Piece]) -> None:
    """Says in the folder of parts which job they are of, or finds that it is this one."""
    source = _Encoder(job.tokenizer).source
    contents = hashlib.sha256(source.read_bytes()).hexdigest() if source is not None else ""
    stats = [(piece.path, os.stat(piece.path)) for piece in pieces]
    wanted = {
        "job": [job.tokenizer, contents, job.end, job.field, job.dtype],
        "pieces": [[piece.path, piece.begin, piece.end, stat.st_size, stat.st_mtime_ns] for piece, (_, stat) in zip(pieces, stats)],
    }
    text = json.dumps(wanted)
    file = parts / "job"
    if not any(parts.glob("*.lengths")):
        with output_file(file) as out:
            out.write(text.encode())
    elif not file.exists() or file.read_text() != text:
        raise Error(f"{parts} has parts of another job: other inputs, another tokenizer or other options; remove it to begin anew")


def _lengths_of(parts: Path, number: int) -> Path:
    return parts / f"{number:06d}.lengths"


def _tokens_of(parts: Path, number: int) -> Path:
    return parts / f"{number:06d}.tokens"


# ---- in a worker ----

_working: tuple[_Job, _Encoder] | None = None


def _start(job: _Job) -> None:
    global _working
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # there is a process for each core
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _working = job, _Encoder(job.tokenizer)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _tokenize_piece(piece: _Piece, parts: str, number: int) -> None:
    assert _working is not None
    job, encode = _working
    dtype = numpy.dtype(TYPES[job.dtype][1])
    lengths: list[int] = []
    tokens_path = _tokens_of(Path(parts), number)
    try:
        with output_file(tokens_path) as out:
            for where, texts in _batches(_documents(piece, job.field)):
                for place, found in encode(where, texts):
                    tokens = _as_tokens(place, found, job, dtype)
                    lengths.append(len(tokens))
                    out.write(tokens.tobytes())
        with output_file(_lengths_of(Path(parts), number)) as out:  # last: it says that the part is whole
            out.write(numpy.array(lengths, numpy.int32).tobytes())
    except OSError as error:
        raise Error(f"{tokens_path} cannot be written: {error.strerror or error}") from error


def _as_tokens(place: str, found: Any, job: _Job, dtype: Any) -> Any:
    try:
        tokens = numpy.asarray(found)
    except ValueError as error:  # lists of different lengths
        raise Error(f"{place}: the tokenizer made no row of integers: {error}") from error
    if tokens.ndim != 1 or (tokens.size > 0 and tokens.dtype.kind not in "iu"):
        raise Error(f"{place}: the tokenizer made no row of integers, but {str(found):.60}")
    if job.end is not None:
        tokens = numpy.append(tokens.astype(numpy.int64), job.end)
    if tokens.size > 0:
        for token in (int(tokens.min()), int(tokens.max())):
            if token < 0:
                raise Error(f"{place}: the tokenizer made the token {token}; tokens are numbers from 0 on")
            if token > numpy.iinfo(dtype).max:
                raise Error(f"{place}: the token {token} does not fit into {job.dtype}: choose another dtype")
    if tokens.size > LONGEST:
        raise Error(f"{place}: a document of {tokens.size} tokens; Megatron's files hold {LONGEST}")
    return tokens.astype(dtype)


def _batches(documents: Iterator[tuple[str, str]]) -> Iterator[tuple[list[str], list[str]]]:
    where: list[str] = []
    texts: list[str] = []
    for place, text in documents:
        where.append(place)
        texts.append(text)
        if len(texts) == DOCUMENTS:
            yield where, texts
            where, texts = [], []
    if texts:
        yield where, texts


def _documents(piece: _Piece, field: str) -> Iterator[tuple[str, str]]:
    """Each with where it is."""
    path = Path(piece.path)
    opened: Any = gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb")
    try:
        with opened as file:
            if not _is_lines(path):
                yield piece.path, file.read().decode("utf-8-sig")
                return
            at = piece.begin
            if piece.begin > 0:  # the line that began before is another piece's
                file.seek(piece.begin - 1)
                at += len(file.readline()) - 1
            while piece.end < 0 or at < piece.end:
                line = file.readline()
                if not line:
                    return
                if line.strip():
                    yield f"{piece.path} at byte {at}", _text_of(line, field, f"{piece.path} at byte {at}")
                at += len(line)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise Error(f"{piece.path} cannot be read: {error}") from error


def _text_of(line: bytes, field: str, place: str) -> str:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Error(f"{place}: this line is no JSON: {error}") from error
    if not isinstance(found, dict) or field not in found:
        names = ", ".join(found) if isinstance(found, dict) else type(found).__name__
        raise Error(f"{place}: expected an object with a string in {field!r}, found {names}; field= names another one")
    if not isinstance(found[field], str):
        raise Error(f"{place}: expected a string in {field!r}, found {json.dumps(found[field]):.60}")
    text: str = found[field]
    return text


# ---- the result ----


def _join(parts: Path, count: int, output: Path, dtype: str) -> tuple[int, int]:
    lengths = numpy.concatenate([numpy.fromfile(_lengths_of(parts, number), numpy.int32) for number in range(count)])
    size = numpy.dtype(TYPES[dtype][1]).itemsize
    tokens = int(lengths.sum(dtype=numpy.int64))
    index, data = (output.with_name(output.name + ending) for ending in (".idx", ".bin"))
    places = numpy.zeros(len(lengths), numpy.int64)
    numpy.cumsum(lengths[:-1], dtype=numpy.int64, out=places[1:])
    with output_file(index) as out:
        out.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, TYPES[dtype][0], len(lengths), len(lengths) + 1))
        out.write(lengths.tobytes())
        out.write((places * size).tobytes())
        out.write(numpy.arange(len(lengths) + 1, dtype=numpy.int64).tobytes())
        out.flush()
        with output_file(data) as joined:
            for number in range(count):
                with open(_tokens_of(parts, number), "rb") as part:
                    shutil.copyfileobj(part, joined, 1 << 20)
            if joined.tell() != tokens * size:
                raise Error(f"{parts} is damaged: its tokens are not those of its lengths; remove it to begin anew")
            old = Path(os.path.realpath(index))
            if old.is_file():
                old.unlink()  # without it the tokens are no data set; it comes back last
    return len(lengths), tokens


# ---- the command ----


def run(arguments: Sequence[str]) -> int:
    """Exit status: 0; 1 for bad data, whose message names the file; 2 for wrong flags; 130 when interrupted."""
    parser = argparse.ArgumentParser(
        "python -m penstock tokenize",
        description="Texts to token files: Megatron's .bin and .idx, which penstock.megatron reads. A run that was stopped goes on.",
    )
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help=f"files that end in {', '.join(ENDINGS)}, or these and .gz; or folders of such files")
    parser.add_argument("--output", required=True, metavar="PREFIX", help="PREFIX.bin and PREFIX.idx")
    parser.add_argument("--tokenizer", required=True, metavar="FILE", help="tokenizer.json, or module:function, which makes numbers of a string")
    parser.add_argument("--end", metavar="TOKEN", help="token behind each document: its text, or its number")
    parser.add_argument("--field", default="text", help="of a line's object that has the text")
    parser.add_argument("--dtype", choices=list(TYPES), help="by default u16 where all tokens fit, else i32")
    parser.add_argument("--workers", type=int, metavar="N", help="processes; by default one for each core that may be used")
    parser.add_argument("--quiet", action="store_true", help="no progress line")
    try:
        options = parser.parse_args(list(arguments))
    except SystemExit as ended:
        return int(ended.code or 0)
    shown = not options.quiet and sys.stderr.isatty()

    def progress(done: int, parts: int) -> None:
        print(f"\r{done} of {parts} parts", end="\n" if done == parts else "", file=sys.stderr, flush=True)

    end = int(options.end) if options.end is not None and options.end.isdecimal() else options.end
    try:
        summary = tokenize(
            options.inputs, options.output, options.tokenizer, end=end, field=options.field, dtype=options.dtype,
            workers=options.workers, progress=progress if shown else None,
        )  # fmt: skip
    except (Error, ValueError) as error:
        print(f"penstock tokenize: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    except OSError as error:
        print(f"penstock tokenize: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\npenstock tokenize: stopped; the same command goes on", file=sys.stderr)
        return 130
    went_on = f", {summary.resumed} of them from an earlier run" if summary.resumed else ""
    print(f"{summary.documents:,} documents, {summary.tokens:,} tokens {summary.dtype}, {summary.parts} parts{went_on}")
    return 0
