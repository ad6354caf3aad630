const MOST_CHOICES = 60;
const LEADING = ["quantity", "median"]; // of series: what was measured, before where
const COLLATOR = new Intl.Collator("en", { numeric: true });

/** Any table: filtered, searched, sorted, the first rows of it drawn; all that are left can be copied. */
async function showRows(state) {
  const name = state.table in about.tables ? state.table : "series";
  const table = await tableOf(name);
  const names = Object.entries(about.tables).map(([key, { count }]) => [key, `${key} · ${grouped(count)}`]);
  const choose = (other) => { location.hash = addressOf({ show: "rows", table: other }); };
  const chooser = menu("table", "table", name, [["", names]], "", choose);
  const all = everyRow(table);
  const filters = Object.values(table.columns).filter((column) => column.keys).map((each) => [each, keysOf(each, all)])
    .filter(([column, found]) => found.length > 1 && (found.length <= MOST_CHOICES || column.name in state));
  const search = element("input", { type: "search", id: "control-search", value: state.search,
    input: () => draw(search.value),
    change: () => history.replaceState(null, "", addressOf(readState(), { search: search.value })) });
  setControls([chooser, element("label", {}, "search", search)],
    filters.map(([column, found]) => filterMenu(column, found, state[column.name])));
  const chosen = chosenRows(table, all, filtersOf(state));
  if (!chosen.length) return sayNothing(state, filtersOf(state));
  const sort = state.sort ?? table.sort;
  const sorted = sortedBy(table, chosen, sort);
  const columns = Object.values(table.columns).filter((column) => !isEmpty(column, chosen));
  const constant = columns.filter((column) => column.keys && column.name !== "cell" && chosen.length > 1
    && keysOf(column, chosen).length === 1);
  const shown = columns.filter((column) => !constant.includes(column) && !ENDS.includes(column.name))
    .sort((one, other) => LEADING.includes(other.name) - LEADING.includes(one.name));
  const common = constant.map((column) => `${column.label} ${valueOf(column, chosen[0])}`).join(", ");
  draw(state.search ?? "");

  function draw(words, most = 100) {
    const left = words ? withWords(table, sorted, words) : sorted;
    const first = left.slice(0, most);
    const scales = shown.map(({ keys, unit, values }) =>
      (keys || unit === "of the row" ? null : scaleFor(unit, first.map((row) => values[row]))));
    setView(scrolled(`Rows of ${name}`, `A row is ${table.row}. ${common && `All: ${common}.`}`,
      shown.map((column, at) => sortingHead(sort, column.name, headed(column.label, scales[at]?.suffix), column)),
      first.map((row) => element("tr", {}, ...shown.map((each, at) => fieldOf(state, table, each, row, scales[at]))))));
    say(`${grouped(first.length)} of ${grouped(left.length)} rows of ${grouped(table.count)} `,
      first.length < left.length ? button("Show more", () => draw(words, most * 5)) : "",
      copyButton("Copy as CSV", () => asCsv(columns, left)),
      copyButton("Copy as Markdown", () => asMarkdown(columns, left)));
  }
}

const isMissing = (value) => value == null || value === "";
const isEmpty = (column, rows) => rows.every((row) => isMissing(valueOf(column, row)));

/** A heading that sorts by its column: NAME, then NAME:down. */
function sortingHead(sort, name, text, { meaning = "", keys = null } = {}) {
  const isOwn = (sort ?? "").replace(/:down$/, "") === name;
  const isDown = isOwn && sort.endsWith(":down");
  const next = isOwn && !isDown ? `${name}:down` : name;
  const made = button(text, () => change({ sort: next }), { title: meaning, id: `control-sort-${name}` });
  const direction = isDown ? "descending" : "ascending";
  return element("th", { scope: "col", class: keys ? "" : "number", "aria-sort": isOwn ? direction : "" }, made);
}

/** A field of a table; without a scale for its column a number has its own, and its unit. */
function fieldOf(state, table, column, row, scale = null) {
  const value = valueOf(column, row);
  if (isMissing(value)) return element("td");
  if (column.name === "cell") return element("td", { class: "short" }, cardLink(state, cellOf(table, row), value));
  if (column.keys) {
    const kind = column.kind === "number" ? "number" : value.length > 36 ? "long" : "short";
    return element("td", { class: kind }, labelOf(column, value));
  }
  const own = scale ?? scaleFor(unitOf(table, column, row), [value]);
  const [low, high] = [column.low, column.high].map((end) => table.columns[end]?.values[row]);
  const { text, interval } = printed({ value, low, high }, own);
  return numeric(scale ? text : `${text} ${own.suffix}`, interval);
}

/** Rows in the order of a column, `NAME` or `NAME:down`; what is missing comes last. */
function sortedBy(table, rows, sort) {
  const [name, order] = (sort ?? "").split(":");
  const column = table.columns[name];
  if (!column) return rows;
  const compare = (one, other) => (typeof one === "number" ? one - other : COLLATOR.compare(one, other));
  const ordered = column.keys?.filter((key) => key !== "").sort(compare);
  const ranks = column.keys?.map((key) => (key === "" ? null : ordered.indexOf(key)));
  const value = (row) => (ranks ? ranks[column.values[row]] : column.values[row]);
  const known = rows.filter((row) => value(row) !== null);
  const sign = order === "down" ? -1 : 1;
  return [...known.sort((a, b) => sign * (value(a) - value(b))), ...rows.filter((row) => value(row) === null)];
}

/** Rows that have all words somewhere in their text. */
function withWords(table, rows, words) {
  const texts = Object.values(table.columns).filter((column) => column.keys);
  table.lines ??= everyRow(table).map((row) => texts.map((each) => valueOf(each, row)).join("\t").toLowerCase());
  const wanted = words.toLowerCase().split(/\s+/);
  return rows.filter((row) => wanted.every((word) => table.lines[row].includes(word)));
}

/** Headings and rows in SI units, as results/tables has it. */
function asCsv(columns, rows) {
  return csvOf([columns.map((column) => column.name), ...rows.map((row) => columns.map((each) => valueOf(each, row)))]);
}

function csvOf(lines) {
  const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  return `${lines.map((line) => line.map((value) => quoted(String(value ?? ""))).join(",")).join("\n")}\n`;
}

function asMarkdown(columns, rows) {
  const heads = columns.map(({ label, unit }) => headed(label, ["1", "of the row"].includes(unit) ? "" : unit));
  return markdownOf([heads, ...rows.map((row) => columns.map((column) => valueOf(column, row)))]);
}

function markdownOf([heads, ...body]) {
  const line = (values) => `| ${values.map((value) => String(value ?? "").replaceAll("|", "\\|")).join(" | ")} |`;
  const rules = heads.map((_, at) => (body.every((row) => typeof row[at] !== "string" || row[at] === "") ? "---:" : ":---"));
  return `${[heads, rules, ...body].map(line).join("\n")}\n`;
}
