"use strict";

// Everything here is an addition: without it the page shows the same content.
const root = document.documentElement;

function stored(key, value) {
  try {
    if (value === undefined) return localStorage.getItem(key);
    localStorage.setItem(key, value);
  } catch { /* a page opened from a file may have no storage */ }
  return null;
}

function addThemeButton() {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "theme";
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const show = () => { button.textContent = dark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Switch to the ${dark() ? "light" : "dark"} theme`); };
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; stored("stepscope-theme", root.dataset.theme); show(); });
  const last = stored("stepscope-theme");
  if (last === "light" || last === "dark") root.dataset.theme = last;
  show();
  document.querySelector("nav.contents").append(button);
}

// A number sorts by its data-sort, text by itself; what has no number comes last in both directions.
function sortTable(table, column, direction) {
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row) => {
    const cell = row.cells[column];
    return { row, number: cell.dataset.sort === undefined ? null : Number(cell.dataset.sort), text: cell.textContent.trim() };
  });
  const numeric = keyed.some((entry) => entry.number !== null);
  keyed.sort((a, b) => {
    if (!numeric) return direction * a.text.localeCompare(b.text, "en", { numeric: true });
    if (a.number === null || b.number === null) return (a.number === null) - (b.number === null);
    return direction * (a.number - b.number);
  });
  for (const entry of keyed) entry.row.classList.remove("begins");
  body.append(...keyed.map((entry) => entry.row));
}

function makeSortable(table) {
  if (!table.tBodies[0] || table.tBodies[0].rows.length < 2) return;
  const headings = new Map();
  for (const heading of table.tHead.querySelectorAll("th[scope=col]")) headings.set(heading, 0);
  // The column of a heading: by its place on the page, since headings with rowspan stand in the first row.
  const last = table.tHead.rows.length - 1;
  let column = 0;
  const below = last ? [...table.tHead.rows[1].cells] : [];
  for (const heading of table.tHead.rows[0].cells) {
    if (heading.scope === "colgroup") for (let i = 0; i < heading.colSpan; i++) headings.set(below.shift(), column++);
    else headings.set(heading, column++);
  }
  for (const [heading, at] of headings) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const ascending = heading.getAttribute("aria-sort") !== "ascending";
      for (const other of headings.keys()) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sortTable(table, at, ascending ? 1 : -1);
    });
  }
}

function addCopyButtons() {
  if (!navigator.clipboard) return;
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
      button.textContent = "Copied";
    } catch { button.textContent = "Select and copy"; }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  for (const code of document.querySelectorAll("td:nth-child(2) > code, code.command")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    if (code.matches(".command")) {
      const holder = document.createElement("span");
      code.replaceWith(holder);
      holder.append(code, button);
    } else code.after(button);
  }
}

function openForPrint() {
  let opened = [];
  addEventListener("beforeprint", () => { opened = [...document.querySelectorAll("details:not([open])")]; for (const one of opened) one.open = true; });
  addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
}

function markPlace() {
  const links = new Map([...document.querySelectorAll("nav.contents a")].map((link) => [link.hash.slice(1), link]));
  const headings = [...document.querySelectorAll("h2[id], h3[id]")];
  const update = () => {
    const current = headings.filter((heading) => heading.getBoundingClientRect().top < 120).pop() ?? headings[0];
    for (const [name, link] of links) {
      if (current && name === current.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  addEventListener("scroll", update, { passive: true });
  update();
}

addThemeButton();
for (const table of document.querySelectorAll("main table")) makeSortable(table);
addCopyButtons();
openForPrint();
markPlace();
