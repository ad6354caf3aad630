"""What the timing study's table says of cells that were measured twice."""

import csv

from stepscope.tables.control import between_cells
from stepscope.tables.timing import PHASES


def test_each_class_of_each_machine_has_its_own(tmp_path):
    names = [f"{name}_{what}" for name in PHASES for what in ("spread_cells", "spread_cells_degrees", "limited_by")]
    with (tmp_path / "timing.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, ["hardware", *names], restval="")
        table.writeheader()
        table.writerow(
            {"hardware": "a", "step_spread_cells": 0.1, "step_spread_cells_degrees": 2, "step_limited_by": "launches"}
        )
        table.writerow(
            {
                "hardware": "a",
                "forward_spread_cells": 0.0,
                "forward_spread_cells_degrees": 1,
                "forward_limited_by": "gpu",
            }
        )
        table.writerow(
            {"hardware": "b", "step_spread_cells": 0.2, "step_spread_cells_degrees": 4, "step_limited_by": "gpu"}
        )
        table.writerow({"hardware": "b"})  # out of memory
    assert between_cells(tmp_path / "timing.csv") == {
        ("a", "launches"): (0.1, 2),
        ("a", "gpu"): (0.0, 1),
        ("b", "gpu"): (0.2, 4),
    }
