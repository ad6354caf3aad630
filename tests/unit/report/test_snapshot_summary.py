"""The printed summary of a snapshot: what is reserved is told where there is an allocator."""

import pandas as pd
import pytest
import synthetic_memory as made
from stepscope.snapshot import summary

MIB = 2**20


@pytest.mark.parametrize(("reserved", "told"), [(1250, True), (1000, False)])
def test_reserved_is_told_of_an_allocator_alone(reserved, told):
    tables = {name: pd.DataFrame(rows) for name, rows in made.analysis(made.cell()).items()}
    more = {"peak_ms": 1.0, "reserved_at_peak_bytes": reserved * MIB, "peak_reserved_bytes": reserved * MIB}
    more |= {"peak_rounded_bytes": 1001 * MIB, "unknown_before_recording_bytes": 0, "without_frames_share": 0.0}
    tables["summary"] = tables["summary"].assign(end_bytes=0, **more)
    active = {"device": 0, "active_bytes": [0, 1000 * MIB, 0], "reserved_bytes": [9 * MIB, reserved * MIB, 9 * MIB]}
    lines = summary.text(tables | {"timeline": pd.DataFrame(active)}).splitlines()
    assert lines[1].startswith("  reserved then 1,250.0 MiB, at most 1,250.0 MiB; active") == told
    assert lines[1].endswith("active at the start 310.0 MiB, at the end 0.0 MiB") and ("reserved" in lines[1]) == told
