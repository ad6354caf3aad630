"""Of which modules the elementwise kernels of the backward pass are, where autograd's ranges were recorded."""

from stepscope.report.data.profile import Profile
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.formatting import known

_MOST = 3  # modules that are named


def elementwise_in_backward(profile: Profile, rows: list[dict], hardware: str) -> Finding | None:
    """The modules with the most time in elementwise kernels, of the cell with the longest backward pass of those whose
    kernels are known by module; None without one."""
    found = [(row, lines) for row in rows if (lines := _lines(profile, row))]
    if not found:
        return None
    row, lines = max(found, key=lambda pair: sum(line["gpu_ms_per_step"] for line in pair[1]))
    cells, whole = (row["cell"],), sum(line["elementwise_ms_per_step"] for line in lines)
    backward = sum(line["gpu_ms_per_step"] for line in lines)
    if not whole:
        return None
    largest = sorted(lines, key=lambda line: -line["elementwise_ms_per_step"])[:_MOST]
    named = [line for line in largest if line["elementwise_ms_per_step"]]
    numbers = {"whole": Number(whole, cells), "share": Number(whole / backward, cells, formatting.percent)}
    numbers |= {f"part{at}": Number(line["elementwise_ms_per_step"], cells) for at, line in enumerate(named)}
    parts = formatting.listing([f"{line['module']} {{part{at}}}" for at, line in enumerate(named)])
    answer = (
        f"In the backward pass of {profile.title(row, on_its_machine=True)}, elementwise kernels take {{whole}} ms a "
        f"step, {{share}} of its {profile.words(row).time}; most of it: {parts} ms."
    )
    return Finding("which modules have the elementwise kernels of backward", answer, numbers, hardware)


def _lines(profile: Profile, row: dict) -> list[dict]:
    """The cell's modules in backward; none where their elementwise kernels were not counted."""
    lines = profile.rows("modules", row["cell"]).to_dict("records")
    wanted = ("gpu_ms_per_step", "elementwise_ms_per_step")
    return [line for line in lines if all(known(line.get(name)) for name in wanted)]
