/** A table of two axes: each place has its number with its interval, or its status, and leads to its cell. */
async function showPivot(state) {
  const selection = await selectionOf(state);
  const { table, rows, byRows, byColumns } = selection;
  selectionControls(state, selection, [menu("heat", "heat", state.heat ?? "on", choicesOf({ on: "on", off: "off" }))]);
  const [down, across] = [table.columns[byRows], table.columns[byColumns]];
  const places = Map.groupBy(rows, (row) => placeOf(down, across, row));
  const failed = await failures(selection);
  const there = [...places.keys(), ...failed.keys()].map((place) => place.split("\n"));
  const [lines, heads] = [down, across].map((axis, at) =>
    axis.keys.map(named).filter((key) => there.some((place) => place[at] === key)));
  const numbers = numbersOf(selection, state);
  const warmth = state.heat === "off" ? () => 0 : warmthOf(rows.map((row) => numbers.of(row).value));
  const body = lines.map((line) => element("tr", {}, element("th", { scope: "row" }, line), ...heads.map((head) => {
    const found = places.get(`${line}\n${head}`) ?? [];
    const failure = failed.get(`${line}\n${head}`);
    if (found.length > 1) return severalField(selection, numbers, found, { [byRows]: line, [byColumns]: head });
    if (found.length) return numberField(state, numbers, found[0], cellOf(table, found[0]), warmth);
    return numeric(failure ? cardLink(state, failure.cell, failure.status) : "–");
  })));
  const several = [...places.values()].filter((each) => each.length > 1);
  const apart = new Set(several.slice(0, 20).flatMap((found) => differing(selection.axes, found)));
  say(several.length ? `${several.length} places hold several rows: choose one ${[...apart].join(", or one ")}.`
    : "A number, with its interval, leads to its cell: command, machine and all else. Framed menus choose the rows.");
  const columns = [`${down.label} \\ ${across.label}`, ...heads];
  setView(scrolled(numbers.label, [numbers.label, commonOf(selection)].filter(Boolean).join("; "),
    columns.map((head, at) => element("th", { scope: "col", class: at ? "number" : "" }, head)), body));
}

const placeOf = (down, across, row) => `${nameOf(down, row)}\n${nameOf(across, row)}`;

/** From a value to percent of the accent colour: by its logarithm between the least and the most. */
function warmthOf(values) {
  const sizes = values.filter((each) => each > 0).map(Math.log);
  const [least, most] = [Math.min, Math.max].map((end) => sizes.reduce((one, other) => end(one, other), sizes[0]));
  return (value) => (value > 0 && most > least ? Math.round(4 + (36 * (Math.log(value) - least)) / (most - least)) : 0);
}

function numberField(state, numbers, row, cell, warmth) {
  const { text, interval } = printed(numbers.of(row), numbers.scale);
  const warm = warmth(numbers.of(row).value);
  const shown = cell ? cardLink(state, cell, text) : text;
  return numeric(shown, interval, warm ? { class: "number heat", style: `--heat: ${warm}` } : {});
}

/** Several rows in one place: the least and the most, and a link to them. */
function severalField({ table, measure, filters, automatic }, numbers, found, place) {
  const values = found.map((row) => numbers.of(row).value);
  const ends = [Math.min(...values), Math.max(...values)].map((value) => printed({ value }, numbers.scale).text);
  const quantity = table.name === "series" ? measure.name : null;
  const address = addressOf({ ...filters, ...automatic, ...place, show: "rows", table: table.name, quantity });
  return numeric(element("a", { href: address }, ends.join(" … ")), `${found.length} rows`);
}

/** Place → a cell there that ran out of memory, cannot run or was not measured. */
async function failures({ byRows, byColumns, filters, automatic }) {
  const found = new Map();
  const { quantity: _, limits: __, ...kept } = { ...filters, ...automatic };
  for (const table of [await tableOf("cells"), await tableOf("series")]) {
    const [down, across] = [table.columns[byRows], table.columns[byColumns]];
    if (!down?.keys || !across?.keys) continue;
    table.failed ??= everyRow(table).filter((row) => valueOf(table.columns.status, row) !== "ok");
    for (const row of chosenRows(table, table.failed, kept, true)) {
      found.set(placeOf(down, across, row), { status: valueOf(table.columns.status, row), cell: cellOf(table, row) });
    }
  }
  return found;
}
