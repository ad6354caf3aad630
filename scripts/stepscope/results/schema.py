"""Every table of results/tables: its columns in their order, each with label, unit and meaning.

Units are SI: s, B, J, W, FLOP/s, B/s; 1 is a count or a ratio; "of the row": as the row's column
`unit` says. Columns that follow each other and are of one kind are declared together, a row each:
`name="meaning"`. Standard library only.
"""

import itertools
from dataclasses import dataclass, replace
from functools import partial

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
    meaning: str
    kind: str = TEXT
    unit: str = ""
    printed: str = ""
    low: str = ""
    high: str = ""
    is_axis: bool = False


@dataclass(frozen=True)
class Table:
    """A table: what one of its rows stands for, and its columns by their names, in the order in
    which they are written."""

    row: str
    columns: dict[str, Column]


Columns = tuple[Column, ...]


def of_kind(kind: str, unit: str = "", printed: str = "", /, **meanings: str) -> Columns:
    """Columns of a kind: `name="meaning"` each."""
    every = (Column(name, said, kind, unit, printed) for name, said in meanings.items())
    return tuple(every)


texts, flags, of_unit = (partial(of_kind, kind) for kind in (TEXT, FLAG, NUMBER))
seconds, sizes, numbers = (partial(of_unit, unit) for unit in ("s", "B", "1"))
counts = partial(of_unit, "1", "count")
shares = partial(of_unit, "1", "share")  # parts of a whole, which are printed as percent


def axes(*groups: Columns, **meanings: str) -> Columns:
    """Columns, of text if nothing else is said, that tell rows apart."""
    every = itertools.chain(*groups, texts(**meanings))
    return tuple(replace(each, is_axis=True) for each in every)


def centre(unit: str, /, **meaning: str) -> Columns:
    """A column of numbers, and those with the ends of its interval."""
    (column,) = of_unit(unit, **meaning)
    ends = of_unit(
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
LIMITS = texts(limits="a free step: `gpu`, `launches`, `cpu` or `unknown`")
PROCESSES = counts(processes="fresh processes that measured it")
OF_KERNELS = (
    axes(category="what kind of work it is")
    + numbers(calls="launches a step")
    + seconds(time="a step, of all its launches")
    + shares(share="of kernels' time in the phase")
)
KEPT = axes(category="what the memory is for")
WORK = of_unit("FLOP", flop="of products, and of elementwise work in ranges") + sizes(
    bytes="read and written, as the code is written; of a kind the least"
)
TENSOR = axes(
    op="that made it",
    shape="of the tensor",
    dtype="of its elements",
)
FORMULA = texts(formula="of one's bytes; `d_Q`, `d_K`: all heads' width, `d_QKV`: of three")
DEVICES, RANK = axes(counts(devices="that take part", rank="the device's number"))
STRATEGY = axes(variant="who sends what and when; `alone`: one device")


def named(*groups: Column | Columns) -> dict[str, Column]:
    """Columns, and those of groups of them, by their names."""
    each = (one if isinstance(one, tuple) else (one,) for one in groups)
    return {column.name: column for column in itertools.chain.from_iterable(each)}


QUANTITIES = named(  # of series.csv
    seconds(
        time="by the clock, synchronised at a step's end or around each phase",
        host_free_time="of the step replayed from a CUDA graph",
        busy_time="union of kernels' and copies' intervals, by torch.profiler",
        alone_time="host-free, else busy; in a ladder the same for all rungs",
    ),
    of_unit("token/s", tokens_per_second="tokens of a device's batch over time"),
    of_unit("FLOP/s", flops="the model's FLOP over time"),
    shares(
        share_of_ceiling="`flops` over the burst of a large product",
        mfu="`flops`, attention in full, over the data sheet's dense peak (fp8: bf16's)",
        mfu_causal="the same with half of attention's scores",
        mfu_narrow="of a step in fp8, over that of fp8",
    ),
    of_unit("FLOP/s or B/s", rate="of ceilings (by the least time) and attention"),
    counts(
        launches="a step, kernels and graphs",
        kernels="a step",
        operators="of PyTorch, a step; without a GPU",
    ),
    of_unit(
        "J",
        energy="a step, by NVML's counter over a second of steps",
        energy_token="`energy` over tokens",
    ),
    of_unit("MHz", sm_clock="median before free steps"),
    sizes(
        peak_asked="what tensors asked for",
        peak_allocated="in the allocator's whole blocks",
        peak_reserved="from the driver, with CUDA graphs' pools",
        peak_resident="of the process; without a GPU",
        peak_predicted="of what tensors ask for, in closed form",
        before_backward="allocated after attention's forward pass",
        model_bytes="in tensors of model, batch and optimizer",
        start_bytes="in tensors before the recorded step",
        first_step_bytes="in tensors after the first step",
    ),
    numbers(
        difference="gradients from the first rung's, relative; inf: no number",
        loss_difference="from the first rung's, relative; inf: no number",
        tolerance="up to which `difference` is rounding, and ten times the loss's",
    ),
    seconds(
        compile_time="by how much the first step took longer",
        first_step_time="of a fresh process",
    ),
)


def _table(row: str, *groups: Column | Columns) -> Table:
    """One whose columns are all given."""
    return Table(row, named(*groups))


def _of_cells(row: str, *groups: Column | Columns) -> Table:
    """One whose rows are told apart by their cell first."""
    return _table(row, KEY, *groups)


TABLES = {
    "series": _table(
        "one measured quantity of a cell's variant",
        OF_CELL,
        axes(variant="measured in turns; `step` where there is only one"),
        OF_PASS,
        axes(quantity="one of those below"),
        texts(unit="of the numbers that follow"),
        centre(OF_ROW, median="geometric mean of processes' medians"),
        of_unit(
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
    "comparisons": _table(
        "two variants of a cell, in one mode and phase",
        OF_CELL,
        OF_PASS,
        axes(
            quantity="what is compared: `time` or `host_free_time`",
            a="the variant that `b` is compared with",
            b="the variant that is judged",
        ),
        centre("1", ratio="time of a over time of b: above 1, b is faster"),
        texts(verdict="of b: `faster`, `slower`, `same` or `unclear`"),
        numbers(p="of a ratio within the margin, controlled for false discoveries"),
        PROCESSES,
        counts(rounds="of turns, of all processes; 0 where processes alternate"),
        flags(in_turns="measured in turns in the same processes"),
        LIMITS,
        CELL,
    ),
    "cells": _table(
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
            commit="of the checkout, with `-dirty` if it had changes",
            device="`cuda` or `cpu`",
            gpu="name by the driver",
            gpu_uuid="which of its kind",
            cpu="its name",
            driver="version",
            torch="version",
            triton="version",
            python="version",
            profiler="of a profile: `nsys` or `torch`",
            profiler_version="its own",
            started="ISO 8601",
            throttle="what slowed the GPU, joined by `; `",
        ),
        flags(is_current="the code that measured is today's"),
        sizes(memory="of the GPU, else of the host"),
        of_unit("W", power_limit_w="of the GPU", power_max_w="highest at a sample"),
        counts(threads="that torch may use", other_processes="on the GPU"),
        seconds(duration_s="of the whole cell"),
        PROCESSES,
        of_unit("MHz", sm_clock_median_mhz="median over the samples"),
        of_unit("°C", temperature_max_c="highest at a sample"),
    ),
    "variants": _of_cells(
        "a variant of a ladder, and what it changes",
        axes(
            variant="its name in `series` and `comparisons`",
            after="the variant that it changes; empty for the first",
            kind="of change: `tf32`, `sdpa`, `checkpoint 2`, `loss torch` …",
            changed="the option that it changes, `precision` or another",
            value="what that option is",
            attention="implementation in the model",
            compile="what of the model: `none`, `block`, `model` …",
            optimizer="`own`, `torch`, `fused` …",
            loss="implementation in the model",
        ),
        PRECISION,
        counts(order="in its cell, from 0", checkpoint="blocks of a checkpoint; 0: without"),
        flags(is_aside="no rung builds on it"),
        texts(
            label="what people call the change",
            before="what the option was; empty for the first",
        ),
    ),
    "kernels": _of_cells(
        "a kernel (without a GPU: an operator) of a phase of the profiled steps",
        PHASE,
        axes(name="short name; copies and sets of memory have rows, too"),
        OF_KERNELS,
        seconds(
            median="of a launch",
            min="of a launch",
            max="of a launch",
            std="of a launch",
        ),
        sizes(bytes="a step, of copies and fills"),
        numbers(per_layer="launches in each layer, where they repeat"),
        texts(
            layer_modules="modules of a layer that launch it",
            remainder_modules="modules of launches in no layer",
            tile="of a matrix product, by its name",
            arithmetic="units that multiply, by its name",
            full_name="as the profiler has it",
        ),
    ),
    "categories": _of_cells(
        "a kind of kernels in a phase of the profiled steps",
        PHASE,
        OF_KERNELS,
        WORK,
    ),
    "phases": _of_cells(
        "a phase of the profiled steps",
        PHASE,
        seconds(
            host_time="a step, until the host had launched it",
            host_exclusive="host time a step, without the phases inside",
            gpu_time="a step, of its kernels and copies",
            memory_time="a step, of copies and sets of memory",
            clock="by the host's clock, in the same steps: mean",
            clock_std="deviation of the clock's times",
        ),
        numbers(
            kernels="a step",
            memory_operations="copies and sets, a step",
            overhead="the median by the clock over the timing cell's",
        ),
        WORK,
    ),
    "gaps": _of_cells(
        "busy and idle time of a phase of the profiled steps",
        PHASE,
        seconds(
            wall="a step, under the profiler",
            busy="a step: union of kernels' and copies' intervals",
            idle="a step, under the profiler",
            gap_median="median",
            gap_max="the longest",
            queue_delay_median="from a launch to its start, median",
            host_gap_median="between CUDA calls, median",
            host_gap_max="the longest of these",
        ),
        numbers(gaps="a step, between operations of the GPU"),
    ),
    "modules": _of_cells(
        "a range, an operator, a call of the host or a line of Python in the profiled steps",
        axes(
            kind="`module`, `operator` of autograd, `call` of CUDA, of a `library` or into the"
            " `system`, `line` of Python behind calls of CUDA",
            module="name of the range; parts of attention have it as `parent`",
            parent="the range around it",
        ),
        flags(attention="it is the whole attention"),
        numbers(
            calls="a step",
            kernels="a step",
            top_calls="of the top kernel, a step",
            backward_elementwise="elementwise kernels of its backward pass, a step",
        ),
        seconds(
            host_time="a step",
            host_exclusive="host time a step, without the ranges inside",
            gpu_time="a step",
            gpu_min="of a call",
            gpu_max="of a call",
            gpu_std="deviation of its calls",
            backward_time="a step, of what its backward launches",
            backward_elementwise_time="of these the elementwise ones, a step",
        ),
        WORK,
        texts(top_kernel="the kernel that takes most of it"),
        shares(top_share="of the top kernel, of the GPU time"),
    ),
    "transfers": _of_cells(
        "copies or fills of a kind, or a call in which the host waits",
        axes(what="is done"),
        numbers(calls="a step"),
        seconds(time="a step"),
        sizes(bytes="a step, where the trace has them"),
        of_unit("B/s", rate="of them"),
    ),
    "processes": _of_cells(
        "what a process launched in a phase on a device",
        PHASE,
        axes(process="of the system", device="its number"),
        numbers(kernels="a step"),
        seconds(gpu_time="a step"),
    ),
    "warnings": _of_cells(
        "what a profiler or an analysis warns of",
        axes(about="what it concerns"),
        texts(text="as given"),
    ),
    "first_step": _of_cells(
        "what the first step of a fresh process spends its time on, or the GPU before it",
        PHASE,
        axes(part="what takes the time"),
        seconds(
            first="in the first step",
            second="in the second one",
            later="in a later one",
        ),
    ),
    "timeline": _of_cells(
        "an interval of one profiled step",
        axes(
            view="`step`: all of it; `one attention`: of one block",
            lane="row that it is drawn in",
        ),
        seconds(
            start="since the view's start",
            end="since the view's start",
        ),
        axes(
            label="name of the range or kernel",
            category="of kernels their kind; else `range`, `api` …",
        ),
    ),
    "memory_peak": _of_cells(
        "what is alive at the peak",
        KEPT,
        sizes(bytes="asked for"),
        counts(blocks="alive at the peak"),
        sizes(predicted="by the closed form"),
    ),
    "memory_timeline": _of_cells(
        "a moment of the recorded step",
        seconds(time="since the recording's start"),
        PHASE,
        axes(module="part of the model that runs"),
        sizes(
            reserved="by the allocator",
            parameters="alive",
            gradients="alive",
            optimizer_state="alive",
            activations="alive",
            cast_weights="alive",
            other="buffers, workspaces and unknown, alive",
        ),
    ),
    "memory_largest": _of_cells(
        "equal tensors of the recorded step, the largest first",
        sizes(bytes="of one of them"),
        counts(
            count="how many equal ones were allocated",
            alive="of them, at the peak",
        ),
        KEPT,
        PHASE,
        axes(
            module="that made it",
            frame="of code that made it",
        ),
        TENSOR,
        FORMULA,
    ),
    "memory_saved": _of_cells(
        "tensors that forward keeps for backward",
        axes(
            part="`block`: one block; `rest`: all else",
            module="that made it",
        ),
        TENSOR,
        KEPT,
        counts(tensors="how many"),
        sizes(bytes="of all of them"),
        FORMULA,
    ),
    "ranks": _of_cells(
        "a rank of a step on several devices, taken apart under the profiler",
        DEVICES,
        STRATEGY,
        RANK,
        seconds(
            clock="by the clock",
            alone="what one device's step computes",
            slowed="the same kernels take longer beside communication",
            apart="the same kernels take longer away from it",
            extra="that one device's step has not",
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
    "rank_slowed": _of_cells(
        "kernels beside communication, of a rank's step under the profiler",
        DEVICES,
        STRATEGY,
        RANK,
        axes(category="of kernels"),
        seconds(
            beside="of those that one device's step has too",
            slowed="by which they take longer than there",
        ),
    ),
    "rank_memory": _of_cells(
        "what the rank that holds most holds at a point of a step on several devices",
        DEVICES,
        STRATEGY,
        axes(
            point="`init`, `before optimizer` or `after`",
            part="`weights`, `gradients`, `state`, or `all` that tensors hold",
        ),
        sizes(held="by the rank", formula="of the part; of all with buckets"),
    ),
    "collectives": _of_cells(
        "a collective by itself",
        DEVICES,
        axes(collective="`all_reduce`, `all_gather` or `reduce_scatter`"),
        sizes(bytes="of the whole tensor"),
        seconds(
            seconds="on the rank that takes longest",
            beside="of the same while products run",
        ),
        numbers(lost="the share of that time that products lose"),
        of_unit("B/s", bus="bandwidth that crosses a device's link (nccl-tests)"),
    ),
    "parallel_predicted": _of_cells(
        "a strategy on so many devices, predicted from one device and the collectives",
        STRATEGY,
        DEVICES,
        seconds(
            predicted="the step",
            measured="the step, where the cell is on as many",
            strong="the step, where they share the batch of one",
        ),
        counts(hiding_batch="sequences a device from which 2 % show at most"),
    ),
    "sums": _of_cells(
        "a sum of many addends in some format",
        axes(
            variant="how it is computed",
            sum_dtype="type",
        ),
        counts(times="how many"),
        numbers(
            addend="its value as stored",
            sum="what comes out",
            exact="without rounding",
        ),
        counts(last_change="the last addition that changed the sum"),
    ),
    "dtypes": _of_cells(
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
    "forced": _of_cells(
        "an operation forced into a format, beside float64",
        axes(
            operation="LayerNorm, RMSNorm, softmax, cross-entropy …",
            way="`all in the format`, `under autocast` …",
            format="type",
            quantity="what of the input is varied",
        ),
        numbers(
            value="of what is varied",
            error="relative, largest of the elements, against float64",
            inner="mean square, sum of exponentials … as computed",
            inner_exact="in float64",
        ),
        counts(
            infinite="elements",
            nan="elements",
        ),
    ),
    "learning": _of_cells(
        "a variant of a step, trained",
        axes(variant="what is changed"),
        counts(
            rank="in its cell, from 0",
            steps="of training",
            orders="of batches, that ended in a number",
        ),
        texts(
            own_precision="of matrix products",
            status="`ok`, `oom` or `unsupported`",
            reason="why it is not `ok`",
            verdict="`same`, `better`, `worse`, `unclear` or `does not learn`",
        ),
        flags(is_scaled="the loss, by torch.amp.GradScaler"),
        centre("1", held_out="nats a byte, after training"),
        numbers(
            learning_rate="of the optimizer",
            frequencies="the loss of who knows how often each byte occurs alone",
            ratio="`held_out` over the first variant's, order by order",
            ratio_low="end of its 95 % interval",
            ratio_high="the other end",
        ),
    ),
    "curves": _of_cells(
        "a part of a training",
        axes(variant="what is changed"),
        axes(counts(order="of the batches", step="at its end")),
        numbers(loss="mean training loss, nats a byte"),
    ),
    "cards": _of_cells(
        "what a GPU reaches beside others of its type",
        axes(quantity="`rate` of a ceiling, or `busy_time` of a plain step"),
        texts(unit="of the numbers that follow"),
        of_unit(OF_ROW, value="its best", low="of the others", high="of the others"),
        counts(cards="that are known"),
        texts(standing="`like them`; `slower` or `faster`: beyond all by more than 5 %"),
    ),
    "warmup": _of_cells(
        "a step, or a phase of it, measured after so many steps of warm-up",
        PHASE,
        axes(counts(skipped="steps that are left out")),
        seconds(
            mean="of up to ten steps after them",
            std="of up to ten steps after them",
            first="of a fresh process",
            steady="mean of the last half of the steps",
        ),
    ),
    "models": _table(
        "a model at a context and a batch",
        MACHINE,
        SIZE,
        CONTEXT,
        BATCH,
        counts(
            d_model="width of the residual stream",
            d_ff="width inside the feed-forward network",
            num_layers="modules of one class that repeat",
            num_heads="of attention, in a block",
            key_value_heads="of a size; 0 is as many as heads",
            vocab_size="tokens",
            parameters="tied weights once",
            trained="parameters that are not frozen",
            items="that a step of one's own takes",
        ),
        of_unit(
            "FLOP",
            flop="of forward and backward over the batch",
            forward_flop="of these, where the two are told apart",
        ),
        texts(
            dtype="of the parameters, as they were built",
            flop_from="`formula`, `counter`: as PyTorch counts, `at least`: without operators that"
            " have no formula, or `given`",
            optimizer="of a step of one's own, as it was built",
            item="what the items are",
            reference="of one's own what was built: `FILE:FUNCTION` or `hf:…`",
            keys="that it was given",
            **{"class": "of the module"},
            inputs="of forward, and how they were chosen",
            loss="and how it was chosen",
            unknown="what could not be found out, joined by `; `",
        ),
    ),
    "published": _table(
        "a number that somebody published, beside ours",
        axes(
            source="who published it",
            gpu="name by the driver, without the brand",
            variant="implementation of attention",
            name="the kernel, category, operation or part that it is of",
            quantity="what is given",
            statistic="`mean`, `median`, `std` …",
        ),
        OF_CELL[1:],
        OF_PASS[1:],
        CELL,
        of_unit(
            OF_ROW,
            value="the published number, in `unit`",
            measured="ours, where all else is the same",
        ),
        numbers(ratio="`value` over `measured`"),
        shares(mfu="of a training step, counted as ours"),
        texts(
            unit="SI",
            title="of the publication",
            date="of the publication",
            framework="software and its version, where known",
            doubt="why it is not to be compared",
            beside="our implementation of attention that `measured` is of",
            note="what else is to be known of it",
        ),
    ),
}
