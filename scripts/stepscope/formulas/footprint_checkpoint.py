"""Memory of a step that keeps only the input of every k-th block, in closed form. Standard library
only.

Chen et al. 2016 (Training Deep Nets with Sublinear Memory Cost, section 4.3): n blocks in groups of
k keep n / k inputs of groups, and while a group runs backward, what its k blocks save. With b bytes
of a boundary and a bytes saved by a block that is (n / k) b + k a.
"""

from dataclasses import replace

from stepscope.formulas import footprint_peak
from stepscope.formulas.footprint import Setup, group, total


def boundary_bytes(setup: Setup) -> int:
    """A group's input: one version of the residual stream."""
    return total(group(setup, "block input"))


def block_bytes(setup: Setup) -> int:
    """What a block's forward pass saves for its backward pass, autocast's copies of its weights
    included: they go and come back with it."""
    return total(group(setup, "saved by a block")) + total(group(setup, "cast weights of a block"))


def peak_bytes(setup: Setup, mode: str, every: int) -> int:
    """The peak of a mode (forward-backward or step) with the input of every so many blocks kept; 0:
    all is kept."""
    return footprint_peak.peak(replace(setup, checkpoint=every), mode).bytes
