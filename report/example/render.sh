#!/bin/sh
# Makes an example's figures and pages from its records: sh report/example/render.sh NAME [FOLDER]
# Without a folder in the example itself; with one there, with the tables beside them.
set -eu
cd "$(dirname "$0")/../.."
name=$1
out=${2:-report/example/$name}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command="snakemake --cores 1 report"
[ ! -e "report/example/$name.yaml" ] || command="$command --configfile report/example/$name.yaml"
python3 -m zipfile -e "report/example/$name/cells.zip" "$work"
python3 scripts/aggregate.py --plan "$work/plan.json" --results "$work" --out "$work/tables"
python3 scripts/draw_figures.py --tables "$work/tables" --out "$out/figures"
python3 scripts/write_report.py --tables "$work/tables" --figures "$out/figures" --templates report --out "$out/report" \
    --command "$command"
[ $# -lt 2 ] || cp -r "$work/tables" "$out/tables"
