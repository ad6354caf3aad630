"""Ladders: changes made one after another at a place, what each brought, and what its mechanism
predicts."""

import json
import math
import shlex
from dataclasses import dataclass, replace

from stepscope.axes import PRECISIONS
from stepscope.report.facts import predicted_gain as predicted
from stepscope.report.facts.machine import Machine, Place, arithmetic, place
from stepscope.report.kit.data import Data, of_ratio, of_series, once
from stepscope.report.kit.page import Name
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    count,
    exact,
    is_below,
    minus,
    over,
    plus,
    scaled,
    share,
)
from stepscope.results.agreement import OF_LOSS
from stepscope.results.option_labels import LABELS

START = {
    "precision": "fp32",
    "attention": "naive",
    "compile": "none",
    "optimizer": "own",
    "checkpoint": 0,
}
SIXTEEN = ("bf16", "fp16")


@dataclass(frozen=True, kw_only=True)
class Rung:
    """A change. kind: the value of the option that it changes: `tf32`, `sdpa`, `block`, `fused`,
    `checkpoint 2` …

    arithmetic: the place's FLOP at the ceilings of its precision; of_peak: of the step;
    of_sustained: at the rates that large products sustain. step: by the clock; gpu: the step
    without the host (host-free, else busy). gain: times as fast as the rung before by the clock,
    won: the seconds that it won; gpu_gain: without the host, as judged. fuses_attention: in place
    of naive attention. predicted_gain: by its mechanism alone, without the host if is_held_alone.
    optimizer: its phase; optimizer_alone: what it adds to forward and backward; on a CPU, which
    overlaps nothing, its phase. compile_time: of all processes together, of the first that compiles
    won back after pays_after steps. peak: reserved bytes. difference: of gradients from the first
    rung's, relative; loss_difference: of the loss; is_rounding: such as its format explains, so
    that it can be judged. energy: of a token.
    """

    name: Name
    variant: str
    kind: str
    precision: str
    after: str
    is_aside: bool
    status: str
    step: Maybe
    gpu: Maybe
    host_free: Maybe
    busy: Maybe
    forward: Maybe
    backward: Maybe
    optimizer: Maybe
    optimizer_alone: Maybe
    gain: Maybe
    verdict: str
    gpu_gain: Maybe
    gpu_verdict: str
    won: Maybe
    fuses_attention: bool
    predicted_gain: Maybe
    is_held_alone: bool
    total_gain: Maybe
    total_verdict: str
    tokens: Maybe
    arithmetic: Maybe
    of_peak: Maybe
    of_sustained: Maybe
    energy: Maybe
    sm_clock: Maybe
    peak: Maybe
    allocated: Maybe
    predicted_peak: Maybe
    launches: Maybe
    kernels: Maybe
    compile_time: Maybe
    pays_after: Maybe
    difference: Maybe
    loss_difference: Maybe
    is_rounding: bool
    differs: bool
    limits: str

    @property
    def has_verdict(self) -> bool:
        """Whether the gain has an interval; without one nothing is judged."""
        return self.gain is not None and self.gain.has_interval

    @property
    def predicted_alone(self) -> Maybe:
        """The prediction, if it is one of the step without the host."""
        return self.predicted_gain if self.is_held_alone else None

    @property
    def predicted_clock(self) -> Maybe:
        """The prediction, if it is one of the clock."""
        return None if self.is_held_alone else self.predicted_gain

    @property
    def held(self) -> Maybe:
        """The gain that a prediction is held against."""
        return self.gpu_gain if self.is_held_alone else self.gain


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """rungs in their order; asides are compared with the rung that they vary; failed: of both, what
    did not run.

    is_capped: by the power limit. plain: the first rung in 16 bits, else the first one. first: the
    first variant, run or not; is_part: it is another ladder's later rung. tensor_cores: its gain
    over the first; tensor_cores_alone: without the host.
    """

    place: Place
    rungs: tuple[Rung, ...]
    asides: tuple[Rung, ...]
    failed: tuple[Rung, ...]
    cell: str
    tensor_cores: Maybe
    tensor_cores_alone: Maybe
    is_throttled: bool
    is_capped: bool
    first: str
    is_part: bool = False

    @property
    def start(self) -> Rung:
        """The first rung."""
        return self.rungs[0]

    @property
    def plain(self) -> Rung:
        """The baseline of page one: 16 bits, nothing else changed."""
        return next((rung for rung in self.rungs if rung.kind in SIXTEEN and rung.step), self.start)

    @property
    def top(self) -> Rung:
        """The fastest rung."""
        return min((rung for rung in self.rungs if rung.step), key=lambda rung: rung.step.value)

    @property
    def after_plain(self) -> tuple[Rung, ...]:
        """The rungs above the baseline."""
        return self.rungs[self.rungs.index(self.plain) + 1 :]

    @property
    def gains(self) -> list[Rung]:
        """Those of them that were judged faster, by the clock or without the host, in the order of
        the ladder."""
        return [rung for rung in self.after_plain if "faster" in (rung.verdict, rung.gpu_verdict)]

    @property
    def without_gain(self) -> list[Rung]:
        """Those that were judged and were not."""
        return [rung for rung in self.after_plain if rung.has_verdict and rung not in self.gains]

    @property
    def losses(self) -> list[Rung]:
        """Those of them that were judged slower, where launches limit also without the host."""
        return [
            rung
            for rung in self.without_gain
            if "slower" in (rung.verdict, self.is_starved and rung.gpu_verdict)
        ]

    @property
    def open(self) -> list[Rung]:
        """Those that are neither faster nor slower."""
        return [rung for rung in self.without_gain if rung not in self.losses]

    @property
    def unjudged(self) -> list[Rung]:
        """Those whose gain has no interval."""
        return [rung for rung in self.after_plain if rung.gain and not rung.has_verdict]

    @property
    def clocks(self) -> list[Quantity]:
        """The rungs' SM clocks, the lowest first."""
        return sorted(
            (rung.sm_clock for rung in self.rungs if rung.sm_clock), key=lambda each: each.value
        )

    @property
    def is_starved(self) -> bool:
        """Whether launches limit the baseline and the step without the host is known, here and at
        the top."""
        return self.plain.limits == "launches" and bool(self.plain.gpu and self.top.gpu)

    @property
    def most_different(self) -> Maybe:
        """How far gradients of a rung are off the first rung's at most, of those that round alike;
        None where one was not checked."""
        return _largest(
            [rung.difference for rung in self.rungs if rung is not self.start and rung.is_rounding]
        )

    @property
    def loss_most_different(self) -> Maybe:
        """The same of the loss."""
        return _largest(
            [
                rung.loss_difference
                for rung in self.rungs
                if rung is not self.start and rung.is_rounding
            ]
        )

    @property
    def differing(self) -> list[Rung]:
        """Rungs whose loss or gradients differ by more than rounding."""
        return [rung for rung in (*self.rungs, *self.asides) if rung.differs]

    def rung(self, kind: str) -> Rung | None:
        """The rung or aside that makes this change and ran."""
        found = (each for each in (*self.rungs, *self.asides) if each.kind == kind and each.step)
        return next(found, None)

    def before(self, rung: Rung) -> Rung | None:
        """What a rung is compared with."""
        return next((each for each in self.rungs if each.variant == rung.after), None)

    def beyond(self, rung: Rung) -> Quantity:
        """What a rung takes less than the fastest below it, from the baseline on."""
        below = self.rungs[self.rungs.index(self.plain) : self.rungs.index(rung)]
        return minus(min((each.step for each in below), key=lambda step: step.value), rung.step)

    @property
    def coarse_rungs(self) -> list[Rung]:
        """The rungs that round more than 16 bits do: they compute something else."""
        return [rung for rung in self.rungs if not rung.is_rounding and rung.difference]

    @property
    def coarse(self) -> Rung | None:
        """The first of them."""
        return next(iter(self.coarse_rungs), None)

    @property
    def top_is_gain(self) -> bool:
        """Whether the fastest rung was judged faster than the first one, or than the one before
        it."""
        return (
            self.top is not self.start and (self.top.total_verdict or self.top.verdict) == "faster"
        )

    @property
    def over_plain(self) -> Maybe:
        """The top rung's gain over the baseline."""
        return over(self.plain.step, self.top.step) if self.plain is not self.top else None

    @property
    def alone_over_plain(self) -> Maybe:
        """The same without the host."""
        return exact(over(self.plain.gpu, self.top.gpu)) if self.plain is not self.top else None


@once
def ladders(data: Data, own: Machine) -> list[Ladder]:
    """All ladders, that of the most arithmetic first; after them those that start at a later
    rung."""
    cells = dict.fromkeys(row["cell"] for row in data.dicts("series", study="ladder"))
    found = [made for cell in cells if (made := _ladder(data, own, cell))]
    found = [replace(each, is_part=_starts_later(each, found)) for each in found]
    return sorted(
        found, key=lambda each: (each.is_part, -(each.place.flop.value if each.place.flop else 0))
    )


def _starts_later(ladder: Ladder, among: list[Ladder]) -> bool:
    """Whether its first variant, run or not, is a later rung of another one."""
    others = [
        rung
        for each in among
        if each is not ladder
        for rung in (*each.rungs, *each.asides, *each.failed)
    ]
    return any(rung.variant == ladder.first and rung.after for rung in others)


def variants_of(command: str) -> list[dict]:
    """The variants that a cell's command names, with all of their options that are not neutral."""
    words = shlex.split(command or "")
    return json.loads(words[words.index("--variants") + 1]) if "--variants" in words[:-1] else []


def _ladder(data: Data, own: Machine, cell: str) -> Ladder | None:
    rows = data.dicts("series", cell=cell)
    about = data.row("cells", cell=cell)
    declared = {each["name"]: each for each in variants_of(about.get("command", ""))}
    comparisons = data.dicts("comparisons", cell=cell, quantity="time", phase="step")
    alone = data.dicts("comparisons", cell=cell, quantity="host_free_time", phase="step")
    if not declared:
        return None
    changes, first = _changes(declared), next(iter(declared))
    known = {(row["quantity"], row["variant"]) for row in rows if row["status"] == "ok"}
    ran = [name for name in changes if ("time", name) in known]
    chain = [name for name in ran if not changes[name]["is_aside"]]
    free, busy = (
        all((of, name) in known for name in chain) for of in ("host_free_time", "busy_time")
    )
    sixteen = next(
        (one for name, one in changes.items() if name in ran and one["precision"] in SIXTEEN),
        changes[first],
    )
    where = place(data, own, rows[0], sixteen["precision"])
    made: dict[str, Rung] = {}
    judged = {(row["quantity"], row["a"], row["b"]): row for row in (*comparisons, *alone)}
    for name in declared:
        own_rows = [row for row in rows if row["variant"] == name]
        made[name] = _rung(
            name,
            changes[name] | {"is_free": free or not busy},
            own_rows,
            judged,
            first,
            made,
            where,
            own,
        )
    if not any(rung.step for rung in made.values()):
        return None
    plain = next((rung for rung in made.values() if rung.kind in SIXTEEN), None)
    pair, pair_alone = (_pair(rows, first, plain) for rows in (comparisons, alone))
    return Ladder(
        place=where,
        rungs=tuple(rung for rung in made.values() if not rung.is_aside and rung.status == "ok"),
        asides=tuple(rung for rung in made.values() if rung.is_aside and rung.status == "ok"),
        failed=tuple(rung for rung in made.values() if rung.status != "ok"),
        cell=cell,
        tensor_cores=of_ratio(pair) if pair and pair["verdict"] == "faster" else None,
        tensor_cores_alone=of_ratio(pair_alone)
        if pair_alone and pair_alone["verdict"] == "faster"
        else None,
        is_throttled=bool(about.get("throttle")),
        is_capped="power cap" in about.get("throttle", ""),
        first=first,
    )


def _pair(rows: list[dict], first: str, plain: Rung | None) -> dict | None:
    return next(
        (row for row in rows if plain and (row["a"], row["b"]) == (first, plain.variant)), None
    )


def _changes(declared: dict[str, dict]) -> dict[str, dict]:
    """Of each variant all options, `after`, what it changes (`kind`), and whether it stands beside
    the ladder."""
    options: dict[str, dict] = {}
    for name, said in declared.items():
        after = said.get("after", "")
        based = options.get(after, START)
        full = START | {key: said[key] for key in START if key in said}
        changed = [key for key in START if full[key] != based[key]] or ["precision"]
        if not after:  # a ladder that starts at a later rung is called by that
            changed = [key for key in changed if str(full[key]) == name] or changed[-1:]
        value = full[changed[0]]
        kind = f"checkpoint {value}" if changed[0] == "checkpoint" else str(value)
        fuses = kind in ("sdpa", "flex", "triton") and based["attention"] == "naive"
        options[name] = full | {"after": after, "kind": kind, "fuses": fuses}
    main = _longest_chain(options)
    return {name: full | {"is_aside": name not in main} for name, full in options.items()}


def _longest_chain(options: dict[str, dict]) -> list[str]:
    """The rungs: the longest way from the first variant along `after`; what branches off it is an
    aside."""
    ways: dict[str, list[str]] = {}
    for name, full in options.items():
        ways[name] = [*ways.get(full["after"], []), name]
    return max(ways.values(), key=len)


def _rung(
    name: str,
    change: dict,
    rows: list[dict],
    judged: dict,
    first: str,
    made: dict,
    where: Place,
    own: Machine,
) -> Rung:
    def of(quantity: str, phase: str | None = None, mode: str = "step") -> Maybe:
        fits = (
            row
            for row in rows
            if row["quantity"] == quantity
            and row["mode"] in (mode, "")
            and phase in (None, row["phase"])
        )
        row = next(fits, None)
        return of_series(row) if row and row["status"] == "ok" else None

    pair, alone = (
        judged.get((quantity, change["after"], name)) for quantity in ("time", "host_free_time")
    )
    whole, before = judged.get(("time", first, name)), made.get(change["after"])
    alone_time, busy = of("host_free_time"), of("busy_time")
    step, work = of("time", "step"), arithmetic(where, change["precision"], own.rates)
    won = _won(before, step, pair) if before else None
    own_step = next(
        (row for row in rows if row["quantity"] == "time" and row["phase"] == "step"), {}
    )
    kind, compiling = change["kind"], _compiling(rows)
    difference, loss = of("difference"), of("loss_difference")
    is_first = not any(each.compile_time for each in made.values())
    label = (
        f"checkpoint every {kind.split()[1]}"
        if kind.startswith("checkpoint")
        else LABELS.get(kind, name)
    )
    return Rung(
        name=Name(label),
        variant=name,
        kind=kind,
        precision=change["precision"],
        after=change["after"],
        is_aside=change["is_aside"],
        status=own_step.get("status", "") or "ok",
        step=step,
        gpu=(alone_time or busy) if change["is_free"] else (busy or alone_time),
        host_free=alone_time,
        busy=busy,
        forward=of("time", "forward"),
        backward=of("time", "backward"),
        optimizer=of("time", "optimizer"),
        optimizer_alone=(own.is_gpu and _positive(minus(step, of("time", mode="forward-backward"))))
        or of("time", "optimizer"),
        gain=of_ratio(pair) if pair else None,
        verdict=pair["verdict"] if pair else "",
        gpu_gain=of_ratio(alone) if alone else None,
        gpu_verdict=alone["verdict"] if alone else "",
        won=won,
        fuses_attention=change["fuses"],
        predicted_gain=predicted.gain("sdpa" if change["fuses"] else kind, before, where, work)
        if before and before.step
        else None,
        is_held_alone=predicted.is_alone(kind, before) if before else False,
        total_gain=of_ratio(whole) if whole else None,
        total_verdict=whole["verdict"] if whole else "",
        tokens=of("tokens_per_second"),
        arithmetic=work,
        of_peak=share(work, step),
        of_sustained=share(arithmetic(where, change["precision"], own.sustained), step),
        energy=of("energy_token"),
        sm_clock=exact(of("sm_clock")),
        peak=of("peak_reserved"),
        allocated=of("peak_allocated"),
        predicted_peak=of("peak_predicted"),
        launches=of("launches"),
        kernels=of("kernels"),
        compile_time=compiling,
        pays_after=_pays(compiling, won)
        if pair and pair["verdict"] == "faster" and is_first
        else None,
        difference=scaled(difference, 1.0, "error") if difference else None,
        loss_difference=scaled(loss, 1.0, "error") if loss else None,
        is_rounding=PRECISIONS[change["precision"]].tolerance is not None,
        differs=is_below(of("tolerance"), difference)
        or is_below(of("tolerance"), loss, 1 / OF_LOSS),
        limits=own_step.get("limits", ""),
    )


def _largest(known: list[Maybe]) -> Maybe:
    return max(known, key=lambda each: each.value) if known and all(known) else None


def _won(before: Rung, step: Maybe, pair: dict | None) -> Maybe:
    """Seconds of the rung before that a change takes away: by the ratio of both in turns, else
    their difference."""
    if pair is None or before.step is None:
        return minus(before.step, step)
    ratio, clock = of_ratio(pair), before.step.value
    ends = (
        [clock * (1 - 1 / end) for end in (ratio.low, ratio.high)]
        if ratio.has_interval
        else [None, None]
    )
    return Quantity(clock * (1 - 1 / ratio.value), "s", *ends, cells=before.step.cells)


def _compiling(rows: list[dict]) -> Maybe:
    """Seconds by which first steps took longer, of the processes that noted it together."""
    row = next(
        (row for row in rows if row["quantity"] == "compile_time" and row["status"] == "ok"), None
    )
    return Quantity(row["mean"] * row["processes"], "s", cells=(row["cell"],)) if row else None


def _pays(compiling: Maybe, won: Maybe) -> Maybe:
    """Steps that win the time of compiling back, to two digits: more are not known of a compiler's
    time over a gain."""
    pays = over(compiling, won) if won and won.value > 0 else None
    return count(float(f"{math.ceil(pays.value - 1e-9):.2g}"), *pays.cells) if pays else None


def _positive(time: Maybe) -> Maybe:
    return time if time and time.value > 0 else None


def alone_gain(before: Rung, rung: Rung) -> Maybe:
    """Times as fast on the GPU alone: both host-free, else both by the union of their kernels."""
    return exact(over(before.host_free, rung.host_free) or over(before.busy, rung.busy))


def left_over(ladder: Ladder) -> Maybe:
    """What the top rung takes beyond its arithmetic at the ceiling and the optimizer's bytes; None
    if nothing."""
    return _positive(
        minus(ladder.top.step, plus(ladder.top.arithmetic, ladder.place.optimizer_fused))
    )


def at_sustained(ladder: Ladder, own: Machine) -> Maybe:
    """The top rung's arithmetic at the rates that large products sustain."""
    return arithmetic(ladder.place, ladder.top.precision, own.sustained)
