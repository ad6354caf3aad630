// The table of terms, evaluated: what Python's stepscope.formulas does with the same text. Sizes are whole numbers below
// 2^53; a setup is {sizes, and by name: precision, attention, optimizer, loss, compile, gradients, strategy, checkpoint}.
const data = JSON.parse(document.getElementById("data").textContent);
const { terms, options } = data;
const COMBINED = { sum: (of) => of.reduce((a, b) => a + b, 0), min: (of) => Math.min(...of), max: (of) => Math.max(...of) };

/** The value of dimensions, from the left: × multiplies, / divides and rounds up. */
function product(text, sizes) {
  const [first, ...others] = text.split(/ ([×/]) /);
  const valueOf = (name) => (/^\d+$/.test(name) ? Number(name) : sizes[name]);
  let found = valueOf(first);
  for (let at = 0; at < others.length; at += 2) {
    const factor = valueOf(others[at + 1]);
    found = others[at] === "/" ? Math.ceil(found / factor) : found * factor;
  }
  return found;
}

/** Sizes and those that follow from them, in their order. */
function withDerived(sizes) {
  const found = { ...sizes };
  for (const [name, [how, ...products]] of Object.entries(terms.dimensions)) {
    found[name] = COMBINED[how](products.map((each) => product(each, found)));
  }
  return found;
}

/** A setup with all its sizes, flags and types. */
function prepared(setup) {
  const sizes = withDerived(setup.sizes);
  const flags = new Set(data.options_in_order.flatMap((option) => options[option][setup[option]].flags));
  for (const [flag, comparisons] of Object.entries(terms.flags)) {
    const holds = (comparison) => {
      const [less, more] = comparison.split(" < ").map((each) => product(each, sizes));
      return less < more;
    };
    if (comparisons.some(holds)) flags.add(flag);
  }
  return { ...setup, sizes, flags, types: options.precision[setup.precision].types };
}

/** Whether all flags of a condition are there, and none of those behind "!". */
const holds = (condition, flags) => (condition ?? "").split(" ").filter((word) => word)
  .every((word) => flags.has(word.replace("!", "")) !== word.startsWith("!"));

/** The tensors of a group, as often as one block has them. */
function group(setup, name) {
  const known = terms.groups[name];
  if (!holds(known.when, setup.flags)) return [];
  const own = name.startsWith("optimizer ") ? options.optimizer[setup.optimizer][name.slice("optimizer ".length)] : [];
  const over = setup.flags.has(`shards-${known.sharded}`) ? " / devices" : "";
  return [...known.tensors, ...own].filter((row) => holds(row[5], setup.flags)).map(([module, tensor, , dims, type]) => {
    const each = data.bytes[setup.types[type] ?? type];
    const [, number, rest] = /^(?:(\d+) × )?(.*)$/.exec(dims + over);
    const count = Number(number ?? 1);
    return { category: known.category, module, name: tensor, dims: rest, count, each, bytes: count * product(rest, setup.sizes) * each };
  });
}

/** The tensors that entries of a moment name. */
function alive(setup, entries, flags, counts) {
  return entries.filter((entry) => holds(entry.when, flags)).flatMap((entry) => {
    const [name, less] = (entry.count ?? "1").split(" - ");
    const count = (/^\d+$/.test(name) ? Number(name) : counts[name]) - Number(less ?? 0);
    const isMeant = (each) => !entry.but?.includes(each.name) && (!entry.only || entry.only.includes(each.name));
    return count ? group(setup, entry.of).filter(isMeant)
      .map((each) => ({ ...each, count: count * each.count, bytes: count * each.bytes })) : [];
  });
}

/** The blocks whose backward pass can be the peak, and what is there of the others. */
function blocksOf(layers, checkpoint) {
  const every = checkpoint || layers;
  const last = Math.floor((layers - 1) / every) * every;
  const ends = [layers - 1, last, last - 1, last - every, every - 1, 0].filter((at) => at >= 0 && at < layers);
  return [...new Set(ends)].sort((a, b) => b - a).map((at) => [
    at === layers - 1 ? "last block" : at ? `block ${at + 1}` : "first block",
    { before: at % every, "boundaries before": Math.floor(at / every), after: layers - 1 - at }]);
}

/** Equal tensors of several blocks as one. */
function merged(tensors) {
  const found = new Map();
  for (const each of tensors) {
    const key = [each.category, each.module, each.name, each.dims, each.each].join("|");
    const one = found.get(key);
    found.set(key, one ? { ...one, count: one.count + each.count, bytes: one.bytes + each.bytes } : each);
  }
  return [...found.values()];
}

/** Where most memory is allocated in a step, with what libraries hold. */
function peakOf(given) {
  const setup = prepared(given);
  const { layers } = setup.sizes;
  const flags = new Set([...setup.flags, "forward", "backward", "step"]);
  const kept = { layers, kept: setup.checkpoint ? 0 : layers, boundaries: setup.checkpoint ? Math.ceil(layers / setup.checkpoint) : 0 };
  const libraries = { category: "workspace", module: "", name: "libraries", dims: "as given", count: 1, each: 1, bytes: terms.card.libraries };
  const always = [...alive(setup, terms.always.alive, flags, kept), libraries];
  let found = null;
  for (const moment of terms.moments.filter(({ when }) => holds(when, flags))) {
    for (const [block, others] of moment.each ? blocksOf(layers, setup.checkpoint) : [["", {}]]) {
      const tensors = [...always, ...merged(alive(setup, moment.alive, flags, { ...kept, ...others }))];
      const bytes = tensors.reduce((sum, each) => sum + each.bytes, 0);
      if (!found || bytes > found.bytes) {
        found = { phase: moment.phase, part: [block, moment.part].filter((each) => each).join("/"), bytes, tensors };
      }
    }
  }
  found.tensors.sort((a, b) => b.bytes - a.bytes);
  return found;
}

/** Bytes of a card that a step takes, the least and the most. */
const takenOf = (bytes) => terms.card.reserved.map((factor) => terms.card.context + Math.floor(bytes * factor));

const VERDICTS = ["fits", "fits with doubt", "does not fit"];
function verdictOf(bytes, capacity) {
  const [least, most] = takenOf(bytes);
  return VERDICTS[most <= capacity ? 0 : least <= capacity ? 1 : 2];
}

/** The setup with another batch, context, or values of options. */
function changed(setup, { batch, context, devices, ...others }) {
  const sizes = { ...setup.sizes };
  if (batch) sizes.batch = batch;
  if (devices) sizes.devices = devices;
  if (context) Object.assign(sizes, { context, window: Math.min(setup.window || context, context) });
  return { ...setup, ...others, sizes };
}

/** The last number from 1 with which the setup fits without doubt; 0 if none does. */
function largest(setup, field, capacity) {
  const fits = (number) => verdictOf(peakOf(changed(setup, { [field]: number })).bytes, capacity) === VERDICTS[0];
  let [good, bad] = [0, 1];
  while (bad < 2 ** 24 && fits(bad)) [good, bad] = [bad, 2 * bad];
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    [good, bad] = fits(middle) ? [middle, bad] : [good, middle];
  }
  return good;
}

/** Changes that lower the peak, the largest first. */
function roomOf(setup, bytes) {
  const half = { label: "half the batch, accumulated over two", options: { batch: Math.ceil(setup.sizes.batch / 2), gradients: "accumulated" } };
  const candidates = setup.sizes.batch > 1 ? [...terms.changes, half] : terms.changes;
  return candidates.map(({ label, options: change }) => {
    const other = changed(setup, change);
    const size = peakOf(other).bytes;
    return { label, change, setup: other, bytes: size, saved: bytes - size };
  }).filter(({ saved }) => saved > 0).sort((a, b) => b.saved - a.saved);
}

/** Changes one on top of the other, each the best of its turn, until it fits on as many devices and in the same precision. */
function togetherOf(setup, capacity) {
  const found = [];
  for (let bytes = peakOf(setup).bytes; verdictOf(bytes, capacity) !== VERDICTS[0];) {
    const { sizes, precision } = setup;
    const next = roomOf(setup, bytes).find((each) => each.setup.sizes.devices === sizes.devices && each.setup.precision === precision);
    if (!next) break;
    found.push(next);
    ({ setup, bytes } = next);
  }
  return found;
}

/** Operations of a step; with checkpoints a forward pass more. */
function operationsOf(setup) {
  const sizes = withDerived(setup.sizes);
  const forward = Object.values(terms.operations).reduce((sum, each) => sum + product(each, sizes), 0);
  return forward * (setup.checkpoint ? 4 : 3);
}
