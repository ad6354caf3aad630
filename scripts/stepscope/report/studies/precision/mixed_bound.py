"""What the profile study says of a point of the timing grid: kernel launches, and how long the GPU is idle."""

from dataclasses import dataclass

from stepscope.report.data.mixed import REFERENCE, Pair
from stepscope.report.data.occupation import LAUNCH_BOUND, occupation
from stepscope.report.data.profile import Profile
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit.formatting import known


@dataclass(frozen=True)
class Bound:
    """Of the nearest profiled cells in fp32 and in 16 bits: kernels a step, and the idle share of the unprofiled step.

    where: `context 256` and, if another one, the precision of the second cell; empty where none was profiled.
    """

    kernels: tuple[float | None, float | None] = (None, None)
    idle: tuple[float | None, float | None] = (None, None)
    where: str = ""

    @property
    def launch_bound(self) -> bool:
        """Whether the step in 16 bits waits for the host there."""
        return self.idle[1] is not None and self.idle[1] > 1 - LAUNCH_BOUND


def bound(profile: Profile, pair: Pair) -> Bound:
    """The nearest profiled cells of the same machine, size and precision, nearest in context."""
    before = _nearest(profile, pair.row, (REFERENCE,))
    after = _nearest(profile, pair.row, (pair.precision, "bf16", "fp16"))
    cells = [each for each in (before, after) if each]
    if not cells:
        return Bound()
    contexts = list(dict.fromkeys(f"{each['context']:,.0f}" for each in cells))
    other = f" in {after['precision']}" if after and after["precision"] != pair.precision else ""
    return Bound(
        tuple(_kernels(profile, each) for each in (before, after)),
        tuple(_idle(profile, each) for each in (before, after)),
        f"context {' and '.join(contexts)}{other}",
    )


def _nearest(profile: Profile, row: dict, precisions: tuple[str, ...]) -> dict | None:
    """A profiled whole step: of the first of the precisions that has one, the nearest in context."""
    same = [
        cell
        for cell in profile.profiled()
        if all(cell.get(key) == row.get(key) for key in ("hardware", "size", "batch", "options"))
        and mode(cell) == "step"
        and known(cell.get("context"))
    ]
    for precision in precisions:
        own = [cell for cell in same if cell["precision"] == precision]
        if own:
            return min(own, key=lambda cell: (abs(cell["context"] - row["context"]), cell["context"], cell["repeat"]))
    return None


def _kernels(profile: Profile, cell: dict | None) -> float | None:
    found = profile.row("phases", cell["cell"], phase="step").get("kernels_per_step") if cell else None
    return found if known(found) else None


def _idle(profile: Profile, cell: dict | None) -> float | None:
    found = occupation(profile, cell) if cell else None
    return max(0.0, 1 - found.share) if found else None
