"""What all Python tests share, those in python/tests and in bench/peers: a time limit of their own."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "python" / "tests"))

pytest_plugins = ["time_limit"]
