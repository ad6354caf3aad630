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

/**
 * Rows whose columns have one of the values, given as text with | between. With `blankFits` an empty field fits too, and
 * a column that the table lacks does not count.
 */
function chosenRows(table, rows, filters, blankFits = false) {
  for (const [name, wanted] of Object.entries(filters)) {
    const column = table.columns[name];
    if (!column?.keys) {
      if (!blankFits && about.tables[table.name] && name in table.columns) continue;
      if (blankFits) continue;
      return [];
    }
    const texts = new Set(wanted.split("|"));
    const fits = column.keys.map((key) => texts.has(String(key)) || (blankFits && key === ""));
    rows = rows.filter((row) => fits[column.values[row]]);
  }
  return rows;
}

const everyRow = (table) => Array.from({ length: table.count }, (_, row) => row);

/** Indices of the keys that these rows have, in the order of the keys. */
function keysOf(column, rows) {
  const seen = new Uint32Array(column.keys.length);
  for (const row of rows) seen[column.values[row]] += 1;
  return [...seen.keys()].filter((key) => seen[key]).map((key) => ({ key, count: seen[key] }));
}

// A measure is what pivot and chart show: a quantity of `series`, or a column of numbers of another table.
function measures() {
  const found = [];
  for (const [name, table] of Object.entries(about.tables)) {
    if (name === "series") {
      for (const each of Object.values(about.quantities)) {
        found.push({ id: `series.${each.name}`, table: name, column: "median", quantity: each.name, ...each });
      }
      continue;
    }
    const ends = new Set(table.columns.flatMap((each) => [each.low, each.high]));
    for (const each of table.columns) {
      if (each.chosen || (ends.has(each.name) && ["low", "high"].includes(each.name))) continue;
      found.push({ ...each, id: `${name}.${each.name}`, table: name, column: each.name, quantity: "" });
    }
  }
  return found;
}
