"""Tests of the figures share `drawing`, and the made-up tables of the report's tests."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "report")]
