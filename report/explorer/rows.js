/** Any table: filtered, searched, sorted, the first rows of it drawn; all that are left can be copied. */
const DRAWN = 100;
const MOST_CHOICES = 60;
const searched = new Map();

async function showRows(state) {
  const name = state.table in about.tables ? state.table : "series";
  const table = await tableOf(name);
  const names = Object.entries(about.tables).map(([key, { count }]) => [key, `${key} · ${count.toLocaleString("en")}`]);
  const chooser = select("table", "table", name, [["", names]]);
  chooser.querySelector("select").addEventListener("change", (event) => {
    event.stopImmediatePropagation();
    location.hash = addressOf({ show: "rows", table: event.target.value });
  }, { capture: true });
  if (!table) {
    showLeftOut(name);
    return setControls(chooser);
  }
  const all = everyRow(table);
  const search = element("input", { type: "search", id: "control-search", value: state.search ?? "" });
  search.addEventListener("input", () => draw(search.value));
  search.addEventListener("change", () => {
    history.replaceState(null, "", addressOf(readState(), { search: search.value || null }));
  });
  const filters = Object.values(table.columns).map((column) => [column, column.keys ? keysOf(column, all) : []])
    .filter(([column, found]) => found.length > 1 && (found.length <= MOST_CHOICES || column.name in state));
  setControls(chooser, element("label", {}, "search", search),
    element("fieldset", {}, element("legend", { hidden: true }, "Filters"),
      ...filters.map(([column, found]) => filterControl(column, found, state[column.name] ?? ALL, false))));
  const chosen = chosenRows(table, all, Object.fromEntries(Object.entries(filtersOf(state)).filter(([key]) => table.columns[key])));
  const columns = Object.values(table.columns).filter((column) => !isEmpty(column, chosen));
  const constant = columns.filter((column) => chosen.length > 1 && column.keys && column.name !== "cell" && keysOf(column, chosen).length === 1);
  const drawn = columns.filter((column) => !constant.includes(column));
  const common = constant.map((column) => `${column.label} ${valueOf(column, chosen[0])}`).join(", ");
  const sorted = sortedBy(table, chosen, state.sort);
  draw(state.search ?? "");

  function draw(words, most = DRAWN) {
    const left = words ? found(table, sorted, words) : sorted;
    const shown = left.slice(0, most);
    const scales = drawn.map((column) => (column.keys || column.unit === "of the row" ? null : scaleFor(column.unit, shown.map((row) => column.values[row]))));
    const heads = drawn.map((column, at) => headOf(state, column, scales[at]));
    const body = shown.map((row) => element("tr", {}, ...drawn.map((column, at) => fieldOf(state, table, column, scales[at], row))));
    document.getElementById("view").replaceChildren(scrolled(`Rows of ${name}`, element("table", {}, element("caption", {}, `A row is ${table.row}. ${common && `All: ${common}.`}`),
      element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...body))));
    const more = left.length > most ? [element("button", { type: "button", click: () => draw(words, most * 5) }, `Show ${Math.min(most * 5, left.length).toLocaleString("en")}`)] : [];
    say(`${left.length.toLocaleString("en")} of ${table.count.toLocaleString("en")} rows${more.length ? `, the first ${most} drawn` : ""}`, ...more,
      element("button", { type: "button", click: () => copy(asCsv(columns, left), "CSV") }, "Copy as CSV"),
      element("button", { type: "button", click: () => copy(asMarkdown(columns, left), "Markdown") }, "Copy as Markdown"));
  }
}

const isEmpty = (column, rows) => !rows.some((row) => valueOf(column, row) != null && valueOf(column, row) !== "");

function headOf(state, column, scale) {
  const [name, order] = (state.sort ?? "").split(":");
  const isOwn = name === column.name;
  const next = isOwn && order !== "down" ? `${column.name}:down` : column.name;
  const button = element("button", { type: "button", id: `control-sort-${column.name}`, title: column.meaning, click: () => change({ sort: next }) },
    headed(column.label, scale?.suffix));
  return element("th", { scope: "col", class: column.keys ? "" : "number", "aria-sort": isOwn ? (order === "down" ? "descending" : "ascending") : "" }, button);
}

function fieldOf(state, table, column, scale, row) {
  const value = valueOf(column, row);
  if (column.name === "cell") return element("td", {}, cardLink(state, cellOf(table, row), value));
  if (column.keys) return textField(column, value);
  if (value == null) return element("td");
  const own = scale ?? scaleFor(unitOf(table, column, row), [value]);
  const [low, high] = [column.low, column.high].map((end) => table.columns[end]?.values[row]);
  const { text, interval } = printed(value, own, low, high);
  return element("td", { class: "number" }, `${text}${scale ? "" : ` ${own.suffix}`}`, interval ? element("small", {}, interval) : "");
}

/** The unit that a number of a row is printed in. */
function unitOf(table, column, row) {
  const unit = column.unit === "of the row" ? about.quantities[valueOf(table.columns.quantity, row)]?.unit ?? "or" : column.unit;
  return / ?or /.test(`${unit} `) ? valueOf(table.columns.unit, row) : unit;
}

function textField(column, value) {
  return element("td", { class: column.kind === "number" ? "number" : String(value).length > 36 ? "long" : "short" }, String(value));
}

function sortedBy(table, rows, sort) {
  const [name, order] = (sort ?? "").split(":");
  const column = table.columns[name];
  if (!column) return rows;
  const ordered = column.keys && [...column.keys].sort((a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true })));
  const ranks = column.keys?.map((key) => (key === "" ? null : ordered.indexOf(key)));
  const value = (row) => (ranks ? ranks[column.values[row]] : column.values[row]);
  const sign = order === "down" ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    return a === null || b === null ? (a === null) - (b === null) : sign * (a - b); // what is missing comes last
  });
}

/** Rows that have all words somewhere in their text. */
function found(table, rows, words) {
  if (!searched.has(table.name)) {
    const texts = Object.values(table.columns).filter((column) => column.keys);
    searched.set(table.name, everyRow(table).map((row) => texts.map((column) => column.keys[column.values[row]]).join("\t").toLowerCase()));
  }
  const lines = searched.get(table.name);
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => wanted.every((word) => lines[row].includes(word)));
}

function asCsv(columns, rows) {
  const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const lines = rows.map((row) => columns.map((column) => quoted(String(valueOf(column, row) ?? ""))).join(","));
  return [columns.map((column) => column.name).join(","), ...lines, ""].join("\n");
}

function asMarkdown(columns, rows) {
  const line = (values) => `| ${values.map((value) => String(value ?? "").replaceAll("|", "\\|")).join(" | ")} |`;
  const heads = columns.map((column) => headed(column.label, ["", "1", "of the row"].includes(column.unit) ? "" : column.unit));
  const rules = columns.map((column) => (column.keys ? ":---" : "---:"));
  return [line(heads), line(rules), ...rows.map((row) => line(columns.map((column) => valueOf(column, row)))), ""].join("\n");
}
