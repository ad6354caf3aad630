// The state of the page is its address behind #. What is not there has its default.
const OWN = ["show", "of", "rows", "columns", "facet", "stat", "heat", "log", "table", "sort", "search", "card", "than"];
const ALL = "*";

const readState = () => ({ show: "pivot", ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) });

/** The part of a state that chooses rows. */
const filtersOf = (state) =>
  Object.fromEntries(Object.entries(state).filter(([key, value]) => !OWN.includes(key) && value !== ALL));

/** The address of a state with changes; null takes a key away. */
function addressOf(state, changes = {}) {
  const kept = Object.entries({ ...state, ...changes }).filter(([, value]) => value != null && value !== "");
  return `#${kept.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&")}`;
}

function change(changes) {
  location.hash = addressOf(readState(), changes);
}

/** A link to a cell's card, over what is shown. */
const cardLink = (state, cell, text) => element("a", { href: addressOf(state, { card: cell }) }, text);

/** A menu. groups: [label, [[value, text] …]] …; choose: what a choice does, else it is the state's `name`. */
function menu(label, name, value, groups, title = "", choose = (chosen) => change({ [name]: chosen })) {
  const made = element("select", { id: `control-${name}`, title, change: () => choose(made.value) });
  for (const [group, members] of groups) {
    const options = members.map(([key, text]) => new Option(text, key));
    made.append(...(group ? [element("optgroup", { label: group }, ...options)] : options));
  }
  made.value = value;
  return element("label", {}, label, made);
}

/** Groups of a menu: one without a heading. */
const choicesOf = (texts) => [["", Object.entries(texts)]];

/** A choice of one of a column's values; several from an address are one more option. kept: changes that go with it. */
function filterMenu(column, found, value = ALL, kept = {}) {
  const several = (text) => text.split("|").map((each) => labelOf(column, each)).join(", ");
  const options = found.map(({ text, count }) => [text, `${labelOf(column, text)} · ${count}`]);
  if (value !== ALL && !found.some(({ text }) => text === value)) options.push([value, several(value)]);
  const choose = (chosen) => change({ ...kept, [column.name]: chosen });
  return menu(column.label, column.name, value, [["", [[ALL, "all"], ...options]]], column.meaning, choose);
}

const PHONE = matchMedia("(max-width: 30rem)");
let areFiltersOpen = !PHONE.matches;

/** Put the controls in place; the one that had the focus has it again. Filters fold away: on a phone they start so. */
function setControls(made, filters = []) {
  const focused = document.activeElement?.id;
  const chosen = filters.filter((each) => each.querySelector("select")?.value !== ALL).length;
  const summary = element("summary", {}, `Only these rows: ${chosen} of ${filters.length} menus choose`);
  const folded = element("details", { id: "filters", open: areFiltersOpen ? "open" : "" }, summary,
    element("fieldset", {}, element("legend", { class: "unseen" }, "Only these rows"), ...filters));
  folded.addEventListener("toggle", () => { areFiltersOpen = folded.open; });
  document.getElementById("controls").replaceChildren(...made, ...(filters.length ? [folded] : []));
  if (focused?.startsWith("control-")) document.getElementById(focused)?.focus();
}

/** Where no row is left: what was chosen, and the way back. */
function sayNothing(state, filters) {
  const chosen = Object.entries(filters).map(([name, value]) => `${name} ${value}`).join(", ");
  const none = Object.fromEntries(Object.keys(filters).map((name) => [name, null]));
  say(`No row has ${chosen || "such a number"} all at once. `,
    element("a", { href: addressOf(state, { ...none, rows: null, columns: null, facet: null, than: null }) }, "Choose anew"));
  setView();
}
