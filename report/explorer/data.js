// Tables as columns: {name, label, unit, meaning, kind, low, high, chosen, values}. Of a column that rows are chosen by
// (chosen) `keys` are its values, and `values` the index of each row's own.
const about = JSON.parse(document.getElementById("about").textContent);
const ENDS = ["low", "high", "unit"]; // printed with the number that they belong to

async function unpacked(name) {
  const bytes = Uint8Array.from(atob(document.getElementById(`data-${name}`).textContent), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

/** A table with its columns by name; undefined where there is none. */
async function tableOf(name) {
  const table = about.tables[name];
  if (!table || table.measured) return table;
  const contents = JSON.parse(await unpacked(name));
  const columns = table.columns.map((column, at) => [column.name, column.chosen
    ? { ...column, keys: contents[at][0], values: contents[at][1] } : { ...column, values: contents[at] }]);
  return Object.assign(table, { name, columns: Object.fromEntries(columns), measured: {} });
}

const valueOf = (column, row) => (column.keys ? column.keys[column.values[row]] : column.values[row]);

/** A value that rows are chosen by, as it stands in menus, headings and addresses. */
const named = (key) => (key === "" ? "(none)" : String(key));
const nameOf = (column, row) => named(valueOf(column, row));

/** What the report calls a value: of a rung its label. */
const labelOf = (column, key) => column.names?.[key] ?? named(key);

const shownOf = (column, row) => labelOf(column, valueOf(column, row));

/** A row's cell; of several runs with the run's name before it. */
const cellOf = ({ columns: { run, cell } }, row) =>
  (cell ? (run ? `${valueOf(run, row)}: ` : "") + valueOf(cell, row) : "");

/** Rows whose columns have one of the values, given with | between; with `blankFits` an empty field fits, too. */
function chosenRows(table, rows, filters, blankFits = false) {
  for (const [name, wanted] of Object.entries(filters)) {
    const column = table.columns[name];
    if (!column?.keys) continue;
    const texts = wanted.split("|");
    const fits = column.keys.map((key) => texts.includes(named(key)) || (blankFits && key === ""));
    rows = rows.filter((row) => fits[column.values[row]]);
  }
  return rows;
}

/** All rows; made once. */
const everyRow = (table) => (table.all ??= Array.from({ length: table.count }, (_, row) => row));

/** Keys that these rows have, in their order: {text, count} of each. */
function keysOf(column, rows) {
  const counts = new Uint32Array(column.keys.length);
  for (const row of rows) counts[column.values[row]] += 1;
  return column.keys.map((key, at) => ({ text: named(key), count: counts[at] })).filter(({ count }) => count);
}

/** What pivot and chart can show: quantities of `series`, and columns of numbers of the other tables. */
function measures() {
  const quantities = Object.values(about.quantities).map((each) => ({ ...each, table: "series", column: "median" }));
  const others = Object.entries(about.tables).filter(([table]) => table !== "series").flatMap(([table, { columns }]) =>
    Object.values(columns).filter((each) => !each.chosen && !ENDS.includes(each.name))
      .map((each) => ({ ...each, table, column: each.name })));
  return [...quantities, ...others].map((each) => ({ ...each, id: `${each.table}.${each.name}` }));
}
