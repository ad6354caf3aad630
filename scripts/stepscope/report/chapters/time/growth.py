"""How a step's time grows with the parameters and with the context, beside what its FLOP do."""

from itertools import pairwise

from stepscope.report.chapters.parts import count_range, range_of_cells
from stepscope.report.data.bound import LAUNCH_BOUND
from stepscope.report.data.growth import Growth, power_law
from stepscope.report.data.own_models import is_own
from stepscope.report.data.profile_parts import product_flops
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.step_parts import StepParts
from stepscope.report.data.timing_grid import TimingGrid, cells_of
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number, key_of
from stepscope.report.kit.formatting import known

ALIKE = 1.05  # the most kernels over the fewest that count as the same number


# Parameters -----------------------------------------------------------------------------------------------------------


def with_parameters(grid: TimingGrid) -> Finding | None:
    """The exponents of time and FLOP over parameters at the context that has most cells; with few sizes ratios.

    Models of one's own are no sizes of one model, and have no part in it.
    """
    grid = TimingGrid([row for row in grid.rows if not is_own(row)])
    context = grid.fullest_context()
    sizes = _sizes(grid, context) if context is not None else []
    if len(sizes) < 2:
        return None
    rows = {name: [grid.at(size, context, name) for size in sizes] for name in grid.shown}
    flop = [(row["parameters"], product_flops(row, "step")) for row in rows[grid.shown[0]]]
    laws = {name: power_law((row["parameters"], row["step_median_ms"]) for row in own) for name, own in rows.items()}
    if None in laws.values():
        return _ratios(rows, flop)
    numbers = {key_of(name): Number(law.exponent, cells_of(rows[name]), _shown(law)) for name, law in laws.items()}
    arithmetic = power_law(flop).exponent
    numbers["flop"] = Number(arithmetic, cells_of(rows[grid.shown[0]]), lambda value: f"{value:.2f}")
    parts = formatting.listing([f"{{{key_of(name)}}} in {name}" for name in laws])
    scope = f"{len(sizes):,} sizes, context {context:,.0f}"
    answer = f"Time grows as parameters to the power {parts}, FLOP to the power {{flop}} ({scope})."
    higher = [name for name, law in laws.items() if law.high < arithmetic]
    lower = [name for name, law in laws.items() if law.low > arithmetic]
    causes = [
        f"Larger sizes reach {word} rates{_where(own, grid)}."
        for word, own in (("higher", higher), ("lower", lower))
        if own
    ]
    hardware = grid.rows[0]["hardware"]
    return Finding("how does time grow with parameters", answer, numbers, hardware, " ".join(causes))


def _where(precisions: list[str], grid: TimingGrid) -> str:
    return "" if precisions == grid.shown else f" in {formatting.listing(precisions)}"


def _sizes(grid: TimingGrid, *contexts: float) -> list[str]:
    """Sizes of which a step was timed at these contexts in every precision that is shown, by parameters."""
    places = [(context, name) for context in contexts for name in grid.shown]
    return [
        size["size"]
        for size in grid.sizes
        if all(_is_timed(grid.at(size["size"], context, name)) for context, name in places)
    ]


def _is_timed(row: dict | None) -> bool:
    return row is not None and known(row.get("step_median_ms")) and product_flops(row, "step") is not None


def _shown(law: Growth):
    return lambda value: f"{value:.2f} [{law.low:.2f}, {law.high:.2f}]"


def _ratios(rows: dict[str, list[dict]], flop: list[tuple[float, float]]) -> Finding:
    """The largest size over the smallest: too few lie between for a law."""
    first, last = (next(iter(rows.values()))[at] for at in (0, -1))
    cells = cells_of([first, last])
    numbers = {
        "larger": Number(last["parameters"] / first["parameters"], cells),
        "flop": Number(flop[-1][1] / flop[0][1], cells),
    }
    for name, own in rows.items():
        ratio = own[-1]["step_median_ms"] / own[0]["step_median_ms"]
        numbers[key_of(name)] = Number(ratio, cells_of([own[0], own[-1]]))
    parts = formatting.listing([f"{{{key_of(name)}}} in {name}" for name in rows])
    answer = (
        f"{last['size']} has {{larger}} times the parameters and {{flop}} times the FLOP of {first['size']}; its step "
        f"takes this many times as long: {parts} (context {first['context']:,.0f})."
    )
    return Finding("how does time grow with parameters", answer, numbers, first["hardware"])


# Context --------------------------------------------------------------------------------------------------------------


def with_context(machine: Machine, grid: TimingGrid) -> Finding | None:
    """How many times as long a step takes at the second context as at the first, at the last as at the one before."""
    steps = [(both, sizes) for both in pairwise(grid.contexts) if (sizes := _sizes(grid, *both))]
    if not steps:
        return None
    numbers, sentences, told = {}, [], ""
    for at, ((short, long), sizes) in enumerate(steps[:1] + steps[1:][-1:]):
        pairs = {
            name: [(grid.at(size, short, name), grid.at(size, long, name)) for size in sizes] for name in grid.shown
        }
        for name, own in pairs.items():
            ratios = [after["step_median_ms"] / before["step_median_ms"] for before, after in own]
            numbers[key_of(name, at)] = range_of_cells(ratios, own, ["step"])
        flop = [product_flops(after, "step") / product_flops(before, "step") for before, after in pairs[grid.shown[0]]]
        numbers[f"flop_{at}"] = Number(flop, numbers[key_of(grid.shown[0], at)].cells, formatting.value_range)
        parts = formatting.listing([f"{{{key_of(name, at)}}} in {name}" for name in grid.shown])
        word = "model" if any(is_own(row) for row in grid.rows if row["size"] in sizes) else "size"
        many = f" ({len(sizes):,} {word}{'s' * (len(sizes) > 1)})"
        what = f"From {'' if at else 'context '}{short:,.0f} to {long:,.0f}{many * (many != told)}"
        told = many
        sentences.append(f"{what} FLOP grow {{flop_{at}}} times; time {parts}.")
    cause, more = _launches(machine, grid)
    hardware = machine.hardware
    return Finding("how does time grow with context", " ".join(sentences), numbers | more, hardware, cause)


def _launches(machine: Machine, grid: TimingGrid) -> tuple[str, dict[str, Number]]:
    """That a size launches as many kernels at each context, and waits for them at the shortest; empty if not."""
    by_series: dict[tuple[str, str], list[StepParts]] = {}
    for each in machine.steps:
        if each.precision in grid.shown[-1:]:
            by_series.setdefault((each.row["size"], each.precision), []).append(each)
    own = sorted(max(by_series.values(), key=len, default=[]), key=lambda each: each.row["context"])
    counts = [machine.profile.row("phases", each.row["cell"], phase="step").get("kernels_per_step") for each in own]
    if len(own) < 2 or not all(known(count) and count > 0 for count in counts) or max(counts) > ALIKE * min(counts):
        return "", {}
    first = own[0]
    busy = first.busy / first.total
    if busy >= LAUNCH_BOUND:
        return "", {}
    numbers = {
        "kernels": Number(counts, tuple(each.row["cell"] for each in own), count_range),
        "busy": Number(busy, (first.row["cell"],), formatting.percent),
    }
    contexts = "both contexts" if len(own) == 2 else f"any of {len(own):,} contexts"
    what = f"In {first.precision} {first.row['size']} launches {{kernels}} kernels at {contexts}"
    cause = f"{what}; at {first.row['context']:,.0f} they keep the GPU busy for {{busy}} of the step."
    return cause, numbers
