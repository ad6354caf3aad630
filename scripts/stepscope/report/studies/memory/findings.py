"""Sentences that the memory study supports, for the summary and for the section's opening."""

from collections import Counter

from stepscope.report.data.memory import Memory, is_inference, part, title
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit import formatting
from stepscope.report.kit.order import label, machine_labels, ordered, precision_rank
from stepscope.report.kit.sizes import EXACT, percent_change, shares, size
from stepscope.report.studies.memory.blocks import saved_rows, squared_share, with_saved
from stepscope.report.studies.memory.precision import SAME, Pair, pairs
from stepscope.report.studies.memory.predicted import Limit, causes, difference, limits

_PHASES = {"optimizer": "the optimizer", "": "no phase"}
_MODES = {"step": "a training step", "inference": "inference"}


def findings(memory: Memory) -> list[str]:
    """The findings, hardware by hardware."""
    if not memory.all:
        return ["No memory cell is in the tables."]
    hardware = machine_labels([row["hardware"] for row in memory.all])
    sentences = []
    for name in hardware:
        found = [sentence for sentence in _of(memory, name) if sentence]
        sentences += [f"On {name}: {sentence}" if len(hardware) > 1 else sentence for sentence in found]
    return sentences


def _of(memory: Memory, hardware: str) -> list[str]:
    rows = [row for row in memory.first_runs(memory.measured) if row["hardware"] == hardware]
    found = [pair for pair in pairs(memory) if pair.row["hardware"] == hardware]
    told = [limit for limit in limits(memory) if limit.row["hardware"] == hardware]
    parts = [*_peaks(memory, rows), _largest_step(memory, rows), *_precisions(memory, found)]
    parts += [_squared(memory, rows), _limits(memory, told), _predictions(memory, rows), _lost(memory, hardware)]
    return parts


def _what(name: str) -> str:
    return _MODES.get(name, label(name))


def _by_mode(rows: list[dict]) -> dict[str, list[dict]]:
    """Cells by mode, the training step first."""
    names = sorted({mode(row) for row in rows}, key=lambda name: (name != "step", name))
    return {name: [row for row in rows if mode(row) == name] for name in names}


def _peaks(memory: Memory, rows: list[dict]) -> list[str]:
    """How large the peaks of a mode are, and where they lie."""
    sentences = []
    for name, own in _by_mode(rows).items():
        low, high = min(own, key=memory.peak), max(own, key=memory.peak)
        but = ("mode", "hardware")
        peaks = [f"{size(memory.peak(row))} ({title(row, memory, but)})" for row in (low, high)]
        text = f"from {peaks[0]} to {peaks[1]}" if len(own) > 1 else f"at {peaks[0]}"
        sentences.append(f"Memory of {_what(name)} peaks {text}, {_places(memory, own)}.")
    return sentences


def _places(memory: Memory, rows: list[dict]) -> str:
    """`in backward (loss 8, softmax 1) in 9 and in the optimizer in 4 of 13 cells`."""
    phases: dict[str, Counter] = {}
    for row in rows:
        summary = memory.summary(row)
        own = phases.setdefault(str(summary.get("peak_phase") or ""), Counter())
        own[part(summary.get("peak_module")).split(": ")[-1]] += 1
    texts = []
    for phase, parts in sorted(phases.items(), key=lambda entry: -entry[1].total()):
        named = [name for name, _ in parts.most_common(4) if name]
        counted = [f"{name} {parts[name]:,}" for name in named] if len(parts) > 1 else named
        inside = f" ({formatting.listing(counted)})" if named else ""
        often = f" in {parts.total():,}" if len(phases) > 1 else ""
        texts.append(f"in {_PHASES.get(phase, phase)}{inside}{often}")
    whole = f" of {len(rows):,} cells" if len(phases) > 1 else f" in all {len(rows):,} cells" * (len(rows) > 1)
    return formatting.listing(texts) + whole


def _largest_step(memory: Memory, rows: list[dict]) -> str:
    """What fills the largest peak that fits."""
    own = [row for row in rows if not is_inference(row)] or rows
    if not own:
        return ""
    row = max(own, key=memory.peak)
    held = shares(memory.at_peak(row), memory.requested(row))
    if not held:
        return ""
    return f"The largest peak that fits ({title(row, memory, ('hardware',))}) consists of {held}."


def _precisions(memory: Memory, found: list[Pair]) -> list[str]:
    """What each lower precision saves or loses, a sentence a mode."""
    sentences = []
    for precision in ordered([pair.row["precision"] for pair in found], key=precision_rank):
        of_precision = [pair for pair in found if pair.row["precision"] == precision]
        for name in _by_mode([pair.row for pair in of_precision]):
            own = [pair for pair in of_precision if mode(pair.row) == name]
            sentences.append(_precision(memory, own, f"{precision} against fp32, the peak of {_what(name)}"))
    return sentences


def _precision(memory: Memory, found: list[Pair], what: str) -> str:
    known = sorted((pair for pair in found if pair.share is not None), key=lambda pair: pair.share)
    parts = []
    if len(known) == 1:
        parts.append(_extreme(memory, known[0]))
    elif known:
        counts = Counter("same" if abs(pair.share) <= SAME else "more" if pair.share > 0 else "less" for pair in known)
        words = {"less": "less", "more": "more", "same": f"the same within {100 * SAME:.0f} %"}
        told = [f"{words[kind]} in {counts[kind]:,}" for kind in words if counts[kind]]
        parts.append(f"{_extreme(memory, known[0])} to {_extreme(memory, known[-1])}")
        parts.append(f"{formatting.listing(told)} of {len(known):,} points")
    alone = [pair for pair in found if {pair.row["status"], pair.reference["status"]} == {"ok", "oom"}]
    for fits in ordered([_fitting(pair) for pair in alone], key=precision_rank):
        names = [title(pair.row, memory, ("mode", "precision", "hardware")) for pair in alone if _fitting(pair) == fits]
        parts.append(f"only {fits} fits at {formatting.listing(names, 4, '; ')}")
    return f"{what}: {'; '.join(parts)}." if parts else ""


def _fitting(pair: Pair) -> str:
    return next(row["precision"] for row in (pair.row, pair.reference) if row["status"] == "ok")


def _extreme(memory: Memory, pair: Pair) -> str:
    """`−27 % (medium, context 512: activations −3.1 GiB, cast weights +0.8 GiB)`."""
    told = [*pair.told(-1)[:2], *pair.told(1)[:2]] if pair.difference <= 0 else [*pair.told(1)[:2], *pair.told(-1)[:2]]
    name = title(pair.row, memory, ("mode", "precision", "hardware"))
    return f"{percent_change(pair.share)} ({name}{': ' * bool(told)}{', '.join(told)})"


def _squared(memory: Memory, rows: list[dict]) -> str:
    """Which share of a block's saved bytes grows with the context squared."""
    cells = {row["cell"] for row in rows}
    known = [(row, squared_share(memory, row)) for row in with_saved(memory) if row["cell"] in cells]
    known = sorted(((row, found) for row, found in known if found is not None), key=lambda entry: entry[1])
    if not known:
        return ""
    if not known[-1][1]:
        return "Nothing of what a block saves for backward is of context × context."
    names = [f"{formatting.percent(found)} ({_saved_name(memory, row)})" for row, found in (known[0], known[-1])]
    largest = saved_rows(memory, known[-1][0])[0]
    inside = part(largest["module"]).removeprefix("blocks.*: ")
    one = size(largest["bytes"] / largest["tensors"])
    text, last = (f"{names[0]} to {names[1]}", " there") if len(known) > 1 else (names[0], "")
    return (
        f"Of what a block saves for backward, tensors of context × context make up {text}; the largest{last} is one "
        f"of {one} ({inside})."
    )


def _saved_name(memory: Memory, row: dict) -> str:
    return title(row, memory, ("hardware", "mode") if mode(row) == "step" else ("hardware",))


def _limits(memory: Memory, found: list[Limit]) -> str:
    """The first context that does not fit, predicted beside measured, where the grid reaches it or contradicts."""
    named = ("hardware", "context", "repeat")
    reached = [limit for limit in found if limit.verdict and limit.verdict != "not reached"]
    parts = []
    for limit in reached:
        low, high = (formatting.count(value) for value in limit.predicted)
        told = low if low == high else f"{low} to {high}"
        grid = [f"{formatting.count(limit.fitted)} fits"] if limit.fitted is not None else []
        grid += [f"{formatting.count(limit.failed)} does not"] if limit.failed is not None else []
        wrong = f", {limit.verdict}" if limit.verdict != "as predicted" else ""
        parts.append(f"{title(limit.row, memory, named)}: {told} ({formatting.listing(grid)}{wrong})")
    if parts:
        return f"The first context predicted not to fit, beside the grid: {formatting.listing(parts, 6, '; ')}."
    known = [limit for limit in found if limit.verdict]
    if not known:
        return ""
    first = min(known, key=lambda limit: limit.predicted[0])
    tokens, name = formatting.count(first.predicted[0]), title(first.row, memory, named)
    return f"The shortest context predicted not to fit is {tokens} tokens ({name}); the grid has none so long."


def _predictions(memory: Memory, rows: list[dict]) -> str:
    """How far the closed form is from the measured peaks."""
    found = [(row, apart) for row in rows if (apart := difference(memory, row)) is not None]
    if not found:
        return ""
    worst, most = max(found, key=lambda entry: abs(entry[1]))
    name = title(worst, memory, ("hardware",))
    if abs(most) < EXACT:
        where = f"of all {len(found):,} cells" if len(found) > 1 else f"of {name}"
        return f"The closed form predicts the peak {where} to within {100 * EXACT:.3f} %."
    why = formatting.listing(causes(memory, worst), 2)
    reason = f": {why}" if why and abs(most) > 0.01 else ""
    if len(found) == 1:
        return f"The closed form predicts the peak of {name} with {percent_change(most)} error{reason}."
    near = sum(abs(apart) <= 0.01 for _, apart in found)
    often = f"all {near:,}" if near == len(found) else f"{near:,} of {len(found):,}"
    return (
        f"The closed form predicts the peak within 1 % in {often} cells; it is farthest off by "
        f"{percent_change(most)} ({name}{reason})."
    )


def _lost(memory: Memory, hardware: str) -> str:
    own = [row for row in memory.all if row["hardware"] == hardware and row["status"] != "ok"]
    if not own:
        return ""
    parts = []
    for status in dict.fromkeys(str(row["status"]) for row in own):
        names = [title(row, memory, ("hardware",)) for row in own if row["status"] == status]
        word = "out of memory" if status == "oom" else status
        parts.append(f"{len(names):,} {word} ({formatting.listing(names, 4, '; ')})")
    every = sum(row["hardware"] == hardware for row in memory.all)
    return f"Of {every:,} memory cell{'s' * (every != 1)}: {formatting.listing(parts, between='; ')}."


def opening(memory: Memory) -> list[str]:
    """What recorded the memory, of how many cells."""
    if not memory.recorded:
        return ["No cell's memory was recorded."]
    parts = []
    for recorder in ordered([str(row["recorder"] or "an unknown recorder") for row in memory.recorded]):
        own = [row for row in memory.recorded if str(row["recorder"] or "an unknown recorder") == recorder]
        whole = [row for row in own if row["recorded"] != "warm-up"]
        steps = formatting.listing([formatting.count(value) for value in ordered([row["steps"] for row in whole])])
        every = f"{steps or 'a few'} step{'s' * (steps != '1')} of {_cells(len(whole))} after the warm-up"
        early = f"the warm-up itself of {_cells(len(own) - len(whole))}, which ran out of memory in it"
        told = [text for text, there in ((every, whole), (early, len(own) > len(whole))) if there]
        parts.append(f"{_recorder(recorder)} recorded {', and '.join(told)}")
    return [f"{'; '.join(parts)}.", *_doubts(memory)]


def _recorder(name: str) -> str:
    known = {"allocator history": "The history of PyTorch's allocator", "torch.profiler": "torch.profiler, on the CPU,"}
    return known.get(name, name)


def _cells(number_of: int) -> str:
    return "one cell" if number_of == 1 else f"{number_of:,} cells"


def _doubts(memory: Memory) -> list[str]:
    """What is not known: bytes without a category."""
    shares_of = [memory.summary(row).get("unknown_share_at_peak") for row in memory.recorded]
    known = [value for value in shares_of if formatting.known(value)]
    if not known:
        return []
    if max(known) < 0.0005:
        return ["Every byte at every peak is of a known category."]
    return [f"Of the bytes at a peak at most {formatting.percent(max(known))} are of no known category."]
