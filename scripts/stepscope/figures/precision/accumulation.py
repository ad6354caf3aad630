"""Figure: the error of a growing sum, by its types."""

from collections.abc import Iterable

import pandas as pd
from matplotlib.figure import Figure

from stepscope.figures import colours, theme
from stepscope.report.data.precision import Precision

MOST_HARDWARE = 3
_HAND = " cast to fp32"


def draw_accumulation(tables) -> Figure:
    """Error of the sum over the number of additions, a line a variant, a panel a machine."""
    precision = Precision(tables)
    samples = _samples(tables)
    machines = [each for each in precision.hardware if (samples["hardware"] == each).any()][:MOST_HARDWARE]
    if not machines:
        return theme.empty("No sum was probed: nothing to draw.")
    figure, axes = theme.panels(1, len(machines), 2.7, width=6.6 if len(machines) == 1 else 4.4, sharey=True)
    for hardware, panel in zip(machines, axes[0], strict=True):
        kinds = {row["variant"]: row for row in precision.rows("accumulation", hardware)}
        _draw(panel, samples[samples["hardware"] == hardware], kinds)
        if len(machines) > 1:
            panel.set_title(theme.short(hardware, 40), fontweight="normal", color=colours.MUTED)
    axes[0][0].set_ylabel("|sum − 0.01 × additions| (log scale)")
    figure.supxlabel("additions (log scale)", fontsize=8)
    return figure


def _samples(tables) -> pd.DataFrame:
    """hardware, variant, step, sum: every sum of every machine."""
    columns = ["hardware", "variant", "step", "sum"]
    path = tables.folder / "precision_samples.csv"
    if not path.exists():
        return pd.DataFrame(columns=columns)
    return pd.read_csv(path, usecols=columns, dtype={"hardware": "str", "variant": "str"})


def _draw(panel, samples: pd.DataFrame, kinds: dict[str, dict]) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    ends, drawn = [], {}
    for variant, own in samples.groupby("variant", sort=False):
        errors = (own["sum"] - own["step"] / 100).abs()
        drawn.setdefault(tuple(own["sum"]), []).append((variant, own["step"], errors))
    for same in drawn.values():
        variant, steps, errors = same[0]
        kind = kinds.get(variant, {})
        addend = str(kind.get("addend_dtype") or variant.split(" += ")[-1].split()[0])
        mixed = kind.get("sum_dtype") != kind.get("addend_dtype")
        colour, shown = colours.precision(addend), errors.where(errors > 0)
        panel.plot(
            steps, shown, color=colour, linewidth=0.9 if mixed else 1.3, linestyle=(0, (4, 1.6)) if mixed else "-"
        )
        ends.append((_name([each for each, *_ in same]), steps.iloc[-1], shown.ffill().iloc[-1],
                     colours.precision_text(addend)))  # fmt: skip
    panel.margins(y=0.05)
    theme.log_axis(panel.yaxis, *panel.get_ylim(), formatter=_power)
    theme.log_axis(panel.xaxis, *panel.get_xlim())
    theme.label_lines(panel, ends, gap=0.07)


def _name(variants: Iterable[str]) -> str:
    """`fp32 += fp16`; variants that give the same sums are named once, with what tells them apart."""
    variants = list(variants)
    plain = [each for each in variants if not each.endswith(_HAND)]
    if len(variants) == 2 and len(plain) == 1 and variants[1] == plain[0] + _HAND:
        return f"{plain[0]}, cast or not"
    return theme.short(" = ".join(variants), 40)


def _power(value: float, _position=None) -> str:
    return f"{value:.0e}".replace("e-0", "e−").replace("e+0", "e").replace("e-", "e−").replace("e0", "")
