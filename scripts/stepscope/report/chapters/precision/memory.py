"""What mixed precision costs in inference memory, where casts of the weights are kept, and what it saves in a step."""

from stepscope.model.footprint import Setup, all_cast_weights, total
from stepscope.report.data.mixed import MixedPair
from stepscope.report.data.profile_parts import shape_of
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.sizes import percent_change, size


def _changes(pairs: list[MixedPair], mode: str) -> list[tuple[float, MixedPair]]:
    """(bf16's peak over fp32's less 1, the pair), ascending."""
    found = [(after / before - 1, pair) for pair in pairs for before, after in [pair.peaks(mode)] if before and after]
    return sorted(found, key=lambda each: each[0])


def _reach(found: list[tuple[float, MixedPair]], key: str) -> tuple[str, dict[str, Number]]:
    """(`{key_least} (small at 1,024) to {key_most} (xl at 128)`, its numbers)."""
    ends = {"least": found[0], "most": found[-1]}
    numbers = {f"{key}_{name}": Number(value, pair.cells, percent_change) for name, (value, pair) in ends.items()}
    if len(found) == 1:
        return f"{{{key}_least}} ({found[0][1].point})", numbers
    return f"{{{key}_least}} ({found[0][1].point}) to {{{key}_most}} ({found[-1][1].point})", numbers


def inference(pairs: list[MixedPair]) -> Finding | None:
    """How the peak of inference changes, and what the kept casts of the weights predict, where they weigh most."""
    found = _changes(pairs, "inference")
    if not found:
        return None
    reach, numbers = _reach(found, "change")
    of = formatting.some_of(len(found), len(pairs))
    answer = f"bf16 changes the {'allocated ' * all(map(_is_allocated, pairs))}peak of inference by {reach} in {of}."
    known = [(pair, copies) for _, pair in found if (copies := cast_bytes(pair)) and _is_allocated(pair)]
    if not known:
        return Finding("what does it cost in inference", answer, numbers, pairs[0].row["hardware"])
    pair, copies = max(known, key=lambda each: (each[1], -each[0].row["context"]))
    before, after = pair.peaks("inference")
    numbers["more"] = Number(after - before, pair.cells, size)
    numbers["copies"] = Number(copies, pair.cells, size)
    cause = (
        "Autocast keeps a 16-bit copy of each weight that it multiplies by: {copies} by the closed form; the peak is "
        f"{{more}} higher ({pair.point})."
    )
    if after <= before:
        cause = f"The kept 16-bit copies of the weights, {{copies}} in {pair.point}, are made up for by activations."
        del numbers["more"]
    return Finding("what does it cost in inference", answer, numbers, pairs[0].row["hardware"], cause)


def cast_bytes(pair: MixedPair) -> int | None:
    """Bytes of the 16-bit copies of all weights that are multiplied by, in closed form; None where unknown."""
    row, shape = pair.row, shape_of(pair.row)
    if shape is None or not (formatting.known(row["batch"]) and formatting.known(row["context"])):
        return None
    return total(all_cast_weights(Setup(shape, int(row["batch"]), int(row["context"]), pair.precision)))


def _is_allocated(pair: MixedPair) -> bool:
    """Whether the peaks are the allocator's, and not those of the whole process."""
    return all(formatting.known(row.get("inference_peak_allocated_bytes")) for row in (pair.reference, pair.row))


def step(pairs: list[MixedPair], every: list[MixedPair]) -> Finding | None:
    """How the peak of a step changes, why by so little, and what fits in bf16 alone.

    every: also those of which a step has no time in both.
    """
    found = _changes(pairs, "step")
    if not found:
        return None
    reach, numbers = _reach(found, "change")
    answer = f"A step's peak changes by {reach} in {formatting.some_of(len(found), len(every))}."
    cause = ""
    if found[0][0] > -0.5:
        cause = "It is not halved: weights, gradients and optimizer state stay in fp32."
    only = [pair.point for pair in every if pair.status("step") == ("oom", "ok")]
    if only:
        cause += f" {formatting.listing(only, 3)} fit{'s' * (len(only) == 1)} in bf16, not in fp32."
    return Finding("what does it do to a step's memory", answer, numbers, pairs[0].row["hardware"], cause.strip())
