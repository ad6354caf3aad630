"""Sentences on mixed precision across the timing grid: how much faster, from which size on, where slower and why."""

from stepscope.report.data.mixed import PHASES, REFERENCE, Mixed, Pair, judged
from stepscope.report.data.profile import Profile
from stepscope.report.kit import formatting
from stepscope.report.kit.order import ordered
from stepscope.report.kit.sizes import percent_change
from stepscope.report.studies.precision.mixed_bound import bound
from stepscope.report.studies.precision.mixed_tables import ratio_text

_MAIN = ("step", "backward", "forward", "inference")


def findings(mixed: Mixed, profile: Profile, with_memory: bool = False) -> list[str]:
    """The findings, machine by machine.

    with_memory: also what fits only in 16 bits, and how the peaks change; the memory study has more on that.
    """
    sentences = []
    for hardware in mixed.hardware:
        start = f"On {hardware}: " if len(mixed.hardware) > 1 else ""
        for precision in mixed.precisions(hardware):
            own = mixed.of(hardware, precision)
            found = [pays_from(own), slower(own, profile)]
            found += [only_in(own), memory(own)] if with_memory else []
            sentences += [start + sentence for sentence in found if sentence]
    return sentences


def main_phase(pairs: list[Pair]) -> str | None:
    """A whole step, or the fullest that was timed in both precisions."""
    return next((phase for phase in _MAIN if any(phase in pair.speeds for pair in pairs)), None)


def _what(phase: str) -> str:
    return "a whole step" if phase == "step" else PHASES[phase]


def pays_from(pairs: list[Pair]) -> str:
    """`bf16 pays in a whole step from large (969 M) on at context 128, …`: the size from which it is always faster."""
    phase = main_phase(pairs)
    if phase is None:
        return ""
    alike: dict[str, list[str]] = {}
    for context in ordered([pair.row["context"] for pair in pairs]):
        there = [pair for pair in pairs if pair.row["context"] == context]
        own = [pair for pair in there if phase in pair.speeds]
        if own:
            alike.setdefault(_from(own, phase, len(own) == len(there)), []).append(f"{context:,.0f}")
    parts = [f"{size} at context {formatting.listing(contexts, between=' and ')}" for size, contexts in alike.items()]
    gains = [pair.speeds[phase].ratio for pair in pairs if phase in pair.speeds]
    best = max((pair for pair in pairs if phase in pair.speeds), key=lambda pair: pair.speeds[phase].ratio)
    reach = f"{formatting.value_range(gains)} times fp32's speed"
    most = f", most with {best.point}" if len(gains) > 1 else f" with {best.point}"
    how = judged(pair.speeds[phase] for pair in pairs if phase in pair.speeds)
    return f"In {pairs[0].precision} {_what(phase)} runs at {reach}{most}. It is faster{how} {'; '.join(parts)}."


def _from(own: list[Pair], phase: str, are_all: bool) -> str:
    """From which size on every larger one is faster too; sizes by their parameters. are_all: none is without a time."""
    sizes: dict[str, list[Pair]] = {}
    for pair in sorted(own, key=lambda pair: pair.row.get("parameters") or 0):
        sizes.setdefault(pair.row["size"], []).append(pair)
    faster = {name: all(pair.speeds[phase].verdict == "faster" for pair in each) for name, each in sizes.items()}
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


def slower(pairs: list[Pair], profile: Profile) -> str:
    """Where it is slower, and whether the profile shows launches as the reason."""
    phase = main_phase(pairs)
    own = [pair for pair in pairs if phase in pair.speeds and pair.speeds[phase].verdict == "slower"]
    if not own:
        return ""
    own.sort(key=lambda pair: pair.speeds[phase].ratio)
    places = [f"{pair.point} ({ratio_text(pair.speeds[phase].ratio)} times its speed)" for pair in own]
    how = judged(pair.speeds[phase] for pair in own)
    text = f"In {pairs[0].precision} {_what(phase)} is slower{how} than in {REFERENCE} with "
    text += formatting.listing(places, 5)
    for pair in own:
        why = bound(profile, pair)
        if None in why.kernels or why.idle[1] is None:
            continue
        more = why.kernels[1] - why.kernels[0]
        change = f"{abs(more):,.0f} kernels {'more' if more >= 0 else 'fewer'}"
        idle = formatting.percent(why.idle[1])
        bound_by = "launch-bound" if why.launch_bound else "so that launches alone do not explain it"
        text += f". Profiled at {why.where}, {pair.row['size']} launches {change} a step than in {REFERENCE}"
        return f"{text}, and the GPU is idle for {idle} of the step: {bound_by}."
    return f"{text}. No profile of these sizes says why."


def only_in(pairs: list[Pair]) -> str:
    """Points that fit only in 16 bits."""
    phase = main_phase(pairs) or "step"
    own = [pair.point for pair in pairs if pair.status(phase) == ("oom", "ok")]
    if not own:
        return ""
    what = _what(phase)
    where = f"{pairs[0].precision} but not in {REFERENCE} with {formatting.listing(own)}"
    return f"{what[0].upper()}{what[1:]} fits in {where}."


def memory(pairs: list[Pair]) -> str:
    """How the peaks of inference and step change, over the points that finished in both."""
    parts = []
    for mode in ("step", "inference"):
        changes = []
        for pair in pairs:
            before, after = pair.peaks(mode)
            if before:
                changes.append((after / before - 1, pair))
        if not changes:
            continue
        (low, first), (high, last) = (end(changes, key=lambda each: each[0]) for end in (min, max))
        reach = percent_change(low)
        if percent_change(low) != percent_change(high):
            reach = f"{reach} ({first.point}) to {percent_change(high)} ({last.point})"
        parts.append(f"of {'a step' if mode == 'step' else 'inference'} by {reach}")
    return f"{pairs[0].precision} changes the peak memory {formatting.listing(parts)}." if parts else ""
