/** The selection drawn: over its columns, a line or colour for each of its rows, with intervals. */
let plotting = null;

async function library() {
  plotting ??= (async () => {
    for (const name of ["d3", "plot"]) document.head.append(element("script", {}, await unpacked(name)));
  })();
  await plotting;
  return window.Plot;
}

async function showChart(state) {
  const [Plot, selection] = [await library(), await selectionOf(state)];
  const { table, rows, byRows, byColumns, facet, measure } = selection;
  if (!table) return showLeftOut(measure.table);
  const choices = selection.axes.filter((axis) => selection.whole[axis.name].length > 1 && ![byRows, byColumns].includes(axis.name));
  const [isLogX, isLogY] = ["x", "y"].map((axis) => (state.log ?? "xy").includes(axis));
  const logs = (x, y) => ({ log: `${x ? "x" : ""}${y ? "y" : ""}` || "none" });
  selectionControls(state, selection,
    select("panels", "facet", facet ?? "", [["", [["", "none"], ...choices.map((axis) => [axis.name, axis.label])]]]),
    flagControl("log x", "logx", isLogX, (isOn) => logs(isOn, isLogY)),
    flagControl("log y", "logy", isLogY, (isOn) => logs(isLogX, isOn)));
  const numbers = numbersOf(selection, state);
  const scale = scaleFor(numbers.unit, rows.map((row) => numbers.of(row).value));
  const across = table.columns[byColumns];
  const isNumeric = across.kind === "number";
  const points = rows.map((row) => {
    const { value, low, high } = numbers.of(row);
    const shown = printed(value, scale, low, high);
    return { x: valueOf(across, row), y: value / scale.divisor, low: (low ?? value) / scale.divisor, high: (high ?? value) / scale.divisor,
      line: named(valueOf(table.columns[byRows], row)), panel: facet ? named(valueOf(table.columns[facet], row)) : "",
      cell: cellOf(table, row), text: `${shown.text} ${scale.suffix} ${shown.interval}` };
  }).filter((point) => point.x !== "" && (point.y > 0 || !isLogY));
  const lines = table.columns[byRows].keys.map(named).filter((key) => points.some((point) => point.line === key));
  const several = !areApart(table, rows, selection.used);
  const encoding = { x: "x", stroke: "line", ...(facet ? { fx: "panel" } : {}) };
  const ticks = isNumeric ? [...new Set(points.map((point) => point.x))] : undefined;
  const panels = facet ? new Set(points.map((point) => point.panel)).size : 1;
  const room = document.getElementById("view").clientWidth;
  const drawn = Plot.plot({
    width: Math.max(340, Math.min(room, 900), Math.min(panels, 6) * 240), height: 440, marginTop: facet ? 50 : 25, marginLeft: 60, marginRight: facet ? 20 : 110, marginBottom: isNumeric ? 40 : 90,
    style: { background: "none", color: "inherit" },
    x: { type: isNumeric ? (isLogX ? "log" : "linear") : "point", label: across.label, ticks, tickFormat: isNumeric ? String : undefined, tickRotate: isNumeric ? 0 : -35 },
    y: { type: isLogY ? "log" : "linear", label: headed(numbers.label, scale.suffix), grid: true, ...(isLogY ? { ticks: 5, tickFormat: "~g" } : { zero: true }) },
    fx: facet ? { label: table.columns[facet].label } : undefined,
    color: { domain: lines, range: lines.map((_, at) => about.colours[at % about.colours.length]), legend: Boolean(facet) || lines.length > 8 },
    ariaLabel: `${numbers.label} over ${across.label}, by ${table.columns[byRows].label}`,
    marks: [
      Plot.ruleX(points, { ...encoding, y1: "low", y2: "high", strokeWidth: 1.5, strokeOpacity: 0.6 }),
      ...(isNumeric && !several ? [Plot.line(points, { ...encoding, y: "y", sort: "x", strokeWidth: 1.8 })] : []),
      Plot.dot(points, { ...encoding, y: "y", fill: "line", r: 3.2 }),
      ...(isNumeric && !facet && !several && lines.length <= 8 ? [Plot.text(points, Plot.selectMaxX({ x: "x", y: "y", z: "line", text: "line", fill: "currentColor", textAnchor: "start", dx: 7 }))] : []),
      Plot.tip(points, Plot.pointer({ x: "x", y: "y", ...(facet ? { fx: "panel" } : {}), title: (point) => `${point.line}, ${across.label} ${point.x}\n${point.text.trim()}\n${point.cell}` })),
    ],
  });
  const picture = drawn.tagName === "FIGURE" ? drawn.querySelector("svg[aria-label]") : drawn;
  picture.setAttribute("role", "img");
  for (const group of picture.querySelectorAll("g[aria-label]")) group.removeAttribute("aria-label");
  drawn.addEventListener("click", () => drawn.value?.cell && change({ card: drawn.value.cell }));
  say(`${points.length} points${several ? `, several in a place: they differ in ${differing(selection, rows).join(", ")}` : ""}. ${commonOf(selection)}. `,
    element("a", { href: addressOf(state, { show: "pivot" }) }, "The same as a table"));
  document.getElementById("view").replaceChildren(drawn.tagName === "FIGURE" ? drawn : element("figure", {}, drawn));
}
