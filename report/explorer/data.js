"use strict";
// Tables as columns. A column is {name, label, unit, meaning, kind, low, high, chosen, values}; of one that rows are
// chosen by (chosen) `keys` are its values and `values` the index of each row's own.
const about = JSON.parse(document.getElementById("about").textContent);
const loaded = new Map();

async function unpacked(name) {
  const bytes = Uint8Array.from(atob(document.getElementById(`data-${name}`).textContent), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

/** A table with its columns by name; null if it lies only in its CSV. */
async function tableOf(name) {
  if (!document.getElementById(`data-${name}`)) return null;
  if (!loaded.has(name)) {
    const contents = JSON.parse(await unpacked(name));
    const { row, count, columns } = about.tables[name];
    const made = { name, row, count, columns: {} };
    columns.forEach((column, at) => {
      const [keys, values] = column.chosen ? contents[at] : [null, contents[at]];
      made.columns[column.name] = { ...column, keys, values };
    });
    loaded.set(name, made);
  }
  return loaded.get(name);
}

function valueOf(column, row) {
  return column.keys ? column.keys[column.values[row]] : column.values[row];
}

/** A row's cell; of several runs with the run's name before it. */
function cellOf(table, row) {
  const { cell, run } = table.columns;
  if (!cell) return "";
  return run ? `${valueOf(run, row)}: ${valueOf(cell, row)}` : valueOf(cell, row);
}

/** A value that rows are chosen by, as it stands in menus, headings and addresses. */
const named = (key) => (key === "" ? "(none)" : String(key));

/** Rows whose columns have one of the values, given with | between; with `blankFits` an empty field fits, too. */
function chosenRows(table, rows, filters, blankFits = false) {
  for (const [name, wanted] of Object.entries(filters)) {
    const column = table.columns[name];
    if (!column?.keys) continue;
    const texts = new Set(wanted.split("|"));
    const fits = column.keys.map((key) => texts.has(named(key)) || (blankFits && key === ""));
    rows = rows.filter((row) => fits[column.values[row]]);
  }
  return rows;
}

/** All rows; those that were not measured; made once. */
const everyRow = (table) => (table.all ??= Array.from({ length: table.count }, (_, row) => row));
const failedRows = (table) => (table.failed ??= everyRow(table).filter((row) => valueOf(table.columns.status, row) !== "ok"));

/** Indices of the keys that these rows have, in their order, and how many rows have each; of all rows made once. */
function keysOf(column, rows) {
  if (rows.length === column.values.length) return (column.found ??= countsOf(column, rows));
  return countsOf(column, rows);
}

function countsOf(column, rows) {
  const seen = new Uint32Array(column.keys.length);
  for (const row of rows) seen[column.values[row]] += 1;
  return [...seen.keys()].filter((key) => seen[key]).map((key) => ({ key, count: seen[key] }));
}

// A measure is what pivot and chart show: a quantity of `series`, or a column of numbers of another table.
function measures() {
  const quantities = Object.values(about.quantities).map((each) => ({ ...each, table: "series", column: "median" }));
  const others = Object.entries(about.tables).filter(([name]) => name !== "series").flatMap(([table, { columns }]) => columns
    .filter((each) => !each.chosen && !["low", "high"].includes(each.name)).map((each) => ({ ...each, table, column: each.name })));
  return [...quantities, ...others].map((each) => ({ ...each, id: `${each.table}.${each.name}` }));
}
