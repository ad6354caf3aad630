"""All figures of the report: what each is called and drawn by. One without rows in the tables is
not drawn."""

from collections.abc import Callable, Iterable
from pathlib import Path

from matplotlib.figure import Figure

from stepscope.files import write_whole
from stepscope.results.tables import Tables

from . import (
    across,
    attention,
    formats,
    ladder,
    learning,
    memory,
    roofline,
    start,
    steps,
    theme,
    timeline,
    where,
)

Draw = Callable[[Tables], Figure | None]
OF_MACHINE: dict[str, Draw] = {
    each.__name__: each
    for each in (
        where.waterfall,
        where.categories,
        steps.step_parts,
        steps.time_by_context,
        steps.launches,
        steps.precision_speedup,
        timeline.timeline,
        timeline.one_attention,
        roofline.roofline,
        memory.memory_over_step,
        memory.memory_of_inference,
        memory.memory_of_forward,
        memory.memory_from_cold,
        memory.memory_growth,
        attention.attention_time,
        attention.attention_rates,
        formats.forced,
        start.warmup,
        start.first_step,
        ladder.ladder,
        steps.ranks,
        learning.curves,
    )
}
OF_ALL: dict[str, Draw] = {each.__name__: each for each in (across.machines, across.published)}
NAMES = [*OF_MACHINE, *OF_ALL]


def draw_all(tables: Path, out: Path, only: Iterable[str] = ()) -> list[str]:
    """Write NAME.svg of the first machine, NAME-MACHINE.svg of each other and NAME.svg of all
    machines, all or none.

    only: names; empty for all. What has nothing to show is not written, and removed if it was
    there. Returns the names of the files without `.svg`.
    """
    wanted = set(only) or set(NAMES)
    every = Tables(tables, own_steps=False)
    drawn = {name: theme.render(OF_ALL[name], every) for name in OF_ALL if name in wanted}

    for at, machine in enumerate(every.machines):
        ending = f"-{machine}" if at else ""
        own = Tables(tables, machine, own_steps=False)
        for name, draw in OF_MACHINE.items():
            if name in wanted:
                drawn[f"{name}{ending}"] = theme.render(draw, own)

    shown = {name: svg for name, svg in drawn.items() if svg}
    out.mkdir(parents=True, exist_ok=True)  # also where there is nothing to show
    write_whole({out / f"{name}.svg": svg for name, svg in shown.items()})

    for name in drawn.keys() - shown.keys():
        (out / f"{name}.svg").unlink(missing_ok=True)

    return list(shown)
