"""The replay against an allocator that counts by itself."""

import random

import pytest
from snapshot_simulator import BASE, FORWARD, SEGMENT, SLOT, Simulator, written
from stepscope.snapshot import loader, replay


@pytest.fixture
def replayed(tmp_path):
    """Writes a simulator's or another snapshot; what its first device's events lead to."""

    def run(content):
        return replay.replay(loader.read(written(content, tmp_path / "snapshot.pickle")).devices[0])

    return run


def busy(seed=0, events=400):
    """Random allocations and frees; some frees complete late, and the segment grows and shrinks."""
    chance, simulator, waiting = random.Random(seed), Simulator(), []
    while len(simulator.events) < events:
        free = [address for address in simulator.alive if address not in simulator.pending]
        draw = chance.random()
        if draw < 0.5 and len(simulator.alive) < 60:
            simulator.alloc(chance.randrange(1, SLOT))
        elif draw < 0.85 and free:
            simulator.free(chance.choice(free))
        elif draw < 0.9 and free:
            waiting.append(chance.choice(free))
            simulator.free(waiting[-1], completes=False)
        elif draw < 0.95 and waiting:
            simulator.complete(waiting.pop())
        elif draw < 0.97:
            simulator.grow(chance.randrange(1, 9) << 20, "segment_map")
        elif simulator.reserved > SEGMENT:
            simulator.shrink(1 << 20, "segment_unmap")
    return simulator


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("first", [0, 1, 150, 399])
def test_active_and_reserved_bytes_after_every_event(replayed, seed, first):
    simulator = busy(seed)
    found = replayed(simulator.snapshot(first))
    assert found.active.tolist() == simulator.active[first:]
    assert found.reserved.tolist() == simulator.held[first:]
    assert not found.contradicted and not found.forgotten


def test_what_is_alive_at_the_peak(replayed):
    simulator = Simulator()
    kept, short = simulator.alloc(1000), simulator.alloc(5000)
    simulator.free(short)
    simulator.alloc(3000)
    simulator.free(kept)
    found = replayed(simulator)
    assert found.peak_bytes == 6000
    assert found.peak_event == 2  # the segment, two allocations
    assert sorted(found.size[found.alive_after(2)]) == [1000, 5000]
    assert sorted(found.size[found.alive_after(found.events - 1)]) == [3000]


def test_a_peak_before_the_first_event(replayed):
    simulator = Simulator()
    simulator.free(simulator.alloc(7000))
    found = replayed(simulator.snapshot(first=2))
    assert (found.peak_event, found.peak_bytes) == (-1, 7000)
    assert found.active.tolist() == [7000, 7000, 0]


def test_a_history_without_completed_frees_is_replayed_from_the_requests(replayed):
    """torch.cuda.memory._record_memory_history(skip_actions=["free_completed"])."""
    simulator = busy()
    for address in [*simulator.pending]:
        simulator.complete(address)
    content = simulator.snapshot()
    (trace,) = content["device_traces"]
    trace[:] = [event for event in trace if event["action"] != "free_completed"]
    found = replayed(content)
    assert (found.active[0], found.active[-1]) == (0, simulator.active[-1])


def test_an_allocation_without_its_free_ends_where_the_address_is_used_again(replayed):
    simulator = Simulator()
    simulator.free(simulator.alloc(1000))
    simulator.alloc(2000)
    content = simulator.snapshot()
    del content["device_traces"][0][2:4]  # both events of the free
    found = replayed(content)
    assert found.contradicted
    assert found.active.tolist() == [0, 0, 1000, 2000]


@pytest.mark.parametrize(
    "gone, before",
    [
        (4, 2000),  # two frees in a row: what is freed must have been there
        (-1, 0),  # the final state has a block that the events freed
    ],
)
def test_what_contradicts_itself_is_not_the_whole_history(replayed, gone, before):
    simulator = Simulator()
    for size in (1000, 2000):
        simulator.free(simulator.alloc(size))
    assert simulator.alloc(3000) == BASE
    content = simulator.snapshot()
    del content["device_traces"][0][gone]
    found = replayed(content)
    assert found.contradicted and found.active[0] == before


def test_a_block_that_is_not_there_at_the_end_contradicts(replayed):
    content = Simulator([3000]).snapshot()
    content["segments"][0]["blocks"][0]["state"] = "inactive"
    assert replayed(content).contradicted


def test_a_block_with_a_stack_but_no_allocation_was_forgotten(replayed):
    """The buffer overflowed (or was cleared): without the stack it might have been there before the
    recording."""
    simulator = Simulator((1000, FORWARD))
    simulator.free(simulator.alloc(2000))
    content = simulator.snapshot()
    assert not replayed(content).forgotten
    del content["device_traces"][0][:2]
    found = replayed(content)
    assert found.forgotten and not found.contradicted
    assert found.active[0] == 1000
