#!/bin/sh
# Makes scripts/stepscope/results/cards.csv, what cards of each type reached, of all committed records: sh report/reference/cards.sh
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for zip in report/example/*/*.zip report/reference/today-*.zip tests/data/h100_*.zip; do
    name=$(printf %s "$zip" | tr / -)
    python3 -m zipfile -e "$zip" "$work/$name.cells"
    python3 scripts/aggregate.py --plan "$work/$name.cells/plan.json" --results "$work/$name.cells" --out "$work/$name.tables"
done
PYTHONPATH=scripts python3 - "$work"/*.tables <<'PYTHON'
import sys
from pathlib import Path

import pandas as pd
from stepscope.results import cards
from stepscope.results.tables import Tables

found = []
for tables in map(Tables, map(Path, sys.argv[1:])):
    own = tables["models"].query("reference != ''")["size"]  # of which another may be called so
    found.append(cards.measured(tables["series"], tables["cells"], tables["models"]).query("size not in @own"))
every = pd.concat(found, ignore_index=True).drop(columns=["machine", "cell"])
best = every.sort_values("value").groupby([*cards.LIKE, "card", "unit"], dropna=False)["value"]
# Of a card that was measured several times: the best rate, the least time.
least, most = best.first().reset_index(), best.last().reset_index()
kept = pd.concat([least[least["unit"] == "s"], most[most["unit"] != "s"]]).sort_values([*cards.LIKE, "card"])
kept["parameters"] = kept["parameters"].astype("Int64")
kept.to_csv(cards.REFERENCE, index=False, float_format="%.5g")
PYTHON
