"""What the memory study says, for the summary and for the section's opening."""

from collections import Counter
from collections.abc import Iterable, Mapping

from stepscope.report.data.memory import (
    REFERENCE,
    Limit,
    Memory,
    PeakChange,
    is_cold,
    is_inference,
    limits,
    part,
    peak_apart,
    peak_changes,
    prediction_causes,
    prediction_error,
    saved_by_blocks,
    title,
)
from stepscope.report.data.own_models import is_own
from stepscope.report.data.unprofiled import FREE, mode
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import by_fields
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.order import label, machine_labels, ordered, precision_rank
from stepscope.report.kit.sizes import EXACT, changes, largest_shares, percent_change, shares, size

_SAME = 0.01  # a difference of the peaks below this share is called none
_RECORDERS = {
    "allocator history": "The history of PyTorch's allocator",
    "torch.profiler": "torch.profiler, on the CPU,",
}


def findings(memory: Memory) -> list[Finding]:
    """The findings, machine by machine."""
    if not memory.all:
        return [Finding("memory", "No memory cell is in the tables.")]
    found = []
    for hardware in machine_labels([row["hardware"] for row in memory.all]):
        found += _of_one_machine(memory, hardware)
    return found


def _of_one_machine(memory: Memory, hardware: str) -> list[Finding]:
    rows = [row for row in memory.first_runs(memory.measured) if row["hardware"] == hardware]
    found = [
        *_peaks(memory, rows, hardware),
        _largest_step(memory, rows, hardware),
        *_precisions(memory, hardware),
        _squared(memory, rows, hardware),
        _limits(memory, hardware),
        _predictions(memory, rows, hardware),
        _lost(memory, hardware),
    ]
    return [each for each in found if each]


def _what(name: str) -> str:
    return "a training step" if name == "step" else label(name)


def _cells(rows: Iterable[dict]) -> tuple[str, ...]:
    return tuple(row["cell"] for row in rows)


def _modes(rows: Iterable[dict]) -> list[str]:
    """The cells' modes, the training step first."""
    return sorted({mode(row) for row in rows}, key=lambda name: (name != "step", name))


def _peaks(memory: Memory, rows: list[dict], hardware: str) -> list[Finding]:
    """How large the peaks of a mode are, of which sizes, and where they lie."""
    found = []
    for name in _modes(rows):
        own = [row for row in rows if mode(row) == name]
        ends = {"least": min(own, key=memory.peak), "most": max(own, key=memory.peak)}
        numbers = {which: Number(memory.peak(row), _cells([row]), size) for which, row in ends.items()}
        numbers["places"] = Number(_places(memory, own), _cells(own), _places_text)
        low, high = (f"{{{which}}} ({title(row, memory, ('mode', 'hardware'))})" for which, row in ends.items())
        text = f"from {low} to {high}" if len(own) > 1 else f"at {low}"
        wider, more = _timed_peaks(memory, own, name, hardware)
        answer = f"Recorded memory of {_what(name)} ({_sizes(own)}) peaks {text}, {{places}}{wider}."
        found.append(Finding("how high does memory peak, and where", answer, numbers | more, hardware))
    return found


def _sizes(rows: list[dict]) -> str:
    """`sizes small and 2.7B`."""
    names = list(dict.fromkeys(str(row["size"]) for row in rows))
    return f"size{'s' * (len(names) > 1)} {formatting.listing(names)}"


def _timed_peaks(memory: Memory, own: list[dict], name: str, hardware: str) -> tuple[str, dict[str, Number]]:
    """The peaks of the timing study's steps, where it has points whose memory was not recorded: words and numbers."""
    field, point = f"{name}_peak_allocated_bytes", by_fields("size", "context", "precision")
    every = [row for row in memory.timing.to_dict("records") if row["hardware"] == hardware]
    fitting = [row for row in every if row.get(f"{FREE.get(name, name)}_status") == "ok"]
    timed = [row for row in fitting if formatting.known(row.get(field))]
    if {point(row) for row in timed} <= {point(row) for row in own}:
        return "", {}
    ends = {"timed_least": min(timed, key=lambda row: row[field]), "timed_most": max(timed, key=lambda row: row[field])}
    numbers = {which: Number(row[field], _cells([row]), size) for which, row in ends.items()}
    low, high = (f"{{{which}}} ({title(row, memory, ('mode', 'hardware'))})" for which, row in ends.items())
    return f"; of all that the timing study measured and that fits, from {low} to {high}", numbers


def _places(memory: Memory, rows: list[dict]) -> dict[str, Counter]:
    """Phase -> part of the model -> how many of these cells have their peak there."""
    phases: dict[str, Counter] = {}
    for row in rows:
        summary = memory.summary(row)
        own = phases.setdefault(str(summary.get("peak_phase") or ""), Counter())
        own[part(summary.get("peak_module")).split(": ")[-1]] += 1
    return phases


def _places_text(phases: Mapping[str, Counter]) -> str:
    """`in backward (loss 8, softmax 1) in 9 and in the optimizer in 4 of 13 cells`."""
    texts = []
    for phase, parts in sorted(phases.items(), key=lambda entry: -entry[1].total()):
        named = [name for name, _ in parts.most_common(4) if name]
        counted = [f"{name} {parts[name]:,}" for name in named] if len(parts) > 1 else named
        inside = f" ({formatting.listing(counted)})" if named else ""
        often = f" in {parts.total():,}" if len(phases) > 1 else ""
        words = {"optimizer": "the optimizer", "": "no phase"}.get(phase, phase)
        texts.append(f"in {words}{inside}{often}")
    every = sum(parts.total() for parts in phases.values())
    whole = f" of {every:,} cells" if len(phases) > 1 else f" in all {every:,} cells" * (every > 1)
    return formatting.listing(texts) + whole


def _largest_step(memory: Memory, rows: list[dict], hardware: str) -> Finding | None:
    """What fills the largest peak that fits."""
    own = [row for row in rows if not is_inference(row)] or rows
    if not own:
        return None
    row = max(own, key=memory.peak)
    held = largest_shares(memory.at_peak(row), memory.requested(row))
    if not held:
        return None
    where = f"{title(row, memory, ('hardware',))}; of {_sizes(own)}"
    answer = f"The largest recorded peak that fits ({where}) consists of {{shares}} of the bytes asked for."
    return Finding("what fills the memory", answer, {"shares": Number(held, _cells([row]), shares)}, hardware)


def _precisions(memory: Memory, hardware: str) -> list[Finding | None]:
    """Each precision and mode against fp32."""
    found = [each for each in peak_changes(memory) if each.row["hardware"] == hardware]
    told = []
    for precision in ordered([each.row["precision"] for each in found], key=precision_rank):
        own = [each for each in found if each.row["precision"] == precision]
        for name in _modes(each.row for each in own):
            told.append(_precision(memory, [each for each in own if mode(each.row) == name], hardware))
    return told


def _precision(memory: Memory, found: list[PeakChange], hardware: str) -> Finding | None:
    """`found`: of one precision and mode."""
    known = sorted((each for each in found if each.share is not None), key=lambda each: each.share)
    numbers, parts = {}, []
    if known:
        ends = {"least": known[0], "most": known[-1]} if len(known) > 1 else {"least": known[0]}
        for which, each in ends.items():
            numbers |= _extreme(each, which)
        texts = [f"{{{which}}} ({_point(memory, each)}{_why(each, which)})" for which, each in ends.items()]
        parts.append(" to ".join(texts))
    if len(known) > 1:
        counts = Counter("same" if abs(each.share) <= _SAME else "more" if each.share > 0 else "less" for each in known)
        cells = tuple(cell for each in known for cell in _both(each))
        numbers |= {kind: Number(number_of, cells, formatting.count) for kind, number_of in counts.items()}
        words = {"less": "less in", "more": "more in", "same": f"the same within {100 * _SAME:.0f} % in"}
        told = [f"{word} {{{kind}}}" for kind, word in words.items() if kind in counts]
        parts.append(f"{formatting.listing(told)} of {len(known):,} points")
    alone = [each for each in found if len(each.fitting) == 1]
    for fits in ordered([each.fitting[0] for each in alone], key=precision_rank):
        names = [_point(memory, each) for each in alone if each.fitting == [fits]]
        parts.append(f"only {fits} fits at {formatting.listing(names, 4, '; ')}")
    if not parts:
        return None
    precision = found[0].row["precision"]
    sizes = _sizes([each.row for each in found])
    what = f"{precision} against {REFERENCE}, the peak of {_what(mode(found[0].row))} ({sizes})"
    return Finding(f"what does {precision} save", f"{what}: {'; '.join(parts)}.", numbers, hardware)


def _point(memory: Memory, found: PeakChange) -> str:
    return title(found.row, memory, ("mode", "precision", "hardware"))


def _why(found: PeakChange, which: str) -> str:
    """The categories that changed; or that the peak is of another moment, at which other things are alive."""
    if not found.is_moved:
        return f"{{{which}_changes}}"
    before, after = (_place_text(place) for place in found.places)
    return f": the peak moves from {before} to {after}"


def _place_text(place: tuple[str, str]) -> str:
    phase, module = place
    words = {"optimizer": "the optimizer", "": "no phase"}.get(phase, phase)
    return f"{words} ({part(module)})" if module else words


def _both(found: PeakChange) -> tuple[str, ...]:
    return _cells([found.row, found.reference])


def _extreme(found: PeakChange, which: str) -> dict[str, Number]:
    """The change, and the two categories that grew and the two that shrank most; those that explain it come first."""
    named = [list(found.named(sign).items())[:2] for sign in ((-1, 1) if found.difference <= 0 else (1, -1))]
    categories = dict(named[0] + named[1])
    numbers = {which: Number(found.share, _both(found), percent_change)}
    return numbers if found.is_moved else numbers | {f"{which}_changes": Number(categories, _both(found), _categories)}


def _categories(of_each: Mapping[str, float]) -> str:
    """`: activations −3.1 GiB, cast weights +0.8 GiB`, or nothing."""
    return f": {', '.join(changes(of_each))}" if of_each else ""


def _squared(memory: Memory, rows: list[dict], hardware: str) -> Finding | None:
    """Which share of a block's saved bytes grows with the context squared."""
    question, cells = "what grows with the context squared", _cells(rows)
    known = [each for each in saved_by_blocks(memory) if each.row["cell"] in cells and each.squared_share is not None]
    if not known:
        return None
    known.sort(key=lambda each: each.squared_share)
    ends = {"least": known[0], "most": known[-1]}
    numbers = {
        which: Number(each.squared_share, _cells([each.row]), formatting.percent) for which, each in ends.items()
    }
    if not known[-1].squared_share:
        return Finding(
            question, "Nothing of what a block saves for backward is of context × context.", numbers, hardware
        )
    largest = known[-1].tensors[0]
    inside = part(largest["module"]).removeprefix("blocks.*: ")
    numbers["tensor"] = Number(largest["bytes"] / largest["tensors"], _cells([known[-1].row]), size)
    names = [f"{{{which}}} ({_saved_name(memory, each.row)})" for which, each in ends.items()]
    text, last = (" to ".join(names), " there") if len(known) > 1 else (names[-1], "")
    answer = (
        f"Of what a block saves for backward, tensors of context × context make up {text}; the largest{last} is one "
        f"of {{tensor}} ({inside})."
    )
    return Finding(question, answer, numbers, hardware)


def _saved_name(memory: Memory, row: dict) -> str:
    return title(row, memory, ("hardware", "mode") if mode(row) == "step" else ("hardware",))


def _limits(memory: Memory, hardware: str) -> Finding | None:
    """The first context that does not fit, predicted beside measured, where the grid reaches it or contradicts."""
    question, but = "which context does not fit", ("hardware", "context", "repeat")
    known = [each for each in limits(memory) if each.rows[0]["hardware"] == hardware and each.verdict]
    if not known:
        return None
    reached = [each for each in known if each.verdict != "not reached"]
    if not reached:
        first = min(known, key=lambda each: each.predicted[0])
        numbers = {"tokens": Number(first.predicted[0], _cells(first.rows), formatting.count)}
        name = title(first.rows[0], memory, but)
        answer = f"The shortest context predicted not to fit is {{tokens}} tokens ({name}); the grid has none so long."
        return Finding(question, answer, numbers, hardware)
    numbers, parts = {}, []
    for place, each in enumerate(reached):
        numbers |= _of_limit(each, place)
        grid = [f"{{fits_{place}}} fits"] * (each.fitted is not None)
        grid += [f"{{fails_{place}}} does not"] * (each.failed is not None)
        wrong = f", {each.verdict}" if each.verdict != "as predicted" else ""
        name = title(each.rows[0], memory, but)
        parts.append(f"{name}: {{predicted_{place}}} ({formatting.listing(grid)}{wrong})")
    answer = f"The first context predicted not to fit, beside the grid: {formatting.listing(parts, 6, '; ')}."
    return Finding(question, answer, numbers, hardware)


def _of_limit(found: Limit, place: int) -> dict[str, Number]:
    """The numbers of one group of cells, whose place among the others is in their names."""
    cells, measured = _cells(found.rows), {"fits": found.fitted, "fails": found.failed}
    known = {name: Number(value, cells, formatting.count) for name, value in measured.items() if value is not None}
    told = {"predicted": Number(found.predicted, cells, _tokens_range)} | known
    return {f"{name}_{place}": number for name, number in told.items()}


def _tokens_range(values: Iterable[float]) -> str:
    return " to ".join(dict.fromkeys(map(formatting.count, values)))


def _predictions(memory: Memory, rows: list[dict], hardware: str) -> Finding | None:
    """How far the closed form is from the measured peaks."""
    found = [(row, error) for row in rows if (error := prediction_error(memory, row)) is not None]
    if not found:
        return None
    worst, most = max(found, key=lambda entry: abs(entry[1]))
    name, cells = title(worst, memory, ("hardware",)), _cells(row for row, _ in found)
    numbers = {"worst": Number(most, _cells([worst]), percent_change)}
    causes = prediction_causes(memory, worst) if abs(most) > 0.01 else {}
    reason = ""
    if causes:
        numbers["causes"] = Number(causes, _cells([worst]), lambda of_each: formatting.listing(changes(of_each), 2))
        reason = ": {causes}"
    allocated, more = _off_allocated(memory, rows)
    if abs(most) < EXACT:
        of_sizes = " of sizes" * any(map(is_own, rows))
        where = f"of all {len(found):,} cells{of_sizes}" if len(found) > 1 else f"of {name}"
        answer = f"The closed form predicts {_ASKED} {where} to within {100 * EXACT:.3f} %{allocated}."
    elif len(found) == 1:
        answer = f"The closed form predicts {_ASKED} of {name} with {{worst}} error{reason}{allocated}."
    else:
        numbers["near"] = Number(sum(abs(error) <= 0.01 for _, error in found), cells, formatting.count)
        often = "all {near}" if numbers["near"].value == len(found) else f"{{near}} of {len(found):,}"
        answer = (
            f"The closed form predicts {_ASKED} within 1 % in {often} cells; it is farthest off by {{worst}} "
            f"({name}{reason}){allocated}."
        )
    numbers |= more
    return Finding("how good is the closed form", answer, numbers, hardware)


_ASKED = "the bytes that tensors ask for at the peak"


def _off_allocated(memory: Memory, rows: list[dict]) -> tuple[str, dict[str, Number]]:
    """How far the closed form is off what the allocator counts, as peaks are given elsewhere: words and numbers."""
    found = [(row, error) for row in rows if (error := peak_apart(row, row.get("peak_allocated_bytes"))) is not None]
    if not found:
        return "", {}
    worst, error = max(found, key=lambda entry: abs(entry[1]))
    at_most = " at most" if len(found) > 1 else ""
    words = f"; of the peak as allocated, in blocks that the allocator rounds up, it is off by {{allocated}}{at_most}"
    return words, {"allocated": Number(error, _cells([worst]), percent_change)}


def _lost(memory: Memory, hardware: str) -> Finding | None:
    """The cells without a result."""
    own = [row for row in memory.all if row["hardware"] == hardware]
    numbers, parts = {}, []
    for status in dict.fromkeys(str(row["status"]) for row in own if row["status"] != "ok"):
        rows = [row for row in own if row["status"] == status]
        names = [title(row, memory, ("hardware",)) for row in rows]
        word = "out of memory" if status == "oom" else status
        numbers[status] = Number(len(rows), _cells(rows), formatting.count)
        parts.append(f"{{{status}}} {word} ({formatting.listing(names, 4, '; ')})")
    if not parts:
        return None
    answer = f"Of {len(own):,} memory cell{'s' * (len(own) != 1)}: {formatting.listing(parts, between='; ')}."
    return Finding("what has no result", answer, numbers, hardware)


def opening(memory: Memory) -> list[Finding]:
    """What recorded the memory, of how many cells; and what is not known of it."""
    if not memory.recorded:
        return [Finding("what was recorded", "No cell's memory was recorded.")]
    numbers, parts = {}, []
    for place, recorder in enumerate(ordered([_recorder(row) for row in memory.recorded])):
        own = [row for row in memory.recorded if _recorder(row) == recorder]
        cold = [row for row in own if row["recorded"] != "warm-up" and is_cold(row)]
        whole = [row for row in own if row["recorded"] != "warm-up" and not is_cold(row)]
        early = [row for row in own if row["recorded"] == "warm-up"]
        numbers |= {
            f"{name}_{place}": Number(len(rows), _cells(rows), _cells_text)
            for name, rows in (("whole", whole), ("cold", cold), ("early", early))
        }
        every = f"{_steps(whole)} of {{whole_{place}}} after the warm-up"
        first = f"the first {_steps(cold)} of {{cold_{place}}}"
        lost = f"the warm-up itself of {{early_{place}}}, which ran out of memory in it"
        told = [text for text, there in ((every, whole), (first, cold), (lost, early)) if there]
        parts.append(f"{_RECORDERS.get(recorder, recorder)} recorded {', and '.join(told)}")
    return [Finding("what was recorded", f"{'; '.join(parts)}.", numbers), *_doubts(memory)]


def _steps(rows: list[dict]) -> str:
    """`1 step`, `1 and 2 steps`: how many were recorded of each of these cells."""
    steps = formatting.listing([formatting.count(value) for value in ordered([row["steps"] for row in rows])])
    return f"{steps or 'a few'} step{'s' * (steps != '1')}"


def _cells_text(count: int) -> str:
    return "one cell" if count == 1 else formatting.cells(count)


def _recorder(row: dict) -> str:
    return str(row["recorder"] or "an unknown recorder")


def _doubts(memory: Memory) -> list[Finding]:
    """What is not known: bytes without a category."""
    found = {row["cell"]: memory.summary(row).get("unknown_share_at_peak") for row in memory.recorded}
    known = {cell: share for cell, share in found.items() if formatting.known(share)}
    if not known:
        return []
    number = Number(max(known.values()), tuple(known), formatting.percent)
    answer = "Of the bytes at a peak at most {unknown} are of no known category."
    if number.value < 0.0005:
        answer = "Every byte at every peak is of a known category."
    return [Finding("what is not known", answer, {"unknown": number})]
