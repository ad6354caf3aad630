"""What writes synthetic traces and snapshots, and files with damages."""

import sys
from pathlib import Path

UNIT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(UNIT / "trace"), str(UNIT / "snapshot"), str(Path(__file__).parent)]
