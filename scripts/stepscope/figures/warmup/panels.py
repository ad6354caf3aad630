"""What the warm-up study's figures have in common: which settings and sizes are drawn, and their names."""

from stepscope.figures import colours, theme
from stepscope.figures.choosing import pick
from stepscope.report.data.warmup import Setting, SizeRuns, Warmups

MOST_SETTINGS = 4
MOST_SIZES = 5
PHASES = ("forward", "backward", "optimizer", "step")


def drawn(warmups: Warmups) -> list[Setting]:
    """The settings that get a row of panels: the first of each machine, then more while there is room."""
    first = [next(each for each in warmups.measured if each.hardware == hardware) for hardware in
             dict.fromkeys(each.hardware for each in warmups.measured)]  # fmt: skip
    rest = [each for each in warmups.measured if each not in first]
    chosen = (first + rest)[:MOST_SETTINGS]
    return [each for each in warmups.measured if each in chosen]


def columns_of(settings: list[Setting]) -> int:
    """How many columns of panels the settings need."""
    return max(len(sizes_of(setting)) for setting in settings)


def sizes_of(setting: Setting) -> list[SizeRuns]:
    """The points that get a panel: those that were measured or ran out of memory."""
    return pick([point for point in setting.points if point.measured or point.lost], MOST_SIZES)


def title(point: SizeRuns) -> str:
    """`small · 129M`."""
    count = f" · {theme.parameter_number(point.parameters)}" if point.parameters == point.parameters else ""
    return theme.short(point.size, 14) + count


def name_row(row: list, points: list[SizeRuns], warmups: Warmups, setting: Setting, settings: list[Setting]) -> None:
    """The size above each panel, and above the first one the setting, where there are several."""
    room = "\n" if len(settings) > 1 else ""
    for point, panel in zip(points, row, strict=False):
        panel.set_title(room + title(point))
    if room:
        text = row[0].annotate(setting_name(warmups, setting), (0, 1), (0, 17), xycoords="axes fraction", fontsize=8,
                               textcoords="offset points", va="bottom", color=colours.MUTED)  # fmt: skip
        text.set_in_layout(False)  # else the column would be as wide


def setting_name(warmups: Warmups, setting: Setting) -> str:
    """`context 128, fp32, batch 4`, with the machine before it where there are several."""
    return (f"{theme.short(setting.hardware, 40)}, " if len(warmups.hardware) > 1 else "") + setting.title
