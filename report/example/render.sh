#!/bin/sh
# Makes an example's figures and pages from its records: sh report/example/render.sh NAME [FOLDER]
# Without a folder in the example itself, with page one's facts of the H200 as report/reference/h200.json, which
# pages without a GPU quote; with one there, with the tables beside them.
set -eu
out=${2:+$(realpath -m "$2")}
cd "$(dirname "$0")/../.."
name=$1
out=${out:-report/example/$name}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
made=$work/made
tables() { # ZIP FOLDER: the tables of zipped records
    python3 -m zipfile -e "$1" "$work/cells"
    python3 scripts/aggregate.py --plan "$work/cells/plan.json" --results "$work/cells" --out "$2"
    rm -r "$work/cells"
}
if [ "$name" = compare ]; then
    (cd report/example/compare && python3 "$OLDPWD/scripts/compare_runs.py" before.zip after.zip --out "$made" \
        --command "python scripts/compare_runs.py before.zip after.zip --out compare")
else
    command="snakemake --cores 1 report"
    [ ! -e "report/example/$name.yaml" ] || command="$command --configfile report/example/$name.yaml"
    tables "report/example/$name/cells.zip" "$made/tables"
    python3 scripts/draw_figures.py --tables "$made/tables" --out "$made/figures"
    python3 scripts/write_report.py --tables "$made/tables" --figures "$made/figures" --templates report \
        --out "$made/report" --command "$command"
    if [ $# -lt 2 ]; then
        sed -i 's#CSV files in <code>../tables</code>#in <code>../cells.zip</code>#; s#cells.zip</code>, a table a file#cells.zip</code>#' "$made/report/explorer.html"
        rm -r "$made/tables"
    fi
fi
mkdir -p "$out"
for part in "$made"/*; do
    rm -rf "$out/$(basename "$part")"
    mv "$part" "$out/"
done
if [ "$name" = h200 ] && [ $# -lt 2 ]; then
    python3 -c '
import json, pathlib, sys
facts = json.loads(pathlib.Path(sys.argv[1]).read_text())
facts["machines"] = {name: {"page_one": own["page_one"]} for name, own in facts["machines"].items()}
text = json.dumps(facts, ensure_ascii=False, separators=(",", ":"))
pathlib.Path("report/reference/h200.json").write_text(text)' "$out/report/facts.json"
fi
