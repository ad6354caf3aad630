"""What the profile study says: for the summary, in the section's opening, and of each cell."""

from collections.abc import Iterable

from stepscope.report.data.bound import occupation
from stepscope.report.data.profile import GPU, Profile, Words, costs, is_detailed
from stepscope.report.data.profile_parts import SoftmaxRatios, softmax_against_products
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.formatting import known, mean_count, percentage
from stepscope.report.kit.order import label, machine_labels, ordered, precision_rank
from stepscope.report.studies.profile.findings_modules import elementwise_in_backward
from stepscope.report.studies.profile.tables_kernels import formula_of

_TOOLS = {"nsys": "Nsight Systems", "torch": "torch.profiler"}
_TOLERANCE = 1e-3
# What must be zero for the tables to hold all that the trace holds -> how to say it.
_ZERO = {
    "kernels_not_linked_to_a_launch": "kernels are not linked to a launch, and so to no phase",
    "operations_not_linked_to_a_launch": "operations are not linked to a launch, and so to no phase",
    "operations_outside_every_phase": "operations lie outside every phase",
    "ranges_cut_off_by_the_end": "ranges were cut off by the end of the recording",
    "graphs_traced_as_a_whole": "CUDA graphs were traced as a whole, so that their kernels are not told apart",
}


def findings(profile: Profile) -> list[Finding]:
    """The findings for the summary, machine by machine."""
    if profile.cells.empty:
        return [Finding("profile", "No profile cell is in the tables.")]
    found = []
    for hardware in machine_labels(profile.cells["hardware"]):
        own = [row for row in profile.profiled() if row["hardware"] == hardware]
        rows = [row for row in own if not is_detailed(row)] or own
        found += [
            _bound(profile, rows, hardware),
            _product_shares(profile, rows, hardware),
            _tops(profile, rows, hardware),
            _softmax(profile, rows, hardware),
            elementwise_in_backward(profile, own, hardware),
            _cost(profile, rows, hardware),
            _lost(profile, hardware),
        ]
    return [each for each in found if each]


def _names(rows: Iterable[dict]) -> tuple[str, ...]:
    return tuple(row["cell"] for row in rows)


def _cells(number_of: int) -> str:
    return "1 profiled cell" if number_of == 1 else f"{number_of:,} profiled cells"


def _bound(profile: Profile, rows: list[dict], hardware: str) -> Finding | None:
    """Which cells are launch-bound."""
    found = [(row, own) for row in rows if (own := occupation(profile, row))]
    if not found:
        return None
    numbers, parts = {}, []
    for verdict in ("launch-bound", "mixed", "GPU-bound"):
        same, names = [(row, own) for row, own in found if own.verdict == verdict], []
        for row, own in same:
            key = f"share{len(numbers)}"
            numbers[key] = Number(own.share, (row["cell"],), formatting.percent)
            names.append(f"{profile.title(row, on_its_machine=True)}: {{{key}}}")
        if same:
            key = verdict.replace("-", "_")
            numbers[key] = Number(len(same), _names(row for row, _ in same), formatting.count)
            parts.append(f"{verdict} in {{{key}}} ({formatting.listing(names, 4, '; ')})")
    share = "the share of the unprofiled step in which the GPU is busy"
    lost = len(rows) - len(found)
    more = f"; not known of {lost:,}, which were not timed without a profiler" if lost else ""
    answer = f"Launching kernels or running them ({share}), of {_cells(len(rows))}: {'; '.join(parts)}{more}."
    return Finding("does launching kernels or running them set the time", answer, numbers, hardware)


def _product_shares(profile: Profile, rows: list[dict], hardware: str) -> Finding | None:
    """The matmul share from forward to the whole step, a range a precision."""
    shares = [(row, own) for row in rows if (own := _matmul_shares(profile, row))]
    numbers, parts = {}, []
    for precision in ordered([row["precision"] for row, _ in shares], key=precision_rank):
        same = [(row, own) for row, own in shares if row["precision"] == precision]
        cells = _names(row for row, _ in same)
        for at, phase in enumerate(("forward", "step")):
            numbers[f"{precision}_{phase}"] = Number([own[at] for _, own in same], cells, _percent_range)
        of = formatting.of_cells(len(same), sum(row["precision"] == precision for row in rows))
        shares_of = f"{{{precision}_forward}} of the forward pass and {{{precision}_step}} of the step"
        parts.append(f"in {precision} {shares_of} ({of})")
    if not parts:
        return None
    told = set(_names(row for row, _ in shares))
    left = [profile.title(row, on_its_machine=True) for row in rows if row["cell"] not in told]
    more = f"; no forward pass beside a step in {formatting.listing(left, 4, '; ')}" if left else ""
    answer = f"Matrix products take this share of the {profile.words_of(rows).time}: {'; '.join(parts)}{more}."
    return Finding("what share do matrix products take", answer, numbers, hardware)


def _matmul_shares(profile: Profile, row: dict) -> tuple[float, float] | None:
    """Per cent of the time of the forward pass and of the step; None unless the cell runs both."""
    cell, phases = row["cell"], ("forward", "step")
    if mode(row) != "step" or not all(profile.row("phases", cell, phase=phase) for phase in phases):
        return None
    own = [profile.row("categories", cell, phase=phase, category="matmul") for phase in phases]
    forward, step = (100 * line.get("share_of_phase_gpu_time", 0.0) for line in own)
    return (forward, step) if known(forward) and known(step) else None


def _percent_range(values: list[float]) -> str:
    return formatting.value_range(values, 3, " %")


def _tops(profile: Profile, rows: list[dict], hardware: str) -> Finding | None:
    """The top kernel of forward and of backward: of the largest cell in words, of the others the count."""
    both = []
    for row in rows:
        forward, backward = (profile.top_kernel(row["cell"], phase) for phase in ("forward", "backward"))
        if forward and backward:
            both.append((row, forward["full_name"] == backward["full_name"]))
    if not both:
        return None
    largest = max((row for row, _ in both), key=_size)
    said, name = top(profile, largest), profile.title(largest, on_its_machine=True)
    name = f"The largest cell, {name}" if len(both) > 1 else name[0].upper() + name[1:]
    answer, numbers = f"{name}: {said.answer[:1].lower()}{said.answer[1:]}", dict(said.numbers)
    if len(both) > 1:
        operation = profile.words_of(rows).operation
        numbers["same"] = Number(sum(same for _, same in both), _names(row for row, _ in both), formatting.count)
        answer += f" The top {operation} of both passes is the same in {{same}} of {_cells(len(both))}."
    return Finding(said.question, answer, numbers, hardware)


def _size(row: dict) -> tuple[float, float, int]:
    """Larger for the cell that a summary speaks of: many parameters, a long context, the plainest precision."""
    sizes = [row[name] if known(row[name]) else 0.0 for name in ("parameters", "context")]
    return sizes[0], sizes[1], -precision_rank(row["precision"])[0]


def _softmax(profile: Profile, rows: list[dict], hardware: str) -> Finding | None:
    found = [(row, own) for row in rows if (own := softmax_against_products(profile, row))]
    of = f" ({formatting.of_cells(len(found), len(rows))})"
    return _softmax_ratios(found, profile.words_of(rows), hardware, of) if found else None


def softmax(profile: Profile, row: dict) -> Finding | None:
    """Softmax against attention's two products in one cell; None where not known."""
    found = softmax_against_products(profile, row)
    return _softmax_ratios([(row, found)], profile.words(row), row["hardware"]) if found else None


def _softmax_ratios(found: list[tuple[dict, SoftmaxRatios]], words: Words, hardware: str, of: str = "") -> Finding:
    """Time beside operations: a range over the cells; `of` says over how many of them."""
    cells = _names(row for row, _ in found)
    numbers = {
        "time": Number([own.time for _, own in found], cells, _two_digits),
        "flops": Number([own.flops for _, own in found], cells, _two_digits),
    }
    with_kernels, alone = [(row, own) for row, own in found if own.kernels], ""
    if with_kernels:
        cells = _names(row for row, _ in with_kernels)
        numbers["kernels"] = Number([own.kernels for _, own in with_kernels], cells, _two_digits)
        alone = ", {kernels} times that of their matmul alone"
        alone += f" ({formatting.of_cells(len(with_kernels), len(found))})" * (len(with_kernels) < len(found))
    answer = (
        f"In attention the softmax takes {{time}} times the {words.time} of the two products (scores, attention × V, "
        f"with their copies and scaling){alone}, for {{flops}} times their floating-point operations{of}."
    )
    return Finding("what does the softmax cost", answer, numbers, hardware)


def _two_digits(values: list[float]) -> str:
    return formatting.value_range(values, 2)


def _cost(profile: Profile, rows: list[dict], hardware: str) -> Finding | None:
    """How much slower the profiler makes the phases, and whether its ranges agree with the clock."""
    cells = set(_names(rows))
    found = [line for line in costs(profile) if line["cell"] in cells]
    compared, numbers, parts = [line for line in found if known(line["ratio"])], {}, []
    if compared:
        tools = ordered([_TOOLS.get(row.get("profiler"), row.get("profiler")) for row in rows])
        tool = formatting.listing([str(tool) for tool in tools]) or "The profiler"
        numbers["ratio"] = Number([line["ratio"] for line in compared], _names(compared), _two_decimals)
        of = formatting.of_cells(len({line["cell"] for line in compared}), len(rows))
        parts.append(f"Under {tool} a phase takes {{ratio}} times as long as without ({of}).")
    apart = _furthest_apart(found)
    if apart:
        numbers["apart"] = Number(abs(apart["difference"]), (apart["cell"],), formatting.percent)
        parts.append("Its ranges differ from the host's clock of the same run by at most {apart}.")
    return Finding("what does the profiler cost", " ".join(parts), numbers, hardware) if parts else None


def _two_decimals(values: list[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def _furthest_apart(found: list[dict]) -> dict | None:
    """Of these costs the one whose range and clock differ most."""
    compared = [line for line in found if known(line["difference"])]
    return max(compared, key=lambda line: abs(line["difference"]), default=None)


def _lost(profile: Profile, hardware: str) -> Finding | None:
    own = profile.cells[(profile.cells["hardware"] == hardware) & (profile.cells["status"] != "ok")]
    if own.empty:
        return None
    numbers = {
        status: Number(count, tuple(own.loc[own["status"] == status, "cell"]), formatting.count)
        for status, count in own["status"].value_counts().items()
    }
    counts = formatting.listing([f"{{{status}}} {status}" for status in numbers])
    names = [profile.title(row, on_its_machine=True) for row in own.to_dict("records")]
    answer = f"Not profiled: {counts} ({formatting.listing(names, 4, '; ')})."
    return Finding("what was not profiled", answer, numbers, hardware)


def opening(profile: Profile) -> list[Finding]:
    """How it was recorded, and what a phase's kernels are."""
    rows = profile.profiled()
    return [_recorded(rows), _rule(profile, rows)] if rows else [Finding("profile", "No cell was profiled.")]


def _recorded(rows: list[dict]) -> Finding:
    """Which tool recorded how many steps of how many cells, and why it was that tool."""
    numbers, parts = {}, []
    for at, tool in enumerate(ordered([str(row.get("profiler") or "unknown") for row in rows])):
        own = [row for row in rows if str(row.get("profiler") or "unknown") == tool]
        versions = formatting.listing(ordered([row.get("profiler_version") for row in own]), 3)
        versions = versions.replace("NVIDIA Nsight Systems version ", "")
        name = _TOOLS.get(tool, tool) + (f" ({'of PyTorch ' if tool == 'torch' else ''}{versions})" if versions else "")
        steps = ordered([row.get("steps") for row in own])
        numbers[f"steps{at}"] = Number(steps, _names(own), _counts)
        numbers[f"cells{at}"] = Number(len(own), _names(own), formatting.count)
        recorded = f"{{steps{at}}} step{'s' * (_counts(steps) != '1')}" if steps else "a few steps"
        cells = "one cell" if len(own) == 1 else f"each of {{cells{at}}} cells"
        parts.append(f"{name} recorded {recorded} of {cells}, after the warm-up{_why(tool, own)}")
    return Finding("how was it recorded", f"{'; '.join(parts)}.", numbers)


def _counts(values: list[float]) -> str:
    return formatting.listing([formatting.count(value) for value in values])


def _why(tool: str, rows: list[dict]) -> str:
    if tool != "torch":
        return ""
    if all(row.get("device") == "cpu" for row in rows):
        return (
            ": on a CPU, where Nsight Systems has no kernels to record, the operators of PyTorch stand in their place"
        )
    return ": Nsight Systems was not found there, or not asked for"


def _rule(profile: Profile, rows: list[dict]) -> Finding:
    """What a phase's kernel is, and how wrong the rule by thread would be."""
    question = "which kernels are a phase's"
    on_gpu = [row for row in rows if profile.words(row) is GPU]
    if not on_gpu:
        answer = (
            "An operator belongs to the phase in which it was called, and its time is its own, without the operators "
            "that it calls."
        )
        return Finding(question, answer)
    text = (
        "A kernel belongs to the phase in which it was launched, by any thread of the process, whenever it ran. "
        "Autograd launches the backward pass from a thread of its own, so that a count of the range's own thread "
        "misses it"
    )
    lines = [profile.row("phases", row["cell"], phase="backward") for row in on_gpu]
    lines = [line for line in lines if known(line.get("kernels_by_thread_rule_per_step"))]
    if not lines:
        return Finding(question, f"{text}.")
    by_thread, every = (sum(line[key] for line in lines) for key in ("kernels_by_thread_rule_total", "kernels_total"))
    numbers = {
        "by_thread": Number(by_thread, _names(lines), formatting.count),
        "every": Number(every, _names(lines), formatting.count),
    }
    answer = f"{text}: in the backward passes here it finds {{by_thread}} of {{every}} kernels."
    return Finding(question, answer, numbers)


def agreement(profile: Profile) -> Finding | None:
    """How far ranges and clock lie apart; None where nothing is known."""
    apart = _furthest_apart(costs(profile))
    if apart is None:
        return None
    numbers = {"apart": Number(abs(apart["difference"]), (apart["cell"],), formatting.percent)}
    where = f"{label(apart['phase'])} of {profile.title(apart)}"
    answer = f"Ranges and clock of the same run differ by at most {{apart}} ({where})."
    return Finding("do ranges and clock agree", answer, numbers)


def top(profile: Profile, row: dict) -> Finding | None:
    """Which kernel takes the most time in forward and in backward, and whether it is the same."""
    cell, time = row["cell"], profile.words(row).time
    first = profile.top_kernel(cell, "forward") or profile.top_kernel(cell, "inference")
    if not first:
        return None
    where = "the forward pass" if first["phase"] == "forward" else "inference"
    said, numbers = _often(first, "first")
    answer = f"In {where} {_quoted(first)} takes the most {time}: {said}."
    backward = profile.top_kernel(cell, "backward")
    if backward:
        said, more = _often(backward, "backward")
        numbers |= more
        if backward["full_name"] == first["full_name"]:
            answer += f" It is the same in the backward pass: {said}."
        else:
            again = profile.row("kernels", cell, phase="backward", full_name=first["full_name"])
            there = "the first one does not run there"
            if again:
                numbers["again"] = Number(again["share_of_phase_gpu_time"], (cell,), percentage)
                there = "the first one takes {again} % there"
            answer += f" In the backward pass it is another, {_quoted(backward)}: {said}; {there}."
    return Finding("which kernel takes the most time", answer, numbers, row["hardware"])


def _quoted(kernel: dict) -> str:
    return f"“{formatting.shortened(kernel['name'], 80)}”"


def _often(kernel: dict, name: str) -> tuple[str, dict[str, Number]]:
    """(`{name_share} % of it, {name_times} times a step (2 × 2 + 1 LM head)`, the numbers in it)."""
    numbers = {
        f"{name}_share": Number(kernel["share_of_phase_gpu_time"], (kernel["cell"],), percentage),
        f"{name}_times": Number(kernel["instances_per_step"], (kernel["cell"],), mean_count),
    }
    text, formula = f"{{{name}_share}} % of it, {{{name}_times}} times a step", formula_of(kernel)
    return (f"{text} ({formula})" if formula else text), numbers


def others(profile: Profile, row: dict) -> Finding | None:
    """The categories besides matrix products that take more than a twentieth of the step."""
    rows, words = profile.rows("categories", row["cell"]), profile.words(row)
    own = rows[(rows["phase"] == "step") & (rows["category"] != "matmul")] if len(rows) else rows
    own = own[own["share_of_phase_gpu_time"] >= 0.05].sort_values("ms_per_step", ascending=False) if len(own) else own
    numbers, parts = {}, []
    for at, line in enumerate(own.to_dict("records")):
        numbers[f"share{at}"] = Number(line["share_of_phase_gpu_time"], (row["cell"],), percentage)
        numbers[f"times{at}"] = Number(line["instances_per_step"], (row["cell"],), mean_count)
        parts.append(f"{line['category']} {{share{at}}} % ({{times{at}}} {words.operations})")
    if not parts:
        return None
    answer = f"Besides matrix products, these take 5 % of the step's {words.time} or more: {formatting.listing(parts)}."
    return Finding("what else takes time", answer, numbers, row["hardware"])


def checks(profile: Profile, row: dict) -> tuple[bool, Finding]:
    """(does the trace hold what it should, a finding on it)."""
    cell, words, question = row["cell"], profile.words(row), "does the trace hold all of the step"
    if profile.rows("checks", cell).empty:
        return False, Finding(question, "There are no checks of this trace.", hardware=row["hardware"])
    counted = {name: profile.number_of(cell, name) for name in ("kernels", "memory_operations", *_ZERO)}
    numbers = {name: Number(value, (cell,), formatting.count) for name, value in counted.items()}
    problems = [f"{{{name}}} {what}" for name, what in _not_zero(counted).items()]
    for name, (found, wanted) in _wrong_sums(profile, cell).items():
        numbers[name] = Number(found, (cell,), _three_decimals)
        numbers[f"{name}_wanted"] = Number(wanted, (cell,), _three_decimals)
        problems.append(f"the {name} add up to {{{name}}} ms, not to {{{name}_wanted}}")
    what = f"{{kernels}} {words.operations}"
    if words is GPU:
        what += " and {memory_operations} copies and fills of memory"
    if problems:
        return False, Finding(question, f"Of {what}: {'; '.join(problems)}.", numbers, row["hardware"])
    linked = "each is linked to its launch, " if words is GPU else ""
    sums = f"phases and categories add up to the trace's {words.time}"
    answer = f"Of {what} {linked}none lies outside the phases, and {sums}."
    return True, Finding(question, answer, numbers, row["hardware"])


def _not_zero(counted: dict[str, float]) -> dict[str, str]:
    """What was found that must not be there; kernels without a launch are not counted as operations once more."""
    found = {name: what for name, what in _ZERO.items() if counted[name] > 0}
    if "kernels_not_linked_to_a_launch" in found:
        found.pop("operations_not_linked_to_a_launch", None)
    return found


def _wrong_sums(profile: Profile, cell: str) -> dict[str, tuple[float, float]]:
    """What does not add up -> (its sum, the trace's time), in ms: phases and categories."""
    phases, categories = profile.rows("phases", cell), profile.rows("categories", cell)
    inside, total = (profile.number_of(cell, name) for name in ("gpu_ms_in_phases", "gpu_ms_total"))
    sums = {"phases": (phases["gpu_exclusive_ms_total"].sum() if len(phases) else 0.0, inside)}
    if len(categories):
        sums["categories"] = (categories.loc[categories["phase"] == "all", "total_ms"].sum(), total)
    return {
        name: (float(found), wanted)
        for name, (found, wanted) in sums.items()
        if known(wanted) and abs(found - wanted) > _TOLERANCE * max(wanted, 1e-9)
    }


def _three_decimals(time: float) -> str:
    return formatting.fixed(time, 3)
