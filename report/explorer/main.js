const VIEWS = { pivot: showPivot, chart: showChart, rows: showRows };
let drawnFor = null;

async function show() {
  const state = readState();
  state.show = state.show in VIEWS ? state.show : "pivot";
  const { card: _, ...view } = state;
  const before = performance.now();
  if (JSON.stringify(view) !== drawnFor) {
    drawnFor = JSON.stringify(view);
    for (const link of document.querySelectorAll("nav a[data-show]")) {
      const isOwn = link.dataset.show === state.show;
      link.toggleAttribute("aria-current", isOwn);
      if (isOwn) link.setAttribute("aria-current", "page");
      link.href = addressOf(["pivot", "chart"].includes(link.dataset.show) && state.show !== "rows" ? view : {}, { show: link.dataset.show });
    }
    await VIEWS[state.show](view);
  }
  await showCard(state);
  document.documentElement.dataset.drawn = (performance.now() - before).toFixed(1); // for who measures the page
}

addEventListener("hashchange", show);
show();
