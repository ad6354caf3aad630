"""The memory study's tables: a row a cell, all snapshots' analyses put together, and predictions beside them."""

from pathlib import Path

from stepscope.axes import NEUTRAL
from stepscope.config import recordings
from stepscope.model import footprint, footprint_peak
from stepscope.model.footprint import Contribution, Setup
from stepscope.model.footprint_formulas import formula_of
from stepscope.snapshot.table_names import COLUMNS as OF_SNAPSHOTS
from stepscope.tables import models
from stepscope.tables.cells import CellResult, Rows, read_analysis
from stepscope.tables.columns import REASON, RUN, STATUS, run_columns
from stepscope.tables.memory_fields import ANALYSES, WITH_FORMULA
from stepscope.tables.schema import Table, number, text
from stepscope.tables.training import (
    KEY,
    PEAKS,
    PLACE,
    SAMPLES,
    STEPS,
    keys_of,
    peak_columns,
    place_columns,
    shape_of,
    status_of,
    summary_of,
)
from stepscope.tables.writer import write_analyses, write_study

STUDY = (
    Table(
        "memory",
        "a cell",
        (
            *(PLACE, STEPS),
            text("start", "`warm`: steps after the warm-up were recorded; `cold`: the first ones"),
            *(STATUS, REASON),
            text("recorder", "what recorded: the allocator's history or torch.profiler"),
            text("recorded", "`measured steps`, or `warm-up` where memory ran out before them"),
            text("snapshot", "the snapshot, from the working directory"),
            text("known", "what the program itself knew of its tensors, beside the snapshot"),
            number("baseline_first_step_bytes", "bytes", "memory in tensors after the first warm-up step"),
            number("baseline_model_bytes", "bytes", "memory in tensors after model, batch and optimizer are made"),
            number("baseline_start_bytes", "bytes", "memory in tensors before the measured steps"),
            number("capacity_total_bytes", "bytes", "memory of the GPU"),
            number("capacity_free_bytes", "bytes", "of it, what was free before the cell"),
            *PEAKS,
            number("predicted_peak_bytes", "bytes", "the peak in closed form, with the measured workspace"),
            text("predicted_phase", "phase of the predicted peak"),
            text("predicted_part", "part of the model at the predicted peak"),
            number(
                "predicted_first_context_too_long",
                "count",
                "shortest context whose predicted peak does not fit",
            ),
            number("residual_stream_bytes", "bytes", "one version of the residual stream"),
            RUN,
        ),
    ),
    Table("memory_samples", "a phase of a step", (KEY, SAMPLES)),
)
TABLES = (*STUDY, *ANALYSES.values())


def write(cells: list[CellResult], folder: Path) -> None:
    """Write memory.csv, memory_samples.csv and memory_NAME.csv for each table of ANALYSES.

    A measured cell whose analysis is missing or damaged has no rows in these, and is `failed` with the reason.
    """
    analyses = [read_analysis(cell, OF_SNAPSHOTS, "memory") for cell in cells]
    accounts = [Account(cell, tables) for cell, (tables, _) in zip(cells, analyses, strict=True)]
    for account in accounts:
        account.compare_with(accounts)
    rows = [account.row(lost) for account, (_, lost) in zip(accounts, analyses, strict=True)]
    keys = keys_of(rows)
    write_study(folder, STUDY, rows, cells, keys)
    for name, table in ANALYSES.items():
        write_analyses(folder, table, keys, [account.table(name) for account in accounts])


class Account:
    """One cell: what was recorded, beside what the closed form says of it."""

    def __init__(self, cell: CellResult, tables: dict[str, Rows]):
        self._cell, self._tables = cell, tables
        spec = cell.entry["spec"]
        self._mode = spec.get("mode", NEUTRAL["mode"])
        options = {name: spec.get(name, NEUTRAL[name]) for name in ("attention", "optimizer")}
        shape = shape_of(cell)
        # None: a model of one's own has no closed form; only what follows from its parameters is known before.
        self._setup = shape and Setup(shape, spec["batch"], spec["context"], spec["precision"], **options)
        self._model = models.description(cell)
        self._blocks = shape.num_layers if shape else (self._model.get("blocks") or {}).get("count", 0)
        self._summary = summary_of(cell)
        self._about = self._summary.get("memory") or {}
        self._kind = (cell.hardware, self._mode)
        self._measured_workspace = self._known("workspace", "outside")
        self.compare_with([])

    def compare_with(self, others: list["Account"]) -> None:
        """Predict the peak; where memory ran out before libraries took their workspace, with that of other cells."""
        alike = [other._measured_workspace or 0 for other in others if other._kind == self._kind]
        measured = self._measured_workspace
        self._workspace = max(alike, default=0) if measured is None else measured
        self._peak = self._setup and footprint_peak.peak(self._setup, self._mode, self._workspace)

    def row(self, lost: str = "") -> dict:
        """The cell's row: its place in the grid, status, landmarks, measured and predicted peak; all in bytes.

        lost: why its analysis cannot be used.
        """
        cell, mode = self._cell, self._summary["modes"].get(self._mode, {})
        capacity = self._about.get("capacity") or {}
        free = capacity.get("free_bytes")
        files = {
            name: f"results/{cell.name}/snapshot/{self._about[name]}" if self._about.get(name) else None
            for name in ("snapshot", "known")
        }
        return {
            **place_columns(cell),
            "steps": cell.entry["spec"]["steps"],
            "start": recordings.recorded(cell.name, "start"),
            **status_of(cell, mode, lost),
            "recorder": self._about.get("recorder"),
            "recorded": self._about.get("recorded"),
            **files,
            **{f"baseline_{name}_bytes": value for name, value in (self._about.get("baselines") or {}).items()},
            "capacity_total_bytes": capacity.get("total_bytes"),
            "capacity_free_bytes": free,
            **peak_columns(mode),
            **self._predictions(free),
            **run_columns(cell),
        }

    def _predictions(self, free: int | None) -> dict:
        """The closed form's columns (bytes, tokens); none for a model of one's own. free: memory before the cell."""
        if self._peak is None:
            return {}
        limit = free and footprint_peak.first_context_that_fails(self._setup, self._mode, free, self._workspace)
        return {
            "predicted_peak_bytes": self._peak.bytes,
            "predicted_phase": self._peak.phase,
            "predicted_part": self._peak.part,
            "predicted_first_context_too_long": limit,
            "residual_stream_bytes": self._residual_stream(),
        }

    def table(self, name: str) -> Rows:
        """The cell's rows of one table."""
        if name == "accounting":
            return (self._accounting() if self._setup else self._accounting_by_parameters()) if self._tables else []
        if name == "predicted":
            return [_predicted(each) for each in self._peak.contributions] if self._peak else []
        rows = self._tables.get(name, [])
        if name not in WITH_FORMULA:
            return rows
        columns = OF_SNAPSHOTS[name]
        return [[*row, self._formula(dict(zip(columns, row, strict=True)))] for row in rows]

    def _formula(self, row: dict[str, str]) -> str:
        """What a row's size is made of; `bytes` are those of one tensor, or of all that `tensors` counts."""
        if not row["shape"] or self._setup is None:
            return ""
        size = int(row["bytes"]) // int(row.get("tensors") or 1)
        dims = tuple(map(int, row["shape"].split("×")))
        return formula_of(self._setup, size, dims, row["dtype"], row["category"]) or ""

    def _residual_stream(self) -> int:
        """Bytes of one version of the residual stream."""
        return next(each.bytes for each in footprint.saved_by_block(self._setup) if each.name == "block input")

    def _accounting(self) -> Rows:
        """Item by item: predicted bytes, measured bytes (empty: not measured), the formula."""
        setup, is_whole = self._setup, self._about.get("recorded") != "warm-up"
        rows: Rows = []

        def item(name: str, contributions: list[Contribution], measured: int | None) -> None:
            formula = (
                " + ".join(dict.fromkeys(each.formula for each in contributions)) if len(contributions) < 4 else ""
            )
            rows.append([name, footprint.total(contributions), "" if measured is None else measured, formula])

        item("parameters", [footprint.parameters(setup)], self._known_total("parameters"))
        item("buffers", footprint.buffers(setup), self._known_total("buffers") if is_whole else None)
        if setup.is_autocast:
            item("cast weights", footprint.all_cast_weights(setup), self._most("cast_weights"))
        if self._mode in ("forward-backward", "step"):
            item("gradients", [footprint.gradients(setup)], self._known_total("gradients"))
            item("gradients of a block", footprint.gradients_of_block(setup), self._known("gradients", "block"))
        if self._mode == "step":
            item("optimizer state", [footprint.optimizer_state(setup)], self._known_total("optimizer state"))
        if self._mode != "inference":
            block, outside = footprint.saved_by_block(setup), footprint.saved_outside(setup)
            measured_block, measured_outside, whole = self._saved_bytes()
            item("saved by a block", block, measured_block)
            item("saved outside the blocks", outside, measured_outside)
            item("saved in all", [*footprint.saved_by_block(setup, self._blocks), *outside], whole)
        for name, measured in self._peaks().items():
            item(name, self._peak.contributions, measured)
        return rows

    def _accounting_by_parameters(self) -> Rows:
        """The same of a model of one's own: predicted is what follows from its parameters, the rest is measured."""
        every, trained = (self._model.get(name) for name in ("parameters", "trainable_parameters"))
        rows: Rows = []

        def item(name: str, measured: int | None, predicted: int | None = None, formula: str = "") -> None:
            numbers = ["" if value is None else value for value in (predicted, measured)]
            rows.append([name, *numbers, "" if predicted is None else formula])

        item("parameters", self._known_total("parameters"), every and 4 * every, "parameters × 4 B")
        if self._mode in ("forward-backward", "step"):
            item("gradients", self._known_total("gradients"), trained and 4 * trained, "trained parameters × 4 B")
        if self._mode == "step":
            moments = "2 × trained parameters × 4 B"
            item("optimizer state", self._known_total("optimizer state"), trained and 8 * trained, moments)
        if self._mode != "inference":
            names = ("saved by a block", "saved outside the blocks", "saved in all")
            for name, measured in zip(names, self._saved_bytes(), strict=True):
                item(name, measured)
        for name, measured in self._peaks().items():
            item(name, measured)
        return rows

    def _saved_bytes(self) -> tuple[int | None, int | None, int | None]:
        """Bytes that autograd saved in one block, outside of all, and together."""
        block, outside = self._saved("block"), self._saved("outside")
        if not self._blocks:
            return block, outside, outside
        return block, outside, None if None in (block, outside) else self._blocks * block + outside

    def _peaks(self) -> dict[str, int | None]:
        """The measured peaks of a cell that finished, in bytes: as tensors ask for, and as the allocator counts."""
        if self._summary["modes"].get(self._mode, {}).get("status") != "ok":
            return {}
        requested = max((int(row["peak_bytes"]) for row in self._rows("summary")), default=None)
        counted = self._summary["modes"][self._mode].get("peak_allocated_bytes")
        return {"peak as requested": requested, "peak": counted or requested}

    def _known_total(self, category: str) -> int | None:
        """Bytes of the category's tensors: a block's as often as there are blocks, and those outside."""
        block, outside = self._known(category, "block"), self._known(category, "outside")
        if block is None and outside is None:
            return None
        return (block or 0) * self._blocks + (outside or 0)

    def _known(self, category: str, part: str) -> int | None:
        found = [row for row in self._rows("tensors") if row["category"] == category and row["part"] == part]
        return sum(int(row["bytes"]) for row in found) if found else None

    def _most(self, category: str) -> int | None:
        return max((int(row[category]) for row in self._rows("timeline")), default=None)

    def _saved(self, part: str) -> int | None:
        if self._about.get("recorded") == "warm-up":  # memory ran out before the whole step was seen
            return None
        rows = [row for row in self._rows("saved") if row["part"] == part and row["category"] == "activations"]
        return sum(int(row["bytes"]) for row in rows) if rows else None

    def _rows(self, name: str) -> list[dict[str, str]]:
        return [dict(zip(OF_SNAPSHOTS[name], row, strict=True)) for row in self._tables.get(name, [])]


def _predicted(each: Contribution) -> list:
    return [each.category, each.module, each.name, each.count, each.bytes, each.formula]
