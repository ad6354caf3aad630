// The form, the address that holds its state, and what is shown.
const GIB = 2 ** 30;
const COLOURS = {
  parameters: "blue", gradients: "orange", "optimizer state": "green", activations: "sky", "cast weights": "purple",
  "gathered weights": "vermillion", workspace: "yellow", buffers: "black",
};
// What people train with, where the address says nothing else.
const USUAL = {
  model: "Llama 3.2 1B", card: "RTX 4090", context: "4096", batch: "1", precision: "bf16", attention: "sdpa", loss: "torch",
  optimizer: "fused", compile: "none", recompute: "no", gradients: "kept", checkpoint: "0", strategy: "alone", devices: "1", reserve: "0",
  machine: Object.keys(data.known.machines)[0],
};
const OWN_SHAPE = { d_model: "d_model", d_ff: "d_ff", num_layers: "layers", num_heads: "heads", key_value_heads: "heads of K and V", vocab_size: "vocabulary", head_width: "d_head (0: d_model / heads)", window: "window (0: none)" };
const SHAPE_DEFAULTS = { d_model: 2048, d_ff: 8192, num_layers: 16, num_heads: 32, key_value_heads: 8, vocab_size: 128256, head_width: 0, window: 0, tables: 2, ffn_matrices: 3, norm_numbers: 1, positions: 0, has_biases: 0 };
const OWN = "own numbers";

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value != null && value !== "") made.setAttribute(key, value);
  }
  made.append(...children.filter((each) => each != null && each !== ""));
  return made;
};

const readState = () => ({ ...USUAL, ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) });

/** The address of a state: what is usual is not in it. */
function addressOf(state) {
  const kept = Object.entries(state).filter(([key, value]) => String(value) !== USUAL[key] && value !== "");
  return `#${new URLSearchParams(kept)}`;
}
const change = (changes) => { location.hash = addressOf({ ...readState(), ...changes }); };

const gib = (bytes) => {
  const size = bytes / GIB;
  return size.toLocaleString("en", size >= 100 ? { maximumFractionDigits: 0 } : size >= 0.095 ? { minimumFractionDigits: 1, maximumFractionDigits: 1 } : { maximumSignificantDigits: 1 });
};
const whole = (number) => number.toLocaleString("en");
const least = (text, smallest) => Math.max(smallest, Math.floor(Number(text)) || smallest);

/** The shape that a state names: a well-known model, or its own numbers. */
function shapeOf(state) {
  const known = data.known.models[state.model]?.shape;
  const own = Object.fromEntries(Object.keys(OWN_SHAPE).map((name) => [name, least(state[name] ?? SHAPE_DEFAULTS[name], 0)]));
  return { ...SHAPE_DEFAULTS, key_value_heads: 0, ...(known ?? own) };
}

/** The setup that a state describes. */
function setupOf(state) {
  const shape = shapeOf(state);
  const [batch, context, devices] = [state.batch, state.context, state.devices].map((each) => least(each, 1));
  const sizes = {
    batch, context, devices, heads: shape.num_heads, window: Math.min(shape.window || context, context),
    "tokens of a chunk": data.chunk, d_head: shape.head_width || Math.floor(shape.d_model / shape.num_heads),
    "K heads": shape.key_value_heads || shape.num_heads, d_model: shape.d_model, d_ff: shape.d_ff, vocabulary: shape.vocab_size,
    layers: shape.num_layers, tables: shape.tables, "matrices of FFN": shape.ffn_matrices, "numbers of a norm": shape.norm_numbers,
    positions: shape.positions, "has biases": shape.has_biases,
  };
  const chosen = Object.fromEntries(data.options_in_order.map((option) => [option, state[option] in options[option] ? state[option] : USUAL[option]]));
  // fp8 has a closed form in compiled blocks alone
  const isFp8 = options.precision[chosen.precision].flags.includes("fp8");
  if (isFp8 && !options.compile[chosen.compile].flags.length) chosen.compile = "block";
  return { ...chosen, sizes, window: shape.window, checkpoint: least(state.checkpoint, 0) };
}

/** Bytes of the card that a state names, or of its number of GiB, without what others hold of it. */
const capacityOf = (state) => ((data.known.cards[state.card] ?? (Number(state.card) || 24)) - (Number(state.reserve) || 0)) * GIB;

// ---- The form.

function menu(state, name, label, choices, more = {}) {
  const made = element("select", { id: `control-${name}`, change: () => change({ [name]: made.value }) });
  for (const [value, text] of choices) made.append(new Option(text, value));
  if (![...made.options].some(({ value }) => value === state[name])) made.append(new Option(state[name], state[name]));
  made.value = state[name];
  return element("label", more, label, made);
}

function number(state, name, label, smallest, more = {}) {
  const made = element("input", { id: `control-${name}`, type: "number", min: smallest, step: 1, inputmode: "numeric", value: state[name] ?? SHAPE_DEFAULTS[name],
    change: () => change({ [name]: String(least(made.value, smallest)) }) });
  return element("label", more, label, made);
}

/** A number of GiB. */
function amount(name, label, value, more = {}) {
  const made = element("input", { id: `control-${name}-gib`, type: "number", min: 0, step: "any", inputmode: "decimal", value: Number(value) || 0,
    change: () => change({ [name]: String(Number(made.value) || Number(USUAL[name]) || 24) }) });
  return element("label", more, label, made);
}

const choicesOf = (option) => Object.entries(options[option]).map(([value, { label }]) => [value, label]);
const part = (name, ...fields) => element("fieldset", {}, element("legend", {}, name), ...fields.flat());

function showForm(state) {
  const focused = document.activeElement?.id;
  const isOwn = !(state.model in data.known.models);
  const models = [...Object.keys(data.known.models), OWN].map((name) => [name, name]);
  const cards = Object.entries(data.known.cards).map(([name, size]) => [name, `${name} · ${size} GiB`]);
  const own = isOwn ? Object.entries(OWN_SHAPE).map(([name, label]) => number(state, name, label, ["key_value_heads", "head_width", "window"].includes(name) ? 0 : 1)) : [];
  const other = !(state.card in data.known.cards);
  document.getElementById("controls").replaceChildren(
    part("Model", menu(state, "model", "shape", models, { class: "wide" }), own,
      number(state, "context", "context, tokens", 1), number(state, "batch", "batch, sequences", 1)),
    part("Card", menu(state, "card", "memory", [...cards, ...(other ? [] : [["32.5", "another number of GiB …"]])], { class: other ? "" : "wide" }),
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
  const [, most] = takenOf(peak.bytes);
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

function factsOf(state, setup, capacity) {
  const machine = data.known.machines[state.machine];
  const rate = machine.rates[setup.precision] ?? machine.rates.bf16;
  const tokens = setup.sizes.batch * setup.sizes.context;
  const [slow, fast] = machine.shares.map((share) => (tokens * rate * share) / operationsOf(setup));
  const digits = (value) => whole(Number(value.toPrecision(2)));
  const one = (name, value) => element("div", {}, element("strong", {}, value), name);
  return element("div", { class: "facts" },
    one("largest batch at this context", whole(largest(setup, "batch", capacity))),
    one("longest context at this batch", whole(largest(setup, "context", capacity))),
    one("parameters", `${(withDerived(setup.sizes).parameters / 1e9).toPrecision(3)} billion`),
    one(`tokens/s a device, at ${machine.shares.map((share) => `${Math.round(100 * share)}`).join(" to ")} % of its rate`, `${digits(slow)} to ${digits(fast)}`));
}

function showFound(state, setup, peak, capacity) {
  const changesOf = ({ change }) => Object.fromEntries(Object.entries(change).map(([key, value]) => [key, String(value)]));
  const told = (each, href) => row([element("a", { href }, each.label)],
    [`−${gib(each.saved)}`, "number"], [gib(each.bytes), "number"], [verdictOf(each.bytes, capacity)],
    [whole(largest(each.setup, "batch", capacity)), "number"]);
  const room = roomOf(setup, peak.bytes).map((each) => told(each, addressOf({ ...state, ...changesOf(each) })));
  const together = togetherOf(setup, capacity).reduce(({ rows, reached }, each) => {
    const next = { ...reached, ...changesOf(each) };
    return { rows: [...rows, told(each, addressOf(next))], reached: next };
  }, { rows: [], reached: state }).rows;
  const ofChanges = [["Change"], ["GiB", "number"], ["peak", "number"], ["then it"], ["largest batch", "number"]];
  const tensors = peak.tensors.filter(({ bytes }) => bytes > 0);
  const line = (each) => row([[swatch(each.category), each.name, element("small", {}, each.category)]], [`${each.count === 1 ? "" : `${each.count} × `}${each.dims} × ${each.each} B`, "formula"], [gib(each.bytes), "number"]);
  const heads = [["Tensor"], ["Formula"], ["GiB", "number"]];
  const shown = tensors.filter(({ bytes }, at) => at < 14 && bytes > 0.003 * peak.bytes);
  const rest = tensors.slice(shown.length);
  document.getElementById("found").replaceChildren(
    factsOf(state, setup, capacity),
    element("h2", {}, "What makes room"),
    room.length ? table("What makes room", ofChanges, room)
      : element("p", { class: "note" }, "None of the known changes lowers this peak."),
    ...(together.length ? [element("h2", {}, "One change on top of the other, on as many devices"), table("One on top of the other", ofChanges, together)] : []),
    element("h2", {}, "What is alive at the peak"),
    table("Tensors at the peak", heads, shown.map(line)),
    rest.length ? element("details", {}, element("summary", {}, `${rest.length} smaller ones, ${gib(rest.reduce((sum, { bytes }) => sum + bytes, 0))} GiB together`), table("Smaller tensors", heads, rest.map(line))) : "",
    element("h2", {}, "The same on the command line"),
    element("pre", {}, element("code", {}, commandOf(state, setup))),
    data.known.models[state.model] ? element("p", { class: "note" }, `Shape of ${state.model}: ${data.known.models[state.model].source}.`) : "");
}

function commandOf(state, setup) {
  const flags = ["batch", "context", "checkpoint", "devices", ...data.options_in_order].map((name) => [name, setup.sizes[name] ?? setup[name]]);
  const usual = { ...USUAL };
  const kept = flags.filter(([name, value]) => String(value) !== usual[name]).map(([name, value]) => `--${name} ${value}`);
  const own = Object.keys(OWN_SHAPE).map((name) => `${name}=${shapeOf(state)[name]}`).join(",");
  const size = state.model in data.known.models ? `"${state.model}"` : own;
  const reserve = Number(state.reserve) ? [`--reserve ${state.reserve}GB`] : [];
  return ["python scripts/fits.py", `--size ${size}`, `--memory "${state.card in data.known.cards ? state.card : `${state.card}GB`}"`, ...reserve, ...kept].join(" ");
}

function showTrust() {
  const { published, own } = data;
  const rows = published.map((each) => row([each.what], [each.setup, "formula"], [gib(each.published), "number"], [gib(each.predicted), "number"],
    [`${each.error > 0 ? "+" : "−"}${Math.abs(100 * each.error).toFixed(1)} %`, "number"], [[element("span", { title: each.quote }, each.source)], "formula"]));
  const median = (values) => values.map(Math.abs).sort((a, b) => a - b)[values.length >> 1];
  document.getElementById("trust").replaceChildren(
    element("h2", {}, "How far to trust it"),
    ...own.map((text) => element("p", { class: "note" }, text)),
    ...(rows.length ? [
      element("p", { class: "note" }, `Against ${rows.length} peaks that others published, of their own code: median error ${(100 * median(published.map(({ error }) => error))).toFixed(1)} %. What was published as reserved is held against the middle of what the allocator reserves. The largest difference is of attention written out with a softmax in 16 bits, which this table has in fp32; steps that are not compiled, on 8 GPUs or with one long sequence, reserve more than the middle of that range.`),
      element("details", {}, element("summary", {}, "Each of them"), table("Published peaks",
        [["Step"], ["Setup"], ["published", "number"], ["predicted", "number"], ["error", "number"], ["Source"]], rows))] : []));
}

function show() {
  const state = readState();
  const [setup, capacity] = [setupOf(state), capacityOf(state)];
  const peak = peakOf(setup);
  const verdict = verdictOf(peak.bytes, capacity);
  const [low, high] = takenOf(peak.bytes);
  showForm({ ...state, compile: setup.compile });
  const said = document.getElementById("verdict");
  said.dataset.is = verdict;
  const where = [peak.phase, peak.part].filter((each) => each).join(", ");
  said.replaceChildren(element("strong", {}, verdict[0].toUpperCase() + verdict.slice(1)), `: ${gib(low)} to ${gib(high)} GiB of ${gib(capacity)}`,
    element("small", {}, `Tensors ask for ${gib(peak.bytes)} GiB at the peak (${where}); PyTorch's allocator reserves ${terms.card.reserved.map((each) => `${Math.round(100 * each - 100)}`).join(" to ")} % more, CUDA takes ${gib(terms.card.context)} GiB.`));
  showBar(peak, capacity);
  showFound(state, setup, peak, capacity);
  document.title = `Will it fit? ${state.model}: ${verdict}`;
  document.documentElement.dataset.drawn = location.hash || "#"; // for who waits for it
}

showTrust();
show();
addEventListener("hashchange", show);
