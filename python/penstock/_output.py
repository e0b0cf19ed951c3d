"""Files that appear under their names when they are complete: what penstock.write_file of C++ does, for Python."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

__all__ = ["output_file"]


@contextmanager
def output_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to, which replaces what is at `path` when the block ends without an error, and has reached the disk then.

    It is written beside it, behind symbolic links, as a new file with a name that cannot be guessed. What is there and is no
    regular file (a device, a pipe, /dev/stdout) is written to and never replaced.

    Errors  OSError  it cannot be written; what was at `path` stays
    """
    target = os.path.realpath(path)
    found = os.stat(path) if os.path.exists(path) else None
    if found is not None and (not stat.S_ISREG(found.st_mode) or _is_of_the_process(path)):
        with open(path, "ab" if stat.S_ISREG(found.st_mode) else "wb") as out:
            yield out
        return
    aside = f"{target}.tmp.{secrets.token_hex(8)}"
    mode = 0o666 if found is None else 0o600
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with open(descriptor, "wb") as out:
            if found is not None:
                _take_over(descriptor, found)
            yield out
            out.flush()
            os.fsync(descriptor)
        os.replace(aside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside)
        raise
    _flush_folder(os.path.dirname(target))


def _is_of_the_process(path: str | os.PathLike[str]) -> bool:
    """What stands for this process's open files, whatever these are."""
    return os.path.abspath(path).startswith(("/dev/fd/", "/dev/std", "/proc/"))


def _take_over(descriptor: int, old: os.stat_result) -> None:
    """The old file's owner and group, as far as this user may, and its permissions; another group gets no more than other users."""
    mode = stat.S_IMODE(old.st_mode)
    try:
        os.fchown(descriptor, old.st_uid, old.st_gid)
    except OSError:
        try:
            os.fchown(descriptor, -1, old.st_gid)
            mode &= 0o777
        except OSError:
            mode &= 0o707 | (mode & 0o7) << 3
    with suppress(OSError):
        os.fchmod(descriptor, mode)


def _flush_folder(folder: str) -> None:
    """The name, too, is to be there after a power failure. Not every file system can be asked."""
    with suppress(OSError):
        names = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(names)
        finally:
            os.close(names)
