"""The section on published figures, as it was last looked at: one of each verdict, slips, and what cannot be true."""

import golden
import published_maker as made
import roofline_maker


def figures() -> list[dict]:
    slip = {"item": "a table", "note": 'slip: the text says "about 2 ms"'}
    lost = {"precision": "bf16", "phase": "backward"}
    return [
        made.figure(3.0),
        made.figure(9.0, **slip),
        made.figure(1.0, statistic="median"),
        made.figure(0.1, statistic="std"),
        made.figure(3.0, gpu="", source="somebody else"),
        made.figure(3.0, doubt="the GPU was shared", source="somebody else"),
        made.figure(1e-9, item="another table"),
        made.figure(None, **lost),
        made.peak(10.2),
        made.peak(14.0, source="somebody else"),
        made.rate(380.0, source="makers", framework="Kernel 3", date="2030-01"),
        made.rate(350.0, source="makers", framework="Kernel 3", date="2030-01", kv_heads=8, direction="backward"),
        made.figure(40.0, study="profile", quantity="instances", statistic="value", unit="count", name="sgemm"),
    ]


def test_the_section_is_the_one_that_was_looked_at(tmp_path):
    timing = [made.timing(), made.timing(precision="bf16"), made.timing(hardware="other", gpu=roofline_maker.H100)]
    tables = made.write(tmp_path, figures(), timing=timing, attention=made.attention())
    golden.check("published", tables)
