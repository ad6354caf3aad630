"use strict";

// Tables that sort, filter and can be copied. A long one has its rows as JSON and is drawn when it comes into view.
// A row is an array of cells; a cell is a text, or [text, sort, below, badges, link, code, title] as far as it goes.

const MOST_DRAWN = 200; // rows, until the reader asks for all
const facts = JSON.parse(document.getElementById("page-facts").textContent);
const filter = new Map(); // axis, or "text" → what is wanted of it

const BREAKS = /(?<=[_/:=])(?=\w)|(?<=\.)(?=[A-Za-z_])/; // as BREAKS in stepscope/report/kit/web_table.py

const part = (cell, at) => typeof cell === "string" ? (at ? undefined : cell) : cell[at];
const textOf = (cell) => part(cell, 0) ?? "";
const remarkOf = (cell) => [part(cell, 2), ...(part(cell, 3) ?? []).map((key) => facts.badges[key]?.[0] ?? key)].filter(Boolean).join("; ");

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// In columns that wrap a word of several parts stands in one line where it fits into one, else it breaks between these.
function wordOf(word) {
  const parts = word.split(BREAKS);
  const broken = () => parts.flatMap((own, at) => at ? [element("wbr"), own] : [own]);
  return parts.length > 1 ? element("span", { className: "word" }, ...broken()) : word;
}
const wordsOf = (text, kind) => kind === "w" ? text.split(/( )/).map(wordOf) : [text];

// What a row of the page's HTML says, in the same form as the JSON.
function readCell(cell) {
  const badges = [...cell.querySelectorAll(".badge")].map((one) => one.textContent);
  const below = cell.querySelector("small")?.textContent ?? "";
  const own = [...cell.childNodes].filter((node) => !(node.matches?.(".badge, small, button")));
  const text = own.map((node) => node.textContent).join("");
  return [text, cell.dataset.sort === undefined ? null : Number(cell.dataset.sort), below, badges];
}

function drawBadge(key) {
  const [word, meaning] = facts.badges[key] ?? [key, key];
  return element("span", { className: `badge ${facts.badges[key] ? key : "other"}`, title: meaning }, word);
}

function drawCell(cell, kind, isFirst) {
  const drawn = element(isFirst ? "th" : "td", { className: kind });
  if (isFirst) drawn.scope = "row";
  const [text, sort, below, badges = [], link, isCode, title] = typeof cell === "string" ? [cell] : cell;
  let words = wordsOf(text, kind);
  if (isCode) words = [element("code", {}, ...words)];
  if (link) words = [element("a", { href: link }, ...words)];
  if (sort !== null && sort !== undefined) drawn.dataset.sort = sort;
  if (title) drawn.title = title;
  const marks = badges.map(drawBadge);
  drawn.append(...(kind === "n" ? [...marks, ...words] : [...words, ...marks]));
  if (below) drawn.append(element("small", {}, ...wordsOf(below, kind)));
  if (isCode && text.includes(" ") && navigator.clipboard) drawn.append(copyButton());
  return drawn;
}

class Row {
  constructor(cells, drawn) {
    this.cells = cells;
    this.drawn = drawn;
  }

  get searched() {
    return this.words ??= this.cells.map((cell) => `${textOf(cell)} ${remarkOf(cell)}`).join(" ").toLowerCase();
  }

  draw(kinds) {
    return this.drawn ??= element("tr", {}, ...this.cells.map((cell, at) => drawCell(cell, kinds[at], at === 0)));
  }
}

class DataTable {
  constructor(block) {
    this.block = block;
    this.table = block.querySelector("table");
    this.body = this.table.tBodies[0];
    this.names = JSON.parse(this.table.dataset.names);
    this.axes = JSON.parse(this.table.dataset.axes);
    this.about = JSON.parse(block.dataset.about ?? "{}");
    this.packed = block.querySelector("script.rows");
    this.most = MOST_DRAWN;
    this.isStale = Boolean(this.packed);
    this.addSorting();
    this.addTools();
  }

  get rows() {
    return this.all ??= this.packed
      ? JSON.parse(this.packed.textContent).map((cells) => new Row(cells))
      : [...this.body.rows].map((row) => new Row([...row.cells].map(readCell), row));
  }

  get kept() {
    return filter.size ? this.rows.filter((row) => this.matches(row)) : this.rows;
  }

  matches(row) {
    for (const [axis, wanted] of filter) {
      if (axis === "text") {
        if (!row.searched.includes(wanted)) return false;
      } else if (axis in this.axes && textOf(row.cells[this.axes[axis]]) !== wanted) return false;
    }
    return true;
  }

  draw() {
    const kept = this.kept;
    this.body.replaceChildren(...kept.slice(0, this.most).map((row) => row.draw(this.table.dataset.kinds)));
    this.count.textContent = kept.length === this.rows.length ? "" : `${kept.length.toLocaleString("en")} of ${this.rows.length.toLocaleString("en")} rows`;
    this.more.hidden = kept.length <= this.most;
    this.more.textContent = `Show all ${kept.length.toLocaleString("en")} rows`;
    this.isStale = false;
  }

  // A number sorts by its value, text by itself; what has no number comes last in both directions.
  sort(column, direction) {
    const keyed = this.rows.map((row) => [row, part(row.cells[column], 1), textOf(row.cells[column])]);
    const isNumber = (value) => value !== null && value !== undefined;
    if (keyed.some(([, number]) => isNumber(number))) {
      keyed.sort(([, a], [, b]) => isNumber(a) && isNumber(b) ? direction * (a - b) : isNumber(b) - isNumber(a));
    } else {
      const order = new Intl.Collator("en", { numeric: true });
      keyed.sort((a, b) => direction * order.compare(a[2], b[2]));
    }
    this.all = keyed.map(([row]) => row);
    for (const row of this.body.rows) row.classList.remove("begins");
    this.draw();
  }

  // The headings in the order of their columns: those with rowspan stand in the first of two rows.
  get headings() {
    const below = [...(this.table.tHead.rows[1]?.cells ?? [])];
    return [...this.table.tHead.rows[0].cells].flatMap((one) => one.scope === "colgroup" ? below.splice(0, one.colSpan) : [one]);
  }

  addSorting() {
    if (!this.packed && this.body.rows.length < 2) return;
    const headings = this.headings;
    headings.forEach((heading, column) => {
      if (!heading.textContent.trim()) return;
      const button = element("button", { type: "button" }, ...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const isAscending = heading.getAttribute("aria-sort") !== "ascending";
        for (const other of headings) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
        this.sort(column, isAscending ? 1 : -1);
      });
    });
  }

  addTools() {
    this.count = element("span", { className: "count" });
    this.more = element("button", { type: "button", hidden: true });
    this.more.addEventListener("click", () => {
      this.most = Infinity;
      this.draw();
    });
    const line = this.block.querySelector("p.files");
    if (!line) return;
    line.prepend(this.count, this.more);
    if (!navigator.clipboard) return;
    for (const [words, write] of [["Copy as CSV", () => this.csv()], ["Copy as Markdown", () => this.markdown()]]) {
      const button = element("button", { type: "button" }, words);
      button.addEventListener("click", () => copied(button, write()));
      line.append(" ", button);
    }
  }

  csv() {
    const kept = this.kept;
    const hasRemark = this.names.map((_, at) => this.rows.some((row) => remarkOf(row.cells[at])));
    const quoted = (text) => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    const lines = [this.names.flatMap((name, at) => hasRemark[at] ? [name, `${name}, remark`] : [name])];
    for (const { cells } of kept) {
      lines.push(cells.flatMap((cell, at) => {
        const number = textOf(cell).replaceAll(",", "").replace("\u2212", "-");
        const value = /^-?\d+(\.\d+)?$/.test(number) ? number : part(cell, 6) || textOf(cell);
        return hasRemark[at] ? [value, remarkOf(cell)] : [value];
      }));
    }
    return lines.map((line) => `${line.map(quoted).join(",")}\n`).join("");
  }

  markdown() {
    const escaped = (text) => text.replace(/[\\`*_[\]|~$<>&]/g, "\\$&");
    const shown = (cell) => escaped([textOf(cell), remarkOf(cell)].filter(Boolean).join(" "));
    const rule = [...this.table.dataset.kinds].map((kind) => kind === "n" ? "---:" : ":---");
    const lines = [this.names.map(escaped), rule, ...this.kept.map((row) => row.cells.map(shown))];
    return lines.map((line) => `| ${line.join(" | ")} |\n`).join("");
  }
}

async function copied(button, text) {
  const words = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch { button.textContent = "The browser forbids it"; }
  setTimeout(() => { button.textContent = words; }, 1500);
}

// A table or part that says what all of it is about is hidden as a whole.
const isWanted = (about) => [...filter].every(([axis, wanted]) => !(axis in about) || about[axis] === wanted);

function addFilter(tables, visible) {
  const refresh = () => {
    for (const table of tables) {
      table.isStale = true;
      table.block.hidden = !isWanted(table.about);
      if (visible.has(table)) table.draw();
    }
    for (const fold of document.querySelectorAll("details[data-about]")) fold.hidden = !isWanted(JSON.parse(fold.dataset.about));
  };
  const set = (name, value) => {
    if (value) filter.set(name, value); else filter.delete(name);
    refresh();
  };
  const form = element("form", { className: "filter", role: "search" });
  form.setAttribute("aria-label", "Filter all tables");
  for (const [axis, values] of Object.entries(facts.axes)) {
    const select = element("select", { name: axis }, element("option", { value: "" }, "all"), ...values.map((value) => element("option", { value }, value)));
    select.addEventListener("change", () => set(axis, select.value));
    form.append(element("label", {}, `${axis} `, select));
  }
  const text = element("input", { type: "search", name: "text", placeholder: "in any column" });
  text.addEventListener("input", () => set("text", text.value.trim().toLowerCase()));
  form.append(element("label", {}, "text ", text));
  form.addEventListener("submit", (event) => event.preventDefault());
  document.querySelector("main h1").after(form);
}

// Marks in the page's HTML carry no explanation of their own; those of JSON tables are drawn with it.
function explainMarks() {
  for (const mark of document.querySelectorAll(".badge:not([title])")) {
    const key = [...mark.classList].find((name) => name in facts.badges);
    if (key) mark.title = facts.badges[key][1];
  }
}

function watchTables() {
  const tables = [...document.querySelectorAll("main .table-block")].map((block) => new DataTable(block));
  const byBlock = new Map(tables.map((table) => [table.block, table]));
  const visible = new Set();
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const table = byBlock.get(target);
      if (!isIntersecting) visible.delete(table);
      else {
        visible.add(table);
        if (table.isStale) table.draw();
      }
    }
  }, { rootMargin: "50% 0px" });
  for (const { block } of tables) observer.observe(block);
  addEventListener("beforeprint", () => {
    for (const table of tables.filter((one) => one.packed)) {
      table.most = Infinity;
      table.draw();
    }
  });
  if (Object.keys(facts.axes).length) addFilter(tables, visible);
}

explainMarks();
watchTables();
