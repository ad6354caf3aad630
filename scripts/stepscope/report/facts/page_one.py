"""Page one: the largest step, where its time goes, what to change first, what fits, and what to
doubt."""

from dataclasses import dataclass, replace

from stepscope.report.facts import ladder as climbing
from stepscope.report.facts import memory, method, profile
from stepscope.report.facts.ladders import Ladder, ladders
from stepscope.report.facts.machine import Machine, Place, machine, place
from stepscope.report.facts.memory import Memory
from stepscope.report.facts.profile import Profiled
from stepscope.report.facts.shape import largest_batch, longest_context
from stepscope.report.kit.data import Data, of_series
from stepscope.report.kit.page import Name
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    count,
    is_below,
    minus,
    over,
    plus,
    scaled,
    share,
)
from stepscope.results.option_labels import LABELS

ALREADY = ("sdpa", "triton", "flex", "torch", "fused")  # what many programs have
MOSTLY = 0.5  # of a step
LOOSE = 0.1  # half an interval that a reader should be told of
BYTES_A_PARAMETER = 16  # fp32: parameter, gradient, two moments


@dataclass(frozen=True, kw_only=True)
class Applies:
    """Places of a size that the same thing limits and the same change helps first."""

    size: Name
    parameters: Maybe
    contexts: str
    limits: str
    step: Maybe
    change: Name
    saves: str


@dataclass(frozen=True, kw_only=True)
class Fits:
    """The most that fits the memory by the closed form, with attention as it is named."""

    change: Name
    context: Maybe
    batch: Maybe


@dataclass(frozen=True, kw_only=True)
class PageOne:
    """step: of the baseline at `place`. limit: `launches`, `arithmetic`, `other` (neither), by its
    share of the step.

    start, end: the profiled baseline and top rung at the place. idle: of the step, beyond its
    kernels. left: what is beyond the two bounds at the top. again, gpu_again: the same step timed
    by itself, where it is not the ladder's. missing: cells, of those that are planned. rest: the
    gains but ALREADY's, which won rest_won. hosts: the plain step that launches limit which is
    known worst by the clock.
    """

    machine: Machine
    place: Place | None = None
    step: Maybe = None
    gpu: Maybe = None
    launches: Maybe = None
    is_host_free: bool = False
    limit: str = ""
    arithmetic_share: Maybe = None
    ladder: Ladder | None = None
    start: Profiled | None = None
    end: Profiled | None = None
    products_share: Maybe = None
    optimizer_share: Maybe = None
    others_share: Maybe = None
    memory: Memory | None = None
    idle: Maybe = None
    again: Maybe = None
    gpu_again: Maybe = None
    left: Maybe = None
    sustained: Maybe = None
    reserved: Maybe = None
    top_reserved: Maybe = None
    floor: Maybe = None
    applies: tuple[Applies, ...] = ()
    fits: tuple[Fits, ...] = ()
    is_throttled: bool = False
    loosest: Maybe = None
    loosest_rung: Name | None = None
    profiled_elsewhere: Place | None = None
    older: Maybe = None
    missing: Maybe = None
    planned: Maybe = None
    versions: tuple[Name, ...] = ()
    at_once: Maybe = None
    alone_gain: Maybe = None
    fused_gain: Maybe = None
    coarse_slower: tuple[Name, ...] = ()
    most: climbing.Reach | None = None
    narrower: Maybe = None
    rest: tuple[Name, ...] = ()
    rest_won: Maybe = None
    hosts: Maybe = None
    hosts_place: Name | None = None

    @property
    def has_graphs_to_try(self) -> bool:
        """Whether launches limit a place, and the ladder's gains have no recipe for it."""
        told = self.ladder and "graphs" in [rung.kind for rung in self.ladder.gains]
        return not told and any(each.limits == "launches" for each in self.applies)

    @property
    def doubts(self) -> list[str]:
        """The three that weigh most, of those that there are."""
        found = {
            "missing": self.missing,
            "older": self.older,
            "loose": self.loosest,
            "together": self.at_once,
            "hosts": self.hosts if not self.loosest else None,
            "elsewhere": self.profiled_elsewhere,
            "throttled": self.is_throttled,
        }
        return [name for name, value in found.items() if value][:3]


def facts(data: Data) -> PageOne | None:
    """Of the place of the largest ladder; without one, of the largest step that was timed."""
    own = machine(data)
    where = profile.subject(data, own)
    if where is None:
        return None
    found = next(iter(ladders(data, own)), None)
    all_profiled = profile.profiled(data, own)
    start = profile.plain_at(all_profiled, where, where.precision)
    timed = _timed(data, where)
    step = found.plain.step if found else timed.get("time")
    gpu = (
        (found.plain.gpu if found else None)
        or timed.get("host_free_time")
        or timed.get("busy_time")
    )
    limits = found.plain.limits if found else timed.get("limits", "")
    arithmetic_share = share(where.arithmetic, step)
    largest = profile.plain_step(all_profiled, where)
    cells = data.dicts("cells")
    facts = PageOne(
        machine=own,
        place=where,
        step=step,
        gpu=gpu,
        is_host_free=bool(timed.get("host_free_time")),
        launches=(found.plain.launches if found else None) or timed.get("launches"),
        limit=_limit(limits, arithmetic_share),
        arithmetic_share=arithmetic_share,
        start=start,
        idle=minus(step, start.busy) if start else None,
        end=profile.top_at(all_profiled, where),
        **_shares(start or largest),
        memory=memory.facts(data) if not own.is_gpu else None,
        floor=scaled(where.parameters, BYTES_A_PARAMETER, "B"),
        applies=_applies(data, own) if own.is_gpu else (),
        fits=_fits(data, own, where) if own.is_gpu else (),
        reserved=timed.get("peak_reserved"),
        profiled_elsewhere=largest.place if largest and not start else None,
        older=_some([row for row in cells if row["status"] == "ok" and not row["is_current"]]),
        missing=_some([row for row in cells if row["status"] == "missing"]),
        planned=count(len(cells)),
        versions=method.versions(cells),
        at_once=method.at_once(cells),
        coarse_slower=_slower(ladders(data, own)),
        **_hosts(data, own),
        narrower=over(
            timed.get("time"), _timed(data, replace(where, precision="bf16")).get("time")
        ),
    )
    if found is None:
        return facts
    again = {"again": timed.get("time"), "gpu_again": timed.get("host_free_time")}
    return replace(facts, **again, **_of_ladder(found, own, facts, climbing.facts(data)))


def _some(rows: list[dict]) -> Maybe:
    return count(len(rows), *(row["cell"] for row in rows)) if rows else None


def _shares(profiled: Profiled | None) -> dict:
    """Of the time in kernels or operators; together they are all of it."""
    if profiled is None:
        return {}
    whole, products = profiled.kernels_time, profiled.products
    return {
        "products_share": share(products, whole),
        "optimizer_share": share(profiled.optimizer, whole),
        "others_share": share(minus(minus(whole, products), profiled.optimizer), whole),
    }


def _slower(ladders: list[Ladder]) -> tuple[Name, ...]:
    """Other sizes at which the coarse rung was judged slower than the one before."""
    others = [
        each for each in ladders[1:] if each.place.size != ladders[0].place.size and each.coarse
    ]
    return tuple(
        dict.fromkeys(each.place.size for each in others if each.coarse.verdict == "slower")
    )


def _timed(data: Data, where: Place) -> dict:
    """Quantity → the plain timed step's; `limits` as text."""
    rows = data.series(
        study="timing", precision=where.precision, options="", mode="step", **where.where
    )
    own = [row for row in rows if row["phase"] in ("step", "")]
    made: dict = {row["quantity"]: of_series(row) for row in reversed(own)}
    return made | {"limits": next((row["limits"] for row in own if row["quantity"] == "time"), "")}


def _limit(limits: str, arithmetic_share: Maybe) -> str:
    known = (
        ""
        if arithmetic_share is None
        else "arithmetic"
        if arithmetic_share.value >= MOSTLY
        else "other"
    )
    return "launches" if limits == "launches" else known


def _of_ladder(ladder: Ladder, own: Machine, facts: PageOne, told: climbing.LadderFacts) -> dict:
    plain, top, clock = ladder.plain, ladder.top, next(iter(ladder.clocks), None)
    fused, torch = ladder.rung("fused"), ladder.rung("torch")
    loosest = max(ladder.rungs, key=lambda rung: rung.step.half_width)
    wide = loosest.step if loosest.step.half_width > LOOSE else None
    return {
        "ladder": ladder,
        "most": told.most,
        "is_throttled": bool(ladder.throttle)
        and (not clock or is_below(clock, told.highest_clock, climbing.HELD_BACK)),
        "left": ladder.left,
        "sustained": ladder.sustained,
        "reserved": plain.peak or facts.reserved,
        "top_reserved": top.peak if top is not plain else None,
        **(_rest(ladder) if not ladder.is_starved else {}),
        "fused_gain": plus(torch.won, fused.won)
        if torch and fused and fused in ladder.gains
        else None,
        "alone_gain": ladder.alone_over_plain if wide else None,
        "loosest": Quantity(wide.half_width, "share", cells=wide.cells) if wide else None,
        "loosest_rung": loosest.name,
    }


def _rest(ladder: Ladder) -> dict:
    """What is left to win for a program whose attention and optimizer are fused."""
    left = [rung for rung in ladder.gains if rung.kind not in ALREADY]
    has_both = ladder.rung("fused") in ladder.gains and any(
        rung.fuses_attention for rung in ladder.gains
    )
    won = plus(*(rung.won for rung in left))
    return {"rest": tuple(rung.name for rung in left), "rest_won": won} if has_both and won else {}


def _hosts(data: Data, own: Machine) -> dict:
    rows = data.series(
        study="timing", quantity="time", mode="step", phase="step", precision="bf16", options=""
    )
    steps = ((of_series(row), row) for row in rows if row["limits"] == "launches")
    loose = (each for each in steps if each[0].half_width > LOOSE)
    step, row = max(loose, key=lambda each: each[0].half_width, default=(None, None))
    return {"hosts": step, "hosts_place": place(data, own, row, "bf16").name} if step else {}


def _applies(data: Data, own: Machine) -> tuple[Applies, ...]:
    """Every plain timed step in bf16, neighbours of a size with the same limit and first change
    joined."""
    rows = data.series(
        study="timing", quantity="time", mode="step", phase="step", precision="bf16", options=""
    )
    made = [each for row in rows if (each := _judged(data, own, row))]
    groups: dict[tuple, list] = {}
    made.sort(key=lambda each: (each[0].parameters.value, each[0].context))
    for where, step, limits, change, saves in made:
        groups.setdefault((where.size, limits, change), []).append((where, step, saves))
    return tuple(
        Applies(
            size=size,
            parameters=found[-1][0].parameters,
            contexts=_span([where.context for where, _, _ in found]),
            limits=limits,
            step=found[-1][1],
            change=Name(LABELS.get(change, change)),
            saves=_span(sorted(round(100 * saved.value / step.value) for _, step, saved in found)),
        )
        for (size, limits, change), found in groups.items()
    )


def _span(numbers: list[int]) -> str:
    """`128 to 512`, or the only one."""
    return f"{numbers[0]:,}" if numbers[0] == numbers[-1] else f"{numbers[0]:,} to {numbers[-1]:,}"


def _judged(data: Data, own: Machine, row: dict) -> tuple | None:
    """(place, step, what limits it, the change that won most or should, the seconds of it)."""
    where, step = place(data, own, row, row["precision"]), of_series(row)
    if where is None or where.parameters is None:
        return None
    if row["limits"] == "launches":
        same = {"cell": row["cell"], "mode": "step", "phase": "step"}
        least = data.measured("host_free_time", **same) or data.measured("busy_time", **same)
        return where, step, "launches", "graphs", minus(step, least)
    ladder = next((each for each in ladders(data, own) if each.place.key == where.key), None)
    limits = "GPU" if row["limits"] == "gpu" else "not known"
    won = (
        {rung.kind: ladder.beyond(rung) for rung in ladder.gains}
        if ladder and not ladder.is_starved
        else {}
    )
    change = max(won, key=lambda kind: won[kind].value, default=None)
    if change and won[change].value > 0:
        return where, step, limits, change, won[change]
    savings = {"sdpa": where.scores, "fused": minus(where.optimizer_written, where.optimizer_fused)}
    known = {change: saved for change, saved in savings.items() if saved}
    change = max(known, key=lambda each: known[each].value, default=None)
    return (where, step, limits, change, known[change]) if change else None


def _fits(data: Data, own: Machine, where: Place) -> tuple[Fits, ...]:
    """Naive attention, then fused: the longest context at the place's batch, the largest batch at
    its context."""
    made = []
    for attention, label in (("naive", "plain"), ("sdpa", LABELS["sdpa"])):
        context = longest_context(data, where, own.memory, attention)
        batch = largest_batch(data, where, own.memory, attention)
        made.append(Fits(change=Name(label), context=context, batch=batch))
    return tuple(made)
