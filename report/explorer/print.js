// Numbers as the report prints them: by the scale of their unit, to the digits that an interval supports.
/** {divisor, suffix, digits} that fit values of a unit: by the middle of their logarithms. */
function scaleFor(unit, values) {
  const sizes = values.filter((each) => each).map((each) => Math.log(Math.abs(each)));
  const middle = Math.exp(sizes.reduce((sum, each) => sum + each, 0) / (sizes.length || 1));
  if (unit === "1" || unit === "") {
    return { divisor: 1, suffix: "", digits: values.every((each) => each == null || Number.isInteger(each)) ? 0 : 3 };
  }
  const { scales, digits } = about.units[unit] ?? { scales: [[0, 1, unit]], digits: 3 };
  const [, divisor, suffix] = scales.find(([from]) => middle >= from) ?? scales.at(-1);
  return { divisor, suffix, digits };
}

const exponent = (value) => (Math.abs(value) > 1e-300 ? Math.floor(Math.log10(Math.abs(value)) + 1e-9) : 0);

function fixed(value, decimals) {
  if (value && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e9)) return value.toExponential(2);
  return value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

/** A number's text, and that of its interval if both ends are known. */
function printed(value, scale, low = null, high = null) {
  if (value == null) return { text: "–", interval: "" };
  const scaled = value / scale.divisor;
  let decimals = scale.digits ? Math.max(0, scale.digits - 1 - exponent(scaled)) : 0;
  const isKnown = low != null && high != null;
  const half = (high - low) / 2 / scale.divisor;
  if (isKnown && half > 0) decimals = Math.max(0, Math.min(decimals, 1 - exponent(half)));
  const [text, ...ends] = [value, low ?? 0, high ?? 0].map((each) => fixed(each / scale.divisor, Math.min(9, decimals)));
  return { text, interval: isKnown ? `[${ends.join(", ")}]` : "" };
}

const headed = (label, suffix) => (suffix ? `${label} (${suffix})` : label);

/** An element: attributes with a function are listeners, the rest are attributes; null and "" make none. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value === true) made.setAttribute(key, "");
    else if (value != null && value !== false && value !== "") made.setAttribute(key, value);
  }
  made.append(...children.filter((each) => each != null && each !== ""));
  return made;
}

function scrolled(label, table) {
  return element("div", { class: "table", tabindex: 0, role: "region", "aria-label": label }, table);
}

function say(text, ...buttons) {
  document.getElementById("said").replaceChildren(text, ...buttons);
}

async function copy(text, what) {
  const button = document.activeElement;
  await navigator.clipboard.writeText(text);
  button.textContent = `${what} copied`;
}
