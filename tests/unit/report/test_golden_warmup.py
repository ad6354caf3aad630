"""The warm-up study's whole section, as it was last looked at."""

import golden
import synthetic_warmup as made
from stepscope.tables.reader import Tables


def write(folder) -> Tables:
    """A GPU and a CPU; on the GPU another setting too, with lost cells and a size whose warm processes disagree."""
    plan = made.believable(made.Plan(folder / "results"))
    gpu = {"hardware": "nvidia-h100-80gb-hbm3", "precision": "bf16", "launched": 0.99, "noise": 0.004}
    for count in (0, 1, 2, 5, 10):
        plan.cell("s", count, **gpu)
        plan.cell("m", count, **gpu, steady=(40.0, 80.0, 20.0) if count != 5 else (20.0, 40.0, 10.0))
    waits = {"waiting for the device": 0.5, "Python and the rest": -0.01}
    plan.cell("s", 10, profiled=True, parts=(made.IN_FIRST, made.IN_STEADY | waits), **gpu)
    plan.cell("m", 10, profiled=True, status="failed", reason="it broke", **gpu)
    lost = {"shape": (256, 512, 2, 2), "steady": (1.0, 1.0, 1.0), **gpu}
    plan.cell("l", 0, status="unsupported", reason="no bf16 here", **lost)
    plan.cell("l", 1, measure=False, **lost)
    plan.cell("l", 2, status="oom", **lost)
    plan.write(folder / "tables")
    return Tables(folder / "tables", ["warmup", "timing"])


def test_the_section_is_the_one_that_was_looked_at(tmp_path):
    golden.check("warmup", write(tmp_path))
