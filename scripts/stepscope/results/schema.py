"""Every table of results/tables: its columns in their order, each with label, unit and meaning.

Units are SI: s, B, J, W, FLOP/s, B/s; 1 is a count or a ratio; "of the row": as the row's column
`unit` says. A column with `low` and `high` is the centre of an interval whose ends are the columns
of these names. Standard library only.
"""

from dataclasses import dataclass, replace
from functools import cached_property

TEXT, NUMBER, FLAG = "text", "number", "flag"  # in JSON a string, a number, a boolean
OF_ROW = "of the row"


@dataclass(frozen=True)
class Column:
    """A column, and all that anybody has to know of it.

    kind: TEXT, NUMBER or FLAG. Only numbers have a unit; a flag is True or False, and False where
    it is empty. printed: the unit by which pages print it (a key of number_format.UNITS), where
    that is not `unit`. low, high: columns with the ends of its interval. is_axis: whether rows are
    told apart by it; else it says what was found of them.
    """

    name: str
    label: str
    meaning: str
    kind: str = TEXT
    unit: str = ""
    printed: str = ""
    low: str = ""
    high: str = ""
    is_axis: bool = False


@dataclass(frozen=True)
class Table:
    """A table: the name of its file without `.csv`, what one of its rows stands for, and its
    columns."""

    name: str
    row: str
    columns: tuple[Column, ...]

    @cached_property
    def names(self) -> list[str]:
        """Names of all columns, in the order in which they are written."""
        return [each.name for each in self.columns]

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """Column by its name."""
        return {each.name: each for each in self.columns}


def axis(name: str, label: str, meaning: str) -> Column:
    """A column of text that tells rows apart."""
    return Column(name, label, meaning, is_axis=True)


def text(name: str, label: str, meaning: str) -> Column:
    """A column of text that was found."""
    return Column(name, label, meaning)


def flag(name: str, label: str, meaning: str) -> Column:
    """A column of True and False."""
    return Column(name, label, meaning, FLAG)


def number(name: str, label: str, unit: str, meaning: str, low: str = "", high: str = "") -> Column:
    """A column of numbers."""
    return Column(name, label, meaning, NUMBER, unit, low=low, high=high)


def count(name: str, label: str, meaning: str) -> Column:
    """A column of numbers that count something."""
    return Column(name, label, meaning, NUMBER, "1", printed="count")


def axis_count(name: str, label: str, meaning: str) -> Column:
    """Such a column that tells rows apart."""
    return replace(count(name, label, meaning), is_axis=True)


def share(name: str, label: str, meaning: str) -> Column:
    """A column of parts of a whole, which are printed as percent."""
    return Column(name, label, meaning, NUMBER, "1", printed="share")


MACHINE = axis("machine", "machine", "label of the machine type, the first part of `cell`")
CELL = axis("cell", "cell", "folder below `results/`")
KEY = (MACHINE, CELL)
SIZE = axis(
    "size",
    "size",
    "name of the model's shape; of attention `d64`, of ceilings the operation, else the probe",
)
CONTEXT = axis_count("context", "context", "tokens of a sequence")
BATCH = axis_count("batch", "batch", "sequences of a batch")
PRECISION = axis(
    "precision", "precision", "of matrix products; empty where a cell's variants differ in it"
)
STUDY = axis("study", "study", "kind of measurement")
OPTIONS = axis(
    "options", "options", "those that are not neutral, without the mode: `mask=causal heads=16`"
)
OF_CELL = (MACHINE, STUDY, SIZE, CONTEXT, BATCH, PRECISION)
MODE = axis(
    "mode", "mode", "how far a step goes: `inference`, `forward`, `forward-backward` or `step`"
)
PHASE = axis(
    "phase", "phase", "what of a step: `inference`, `forward`, `backward`, `optimizer`, `step` …"
)
LENGTH = axis_count("length", "length", "positions that attention sees; of the attention study")
DIRECTION = axis("direction", "direction", "`forward` or `backward`; of the attention study")
LIMITS = text(
    "limits", "limited by", "what limits a free step: `gpu`, `launches`, `cpu` or `unknown`"
)

QUANTITIES = {  # of series.csv
    each.name: each
    for each in (
        number(
            "time",
            "time",
            "s",
            "by the clock: free steps synchronised at their end, phased ones around each phase",
        ),
        number("host_free_time", "host-free time", "s", "of the step replayed from a CUDA graph"),
        number(
            "busy_time",
            "busy time",
            "s",
            "union of the intervals of a step's kernels and copies, by torch.profiler",
        ),
        number(
            "alone_time",
            "time without the host",
            "s",
            "host-free, else busy; of a ladder one of them for all rungs that have it",
        ),
        number(
            "launch_gap", "gap a launch", "s", "time less host-free, else busy time, over launches"
        ),
        number("tokens_per_second", "throughput", "token/s", "tokens of a batch over time"),
        number("flops", "rate", "FLOP/s", "the model's FLOP over time"),
        share(
            "share_of_ceiling",
            "of the ceiling",
            "`flops` over the burst of a large product in that precision there",
        ),
        share(
            "mfu",
            "MFU",
            "`flops`, attention in full, over the data sheet's dense peak; of fp8 over bf16's",
        ),
        number(
            "rate", "rate", "FLOP/s or B/s", "of ceilings (the least of the times) and of attention"
        ),
        count("launches", "launches", "a step, kernels and graphs"),
        count("kernels", "kernels", "a step"),
        count("operators", "operators", "of PyTorch, a step; without a GPU"),
        number("energy", "energy", "J", "a step, by NVML's counter over a second of steps"),
        number("energy_token", "energy a token", "J", "`energy` over tokens"),
        number("sm_clock", "SM clock", "MHz", "median of what was read before free steps"),
        number("peak_asked", "peak, asked", "B", "what tensors asked for"),
        number("peak_allocated", "peak, allocated", "B", "in the allocator's whole blocks"),
        number(
            "peak_reserved",
            "peak, reserved",
            "B",
            "from the driver, with CUDA graphs' pools; where others' was not used",
        ),
        number("peak_resident", "peak, resident", "B", "of the process; without a GPU"),
        number("peak_predicted", "peak, predicted", "B", "of what tensors ask for, in closed form"),
        number(
            "before_backward", "kept for backward", "B", "allocated after attention's forward pass"
        ),
        number("model_bytes", "model", "B", "in tensors once model, batch and optimizer are made"),
        number("start_bytes", "before the step", "B", "in tensors before the recorded step"),
        number("first_step_bytes", "after the first step", "B", "in tensors after the first step"),
        number(
            "difference",
            "differs by",
            "1",
            "gradients from the ladder's first rung's, relative; inf: no number",
        ),
        number(
            "loss_difference",
            "loss differs by",
            "1",
            "from the first rung's, relative; inf: no number",
        ),
        number(
            "tolerance",
            "tolerance",
            "1",
            "up to which `difference` is rounding, and ten times the loss's",
        ),
        number("compile_time", "compiling", "s", "by how much the first step took longer"),
        number("capture_time", "capturing", "s", "of forward and backward as CUDA graphs"),
        number("first_step_time", "first step", "s", "of a fresh process"),
        number("host_time", "host's time", "s", "that a call of attention keeps the host busy"),
    )
}

_ALL = (
    Table(
        "series",
        "one measured quantity of a cell's variant",
        (
            *OF_CELL,
            axis(
                "variant",
                "variant",
                "what the cell measures in turns; `step` where there is only one",
            ),
            OPTIONS,
            MODE,
            PHASE,
            LENGTH,
            DIRECTION,
            axis("quantity", "quantity", "one of QUANTITIES"),
            text("unit", "unit", "of the numbers that follow"),
            number(
                "median",
                "median",
                OF_ROW,
                "geometric mean of the processes' medians",
                "low",
                "high",
            ),
            number(
                "low",
                "low",
                OF_ROW,
                "lower end of the 95 % interval between processes; empty with one process",
            ),
            number("high", "high", OF_ROW, "upper end of that interval"),
            number("mean", "mean", OF_ROW, "mean of the samples"),
            number(
                "std",
                "std",
                OF_ROW,
                "standard deviation of the samples within a process, pooled over processes",
            ),
            count("processes", "processes", "fresh processes that measured it"),
            count("samples", "samples", "of all processes, warm-up left out"),
            text(
                "status",
                "status",
                "`ok`, `oom`, `unsupported` or `failed`; the reason is in `cells`",
            ),
            CELL,
            LIMITS,
            flag(
                "across_cards", "across cards", "a share of what another card of its type reached"
            ),
        ),
    ),
    Table(
        "comparisons",
        "two variants of a cell, in one mode and phase",
        (
            *OF_CELL,
            OPTIONS,
            MODE,
            PHASE,
            LENGTH,
            DIRECTION,
            axis(
                "quantity",
                "quantity",
                "what is compared: `time`, or `host_free_time`, replayed from a CUDA graph",
            ),
            axis("a", "a", "the variant that `b` is compared with"),
            axis("b", "b", "the variant that is judged"),
            number(
                "ratio",
                "times as fast",
                "1",
                "time of a over time of b: above 1, b is faster",
                "low",
                "high",
            ),
            number("low", "low", "1", "lower end of the 95 % interval between processes"),
            number("high", "high", "1", "upper end of that interval"),
            text("verdict", "verdict", "of b: `faster`, `slower`, `same` or `unclear`"),
            number(
                "p",
                "p",
                "1",
                "of a ratio within the margin, false discoveries controlled over the family",
            ),
            count("processes", "processes", "fresh processes that measured both"),
            count("rounds", "rounds", "of turns, of all processes; 0 where processes alternate"),
            flag("in_turns", "in turns", "both were measured in turns in the same processes"),
            LIMITS,
            CELL,
        ),
    ),
    Table(
        "cells",
        "a cell of the plan",
        (
            MACHINE,
            STUDY,
            CELL,
            SIZE,
            CONTEXT,
            BATCH,
            PRECISION,
            OPTIONS,
            axis(
                "mode",
                "mode",
                "how far the cell goes; series of lighter modes are in the same cell",
            ),
            text(
                "status",
                "status",
                "`ok`, `oom`, `unsupported`, `failed`, `missing`: not measured, or of no use; the"
                " worst of its variants",
            ),
            text("reason", "reason", "why it is not `ok`, of each variant"),
            text("command", "command", "measures the cell again"),
            text("code", "code", "digest of the code that measured"),
            flag("is_current", "is current", "the code that measured is today's"),
            text("commit", "commit", "of the checkout, with `-dirty` if it had changes"),
            text("device", "device", "`cuda` or `cpu`"),
            text("gpu", "GPU", "name by the driver"),
            text("gpu_uuid", "GPU's UUID", "which of its kind"),
            text("cpu", "CPU", "name of the processor"),
            number("memory", "memory", "B", "of the GPU, else of the host"),
            number("power_limit_w", "power limit", "W", "of the GPU"),
            count("threads", "threads", "that torch may use"),
            text("driver", "driver", "version of the GPU's driver"),
            text("torch", "torch", "version"),
            text("triton", "Triton", "version"),
            text("python", "Python", "version"),
            text("started", "started", "ISO 8601"),
            number("duration_s", "duration", "s", "of the whole cell"),
            count("processes", "processes", "fresh processes"),
            number("sm_clock_median_mhz", "SM clock", "MHz", "median over the samples"),
            number("power_max_w", "power", "W", "highest at a sample"),
            number("temperature_max_c", "temperature", "°C", "highest at a sample"),
            text("throttle", "throttled by", "what slowed the GPU down, joined by `; `"),
            count("other_processes", "others", "other processes on the GPU"),
        ),
    ),
    Table(
        "variants",
        "a variant of a ladder, and what it changes",
        (
            *KEY,
            axis("variant", "variant", "its name in `series` and `comparisons`"),
            count("order", "order", "its place among the variants of its cell, from 0"),
            axis("after", "after", "the variant that it changes; empty for the first"),
            flag(
                "is_aside", "is aside", "stands beside the ladder, whose rungs do not build on it"
            ),
            axis("kind", "kind", "of change: `tf32`, `sdpa`, `checkpoint 2`, `loss torch` …"),
            text("label", "change", "what people call the change"),
            axis("changed", "option", "that it changes, `precision` or one of the options"),
            text("before", "from", "what that option was; empty for the first"),
            axis("value", "to", "what that option is"),
            text("again", "again", "timing cell that measured the same step"),
            PRECISION,
            axis("attention", "attention", "implementation of attention in the model"),
            axis(
                "compile", "compiled", "what of the model is compiled: `none`, `block`, `model` …"
            ),
            axis("optimizer", "optimizer", "`own`, `torch`, `fused` …"),
            axis("loss", "loss", "implementation of the loss"),
            count("checkpoint", "checkpoint", "blocks of a checkpoint; 0: without"),
        ),
    ),
    Table(
        "kernels",
        "a kernel (without a GPU: an operator) of a phase of the profiled steps",
        (
            *KEY,
            PHASE,
            axis("name", "kernel", "short name; copies and sets of memory have rows, too"),
            axis("category", "category", "what kind of work it is"),
            number("calls", "calls a step", "1", "launches a step"),
            number("time", "time a step", "s", "of all its launches"),
            share("share", "share", "of kernels' time in the phase"),
            number("median", "median", "s", "of a launch"),
            number("min", "shortest", "s", "of a launch"),
            number("max", "longest", "s", "of a launch"),
            number("std", "std", "s", "of a launch"),
            number("per_layer", "a layer", "1", "launches in each layer, where they repeat"),
            text("layer_modules", "in a layer", "modules of a layer that launch it"),
            text("remainder_modules", "outside", "modules of the launches that are in no layer"),
            text("tile", "tile", "of a matrix product, by its name"),
            text("data_type", "type", "of its operands, by its name"),
            text("arithmetic", "arithmetic", "units of the GPU that it multiplies on, by its name"),
            text("full_name", "full name", "as the profiler has it"),
        ),
    ),
    Table(
        "categories",
        "a kind of kernels in a phase of the profiled steps",
        (
            *KEY,
            PHASE,
            axis("category", "category", "what kind of work it is"),
            number("calls", "calls a step", "1", "launches a step"),
            number("time", "time a step", "s", "of all its launches"),
            share("share", "share", "of kernels' time in the phase"),
        ),
    ),
    Table(
        "phases",
        "a phase of the profiled steps",
        (
            *KEY,
            PHASE,
            number("host_time", "host time", "s", "a step, until the host had launched it"),
            number(
                "host_exclusive", "host time of its own", "s", "a step, without the phases inside"
            ),
            number("gpu_time", "GPU time", "s", "a step, of its kernels and copies"),
            number("host_each", "host time each", "s", "of one occurrence"),
            number("gpu_each", "GPU time each", "s", "of one occurrence"),
            number("memory_time", "copies' time", "s", "a step, of copies and sets of memory"),
            number("kernels", "kernels", "1", "a step"),
            number("memory_operations", "copies and sets", "1", "a step"),
        ),
    ),
    Table(
        "gaps",
        "busy and idle time of a phase of the profiled steps",
        (
            *KEY,
            PHASE,
            number("wall", "wall time", "s", "a step, under the profiler"),
            number("busy", "busy", "s", "a step: union of the intervals of kernels and copies"),
            number("idle", "idle", "s", "a step, under the profiler"),
            number(
                "idle_with_host", "idle with the host's", "s", "a step, from the host's start on"
            ),
            number("gaps", "gaps", "1", "a step, between operations of the GPU"),
            number("gap_median", "gap", "s", "median"),
            number("gap_max", "longest gap", "s", "the longest"),
            number("queue_delay_median", "queued", "s", "from a launch to its start, median"),
            number(
                "host_gap_median",
                "host's gap",
                "s",
                "from the end of a CUDA call to the next one's start, median",
            ),
            number("host_gap_max", "longest host's gap", "s", "the longest of these"),
        ),
    ),
    Table(
        "modules",
        "a module's range in the profiled steps, an operator of autograd or a CUDA call",
        (
            *KEY,
            axis(
                "kind",
                "kind",
                "`module`, `operator` (of autograd, where it was recorded) or `call` (of CUDA)",
            ),
            axis("module", "module", "name of the range; parts of attention have it as `parent`"),
            flag("attention", "is attention", "it is the whole attention"),
            axis("parent", "in", "the range around it"),
            number("calls", "calls a step", "1", "a step"),
            number("host_time", "host time", "s", "a step"),
            number(
                "host_exclusive", "host time of its own", "s", "a step, without the ranges inside"
            ),
            number("gpu_time", "GPU time", "s", "a step"),
            number("matmul_time", "products", "s", "a step, of its matrix products"),
            number("kernels", "kernels", "1", "a step"),
            text("top_kernel", "longest kernel", "the kernel that takes most of it"),
            number(
                "backward_time",
                "backward",
                "s",
                "GPU time a step of the kernels that its backward launches",
            ),
            number(
                "backward_kernels", "in backward", "1", "kernels a step that its backward launches"
            ),
            number(
                "backward_elementwise_time",
                "elementwise in backward",
                "s",
                "of these the elementwise ones, a step",
            ),
            number(
                "backward_elementwise", "elementwise in backward", "1", "elementwise kernels a step"
            ),
        ),
    ),
    Table(
        "first_step",
        "what the first step of a fresh process spends its time on",
        (
            *KEY,
            PHASE,
            axis("part", "part", "what takes the time"),
            number("first", "first step", "s", "in the first step"),
            number("later", "later step", "s", "in a later one"),
            number("first_calls", "calls, first", "1", "in the first step"),
            number("later_calls", "calls, later", "1", "in a later one"),
        ),
    ),
    Table(
        "timeline",
        "an interval of one profiled step",
        (
            *KEY,
            axis("view", "view", "`step`: all of it; `zoom`: an excerpt of a phase"),
            axis("lane", "lane", "row that it is drawn in"),
            number("start", "start", "s", "since the view's start"),
            number("end", "end", "s", "since the view's start"),
            axis("label", "label", "name of the range or kernel"),
            axis("category", "category", "of kernels their kind; else `range`, `api` …"),
        ),
    ),
    Table(
        "memory_peak",
        "what is alive at the peak",
        (
            *KEY,
            axis("category", "category", "what the memory is for"),
            number("bytes", "bytes", "B", "asked for, alive at the peak"),
            count("blocks", "blocks", "alive at the peak"),
            number("predicted", "predicted", "B", "by the closed form"),
        ),
    ),
    Table(
        "memory_timeline",
        "a moment of the recorded step",
        (
            *KEY,
            number("time", "time", "s", "since the recording's start"),
            PHASE,
            axis("module", "module", "part of the model that runs"),
            number("reserved", "reserved", "B", "by the allocator"),
            number("parameters", "parameters", "B", "alive"),
            number("gradients", "gradients", "B", "alive"),
            number("optimizer_state", "optimizer state", "B", "alive"),
            number("activations", "activations", "B", "alive"),
            number("cast_weights", "cast weights", "B", "alive"),
            number("other", "other", "B", "buffers, workspaces and what is not known, alive"),
        ),
    ),
    Table(
        "memory_largest",
        "equal tensors of the recorded step, the largest first",
        (
            *KEY,
            number("bytes", "bytes", "B", "of one of them"),
            count("count", "count", "how many equal ones were allocated"),
            count("alive", "at the peak", "how many of them are alive at the peak"),
            axis("category", "category", "what the memory is for"),
            PHASE,
            axis("module", "module", "that allocated it"),
            axis("frame", "line", "of code that allocated it"),
            axis("op", "operation", "that allocated it"),
            axis("shape", "shape", "of the tensor"),
            axis("dtype", "type", "of its elements"),
            number(
                "lifetime",
                "lifetime",
                "s",
                "from allocation to release; empty where it outlives the recording",
            ),
            text("formula", "formula", "of its bytes, in terms of the shape"),
        ),
    ),
    Table(
        "memory_saved",
        "tensors that forward keeps for backward",
        (
            *KEY,
            axis("part", "part", "`block`: one block; `rest`: all else"),
            axis("module", "module", "that made it"),
            axis("op", "operation", "that made it"),
            axis("shape", "shape", "of the tensor"),
            axis("dtype", "type", "of its elements"),
            axis("category", "category", "what the memory is for"),
            count("tensors", "tensors", "how many"),
            number("bytes", "bytes", "B", "of all of them"),
            text("formula", "formula", "of one's bytes, in terms of the shape"),
        ),
    ),
    Table(
        "memory_predicted",
        "a part of the memory that the closed form predicts",
        (
            *KEY,
            axis("category", "category", "what the memory is for; `item`: a sum to compare"),
            axis("module", "module", "that allocates it"),
            axis("name", "name", "of the part"),
            count("count", "count", "how many"),
            number("predicted", "predicted", "B", "of all of them"),
            number("measured", "measured", "B", "where the recording tells it apart"),
            text("formula", "formula", "of one's bytes, in terms of the shape"),
        ),
    ),
    Table(
        "ranks",
        "a rank of a step on several devices, taken apart under the profiler",
        (
            *KEY,
            axis_count("devices", "devices", "that share the step"),
            axis("variant", "strategy", "who sends what and when; `alone`: one device"),
            axis_count("rank", "rank", "the device's number"),
            number("clock", "step", "s", "by the clock"),
            number("alone", "computing alone", "s", "what one device's step computes"),
            number("slowed", "slowed", "s", "the same kernels take longer beside communication"),
            number("apart", "elsewhere", "s", "the same kernels take longer away from it"),
            number("extra", "extra kernels", "s", "that one device's step has not"),
            number("gone", "gone", "s", "at most 0: kernels that this step has not"),
            number("at_once", "at once", "s", "at most 0: computing at the same time counts once"),
            number("waiting", "waiting", "s", "until the last rank starts; nothing computes"),
            number("transfer", "transfer", "s", "the rest of collectives; nothing computes"),
            number("idle", "idle", "s", "nothing runs"),
            number("residual", "residual", "s", "what these leave of the step"),
            number("beside", "beside", "s", "that kernels spend beside communication"),
            number("waited", "waiting in all", "s", "whether covered or not"),
            number("transferred", "transfer in all", "s", "whether covered or not"),
            number("waited_by_others", "waited for", "s", "by all others, covered or not"),
        ),
    ),
    Table(
        "rank_memory",
        "what the rank that holds most holds at a point of a step on several devices",
        (
            *KEY,
            axis_count("devices", "devices", "that share the step"),
            axis("variant", "strategy", "who sends what and when"),
            axis("point", "point", "`init`, `before optimizer` or `after`"),
            number("held", "held", "B", "that tensors hold"),
            number("formula", "formula", "B", "weights, gradients, moments and buckets"),
        ),
    ),
    Table(
        "collectives",
        "a collective by itself",
        (
            *KEY,
            axis_count("devices", "devices", "that take part"),
            axis(
                "collective",
                "collective",
                "`all_reduce`, `all_gather`, `reduce_scatter`, `copy`",
            ),
            number("bytes", "bytes", "B", "of the whole tensor"),
            number("seconds", "time", "s", "on the rank that takes longest"),
            number("beside", "beside products", "s", "of the same while products run"),
            number("lost", "computing lost", "", "the share of that time that products lose"),
            number("bus", "bus bandwidth", "B/s", "that crosses a device's link (nccl-tests)"),
        ),
    ),
    Table(
        "parallel_predicted",
        "a strategy on so many devices, predicted from one device and the collectives",
        (
            *KEY,
            axis("variant", "strategy", "who sends what and when"),
            axis_count("devices", "devices", "that share the step"),
            number("predicted", "predicted", "s", "the step"),
            number("measured", "measured", "s", "the step, where the cell is on as many"),
            count("hiding_batch", "hides from", "sequences a device from which 2 % show at most"),
        ),
    ),
    Table(
        "sums",
        "a sum of many equal addends in some format",
        (
            *KEY,
            axis("variant", "sum", "how it is computed"),
            axis("sum_dtype", "sum's type", "type of the sum"),
            axis("addend_dtype", "addend's type", "type of the addends"),
            count("times", "addends", "how many"),
            number("addend", "addend", "1", "its value as stored"),
            number("sum", "sum", "1", "what comes out"),
            number("exact", "exact", "1", "the sum of the stored addends without rounding"),
            count("last_change", "last change", "the last addition that changed the sum"),
        ),
    ),
    Table(
        "dtypes",
        "the types of a module or an operation under autocast",
        (
            *KEY,
            axis("model", "model", "`toy`, `own`, or the operation that was run alone"),
            axis("autocast", "autocast", "type that autocast casts to"),
            axis(
                "part",
                "part",
                "role or path of the module; of an operation the type that it is given",
            ),
            axis("operator", "operator", "class of the module; `result` of an operation"),
            text("parameter", "parameter", "type of its parameters"),
            text("input", "input", "types of its operands"),
            text("output", "output", "type of its result"),
            text("output_gradient", "output's gradient", "type"),
            text("parameter_gradient", "parameter's gradient", "type"),
        ),
    ),
    Table(
        "forced",
        "an operation forced into a format, beside float64",
        (
            *KEY,
            axis("operation", "operation", "LayerNorm, RMSNorm, softmax, cross-entropy …"),
            axis("way", "way", "`all in the format`, `under autocast` …"),
            axis("format", "format", "type"),
            axis("quantity", "varied", "what of the input is varied"),
            number("value", "value", "1", "of what is varied"),
            text("status", "status", "`ok` or `unsupported`"),
            number("error", "error", "1", "relative, largest of the elements, against float64"),
            number("inner", "inner sum", "1", "mean square, sum of exponentials … as computed"),
            number("inner_exact", "exact inner sum", "1", "in float64"),
            count("infinite", "infinite", "elements that are infinite"),
            count("nan", "NaN", "elements that are not a number"),
            count("zero", "zero", "elements that are 0"),
            count("zero_exact", "zero, exact", "elements that are 0 in float64"),
        ),
    ),
    Table(
        "warmup",
        "a step, or a phase of it, measured after so many steps of warm-up",
        (
            *KEY,
            PHASE,
            axis_count("skipped", "warm-up", "steps that are left out"),
            number("mean", "mean", "s", "of the ten steps after them"),
            number("std", "std", "s", "of these"),
            number("first", "first step", "s", "of a fresh process"),
            number("steady", "steady", "s", "median of the last half of the steps"),
        ),
    ),
    Table(
        "models",
        "a model at a context and a batch",
        (
            MACHINE,
            SIZE,
            CONTEXT,
            BATCH,
            count("d_model", "d_model", "width of the residual stream"),
            count("d_ff", "d_ff", "width inside the feed-forward network"),
            count("num_layers", "blocks", "modules of one class that repeat"),
            count("num_heads", "heads", "of attention, in a block"),
            count("key_value_heads", "heads of K and V", "of a size; 0 is as many as heads"),
            count("vocab_size", "vocabulary", "tokens"),
            count("parameters", "parameters", "tied weights once"),
            count("trained", "trained", "parameters that are not frozen"),
            text("dtype", "dtype", "of the parameters, as they were built"),
            number("flop", "FLOP", "FLOP", "of a forward and a backward pass over the batch"),
            text("flop_from", "FLOP from", "`formula`, or `counter`: as PyTorch counts"),
            text(
                "reference",
                "model",
                "of a model of one's own what was built: `FILE:FUNCTION` or `hf:…`",
            ),
            text("class", "class", "of the module"),
            text("inputs", "inputs", "what the forward pass is given, and how that was chosen"),
            text("loss", "loss", "what is trained on, and how that was chosen"),
            text("unknown", "unknown", "what could not be found out, joined by `; `"),
        ),
    ),
    Table(
        "published",
        "a number that somebody published, beside ours",
        (
            axis("source", "source", "who published it"),
            text("title", "title", "of the publication"),
            text("date", "date", "as far as known"),
            axis(
                "gpu", "GPU", "name by the driver, without the brand; empty where it is not named"
            ),
            text("framework", "software", "and its version, where known"),
            STUDY,
            SIZE,
            CONTEXT,
            BATCH,
            PRECISION,
            MODE,
            PHASE,
            axis("variant", "variant", "implementation of attention"),
            LENGTH,
            DIRECTION,
            axis("name", "name", "the kernel, category, operation or part that it is of"),
            axis("quantity", "quantity", "what is given"),
            axis("statistic", "statistic", "`mean`, `median`, `std` …"),
            number("value", "published", OF_ROW, "the number, in `unit`"),
            text("unit", "unit", "SI"),
            text("doubt", "doubt", "why it is not to be compared"),
            CELL,
            number("measured", "measured", OF_ROW, "ours, where all else is the same"),
            text("beside", "beside", "our implementation of attention that `measured` is of"),
            number("ratio", "published over ours", "1", "`value` over `measured`"),
        ),
    ),
)
TABLES = {table.name: table for table in _ALL}


def page() -> str:
    """docs/tables.md in Markdown: every table, quantity and column."""
    users: dict[Column, list[str]] = {}
    for table in TABLES.values():
        for each in table.columns:
            users.setdefault(each, []).append(table.name)
    shared = [each for each, tables in users.items() if len(tables) > 1]
    parts = [_part("Columns of several tables", shared)]
    for table in TABLES.values():
        own = [each for each, tables in users.items() if tables == [table.name]]
        parts.append(_part(f"`{table.name}`: {table.row}", own))
    parts.append(_part("Quantities of `series`", list(QUANTITIES.values())))
    return "\n".join([_INTRODUCTION, *parts])


def _part(title: str, columns: list[Column]) -> str:
    return "\n".join([f"## {title}", *map(_line, columns), ""])


def _line(column: Column) -> str:
    kind = "axis" if column.is_axis and column.kind == TEXT else column.kind
    unit = column.unit if column.kind == NUMBER else kind
    ends = f"; interval: `{column.low}` to `{column.high}`" if column.low and column.high else ""
    return f"- `{column.name}` ({unit}): {column.meaning}{ends}"


_SOURCE = "scripts/stepscope/results/schema.py"
_INTRODUCTION = f"""\
<!-- Made by `python scripts/aggregate.py --describe > docs/tables.md` from {_SOURCE}. -->
# The tables

`aggregate` writes `results/tables/*.csv` from the cells' records, samples and analyses: numbers in
full, an empty field where there is no value. Units are SI; 1 is a count or a ratio; "of the row":
as the row's column `unit` says. An axis is text that tells rows apart; other text says what was
found. `stepscope.results.tables.Tables("results/tables").rows("series", quantity="time")` is a
pandas frame in which numbers are numbers and flags flags; tables of cells get the columns of their
place, options and mode by `cells`.
"""
