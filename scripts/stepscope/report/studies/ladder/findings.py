"""What the ladder study says in sentences, for the summary."""

from collections import Counter

from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.data.ladder import Ladder, agrees, by_hardware, ladders, rate, time, times, verdict
from stepscope.report.kit import formatting
from stepscope.report.studies.ladder import against_timing
from stepscope.report.studies.ladder.checkpoint import Recomputed, recomputed, saving_sentence

_STEP = "step"


def findings(tables) -> list[str]:
    """The findings, hardware by hardware."""
    machines = by_hardware(ladders(tables))
    if not machines:
        return ["No ladder cell is in the tables."]
    sentences = []
    for hardware, found in machines.items():
        place = f"On {hardware}: " if len(machines) > 1 else ""
        sentences += [place + sentence for sentence in _of_one_machine(hardware, found, tables) if sentence]
    return sentences


def _of_one_machine(hardware: str, found: list[Ladder], tables) -> list[str]:
    rows = [row for ladder in found for row in ladder.rows]
    if not any(time(row) for row in rows):
        return ["No rung of the ladder finished.", _lost(rows)]
    return [
        _total(found),
        against_timing.sentence(found),
        _greatest(found),
        _slower(found),
        _rate(hardware, found, tables["ceilings"]),
        _whole_model(found),
        *_checkpointing(found),
        _agreement(found),
        _lost(rows),
    ]


def _total(found: list[Ladder]) -> str:
    """The fastest rung against the first."""
    parts = []
    for one in found:
        top = one.top
        start = one.at(top.get("started_from")) if top else None
        if not start or start is top:
            continue
        prefix = "forward_backward" if top.get("gain_start_of") == "forward+backward" else _STEP
        both = [formatting.significant(time(row, prefix)) for row in (start, top)]
        of = " of forward and backward" if prefix != _STEP else ""
        gain = times(top["gain_start"]) + against_timing.from_elsewhere(one, start, top, prefix)
        parts.append(f"{one.place}: {both[0]} to {both[1]} ms{of}, {gain} ({_to(start, top)})")
    return f"The ladder, from its first to its fastest rung: {_listed(parts)}." if parts else ""


def _to(start: dict, top: dict) -> str:
    return f"{start['name']} to {top['name']}"


def _listed(parts: list[str]) -> str:
    return formatting.listing(parts, against_timing.MOST, "; ")


def _greatest(found: list[Ladder]) -> str:
    """The single change that brings most, ladder by ladder, of those with disjoint intervals."""
    parts = []
    for one in found:
        gained = [row for row in one.climbed if _verdict(one, row) == "faster"]
        if gained:
            most = max(gained, key=lambda row: row["gain_before"])
            parts.append(f"{most['name']}, {times(most['gain_before'])}{_of(most)} ({one.place})")
    return f"The single change that brings most: {_listed(parts)}." if parts else ""


def _verdict(one: Ladder, row: dict) -> str:
    """`faster` or `slower` than the rung right before, where that is clear."""
    other = one.neighbour(row)
    is_alone = other is not None and not one.is_passed_over(row) and formatting.known(row.get("gain_before"))
    return verdict(row, other, one.doubt) if is_alone else "unclear"


def _of(row: dict) -> str:
    return " of forward and backward" if row.get("gain_of") == "forward+backward" else ""


def _slower(found: list[Ladder]) -> str:
    """Changes that make it slower, by disjoint intervals."""
    parts = []
    for one in found:
        for row in one.climbed:
            if _verdict(one, row) == "slower":
                parts.append(f"{row['name']}, {times(row['gain_before'])}{_of(row)} ({one.place})")
    if not parts:
        return ""
    what = "A change that makes" if len(parts) == 1 else "Changes that make"
    return f"{what} it slower (single runs, disjoint 95 % intervals): {_listed(parts)}."


def _rate(hardware: str, found: list[Ladder], ceilings) -> str:
    """The highest rate of all rungs, its MFU and its share of the measured ceiling."""
    rows = [(one, row) for one in found for row in one.climbed if formatting.known(rate(row, "tflops"))]
    if not rows:
        return ""
    one, row = max(rows, key=lambda pair: rate(pair[1], "tflops"))
    ceiling = matmul_ceiling(ceilings, hardware, row["precision"])
    parts = [f"{formatting.significant(rate(row, 'tflops'))} TFLOP/s"]
    mfu = rate(row, "mfu")
    if mfu is not None:
        parts.append(f"an MFU of {formatting.percent(mfu, 3)}")
    if ceiling:
        parts.append(f"{formatting.percent(rate(row, 'tflops') / ceiling)} of the measured matrix product")
    unknown = "" if mfu is not None or row.get("device") != "cuda" else "; the GPU's peak is in no table, so no MFU"
    what = "" if time(row, _STEP) else ", forward and backward"
    text = f"The highest arithmetic rate: {formatting.listing(parts)} ({one.place}, {row['name']}{what}){unknown}"
    return f"{text}{_without_optimizer(row)}{_highest_mfu(rows, row)}."


def _without_optimizer(row: dict) -> str:
    """The rate of forward and backward alone, beside that of a step."""
    value = row.get("forward_backward_tflops")
    if not time(row, _STEP) or not formatting.known(value):
        return ""
    mfu = row.get("forward_backward_mfu")
    more = f", an MFU of {formatting.percent(mfu, 3)}" if formatting.known(mfu) else ""
    return f"; forward and backward alone: {formatting.significant(value)} TFLOP/s{more}"


def _highest_mfu(rows: list[tuple[Ladder, dict]], best: dict) -> str:
    """The highest MFU, where another rung has it than the one with the highest rate."""
    rated = [pair for pair in rows if formatting.known(rate(pair[1], "mfu"))]
    if not rated:
        return ""
    one, row = max(rated, key=lambda pair: rate(pair[1], "mfu"))
    if row is best:
        return ""
    share = formatting.percent(rate(row, "mfu"), 3)
    return f"; the highest MFU, {share} of the {row['precision']} peak: {one.place}, {row['name']}"


def _whole_model(found: list[Ladder]) -> str:
    """Compiling the whole model against compiling its blocks."""
    parts = []
    for one in found:
        for row in one.wholes:
            other = one.at(row.get("compared_with"))
            if not other or not formatting.known(row.get("gain_before")):
                continue
            seconds = [each.get("compile_seconds") for each in (row, other)]
            cost = ""
            if all(map(formatting.known, seconds)):
                cost = ", {} s of compiling instead of {} s".format(*map(formatting.significant, seconds))
            unclear = ", no clear difference" * (verdict(row, other, one.doubt) == "unclear")
            parts.append(f"{times(row['gain_before'])}{_of(row)}{unclear}{cost} ({one.place})")
    return f"The whole model compiled instead of its blocks, times the speed: {_listed(parts)}." if parts else ""


def _checkpointing(found: list[Ladder]) -> list[str]:
    """What checkpointing saves and costs, and the rule for k."""
    groups = recomputed(found)
    parts = [text for one in groups if (text := saving_sentence(one))]
    sentences = [f"Checkpointing every k blocks: {_listed(parts)}."] if parts else []
    rules = [one for one in groups if one.best and formatting.known(one.best.get("predicted_checkpoint"))]
    if not rules:
        return sentences
    values = [one.best["predicted_checkpoint"] for one in rules]
    ratios = [one.best["block_saved_bytes"] / one.best["boundary_bytes"] for one in rules]
    roots = [one.best["num_layers"] ** 0.5 for one in rules]
    sentences.append(
        f"A block saves {formatting.value_range(ratios)} times what is kept at a boundary, so the rule √(n b / a) "
        f"gives a best k of {formatting.value_range(values, 2)}, where √n, for equal a and b, would be "
        f"{formatting.value_range(roots, 2)}{_confirmed(rules)}."
    )
    return sentences


def _confirmed(rules: list[Recomputed]) -> str:
    """Whether the closed form's k has the lowest peak, where both are of tensors."""
    verdicts = [one.is_confirmed for one in rules if one.is_confirmed is not None]
    if not verdicts:
        return ""
    if len(verdicts) == 1:
        has = "has" if verdicts[0] else "does not have"
        return f"; the k that the closed form chooses {has} the lowest peak measured"
    return (
        f"; the k that the closed form chooses has the lowest peak measured in {sum(verdicts):,} of {len(verdicts):,} "
        "cases"
    )


def _agreement(found: list[Ladder]) -> str:
    """How many cells compute the loss and gradients of the first rung that has them, which itself does not count."""
    checked = []
    for one in found:
        checked += [(one, row) for row in one.rows if agrees(row) is not None][1:]
    if not checked:
        return ""
    wrong = [f"{row['name']} ({one.place})" for one, row in checked if agrees(row) is False]
    if not wrong:
        cells = "the other cell" if len(checked) == 1 else f"all {len(checked):,} other cells"
        return f"Loss and gradients agree with the first rung's, within the precision's tolerance, in {cells}."
    where = "the other cell" if len(checked) == 1 else f"{len(wrong):,} of {len(checked):,} other cells"
    return f"Loss or gradients differ from the first rung's beyond the tolerance in {where}, which " \
           f"{'is no rung' if len(wrong) == 1 else 'are no rungs'}: {_listed(wrong)}."  # fmt: skip


def _lost(rows: list[dict]) -> str:
    """How many cells have no step, and how many are to be read with care."""
    statuses = Counter(str(row["status"]) for row in rows)
    words = {"oom": "out of memory", "unsupported": "unsupported", "failed": "failed", "missing": "missing"}
    parts = [f"{statuses[key]:,} {word}" for key, word in words.items() if statuses[key]]
    partly = sum(row["status"] == "oom" and bool(time(row, "forward_backward")) for row in rows)
    parts[:1] = [f"{parts[0]} ({partly:,} of them only in the step)"] if partly else parts[:1]
    noisy = sum(bool(row.get("noisy")) for row in rows if time(row))
    parts += [f"{noisy:,} noisy"] if noisy else []
    throttled = sum(bool(row.get("throttle")) for row in rows if time(row))
    parts += [f"{throttled:,} throttled"] if throttled else []
    cells = "1 ladder cell" if len(rows) == 1 else f"{len(rows):,} ladder cells"
    return f"Of {cells}: {formatting.listing(parts)}." if parts else ""
