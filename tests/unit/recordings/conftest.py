"""What writes synthetic traces and snapshots, and the benchmark of damaged files."""

import sys
from pathlib import Path

UNIT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(UNIT / "trace"), str(UNIT / "snapshot"), str(UNIT.parents[1] / "benchmarks")]
