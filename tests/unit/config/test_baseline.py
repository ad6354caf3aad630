"""The key baseline: a machine's label for the report, a path for compare."""

import pytest
from stepscope.config.hardware import is_of_results, wrong_baseline


def test_a_path_has_a_slash_or_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "before").mkdir()
    assert [is_of_results(each) for each in ("../x", "before", "h100")] == [True, True, False]


@pytest.mark.parametrize(
    "baseline, compares, reports, words",
    [
        (None, True, False, "compare needs a results folder"),
        ("h100", True, False, "compare needs a results folder, not 'h100'"),
        ("../before", True, False, None),
        ("../before", False, True, "'../before' is a path, which only snakemake compare takes"),
        ("../before", True, True, "'../before' is a path"),
        ("h100", False, True, None),
        (None, False, True, None),
        ("../before", False, False, None),
    ],
)
def test_each_target_takes_a_baseline_of_its_own_kind(baseline, compares, reports, words):
    found = wrong_baseline({"baseline": baseline, "hardware": {"h100": {}}}, compares, reports)
    assert found is None if words is None else words in found
