"""Every table of results/tables: its columns in their order, each with label, unit and meaning.

Units are SI: s, B, J, W, FLOP/s, B/s; 1 is a count or a ratio; "of the row": as the row's column
`unit` says. Columns that follow each other and are of one kind are declared together, a row each:
`name="meaning"`, or `name=("label", "meaning")` where people call it otherwise. Standard library
only.
"""

import itertools
from collections.abc import Iterable
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


Said = str | tuple[str, str]  # a meaning, or a label and a meaning
Columns = tuple[Column, ...]


def texts(**said: Said) -> Columns:
    """Columns of text that was found."""
    found = []
    for name, each in said.items():
        label, meaning = (name.replace("_", " "), each) if isinstance(each, str) else each
        found.append(Column(name, label, meaning))
    return tuple(found)


def numbers(unit: str, /, **said: Said) -> Columns:
    """Columns of numbers."""
    return tuple(replace(each, kind=NUMBER, unit=unit) for each in texts(**said))


def counts(**said: Said) -> Columns:
    """Columns of numbers that count something."""
    return tuple(replace(each, printed="count") for each in numbers("1", **said))


def shares(**said: Said) -> Columns:
    """Columns of parts of a whole, which are printed as percent."""
    return tuple(replace(each, printed="share") for each in numbers("1", **said))


def flags(**said: Said) -> Columns:
    """Columns of True and False."""
    return tuple(replace(each, kind=FLAG) for each in texts(**said))


def flat(groups: Iterable[Column | Columns]) -> Columns:
    """Columns, and those of groups of them, in their order."""
    each = (one if isinstance(one, tuple) else (one,) for one in groups)
    return tuple(itertools.chain.from_iterable(each))


def axes(*groups: Columns, **said: Said) -> Columns:
    """Columns, of text if nothing else is said, that tell rows apart."""
    return tuple(replace(each, is_axis=True) for each in flat((*groups, texts(**said))))


def centre(unit: str, /, **said: Said) -> Columns:
    """A column of numbers, and those with the ends of its interval."""
    (column,) = numbers(unit, **said)
    ends = numbers(
        unit,
        low="end of the 95 % interval between processes; empty with one process",
        high="the other end",
    )
    return replace(column, low="low", high="high"), *ends


MACHINE, CELL = KEY = axes(
    machine="label of its type, the first part of `cell`",
    cell="folder below `results/`",
)
STUDY, SIZE, PRECISION = axes(
    study="kind of measurement",
    size="of the model; attention's `d64`, a ceiling's operation, else the probe",
    precision="of matrix products; empty where a cell's variants differ in it",
)
CONTEXT, BATCH, LENGTH = axes(
    counts(
        context="tokens of a sequence",
        batch="sequences of a batch",
        length="of the attention study: positions",
    )
)
OPTIONS, MODE, PHASE, DIRECTION = axes(
    options="that are not neutral, without the mode: `mask=causal heads=16`",
    mode="how far a step goes: `inference`, `forward`, `forward-backward` or `step`",
    phase="of a step: `inference`, `forward`, `backward`, `optimizer`, `step` …",
    direction="of the attention study: `forward` or `backward`",
)
OF_CELL = (MACHINE, STUDY, SIZE, CONTEXT, BATCH, PRECISION)
PLACE = [each.name for each in (*OF_CELL, OPTIONS, MODE)]  # what `cells` says of each
OF_PASS = (OPTIONS, MODE, PHASE, LENGTH, DIRECTION)
LIMITS = texts(limits=("limited by", "a free step: `gpu`, `launches`, `cpu` or `unknown`"))
PROCESSES = counts(processes="fresh processes that measured it")
OF_KERNELS = flat(
    (
        axes(category="what kind of work it is"),
        numbers("1", calls="launches a step"),
        numbers("s", time="a step, of all its launches"),
        shares(share="of kernels' time in the phase"),
    )
)
KEPT = axes(category="what the memory is for")
WORK = flat(
    (
        numbers("FLOP", flop=("FLOP", "of products, and of elementwise work in ranges")),
        numbers("B", bytes="read and written, as the code is written; of a kind the least"),
    )
)
TENSOR = axes(
    op="that made it",
    shape="of the tensor",
    dtype="of its elements",
)
FORMULA = texts(formula="of one's bytes; `d_Q`, `d_K`: all heads' width, `d_QKV`: of three")
DEVICES = axes(counts(devices="that take part"))
STRATEGY = axes(variant=("strategy", "who sends what and when; `alone`: one device"))

QUANTITIES = {  # of series.csv
    each.name: each
    for each in flat(
        (
            numbers(
                "s",
                time="by the clock, synchronised at a step's end or around each phase",
                host_free_time="of the step replayed from a CUDA graph",
                busy_time="union of kernels' and copies' intervals, by torch.profiler",
                alone_time=(
                    "time without the host",
                    "host-free, else busy; in a ladder the same for all rungs",
                ),
            ),
            numbers(
                "token/s", tokens_per_second=("throughput", "tokens of a device's batch over time")
            ),
            numbers("FLOP/s", flops=("rate", "the model's FLOP over time")),
            shares(
                share_of_ceiling="`flops` over the burst of a large product",
                mfu=(
                    "MFU",
                    "`flops`, attention in full, over the data sheet's dense peak (fp8: bf16's)",
                ),
                mfu_causal=("MFU, causal", "the same with half of attention's scores"),
                mfu_narrow=("MFU over fp8's peak", "of a step in fp8, over that of fp8"),
            ),
            numbers("FLOP/s or B/s", rate="of ceilings (by the least time) and attention"),
            counts(
                launches="a step, kernels and graphs",
                kernels="a step",
                operators="of PyTorch, a step; without a GPU",
            ),
            numbers(
                "J",
                energy="a step, by NVML's counter over a second of steps",
                energy_token="`energy` over tokens",
            ),
            numbers("MHz", sm_clock=("SM clock", "median before free steps")),
            numbers(
                "B",
                peak_asked="what tensors asked for",
                peak_allocated="in the allocator's whole blocks",
                peak_reserved="from the driver, with CUDA graphs' pools",
                peak_resident="of the process; without a GPU",
                peak_predicted="of what tensors ask for, in closed form",
                before_backward=("kept for backward", "allocated after attention's forward pass"),
                model_bytes="in tensors of model, batch and optimizer",
                start_bytes="in tensors before the recorded step",
                first_step_bytes="in tensors after the first step",
            ),
            numbers(
                "1",
                difference="gradients from the first rung's, relative; inf: no number",
                loss_difference="from the first rung's, relative; inf: no number",
                tolerance="up to which `difference` is rounding, and ten times the loss's",
            ),
            numbers(
                "s",
                compile_time="by how much the first step took longer",
                first_step_time="of a fresh process",
            ),
        )
    )
}


def _table(name: str, row: str, *groups: Column | Columns) -> Table:
    """One whose columns are all named."""
    return Table(name, row, flat(groups))


def _of_cells(name: str, row: str, *groups: Column | Columns) -> Table:
    """One whose rows are told apart by their cell first."""
    return _table(name, row, KEY, *groups)


_ALL = (
    _table(
        "series",
        "one measured quantity of a cell's variant",
        OF_CELL,
        axes(variant="measured in turns; `step` where there is only one"),
        OF_PASS,
        axes(quantity="one of those below"),
        texts(unit="of the numbers that follow"),
        centre(OF_ROW, median="geometric mean of processes' medians"),
        numbers(
            OF_ROW,
            mean="of the samples",
            std="of the samples within a process, pooled over processes",
        ),
        PROCESSES,
        counts(samples="of all processes, warm-up left out"),
        texts(status="`ok`, `oom`, `unsupported` or `failed`; the reason is in `cells`"),
        CELL,
        LIMITS,
        flags(across_cards="the ceiling is another card's"),
    ),
    _table(
        "comparisons",
        "two variants of a cell, in one mode and phase",
        OF_CELL,
        OF_PASS,
        axes(
            quantity="what is compared: `time` or `host_free_time`",
            a="the variant that `b` is compared with",
            b="the variant that is judged",
        ),
        centre("1", ratio=("times as fast", "time of a over time of b: above 1, b is faster")),
        texts(verdict="of b: `faster`, `slower`, `same` or `unclear`"),
        numbers("1", p="of a ratio within the margin, controlled for false discoveries"),
        PROCESSES,
        counts(rounds="of turns, of all processes; 0 where processes alternate"),
        flags(in_turns="measured in turns in the same processes"),
        LIMITS,
        CELL,
    ),
    _table(
        "cells",
        "a cell of the plan",
        MACHINE,
        STUDY,
        CELL,
        SIZE,
        CONTEXT,
        BATCH,
        PRECISION,
        OPTIONS,
        axes(mode="how far the cell goes; lighter modes are in it"),
        texts(
            status="of its variants the worst; `missing`: not measured, or of no use",
            reason="why it is not `ok`, of each variant",
            command="measures the cell again",
            code="digest of the code that measured",
        ),
        flags(is_current="the code that measured is today's"),
        texts(
            commit="of the checkout, with `-dirty` if it had changes",
            device="`cuda` or `cpu`",
            gpu=("GPU", "name by the driver"),
            gpu_uuid=("GPU's UUID", "which of its kind"),
            cpu=("CPU", "its name"),
        ),
        numbers("B", memory="of the GPU, else of the host"),
        numbers("W", power_limit_w=("power limit", "of the GPU")),
        counts(threads="that torch may use"),
        texts(
            driver="version",
            torch="version",
            triton="version",
            python="version",
            profiler="of a profile: `nsys` or `torch`",
            profiler_version="its own",
            started="ISO 8601",
        ),
        numbers("s", duration_s=("duration", "of the whole cell")),
        PROCESSES,
        numbers("MHz", sm_clock_median_mhz=("SM clock", "median over the samples")),
        numbers("W", power_max_w=("power", "highest at a sample")),
        numbers("°C", temperature_max_c=("temperature", "highest at a sample")),
        texts(throttle="what slowed the GPU, joined by `; `"),
        counts(other_processes="on the GPU"),
    ),
    _of_cells(
        "variants",
        "a variant of a ladder, and what it changes",
        axes(variant="its name in `series` and `comparisons`"),
        counts(order="in its cell, from 0"),
        axes(after="the variant that it changes; empty for the first"),
        flags(is_aside="no rung builds on it"),
        axes(kind="of change: `tf32`, `sdpa`, `checkpoint 2`, `loss torch` …"),
        texts(label=("change", "what people call the change")),
        axes(changed=("option", "that it changes, `precision` or one of the options")),
        texts(before=("from", "what that option was; empty for the first")),
        axes(value=("to", "what that option is")),
        PRECISION,
        axes(
            attention="implementation in the model",
            compile="what of the model: `none`, `block`, `model` …",
            optimizer="`own`, `torch`, `fused` …",
            loss="implementation in the model",
        ),
        counts(checkpoint="blocks of a checkpoint; 0: without"),
    ),
    _of_cells(
        "kernels",
        "a kernel (without a GPU: an operator) of a phase of the profiled steps",
        PHASE,
        axes(name=("kernel", "short name; copies and sets of memory have rows, too")),
        OF_KERNELS,
        numbers(
            "s",
            median="of a launch",
            min="of a launch",
            max="of a launch",
            std="of a launch",
        ),
        numbers("B", bytes="a step, of copies and fills"),
        numbers("1", per_layer=("a layer", "launches in each layer, where they repeat")),
        texts(
            layer_modules="modules of a layer that launch it",
            remainder_modules="modules of launches in no layer",
            tile="of a matrix product, by its name",
            arithmetic="units that multiply, by its name",
            full_name="as the profiler has it",
        ),
    ),
    _of_cells(
        "categories",
        "a kind of kernels in a phase of the profiled steps",
        PHASE,
        OF_KERNELS,
        WORK,
    ),
    _of_cells(
        "phases",
        "a phase of the profiled steps",
        PHASE,
        numbers(
            "s",
            host_time="a step, until the host had launched it",
            host_exclusive="host time a step, without the phases inside",
            gpu_time=("GPU time", "a step, of its kernels and copies"),
            memory_time="a step, of copies and sets of memory",
        ),
        numbers(
            "1",
            kernels="a step",
            memory_operations="copies and sets, a step",
        ),
        WORK,
        numbers(
            "s",
            clock=("by the clock", "of the host, in the same steps: mean"),
            clock_std="deviation of the clock's times",
        ),
        numbers("1", overhead="`clock` over the timing cell's"),
    ),
    _of_cells(
        "gaps",
        "busy and idle time of a phase of the profiled steps",
        PHASE,
        numbers(
            "s",
            wall="a step, under the profiler",
            busy="a step: union of kernels' and copies' intervals",
            idle="a step, under the profiler",
        ),
        numbers("1", gaps="a step, between operations of the GPU"),
        numbers(
            "s",
            gap_median="median",
            gap_max="the longest",
            queue_delay_median="from a launch to its start, median",
            host_gap_median="between CUDA calls, median",
            host_gap_max="the longest of these",
        ),
    ),
    _of_cells(
        "modules",
        "a range, an operator, a call of the host or a line of Python in the profiled steps",
        axes(
            kind="`module`, `operator` of autograd, `call` of CUDA, of a `library` or into the"
            " `system`, `line` of Python behind calls of CUDA",
            module="name of the range; parts of attention have it as `parent`",
        ),
        flags(attention=("is attention", "it is the whole attention")),
        axes(parent=("in", "the range around it")),
        numbers("1", calls="a step"),
        numbers(
            "s",
            host_time="a step",
            host_exclusive="host time a step, without the ranges inside",
            gpu_time=("GPU time", "a step"),
        ),
        numbers("1", kernels="a step"),
        numbers(
            "s",
            gpu_min=("least GPU time", "of a call"),
            gpu_max=("most GPU time", "of a call"),
            gpu_std=("deviation of GPU time", "of its calls"),
        ),
        WORK,
        texts(top_kernel="the kernel that takes most of it"),
        numbers("1", top_calls="of the top kernel, a step"),
        shares(top_share="of the top kernel, of the GPU time"),
        numbers("s", backward_time=("backward", "a step, of what its backward launches")),
        numbers("s", backward_elementwise_time="of these the elementwise ones, a step"),
        numbers("1", backward_elementwise="of these the elementwise ones, a step"),
    ),
    _of_cells(
        "transfers",
        "copies or fills of a kind, or a call in which the host waits",
        axes(process="of the system", device="its number", what="is done"),
        numbers("1", calls="a step"),
        numbers("s", time="a step"),
        numbers("B", bytes="a step, where the trace has them"),
        numbers("B/s", rate="of them"),
    ),
    _of_cells(
        "processes",
        "what a process launched in a phase on a device",
        PHASE,
        axes(process="of the system", device="its number"),
        numbers("1", kernels="a step"),
        numbers("s", gpu_time=("GPU time", "a step")),
    ),
    _of_cells(
        "warnings",
        "what a profiler or an analysis warns of",
        axes(about="what it concerns"),
        texts(text="as given"),
    ),
    _of_cells(
        "first_step",
        "what the first step of a fresh process spends its time on, or the GPU before it",
        PHASE,
        axes(part="what takes the time"),
        numbers(
            "s",
            first="in the first step",
            second="in the second one",
            later="in a later one",
        ),
        numbers(
            "1",
            first_calls="in the first step",
            second_calls="in the second one",
            later_calls="in a later one",
        ),
    ),
    _of_cells(
        "timeline",
        "an interval of one profiled step",
        axes(
            view="`step`: all of it; `one attention`: of one block",
            lane="row that it is drawn in",
        ),
        numbers(
            "s",
            start="since the view's start",
            end="since the view's start",
        ),
        axes(
            label="name of the range or kernel",
            category="of kernels their kind; else `range`, `api` …",
        ),
    ),
    _of_cells(
        "memory_peak",
        "what is alive at the peak",
        KEPT,
        numbers("B", bytes="asked for"),
        counts(blocks="alive at the peak"),
        numbers("B", predicted="by the closed form"),
    ),
    _of_cells(
        "memory_timeline",
        "a moment of the recorded step",
        numbers("s", time="since the recording's start"),
        PHASE,
        axes(module="part of the model that runs"),
        numbers(
            "B",
            reserved="by the allocator",
            parameters="alive",
            gradients="alive",
            optimizer_state="alive",
            activations="alive",
            cast_weights="alive",
            other="buffers, workspaces and unknown, alive",
        ),
    ),
    _of_cells(
        "memory_largest",
        "equal tensors of the recorded step, the largest first",
        numbers("B", bytes="of one of them"),
        counts(
            count="how many equal ones were allocated",
            alive=("at the peak", "of them, at the peak"),
        ),
        KEPT,
        PHASE,
        axes(
            module="that made it",
            frame=("line", "of code that made it"),
        ),
        TENSOR,
        FORMULA,
    ),
    _of_cells(
        "memory_saved",
        "tensors that forward keeps for backward",
        axes(
            part="`block`: one block; `rest`: all else",
            module="that made it",
        ),
        TENSOR,
        KEPT,
        counts(tensors="how many"),
        numbers("B", bytes="of all of them"),
        FORMULA,
    ),
    _of_cells(
        "ranks",
        "a rank of a step on several devices, taken apart under the profiler",
        DEVICES,
        STRATEGY,
        axes(counts(rank="the device's number")),
        numbers(
            "s",
            clock=("step", "by the clock"),
            alone=("computing alone", "what one device's step computes"),
            slowed="the same kernels take longer beside communication",
            apart=("elsewhere", "the same kernels take longer away from it"),
            extra=("extra kernels", "that one device's step has not"),
            gone="at most 0: kernels that this step has not",
            at_once="at most 0: computing at the same time counts once",
            waiting="until the last rank starts; nothing computes",
            transfer="the rest of collectives; nothing computes",
            idle="nothing runs",
            residual="what these leave of the step",
            beside="that kernels spend beside communication",
            waited="whether covered or not",
            transferred="whether covered or not",
            waited_by_others="by all others, covered or not",
        ),
    ),
    _of_cells(
        "rank_slowed",
        "kernels beside communication, of a rank's step under the profiler",
        DEVICES,
        STRATEGY,
        axes(counts(rank="the device's number"), category="of kernels"),
        numbers(
            "s",
            beside="of those that one device's step has too",
            slowed="by which they take longer than there",
        ),
    ),
    _of_cells(
        "rank_memory",
        "what the rank that holds most holds at a point of a step on several devices",
        DEVICES,
        STRATEGY,
        axes(
            point="`init`, `before optimizer` or `after`",
            part="`weights`, `gradients`, `state`, or `all` that tensors hold",
        ),
        numbers("B", held="by the rank", formula="of the part; of all with buckets"),
    ),
    _of_cells(
        "collectives",
        "a collective by itself",
        DEVICES,
        axes(collective="`all_reduce`, `all_gather` or `reduce_scatter`"),
        numbers("B", bytes="of the whole tensor"),
        numbers(
            "s",
            seconds=("time", "on the rank that takes longest"),
            beside=("beside products", "of the same while products run"),
        ),
        numbers("1", lost=("computing lost", "the share of that time that products lose")),
        numbers("B/s", bus="bandwidth that crosses a device's link (nccl-tests)"),
    ),
    _of_cells(
        "parallel_predicted",
        "a strategy on so many devices, predicted from one device and the collectives",
        STRATEGY,
        DEVICES,
        numbers(
            "s",
            predicted="the step",
            measured="the step, where the cell is on as many",
            strong="the step, where they share the batch of one",
        ),
        counts(hiding_batch="sequences a device from which 2 % show at most"),
    ),
    _of_cells(
        "sums",
        "a sum of many addends in some format",
        axes(
            variant=("sum", "how it is computed"),
            sum_dtype="type",
        ),
        counts(times=("addends", "how many")),
        numbers(
            "1",
            addend="its value as stored",
            sum="what comes out",
            exact="without rounding",
        ),
        counts(last_change="the last addition that changed the sum"),
    ),
    _of_cells(
        "dtypes",
        "the types of a toy model's module under autocast",
        axes(
            autocast="type that autocast casts to",
            role="of the module",
            kind="its class",
        ),
        texts(
            parameter="type",
            input="type",
            output="type",
            output_gradient="type",
            parameter_gradient="type",
        ),
    ),
    _of_cells(
        "forced",
        "an operation forced into a format, beside float64",
        axes(
            operation="LayerNorm, RMSNorm, softmax, cross-entropy …",
            way="`all in the format`, `under autocast` …",
            format="type",
            quantity=("varied", "what of the input is varied"),
        ),
        numbers("1", value="of what is varied"),
        texts(status="`ok` or `unsupported`"),
        numbers(
            "1",
            error="relative, largest of the elements, against float64",
            inner=("inner sum", "mean square, sum of exponentials … as computed"),
            inner_exact=("exact inner sum", "in float64"),
        ),
        counts(
            infinite="elements",
            nan=("NaN", "elements"),
        ),
    ),
    _of_cells(
        "learning",
        "a variant of a step, trained",
        axes(variant="what is changed"),
        counts(rank="in its cell, from 0", steps="of training"),
        texts(own_precision="of matrix products"),
        flags(is_scaled="the loss, by torch.amp.GradScaler"),
        numbers("1", learning_rate="of the optimizer"),
        texts(status="`ok`, `oom` or `unsupported`", reason="why it is not `ok`"),
        centre("1", held_out=("held-out loss", "nats a byte, after training")),
        numbers(
            "1",
            frequencies="the loss of who knows how often each byte occurs alone",
            ratio=("over the first's", "`held_out`, order by order"),
            ratio_low="end of its 95 % interval",
            ratio_high="the other end",
        ),
        counts(orders="of batches, that ended in a number"),
        texts(verdict="`same`, `better`, `worse`, `unclear` or `does not learn`"),
    ),
    _of_cells(
        "curves",
        "a part of a training",
        axes(variant="what is changed"),
        axes(counts(order="of the batches", step="at its end")),
        numbers("1", loss="mean training loss, nats a byte"),
    ),
    _of_cells(
        "cards",
        "what a GPU reaches beside others of its type",
        axes(quantity="`rate` of a ceiling, or `busy_time` of a plain step"),
        texts(unit="of the numbers that follow"),
        numbers(OF_ROW, value=("here", "its best"), low="of the others", high="of the others"),
        counts(cards="that are known"),
        texts(standing="`like them`; `slower` or `faster`: beyond all by more than 5 %"),
    ),
    _of_cells(
        "warmup",
        "a step, or a phase of it, measured after so many steps of warm-up",
        PHASE,
        axes(counts(skipped=("warm-up", "steps that are left out"))),
        numbers(
            "s",
            mean="of up to ten steps after them",
            std="of up to ten steps after them",
            first="of a fresh process",
            steady="mean of the last half of the steps",
        ),
    ),
    _table(
        "models",
        "a model at a context and a batch",
        MACHINE,
        SIZE,
        CONTEXT,
        BATCH,
        counts(
            d_model=("d_model", "width of the residual stream"),
            d_ff=("d_ff", "width inside the feed-forward network"),
            num_layers=("blocks", "modules of one class that repeat"),
            num_heads=("heads", "of attention, in a block"),
            key_value_heads=("heads of K and V", "of a size; 0 is as many as heads"),
            vocab_size=("vocabulary", "tokens"),
            parameters="tied weights once",
            trained="parameters that are not frozen",
        ),
        texts(dtype="of the parameters, as they were built"),
        numbers(
            "FLOP",
            flop=("FLOP", "of forward and backward over the batch"),
            forward_flop=("FLOP forward", "of these, where the two are told apart"),
        ),
        texts(
            flop_from=(
                "FLOP from",
                "`formula`, `counter`: as PyTorch counts, `at least`: without operators that have"
                " no formula, or `given`",
            ),
            optimizer="of a step of one's own, as it was built",
        ),
        counts(items="that a step of one's own takes"),
        texts(
            item="what they are",
            reference=("model", "of one's own what was built: `FILE:FUNCTION` or `hf:…`"),
            **{"class": "of the module"},
            inputs="of forward, and how they were chosen",
            loss="and how it was chosen",
            unknown="what could not be found out, joined by `; `",
        ),
    ),
    _table(
        "published",
        "a number that somebody published, beside ours",
        axes(source="who published it"),
        texts(
            title="of the publication",
            date="of the publication",
        ),
        axes(gpu=("GPU", "name by the driver, without the brand")),
        texts(framework=("software", "and its version, where known")),
        STUDY,
        SIZE,
        CONTEXT,
        BATCH,
        PRECISION,
        MODE,
        PHASE,
        axes(variant="implementation of attention"),
        LENGTH,
        DIRECTION,
        axes(
            name="the kernel, category, operation or part that it is of",
            quantity="what is given",
            statistic="`mean`, `median`, `std` …",
        ),
        numbers(OF_ROW, value=("published", "the number, in `unit`")),
        texts(
            unit="SI",
            doubt="why it is not to be compared",
        ),
        CELL,
        numbers(OF_ROW, measured="ours, where all else is the same"),
        texts(beside="our implementation of attention that `measured` is of"),
        numbers("1", ratio=("published over ours", "`value` over `measured`")),
        shares(mfu=("MFU", "of a training step, counted as ours")),
        texts(note="what else is to be known of it"),
    ),
)
TABLES = {table.name: table for table in _ALL}
