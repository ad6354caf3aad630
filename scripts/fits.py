"""Whether a training step of a Transformer fits a card: its peak by tensor, the largest batch and
context, what would make room. Needs no GPU and no torch. Exit code: 0 it fits, 1 it does not or may
not, 2 the flags are wrong."""

import argparse
import json
import sys
from dataclasses import fields
from pathlib import Path

from stepscope.formulas import fits
from stepscope.formulas.footprint import OPTIONS, Setup
from stepscope.formulas.options import values
from stepscope.yaml_files import read_yaml

ROOT = Path(__file__).resolve().parents[1]
USUAL = {"precision": "bf16", "attention": "sdpa", "optimizer": "fused", "loss": "torch"}
NUMBERS = {"batch": 1, "context": 4096, "checkpoint": 0, "devices": 1}


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument(
        "--size",
        default="Llama 3.2 1B",
        help="a model by name, or a size of config.yaml; %(default)s",
    )
    flags.add_argument(
        "--memory", default="24GB", help="of the card, GiB as it is sold, or its name; %(default)s"
    )
    flags.add_argument(
        "--reserve", default="0GB", help="of it what others hold, as a display; %(default)s"
    )
    for name, usual in NUMBERS.items():
        flags.add_argument(f"--{name}", type=int, default=usual, help=f"{usual}")
    for name in OPTIONS:
        usual = USUAL.get(name) or {field.name: field.default for field in fields(Setup)}[name]
        flags.add_argument(f"--{name}", choices=values(name), default=usual, help=f"{usual}")
    flags.add_argument("--json", action="store_true", help="print data instead of lines")
    given = flags.parse_args()
    try:
        shape = fits.model(given.size, read_yaml(ROOT / "config.yaml")["sizes"])
        options = {name: getattr(given, name) for name in (*NUMBERS, *OPTIONS)}
        capacity = fits.memory(given.memory) - fits.memory(given.reserve)
        found = fits.answer(Setup(shape, **options), capacity)
    except ValueError as error:
        flags.error(str(error))
    print(json.dumps(found, indent=2) if given.json else "\n".join(fits.printed(found)))
    sys.exit(found["verdict"] != fits.FITS)


if __name__ == "__main__":
    main()
