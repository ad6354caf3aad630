"""What a record says of the host's speed."""

from stepscope.measure import cell


def test_a_probe_from_before_the_device_was_touched_has_no_launches():
    # As on a GPU in a program of one process, which looks at the host before it may touch the device.
    probes = [{"python": 2e-3}, {"python": 3e-3, "launches": 4e-3}]
    assert cell._host(probes) == {"python": [2e-3, 3e-3], "launches": [4e-3]}
    assert cell._host([]) == {}
