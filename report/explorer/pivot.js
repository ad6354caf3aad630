/** A table of two axes: each place has its number with its interval, or its status, and leads to its cell. */
async function showPivot(state) {
  const selection = await selectionOf(state);
  const { table, rows, byRows, byColumns, filters } = selection;
  const [down, across] = [table.columns[byRows], table.columns[byColumns]];
  const places = Map.groupBy(rows, (row) => placeOf(down, across, row));
  const failed = await failures(selection);
  const there = [...places.keys(), ...failed.keys()].map((place) => place.split("\n"));
  const [lines, heads] = [down, across].map((axis, at) =>
    axis.keys.map(named).filter((key) => there.some((place) => place[at] === key)));
  const headings = heads.map((key) => [key, labelOf(across, key)]);
  selectionControls(state, selection, [
    menu("compared with", "than", state.than ?? "", [["", [["", "nothing"], ...headings]]], COMPARED),
    menu("heat", "heat", state.heat ?? "on", choicesOf({ on: "on", off: "off" })),
  ]);
  if (!lines.length) return sayNothing(state, filters);
  const numbers = numbersOf(selection, state);
  const base = heads.includes(state.than) ? state.than : null;
  const only = (line, head) => {
    const found = places.get(`${line}\n${head}`) ?? [];
    return found.length === 1 ? numbers.of(found[0]) : null;
  };
  const warmth = state.heat === "off" ? () => 0 : warmthOf(rows.map((row) => numbers.of(row).value));
  const sorted = sortedLines(lines, heads, state.sort, only, table.sort);
  const body = sorted.map((line) => element("tr", {}, element("th", { scope: "row" }, labelOf(down, line)),
    ...heads.map((head) => {
      const found = places.get(`${line}\n${head}`) ?? [];
      const failure = failed.get(`${line}\n${head}`);
      if (found.length > 1) return severalField(selection, numbers, found, { [byRows]: line, [byColumns]: head });
      const than = base && base !== head ? only(line, base) : null;
      if (found.length) return numberField(state, numbers, found[0], cellOf(table, found[0]), warmth, than);
      return numeric(failure ? cardLink(state, failure.cell, failure.status) : "–");
    })));
  const several = [...places.values()].filter((each) => each.length > 1);
  const apart = new Set(several.slice(0, 20).flatMap((found) => differing(selection.axes, found)));
  const grid = () => gridOf({ down, across, numbers, base, only }, sorted, heads);
  say(several.length ? `${several.length} places hold several rows: choose one ${[...apart].join(", or one ")}. `
    : "A number, with its interval, leads to its cell: command, machine and all else. ",
    copyButton("Copy as CSV", () => csvOf(grid())), copyButton("Copy as Markdown", () => markdownOf(grid())));
  setView(scrolled(numbers.label, [numbers.label, commonOf(selection)].filter(Boolean).join("; "),
    [element("th", { scope: "col" }, `${down.label} \\ ${across.label}`),
      ...headings.map(([key, label]) => sortingHead(state.sort, key, label))], body));
}

const COMPARED = "beside each number: times as much as the one of this column, and the difference";

const placeOf = (down, across, row) => `${nameOf(down, row)}\n${nameOf(across, row)}`;

/** Lines by the numbers of a column, `KEY` or `KEY:down`; those without one last. Without a column those of a table whose
 * rows stand by what they take: by all of it, the most first. */
function sortedLines(lines, heads, sort, only, byAll) {
  const key = (sort ?? "").replace(/:down$/, "");
  if (!heads.includes(key)) {
    const all = (line) => heads.reduce((sum, head) => sum + (only(line, head)?.value ?? 0), 0);
    return byAll ? lines.toSorted((one, other) => all(other) - all(one)) : lines;
  }
  const known = lines.filter((line) => only(line, key));
  const sign = sort.endsWith(":down") ? -1 : 1;
  known.sort((one, other) => sign * (only(one, key).value - only(other, key).value));
  return [...known, ...lines.filter((line) => !only(line, key))];
}

/** What is shown as headings and lines of numbers, in SI units; compared with a column, a ratio beside each. */
function gridOf({ down, across, numbers, base, only }, lines, heads) {
  const others = base ? heads.filter((head) => head !== base) : [];
  const label = (head) => `${across.label} ${labelOf(across, head)}`;
  const ratios = others.map((head) => `${label(head)} over ${labelOf(across, base)}`);
  const rows = lines.map((line) => {
    const value = (head) => only(line, head)?.value ?? "";
    const over = (head) => (value(head) === "" || !value(base) ? "" : value(head) / value(base));
    return [labelOf(down, line), ...heads.map(value), ...others.map(over)];
  });
  return [[`${down.label}; ${numbers.plain}`, ...heads.map(label), ...ratios], ...rows];
}

/** From a value to percent of the accent colour: by its logarithm between the least and the most. */
function warmthOf(values) {
  const sizes = values.filter((each) => each > 0).map(Math.log);
  const [least, most] = [Math.min, Math.max].map((end) => sizes.reduce((one, other) => end(one, other), sizes[0]));
  return (value) => (value > 0 && most > least ? Math.round(4 + (36 * (Math.log(value) - least)) / (most - least)) : 0);
}

function numberField(state, numbers, row, cell, warmth, than) {
  const { value } = numbers.of(row);
  const { text, interval } = printed(numbers.of(row), numbers.scale);
  const warm = warmth(value);
  const shown = cell ? cardLink(state, cell, text) : text;
  const below = [interval, than && comparison(value, than.value, numbers.scale)].filter(Boolean).join(" ");
  return numeric(shown, below, warm ? { class: "number heat", style: `--heat: ${warm}` } : {});
}

/** `× 1.53 (+5.31)`: over another number, and less it. */
function comparison(value, other, scale) {
  const difference = printed({ value: value - other }, scale).text;
  const ratio = other ? `× ${fixed(value / other, 2)} ` : "";
  return `${ratio}(${value >= other ? "+" : ""}${difference.replace("-", "−")})`;
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
