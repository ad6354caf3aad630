"""Numbers that the prose names, from the modules that decide by them."""

from stepscope.formulas.traffic import OPTIMIZER_BYTES, WRITTEN_OUT_BYTES
from stepscope.results.alone import LAUNCH_LIMITED
from stepscope.results.cards import FAR
from stepscope.results.learning import LEARNED
from stepscope.results.statistics import CONFIDENCE
from stepscope.results.verdicts import MARGIN, MARGIN_OF_GPU

from .facts.machine import SCORE_BYTES, STATE_BYTES
from .facts.memory import NUMBER
from .facts.warmup import SETTLED
from .kit.number_format import QUIET, THIN
from .kit.quantity import Quantity
from .kit.reserve import CONTEXT, RESERVED_OVER_ASKED


def _percent(share: float) -> str:
    return f"{100 * share:.3g}{THIN}%"


CONSTANTS = {
    "confidence": _percent(CONFIDENCE),  # of intervals
    "margin": _percent(MARGIN),  # beyond which a change is faster or slower
    "margin_of_gpu": _percent(MARGIN_OF_GPU),  # the same where the GPU limits both, in turns
    "quiet": _percent(QUIET),  # intervals that are narrower are not printed
    "launch_limited": _percent(LAUNCH_LIMITED - 1),  # the clock over the time without the host
    "far": _percent(FAR),  # beyond all other cards of its type: one is not like them
    "learned": _percent(LEARNED),  # of what the first variant learns: with less one does not learn
    "settled": _percent(SETTLED),  # a mean's distance from the steady step after enough warm-up
    "number": NUMBER,  # bytes of a weight
    "parameter": STATE_BYTES,  # bytes of a weight, its gradient and moments
    "optimizer": OPTIMIZER_BYTES,  # bytes a parameter that AdamW moves in one pass
    "optimizer_written": WRITTEN_OUT_BYTES,  # the same, one operation after another
    "score": SCORE_BYTES[True],  # bytes a score that naive attention moves under autocast
    "reserve": _percent(RESERVED_OVER_ASKED - 1),  # of what is asked: the allocator's
    "context": str(Quantity(CONTEXT, "B")),  # of a GPU's memory: CUDA's own
    "score_fp32": SCORE_BYTES[False],  # the same in fp32
}
