"""The chapter on kernels: what is not a matrix product, which kernel takes most, and what launching them costs."""

from stepscope.report.chapters.kernels.graphs import graph_findings
from stepscope.report.chapters.kernels.launching import launch_findings, limit_findings, limits_takeaway
from stepscope.report.chapters.kernels.products import mix_takeaway, product_findings
from stepscope.report.chapters.kernels.profiler import profiler_findings
from stepscope.report.chapters.kernels.rest import rest_findings
from stepscope.report.chapters.kernels.tables import kernels_table, launches_table
from stepscope.report.chapters.kernels.top import top_findings
from stepscope.report.data.kernels import largest_step, whole_steps
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit.blocks import Picture, Table
from stepscope.report.kit.chapter import Chapter, Part
from stepscope.report.studies.profile.captions import pictures


def chapter(machine: Machine) -> Chapter | None:
    """None unless a whole step was profiled."""
    own = machine.reference.row if machine.reference else largest_step(whole_steps(machine.profile, machine.hardware))
    if own is None:
        return None
    shown = pictures(machine.profile, machine.tables)
    kinds, bound = shown.get("profile_categories"), shown.get("profile_bound") if machine.reference else None
    parts = (
        Part("What is not a matrix product?", rest_findings(machine, own), _those(kinds)),
        Part(
            "Which kernel takes most, launched how often?",
            top_findings(machine, own),
            _those(kernels_table(machine, own)),
        ),
        Part("How many kernels are launched?", launch_findings(machine, own)),
        Part("Which sizes do launches limit?", limit_findings(machine), _those(bound, launches_table(machine))),
        Part("What did CUDA graphs do?", graph_findings(machine)),
        Part("What did the profiler cost and record?", profiler_findings(machine, own)),
        Part("Which units and tiles do products use?", product_findings(machine, own)),
    )
    takeaway = (*mix_takeaway(machine, own), *limits_takeaway(machine))
    return Chapter("kernels", "Kernels and launches", takeaway, parts, ("profile",))


def _those(*shown: Picture | Table | None) -> tuple[Picture | Table, ...]:
    return tuple(each for each in shown if each)
