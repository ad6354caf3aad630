"""Rungs: what each variant of a ladder takes, what it brought, and what its mechanism predicts."""

import math
from functools import cached_property

from stepscope.formulas.traffic import OPTIMIZER_BYTES
from stepscope.model.formats import PRECISIONS
from stepscope.report.facts.machine import Place, arithmetic, limited
from stepscope.report.facts.variants import Change
from stepscope.report.kit.data import Row, of_ratio, of_series
from stepscope.report.kit.named import frozen, made_of
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    count,
    exact,
    is_below,
    minus,
    over,
    plus,
    positive,
    scaled,
    share,
    time_of,
    within,
)
from stepscope.results.agreement import OF_LOSS


@frozen
class Measured:
    """A ladder's cell: its place, its variants, and its rows of series.csv and comparisons.csv.

    options: of each variant. memory_rate: bytes a second that the data sheet promises. cards: the
    GPUs that it ran on; of_ceilings: those that the ceilings were measured on.
    """

    cell: str
    place: Place
    changes: dict[str, Change]
    rows: list[Row]
    comparisons: list[Row]
    options: dict[str, dict[str, str]]
    memory_rate: Maybe
    cards: set[str]
    of_ceilings: set[str]

    @cached_property
    def rungs(self) -> dict[str, "Rung"]:
        """Each variant by its name, run or not."""
        return {name: Rung(data=self, **vars(change)) for name, change in self.changes.items()}

    @property
    def first(self) -> str:
        """The first variant, run or not."""
        return next(iter(self.changes))

    def row(self, variant: str, quantity: str, phase: str = "", mode: str = "") -> Row:
        """The first such row of series.csv, of any phase and mode where none is named; {} without
        one."""
        for row in self.rows:
            is_it = (row["variant"], row["quantity"]) == (variant, quantity)
            if is_it and phase in ("", row["phase"]) and mode in ("", row["mode"]):
                return row
        return {}

    def compared(self, quantity: str, a: str, b: str) -> Row:
        """The row of comparisons.csv of two variants; {} without one."""
        for row in self.comparisons:
            if (row["quantity"], row["a"], row["b"]) == (quantity, a, b):
                return row
        return {}


def _series(quantity: str, phase: str = "") -> cached_property[Maybe]:
    """The fact that is a series of the variant's step."""

    return cached_property(lambda rung: rung.measured(quantity, phase))


def _error(quantity: str) -> cached_property[Maybe]:
    """The fact that is a relative error."""

    return cached_property(lambda rung: scaled(rung.measured(quantity), 1.0, "error"))


def _ratio(quantity: str, over_first: bool = False) -> cached_property[Maybe]:
    """The fact that is a comparison with the rung before, or the first one: times as fast."""

    return cached_property(lambda rung: of_ratio(rung.compared(quantity, over_first)))


def _verdict(quantity: str, over_first: bool = False) -> cached_property[str]:
    """The fact that is the verdict of such a comparison."""

    return cached_property(lambda rung: rung.compared(quantity, over_first).get("verdict", ""))


@frozen
class Rung(Change):
    """A variant with what was measured of it.

    Its clock is that of free steps; phases are of steps that are synchronised around each.
    """

    data: Measured

    step = _series("time", "step")
    gpu = _series("alone_time")  # without the host
    host_free = _series("host_free_time")
    busy = _series("busy_time")
    tokens = _series("tokens_per_second")
    mfu = _series("mfu")
    mfu_causal = _series("mfu_causal")
    mfu_narrow = _series("mfu_narrow")
    energy = _series("energy_token")
    reserved = _series("peak_reserved")
    allocated = _series("peak_allocated")
    predicted_peak = _series("peak_predicted")
    launches = _series("launches")
    # of gradients and loss, from the first rung's
    difference = _error("difference")
    loss_difference = _error("loss_difference")
    # over the rung before, and over the first one; without the host where it says so
    gain = _ratio("time")
    verdict = _verdict("time")
    gpu_gain = _ratio("host_free_time")
    gpu_verdict = _verdict("host_free_time")
    total_gain = _ratio("time", over_first=True)
    total_verdict = _verdict("time", over_first=True)
    total_gpu_gain = _ratio("host_free_time", over_first=True)
    total_gpu_verdict = _verdict("host_free_time", over_first=True)

    @property
    def peak(self) -> Maybe:
        """Reserved; allocated where it used what other rungs had reserved."""
        return self.reserved or self.allocated

    @property
    def before(self) -> "Rung | None":
        """What it is compared with."""
        return self.data.rungs.get(self.after)

    @property
    def seconds(self) -> float:
        """The step of a rung that ran."""
        assert self.step is not None, f"{self.variant} did not run"
        return self.step.value

    @cached_property
    def limits(self) -> str:
        """What limits the step: `gpu`, `launches`, or not known."""
        return self.data.row(self.variant, "time", "step", "step").get("limits", "")

    limited = made_of(limited, "limits", "step", "gpu")  # the same, as pages say it

    @cached_property
    def won(self) -> Maybe:
        """Seconds of the rung before that it takes away: by the ratio of both in turns, else their
        difference."""
        before = self.before
        if before is None:
            return None
        return _won(before.step, self.gain) or minus(before.step, self.step)

    @cached_property
    def alone_won(self) -> Maybe:
        """The same without the host."""
        before = self.before
        if before is None:
            return None
        return _won(before.host_free, self.gpu_gain) or minus(before.gpu, self.gpu)

    @cached_property
    def net_won(self) -> Maybe:
        """What it won of the last rung that was a gain or changed another option: what stood
        between, and lost, is no baseline."""
        before = self.before
        is_same = before is not None and before.option == self.option != "precision"
        if before is None or not is_same or before.is_gain:
            return self.won
        return plus(before.net_won, self.won)

    @property
    def is_gain(self) -> bool:
        """Whether it was judged faster, by the clock or without the host, and computes the same."""
        return "faster" in (self.verdict, self.gpu_verdict) and not self.is_wrong

    @property
    def is_wrong(self) -> bool:
        """Whether with it loss or gradients come to differ by more than rounding explains."""
        return self.differs and not (self.before and self.before.differs)

    @cached_property
    def predicted_won(self) -> Maybe:
        """Seconds that its mechanism alone should win: what it takes away, and nothing else.

        A precision: its FLOP at the other ceiling. Fused attention: the scores' bytes. The
        optimizer in one pass: what its phase, as measured before, takes beyond its bytes. CUDA
        graphs win what the GPU waits, which is measured, so that nothing predicts them.
        """
        before, where = self.before, self.data.place
        if before is None:
            return None
        saved = {
            "arithmetic": minus(before.arithmetic, self.arithmetic),
            "scores": where.scores,
            "optimizer": minus(before.optimizer, where.optimizer_fused),
        }
        return positive(saved.get(self.takes_away))

    @property
    def is_hidden(self) -> bool:
        """Whether launches hide what it wins by the clock."""
        before = self.before
        return before is not None and before.limits == "launches" and before.gpu is not None

    @property
    def is_held_alone(self) -> bool:
        """Whether the prediction is therefore one of the step without the host."""
        return self.is_hidden and self.takes_away in ("arithmetic", "scores")

    @property
    def predicted_alone(self) -> Maybe:
        """The prediction, if it is one of the step without the host."""
        return self.predicted_won if self.is_held_alone else None

    @property
    def held_won(self) -> Maybe:
        """What was won of what the prediction speaks of."""
        return self.alone_won if self.is_held_alone else self.won

    @cached_property
    def idle(self) -> Maybe:
        """What the clock exceeds the step without the host by."""
        return positive(minus(self.step, self.gpu))

    @property
    def has_verdict(self) -> bool:
        """Whether the gain has an interval; without one nothing is judged."""
        return self.gain is not None and self.gain.has_interval

    @property
    def said(self) -> str:
        """The verdict, without the host where launches limit the rung before."""
        return self.gpu_verdict if self.is_hidden and self.gpu_gain else self.verdict

    @cached_property
    def optimizer(self) -> Maybe:
        """Its phase; None if that were faster than the data sheet lets its bytes move."""
        phase = self.measured("time", "optimizer")
        least = time_of(self.data.place.updating(OPTIMIZER_BYTES), self.data.memory_rate)
        return None if is_below(phase, least) else phase

    @cached_property
    def arithmetic(self) -> Maybe:
        """The place's FLOP at the ceilings of the rung's precision."""
        return arithmetic(self.data.place, self.precision)

    of_peak = made_of(share, "arithmetic", "step")  # that, of the step

    @cached_property
    def of_sustained(self) -> Maybe:
        """The same at the rates that large products sustain."""
        return share(arithmetic(self.data.place, self.precision, "sustained"), self.step)

    @cached_property
    def sm_clock(self) -> Maybe:
        """The card's clock before a step, the median."""
        return exact(self.measured("sm_clock"))

    @cached_property
    def compile_time(self) -> Maybe:
        """By how much first steps took longer, of the processes that noted it together."""
        row = self.data.row(self.variant, "compile_time")
        if row.get("status") != "ok":
            return None
        return Quantity(row["mean"] * row["processes"], "s", cells=(row["cell"],))

    @cached_property
    def pays_after(self) -> Maybe:
        """Of the first rung that compiles, if it won: after how many steps that is won back. To two
        digits: no more are known of a compiler's time over a gain."""
        compiling = [rung for rung in self.data.rungs.values() if rung.compile_time]
        is_first = bool(compiling) and compiling[0] is self
        steps = over(self.compile_time, self.won) if is_first else None
        if steps is None or self.verdict != "faster":
            return None
        return count(float(f"{math.ceil(steps.value - 1e-9):.2g}"), *steps.cells)

    @property
    def is_rounding(self) -> bool:
        """Whether its format explains differences, so that they can be judged."""
        return PRECISIONS[self.precision].tolerance is not None

    @property
    def differs(self) -> bool:
        """Whether loss or gradients differ by more."""
        most = self.measured("tolerance")
        return is_below(most, self.difference) or is_below(most, self.loss_difference, 1 / OF_LOSS)

    def measured(self, quantity: str, phase: str = "", mode: str = "step") -> Maybe:
        """A series of the variant, if it ran."""
        row = self.data.row(self.variant, quantity, phase, mode)
        return of_series(row) if row.get("status") == "ok" else None

    def compared(self, quantity: str, over_first: bool) -> Row:
        """The comparison with the rung before, or with the first one; {} without one."""
        other = self.data.first if over_first else self.after
        return self.data.compared(quantity, other, self.variant)


def _won(clock: Maybe, gain: Maybe) -> Maybe:
    """Seconds of a clock that a gain takes away, with the gain's interval."""
    if clock is None or gain is None:
        return None
    won = Quantity(clock.value * (1 - 1 / gain.value), "s", cells=clock.cells)
    if gain.ends is None:
        return won
    low, high = gain.ends
    return within(won, clock.value * (1 - 1 / low), clock.value * (1 - 1 / high))
