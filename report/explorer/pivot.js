/** A table of two axes: each place has its number with its interval, or its status, and leads to its cell. */
async function showPivot(state) {
  const selection = await selectionOf(state);
  const { table, rows, byRows, byColumns, measure } = selection;
  if (!table) return showLeftOut(measure.table);
  const heat = state.heat !== "0";
  selectionControls(state, selection, flagControl("heat", "heat", heat, (isOn) => ({ heat: isOn ? null : "0" })));
  const numbers = numbersOf(selection, state);
  const [down, across] = [table.columns[byRows], table.columns[byColumns]];
  const places = new Map();
  for (const row of rows) {
    const key = `${named(valueOf(down, row))}\n${named(valueOf(across, row))}`;
    if (!places.has(key)) places.set(key, []);
    places.get(key).push(row);
  }
  const failed = await failures(selection, places);
  const values = rows.map((row) => numbers.of(row).value);
  const scale = scaleFor(numbers.unit, values);
  const sizes = values.filter((each) => each > 0).map(Math.log);
  const [least, most] = [sizes.reduce((a, b) => Math.min(a, b), Infinity), sizes.reduce((a, b) => Math.max(a, b), -Infinity)];
  const warmth = (value) => (value > 0 && most > least ? 4 + (36 * (Math.log(value) - least)) / (most - least) : 0);
  const ordered = (axis, extra) => {
    const there = new Set([...keysOf(axis, rows).map(({ key }) => named(axis.keys[key])), ...extra]);
    return axis.keys.map(named).filter((key) => there.has(key));
  };
  const lines = ordered(down, [...failed.keys()].map((key) => key.split("\n")[0]));
  const heads = ordered(across, [...failed.keys()].map((key) => key.split("\n")[1]));
  const body = lines.map((line) => element("tr", {}, element("th", { scope: "row" }, line),
    ...heads.map((head) => placeOf(places.get(`${line}\n${head}`), failed.get(`${line}\n${head}`), { line, head }))));
  function placeOf(found, failure, where) {
    if (!found) return element("td", { class: "number" }, failure ? cardLink(state, failure.cell, failure.status) : "–");
    if (found.length > 1) {
      const own = found.map((row) => numbers.of(row).value);
      const ends = [Math.min(...own), Math.max(...own)].map((value) => printed(value, scale).text);
      const link = addressOf({ ...selection.filters, show: "rows", table: table.name, quantity: measure.table === "series" ? measure.name : null,
        [byRows]: where.line, [byColumns]: where.head });
      return element("td", { class: "number" }, element("a", { href: link }, ends.join(" … ")), element("small", {}, `${found.length} rows`));
    }
    const { value, low, high } = numbers.of(found[0]);
    const { text, interval } = printed(value, scale, low, high);
    const warm = heat ? warmth(value) : 0;
    const cell = cellOf(table, found[0]);
    return element("td", { class: warm ? "number heat" : "number", style: warm ? `--heat: ${warm.toFixed(0)}` : "" },
      cell ? cardLink(state, cell, text) : text, interval ? element("small", {}, interval) : "");
  }
  const label = headed(numbers.label, scale.suffix);
  const common = commonOf(selection);
  const made = element("table", {}, element("caption", {}, [label, common].filter(Boolean).join("; ")),
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, `${down.label} \\ ${across.label}`),
      ...heads.map((head) => element("th", { scope: "col", class: "number" }, head)))),
    element("tbody", {}, ...body));
  const several = [...places.values()].filter((each) => each.length > 1);
  const apart = [...new Set(several.slice(0, 20).flatMap((found) => differing(selection, found)))];
  say(several.length ? `${several.length} places hold several rows, which differ in ${apart.join(", ")}: choose one of these.` : "A number leads to its cell.");
  document.getElementById("view").replaceChildren(scrolled(label, made));
}

/** Place without a number → a cell there that ran out of memory, cannot run or was not measured. */
async function failures(selection, places) {
  const { byRows, byColumns, filters } = selection;
  const found = new Map();
  for (const name of ["series", "cells"]) {
    const table = await tableOf(name);
    const [down, across, status] = [table?.columns[byRows], table?.columns[byColumns], table?.columns.status];
    if (!down?.keys || !across?.keys || !status) continue;
    const kept = Object.fromEntries(Object.entries(filters).filter(([key]) => !["quantity", "limits"].includes(key)));
    for (const row of chosenRows(table, failedRows(table), kept, true)) {
      const key = `${named(valueOf(down, row))}\n${named(valueOf(across, row))}`;
      if (!places.has(key) && !found.has(key)) found.set(key, { status: valueOf(status, row), cell: cellOf(table, row) });
    }
  }
  return found;
}

function showLeftOut(name) {
  setControls();
  say(`${name} is too large for this page; it is the file ${name}.csv beside the others.`);
  document.getElementById("view").replaceChildren();
}
