"""The chapter attention: what its length × length matrix costs in the model and by itself, and what avoids it."""

from stepscope.report.chapters.attention import implementations, in_model, matrix
from stepscope.report.data.attention import OURS, Attention, Group, fullest, median
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit.chapter import Chapter, Part
from stepscope.report.kit.finding import Finding
from stepscope.report.studies.attention.captions import pictures
from stepscope.report.studies.attention.findings import main_precision


def chapter(machine: Machine) -> Chapter | None:
    """None where neither attention nor a model that has it was measured on the machine."""
    profiled, attention = in_model.rows_of_size(machine), Attention(machine.tables)
    rows, group = attention.results(machine.hardware), main_group(attention, machine.hardware)
    if not profiled and not group:
        return None
    takeaway = [in_model.share_by_context(machine, profiled)]
    parts = [
        Part(
            "How does the softmax compare with the matrix products?",
            _told(
                in_model.softmax(machine, profiled),
                in_model.traffic(machine, profiled),
                in_model.share_by_precision(machine, profiled),
            ),
            _shown(in_model.softmax_table(machine, profiled)),
        )
    ]
    if group:
        takeaway.append(implementations.alternative(group, main_precision(group)))
        parts += _by_itself(machine, group, rows, profiled)
    return Chapter("attention", "Attention", _told(*takeaway), tuple(parts), ("attention", "profile"))


def main_group(attention: Attention, hardware: str) -> Group | None:
    """The results of the setting that most were timed in, of those with a fixed batch if any; None without any."""
    timed = [group for group in attention.of(hardware) if any(median(row) for row in group.rows)]
    return fullest(timed) if timed else None


def _by_itself(machine: Machine, group: Group, rows: list[dict], profiled: list[dict]) -> list[Part]:
    """What the attention study found, and what a fused kernel does to a step."""
    precision, figures = main_precision(group), pictures(Attention(machine.tables))
    precisions = [name for name in dict.fromkeys((precision, "fp32")) if group.of(name)]
    return [
        Part(
            "What does the length × length matrix cost?",
            _told(
                matrix.memory(group, precision),
                matrix.recomputation(group, precision),
                matrix.out_of_memory(rows, group.hardware),
                matrix.time_growth(group, precision),
            ),
            _shown(figures.get("attention_memory")),
        ),
        Part("What does the head dimension cost?", _told(matrix.head_dimension(group, precision, OURS))),
        Part(
            "Which implementation is fastest?",
            _told(
                implementations.least_time(group, precisions, Attention(machine.tables).of(group.hardware)),
                implementations.ours_in_fp32(machine, group),
                implementations.throttled(rows, group.hardware),
                in_model.remedy(machine, profiled),
            ),
            _shown(implementations.speeds_table(group, precisions), figures.get("attention_time")),
        ),
    ]


def _told(*found: Finding | None) -> tuple[Finding, ...]:
    return tuple(each for each in found if each)


def _shown(*blocks) -> tuple:
    return tuple(each for each in blocks if each)
