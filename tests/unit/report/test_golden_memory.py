"""The memory study's whole section, as it was last looked at."""

import golden
import synthetic_memory as made
from stepscope.tables.reader import Tables

INFERENCE = {"mode": "inference", "held": {"parameters": 100, "activations": 60}}


def cells() -> list[dict]:
    """Two machines; on the GPU cells that ran out of memory, that were not possible, that failed, that were shared."""
    step, low = made.cell(), made.cell("bf16", predicted_first_context_too_long=1500)
    long = [made.out_of_memory(made.cell(context=1024)), made.cell("bf16", 1024, peak_place=("optimizer", ""))]
    inference = [made.cell(**INFERENCE), made.cell("bf16", **INFERENCE, throttle="power", other_processes=1)]
    lost = [made.cell("fp16", status="unsupported", reason="no such type"), made.cell(context=256, status="failed")]
    more = [made.cell(repeat=2), made.out_of_memory(made.cell("fp16", 512), "measured steps")]
    host = [made.cpu(made.cell(hardware="host")), made.cpu(made.cell("bf16", hardware="host", held={"parameters": 50}))]
    return [step, low, *long, *inference, *lost, *more, *host]


def test_the_section_is_the_one_that_was_looked_at(tmp_path):
    rows = cells()
    lost = {"step_status": "oom"} | dict.fromkeys(("step_mean_ms", "step_median_ms", "step_tokens_per_s"))
    timings = [made.timing(rows[0], step_noisy=True), made.timing(rows[1], 25.0), made.timing(rows[2], **lost)]
    golden.check("memory", Tables(made.write(tmp_path, rows, timings), ["memory", "timing"]))
