"""python -m penstock prepare --ray ADDRESS: penstock-prepare on a Ray cluster."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from penstock._errors import Error
from penstock._output import output_file


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m penstock prepare --ray",
        description="penstock-prepare on a Ray cluster: a task for each shard, and the same bytes. "
        "The flags are those of penstock-prepare (python -m penstock prepare --help).",
    )
    parser.add_argument("input")
    parser.add_argument("output")
    parser.add_argument("--ray", required=True, metavar="ADDRESS", help="auto: the cluster that is running")
    parser.add_argument("--name", default="data")
    parser.add_argument("--shard-samples", type=int, default=1000, metavar="N")
    parser.add_argument("--interval", type=int, default=8, metavar="N")
    parser.add_argument("--longest-side", type=int, default=0, metavar="PIXELS")
    parser.add_argument("--quality", type=int, default=90, metavar="Q")
    parser.add_argument("--format", choices=("tar", "parquet"), default="tar")
    parser.add_argument("--also", default="json,txt", metavar="EXT,...")
    parser.add_argument("--skip-bad", action="store_true")
    parser.add_argument("--sniff", action="store_true")
    parser.add_argument("--read-attempts", type=int, default=5, metavar="N")
    parser.add_argument("--threads", type=int, default=1, metavar="T", help="of each task: the CPUs that it takes")
    parser.add_argument("--json", metavar="FILE|-", help="write the report as JSON; - for standard output")
    parser.add_argument("--quiet", action="store_true")
    return parser


def run(arguments: list[str]) -> int:
    """The exit status: 0; 1 for an error in the data; 2 for wrong flags; 130 when interrupted."""
    try:
        flags = _parser().parse_args(arguments)
    except SystemExit as end:
        return int(end.code or 0)
    try:
        import ray

        import penstock.ray
    except ImportError:
        print("penstock: --ray needs Ray: pip install ray", file=sys.stderr)
        return 2
    shown = sys.stderr.isatty() and not flags.quiet
    began = time.monotonic()

    def show(done: int, samples: int) -> None:
        if shown:
            print(f"\r\033[K{done} of {samples} ({done * 100 // samples}%)", end="", file=sys.stderr, flush=True)

    def notify(text: str, is_warning: bool) -> None:
        if is_warning or not flags.quiet:
            print(f"penstock-prepare: {'warning: ' if is_warning else ''}{text}", file=sys.stderr)

    try:
        ray.init(address=flags.ray, log_to_driver=False, logging_level=logging.WARNING)
        what = {
            "name": flags.name,
            "shard_samples": flags.shard_samples,
            "interval": flags.interval,
            "longest_side": flags.longest_side,
            "quality": flags.quality,
            "format": flags.format,
            "also": [extension for extension in flags.also.split(",") if extension],
            "skip_bad": flags.skip_bad,
            "sniff": flags.sniff,
            "attempts": flags.read_attempts,
        }
        report = penstock.ray._prepare((flags.input, flags.output), flags.threads, 10, show, None, what, notify)
    except KeyboardInterrupt:
        return 130
    except ValueError as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 2
    except (Error, ConnectionError, TypeError, RuntimeError) as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 1
    finally:
        if shown:
            print("\r\033[K", end="", file=sys.stderr)
        ray.shutdown()
    summary = f"{report.samples} samples, {report.transcoded} of them transcoded, {time.monotonic() - began:.1f} s"
    print(summary, file=sys.stderr if flags.json == "-" else sys.stdout)
    if flags.json == "-":
        print(report.to_json(), end="")
    elif flags.json:
        with output_file(flags.json) as file:
            file.write(report.to_json().encode())
    return 0
