"use strict";
// Tables as columns: {name, label, unit, meaning, kind, low, high, chosen, values}. Of a column that rows are chosen by
// (chosen) `keys` are its values, and `values` the index of each row's own.
const about = JSON.parse(document.getElementById("about").textContent);
const loaded = new Map();

async function unpacked(name) {
  const bytes = Uint8Array.from(atob(document.getElementById(`data-${name}`).textContent), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

/** A table with its columns by name; undefined where there is none. */
async function tableOf(name) {
  if (!loaded.has(name) && name in about.tables) {
    const contents = JSON.parse(await unpacked(name));
    const columns = about.tables[name].columns.map((column, at) => {
      const [keys, values] = column.chosen ? contents[at] : [null, contents[at]];
      return [column.name, { ...column, keys, values }];
    });
    loaded.set(name, { ...about.tables[name], name, columns: Object.fromEntries(columns), measured: {} });
  }
  return loaded.get(name);
}

const valueOf = (column, row) => (column.keys ? column.keys[column.values[row]] : column.values[row]);

/** A value that rows are chosen by, as it stands in menus, headings and addresses. */
const named = (key) => (key === "" ? "(none)" : String(key));
const nameOf = (column, row) => named(valueOf(column, row));

/** A row's cell; of several runs with the run's name before it. */
function cellOf({ columns }, row) {
  if (!columns.cell) return "";
  return (columns.run ? `${valueOf(columns.run, row)}: ` : "") + valueOf(columns.cell, row);
}

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

/** All rows, and those of cells that have no number there; made once. */
const everyRow = (table) => (table.all ??= Array.from({ length: table.count }, (_, row) => row));
const failedRows = (table) =>
  (table.failed ??= everyRow(table).filter((row) => valueOf(table.columns.status, row) !== "ok"));

/** Keys that these rows have, in their order: {text, count} of each. Of all rows they are counted once. */
function keysOf(column, rows) {
  const isWhole = rows.length === column.values.length;
  if (isWhole && column.found) return column.found;
  const counts = new Uint32Array(column.keys.length);
  for (const row of rows) counts[column.values[row]] += 1;
  const found = column.keys.map((key, at) => ({ text: named(key), count: counts[at] })).filter(({ count }) => count);
  if (isWhole) column.found = found;
  return found;
}

/** What pivot and chart can show: quantities of `series`, and columns of numbers of the other tables. */
function measures() {
  const quantities = Object.values(about.quantities).map((each) => ({ ...each, table: "series", column: "median" }));
  const others = Object.entries(about.tables).filter(([table]) => table !== "series").flatMap(([table, { columns }]) =>
    columns.filter((each) => !each.chosen && !ENDS.includes(each.name))
      .map((each) => ({ ...each, table, column: each.name })));
  return [...quantities, ...others].map((each) => ({ ...each, id: `${each.table}.${each.name}` }));
}

const ENDS = ["low", "high"]; // of an interval, printed beside the number between them
