"""Sentences that the profile study supports, for the summary and for the section's opening."""

import pandas as pd

from stepscope.report.data.occupation import occupation
from stepscope.report.data.profile import GPU, HOST, Profile, title
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit import formatting
from stepscope.report.kit.order import machine_labels, ordered, precision_rank
from stepscope.report.studies.profile.cell_attention import softmax_against_products, softmax_words
from stepscope.report.studies.profile.cell_kernels import top_kernel, top_sentence
from stepscope.report.studies.profile.cost import costs

_TOOLS = {"nsys": "Nsight Systems", "torch": "torch.profiler"}


def findings(profile: Profile) -> list[str]:
    """The findings, hardware by hardware."""
    if profile.cells.empty:
        return ["No profile cell is in the tables."]
    several = profile.cells["hardware"].nunique() > 1
    sentences = []
    for hardware in machine_labels(profile.cells["hardware"]):
        rows = [row for row in profile.profiled() if row["hardware"] == hardware]
        parts = [_bound(profile, rows), _product_shares(profile, rows), _tops(profile, rows), _softmax(profile, rows)]
        parts += [_cost(profile, rows), _lost(profile, hardware)]
        sentences += [f"On {hardware}: {part}" if several else part for part in parts if part]
    return sentences


def _cells(number_of: int) -> str:
    return "1 profiled cell" if number_of == 1 else f"{number_of:,} profiled cells"


def _name(profile: Profile, row: dict) -> str:
    """A cell's point, without the machine, which the sentence has named."""
    return title(row, profile.cells[profile.cells["hardware"] == row["hardware"]])


def _bound(profile: Profile, rows: list[dict]) -> str:
    """Which cells are launch-bound."""
    found = [(row, own) for row in rows if (own := occupation(profile, row))]
    if not found:
        return ""
    parts = []
    for verdict in ("launch-bound", "mixed", "GPU-bound"):
        same = [(row, own) for row, own in found if own.verdict == verdict]
        names = [f"{_name(profile, row)}: {formatting.percent(own.share)}" for row, own in same]
        if same:
            parts.append(f"{verdict} in {len(same):,} ({formatting.listing(names, 4, '; ')})")
    share = "the share of the unprofiled step in which the GPU is busy"
    return f"Launching kernels or running them ({share}), of {_cells(len(found))}: {'; '.join(parts)}."


def _product_shares(profile: Profile, rows: list[dict]) -> str:
    """The matmul share from forward to the whole step, a range a precision."""
    shares = []
    for row in rows:
        line = {"precision": row["precision"]}
        for phase in ("forward", "step"):
            if mode(row) == "step" and profile.row("phases", row["cell"], phase=phase):
                own = profile.row("categories", row["cell"], phase=phase, category="matmul")
                line[phase] = 100 * own.get("share_of_phase_gpu_time", 0.0)
        shares.append(line)
    frame = pd.DataFrame(shares, columns=["precision", "forward", "step"]).dropna()
    if frame.empty:
        return ""
    parts = []
    for precision in ordered(frame["precision"], key=precision_rank):
        own = frame[frame["precision"] == precision]
        forward, step = (formatting.value_range(own[phase], 3, " %") for phase in ("forward", "step"))
        parts.append(f"in {precision} {forward} of the forward pass and {step} of the step")
    words = _words(profile, rows)
    return f"Matrix products take this share of the {words.time}: {'; '.join(parts)}."


def _words(profile: Profile, rows: list[dict]):
    return HOST if rows and all(profile.words(row) is HOST for row in rows) else GPU


def _tops(profile: Profile, rows: list[dict]) -> str:
    """The top kernel of forward and of backward: of the largest cell in words, of the others the count."""
    pairs = []
    for row in rows:
        forward, backward = (top_kernel(profile, row["cell"], phase) for phase in ("forward", "backward"))
        if forward and backward:
            pairs.append((row, forward["full_name"] == backward["full_name"]))
    if not pairs:
        return ""
    largest = max((row for row, _ in pairs), key=_size)
    name, said = _name(profile, largest), top_sentence(profile, largest)
    name = f"The largest cell, {name}" if len(pairs) > 1 else name[0].upper() + name[1:]
    text = f"{name}: {said[:1].lower()}{said[1:]}"
    same = sum(one for _, one in pairs)
    operation = _words(profile, rows).operation
    return (
        f"{text} The top {operation} of both passes is the same in {same:,} of {_cells(len(pairs))}."
        if len(pairs) > 1
        else text
    )


def _size(row: dict) -> tuple[float, float, int]:
    """Larger for the cell that a summary speaks of: many parameters, a long context, the plainest precision."""
    known = [row[name] if formatting.known(row[name]) else 0.0 for name in ("parameters", "context")]
    return known[0], known[1], -precision_rank(row["precision"])[0]


def _softmax(profile: Profile, rows: list[dict]) -> str:
    found = [own for row in rows if (own := softmax_against_products(profile, row))]
    if not found:
        return ""
    return "In attention " + softmax_words(found, _words(profile, rows).time)


def _cost(profile: Profile, rows: list[dict]) -> str:
    """How much slower the profiler makes the phases, and whether its ranges agree with the clock."""
    cells = {row["cell"] for row in rows}
    found = costs(profile)
    found = found[found["cell"].isin(cells)]
    ratios = found["ratio"].dropna()
    tools = ordered([_TOOLS.get(row.get("profiler"), row.get("profiler")) for row in rows])
    parts = []
    if len(ratios):
        tool = formatting.listing([str(tool) for tool in tools]) or "The profiler"
        low, high = f"{ratios.min():.2f}", f"{ratios.max():.2f}"
        parts.append(
            f"Under {tool} a phase takes {low if low == high else f'{low} to {high}'} times as long as without."
        )
    apart = found["difference"].dropna().abs()
    if len(apart):
        most = formatting.percent(float(apart.max()))
        parts.append(f"Its ranges differ from the host's clock of the same run by at most {most}.")
    return " ".join(parts)


def _lost(profile: Profile, hardware: str) -> str:
    own = profile.cells[(profile.cells["hardware"] == hardware) & (profile.cells["status"] != "ok")]
    if own.empty:
        return ""
    counts = own["status"].value_counts()
    parts = [f"{number_of:,} {status}" for status, number_of in counts.items()]
    names = [_name(profile, row) for row in own.to_dict("records")]
    return f"Not profiled: {formatting.listing(parts)} ({formatting.listing(names, 4, '; ')})."


def shared_options(profile: Profile) -> str:
    """The profiler's options, if they are the same in all cells."""
    options = ordered([row.get("profiler_options") for row in profile.profiled()])
    return options[0] if len(options) == 1 else ""


def opening(profile: Profile) -> list[str]:
    """How it was recorded, and what a phase's kernels are."""
    rows = profile.profiled()
    if not rows:
        return ["No cell was profiled."]
    return [part for part in (_recorded(rows), _rule(profile, rows)) if part]


def _recorded(rows: list[dict]) -> str:
    """Which tool recorded how many steps of how many cells, and why it was that tool."""
    parts = []
    for tool in ordered([str(row.get("profiler") or "unknown") for row in rows]):
        own = [row for row in rows if str(row.get("profiler") or "unknown") == tool]
        versions = formatting.listing(ordered([row.get("profiler_version") for row in own]), 3)
        versions = versions.replace("NVIDIA Nsight Systems version ", "")
        name = _TOOLS.get(tool, tool) + (f" ({'of PyTorch ' if tool == 'torch' else ''}{versions})" if versions else "")
        steps = formatting.listing([f"{value:,.0f}" for value in ordered([row.get("steps") for row in own])])
        cells = "one cell" if len(own) == 1 else f"each of {len(own):,} cells"
        parts.append(f"{name} recorded {steps or 'a few'} step{'s' * (steps != '1')} of {cells}, after the warm-up")
        parts[-1] += _why(tool, own)
    return f"{'; '.join(parts)}."


def _why(tool: str, rows: list[dict]) -> str:
    if tool != "torch":
        return ""
    if all(row.get("device") == "cpu" for row in rows):
        return (
            ": on a CPU, where Nsight Systems has no kernels to record, the operators of PyTorch stand in their place"
        )
    return ": Nsight Systems was not found there, or not asked for"


def _rule(profile: Profile, rows: list[dict]) -> str:
    """What a phase's kernel is, and how wrong the rule by thread would be."""
    on_gpu = [row for row in rows if profile.words(row) is GPU]
    if not on_gpu:
        return (
            "An operator belongs to the phase in which it was called, and its time is its own, without the operators "
            "that it calls."
        )
    text = (
        "A kernel belongs to the phase in which it was launched, by any thread of the process, whenever it ran. "
        "Autograd launches the backward pass from a thread of its own, so that a count of the range's own thread "
        "misses it"
    )
    lines = [profile.row("phases", row["cell"], phase="backward") for row in on_gpu]
    lines = [line for line in lines if line and formatting.known(line.get("kernels_by_thread_rule_per_step"))]
    if not lines:
        return f"{text}."
    found, every = (sum(line[key] for line in lines) for key in ("kernels_by_thread_rule_total", "kernels_total"))
    return (
        f"{text}: in the backward passes here it finds {formatting.count(found)} of {formatting.count(every)} kernels."
    )
