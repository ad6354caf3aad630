/** All about one cell, over the view. */
const card = document.getElementById("card");
card.addEventListener("close", () => { if (readState().card) change({ card: null }); });

async function showCard(state) {
  if (!state.card) return card.close();
  const cells = await tableOf("cells");
  const row = everyRow(cells).find((each) => cellOf(cells, each) === state.card)
    ?? everyRow(cells).find((each) => valueOf(cells.columns.cell, each) === state.card);
  const close = element("button", { type: "button", class: "close", click: () => card.close() }, "Close");
  if (row === undefined) {
    card.replaceChildren(close, element("h2", { id: "card-title" }, "No such cell"), element("p", {}, state.card));
    return card.open || card.showModal();
  }
  const id = cellOf(cells, row);
  const field = (name) => (cells.columns[name] ? valueOf(cells.columns[name], row) : "");
  const facts = Object.values(cells.columns).filter((each) => !["cell", "command"].includes(each.name)).map((column) => {
    const value = valueOf(column, row);
    if (value === "" || value == null) return [];
    const scale = column.keys ? null : scaleFor(column.unit, [value]);
    return [element("dt", { title: column.meaning }, column.label),
      element("dd", {}, scale ? `${printed(value, scale).text} ${scale.suffix}` : String(value))];
  });
  const beside = JSON.parse(await unpacked("beside"));
  const [files, more] = [Object.entries(beside.files[id] ?? {}), Object.entries(beside.more[id] ?? {})];
  const rest = { cell: field("cell"), run: field("run") || null, show: "rows" };
  card.replaceChildren(close, element("h2", { id: "card-title" }, id),
    element("p", {}, "The command that measures it:"),
    element("pre", { tabindex: 0 }, element("code", {}, field("command"))),
    element("button", { type: "button", click: () => copy(field("command"), "Command") }, "Copy the command"),
    files.length ? element("p", {}, "Files: ", ...files.flatMap(([what, path]) => [element("a", { href: path.split("/").map(encodeURIComponent).join("/") }, what), " "])) : "",
    element("dl", {}, ...facts.flat()),
    await partOf("series", id, ["quantity", "variant", "mode", "phase", "length", "direction", "median", "mean", "std", "processes", "samples", "status", "limits"]),
    await partOf("comparisons", id, ["a", "b", "mode", "phase", "length", "direction", "ratio", "verdict", "in_turns"]),
    await partOf("memory_peak", id, ["category", "bytes", "predicted"]),
    more.length ? element("p", {}, "All its rows: ", ...more.flatMap(([name, count]) =>
      [element("a", { href: addressOf({ ...rest, table: name }) }, `${name} (${count})`), " "])) : "");
  if (!card.open) card.showModal();
  card.scrollTop = 0;
}

/** The rows of a cell in a table, in some of its columns; nothing without rows. */
async function partOf(name, id, columns) {
  const table = about.tables[name] && (await tableOf(name));
  const rows = table ? everyRow(table).filter((row) => cellOf(table, row) === id) : [];
  if (!rows.length) return "";
  const shown = columns.map((each) => table.columns[each]).filter((each) => each && !isEmpty(each, rows));
  const body = rows.map((row) => element("tr", {}, ...shown.map((column) => fieldOf({}, table, column, null, row))));
  const heads = shown.map((column) => element("th", { scope: "col", class: column.keys ? "" : "number" }, column.label));
  return scrolled(name, element("table", {}, element("caption", {}, `${name}: a row is ${table.row}.`),
    element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...body)));
}
