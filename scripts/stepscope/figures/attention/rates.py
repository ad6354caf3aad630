"""Figure: TFLOP/s of attention by length and head dimension, against the rate of a large matrix product."""

import pandas as pd
from matplotlib.figure import Figure

from stepscope import colours
from stepscope.figures import theme
from stepscope.figures.attention.data import DIRECTIONS, measured, of_one_shape, shape_words
from stepscope.figures.facets import Facets, part, pick
from stepscope.figures.labels import short, tick, trouble
from stepscope.figures.marks import bar_axis
from stepscope.report.kit.formatting import significant
from stepscope.report.kit.order import machine_labels, ordered, precision_rank

MOST_DIMENSIONS, MOST_LENGTHS, MOST_ROWS = 2, 3, 9
FAR = 3.0  # times the highest bar: a ceiling beyond is told, not drawn
BAR = 0.155  # inches


def draw_rates(tables) -> Figure:
    """Bars of TFLOP/s, an implementation each: rows of panels by length, columns by direction and head dimension."""
    rows = measured(tables)
    if rows["tflops"].notna().any():
        rows = of_one_shape(rows, varying_batch=True)
    if rows["tflops"].isna().all():
        return theme.empty("No rate of attention has been measured: nothing to draw.")
    every = _keys(rows)
    keys, machines = every[:MOST_ROWS], machine_labels(rows["hardware"])
    settings = [{name: key[name] for name in ("hardware", "precision")} for key in keys]
    columns = {each: _columns(rows[rows["hardware"] == each]) for each in machines}
    most = max(len(_names(part(rows, **setting))) for setting in settings)
    wide, several = max(map(len, columns.values())), len({(key["hardware"], key["precision"]) for key in every}) > 1
    facets = Facets(keys, range(wide), 0.32 + BAR * max(most, 3), width=4.2 if wide < 3 else 2.9)
    for row, (key, panels) in enumerate(facets):
        setting, own_columns = settings[row], columns[key["hardware"]]
        is_first, is_last = settings.index(setting) == row, setting not in settings[row + 1 :]
        own = part(rows, **setting)
        ceiling, highest = matmul_rate(tables, **setting), own["tflops"].max()
        for panel in panels[len(own_columns) :]:
            panel.set_axis_off()
        for (direction, dimension), panel in zip(own_columns, panels, strict=False):
            alike = part(own, direction=direction, d_head=dimension, length=key["length"])
            _draw_bars(panel, alike, _names(own), highest)
            _draw_ceiling(panel, ceiling, highest, is_first)
            panel.tick_params(labelleft=panel is panels[0], labelbottom=is_last)
        panels[0].set_ylabel(f"length {key['length']:,.0f}")
        if is_first:
            names = [f"{direction}, d_head {dimension:,.0f}" for direction, dimension in own_columns]
            facets.name_columns(names, row, pad=4 if ceiling is None else 14)
            if several:
                facets.name_group(row, f"{key['hardware']}, {key['precision']}")
    words = "" if several else f", {keys[0]['precision']}"
    facets.name_axes(x=f"TFLOP/s{words}; {shape_words(rows)}", more=len(every) - len(keys))
    return facets.figure


def _columns(own: pd.DataFrame) -> list[tuple[str, float]]:
    """(direction, d_head) of each column of panels."""
    dimensions = pick(ordered(own["d_head"]), MOST_DIMENSIONS)
    return [(direction, dimension) for direction in DIRECTIONS for dimension in dimensions]


def _keys(rows: pd.DataFrame) -> list[dict]:
    """`hardware`, `precision` and `length` of each row of panels."""
    keys = []
    for hardware, own in rows.groupby("hardware"):
        for precision in ordered(own["precision"], key=precision_rank):
            lengths = ordered(own.loc[own["precision"] == precision, "length"])
            setting = {"hardware": hardware, "precision": precision}
            keys += [setting | {"length": length} for length in pick(lengths, MOST_LENGTHS)]
    return keys


def _names(own: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(own["implementation"]))


def matmul_rate(tables, hardware: str, precision: str) -> float | None:
    """The measured rate of a large matrix product (TFLOP/s), None if there is none."""
    ceilings = tables["ceilings"]
    if ceilings.empty:
        return None
    alike = (ceilings["operation"] == "matmul") & (ceilings["precision"] == precision)
    rates = pd.to_numeric(ceilings.loc[alike & (ceilings["hardware"] == hardware), "tflops"], errors="coerce").dropna()
    return float(rates.max()) if len(rates) and rates.max() > 0 else None


def _draw_bars(panel, own: pd.DataFrame, names: list[str], highest: float) -> None:
    """Horizontal bars of one panel; a word where there is no rate, hollow where the time is doubtful."""
    found = {row["implementation"]: row for row in own.to_dict("records")}
    for place, name in enumerate(names):
        row = found.get(name)
        if row is None or pd.isna(row["tflops"]):
            word = "" if row is None else trouble(row)
            panel.annotate(
                word, (0, place), (3, 0), textcoords="offset points", va="center", fontsize=6.5, color=colours.MUTED
            )
            continue
        colour = colours.attention(name)
        look = (
            {"facecolor": colours.PAPER, "edgecolor": colour, "hatch": "////"} if row["doubtful"] else {"color": colour}
        )
        panel.barh(place, row["tflops"], height=0.74, label=name, **look)
        box = {"facecolor": colours.PAPER, "edgecolor": "none", "pad": 0.6}
        look = {"textcoords": "offset points", "va": "center", "fontsize": 6.5, "bbox": box, "zorder": 3}
        panel.annotate(significant(row["tflops"]), (row["tflops"], place), (3, 0), **look)
    bar_axis(panel, range(len(names)), [short(name, 20) for name in names])
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.set_xlim(0, highest * 1.22 if highest > 0 else 1)
    panel.locator_params(axis="x", nbins=5)
    panel.xaxis.set_major_formatter(tick)


def _draw_ceiling(panel, ceiling: float | None, highest: float, is_named: bool) -> None:
    """The matmul's rate as a line, named above the panel; only named if it is far beyond the bars."""
    if ceiling is None:
        return
    name, is_near = f"matmul {significant(ceiling)}", ceiling <= FAR * highest
    right = max(panel.get_xlim()[1], ceiling * 1.08) if is_near else panel.get_xlim()[1]
    panel.set_xlim(0, right)
    if is_near:
        panel.axvline(ceiling, color=colours.INK, linewidth=0.9, label="matmul", zorder=2)
    if is_named:
        place = (ceiling if is_near else right, 1)
        panel.annotate(name if is_near else f"{name}, far beyond ▸", place, (0, 3), textcoords="offset points",
                       xycoords=panel.get_xaxis_transform(), fontsize=6.5, va="bottom", color=colours.MUTED,
                       ha="center" if 0.25 < place[0] / right < 0.75 else "right", annotation_clip=False)  # fmt: skip
