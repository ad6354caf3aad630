"""Rungs: what each variant of a ladder takes, what it brought, and what its mechanism predicts."""

from functools import cached_property

from stepscope.axes import PLAIN_STEP
from stepscope.formulas.traffic import OPTIMIZER_BYTES
from stepscope.model.about import About, TakesAway
from stepscope.model.formats import PRECISIONS
from stepscope.report.kit.data import Row, of_ratio, of_series
from stepscope.report.kit.named import Name, frozen, made_of
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
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
from stepscope.results.option_labels import ABOUT

from .machine import Place, arithmetic, limited, machine


@frozen
class Measured:
    """A ladder's cell and its place. declared: what variants.csv says of each variant, in their
    order."""

    cell: str
    place: Place
    declared: dict[str, Row]

    @cached_property
    def rungs(self) -> dict[str, "Rung"]:
        """Each variant by its name, run or not."""
        return {name: Rung(data=self, variant=name) for name in self.declared}

    @property
    def first(self) -> "Rung":
        """The first variant, run or not."""
        return next(iter(self.rungs.values()))

    @cached_property
    def rows(self) -> dict[tuple[str, str, str], Row]:
        """Of series.csv, by variant, quantity and phase."""
        rows = self.place.data.dicts("series", cell=self.cell)
        return {(row["variant"], row["quantity"], row["phase"]): row for row in rows}

    @cached_property
    def comparisons(self) -> dict[tuple[str, str, str], Row]:
        """Of comparisons.csv, by quantity and both variants."""
        rows = self.place.data.dicts("comparisons", cell=self.cell, phase="step")
        return {(row["quantity"], row["a"], row["b"]): row for row in rows}


def options(declared: Row) -> Row:
    """What a variant is run with, by the names of PLAIN_STEP."""
    return {name: declared[name] for name in PLAIN_STEP}


def _series(quantity: str, phase: str = "step") -> cached_property[Maybe]:
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
class Rung:
    """A variant with what was measured of it.

    Its clock is that of free steps; phases are of steps that are synchronised around each.
    option: the one that it changes. kind: what its new value is called among those of all options:
    `tf32`, `sdpa`, `checkpoint 2` … after: the variant that it is made on.
    """

    data: Measured
    variant: str

    name = made_of(Name, "declared.label")
    option = made_of(str, "declared.changed")
    kind = made_of(str, "declared.kind")
    precision = made_of(str, "declared.precision")
    after = made_of(str, "declared.after")
    is_aside = made_of(bool, "declared.is_aside")  # no rung stands on it

    @property
    def declared(self) -> Row:
        """What variants.csv says of it."""
        return self.data.declared[self.variant]

    @property
    def options(self) -> Row:
        """What it is run with."""
        return options(self.declared)

    @property
    def about(self) -> About:
        """What the value says of itself; of a number of blocks no more than its name."""
        return ABOUT.get(self.kind) or About(label=self.name, title=self.name)

    @property
    def fuses_attention(self) -> bool:
        """Whether it stands in place of attention that writes its scores out."""
        return self.takes_away == "scores"

    @cached_property
    def takes_away(self) -> TakesAway:
        """What of the step before it, by which its gain is predicted: one fused attention in place
        of another takes no scores."""
        taken, before = self.about.takes_away, self.before
        attention = ABOUT[before.options["attention"]] if before else About(label="")
        return "" if taken == attention.takes_away == "scores" else taken

    step = _series("time")
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
        return self.row("time").get("limits", "")

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
        where = self.data.place
        least = time_of(where.updating(OPTIMIZER_BYTES), machine(where.data).memory_rate)
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
        row = self.row("compile_time", "forward+backward")
        if row.get("status") != "ok":
            return None
        return Quantity(row["mean"] * row["processes"], "s", cells=(row["cell"],))

    pays_after = made_of(over, "compile_time", "won", unit="count")  # so many steps, of a gain

    @property
    def is_rounding(self) -> bool:
        """Whether its format explains differences, so that they can be judged."""
        return PRECISIONS[self.precision].tolerance is not None

    @property
    def differs(self) -> bool:
        """Whether loss or gradients differ by more."""
        most = self.measured("tolerance")
        return is_below(most, self.difference) or is_below(most, self.loss_difference, 1 / OF_LOSS)

    def row(self, quantity: str, phase: str = "step") -> Row:
        """Of series.csv; {} without one."""
        return self.data.rows.get((self.variant, quantity, phase), {})

    def measured(self, quantity: str, phase: str = "step") -> Maybe:
        """A series of the variant, if it ran."""
        row = self.row(quantity, phase)
        return of_series(row) if row.get("status") == "ok" else None

    def compared(self, quantity: str, over_first: bool) -> Row:
        """The comparison with the rung before, or with the first one; {} without one."""
        other = self.data.first.variant if over_first else self.after
        return self.data.comparisons.get((quantity, other, self.variant), {})


def _won(clock: Maybe, gain: Maybe) -> Maybe:
    """Seconds of a clock that a gain takes away, with the gain's interval."""
    if clock is None or gain is None:
        return None
    won = Quantity(clock.value * (1 - 1 / gain.value), "s", cells=clock.cells)
    if gain.ends is None:
        return won
    low, high = gain.ends
    return within(won, clock.value * (1 - 1 / low), clock.value * (1 - 1 / high))
