"""Whether a training step fits a card: its peak by tensor, the largest batch and context, what
would make room. Needs no GPU. Of a model or step of one's own, whose file is imported and runs as
you, the peak by category and module is found by running it in shapes alone, which needs torch. Exit
code: 0 it fits, 1 it does not or only with doubt, 2 what was asked for is wrong."""

import argparse
import json
import sys
from pathlib import Path

from stepscope.config.flags import mapping
from stepscope.formulas import fits
from stepscope.recordings.text import show

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    # Without a usage what is wrong is one line.
    flags = argparse.ArgumentParser(
        description=__doc__, usage=argparse.SUPPRESS, allow_abbrev=False
    )
    flags.add_argument("--memory", default="24GB", help="as sold, or a card; %(default)s")
    flags.add_argument("--reserve", default="0GB", help="of it what others hold; %(default)s")
    fits.add_flags(flags)
    own = flags.add_mutually_exclusive_group()
    own.add_argument("--model", metavar="FILE:FUNCTION", help="of your own: docs/own-model.md")
    own.add_argument(
        "--hf", dest="model", type="hf:{}".format, metavar="NAME", help="a model of transformers"
    )
    flags.add_argument(
        "--keys", type=mapping, default="{}", metavar="JSON", help="what the function takes"
    )
    own.add_argument("--step", metavar="FILE:FUNCTION", help="a step of your own: docs/own-step.md")
    flags.add_argument("--json", action="store_true", help="print data instead of lines")
    given = flags.parse_args()
    try:
        capacity = fits.capacity(given.memory, given.reserve)
        if given.model or given.step:
            from stepscope.measure import fake_peak  # and torch with it

            found = fits.of_own(capacity, *fake_peak.found(given, sys.argv))
        else:
            from stepscope.yaml_files import read_yaml  # and yaml with it

            sizes = read_yaml(ROOT / "config.yaml")["sizes"]
            found = fits.answer(fits.setup_of(given, sizes), capacity, given.machine)
    except ValueError as error:
        flags.error(str(error))
    except KeyboardInterrupt:
        flags.error("interrupted")
    except ImportError as error:
        flags.error(f"{error}; pip install -r requirements.txt, or use the Python of snakemake")
    show(json.dumps(found, indent=2) if given.json else "\n".join(fits.printed(found)))
    sys.exit(found["verdict"] != fits.FITS)


if __name__ == "__main__":
    main()
