"""How many kernels a step launches, and which sizes launches limit."""

from stepscope.report.chapters.kernels.words import cells, of_range, percents, place, steps
from stepscope.report.data.kernels import Launches, call, launches, whole_steps
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.step_parts import work
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.formatting import count, known, mean_count
from stepscope.report.kit.order import ordered

_MANY, _LIMITS = "how many kernels are launched", "which sizes do launches limit"
_ALIKE = 1.1  # numbers of kernels whose ratio is less count as the same
_LAUNCH, _GPU, _MIXED = "launch-bound", "GPU-bound", "mixed"


def every_launches(machine: Machine, precision: str) -> list[Launches]:
    """Of the machine's profiled steps in a precision, at the batch of its reference."""
    rows = whole_steps(machine.profile, machine.hardware) if machine.reference else []
    own = [row for row in rows if (row["precision"], row["batch"]) == (precision, machine.reference.row["batch"])]
    return [found for row in own if (found := launches(machine.profile, row))]


def launch_findings(machine: Machine, own: dict) -> tuple[Finding, ...]:
    """Kernels for each block, and for each call of attention."""
    return tuple(each for each in (_per_block(machine, own), _attention(machine, own)) if each)


def _per_block(machine: Machine, own: dict) -> Finding | None:
    found = [each for each in every_launches(machine, own["precision"]) if known(each.row["num_layers"])]
    if not found:
        return None
    counts = [each.per_block for each in found]
    numbers = {"blocks": of_range(counts, _rows(found))}
    widths = {row["d_model"] for row in _rows(found)}
    alike = ", whatever its width" if len(widths) > 1 and max(counts) <= _ALIKE * min(counts) else ""
    answer = f"A {own['precision']} step launches {{blocks}} kernels a block{alike}."
    return Finding(_MANY, answer, numbers, machine.hardware)


def _attention(machine: Machine, own: dict) -> Finding | None:
    """Kernels of one call of attention, and its time on the GPU beside that of the host."""
    whole, softmax = (call(machine.profile, own, part) for part in ("attention", "softmax"))
    if not machine.reference or not whole or not softmax:
        return None
    numbers = {
        "kernels": Number(whole.kernels, (own["cell"],), mean_count),
        "softmax": Number(softmax.kernels, (own["cell"],), mean_count),
        "gpu": Number(whole.gpu_us, (own["cell"],), count),
        "host": Number(whole.host_us, (own["cell"],), count),
    }
    answer = (
        f"A forward call of attention in {place(own)} in {own['precision']} launches {{kernels}} kernels, {{softmax}} "
        "of them for the softmax."
    )
    cause = "Profiled, the host needs {host} µs, the GPU {gpu}."
    return Finding(_MANY, answer, numbers, machine.hardware, cause=cause)


# Which sizes launches limit. ------------------------------------------------------------------------------------------


def limits_takeaway(machine: Machine) -> tuple[Finding, ...]:
    """How many steps launches limit, in the precision of the machine's reference and in fp32."""
    found = every_launches(machine, machine.reference.precision) if machine.reference else []
    if not found:
        return ()
    bound = _of(found, _LAUNCH)
    numbers = {"bound": Number(len(bound), cells(_rows(found)), count)}
    answer = f"Launches limit {{bound}} of {steps(_rows(found))} in {machine.reference.precision}"
    if bound:
        numbers["busy"] = percents([each.occupation.share for each in bound], _rows(bound))
        answer += " (GPU busy {busy})"
    plain = every_launches(machine, "fp32") if machine.reference.precision != "fp32" else []
    if plain:
        numbers["plain"] = Number(len(_of(plain, _LAUNCH)), cells(_rows(plain)), count)
        answer += f", {{plain}} of {len(plain):,} in fp32"
    return (Finding(_LIMITS, f"{answer}.", numbers, machine.hardware),)


def _of(found: list[Launches], verdict: str) -> list[Launches]:
    return [each for each in found if each.occupation.verdict == verdict]


def limit_findings(machine: Machine) -> tuple[Finding, ...]:
    """Over the sizes and over the contexts, and why."""
    if not machine.reference:
        return ()
    found = every_launches(machine, machine.reference.precision)
    made = [
        _over_sizes(machine, _line(found, "context", "size")),
        _over_contexts(machine, _line(found, "size", "context")),
        _cause(machine, found),
    ]
    return tuple(each for each in made if each)


def _line(found: list[Launches], fixed: str, axis: str) -> list[Launches]:
    """The steps with the same `fixed` of which there are most, in their order; none with fewer than two on the axis."""
    groups = [
        [each for each in found if each.row[fixed] == value] for value in ordered(row[fixed] for row in _rows(found))
    ]
    longest = max(groups, key=lambda group: len({each.row[axis] for each in group}), default=[])
    longest = sorted(longest, key=lambda each: work(each.row.get("parameters"), each.row["context"]))
    return longest if len({each.row[axis] for each in longest}) > 1 else []


def _rows(found: list[Launches]) -> list[dict]:
    return [each.row for each in found]


def _over_sizes(machine: Machine, line: list[Launches]) -> Finding | None:
    """What limits the sizes at one context, and from where on the GPU does."""
    if not line:
        return None
    bound, mixed, busy = ([each.row for each in _of(line, verdict)] for verdict in (_LAUNCH, _MIXED, _GPU))
    gpu = f"the GPU limits {_sizes(busy) or 'none'}"
    if len(busy) > 1 and _rows(line)[-len(busy) :] == busy and len(busy) < len(line):
        gpu = f"from {busy[0]['size']} on the GPU does"
    between = f"; {_sizes(mixed)} {'lies' if len(mixed) == 1 else 'lie'} between" if mixed else ""
    numbers = {"context": Number(line[0].row["context"], cells(_rows(line)), count)}
    where = f"At context {{context}} in {line[0].row['precision']}"
    answer = f"{where} launches limit {_sizes(bound) or 'none'}; {gpu}{between}."
    return Finding(_LIMITS, answer, numbers, machine.hardware)


def _sizes(rows: list[dict]) -> str:
    return formatting.listing([str(row["size"]) for row in rows])


def _over_contexts(machine: Machine, line: list[Launches]) -> Finding | None:
    """From which context of one size on the GPU is the limit."""
    if not line:
        return None
    busy, size = _of(line, _GPU), line[0].row["size"]
    if not busy:
        contexts = formatting.listing([f"{each.row['context']:,.0f}" for each in line], 4)
        said = f"In {size} in {line[0].row['precision']} the GPU limits at none of {contexts}."
        return Finding(_LIMITS, said, {}, machine.hardware)
    if line[-len(busy) :] != busy:
        return None
    numbers = {"context": Number(busy[0].row["context"], cells(_rows(line)), count)}
    there = "from context {context} on" if len(busy) > 1 else "at context {context} alone"
    return Finding(_LIMITS, f"In {size} the GPU limits {there}.", numbers, machine.hardware)


def _cause(machine: Machine, found: list[Launches]) -> Finding | None:
    """The time for each kernel where launches limit, and that for which a kernel runs."""
    bound = _of(found, _LAUNCH)
    if not bound:
        return None
    numbers = {
        "step": of_range([each.step_us for each in bound], _rows(bound)),
        "kernel": of_range([each.kernel_us for each in bound], _rows(bound)),
    }
    answer = "Where launches limit, a step takes {step} µs a kernel, which runs for {kernel}."
    return Finding(_LIMITS, answer, numbers, machine.hardware)
