"""The ladder study's whole section, as it was last looked at."""

import golden
import pandas as pd
import synthetic_ladder as made
from stepscope.tables.reader import Tables


def small() -> list:
    """A whole ladder; two rungs are noisy, one is throttled and one brings nothing."""
    cells = [*made.chain(), made.whole(), *made.checkpoints()]
    cells[1] = made.cell("small", 128, "tf32", step=25.0, scatter=0.05, launch=0.95, peak=3 * made.GIB)
    cells[2] = made.cell("small", 128, "bf16", step=26.0, throttle=["power cap"], kernels=3600, launches=3600)
    cells[4] = made.cell("small", 128, "bf16", made.TRITON, step=16.02, scatter=0.05, launch=0.95)
    return cells


def medium() -> list:
    """Cells lost in every way there is, one that computes something else, checkpoints without a base."""
    cells = [*made.chain("medium", 512, 2.0), made.whole("medium", 512, 2.0), *made.checkpoints("medium", 512, 2.0)]
    cells[0] = made.without_step(cells[0])
    cells[1] = made.without_step(cells[1], "unsupported", "no TF32 here", both=True)
    cells[2] = made.unmeasured(cells[2], "unsupported", "no TF32 here")
    cells[3] = made.without_step(cells[3], both=True)
    cells[4].record["summary"]["ladder"]["loss"] = 12.0
    cells[6] = made.unmeasured(cells[6])
    cells[-1] = made.without_step(cells[-1])
    return cells


def processor() -> list:
    """A CPU, whose peaks are those of whole processes."""
    place = {"hardware": "cpu", "peak": 2**29, "operators": 800}
    cells = [made.cell("nano", 64, "fp32", **place), made.cell("nano", 64, "bf16", step=60.0, **place)]
    cells += [made.cell("nano", 64, "fp32", {"checkpoint": k}, **place) for k in (1, 2)]
    return [*cells, made.cell("nano", 64, "fp32", {"checkpoint": 4}, 41.0, processes=1, **place)]


def write(folder) -> Tables:
    made.write(folder, [*small(), *medium(), *processor()])
    place = {"hardware": "gpu", "size": "small", "context": 128, "batch": 4, "mode": "step", "checkpoint": 0}
    runs = [("fp32", 20.0, 18.0), ("fp32", 20.4, 18.0), ("bf16", 26.2, 22.0)]
    rows = [place | {"cell": f"timing{at}", "precision": precision, "step_median_ms": step,
                     "attention": "naive", "compile": "none", "optimizer": "own", "step_limited_by": "gpu",
                     "forward_backward_median_ms": both, "repeat": 1 + (at == 1)}
            for at, (precision, step, both) in enumerate(runs)]  # fmt: skip
    pd.DataFrame(rows).to_csv(folder / "timing.csv", index=False)
    ceiling = {"cell": "c", "hardware": "gpu", "operation": "matmul", "precision": "bf16", "tflops": 700.0}
    pd.DataFrame([ceiling]).to_csv(folder / "ceilings.csv", index=False)
    return Tables(folder, ["ladder", "timing", "ceilings"])


def test_the_section_is_the_one_that_was_looked_at(tmp_path):
    golden.check("ladder", write(tmp_path))
