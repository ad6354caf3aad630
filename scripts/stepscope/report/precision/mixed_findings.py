"""Sentences on mixed precision across the timing grid: how much faster, from which size on, where slower and why."""

from stepscope.report import formatting
from stepscope.report.memory.sizes import percent_change
from stepscope.report.precision.mixed_bound import bound
from stepscope.report.precision.mixed_pairs import MIXED, PHASES, REFERENCE, Mixed, Pair
from stepscope.report.precision.mixed_tables import ratio_text
from stepscope.report.profile.cells import Profile
from stepscope.report.tables import ordered
from stepscope.report.timing.tables import ceiling_of

_MAIN = ("step", "backward", "forward", "inference")


def findings(mixed: Mixed, profile: Profile, with_memory: bool = False) -> list[str]:
    """The findings, machine by machine, and then between machines.

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
    return sentences + between_machines(mixed, profile)


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
    judged = _judged([pair for pair in pairs if phase in pair.speeds], phase)
    return f"In {pairs[0].precision} {_what(phase)} runs at {reach}{most}. It is faster{judged} {'; '.join(parts)}."


def _judged(pairs: list[Pair], phase: str) -> str:
    """What faster and slower are judged by, where it is not the spread between repeated runs."""
    return "" if all(pair.speeds[phase].by_repeats for pair in pairs) else " (single runs, disjoint 95 % intervals)"


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
    text = f"In {pairs[0].precision} {_what(phase)} is slower{_judged(own, phase)} than in {REFERENCE} with "
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
    fits = "fit" if len(own) > 1 else "fits"
    return f"Only in {pairs[0].precision}, not in {REFERENCE}, {_what(phase)} {fits} with {formatting.listing(own)}."


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


def between_machines(mixed: Mixed, profile: Profile) -> list[str]:
    """Each pair of machines of which one takes longer in 16 bits than the other in fp32, at the same point."""
    rows = [row for row in mixed.timing.to_dict("records") if row["repeat"] == 1] if len(mixed.timing) else []
    machines = ordered([row["hardware"] for row in rows])
    sentences = []
    for hardware in machines:
        for precision in MIXED:
            own = [row for row in rows if row["hardware"] == hardware and row["precision"] == precision]
            for other in (name for name in machines if name != hardware):
                of_other = [row for row in rows if row["hardware"] == other and row["precision"] == REFERENCE]
                sentences.append(_slower_machine(mixed, profile, own, of_other))
    return [sentence for sentence in sentences if sentence]


def _slower_machine(mixed: Mixed, profile: Profile, own: list[dict], others: list[dict]) -> str:
    keys = ("size", "context", "batch", "mode", "options")
    at = {tuple(row.get(key) for key in keys): row for row in others}
    both = [(row, at[key]) for row in own if (key := tuple(row.get(name) for name in keys)) in at]
    speeds = [(mixed.speed(row, other, "step"), row, other) for row, other in both]
    speeds = [each for each in speeds if each[0]]
    lost = [each for each in speeds if each[0].verdict == "slower"]
    if not lost:
        return ""
    speed, row, other = min(lost, key=lambda each: each[0].ratio)
    times = [formatting.significant(each) for each in (speed.times[1], speed.times[0])]
    there = f"in {len(lost):,} of {len(speeds):,} points" if len(speeds) > 1 else "at the one point of both"
    place = f"{row['size']} at context {row['context']:,.0f}"
    text = (
        f"{row['hardware']} in {row['precision']} takes longer for a step than {other['hardware']} in {REFERENCE} "
        f"{there}{', most' if len(lost) > 1 else ''} with {place}: {times[0]} against {times[1]} ms"
    )
    rates = [ceiling_of(profile.ceilings, each["hardware"], each["precision"]) for each in (row, other)]
    if all(rates) and rates[0] > rates[1]:
        reached = [formatting.significant(rate) for rate in rates]
        text += f", although its large matrix product reaches {reached[0]} against {reached[1]} TFLOP/s"
    return f"{text}."
