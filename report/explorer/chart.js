/** The selection drawn: over its columns, a line or colour for each of its rows, with intervals. */
async function showChart(state) {
  for (const name of window.Plot ? [] : ["d3", "plot"]) {
    document.head.append(element("script", {}, await unpacked(name)));
  }
  const selection = await selectionOf(state);
  const { table, rows, byRows, byColumns, facet, used, axes, whole } = selection;
  const choices = axes.filter(({ name }) => whole[name].length > 1 && ![byRows, byColumns].includes(name));
  selectionControls(state, selection, [
    menu("panels", "facet", facet ?? "", [["", [["", "none"], ...choices.map(optionOf)]]]),
    menu("log axes", "log", state.log ?? "xy", choicesOf({ xy: "x and y", x: "x", y: "y", none: "none" })),
  ]);
  if (!rows.length) return sayNothing(state, selection.filters);
  const [isLogX, isLogY] = ["x", "y"].map((axis) => (state.log ?? "xy").includes(axis));
  const { of, scale, label } = numbersOf(selection, state);
  const [line, across] = [table.columns[byRows], table.columns[byColumns]];
  const isNumeric = across.kind === "number";
  const points = rows.map((row) => {
    const { text, interval } = printed(of(row), scale);
    const [x, cell, panel] = [valueOf(across, row), cellOf(table, row), facet ? shownOf(table.columns[facet], row) : ""];
    const [y, low, high] = Object.values(of(row)).map((each) => (each ?? of(row).value) / scale.divisor);
    const said = `${shownOf(line, row)}, ${across.label} ${x}\n${text} ${scale.suffix} ${interval}\n${cell}`;
    return { x, y, low, high, panel, cell, said, line: shownOf(line, row) };
  }).filter((point) => point.x !== "" && (point.y > 0 || !isLogY));
  const lines = line.keys.map((key) => labelOf(line, key)).filter((key) => points.some((point) => point.line === key));
  const isSingle = !differ(table, rows, used, (row) => row);
  const isLabelled = isNumeric && isSingle && !facet && lines.length <= 8;
  const at = { x: "x", y: "y", z: "line", ...(facet ? { fx: "panel" } : {}) };
  const ticks = [...new Set(points.map((point) => point.x))];
  const drawn = Plot.plot({
    width: Math.max(340, Math.min(document.getElementById("view").clientWidth, facet ? 1300 : 900)),
    marginLeft: 60,
    marginRight: isLabelled ? 110 : 20,
    marginBottom: isNumeric ? 40 : 90,
    x: { label: across.label, ...(isNumeric ? { type: isLogX ? "log" : "linear", ticks, tickFormat: String }
      : { type: "point", domain: across.keys.filter((key) => ticks.includes(key)), tickRotate: -35 }) },
    y: { grid: true, label, ...(isLogY ? { type: "log", ticks: 5, tickFormat: "~g" } : { zero: true }) },
    fx: { label: null },
    color: { domain: lines, range: about.colours, legend: !isLabelled },
    ariaLabel: `${label} over ${across.label}, by ${line.label}`,
    marks: [
      Plot.ruleX(points, { ...at, y1: "low", y2: "high", stroke: "line", strokeWidth: 1.5, strokeOpacity: 0.6 }),
      isNumeric && isSingle ? Plot.line(points, { ...at, sort: "x", stroke: "line", strokeWidth: 1.8 }) : null,
      Plot.dot(points, { ...at, fill: "line", r: 3.5 }),
      isLabelled ? Plot.text(points, Plot.selectMaxX({ ...at, text: "line", textAnchor: "start", dx: 7 })) : null,
      Plot.tip(points, Plot.pointer({ ...at, title: "said" })),
    ],
  });
  const picture = drawn.matches("svg") ? drawn : drawn.querySelector("svg[aria-label]");
  picture.setAttribute("role", "img");
  for (const group of picture.querySelectorAll("g[aria-label]")) group.removeAttribute("aria-label");
  drawn.addEventListener("click", () => drawn.value?.cell && change({ card: drawn.value.cell }));
  const apart = differing(axes.filter(({ name }) => !used.includes(name)), rows).join(", ");
  say(`${points.length} points${isSingle ? "" : `, several in a place: ${apart} differ`}. ${commonOf(selection)}. `,
    element("a", { href: addressOf(state, { show: "pivot" }) }, "The same as a table"));
  setView(drawn.matches("svg") ? element("figure", {}, drawn) : drawn);
}
