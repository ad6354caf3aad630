const card = document.getElementById("card");
const PARTS = {
  series: ["quantity", "variant", "mode", "phase", "length", "direction", "median", "mean", "std", "processes",
    "samples", "status", "limits"],
  comparisons: ["a", "b", "mode", "phase", "length", "direction", "ratio", "verdict", "in_turns"],
  memory_peak: ["category", "bytes", "predicted"],
};
card.addEventListener("close", () => { if (readState().card) change({ card: null }); });

/** All about one cell, over the view. */
async function showCard(state) {
  if (!state.card) return card.close();
  const cells = await tableOf("cells");
  const row = everyRow(cells).find((each) => cellOf(cells, each).endsWith(state.card));
  const parts = row === undefined ? ["This cell is in none of the tables."] : await partsOf(cells, row);
  document.getElementById("card-title").textContent = row === undefined ? state.card : cellOf(cells, row);
  document.getElementById("card-parts").replaceChildren(...parts);
  if (!card.open) card.showModal();
  card.scrollTop = 0;
}

async function partsOf(cells, row) {
  const id = cellOf(cells, row);
  const command = valueOf(cells.columns.command, row);
  const facts = Object.values(cells.columns)
    .filter((column) => !["cell", "command"].includes(column.name) && !isEmpty(column, [row]));
  const { files, more } = JSON.parse(await unpacked("beside"));
  const { cell, run } = cells.columns;
  const own = { show: "rows", cell: valueOf(cell, row), run: run && valueOf(run, row) };
  const parts = await Promise.all(Object.keys(PARTS).map((name) => partOf(name, id)));
  return [
    element("p", {}, "The command that measures it:"),
    element("pre", { tabindex: 0 }, element("code", {}, command)),
    copyButton("Copy the command", () => command),
    links("Files", Object.entries(files[id] ?? {}).map(([name, path]) => [name, encodeURI(path)])),
    element("dl", {}, ...facts.flatMap((column) => [element("dt", { title: column.meaning }, column.label),
      element("dd", {}, fieldOf({}, cells, column, row).textContent)])),
    ...parts.filter(Boolean),
    links("All its rows", Object.entries(more[id] ?? {}).map(([name, count]) =>
      [`${name} (${count})`, addressOf(own, { table: name })])),
  ];
}

function links(title, found) {
  if (!found.length) return "";
  return element("p", {}, `${title}: `, ...found.flatMap(([text, href]) => [element("a", { href }, text), " "]));
}

/** The rows of a cell in a table, in some of its columns; null without rows. */
async function partOf(name, id) {
  const table = await tableOf(name);
  const rows = table ? everyRow(table).filter((row) => cellOf(table, row) === id) : [];
  if (!rows.length) return null;
  const shown = PARTS[name].map((each) => table.columns[each]).filter((each) => each && !isEmpty(each, rows));
  return scrolled(name, `${name}: a row is ${table.row}.`,
    shown.map((column) => element("th", { scope: "col", class: column.keys ? "" : "number" }, column.label)),
    rows.map((row) => element("tr", {}, ...shown.map((column) => fieldOf({}, table, column, row)))));
}
