"""What a change should win by its mechanism alone: what it takes away, and nothing else."""

from stepscope.model.about import TakesAway
from stepscope.report.facts.machine import Place
from stepscope.report.kit.quantity import Maybe, minus


def won(
    takes_away: TakesAway, where: Place, arithmetic: tuple[Maybe, Maybe], optimizer: Maybe
) -> Maybe:
    """Seconds that a change should win; None where nothing predicts it.

    takes_away: what the change's value says of itself. arithmetic: of the step before it and with
    it, its FLOP at the ceilings. optimizer: the phase before it, as measured.

    A precision: its FLOP at the other ceiling. Fused attention: the scores' bytes. The optimizer in
    one pass: what its phase takes beyond its bytes. CUDA graphs win what the GPU waits, which is
    measured, so that nothing predicts them.
    """
    if takes_away == "arithmetic":
        saved = minus(*arithmetic)
    elif takes_away == "scores":
        saved = where.scores
    elif takes_away == "optimizer":
        saved = minus(optimizer, where.optimizer_fused)
    else:
        saved = None
    return saved if saved and saved.value > 0 else None
