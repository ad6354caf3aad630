// What pivot and chart show of the state: a measure, its axes, and one value for each axis that is left.
const PREFERRED = ["timing", "step", "ok", "all", "time", "forward", "bf16"];
const ROW_AXES = ["name", "module", "category", "part", "variant", "size", "a"];
const COLUMN_AXES = ["context", "length", "precision", "b", "phase", "variant"];
const STATISTICS = ["median", "mean", "std", "processes", "samples"]; // of series
const NO_AXES = ["quantity"]; // of series: one is chosen anyway
const LEFT_OPEN = ["cell", "limits", "verdict"]; // no value of these is chosen unless a reader does

async function selectionOf(state) {
  const all = measures();
  const measure = all.find((each) => each.id === state.of) ?? all[0];
  const table = await tableOf(measure.table);
  const axes = Object.values(table.columns).filter(({ keys, name, is_axis }) => keys && is_axis && !NO_AXES.includes(name));
  const [filters, automatic] = [filtersOf(state), {}];
  let rows = measuredRows(table, measure);
  const narrow = (name, among) => {
    automatic[name] = best(keysOf(table.columns[name], among), name);
    rows = chosenRows(table, rows, { [name]: automatic[name] });
  };
  const studies = table.columns.study && { study: keysOf(table.columns.study, rows) };
  if (studies && filters.study) rows = chosenRows(table, rows, { study: filters.study });
  const among = chosenRows(table, rows, filters);
  const isOwnAxis = ["rows", "columns", "facet"].some((axis) => state[axis] === "study");
  if (studies && !("study" in state) && !isOwnAxis && among.length) narrow("study", among);
  const whole = { ...Object.fromEntries(axes.map((axis) => [axis.name, keysOf(axis, rows)])), ...studies };
  rows = chosenRows(table, rows, filters);
  const [byRows, byColumns, facet] = axesOf(state, table, axes, rows);
  const used = [byRows, byColumns, facet].filter(Boolean);
  const taken = [...used, ...LEFT_OPEN, ...Object.keys(state)];
  for (const { name, values } of axes.filter((axis) => !taken.includes(axis.name)))
    if (differ(table, rows, used, (row) => values[row])) narrow(name, rows);
  return { all, measure, table, rows, axes, whole, automatic, used, byRows, byColumns, facet, filters };
}

/** Rows that have a number of a measure; made once. */
function measuredRows(table, { table: name, column, name: quantity, id }) {
  return (table.measured[id] ??= chosenRows(table, everyRow(table), name === "series" ? { quantity, status: "ok" } : {})
    .filter((row) => table.columns[column].values[row] != null));
}

/** Names of the axes: those of the state, else the first that tell these rows apart. */
function axesOf(state, table, axes, rows, byRows = null) {
  const asked = [state.rows, state.columns, state.facet].map((name) => (table.columns[name]?.keys ? name : null));
  const varying = axes.map(({ name }) => name)
    .filter((name) => !LEFT_OPEN.includes(name) && keysOf(table.columns[name], rows).length > 1);
  const first = (names, ...more) => [...names.filter((name) => varying.includes(name)), ...varying, ...more,
    ...axes.map(({ name }) => name)].find((name) => ![asked[1], byRows].includes(name) && table.columns[name]?.keys);
  byRows = asked[0] ?? first(ROW_AXES, "cell");
  return [byRows, asked[1] ?? first(COLUMN_AXES, "machine", "cell"), asked[2]];
}

/** Whether rows of one place on the axes differ in something. */
function differ({ columns }, rows, names, something, first = new Map()) {
  return rows.some((row) => {
    const place = names.reduce((sum, name) => sum * columns[name].keys.length + columns[name].values[row], 0);
    return (first.get(place) ?? first.set(place, something(row)).get(place)) !== something(row);
  });
}

/** The value that is taken where none is asked for: a preferred one, else that of most rows. */
function best(found, axis) {
  return (axis === "options" ? ["(none)"] : PREFERRED).find((name) => found.some(({ text }) => text === name))
    ?? found.reduce((most, each) => (each.count > most.count ? each : most)).text;
}

// Quantities of series by their unit, and how a menu calls such a group.
const KINDS = { s: "times", B: "memory", "FLOP/s": "rates", "FLOP/s or B/s": "rates", "token/s": "rates", share: "rates",
  J: "energy and clocks", MHz: "energy and clocks" };
const kindOf = ({ table, unit }) => (table === "series" ? KINDS[unit] ?? "counts and differences" : `table ${table}`);

function selectionControls(state, { all, measure, table, axes, whole, automatic, used, byRows, byColumns, facet }, more) {
  const groups = Map.groupBy(all, kindOf);
  const options = [...groups].map(([name, list]) => [name, list.map((each) => [each.id, each.label])]);
  const kept = { rows: byRows, columns: byColumns, facet }; // so that a choice of rows never swaps an axis
  const anew = { rows: null, columns: null, facet: null, than: null }; // another study has others
  const choose = (of) => { location.hash = addressOf({ show: state.show, of }); }; // another one has other axes
  const varying = axes.filter(({ name }) => whole[name].length > 1);
  const choices = [["", axes.filter((axis) => varying.includes(axis) || used.includes(axis.name)).map(optionOf)]];
  const statistics = STATISTICS.map((name) => table.columns[name]).filter(Boolean);
  const filtered = varying.filter(({ name }) => !used.includes(name) && (name in state || !LEFT_OPEN.includes(name)));
  setControls([
    menu("quantity", "of", measure.id, options, measure.meaning, choose),
    menu("rows", "rows", byRows, choices),
    menu("columns", "columns", byColumns, choices),
    table.name === "series" ? menu("statistic", "stat", state.stat ?? "median", [["", statistics.map(optionOf)]]) : "",
    ...more,
  ], filtered.map((axis) => filterMenu(axis, whole[axis.name], automatic[axis.name] ?? state[axis.name],
    axis.name === "study" ? anew : kept)));
}

const optionOf = ({ name, label }) => [name, label];

/** The numbers of a row in the statistic that was asked for, with their unit, scale and label. */
function numbersOf({ table, measure, rows }, state) {
  const shown = (table.name === "series" && table.columns[state.stat]) || table.columns[measure.column];
  const [low, high] = [table.columns[shown.low], table.columns[shown.high]];
  const scale = scaleFor(rows.length ? unitOf(table, shown, rows[0]) : "1", rows.map((row) => shown.values[row]));
  const label = table.name === "series" ? `${measure.label}, ${shown.label}` : measure.label;
  const unit = rows.length ? unitOf(table, shown, rows[0]) : "1";
  const of = (row) => ({ value: shown.values[row], low: low?.values[row], high: high?.values[row] });
  return { of, scale, label: headed(label, scale.suffix), plain: headed(label, unit === "1" ? "" : unit) };
}

/** The unit that a number of a row is printed in. */
function unitOf({ columns }, column, row) {
  const unit = column.unit === "of the row" ? about.quantities[valueOf(columns.quantity, row)]?.unit : column.unit;
  return unit === undefined || unit.includes(" or ") ? valueOf(columns.unit, row) : unit;
}

/** In words: what all that is shown has in common. */
function commonOf({ rows, axes }) {
  const found = axes.map((axis) => [axis, keysOf(axis, rows)]).filter(([, keys]) => keys.length === 1);
  return found.map(([axis, [{ text }]]) => `${axis.label} ${labelOf(axis, text)}`)
    .filter((each) => !each.endsWith(named(""))).join(", ");
}

/** Labels of the axes in which rows of one place differ: what a filter would tell apart. */
function differing(axes, rows) {
  return axes.filter((axis) => axis.name !== "cell" && keysOf(axis, rows).length > 1).map((axis) => axis.label);
}
