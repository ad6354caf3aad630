"""Files with random damages, of each kind: analysed, or refused in one line, and no longer than 10
s."""

import damaged_files
import pytest

KINDS = damaged_files.kinds()


@pytest.mark.parametrize("name", KINDS)
def test_damages_are_analysed_or_refused(name):
    outcomes = damaged_files.run(KINDS[name], damages=20)
    assert set(outcomes) <= {"analysed", "refused"} and sum(outcomes.values()) == 20, outcomes
    assert outcomes["refused"] >= 3  # the damages do damage
