"""The attention study's whole section, as it was last looked at."""

import golden
import synthetic_attention as made
from stepscope.tables.reader import Tables


def lost() -> list[dict]:
    """Cells that ran out of memory, are not possible and failed; one that was disturbed and cut short."""
    naive = made.cell("naive", 128)
    disturbed = made.cell("triton", 128)
    disturbed[0] |= {"noisy": True, "other_processes": 2, "samples": 40}
    disturbed[1:] = [row | {"throttle": "power cap"} for row in disturbed[1:]]
    return [
        *made.without_result(naive, "oom", "CUDA out of memory", (16384,), ("backward",)),
        *made.without_result(made.cell("flex", 128), "unsupported", "no such kernel"),
        *made.without_result(made.cell("sdpa-cudnn", 128), "failed", "exit code 3"),
        *disturbed,
    ]


def test_the_section_is_the_one_that_was_looked_at(tmp_path):
    names = ("naive", "compiled", "sdpa-flash", "flex", "triton")
    rows = made.grid(sizes=(16, 64), names=names)
    rows[0] |= made.timed(0.505)  # hardly more than compiled takes
    rows += [row for name in names[:3] for row in made.cpu(made.cell(name, 16, "fp32", [128, 512], "other"))]
    folder = made.write(tmp_path, [*rows, *lost()], [*made.ceilings(), *made.ceilings("other", 1.5)])
    golden.check("attention", Tables(folder, ["attention", "ceilings"]))
