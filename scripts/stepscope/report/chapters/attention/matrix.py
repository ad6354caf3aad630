"""What the length × length matrix of attention costs in time and memory, and what the head dimension costs."""

from stepscope.axes import DIRECTIONS
from stepscope.report.data.attention import NAIVE, Group, before_backward
from stepscope.report.data.attention_fastest import typical_d
from stepscope.report.data.attention_growth import Growth, factors, growths, of_shared_lengths
from stepscope.report.data.attention_memory import (
    first_too_long,
    largest,
    memory_of,
    naive_tensors,
    needed,
    ran_out_first,
)
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.sizes import percent_change, size

IN_PROPORTION = 1.1  # times the lengths' ratio, up to which memory is said to grow in proportion to it
# How much of what d grows by time may grow by: up to the first it is said not to follow d, from the second on to do so.
UNTOUCHED, FOLLOWS = 0.25, 0.75
_BEFORE = "before backward"


def time_growth(group: Group, precision: str) -> Finding | None:
    """Naive attention's time at the longest length over that at the one before, beside the lengths' square."""
    d_head = typical_d(group, precision)
    own = [each for each in _of_naive(group, precision, d_head) if each.quantity in DIRECTIONS]
    if not own:
        return None
    first, last = own[0].lengths
    numbers = {each.quantity: Number(each.factor, each.cells, _two_decimals) for each in own}
    numbers["square"] = Number((last / first) ** 2, show=_short)
    times = ["times as long", *["times"] * (len(own) - 1)]
    told = formatting.listing([f"{{{x.quantity}}} {how} {x.quantity}" for x, how in zip(own, times, strict=True)])
    answer = (
        f"From length {first:,.0f} to {last:,.0f} ({precision}, d = {d_head:,.0f}) naive attention takes {told}; the "
        "lengths' square predicts {square}."
    )
    return Finding("how does time grow with the length", answer, numbers, group.hardware)


def _of_naive(group: Group, precision: str, d_head: float) -> list[Growth]:
    found = [each for each in growths(group) if each.implementation == NAIVE and each.precision == precision]
    return of_shared_lengths([each for each in found if each.d_head == d_head])


def _two_decimals(value: float) -> str:
    return formatting.fixed(value, 2)


def _short(value: float) -> str:
    return f"{value:,.3g}"


def memory(group: Group, precision: str) -> Finding | None:
    """What naive attention holds before backward, measured and in closed form, and how much of it is the matrix."""
    row = _longest(group, precision, NAIVE)
    if not row:
        return None
    held, predicted, cells = before_backward(row), needed(row, _BEFORE), (row["cell"],)
    square = sum(each.size for each in naive_tensors(row) if _BEFORE in each.moments and _is_square(each.formula))
    numbers = {"held": Number(held, cells, size), "gap": Number(abs(held / predicted - 1), cells, formatting.percent)}
    numbers["square"] = Number(square / predicted, cells, _share_of_matrix)
    where = f"length {row['length']:,.0f} ({precision}, d = {row['d_head']:,.0f})"
    answer = f"At {where} naive attention holds {{held}} before backward, predicted to within {{gap}}."
    cause = "{square} of that is length × length: the softmax's exponentials and weights."
    return Finding("what memory does attention hold", answer, numbers, group.hardware, cause)


def _is_square(formula: str) -> bool:
    return "length²" in formula


def _share_of_matrix(share: float) -> str:
    return formatting.percent(share, 3)


def _longest(group: Group, precision: str, name: str) -> dict:
    """An implementation's backward row at the longest length of which the memory is known; empty without one."""
    d_head = typical_d(group, precision)
    rows = (group.at(name, precision, d_head, length, "backward") for length in group.values("length", precision))
    return max((row for row in rows if row and before_backward(row)), key=lambda row: row["length"], default={})


def recomputation(group: Group, precision: str) -> Finding | None:
    """What the implementations hold whose memory grows in proportion to the length, beside naive attention."""
    d_head = typical_d(group, precision)
    found = [each for each in growths(group) if (each.precision, each.d_head) == (precision, d_head)]
    found = of_shared_lengths([each for each in found if each.quantity == "memory"])
    flat = [each.implementation for each in found if each.factor <= IN_PROPORTION * each.last / each.first]
    naive, rows = _longest(group, precision, NAIVE), [_longest(group, precision, name) for name in flat]
    if not naive or not rows or any(row["length"] != naive["length"] for row in rows):
        return None
    most = max(rows, key=before_backward)
    numbers = {
        "flat": Number(len(flat), tuple(row["cell"] for row in rows), formatting.count),
        "held": Number(before_backward(most), (most["cell"],), size),
    }
    verb = "holds" if len(flat) == 1 else "hold at most"
    answer = f"{{flat}} of {len(found):,} implementations {verb} {{held}} there."
    cause = "Backward computes the matrix anew, by tiles; their memory grows with the length."
    return Finding("what does recomputation save", answer, numbers, group.hardware, cause)


def out_of_memory(rows: list[dict], hardware: str) -> Finding | None:
    """Where naive attention ran out of memory, or that it did nowhere: measured beside the closed form."""
    question = "where does naive attention run out of memory"
    if row := ran_out_first(rows):
        cells = (row["cell"],)
        numbers = {"need": Number(needed(row, row["direction"]), cells, size)}
        answer = (
            f"Naive attention ran out of memory at length {row['length']:,.0f} ({_point(row)}, {row['direction']})."
        )
        cause = "The closed form asks for {need} there."
        if capacity := memory_of(row):
            numbers["capacity"] = Number(capacity, cells, size)
            fits = numbers["need"].value <= capacity
            cause = "The closed form asks for {need} there, the card has {capacity}" + ", so it should fit." * fits
            cause += "." * (not fits)
        return Finding(question, answer, numbers, hardware, cause)
    row = largest(rows)
    length = first_too_long(row, "backward") if row else None
    if length is None:
        return None
    cells, predicted = (row["cell"],), needed(row, "backward")
    numbers = {"peak": Number(row["peak_bytes"], cells, size)}
    numbers["gap"] = Number(abs(row["peak_bytes"] / predicted - 1), cells, formatting.percent)
    numbers["length"] = Number(length, cells, formatting.count)
    answer = (
        "Naive attention ran out of memory nowhere; its largest peak, {peak} "
        f"({_point(row)}), was predicted to within {{gap}}."
    )
    cause = "By that formula it runs out from length {length} on."
    return Finding(question, answer, numbers, hardware, cause)


def _point(row: dict) -> str:
    return f"{row['precision']}, d = {row['d_head']:,.0f}"


def head_dimension(group: Group, precision: str, second: str) -> Finding | None:
    """What the largest d takes over the smallest at the longest length: in naive attention, and in another one."""
    found = [each for each in factors(group) if each.precision == precision]
    times = [each for each in found if each.quantity in DIRECTIONS and each.implementation in (NAIVE, second)]
    naive = [each for each in times if each.implementation == NAIVE]
    if not naive:
        return None
    smallest, largest_d, length = naive[0].smallest, naive[0].largest, max(each.length for each in naive)
    ratio = largest_d / smallest
    worst = max(naive, key=lambda each: each.factor)
    numbers = {
        "ratio": Number(ratio, worst.cells, _short),
        "naive": Number(worst.factor, worst.cells, _two_decimals),
    }
    answer = (
        f"For {{ratio}} times the arithmetic, d = {largest_d:,.0f} instead of {smallest:,.0f}, naive attention takes "
        f"{{naive}} times as long {worst.quantity} at length {length:,.0f} ({precision})."
    )
    grown = (worst.factor - 1) / (ratio - 1)
    cause = "Its time follows d only in part."
    if grown >= FOLLOWS:
        cause = "Its time follows d: arithmetic sets it."
    elif grown <= UNTOUCHED:
        cause = "The scores, whose number d does not change, set its time"
        held = [each for each in found if each.quantity == "memory" and each.implementation == NAIVE]
        if held and (held[0].factor - 1) / (ratio - 1) <= UNTOUCHED:
            numbers["held"] = Number(held[0].factor - 1, held[0].cells, percent_change)
            cause += " and memory ({held})"
        cause += "."
    own = [each for each in times if each.implementation == second and each.length == length]
    if second != NAIVE and own:
        other = max(own, key=lambda each: each.factor)
        ends = (group.at(second, precision, d, length, other.quantity) for d in (smallest, largest_d))
        badge = " (throttled)" * any(bool(row.get("throttle")) for row in ends)
        cause += f" {second} takes {{other}} times as long {other.quantity}{badge}."
        numbers["other"] = Number(other.factor, other.cells, _two_decimals)
    return Finding("what does the head dimension cost", answer, numbers, group.hardware, cause)
