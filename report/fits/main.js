// The form, the address that holds its state, and what is shown.
const GIB = 2 ** 30;
const COLOURS = {
  parameters: "blue", gradients: "orange", "optimizer state": "green", activations: "sky", "cast weights": "purple",
  "gathered weights": "vermillion", workspace: "yellow", buffers: "black",
};
// What people train with, where the address says nothing else.
const { size: model, ...asked } = Object.fromEntries(Object.entries(data.known.asked).map(([name, [usual]]) => [name, String(usual)]));
const USUAL = { model, card: "RTX 4090", reserve: "0", ...asked };
const OWN_SHAPE = { d_model: "d_model", d_ff: "d_ff", num_layers: "layers", num_heads: "heads", key_value_heads: "heads of K, V (0: as many)", vocab_size: "vocabulary", head_width: "d_head (0: d_model / heads)", window: "window (0: none)" };
const OWN = "own numbers";
const MODELS = data.models;
const OWN_USUAL = { ...MODELS[model], key_value_heads: 0 };
// What an address can choose from; of all else numbers are asked.
const CHOICES = {
  model: [...Object.keys(MODELS), OWN], card: Object.keys(data.known.cards), machine: Object.keys(data.known.machines),
  ...Object.fromEntries(data.options_in_order.map((option) => [option, Object.keys(options[option])])),
};
const AMOUNTS = { card: 0.001, reserve: 0 }; // GiB, from the least on

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value != null && value !== "") made.setAttribute(key, value);
  }
  made.append(...children.filter((each) => each != null && each !== ""));
  return made;
};

/** Whether that can be chosen, or is a number within its bounds. */
function isKnown(name, value) {
  if (CHOICES[name]?.includes(value)) return true;
  if (name in AMOUNTS) return /^\d{1,6}(\.\d*)?$/.test(value) && Number(value) >= AMOUNTS[name];
  const [least, most] = (name in USUAL || name in OWN_SHAPE) && terms.bounds[name] || [];
  return !(name in CHOICES) && /^\d{1,9}$/.test(value) && least <= Number(value) && Number(value) <= most;
}

/** What the address says, and what in it is not understood. */
function readState() {
  const given = [...new URLSearchParams(location.hash.slice(1))];
  const [known, others] = [true, false].map((wanted) => given.filter(([name, value]) => isKnown(name, value) === wanted));
  return { state: { ...USUAL, ...Object.fromEntries(known) }, ignored: others.map((pair) => pair.join("=")) };
}

/** The address of a state: what is usual is not in it. */
function addressOf(state) {
  const kept = Object.entries(state).filter(([key, value]) => String(value) !== USUAL[key] && value !== "");
  return `#${new URLSearchParams(kept)}`;
}
const change = (changes) => { location.hash = addressOf({ ...readState().state, ...changes }); };

const gib = (bytes) => {
  const size = bytes / GIB;
  return size.toLocaleString("en", size >= 100 ? { maximumFractionDigits: 0 } : size >= 0.095 ? { minimumFractionDigits: 1, maximumFractionDigits: 1 } : { maximumSignificantDigits: 1 });
};
const whole = (number) => number.toLocaleString("en");
const percent = (share) => `${Math.abs(100 * share).toFixed(1)} %`;
const both = ([sure, doubtful], word = "") => `${whole(sure)} (${whole(doubtful)}${word})`;

/** The shape that a state names: a well-known model, or its own numbers, beside what this project's models have. */
function shapeOf(state) {
  const own = () => Object.fromEntries(Object.keys(OWN_SHAPE).map((name) => [name, Number(state[name] ?? OWN_USUAL[name])]));
  const shape = state.model === OWN ? { ...data.usual_shape, ...own() } : MODELS[state.model];
  const d_head = shape.head_width || Math.floor(shape.d_model / shape.num_heads);
  return { ...shape, d_head, kv_heads: shape.key_value_heads || shape.num_heads };
}

/** The setup that a state describes. */
function setupOf(state) {
  const shape = shapeOf(state);
  const [batch, context, devices, checkpoint] = [state.batch, state.context, state.devices, state.checkpoint].map(Number);
  const own = Object.fromEntries(Object.entries(terms.sizes).map(([name, field]) => [name, shape[field]]));
  const sizes = { ...own, batch, context, devices, checkpoint, window: Math.min(shape.window || context, context), "tokens of a chunk": data.chunk };
  const chosen = Object.fromEntries(data.options_in_order.map((option) => [option, state[option]]));
  return { ...chosen, sizes, window: shape.window };
}

/** Bytes of the card that a state names, or of its number of GiB, without what others hold of it. */
const capacityOf = (state) => Math.floor((data.known.cards[state.card] ?? Number(state.card)) * GIB) - Math.floor(Number(state.reserve) * GIB);

// ---- The form.

function menu(state, name, label, choices, more = {}) {
  const made = element("select", { id: `control-${name}`, change: () => change({ [name]: made.value }) });
  for (const [value, text] of choices) made.append(new Option(text, value));
  made.value = state[name];
  return element("label", more, label, made);
}

function number(state, name, label, smallest, more = {}) {
  const made = element("input", { id: `control-${name}`, type: "number", min: smallest, step: 1, inputmode: "numeric", value: state[name] ?? OWN_USUAL[name],
    change: () => change({ [name]: String(Math.max(smallest, Math.floor(made.value) || smallest)) }) });
  return element("label", more, label, made);
}

/** A number of GiB. */
function amount(name, label, value, more = {}) {
  const made = element("input", { id: `control-${name}-gib`, type: "number", min: 0, step: "any", inputmode: "decimal", value: Number(value) || 0,
    change: () => change({ [name]: String(Math.max(0, Number(made.value)) || Number(USUAL[name]) || 24) }) });
  return element("label", more, label, made);
}

const choicesOf = (option) => Object.entries(options[option]).map(([value, { label }]) => [value, label]);
const part = (name, ...fields) => element("fieldset", {}, element("legend", {}, name), ...fields.flat());

function showForm(state) {
  const focused = document.activeElement?.id;
  const isOwn = state.model === OWN;
  const models = CHOICES.model.map((name) => [name, name]);
  const cards = Object.entries(data.known.cards).map(([name, size]) => [name, `${name} · ${size} GiB`]);
  const own = isOwn ? Object.entries(OWN_SHAPE).map(([name, label]) => number(state, name, label, ["key_value_heads", "head_width", "window"].includes(name) ? 0 : 1)) : [];
  const other = !(state.card in data.known.cards);
  document.getElementById("controls").replaceChildren(
    part("Model", menu(state, "model", "shape", models, { class: "wide" }), own,
      number(state, "context", "context, tokens", 1), number(state, "batch", "batch, sequences", 1)),
    part("Card", menu(state, "card", "memory", [...cards, [other ? state.card : "32.5", "another number of GiB …"]], { class: other ? "" : "wide" }),
      other ? amount("card", "GiB", state.card) : [],
      amount("reserve", "of it others hold, GiB", state.reserve, { class: "wide" }),
      menu(state, "strategy", "devices share", choicesOf("strategy")), number(state, "devices", "devices", 1)),
    part("How it runs", menu(state, "precision", "precision", choicesOf("precision"), { class: "wide" }),
      menu(state, "attention", "attention", choicesOf("attention"), { class: "wide" }), menu(state, "loss", "loss", choicesOf("loss"), { class: "wide" }),
      menu(state, "optimizer", "optimizer", choicesOf("optimizer"), { class: "wide" }), menu(state, "compile", "compiled", choicesOf("compile"), { class: "wide" }),
      menu(state, "recompute", "recomputed", choicesOf("recompute"), { class: "wide" }), menu(state, "gradients", "gradients", choicesOf("gradients"), { class: "wide" }),
      number(state, "checkpoint", "recompute all but the input of every so many blocks (0: none)", 0, { class: "wide" })),
    part("Time", menu(state, "machine", "by the measured rates of", Object.keys(data.known.machines).map((name) => [name, name]), { class: "wide" })));
  if (focused?.startsWith("control-")) document.getElementById(focused)?.focus();
}

// ---- The answer.

function table(label, heads, rows) {
  return element("div", { class: "table", tabindex: 0, role: "region", "aria-label": label },
    element("table", {},
      element("thead", {}, element("tr", {}, ...heads.map(([text, kind]) => element("th", { class: kind, scope: "col" }, text)))),
      element("tbody", {}, ...rows)));
}
const row = (...fields) => element("tr", {}, ...fields.map(([content, kind]) => element("td", { class: kind }, ...[content].flat())));
const swatch = (category, name = "colour") => element("i", { class: name, style: `background: var(--figure-${COLOURS[category] ?? "grey"})` });

function categoriesOf(tensors) {
  const found = new Map();
  for (const { category, bytes } of tensors) found.set(category, (found.get(category) ?? 0) + bytes);
  return [...found].sort((a, b) => b[1] - a[1]);
}

/** Categories beside the card's memory; hatched: what allocator and CUDA take besides, at most. */
function showBar(peak, capacity) {
  const [, most] = takenOf(peak);
  const scale = 100 / Math.max(most, capacity) / 1.02;
  let left = 0;
  const parts = categoriesOf(peak.tensors).map(([category, bytes]) => {
    const made = element("i", { title: `${category}: ${gib(bytes)} GiB`, style: `left: ${left * scale}%; width: ${bytes * scale}%; background: var(--figure-${COLOURS[category] ?? "grey"})` });
    left += bytes;
    return made;
  });
  const rest = element("i", { class: "range", title: "allocator and CUDA, at most", style: `left: ${left * scale}%; width: ${(most - left) * scale}%` });
  const edge = element("b", { class: capacity * scale > 60 ? "late" : "", style: `left: ${capacity * scale}%` }, element("span", {}, `${gib(capacity)} GiB`));
  const label = `Peak of ${gib(peak.bytes)} GiB by category, beside ${gib(capacity)} GiB of the card`;
  const legend = categoriesOf(peak.tensors).filter(([, bytes]) => bytes > 0.004 * peak.bytes).map(([category, bytes]) =>
    element("li", {}, swatch(category, ""), `${category} ${gib(bytes)}`));
  document.getElementById("bar").replaceChildren(element("div", { class: "bar", role: "img", "aria-label": label }, ...parts, rest, edge),
    element("ul", { class: "legend" }, ...legend, element("li", {}, element("i", { style: "background: repeating-linear-gradient(45deg, var(--figure-grey) 0 2px, transparent 2px 4px)" }), `allocator and CUDA, up to ${gib(most - left)}`)));
}

function showFacts(state, setup, capacity) {
  const machine = data.known.machines[state.machine];
  const [slow, fast] = tokensASecond(setup, machine);
  const digits = (value) => whole(Number(value.toPrecision(2)));
  const one = (name, value) => element("div", {}, element("strong", {}, value), name);
  document.getElementById("facts").replaceChildren(
    one("largest batch at this context", both(largest(setup, "batch", capacity), " with doubt")),
    one("longest context at this batch", both(largest(setup, "context", capacity), " with doubt")),
    one("parameters", withDerived(setup.sizes).parameters.toLocaleString("en", { notation: "compact", compactDisplay: "long", maximumSignificantDigits: 3 })),
    one(`tokens/s on one ${state.machine}, sending aside, at ${machine.shares.map((share) => `${Math.round(100 * share)}`).join(" to ")} % of its rate`,
      slow ? `${digits(slow)} to ${digits(fast)}` : "not measured in this precision"));
}

function showFound(state, setup, peak, capacity) {
  const changesOf = ({ change }) => Object.fromEntries(Object.entries(change).map(([key, value]) => [key, String(value)]));
  const told = (each, href) => row([element("a", { href }, each.label)],
    [`−${gib(each.saved)}`, "number"], [gib(each.peak.bytes), "number"], [verdictOf(each.peak, capacity)],
    [both(largest(each.setup, "batch", capacity)), "number"]);
  const room = roomOf(setup).map((each) => told(each, addressOf({ ...state, ...changesOf(each) })));
  const together = togetherOf(setup, capacity).reduce(({ rows, reached }, each) => {
    const next = { ...reached, ...changesOf(each) };
    return { rows: [...rows, told(each, addressOf(next))], reached: next };
  }, { rows: [], reached: state }).rows;
  const ofChanges = [["Change"], ["GiB", "number"], ["peak", "number"], ["then it"], ["largest batch (with doubt)", "number"]];
  const tensors = peak.tensors.filter(({ bytes }) => bytes > 0);
  const line = (each) => row([[swatch(each.category), each.name, element("small", {}, each.category)]], [`${each.count === 1 ? "" : `${each.count} × `}${each.dims} × ${each.each} B`, "formula"], [gib(each.bytes), "number"]);
  const heads = [["Tensor"], ["Formula"], ["GiB", "number"]];
  const shown = tensors.filter(({ bytes }, at) => at < 14 && bytes > 0.003 * peak.bytes);
  const rest = tensors.slice(shown.length);
  document.getElementById("found").replaceChildren(
    element("h2", {}, "What makes room"),
    room.length ? table("What makes room", ofChanges, room)
      : element("p", { class: "note" }, "None of the known changes lowers this peak."),
    ...(together.length ? [element("h2", {}, "One change on top of the other, on as many devices"), table("One on top of the other", ofChanges, together)] : []),
    element("h2", {}, "What is alive at the peak"),
    table("Tensors at the peak", heads, shown.map(line)),
    rest.length ? element("details", {}, element("summary", {}, `${rest.length} smaller ones, ${gib(rest.reduce((sum, { bytes }) => sum + bytes, 0))} GiB together`), table("Smaller tensors", heads, rest.map(line))) : "",
    element("h2", {}, "The same on the command line"),
    element("pre", {}, element("code", {}, commandOf(state, setup))),
    state.model === OWN ? "" : element("p", { class: "note" }, `Shape of ${state.model}: ${MODELS[state.model].source}.`));
}

function commandOf(state, setup) {
  const flags = ["batch", "context", "checkpoint", "devices", ...data.options_in_order].map((name) => [name, setup.sizes[name] ?? setup[name]]);
  const kept = flags.filter(([name, value]) => String(value) !== USUAL[name]).map(([name, value]) => `--${name} ${value}`);
  const own = Object.keys(OWN_SHAPE).map((name) => `${name}=${shapeOf(state)[name]}`).join(",");
  const size = state.model === OWN ? own : `"${state.model}"`;
  const card = state.card in data.known.cards ? state.card : `${state.card}GiB`;
  const more = [["reserve", Number(state.reserve) && `${state.reserve}GiB`], ["machine", state.machine !== USUAL.machine && `"${state.machine}"`]]
    .filter(([, value]) => value).map(([name, value]) => `--${name} ${value}`);
  return ["python scripts/fits.py", `--size ${size}`, `--memory "${card}"`, ...more, ...kept].join(" ");
}

function showTrust() {
  const { published, own } = data;
  const setupOf = ({ setup }) => Object.entries(setup).map((pair) => pair.join(" ")).join(", ");
  const rows = published.map((each) => row([each.name], [setupOf(each), "formula"], [gib(each.published), "number"], [gib(each.predicted), "number"],
    [`${each.error > 0 ? "+" : "−"}${percent(each.error)}`, "number"], [[element("span", { title: each.quote }, each.source)], "formula"]));
  const [worst, ...better] = [...published].sort((a, b) => Math.abs(b.error) - Math.abs(a.error));
  document.getElementById("trust").replaceChildren(
    element("h2", {}, "How far to trust it"),
    ...own.map((text) => element("p", { class: "note" }, text)),
    element("p", { class: "note" }, `Against ${rows.length} peaks that others published, of their own code: median error ${percent(better[(rows.length >> 1) - 1].error)}, at most ${percent(worst.error)} (${worst.name}: ${worst.why}). What was published as reserved is held against the middle of what the allocator reserves here.`),
    element("details", {}, element("summary", {}, "Each of them"), table("Published peaks",
      [["Step"], ["Setup"], ["published", "number"], ["predicted", "number"], ["error", "number"], ["Source"]], rows)));
}

/** What is asked for is no step, or leaves no memory: said instead of an answer. */
function showWrong(told) {
  const said = document.getElementById("verdict");
  said.dataset.is = "impossible";
  said.replaceChildren(told);
  for (const id of ["bar", "facts", "found"]) document.getElementById(id).replaceChildren();
}

function showAnswer(state, setup, capacity) {
  const peak = peakOf(setup);
  const verdict = verdictOf(peak, capacity);
  const [low, high] = takenOf(peak);
  const said = document.getElementById("verdict");
  said.dataset.is = verdict;
  const where = [peak.phase, peak.part].filter((each) => each).join(", ");
  const { least, most } = reservedOf(peak.flags);
  const more = [least, most].map((each) => Math.round(100 * each - 100)).join(" to ");
  said.replaceChildren(element("strong", {}, verdict[0].toUpperCase() + verdict.slice(1)), `: ${gib(low)} to ${gib(high)} GiB of ${gib(capacity)}`,
    element("small", {}, `Tensors ask for ${gib(peak.bytes)} GiB at the peak (${where}); PyTorch's allocator reserves ${more} % more, CUDA takes ${gib(terms.card.context)} GiB.`));
  showBar(peak, capacity);
  showFacts(state, setup, capacity);
  showFound(state, setup, peak, capacity);
  document.title = `Will it fit? ${state.model}: ${verdict}`;
}

function show() {
  const { state, ignored } = readState();
  const [setup, capacity] = [setupOf(state), capacityOf(state)];
  showForm(state);
  document.getElementById("ignored").textContent = ignored.length ? `Not understood, and left out: ${ignored.join(", ")}.` : "";
  const told = wrongOf(setup) ?? (capacity > 0 ? null : "Others hold all of the card's memory.");
  if (told) showWrong(told);
  else showAnswer(state, setup, capacity);
  document.documentElement.dataset.drawn = location.hash || "#"; // for who waits for it
}

showTrust();
show();
addEventListener("hashchange", show);
