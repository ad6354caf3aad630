"""The chapter precision: what 16 bits bring in time and cost in memory, and what tolerates them."""

from stepscope.report.chapters.precision import formats, memory, speed
from stepscope.report.data.mixed import Mixed
from stepscope.report.data.precision import Precision
from stepscope.report.data.spotlight import MIXED, Machine
from stepscope.report.kit.chapter import Chapter, Part
from stepscope.report.kit.finding import Finding
from stepscope.report.studies.precision.captions import pictures


def chapter(machine: Machine) -> Chapter | None:
    """None where neither two precisions were timed on the machine nor any probe has a result."""
    probes, mixed, hardware = Precision(machine.tables), Mixed(machine.tables), machine.hardware
    every = [pair for pair in mixed.of(hardware, MIXED) if not pair.row["options"]]
    figures = pictures(probes, mixed)
    parts = (
        Part(
            "What does bf16 bring in time, and why sometimes nothing?",
            _told(
                speed.where_it_pays(machine),
                speed.beside_prediction(machine),
                speed.where_it_pays_least(machine),
                speed.tf32(machine),
            ),
            _shown(speed.by_size(machine), figures.get("precision_speedup")),
        ),
        Part(
            "What tolerates 16 bits?",
            _told(formats.sums_in_fp32(probes, hardware), formats.softmax_sums(probes, hardware)),
        ),
        Part(
            "Does bf16 still need LayerNorm treated apart?",
            _told(
                formats.overflow(probes, hardware),
                formats.layer_norm_in_bf16(probes, hardware),
                formats.variance(probes, hardware),
            ),
            _shown(figures.get("precision_forced")),
        ),
        Part(
            "What does mixed precision do to the memory?",
            _told(memory.inference(every), memory.step(machine.pairs, every)),
        ),
        Part(
            "Which dtypes does autocast give, and what does fp16 lose?",
            _told(formats.gradients(probes, hardware), formats.dtypes(probes, hardware)),
            _shown(formats.dtypes_table(probes, hardware)),
        ),
    )
    takeaway = _told(speed.overall(machine.pairs), formats.sums(probes, hardware))
    if not takeaway and not any(part.findings for part in parts):
        return None
    return Chapter("precision", "Precision", takeaway, parts, ("precision", "timing"))


def _told(*found: Finding | None) -> tuple[Finding, ...]:
    return tuple(each for each in found if each)


def _shown(*blocks) -> tuple:
    return tuple(each for each in blocks if each)
