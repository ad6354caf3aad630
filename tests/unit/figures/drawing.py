"""What the tests of the figures share: tables by name, a figure as it is drawn, and what can be read from it."""

import matplotlib
import pandas as pd
from stepscope.figures import theme


class Made(dict):
    """Tables by name; one that was not made is empty, as with the tables of a folder."""

    def __missing__(self, name: str) -> pd.DataFrame:
        return pd.DataFrame()


def cell_row(study, size="small", precision="fp32", mode="step", hardware="gpu", status="ok", context=256.0, **more):
    """A cell of a study that runs the model: a row of its table."""
    end = "" if mode == "step" else f"/mode={mode}"
    row = {"cell": f"{hardware}/{study}/{size}/ctx{context:.0f}/{precision}{end}", "hardware": hardware, "size": size,
           "context": context, "batch": 4.0, "precision": precision, "mode": mode, "attention": "naive",
           "compile": "none", "optimizer": "own", "checkpoint": "0", "repeat": 1.0,
           "parameters": {"small": 1e8, "medium": 4e8}[size], "status": status, "throttle": None,
           "device": "cpu" if hardware == "cpu" else "cuda"}  # fmt: skip
    return row | more


def draw(function, *arguments):
    """The figure, laid out as when it is written."""
    with matplotlib.rc_context(theme.STYLE):
        figure = function(*arguments)
        figure.draw_without_rendering()
    return figure


def svg(function, tables) -> str:
    """The figure as it is written."""
    return theme.render(function, tables)["svg"].decode()


def texts(artist) -> list[str]:
    """All visible words."""
    return [each.get_text() for each in artist.findobj(matplotlib.text.Text) if each.get_text() and each.get_visible()]


def line(panel, name: str, at: int = 0) -> tuple[list, list]:
    """(x, y) of the line with this label."""
    own = [each for each in panel.lines if each.get_label() == name][at]
    return list(own.get_xdata()), list(own.get_ydata())


def lines_of(panel) -> dict[str, tuple[list, list]]:
    """label -> (x, y) of the lines that have one."""
    named = [each.get_label() for each in panel.lines if not each.get_label().startswith("_")]
    return {name: line(panel, name, -1) for name in named}


def crosses(panel) -> list[tuple[float, str]]:
    """(x, colour) of each mark of what ran out of memory."""
    found = [each for each in panel.lines if each.get_marker() == "X"]
    return [(each.get_xdata()[0], each.get_markeredgecolor()) for each in found]
