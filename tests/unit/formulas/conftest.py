"""Helpers for the tests of formulas: what PyTorch allocates."""

import itertools

import pytest
import torch


@pytest.fixture
def peak_bytes():
    """(largest, last) number of bytes that a function allocates, above those at its beginning, on
    the CPU."""

    def measured(function):
        activities = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
            function()
        events = [
            event
            for event in profiler.profiler.kineto_results.events()
            if event.name() == "[memory]"
        ]
        in_order = sorted(events, key=lambda event: event.start_ns())
        totals = list(itertools.accumulate(event.nbytes() for event in in_order))
        return max(totals), totals[-1]

    return measured
