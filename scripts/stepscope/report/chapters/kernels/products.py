"""Matrix products: their share of a step, the units and tiles that they use, and the rate that follows."""

from stepscope.report.chapters.kernels.words import of_range, percents, place, steps
from stepscope.report.data.bound import products
from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.data.kernels import at_place_of, mix, tiles, whole_steps
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.order import ordered, precision_rank

_SHARE, _UNIT = "what share do matrix products take", "which units and tiles do products use"
_UNITS = {"tensor core": "tensor cores", "SIMT": "SIMT units"}
_ALIKE = 0.1  # two mean tiles that differ by less count as the same


def mix_takeaway(machine: Machine, own: dict) -> tuple[Finding, ...]:
    """The products' share in each precision that was profiled."""
    found = [each for row in whole_steps(machine.profile, machine.hardware) if (each := mix(machine.profile, row))]
    numbers, told, counts = {}, [], []
    for precision in ordered([each.row["precision"] for each in found], key=precision_rank):
        same = [each for each in found if each.row["precision"] == precision]
        rows = [each.row for each in same]
        numbers[f"share_{precision}"] = percents([each.share for each in same], rows)
        told.append(f"{{share_{precision}}} in {precision}")
        counts.append(steps(rows))
    if not told:
        return ()
    if len(set(counts)) == 1:
        scope = f" ({counts[0]}{' each' * (len(counts) > 1)})"
    else:
        told, scope = [f"{each} ({many})" for each, many in zip(told, counts, strict=True)], ""
    time = machine.profile.words(own).time
    answer = f"Of a step's {time} matrix products take {formatting.listing(told)}{scope}."
    low = [each.share for each in found if each.row["precision"] == own["precision"]]
    advice = f"In {own['precision']} fuse the rest first." if low and max(low) < 0.5 else ""
    return (Finding(_SHARE, answer, numbers, machine.hardware, advice=advice),)


def product_findings(machine: Machine, own: dict) -> tuple[Finding, ...]:
    """Units and rates by precision at one place, and tiles of forward and backward."""
    there = at_place_of(whole_steps(machine.profile, machine.hardware), own)
    rows = [there[precision] for precision in sorted(there, key=precision_rank)]
    return tuple(each for each in (_units(machine, rows), _tile_sizes(machine, rows)) if each)


def _units(machine: Machine, rows: list[dict]) -> Finding | None:
    """On which unit the products run, and their rate beside that of a large product."""
    numbers, told = {}, []
    for row in rows:
        found, reached = tiles(machine.profile, row, "step"), products(machine.profile, row, "step").get("tflops")
        ceiling = matmul_ceiling(machine.tables["ceilings"], machine.hardware, row["precision"])
        if found and found.unit and reached and ceiling:
            name = row["precision"]
            numbers[f"rate_{name}"] = Number(reached, (row["cell"],))
            numbers[f"ceiling_{name}"] = Number(ceiling, (row["cell"],))
            unit = _UNITS.get(found.unit, found.unit)
            told.append(f"{{rate_{name}}} of {{ceiling_{name}}} on {unit} in {name}")
    if not told:
        return None
    answer = f"Products of {place(rows[0])} reach, of a large one's TFLOP/s, {formatting.listing(told)}."
    return Finding(_UNIT, answer, numbers, machine.hardware)


def _tile_sizes(machine: Machine, rows: list[dict]) -> Finding | None:
    """How large a tile of the output a thread block computes in backward, beside forward, where the two differ."""
    ratios = {}
    for row in rows:
        forward, backward = (tiles(machine.profile, row, phase) for phase in ("forward", "backward"))
        if forward and backward and forward.outputs and backward.outputs:
            ratio = backward.outputs / forward.outputs
            if abs(ratio - 1) > _ALIKE:
                ratios[row["precision"]] = (ratio, row)
    if not ratios:
        return None
    numbers = {f"ratio_{name}": of_range([ratio], [row]) for name, (ratio, row) in ratios.items()}
    told = formatting.listing([f"{{ratio_{name}}} ({name})" for name in ratios])
    smaller = [name for name, (ratio, _) in ratios.items() if ratio < 1]
    cause = f"Smaller tiles load operands more often ({formatting.listing(smaller)})." if smaller else ""
    answer = f"In backward a thread block's output tile is {told} times forward's."
    return Finding(_UNIT, answer, numbers, machine.hardware, cause=cause)
