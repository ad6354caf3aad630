"""How much memory a GPU has."""

from stepscope.machine import gpus, memory


def test_a_gpus_memory_is_that_of_the_first(monkeypatch):
    monkeypatch.setattr(gpus, "visible_gpus", lambda: [gpus.Gpu("X", "GPU-1", 81559, "580")])
    assert memory.capacity("cuda") == 81559 * 2**20
