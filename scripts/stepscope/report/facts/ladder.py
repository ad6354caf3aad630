"""The ladder: each change predicted, measured and its gap; the same changes at other places; what compiling costs."""

from dataclasses import dataclass

from stepscope.report.facts.machine import Machine, machine
from stepscope.report.facts.rungs import Ladder, Rung, ladders
from stepscope.report.kit.data import Data
from stepscope.report.kit.page import Name
from stepscope.report.kit.quantity import Maybe, Quantity, over

COMPILED = ("block", "model", "graphs")


@dataclass(frozen=True, kw_only=True)
class Step:
    """A rung as the chapter tells of it. pays_after: steps until its compiling is won back."""

    rung: Rung
    before: Rung | None
    pays_after: Maybe


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """A change at a place of another ladder."""

    name: Name
    step: Maybe
    gpu: Maybe
    gain: Maybe
    verdict: str
    launches: Maybe


@dataclass(frozen=True, kw_only=True)
class LadderFacts:
    """ladder: of the largest place; others: of the smallest, `other`."""

    machine: Machine
    ladder: Ladder | None = None
    steps: tuple[Step, ...] = ()
    by_kind: dict[str, Step] | None = None
    others: tuple[Elsewhere, ...] = ()
    other: Name | None = None
    asides: tuple[Rung, ...] = ()
    checkpoint: Rung | None = None
    has_turns: bool = False
    failed: tuple[Rung, ...] = ()


def facts(data: Data) -> LadderFacts | None:
    """Of all ladders of the machine."""
    own = machine(data)
    found = ladders(data, own)
    if not found:
        return None
    ladder, *rest = found
    steps = tuple(_step(ladder, rung) for rung in ladder.rungs)
    judged = data.dicts("comparisons", cell=ladder.cell, phase="step")
    return LadderFacts(
        machine=own,
        ladder=ladder,
        steps=steps,
        by_kind={each.rung.kind: each for each in steps},
        others=tuple(_elsewhere(rung) for each in rest[-1:] for rung in each.rungs),
        other=rest[-1].place.name if rest else None,
        asides=tuple(rung for rung in ladder.asides if rung.step),
        checkpoint=next((each for each in ladder.asides if each.kind.startswith("checkpoint") and each.step), None),
        has_turns=any(row["in_turns"] for row in judged),
        failed=ladder.failed,
    )


def _step(ladder: Ladder, rung: Rung) -> Step:
    is_won = rung.kind in COMPILED and rung.is_gain and rung.won and rung.won.value > 0
    pays = over(rung.compile_time, rung.won) if is_won else None
    return Step(
        rung=rung,
        before=ladder.before(rung),
        pays_after=Quantity(pays.value, "count", cells=pays.cells) if pays else None,
    )


def _elsewhere(rung: Rung) -> Elsewhere:
    return Elsewhere(
        name=rung.name,
        step=rung.step,
        gpu=rung.gpu,
        gain=rung.gain,
        verdict=rung.verdict,
        launches=rung.launches,
    )
