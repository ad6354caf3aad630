// What pivot and chart show of the state: a measure, its axes, and one value for each axis that is left.
const PREFERRED = ["timing", "step", "ok", "all", "time", "forward"];
const ROW_AXES = ["variant", "size", "a", "category", "module", "name", "part"];
const COLUMN_AXES = ["context", "length", "precision", "b", "phase", "variant"];
const MOST_KEYS = 300;
const UNFILTERED = ["cell", "limits", "verdict"]; // no choice of one value is made for these

async function selectionOf(state) {
  const all = measures();
  const measure = all.find((each) => each.id === state.of) ?? all[0];
  const table = await tableOf(measure.table);
  if (!table) return { measure, table };
  const column = table.columns[measure.column];
  const ofQuantity = measure.table === "series" ? { quantity: measure.name, status: "ok" } : {};
  const measured = () => chosenRows(table, everyRow(table), ofQuantity).filter((row) => column.values[row] != null);
  let rows = ((table.measured ??= {})[measure.id] ??= measured());
  const axes = Object.values(table.columns).filter(
    (each) => each.keys && !["quantity", "unit", "status", "full_name", "command"].includes(each.name),
  );
  const study = table.columns.study && { study: keysOf(table.columns.study, rows) };
  const filters = filtersOf(state);
  const automatic = {};
  const narrow = (name, among = rows) => {
    const found = keysOf(table.columns[name], among);
    if (name in state || found.length < (among === rows ? 2 : 1)) return;
    automatic[name] = named(table.columns[name].keys[best(table.columns[name], found)]);
    rows = chosenRows(table, rows, { [name]: automatic[name] });
  };
  const asked = [state.rows, state.columns, state.facet];
  const ofStudy = study && filters.study ? { study: filters.study } : {};
  rows = chosenRows(table, rows, ofStudy);
  if (study && !asked.includes("study")) narrow("study", chosenRows(table, rows, filters));
  const whole = { ...Object.fromEntries(axes.map((axis) => [axis.name, keysOf(axis, rows)])), ...study };
  rows = chosenRows(table, rows, filters);
  const varying = axes.filter((axis) => { const n = keysOf(axis, rows).length; return n > 1 && n <= MOST_KEYS; });
  const first = (names, taken) => {
    const there = varying.map((each) => each.name).filter((name) => name !== taken && name !== "limits");
    return names.find((name) => there.includes(name)) ?? there[0] ?? axes.find((each) => each.name !== taken).name;
  };
  const valid = (name) => (table.columns[name]?.keys ? name : null);
  const byRows = valid(state.rows) ?? first(ROW_AXES, state.columns);
  const byColumns = valid(state.columns) ?? first(COLUMN_AXES, byRows);
  const facet = valid(state.facet);
  const used = [byRows, byColumns, facet];
  const others = axes.filter((axis) => !used.includes(axis.name) && !UNFILTERED.includes(axis.name));
  for (const axis of others.filter((each) => whole[each.name].length <= MOST_KEYS)) {
    if (!areApart(table, rows, used)) narrow(axis.name);
  }
  return { measure, all, table, column, rows, axes, whole, automatic, used, byRows, byColumns, facet,
    filters: { ...filters, ...automatic } };
}

/** Whether no two rows have the same values on these axes. */
function areApart(table, rows, axes) {
  const columns = axes.filter(Boolean).map((name) => table.columns[name]);
  const seen = new Set();
  return rows.every((row) => {
    const place = columns.reduce((sum, column) => sum * column.keys.length + column.values[row], 0);
    return !seen.has(place) && seen.add(place);
  });
}

/** The key that is taken where none is asked for: a preferred one, else that of most rows. */
function best(column, found) {
  const rank = ({ key }) => { const at = PREFERRED.indexOf(String(column.keys[key])); return at < 0 ? 99 : at; };
  return [...found].sort((one, other) => rank(one) - rank(other) || other.count - one.count)[0].key;
}

function selectionControls(state, selection, ...more) {
  const { all, measure, table, axes, whole, automatic, used, byRows, byColumns } = selection;
  const groups = Object.entries(Object.groupBy(all, (each) => each.table));
  const options = groups.map(([name, list]) => [name, list.map((each) => [each.id, each.label])]);
  const choices = [["", axes.filter((axis) => whole[axis.name].length > 1 || used.includes(axis.name)).map((axis) => [axis.name, axis.label])]];
  const filtered = axes.filter(({ name }) => !used.includes(name) && whole[name].length > 1 && (whole[name].length <= MOST_KEYS && !UNFILTERED.includes(name) || name in state));
  const statistics = table.name === "series" ? ["median", "mean", "std", "processes", "samples"] : [];
  setControls(
    select("quantity", "of", measure.id, options, measure.meaning),
    select("rows", "rows", byRows, choices),
    select("columns", "columns", byColumns, choices),
    ...(statistics.length ? [select("statistic", "stat", state.stat ?? "median", [["", statistics.map((each) => [each, each])]])] : []),
    ...more,
    element("fieldset", {}, element("legend", { hidden: true }, "Filters"), ...filtered.map((axis) => filterControl(axis, whole[axis.name], automatic[axis.name] ?? state[axis.name] ?? ALL, axis.name in automatic))),
  );
  // another quantity has other axes: what was chosen for the old one goes
  document.getElementById("control-of").addEventListener("change", (event) => {
    event.stopImmediatePropagation();
    location.hash = addressOf({ show: state.show, of: event.target.value });
  }, { capture: true });
}

/** The numbers of a row in the statistic that was asked for. */
function numbersOf({ table, column, measure, rows }, state) {
  const shown = (table.name === "series" && table.columns[state.stat]) || column;
  const [low, high] = [table.columns[shown.low], table.columns[shown.high]];
  const unit = shown.unit === "of the row" ? measure.unit : shown.unit;
  return { of: (row) => ({ value: shown.values[row], low: low?.values[row], high: high?.values[row] }),
    unit: / or |row/.test(unit) && rows.length ? valueOf(table.columns.unit, rows[0]) : unit,
    label: table.name === "series" ? `${measure.label}, ${shown.label}` : measure.label };
}

/** In words: what all that is shown has in common. */
function commonOf({ table, rows, axes, used }) {
  return axes.filter((axis) => !used.includes(axis.name)).map((axis) => [axis, keysOf(axis, rows)])
    .filter(([axis, found]) => found.length === 1 && axis.keys[found[0].key] !== "")
    .map(([axis, found]) => `${axis.label} ${axis.keys[found[0].key]}`).join(", ");
}

/** Axes in which the rows of one place differ: what a filter would tell apart. */
function differing({ axes, used }, rows) {
  const left = axes.filter((axis) => !used.includes(axis.name) && axis.name !== "cell");
  return left.filter((axis) => keysOf(axis, rows).length > 1).map((axis) => axis.label);
}
