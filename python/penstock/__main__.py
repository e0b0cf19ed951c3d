"""python -m penstock throughput DIR: does my input keep up? python -m penstock prepare DIR OUTPUT: files that decode faster.
python -m penstock look PLAN.json: what do the batches look like?"""

from __future__ import annotations

import os
import select
import sys

import penstock
from penstock import _look, throughput, tokenize
from penstock._program import run_program

USAGE = f"""{penstock.__doc__.splitlines()[0] if penstock.__doc__ else ""}

usage: python -m penstock throughput [DIR] [FLAGS]    feed images to every device, and say what limits the speed
       python -m penstock prepare DIR OUTPUT [FLAGS]  pack JPEGs into shards that decode faster
       python -m penstock prepare --ray ADDRESS ...   the same on a Ray cluster; auto: the one that is running
       python -m penstock tokenize INPUT --output PREFIX --tokenizer FILE   texts to token files
       python -m penstock look PLAN.json [FLAGS]      a contact sheet of a plan's first batch; --folder DIR: of images
       python -m penstock throughput --help           all flags; prepare, tokenize and look --help likewise
       python -m penstock --version
"""


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0; 1 for bad data, whose message names the file; 2 for wrong flags; 130 when
    interrupted."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["throughput"]:
        return throughput.run(arguments[1:])
    if arguments[:1] == ["prepare"]:
        if "--ray" in arguments:
            from penstock import _prepare_on_ray

            return _prepare_on_ray.run(arguments[1:])
        return run_program("_prepare", arguments[1:])
    if arguments[:1] == ["tokenize"]:
        return tokenize.run(arguments[1:])
    if arguments[:1] == ["look"]:
        return _look.run(arguments[1:])
    if arguments == ["--version"]:
        print(penstock.__version__)
        return 0
    asked = arguments in (["-h"], ["--help"])
    if arguments and not asked:
        print(f"penstock: expected throughput, prepare, tokenize or look, found '{arguments[0]}'\n", file=sys.stderr)
    print(USAGE, end="", file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2


def command() -> int:
    """main() as a program: where the reader of its output has ended, as `head` does, it ends without a word, with status 1."""
    try:
        status = main()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        return status
    except BrokenPipeError:
        lost = [stream.fileno() for stream in (sys.stdout, sys.stderr) if stream is not None and _has_lost_its_reader(stream.fileno())]
        if not lost:  # another connection broke
            raise
        # The interpreter writes what is left when it ends, and would complain again.
        nothing = os.open(os.devnull, os.O_WRONLY)
        for descriptor in lost:
            os.dup2(nothing, descriptor)
        return 1


def _has_lost_its_reader(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(what & (select.POLLERR | select.POLLHUP) for _, what in poll.poll(0))


if __name__ == "__main__":
    sys.exit(command())
