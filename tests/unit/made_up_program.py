"""A program that measures nothing: it notes what it was given, and steps as long as a file beside
it says."""

import json
import sys
from pathlib import Path

SECONDS = float(Path(__file__).with_name("seconds").read_text())
OUT = Path(sys.argv[sys.argv.index("--out") + 1])

steps = [f"step,{i},step,free,step,{i == 0},{SECONDS * (1 + i * i / 1e4)}\n" for i in range(4)]
(OUT / "samples.csv").write_text("".join(["variant,step,mode,kind,phase,warmup,seconds\n", *steps]))
record = {"spec": {"study": "timing", "device": "cuda"}, "words": sys.argv[1:]}
(OUT / "record.json").write_text(json.dumps(record))
