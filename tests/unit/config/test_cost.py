"""What a grid costs, against numbers worked out by hand."""

import subprocess
import sys

import pytest
from stepscope.config.cost import cost, peak_bytes, seconds, step_seconds
from stepscope.config.studies import CEILINGS, MEMORY, STUDIES, TIMING

# Of small: 12 blocks of 4 x 768^2 + 3 x 768 x 3,072 weights in products, and a head of 768 x 10,000.
WEIGHTS = 12 * (4 * 768**2 + 3 * 768 * 3072) + 768 * 10_000


def cell_of(study, make_config, precision="fp32", context=128, **entry):
    config = make_config()
    grid = {"cuda": [{"size": ["small"], "context": [context], "precision": [precision], **entry}]}
    config[study.name] |= {"grid": grid} | ({"control": {"cuda": []}} if study is TIMING else {})
    (cell,) = study.cells(config, "cuda", "gpu", 1)
    return cell


def test_a_step_takes_its_operations_at_the_rate(make_config):
    # 6 operations a weight and token, and 3 x 4 x context x d_model a token and block; batch 4, context 4,096.
    tokens = 4 * 4096
    operations = 6 * WEIGHTS * tokens + 12 * tokens * 3 * 4 * 4096 * 768
    found = step_seconds(cell_of(TIMING, make_config, context=4096).spec)
    assert found == pytest.approx(operations / 40e12)
    assert step_seconds(cell_of(TIMING, make_config, "bf16", 4096).spec) == pytest.approx(operations / 160e12)


def test_a_step_takes_no_less_than_its_launches(make_config):
    assert step_seconds(cell_of(TIMING, make_config).spec) == pytest.approx(12 * 2.7e-3)


def test_a_timing_cell_runs_the_steps_of_its_modes_in_each_process(make_config):
    # Three processes of 1.6 s and, for each of the modes up to the cell's, 2 + 3 steps.
    step = 12 * 2.7e-3
    assert seconds(cell_of(TIMING, make_config)) == pytest.approx(3 * (1.6 + 4 * 5 * step))
    assert seconds(cell_of(TIMING, make_config, mode=["inference"])) == pytest.approx(3 * (1.6 + 5 * step))
    assert seconds(cell_of(MEMORY, make_config)) == pytest.approx(7 + 3 * step)
    assert seconds(cell_of(MEMORY, make_config, start=["cold"])) == pytest.approx(7 + 2 * step)


def test_the_cell_that_needs_most_is_named(make_config):
    cells = [cell_of(MEMORY, make_config, context=context) for context in (128, 1024, 512)]
    found = cost([*cells, *CEILINGS.cells(make_config(), "cuda", "gpu", 1)])
    assert (found.cells, found.largest) == (3 + 5, cells[1])
    # At least weights, gradients and two moments in fp32, and the softmax of each block.
    assert found.peak > 4 * 4 * WEIGHTS + 12 * 4 * 12 * 1024**2 * 4
    assert found.peak == peak_bytes(cells[1])
    assert cost(CEILINGS.cells(make_config(), "cuda", "gpu", 1)).largest is None


@pytest.mark.parametrize("preset", ["default", "published"])
def test_every_cell_has_a_cost(preset, make_config):
    config = make_config(preset=preset)
    for study in STUDIES:
        assert all(seconds(cell) > 0 for cell in study.cells(config, "cuda", "gpu", 1))


def test_the_page_of_presets_is_the_programs(project_root):
    program = [sys.executable, project_root / "scripts/describe_presets.py"]
    made = subprocess.run(program, check=True, capture_output=True, text=True)
    assert (project_root / "docs/presets.md").read_text() == made.stdout, (
        "run: python scripts/describe_presets.py > docs/presets.md"
    )
