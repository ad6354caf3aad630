"""Findings on mixed precision across the timing grid: how much faster, from which size on, where slower and why."""

from stepscope.report.data.mixed import PHASES, REFERENCE, Mixed, MixedPair, bound
from stepscope.report.data.profile import Profile
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import FASTER, SLOWER
from stepscope.report.kit.finding import Finding, Number, enough, speed, without_verdict
from stepscope.report.kit.order import ordered
from stepscope.report.kit.sizes import percent_change

_MAIN = ("step", "backward", "forward", "inference")


def findings(mixed: Mixed, profile: Profile, with_memory: bool = False) -> list[Finding]:
    """The findings, machine by machine.

    with_memory: also what fits only in 16 bits, and how the peaks change; the memory study has more on that.
    """
    found = []
    for hardware in mixed.hardware:
        for precision in mixed.precisions(hardware):
            own = mixed.of(hardware, precision)
            found += [pays_from(own), slower(own, profile)]
            found += [only_in(own), memory(own)] if with_memory else []
        own = mixed.of(hardware)
        phase = main_phase(own)
        found += without_verdict([pair.speeds.get(phase) for pair in own], hardware)
    return [each for each in found if each]


def _finding(question: str, pairs: list[MixedPair], answer: str, numbers: dict[str, Number]) -> Finding:
    """About the one machine and precision of these pairs."""
    precision, hardware = pairs[0].precision, pairs[0].row["hardware"]
    return Finding(question.format(precision=precision), answer, numbers, hardware)


def main_phase(pairs: list[MixedPair]) -> str | None:
    """A whole step, or the fullest that was timed in both precisions."""
    return next((phase for phase in _MAIN if any(phase in pair.speeds for pair in pairs)), None)


def _what(phase: str) -> str:
    return "a whole step" if phase == "step" else PHASES[phase]


def pays_from(pairs: list[MixedPair]) -> Finding | None:
    """`bf16 pays in a whole step from large (969 M) on at context 128, …`: the size from which it is always faster.

    The sizes are told where every pair has a verdict.
    """
    phase = main_phase(pairs)
    if phase is None:
        return None
    timed = [pair for pair in pairs if phase in pair.speeds]
    best = max(timed, key=lambda pair: pair.speeds[phase].ratio)
    cells = tuple(cell for pair in timed for cell in pair.cells)
    if len(timed) == 1:
        numbers, most = {"speed": speed(best.speeds[phase], cells)}, f" with {best.point}"
    else:
        ratios = [pair.speeds[phase].ratio for pair in timed]
        numbers, most = {"speed": Number(ratios, cells, formatting.value_range)}, f", most with {best.point}"
    scope = f" ({len(timed):,} of {formatting.cells(len(pairs))})" if len(timed) < len(pairs) else ""
    answer = f"In {pairs[0].precision} {_what(phase)} runs at {{speed}} times {REFERENCE}'s speed{most}{scope}."
    if all(enough(comparison=pair.speeds[phase]) for pair in timed):
        answer += f" It is faster {_sizes(pairs, timed, phase)}."
    return _finding("what does {precision} bring", pairs, answer, numbers)


def _sizes(pairs: list[MixedPair], timed: list[MixedPair], phase: str) -> str:
    """`from medium on at context 128; in every size at context 256`."""
    alike: dict[str, list[str]] = {}
    for context in ordered([pair.row["context"] for pair in timed]):
        own = [pair for pair in timed if pair.row["context"] == context]
        are_all = len(own) == sum(pair.row["context"] == context for pair in pairs)
        alike.setdefault(_from(own, phase, are_all), []).append(f"{context:,.0f}")
    parts = [f"{size} at context {formatting.listing(contexts, between=' and ')}" for size, contexts in alike.items()]
    return "; ".join(parts)


def _from(own: list[MixedPair], phase: str, are_all: bool) -> str:
    """From which size on every larger one is faster too; sizes by their parameters. are_all: none is without a time."""
    sizes: dict[str, list[MixedPair]] = {}
    for pair in sorted(own, key=lambda pair: pair.row.get("parameters") or 0):
        sizes.setdefault(pair.row["size"], []).append(pair)
    faster = {name: all(pair.verdict(phase) == FASTER for pair in each) for name, each in sizes.items()}
    names = list(sizes)
    kept = 0
    while kept < len(names) and faster[names[-1 - kept]]:
        kept += 1
    if kept == 0:
        return "in no size that stays faster in larger ones" if any(faster.values()) else "in no size"
    parameters = formatting.parameters(sizes[names[-kept]][0].row.get("parameters"))
    size = f"{names[-kept]}{f' ({parameters} parameters)' if parameters else ''}"
    if kept == len(names):
        return f"in every size{'' if are_all else ' that finished in both precisions'}" if kept > 1 else f"with {size}"
    return f"from {size} on"


def slower(pairs: list[MixedPair], profile: Profile) -> Finding | None:
    """Where it is slower, and whether the profile shows launches as the reason."""
    phase = main_phase(pairs)
    own = [pair for pair in pairs if pair.verdict(phase) == SLOWER]
    if not own:
        return None
    own.sort(key=lambda pair: pair.speeds[phase].ratio)
    numbers = {f"speed_{at}": speed(pair.speeds[phase], pair.cells) for at, pair in enumerate(own)}
    places = [f"{pair.point} ({{speed_{at}}} times its speed)" for at, pair in enumerate(own)]
    where = f"In {pairs[0].precision} {_what(phase)} is slower than in {REFERENCE} with "
    answer = where + formatting.listing(places, 5)
    why, of_profile = _why(own, profile)
    return _finding("where is {precision} slower", pairs, f"{answer}. {why}", numbers | of_profile)


def _why(pairs: list[MixedPair], profile: Profile) -> tuple[str, dict[str, Number]]:
    """What the profile of the slowest pair that has one says, and the numbers in that."""
    for pair in pairs:
        why = bound(profile, pair)
        if None in why.kernels or why.idle[1] is None:
            continue
        before, after = why.kernels
        numbers = {
            "kernels": Number(abs(after - before), why.cells, formatting.count),
            "idle": Number(why.idle[1], why.cells, formatting.percent),
        }
        change = f"{{kernels}} kernels {'more' if after >= before else 'fewer'}"
        bound_by = "launch-bound" if why.launch_bound else "so that launches alone do not explain it"
        text = f"Profiled at {why.where}, {pair.row['size']} launches {change} a step than in {REFERENCE}"
        return f"{text}, and the GPU is idle for {{idle}} of the step: {bound_by}.", numbers
    return "No profile of these sizes says why.", {}


def only_in(pairs: list[MixedPair]) -> Finding | None:
    """Points that fit only in 16 bits."""
    phase = main_phase(pairs) or "step"
    own = [pair.point for pair in pairs if pair.status(phase) == ("oom", "ok")]
    if not own:
        return None
    what = _what(phase)
    where = f"{pairs[0].precision} but not in {REFERENCE} with {formatting.listing(own)}"
    return _finding("what fits only in {precision}", pairs, f"{what[0].upper()}{what[1:]} fits in {where}.", {})


def memory(pairs: list[MixedPair]) -> Finding | None:
    """How the peaks of inference and step change, over the points that finished in both."""
    numbers, parts = {}, []
    for mode in ("step", "inference"):
        changes = [(after / before - 1, pair) for pair in pairs for before, after in [pair.peaks(mode)] if before]
        if not changes:
            continue
        least, most = (end(changes, key=lambda each: each[0]) for end in (min, max))
        for name, (change, pair) in (("least", least), ("most", most)):
            numbers[f"{mode}_{name}"] = Number(change, pair.cells, percent_change)
        reach = f"{{{mode}_least}}"
        if percent_change(least[0]) != percent_change(most[0]):
            reach = f"{reach} ({least[1].point}) to {{{mode}_most}} ({most[1].point})"
        scope = formatting.some_of(len(changes), len(pairs))
        parts.append(f"of {'a step' if mode == 'step' else 'inference'} by {reach} in {scope}")
    if not parts:
        return None
    answer = f"{pairs[0].precision} changes the peak memory of the timing study's cells: {'; '.join(parts)}."
    return _finding("what does {precision} do to the memory", pairs, answer, numbers)
