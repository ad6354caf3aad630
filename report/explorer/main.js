const VIEWS = { pivot: showPivot, chart: showChart, rows: showRows };
let shown = null;

async function show() {
  const { card: _, ...view } = readState();
  if (!(view.show in VIEWS)) view.show = "pivot";
  if (JSON.stringify(view) !== shown) {
    shown = JSON.stringify(view);
    for (const link of document.querySelectorAll("nav a[data-show]")) {
      const other = link.dataset.show;
      link.ariaCurrent = other === view.show ? "page" : null;
      link.href = addressOf(other !== "rows" && view.show !== "rows" ? view : {}, { show: other });
    }
    await VIEWS[view.show](view);
  }
  await showCard(readState());
  document.documentElement.dataset.drawn = location.hash || "#"; // for who waits for it
}

let waiting = show();
// one after the other, so that what is shown last is what was asked for last
addEventListener("hashchange", () => { waiting = waiting.then(show, show); });
