"""The section below the roofs, as it was last looked at."""

import golden
import roofline_maker as maker

PHASES = ("forward", "backward", "optimizer", "step")
LOST = {f"{phase}_median_ms": None for phase in PHASES} | {f"{phase}_status": "oom" for phase in PHASES}


def test_the_section_is_the_one_that_was_looked_at(tmp_path):
    rows = [
        maker.timing("fp32", step_mfu=0.25),
        maker.timing("bf16", step_mfu=0.5, backward_noisy=True, throttle="power cap"),
        maker.timing("bf16", context=8, cell="larger", **LOST, status="oom"),
        maker.timing("fp32", hardware="other", gpu="Unheard"),
    ]
    limits = maker.ceilings(fp32=50.0, bf16=1e-3, copy=0.1)
    golden.check("roofline", maker.write(tmp_path, rows, limits, maker.attention()))
