"""How much memory a machine has."""

import pytest
from stepscope.machine import gpus, memory


@pytest.fixture
def host(tmp_path, monkeypatch):
    """Writes what the kernel says: kB of memory, and bytes that the control group may take."""
    monkeypatch.setattr(memory, "PROC", tmp_path)
    monkeypatch.setattr(memory, "GROUP", tmp_path)

    def write(total, limit=None):
        (tmp_path / "meminfo").write_text(f"MemFree:  7 kB\nMemTotal:       {total} kB\n")
        if limit:
            (tmp_path / "memory.max").write_text(f"{limit}\n")

    return write


@pytest.mark.parametrize("limit, bytes_", [(None, 1024_000), ("max", 1024_000), ("5000", 5000)])
def test_a_hosts_memory_is_what_its_control_group_may_take(host, limit, bytes_):
    host(1000, limit)
    assert memory.capacity("cpu") == bytes_


def test_a_gpus_memory_is_that_of_the_first(monkeypatch):
    monkeypatch.setattr(gpus, "visible_gpus", lambda: [gpus.Gpu("X", "GPU-1", 81559, "580")])
    assert memory.capacity("cuda") == 81559 * 2**20
