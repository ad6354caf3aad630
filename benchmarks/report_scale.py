"""How long the explorer takes to open, and to filter, with the tables as they are and with 4,000
cells.

python benchmarks/report_scale.py results/tables

Cells are multiplied by sizes of other names with slightly other numbers. Needs playwright and
Chromium.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from stepscope.report.explorer import document  # noqa: E402
from stepscope.results.schema import NUMBER, TABLES  # noqa: E402
from stepscope.results.tables import Tables  # noqa: E402

MOST = 4  # choices of a menu
CHOOSE = """async ([name, value]) => {
    const menu = document.getElementById(`control-${name}`);
    const before = performance.now();
    delete document.documentElement.dataset.drawn;
    menu.value = value;
    menu.dispatchEvent(new Event("change"));
    while (!document.documentElement.dataset.drawn) await new Promise(requestAnimationFrame);
    return performance.now() - before;
}"""


def main() -> None:
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument("tables", type=Path, help="folder of tables")
    flags.add_argument(
        "--cells", type=int, default=4000, help="how many to multiply to (default: %(default)s)"
    )
    flags.add_argument("--repeats", type=int, default=5, help="openings (default: %(default)s)")
    given = flags.parse_args()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        large = multiplied(given.tables, given.cells, Path(name) / "tables")
        for tables in (given.tables, large):
            page = Path(name) / "explorer.html"
            page.write_text(document({"": tables}, page.parent, "", ROOT / "report"))
            cells, rows = (len(Tables(tables)[each]) for each in ("cells", "series"))
            print(f"{cells:,} cells, {rows:,} series, {page.stat().st_size / 1e6:.2f} MB")
            for what, times in measured(browser.new_page(), page, given.repeats).items():
                print(
                    f"  {what}: {statistics.median(times):.0f} ms (longest of {len(times)}:"
                    f" {max(times):.0f})"
                )


def multiplied(tables: Path, cells: int, out: Path) -> Path:
    """The tables with each cell as often as makes so many; numbers with a fraction differ by a
    thousandth."""
    random = np.random.default_rng(0)
    source = Tables(tables)
    times = max(1, round(cells / len(source["cells"])))
    out.mkdir()
    for name, table in TABLES.items():
        frame = source[name][[*table.columns]]
        if not {"cell", "machine"} <= set(frame) or name in (
            "timeline",
            "memory_timeline",
            "published",
        ):
            frame.to_csv(out / f"{name}.csv", index=False)
            continue
        copies = []
        for at in range(times):
            copy = frame.assign(cell=frame["cell"] + f"/copy={at}" if at else frame["cell"])
            if "size" in copy and at:
                copy["size"] = copy["size"] + f"-{at}"
            for column in (each.name for each in table.columns.values() if each.kind == NUMBER):
                jitter = 1 + 1e-3 * random.standard_normal(len(copy))
                copy[column] = np.where(copy[column] % 1 == 0, copy[column], copy[column] * jitter)
            copies.append(copy)
        pd.concat(copies).to_csv(out / f"{name}.csv", index=False)
    return out


def measured(page: Page, path: Path, repeats: int) -> dict[str, list[float]]:
    """Milliseconds to open, and from a choice to what it shows, in pivot and rows."""
    found: dict[str, list[float]] = {"opens in": [], "pivot filters in": [], "rows filter in": []}
    for _ in range(repeats):
        page.goto("about:blank")
        before = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_function("document.documentElement.dataset.drawn")
        found["opens in"].append((time.perf_counter() - before) * 1e3)
    for view, what in (
        ("show=pivot", "pivot filters in"),
        ("show=rows&table=series", "rows filter in"),
    ):
        page.goto(f"{path.as_uri()}#{view}")
        page.wait_for_selector("#view tbody tr")
        menus = page.locator("#controls fieldset select").evaluate_all(
            "each => each.map(menu => menu.id)"
        )
        for name in [menu.removeprefix("control-") for menu in menus]:
            values = page.locator(f"#control-{name} option").evaluate_all(
                "each => each.map(option => option.value)"
            )
            for value in values[1 : MOST + 1] + values[:1]:
                found[what].append(page.evaluate(CHOOSE, [name, value]))
    return found


if __name__ == "__main__":
    main()
