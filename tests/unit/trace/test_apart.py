"""A step of several devices taken apart: parts of intervals with known answers, planted faults
where they belong."""

from types import SimpleNamespace

import numpy as np
import pytest
from pytest import approx
from stepscope.trace import apart
from stepscope.trace.apart import Span, Step

LAYERS = 6
KERNEL = 2.0  # seconds of a kernel of the forward or the backward pass


def taken(steps, before):
    """The parts of a step by rank, and in `total` the sum of those that add up."""
    parts = apart.take_apart(steps, before)
    return [SimpleNamespace(**each, total=sum([*each.values()][:9])) for each in parts]


def alone(kernel=KERNEL):
    """One device: kernels of 6 layers there and back, then the optimizer."""
    names = [f"layer {at}" for at in range(LAYERS)]
    names += [f"gradient {at}" for at in reversed(range(LAYERS))] + ["optimizer"]
    spans = [Span(name, at * kernel, (at + 1) * kernel) for at, name in enumerate(names)]
    return Step(0.0, len(names) * kernel, spans)


def overlapped(delay=0.0, send=1.0, slower=0.0, factor=1.0, clock=0.0, ready=None):
    """A rank that sends each gradient, for `send` seconds, beside the next kernel.

    delay: of its host before the backward pass. slower: seconds more of each kernel beside a
    transfer. factor: its share of work. clock: what its clock is ahead. ready: the earliest start
    of each collective by the others, so that it waits.
    """
    now, kernels, collectives = clock, [], []
    work = KERNEL * factor
    for at in range(LAYERS):
        kernels.append(Span(f"layer {at}", now, now + work))
        now += work
    now += delay
    reached = now
    for at in reversed(range(LAYERS)):
        is_beside = at != LAYERS - 1
        kernels.append(Span(f"gradient {at}", now, now + work + slower * is_beside))
        now = kernels[-1].end
        start = max(now, reached)
        last = start if ready is None else max(start, ready[at] + clock)
        collectives.append(Span("ncclAllReduce", start, last + send))
        reached = last + send
    kernels.append(Span("optimizer", reached, reached + KERNEL))
    return Step(clock, reached + KERNEL, kernels, collectives)


def starts(step, clock=0.0):
    """Layer → start of its collective on a rank's own clock."""
    return {LAYERS - 1 - at: span.start - clock for at, span in enumerate(step.collectives)}


def test_transfers_beside_kernels_show_only_where_nothing_computes():
    """Six are sent for a second each, five of them beside the next kernel."""
    parts = taken([overlapped()] * 2, [alone()] * 2)
    for one in parts:
        assert one.transfer == approx(1.0)  # the last gradient's
        assert one.beside == approx(5.0) and one.transferred == approx(6.0)
        assert one.total == approx(13 * KERNEL + 1.0)
        assert [one.waiting, one.idle, one.slowed, one.extra] == approx([0, 0, 0, 0])


@pytest.mark.parametrize("send", [0.01, 1.0])
def test_a_delay_of_one_rank_is_its_idle_time_and_the_others_waiting(send):
    late = overlapped(delay=7.0, clock=100.0, send=send)
    prompt = overlapped(ready=starts(late, 100.0), send=send)
    first, second = taken([prompt, late], [alone()] * 2)
    assert second.idle == approx(7.0) and second.waiting == approx(0.0)
    assert first.idle == approx(0.0)
    # Its last kernel ends 7 s before the other's. Of the six transfers then four are still to come,
    # one of which the other rank has exposed, too.
    assert first.waiting == approx(7.0 - 3 * send)
    assert first.transfer == approx(4 * send)
    # It waits 7 s for the first; each later one starts as the one before has been sent, and the
    # other's gradient is there 2 s after the one before.
    assert first.waited == approx(7.0 + 5 * (KERNEL - send))
    assert (first.waited_by_others, second.waited_by_others) == approx((0.0, first.waited))


def test_a_slower_kernel_beside_communication_is_slowed():
    """Half a second more of each of five."""
    (one, _) = taken([overlapped(slower=0.5)] * 2, [alone()] * 2)
    assert one.slowed == approx(5 * 0.5) and one.apart == approx(0.0)
    assert one.beside == approx(5.0)


def test_a_slower_kernel_away_from_communication_has_a_part_of_its_own():
    step = overlapped()
    late = [step.kernels[0]._replace(start=-1.0), *step.kernels[1:]]
    (one, _) = taken([Step(-1.0, step.end, late, step.collectives), step], [alone()] * 2)
    assert one.apart == approx(1.0) and one.slowed == approx(0.0)


def test_an_uneven_batch_is_computing_and_the_others_wait():
    more = overlapped(factor=1.5)
    less = overlapped(ready=starts(more))
    first, second = taken([less, more], [alone(), alone(1.5 * KERNEL)])
    assert second.alone - first.alone == approx(0.5 * 13 * KERNEL)
    # 12 s earlier done; five transfers are then still to come, one of which both have exposed
    assert first.waiting == approx(0.5 * 12 * KERNEL - 4 * 1.0)
    assert second.waiting == approx(0.0) == approx(second.idle)


def test_kernels_that_come_and_go_are_told_apart():
    step = overlapped()
    copies = [Span("copy into a bucket", span.end, span.end + 0.25) for span in step.kernels[6:12]]
    kernels = sorted([*step.kernels[:-1], *copies], key=lambda span: span.start)
    (one, _) = taken([Step(0.0, step.end, kernels, step.collectives)] * 2, [alone()] * 2)
    assert one.extra == approx(6 * 0.25)
    assert one.gone == approx(-KERNEL)  # the optimizer
    assert one.at_once == approx(-5 * 0.25)  # beside the next gradient's kernel
    assert one.total == approx(step.end)


def test_the_parts_of_any_step_add_up_to_its_length():
    random = np.random.default_rng(0)

    def spans(count, names):
        start = np.sort(random.uniform(0, 100, count))
        end = start + random.exponential(3, count)
        return [*map(Span, random.choice(names, count), start, end)]

    for _ in range(20):
        collectives = spans(10, ["sum"])
        others = [each._replace(start=each.start - 2) for each in collectives]
        steps = [Step(0, 100, spans(40, [*"abc"]), each) for each in (collectives, others)]
        before = [Step(0, 100, spans(30, [*"abc"])) for _ in steps]
        for parts in taken(steps, before):
            assert parts.total == approx(100)
            assert parts.gone <= 0 <= min(parts.extra, parts.waiting, parts.transfer, parts.idle)


def test_a_collective_that_no_other_rank_has_waits_for_none():
    step = overlapped()
    fewer = Step(step.start, step.end, step.kernels, step.collectives[:-1])
    parts = taken([step, fewer], [alone()] * 2)
    assert parts[0].waited == 0.0 and parts[0].total == approx(step.end)


@pytest.mark.parametrize(
    "one, other, common",
    [
        ("abcd", "abcd", 4),
        ("", "abc", 0),
        ("abcd" * 24, "abxcd" * 24, 96),
        ("xaby", "zabw", 2),
        ("agtacgcat", "gactacgt", 6),  # gtacgt
    ],
)
def test_alignment_is_a_longest_common_subsequence(one, other, common):
    here, there = apart.aligned(tuple(one), tuple(other))
    assert [one[at] for at in here] == [other[at] for at in there]
    assert len(here) == common
    assert (np.diff(here) > 0).all() and (np.diff(there) > 0).all()
