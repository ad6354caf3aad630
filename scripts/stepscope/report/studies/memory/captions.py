"""The captions of the memory study's figures, and their alternative texts."""

from stepscope.config.training import figure_name
from stepscope.report.data.memory import Memory, title
from stepscope.report.kit.blocks import Picture
from stepscope.report.kit.captions import fixed_parameters
from stepscope.report.kit.formatting import listing
from stepscope.report.kit.order import main_grid
from stepscope.tables.reader import Tables


def pictures(memory: Memory, tables: Tables) -> dict[str, Picture]:
    """The figures across cells; none without a recorded cell."""
    if not memory.recorded:
        return {}
    end = fixed_parameters(main_grid(tables["memory"]))
    return {name: Picture(name, f"{caption} {end}".strip(), other) for name, (caption, other) in _words(memory).items()}


def _words(memory: Memory) -> dict[str, tuple[str, str]]:
    """Figure -> (caption, alternative text)."""
    lost = any(row["status"] == "oom" for row in memory.recorded)
    peaks = " A cross marks what ran out of memory; its height says nothing." if lost else ""
    bars = " A dashed bar goes on to the predicted peak of what ran out of memory." if lost else ""
    return {
        "memory_peaks": (
            "Peak memory over the context. What grows with it are activations; parameters, their gradients and moments "
            f"do not. A line a precision: allocated, and what is reserved for it where the allocator tells.{peaks}",
            "Line charts of peak memory over the context length, a panel for each size and mode, a line for each "
            "precision.",
        ),
        "memory_peak_categories": (
            f"What is alive at the peak, by category; the sum stands at the end of each bar.{bars}",
            "Stacked bars of the bytes that are alive at the peak, by category, a bar for each context and precision, "
            "a panel for each size and mode.",
        ),
        "memory_predicted": (
            "The predicted over the measured peak, less one, by context. Measured is here what the allocator counts, "
            "which rounds each block up; the table below has the peak without that too.",
            "Line charts of the difference of the predicted and the measured peak in per cent over the context, a "
            "panel for each size and mode.",
        ),
    }


def cell_picture(memory: Memory, row: dict, shown: bool = False) -> Picture:
    """A cell's figure: active memory by category over the events; with all there is to say where it is `shown`."""
    name = title(row, memory)
    caption = f"Active memory by category: {name}."
    if shown:
        fixed_here = [f"batch {row['batch']:,.0f}"] if "batch" not in name else []
        fixed_here += [str(row["hardware"])] if row["hardware"] not in name else []
        caption = (
            "Active memory, event by event: each allocation and each free is one step to the right, so that the axis "
            "is not time. Areas are categories, the phases stand above; the peak is marked where it lies. "
            f"{name}; {listing(fixed_here)}."
        )
    return Picture(figure_name(row["cell"]), caption, f"Stacked areas of active memory by category: {name}.")
