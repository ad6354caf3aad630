"""The machine that page one and the chapters speak of, and what they read of it."""

from functools import cached_property

from stepscope.report.data.ladder import Ladder, ladders
from stepscope.report.data.machines import labels
from stepscope.report.data.mixed import Mixed, MixedPair
from stepscope.report.data.profile import Profile
from stepscope.report.data.step_parts import StepParts, every_step, reference
from stepscope.report.kit.order import with_order
from stepscope.tables.reader import Tables

MIXED = "bf16"


class Machine:
    """Each table of the machine, read once: the first one of which a whole step was profiled, else the first one."""

    def __init__(self, tables: Tables):
        self.tables = tables
        self.profile = Profile(tables)
        self._steps = every_step(self.profile)
        self.labels = labels(tables)
        profiled = {each.row["hardware"] for each in self._steps}
        self.hardware = next((each for each in self.labels if each in profiled), next(iter(self.labels), ""))

    @cached_property
    def steps(self) -> list[StepParts]:
        """Its whole steps that were profiled."""
        return [each for each in self._steps if each.row["hardware"] == self.hardware]

    @cached_property
    def reference(self) -> StepParts | None:
        return reference(self.steps)

    @cached_property
    def alike(self) -> list[StepParts]:
        """The steps in the reference's precision."""
        return [each for each in self.steps if each.precision == self.reference.precision] if self.reference else []

    @cached_property
    def ladders(self) -> list[Ladder]:
        return [one for one in ladders(self.tables) if one.hardware == self.hardware]

    @cached_property
    def timing(self) -> list[dict]:
        """Its first runs in the timing study."""
        rows = with_order(self.tables["timing"]).to_dict("records")
        return [row for row in rows if row["repeat"] == 1 and row["hardware"] == self.hardware]

    @cached_property
    def pairs(self) -> list[MixedPair]:
        """Cells in bf16 beside those in fp32, at neutral options, whose steps were both timed."""
        pairs = Mixed(self.tables).of(self.hardware, MIXED)
        return [pair for pair in pairs if not pair.row["options"] and pair.speeds.get("step")]
