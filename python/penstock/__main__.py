"""python -m penstock throughput DIR: does my input keep up?"""

from __future__ import annotations

import argparse
import sys

import penstock
from penstock import throughput


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0; 1 for bad data, whose message names the file; 2 for wrong flags; 130 when
    interrupted."""
    parser = argparse.ArgumentParser(prog="python -m penstock", description=penstock.__doc__.split("\n")[0])
    parser.add_argument("--version", action="version", version=penstock.__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    throughput.add_command(commands)
    options = parser.parse_args(arguments)
    try:
        return throughput.run(options)
    except (ValueError, ImportError) as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 2
    except (penstock.Error, OSError) as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
