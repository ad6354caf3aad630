// The state of the page is its address behind #. What is not there has its default.
const OWN = ["show", "of", "rows", "columns", "facet", "stat", "heat", "log", "table", "sort", "search", "card"];
const ALL = "*";

function readState() {
  return { show: "pivot", ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) };
}

function filtersOf(state) {
  return Object.fromEntries(Object.entries(state).filter(([key, value]) => !OWN.includes(key) && value !== ALL));
}

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

function select(label, name, value, options, hint = "") {
  const made = element("select", { id: `control-${name}`, name, title: hint,
    change: (event) => change({ [name]: event.target.value }) });
  for (const [group, members] of options) {
    const items = members.map(([key, text]) => new Option(text, key));
    made.append(...(group ? [element("optgroup", { label: group }, ...items)] : items));
  }
  made.value = value;
  return element("label", {}, label, made);
}

/** A choice of a column's values; several from an address are one more option. `found`: {key, count} of what is there. */
function filterControl(column, found, value, automatic) {
  const options = [[ALL, "all"], ...found.map(({ key, count }) => [named(column.keys[key]), `${named(column.keys[key])} · ${count}`])];
  if (value !== ALL && !options.some(([key]) => key === value)) options.push([value, value.split("|").join(", ")]);
  const made = select(column.label, column.name, value, [["", options]], column.meaning);
  if (value !== ALL && !automatic) made.querySelector("select").className = "narrowed";
  return made;
}

function flagControl(label, name, isOn, changes) {
  const box = element("input", { type: "checkbox", id: `control-${name}`, change: (event) => change(changes(event.target.checked)) });
  box.checked = isOn;
  return element("label", { class: "flag" }, box, label);
}

/** Put the controls in place; the one that had the focus has it again. */
function setControls(...made) {
  const focused = document.activeElement?.id;
  document.getElementById("controls").replaceChildren(...made);
  if (focused?.startsWith("control-")) document.getElementById(focused)?.focus();
}
