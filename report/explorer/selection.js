// What pivot and chart show of the state: a measure, its axes, and one value for each axis that is left.
const PREFERRED = ["timing", "step", "ok", "all", "time", "forward"];
const ROW_AXES = ["size", "variant", "a", "category", "module", "name", "part"];
const COLUMN_AXES = ["context", "length", "precision", "b", "phase", "variant"];
const MOST_KEYS = 300;

async function selectionOf(state) {
  const all = measures();
  const measure = all.find((each) => each.id === state.of) ?? all[0];
  const table = await tableOf(measure.table);
  if (!table) return { measure, table };
  let rows = everyRow(table);
  if (measure.quantity) rows = chosenRows(table, rows, { quantity: measure.quantity, status: "ok" });
  const column = table.columns[measure.column];
  rows = rows.filter((row) => column.values[row] != null);
  const axes = Object.values(table.columns).filter(
    (each) => each.keys && !["quantity", "unit", "status", "full_name", "command"].includes(each.name),
  );
  const whole = Object.fromEntries(axes.map((axis) => [axis.name, keysOf(axis, rows)]));
  const filters = filtersOf(state);
  const automatic = {};
  const narrow = (name) => {
    const found = keysOf(table.columns[name], rows);
    if (name in state || found.length < 2) return;
    automatic[name] = String(table.columns[name].keys[best(table.columns[name], found)]);
    rows = chosenRows(table, rows, { [name]: automatic[name] });
  };
  rows = chosenRows(table, rows, filters);
  const asked = [state.rows, state.columns, state.facet];
  if (table.columns.study && !asked.includes("study")) narrow("study");
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
  const others = axes.filter((axis) => !used.includes(axis.name) && !["cell", "limits", "verdict"].includes(axis.name));
  for (const axis of others.filter((each) => whole[each.name].length <= MOST_KEYS)) narrow(axis.name);
  return { measure, all, table, column, rows, axes, whole, automatic, used, byRows, byColumns, facet,
    filters: { ...filters, ...automatic } };
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
  const named = axes.filter((axis) => whole[axis.name].length > 1 || used.includes(axis.name));
  const choices = [["", named.map((axis) => [axis.name, axis.label])]];
  const statistics = table.name === "series" ? ["median", "mean", "std", "processes", "samples"] : [];
  setControls(
    select("quantity", "of", measure.id, options, measure.meaning),
    select("rows", "rows", byRows, choices),
    select("columns", "columns", byColumns, choices),
    ...(statistics.length ? [select("statistic", "stat", state.stat ?? "median", [["", statistics.map((each) => [each, each])]])] : []),
    ...more,
    element("fieldset", {}, element("legend", { hidden: true }, "Filters"), ...axes
      .filter((axis) => !used.includes(axis.name) && whole[axis.name].length > 1 && whole[axis.name].length <= MOST_KEYS)
      .map((axis) => filterControl(axis, whole[axis.name], automatic[axis.name] ?? state[axis.name] ?? ALL, axis.name in automatic))),
  );
  // another quantity has other axes: what was chosen for the old one goes
  document.getElementById("control-of").addEventListener("change", (event) => {
    event.stopImmediatePropagation();
    location.hash = addressOf({ show: state.show, of: event.target.value });
  }, { capture: true });
}

/** The numbers of a row in the statistic that was asked for. */
function numbersOf(selection, state) {
  const { table, column } = selection;
  const isMedian = table.name !== "series" || (state.stat ?? "median") === "median";
  const shown = isMedian ? column : table.columns[state.stat];
  const [low, high] = isMedian ? [table.columns[column.low], table.columns[column.high]] : [];
  const isCount = ["processes", "samples"].includes(shown.name) && !isMedian;
  const ofRow = table.columns.unit;
  const unit = isCount ? "1" : selection.measure.unit.includes(" or ") ? valueOf(ofRow, selection.rows[0] ?? 0) : selection.measure.unit;
  return { of: (row) => ({ value: shown.values[row], low: low?.values[row], high: high?.values[row] }),
    unit: unit === "of the row" && ofRow ? valueOf(ofRow, selection.rows[0] ?? 0) : unit,
    label: table.name === "series" ? `${selection.measure.label}, ${shown.label}` : selection.measure.label };
}

/** In words: what all that is shown has in common. */
function commonOf({ table, rows, axes, used }) {
  const common = axes.filter((axis) => !used.includes(axis.name)).map((axis) => [axis, keysOf(axis, rows)]);
  return common.filter(([axis, found]) => found.length === 1 && axis.keys[found[0].key] !== "")
    .map(([axis, found]) => `${axis.label} ${axis.keys[found[0].key]}`).join(", ");
}

/** Axes in which the rows of one place differ: what a filter would tell apart. */
function differing({ axes, used }, rows) {
  const left = axes.filter((axis) => !used.includes(axis.name) && axis.name !== "cell");
  return left.filter((axis) => keysOf(axis, rows).length > 1).map((axis) => axis.label);
}
