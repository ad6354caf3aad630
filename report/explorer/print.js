// Numbers are printed by the scale of their unit, to the digits that an interval supports, as in the report.
/** {divisor, suffix, digits} that fit values of a unit: by the middle of their logarithms. */
function scaleFor(unit, values) {
  if (unit === "1") return { divisor: 1, suffix: "", digits: values.every((each) => !(each % 1)) ? 0 : 3 };
  const sizes = values.filter((each) => each).map((each) => Math.log(Math.abs(each)));
  const middle = Math.exp(sizes.reduce((sum, each) => sum + each, 0) / (sizes.length || 1));
  const { scales, digits } = about.units[unit] ?? { scales: [[0, 1, unit]], digits: 3 };
  const [, divisor, suffix] = scales.find(([from]) => middle >= from) ?? scales.at(-1);
  return { divisor, suffix, digits };
}

const exponent = (value) => (Math.abs(value) > 1e-300 ? Math.floor(Math.log10(Math.abs(value)) + 1e-9) : 0);

function fixed(value, decimals) {
  if (value && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e9)) return value.toExponential(2);
  return value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

/** The text of a number, and of its interval if both ends are known. */
function printed({ value, low, high }, scale) {
  const isKnown = low != null && high != null;
  const half = (high - low) / 2 / scale.divisor;
  let decimals = scale.digits && scale.digits - 1 - exponent(value / scale.divisor);
  if (isKnown && half > 0) decimals = Math.min(decimals, /^[1-3]/.test(half.toExponential()) - exponent(half));
  decimals = Math.min(9, Math.max(0, decimals));
  const [text, ...ends] = [value, low ?? 0, high ?? 0].map((each) => fixed(each / scale.divisor, decimals));
  return { text, interval: isKnown ? `[${ends.join(", ")}]` : "" };
}

const grouped = (count) => count.toLocaleString("en");
const headed = (label, suffix) => (suffix ? `${label} (${suffix})` : label);

/** An element: functions are listeners, the rest attributes; null and "" make none, neither of children. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value != null && value !== "") made.setAttribute(key, value);
  }
  made.append(...children.filter((each) => each != null && each !== ""));
  return made;
}

/** A field of numbers, with what stands small below it. */
function numeric(shown, below = "", more = {}) {
  return element("td", { class: "number", ...more }, shown, below && element("small", {}, below));
}

const button = (text, click, more = {}) => element("button", { type: "button", click, ...more }, text);

/** A button that copies what a function makes, and says so. */
function copyButton(label, text) {
  return button(label, async ({ currentTarget }) => {
    await navigator.clipboard.writeText(text());
    currentTarget.textContent = "Copied";
  });
}

/** A table within a part that scrolls, and that the keyboard can scroll. */
function scrolled(label, caption, heads, body) {
  return element("div", { class: "table", tabindex: 0, role: "region", "aria-label": label },
    element("table", {}, element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...body)));
}

const setView = (...made) => document.getElementById("view").replaceChildren(...made);
const say = (...parts) => document.getElementById("said").replaceChildren(...parts);
