// The table of terms, evaluated: what Python's stepscope.formulas does with the same text. Sizes are whole numbers below
// 2^53; a setup is {sizes, window, and by name: precision, attention, optimizer, loss, compile, gradients, strategy}.
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

/** Why no step is so, or no closed form is known; null if neither. */
function wrongOf(setup) {
  const { sizes, flags } = prepared(setup);
  const told = Object.entries(terms.impossible).find(([condition]) => holds(condition, flags))?.[1];
  return told ? told.replace(/{(.*?)}/g, (_, name) => sizes[name]) : null;
}

/** The tensors of a group, as often as one block has them. */
function group(setup, name) {
  const known = terms.groups[name];
  if (!holds(known.when, setup.flags)) return [];
  const own = known.own ? options.optimizer[setup.optimizer][known.own] : [];
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
    const count = counts[entry.count] ?? entry.count ?? 1;
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
  const { layers, checkpoint } = setup.sizes;
  const flags = new Set([...setup.flags, "forward", "backward", "step"]);
  const kept = { layers, others: layers - 1, kept: checkpoint ? 0 : layers, boundaries: checkpoint ? Math.ceil(layers / checkpoint) : 0 };
  const libraries = { category: "workspace", module: "", name: "libraries", dims: "as given", count: 1, each: 1, bytes: terms.card.libraries };
  const always = [...alive(setup, terms.always.alive, flags, kept), libraries];
  let found = null;
  for (const moment of terms.moments.filter(({ when }) => holds(when, flags))) {
    for (const [block, others] of moment.each ? blocksOf(layers, checkpoint) : [["", {}]]) {
      const tensors = [...always, ...merged(alive(setup, moment.alive, flags, { ...kept, ...others }))];
      const bytes = tensors.reduce((sum, each) => sum + each.bytes, 0);
      if (!found || bytes > found.bytes) {
        found = { phase: moment.phase, part: [block, moment.part].filter((each) => each).join("/"), bytes, tensors, flags };
      }
    }
  }
  found.tensors.sort((a, b) => b.bytes - a.bytes);
  return found;
}

/** What the allocator reserves of a step's peak, and the bytes of a card that it then takes, the least and the most. */
const reservedOf = (flags) => terms.reserved.find(({ when }) => holds(when, flags));
function takenOf({ bytes, flags }) {
  const { least, most } = reservedOf(flags);
  return [least, most].map((factor) => terms.card.context + Math.floor(bytes * factor));
}

const VERDICTS = ["fits", "fits with doubt", "does not fit"];
function verdictOf(peak, capacity) {
  const [least, most] = takenOf(peak);
  return VERDICTS[most <= capacity ? 0 : least <= capacity ? 1 : 2];
}

/** The setup with another batch, context, or values of options. */
function changed(setup, changes) {
  const sizes = { ...setup.sizes };
  for (const name of ["batch", "context", "devices", "checkpoint"]) sizes[name] = changes[name] ?? sizes[name];
  sizes.window = Math.min(setup.window || sizes.context, sizes.context);
  const others = Object.fromEntries(Object.entries(changes).filter(([name]) => name in options));
  return { ...setup, ...others, sizes };
}

/** The last numbers from 1 with which the setup fits, and fits with doubt; 0 if none does. */
const largest = (setup, field, capacity) => [1, 2].map((many) => lastThatFits(setup, field, capacity, VERDICTS.slice(0, many)));

function lastThatFits(setup, field, capacity, verdicts) {
  const fits = (number) => {
    const other = changed(setup, { [field]: number });
    return !wrongOf(other) && verdicts.includes(verdictOf(peakOf(other), capacity));
  };
  let [good, bad] = [0, 1];
  while (bad < 2 ** 24 && fits(bad)) [good, bad] = [bad, 2 * bad];
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    [good, bad] = fits(middle) ? [middle, bad] : [good, middle];
  }
  return good;
}

/** Changes that lower the peak, the largest first. */
function roomOf(setup) {
  const { bytes } = peakOf(setup);
  const half = { label: "half the batch, accumulated over two", options: { batch: Math.ceil(setup.sizes.batch / 2), gradients: "accumulated" } };
  return [...terms.changes, half].map(({ label, options: change }) => {
    const other = changed(setup, change);
    const peak = peakOf(other);
    return { label, change, setup: other, peak, saved: bytes - peak.bytes };
  }).filter(({ saved }) => saved > 0).sort((a, b) => b.saved - a.saved);
}

/** Changes one on top of the other, each the best of its turn, until it fits on as many devices and in the same precision. */
function togetherOf(setup, capacity) {
  const found = [];
  while (verdictOf(peakOf(setup), capacity) !== VERDICTS[0]) {
    const { sizes, precision } = setup;
    const next = roomOf(setup).find((each) => each.setup.sizes.devices === sizes.devices && each.setup.precision === precision);
    if (!next) break;
    found.push(next);
    ({ setup } = next);
  }
  return found;
}

/** Operations of a step, each with the precision at whose rate it runs. */
function operationsOf(setup) {
  const { sizes, flags } = prepared(setup);
  const [inBlocks, outside] = options.precision[setup.precision].rates;
  return terms.operations.filter(({ when }) => holds(when, flags))
    .map((each) => [product(each.dims, sizes), each.in_blocks ? inBlocks : outside]);
}

/** Tokens a second of a device, the least and the most, by a machine's rates; NaN where it was not measured so. */
function tokensASecond(setup, { rates, shares }) {
  const seconds = operationsOf(setup).reduce((sum, [count, precision]) => sum + count / rates[precision], 0);
  return shares.map((share) => (setup.sizes.batch * setup.sizes.context * share) / seconds);
}
