"""The ladder study's tables of checkpointing: memory and time for each k, and the rule for the best k."""

from dataclasses import dataclass

from stepscope.report.data.ladder import TIMES, Ladder, agrees, every, peak, time, times, whole_peak
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.sizes import change_cell, size, size_cell
from stepscope.report.studies.ladder.tables import notes
from stepscope.tables.ladder_checkpoint import ALIKE

_OPTIONS = ("precision", "attention", "compile", "optimizer", "compared_with")


@dataclass
class Recomputed:
    """Cells of one ladder that differ in k alone, by k, and the rung without checkpointing that they vary."""

    ladder: Ladder
    base: dict | None
    rows: list[dict]

    @property
    def place(self) -> str:
        """`small, context 128, bf16, SDPA`: the ladder and what the cells have in common."""
        return f"{self.ladder.place}, {self.options}"

    @property
    def options(self) -> str:
        """`bf16, attention=sdpa`."""
        row = self.rows[0]
        neutral = {"attention": "naive", "compile": "none", "optimizer": "own"}
        more = [f"{name}={row[name]}" for name, value in neutral.items() if row.get(name) not in (None, value)]
        return ", ".join([str(row["precision"]), *more])

    @property
    def is_compiled(self) -> bool:
        """Whether a compiler chooses what is kept."""
        return self.rows[0].get("compile") not in (None, "none")

    @property
    def is_of_tensors(self) -> bool:
        """Whether peaks are the allocator's, as the closed form's; else they are those of the whole process."""
        return any(formatting.known(row.get("peak_allocated_bytes")) for row in self.rows)

    @property
    def lowest(self) -> list[dict]:
        """The cells whose peak is within ALIKE of the lowest."""
        whole = [row for row in self.rows if whole_peak(row) and agrees(row) is not False]
        least = min((whole_peak(row) for row in whole), default=0)
        return [row for row in whole if whole_peak(row) <= (1 + ALIKE) * least]

    @property
    def best(self) -> dict | None:
        """The fastest of the cells with the lowest peak."""
        return min(self.lowest, key=lambda row: time(row) or float("inf"), default=None)

    @property
    def is_confirmed(self) -> bool | None:
        """Whether the closed form's k has the lowest peak; None where it was not tried, or peaks are of processes."""
        told = self.rows[0].get("predicted_best_checkpoint")
        if not self.is_of_tensors or told not in [every(row) for row in self.rows if whole_peak(row)]:
            return None
        return told in [every(row) for row in self.lowest]


def recomputed(found: list[Ladder]) -> list[Recomputed]:
    """The cells with checkpointing of all ladders."""
    result = []
    for ladder in found:
        groups: dict[tuple, list[dict]] = {}
        for row in ladder.checkpoints:
            groups.setdefault(tuple(str(row.get(name)) for name in _OPTIONS), []).append(row)
        result += [Recomputed(ladder, ladder.at(rows[0].get("compared_with")), rows) for rows in groups.values()]
    return result


def saved_share(row: dict, base: dict | None) -> float | None:
    """Change of the peak by checkpointing, a share of the peak without."""
    own, other = whole_peak(row), whole_peak(base) if base else None
    return own / other - 1 if own and other else None


def compared(row: dict, base: dict | None) -> str | None:
    """The phase that both have a time of: `step`, else `forward_backward`."""
    return next((prefix for prefix in TIMES if base and time(row, prefix) and time(base, prefix)), None)


def longer(row: dict, base: dict | None) -> float | None:
    """Time of a step over that without checkpointing, else that of forward and backward."""
    prefix = compared(row, base)
    return time(row, prefix) / time(base, prefix) if prefix else None


def in_forwards(row: dict, base: dict | None) -> float | None:
    """The time that checkpointing adds, in forward passes: those without it, else its own, which do the same."""
    prefix = compared(row, base)
    forward = (time(base, "forward") or time(row, "forward")) if prefix else None
    return (time(row, prefix) - time(base, prefix)) / forward if forward else None


def checkpoint_table(hardware: str, found: list[Recomputed]) -> Table | None:
    """A row for each k, the rung without checkpointing first; None without such cells."""
    lines, rows = [], []
    for one in found:
        for row in [one.base] * (one.base is not None) + one.rows:
            k = every(row)
            predicted = row.get("predicted_peak_bytes")
            comparable = one.is_of_tensors and formatting.known(predicted) and whole_peak(row)
            off = predicted / whole_peak(row) - 1 if comparable else None
            extra, ratio = in_forwards(row, one.base) if k else None, longer(row, one.base) if k else None
            of = "f+b" if compared(row, one.base) == "forward_backward" else ""
            lines.append([
                Cell(one.place), Cell(f"{k}" if k else "none", "best" if row is one.best else "", k),
                size_cell(peak(row), badges=("oom",) * (row["status"] == "oom")),
                change_cell(saved_share(row, one.base) if k else None), size_cell(predicted), change_cell(off),
                _ms(row), Cell(times(ratio), of, ratio) if ratio else Cell("–"),
                Cell(formatting.fixed(extra, 2), of, extra) if formatting.known(extra) else Cell("–"),
            ])  # fmt: skip
            rows.append(row)
    if not lines:
        return None
    columns = [Column("cells", number=False, wrap=True), Column("k"), Column("measured", group="peak memory")]
    columns += [Column("± %", group="peak memory"), Column("predicted", group="peak memory")]
    columns += [Column("off by %", group="peak memory"), Column("step", "ms"), Column("step", "over none")]
    columns += [Column("added", "forwards")]
    told = [
        "± %: against no checkpointing. Added: the time that a step takes longer, in forward passes of the rung "
        "without checkpointing; every block is computed once more, whatever k is."
    ]
    if any(compared(row, one.base) == "forward_backward" for one in found for row in one.rows):
        told[0] += (
            " f+b: of forward and backward, as the step without checkpointing has no time; in forward passes of the "
            "cell itself."
        )
    if any(one.is_compiled for one in found):
        told.append("The closed form is of the code as it is written; compiled blocks keep what the compiler chooses.")
    if any(not one.is_of_tensors and any(map(whole_peak, one.rows)) for one in found):
        told.append("Measured is the whole process's memory, with its libraries; the closed form counts tensors alone.")
    caption = f"Checkpointing every k blocks, on {hardware}: peak memory, measured and predicted, and time of a step."
    return Table(f"ladder-checkpoint-{hardware}", caption, columns, lines, told + notes(rows, lines), grouped=True,
                 page_only=len(lines) > 40)  # fmt: skip


def _ms(row: dict) -> Cell:
    value = time(row, "step")
    if value:
        return Cell(formatting.significant(value), sort=value, badges=("noisy",) * bool(row.get("step_noisy")))
    badges = (row["status"],) if row["status"] in ("unsupported", "failed", "missing") else ()
    return Cell("" if badges else "–", badges=badges)


def rule_table(hardware: str, found: list[Recomputed]) -> Table | None:
    """What the rule for the best k is made of, and the best that was found."""
    lines = []
    for one in found:
        row = one.rows[0]
        boundary, block, layers = row.get("boundary_bytes"), row.get("block_saved_bytes"), row.get("num_layers")
        if not all(map(formatting.known, (boundary, block, layers))):
            continue
        best, told = one.best, one.rows[0].get("predicted_best_checkpoint")
        tried = [str(every(each)) for each in one.rows if each["status"] in ("ok", "oom")]
        lines.append([
            Cell(one.place), Cell(formatting.count(layers), sort=layers), size_cell(boundary), size_cell(block),
            Cell(formatting.significant(block / boundary), sort=block / boundary),
            _k(row.get("predicted_checkpoint"), 2), _k(layers**0.5, 2), _k(told, 0),
            Cell(str(every(best)) if best else "–", f"of {formatting.listing(tried, 10)}" if tried else "",
                 every(best) if best else None),
        ])  # fmt: skip
    if not lines:
        return None
    columns = [Column("cells", number=False, wrap=True), Column("blocks n"), Column("boundary b")]
    columns += [Column("saved by a block a"), Column("a / b"), Column("√(n b / a)", group="best k")]
    columns += [Column("√n", group="best k"), Column("of closed form", group="best k")]
    columns += [Column("found", group="best k")]
    note = (
        "b: one version of the residual stream, kept at a group's boundary. a: what a block saves for backward, with "
        "autocast's copies of its weights. A rule below 1 means that each block is a group of its own. Closed form: "
        "the k that keeps least, of those whose peak of a step, gradients and optimizer included, is within "
        f"{formatting.percent(ALIKE)} of the lowest. Found: of those that ran within it, the fastest."
    )
    return Table(f"ladder-rule-{hardware}", f"The rule for k, on {hardware}.", columns, lines, [note])


def _k(value: object, decimals: int) -> Cell:
    return Cell(formatting.fixed(value, decimals), sort=value) if formatting.known(value) else Cell("–")


def saving_sentence(one: Recomputed) -> str:
    """What the best k saves and costs; empty where no cell with checkpointing ran its step."""
    best, base = one.best, one.base
    if not best:
        return ""
    share, ratio = saved_share(best, base), longer(best, base)
    of = "forward and backward" if compared(best, base) == "forward_backward" else "a step"
    is_noisy = any((each or {}).get(f"{compared(best, base)}_noisy") for each in (best, base))
    cost = f" for {formatting.significant(ratio)} times the time of {of}{' (noisy)' * is_noisy}" if ratio else ""
    if share is None:
        lowest = f"{size(whole_peak(best))}{',' * bool(cost)}{cost}"
        return f"{one.place}: k = {every(best)} has the lowest peak, {lowest}{_needed(base)}"
    change = formatting.percent(abs(share))
    peaks = f"{size(whole_peak(base))} to {size(whole_peak(best))} ({'−' if share < 0 else '+'}{change})"
    return f"{one.place}: k = {every(best)} takes the peak from {peaks}{cost}"


def _needed(base: dict | None) -> str:
    return "; without checkpointing the step ran out of memory" if base and base["status"] == "oom" else ""
