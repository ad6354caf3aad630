"""The profile study's figures: what to see in them, the fixed parameters, and their alt text."""

from stepscope.config.training import figure_name
from stepscope.report.data.profile import GPU, Profile
from stepscope.report.kit.blocks import Picture
from stepscope.report.kit.captions import fixed_parameters
from stepscope.report.kit.formatting import known
from stepscope.report.kit.order import main_grid
from stepscope.tables.reader import Tables


def pictures(profile: Profile, tables: Tables) -> dict[str, Picture]:
    """The figures across cells; none without a profiled cell."""
    if not profile.profiled():
        return {}
    end = fixed_parameters(main_grid(tables["profile"]))
    text = _of_gpu() if profile.words_of(profile.profiled()) is GPU else _of_cpu()
    return {name: Picture(name, f"{caption} {end}".strip(), other) for name, (caption, other) in text.items()}


def _of_gpu() -> dict[str, tuple[str, str]]:
    """Figure -> (caption, alternative text) where kernels of a GPU were recorded."""
    return {
        "profile_bound": (
            "How much of a step the GPU is busy. The step without a profiler is 100 %: what the busy time leaves of it "
            "is idle. The line ends where the profiled step does: what it is longer, the profiler costs.",
            "Bars of the GPU's busy time and of the profiled step, in per cent of the step without a profiler.",
        ),
        "profile_launches": (
            "Kernels in a step by phase. Their number grows with the layers and hardly with the width of the model. "
            "Paler: launched by another thread than the one that opened the range.",
            "Bars of the number of kernels in a step, by phase, model size and context.",
        ),
        "profile_matmul_share": (
            "Matrix products take a smaller share of the GPU time of the whole step than of forward and backward "
            "together, since the optimizer has none. A line a precision.",
            "Lines of the share of matrix products in the GPU time, from the forward pass to the step, a panel for "
            "each size and context.",
        ),
        "profile_categories": (
            "What the GPU time of each phase goes to, in ms a step. Cells in a row share their scale.",
            "Stacked bars of the GPU time by category, for each phase, a row for each size and context, a column for "
            "each precision.",
        ),
    }


def _of_cpu() -> dict[str, tuple[str, str]]:
    """The same where the operators of a CPU were recorded."""
    return {
        "profile_bound": (
            "How much of the profiled step operators run. The profiler slows them too, so that the step without it, at "
            "the right, is no measure of them.",
            "Bars of the time in operators, in per cent of the profiled step.",
        ),
        "profile_launches": (
            "Operators in a step by phase. Their number grows with the layers and hardly with the width of the model.",
            "Bars of the number of operators in a step, by phase, model size and context.",
        ),
        "profile_matmul_share": (
            "Matrix products take a smaller share of the time in operators in the whole step than in forward and "
            "backward together, since the optimizer has none. A line a precision.",
            "Lines of the share of matrix products in the time in operators, from the forward pass to the step, a "
            "panel for each size and context.",
        ),
        "profile_categories": (
            "What the time in operators of each phase goes to, in ms a step. Cells in a row share their scale.",
            "Stacked bars of the time in operators by category, for each phase, a row for each size and context, a "
            "column for each precision.",
        ),
    }


def cell_picture(profile: Profile, row: dict, name: str) -> Picture:
    """A cell's figure: categories by phase, one step, one attention."""
    on_gpu = profile.words(row) is GPU
    above, below = ("ranges and CUDA calls", "the GPU's streams") if on_gpu else ("ranges", "operators")
    fixed_here = [name] + ([row["hardware"]] if row["hardware"] not in name else [])
    fixed_here += [f"batch {row['batch']:,.0f}"] if known(row["batch"]) and "batch" not in name else []
    return Picture(
        figure_name(row["cell"]),
        "Where the time goes, and where nothing runs: categories by phase; one step; one attention in it. In the last "
        f"two {above} stand above and {below} below, coloured by category; where a lane is empty, nothing ran. "
        f"Recorded under the profiler. Fixed: {', '.join(fixed_here)}.",
        f"{name}: stacked bars of the categories by phase, the timeline of one step, and one attention of it enlarged.",
    )
