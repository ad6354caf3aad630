"""Memory of a step that keeps only the input of every k-th block, in closed form. Standard library
only.

Chen et al. 2016 (Training Deep Nets with Sublinear Memory Cost, section 4.3): n blocks in groups of
k keep n / k inputs of groups, and while a group runs backward, what its k blocks save. With b bytes
of a boundary and a bytes saved by a block that is (n / k) b + k a.

`peak_bytes` counts every tensor as `stepscope.formulas.footprint_peak` does, of the code as it is
written: what a compiler keeps is its own choice.
"""

import math
from collections.abc import Iterator

from stepscope.formulas import footprint, footprint_peak
from stepscope.formulas.footprint import Setup


def boundary_bytes(setup: Setup) -> int:
    """A group's input: one version of the residual stream."""
    return next(
        each.bytes for each in footprint.saved_by_block(setup) if each.name == "block input"
    )


def block_bytes(setup: Setup) -> int:
    """What a block's forward pass saves for its backward pass, autocast's copies of its weights
    included: they go and come back with it."""
    return footprint.total(footprint.saved_by_block(setup)) + footprint.total(
        footprint.cast_weights(setup)
    )


def peak_bytes(setup: Setup, mode: str, every: int) -> int:
    """The peak of a mode (forward-backward or step) with the input of every so many blocks kept; 0:
    all is kept."""
    if not every:
        return footprint_peak.peak(setup, mode).bytes
    return max(_moments(setup, mode, every))


def _moments(setup: Setup, mode: str, every: int) -> Iterator[int]:
    """Bytes of all moments that can be the peak: those without checkpointing, less what is not
    kept."""
    layers, boundary, block = setup.shape.num_layers, boundary_bytes(setup), block_bytes(setup)
    saved = footprint.total(footprint.saved_by_block(setup))
    gradients = footprint.total(footprint.gradients_of_block(setup))
    boundaries = math.ceil(layers / every) * boundary
    for moment in footprint_peak.moments(setup, mode):
        if moment.phase == "forward":  # autocast keeps its copies of weights until it ends
            yield moment.bytes - layers * saved + boundaries
        elif moment.part in ("loss", "LM head"):
            yield moment.bytes - layers * block + boundaries
        elif moment.part.startswith("last block/"):
            one = (
                moment.bytes - (layers - 1) * block
            )  # with what this block itself saves, its input among it
            for at in range(layers):
                groups_before, blocks_before = divmod(at, every)
                kept = groups_before * boundary + blocks_before * block
                yield one + kept + (layers - 1 - at) * gradients
        elif not moment.part.startswith("first block/"):
            yield moment.bytes
