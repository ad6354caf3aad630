"""Precision: what a faster format brings by place, and what it does to sums, normalisations and
softmax."""

from dataclasses import dataclass

from stepscope.report.facts.ladders import ladders
from stepscope.report.facts.machine import Machine, machine, place
from stepscope.report.facts.rungs import Rung
from stepscope.report.kit.data import Data, of_series
from stepscope.report.kit.page import Name
from stepscope.report.kit.quantity import Maybe, Quantity, count, over

SIXTEEN = ("bf16", "fp16")
SHOWN = ("all in the format", "under autocast")
LAYER = "layer"  # what is varied where products of linear layers are forced
EXACT = 0.001  # a sum that is off by less counts as right


@dataclass(frozen=True, kw_only=True)
class Speed:
    """fp32 over another precision, of the same place: ratios of two cells, without verdict. alone:
    without the host."""

    place: Name
    parameters: float
    context: int
    forward: Maybe
    backward: Maybe
    step: Maybe
    alone: Maybe
    limits: str


@dataclass(frozen=True, kw_only=True)
class Sum:
    """A sum of equal addends."""

    name: Name
    addends: Maybe
    sum: Maybe
    exact: Maybe
    last: Maybe
    error: Maybe


@dataclass(frozen=True, kw_only=True)
class Forced:
    """An operation in a format: its largest error over the inputs, and the first input at which it
    breaks down."""

    operation: Name
    way: Name
    format: Name
    error: Maybe
    breaks: Maybe
    varied: Name | None


@dataclass(frozen=True, kw_only=True)
class Product:
    """A product of linear layers, and the largest error of the worst layer in each format."""

    name: Name
    bf16: Maybe
    fp16: Maybe
    fp8: Maybe


@dataclass(frozen=True, kw_only=True)
class Type:
    """A module under autocast."""

    part: Name
    operator: Name
    parameter: Name
    input: Name
    output: Name
    gradient: Name


@dataclass(frozen=True, kw_only=True)
class Precision:
    """faster: the 16-bit format whose speeds are shown. eight: the largest ladder's rung in 8 bits,
    sixteen its first in 16; eight_gain: of a large product over 16 bits.
    """

    machine: Machine
    faster: str = ""
    ceiling_gain: Maybe = None
    speeds: tuple[Speed, ...] = ()
    least: Speed | None = None
    most: Speed | None = None
    starved: Speed | None = None
    sums: tuple[Sum, ...] = ()
    stuck: Sum | None = None
    half: Sum | None = None
    wide: Sum | None = None
    forced: tuple[Forced, ...] = ()
    products: tuple[Product, ...] = ()
    norm: Forced | None = None
    norm_half: Forced | None = None
    norm_autocast: Forced | None = None
    softmax: Forced | None = None
    softmax_autocast: Forced | None = None
    types: tuple[Type, ...] = ()
    layer_norm: Type | None = None
    unsupported: tuple[Name, ...] = ()
    eight: Rung | None = None
    sixteen: Rung | None = None
    eight_gain: Maybe = None


def facts(data: Data) -> Precision | None:
    """Of the timing and the precision study."""
    own = machine(data)
    faster = next((name for name in SIXTEEN if name in own.rates), "bf16")
    speeds = _speeds(data, own, faster)
    sums, forced, types = _sums(data), _forced(data), _types(data)
    refused = data.dicts("cells", status="unsupported")
    if not (speeds or sums or forced or types):
        return None
    fed = [each for each in speeds if each.step and each.limits != "launches"]
    by_gain = sorted(fed, key=lambda each: each.step.value)
    stuck = max(
        (each for each in sums if each.error), key=lambda each: abs(each.error.value), default=None
    )
    find = lambda operation, way, format_: next(  # noqa: E731
        (
            each
            for each in forced
            if (each.operation, each.way, each.format) == (operation, way, format_)
        ),
        None,
    )
    ladder = next(iter(ladders(data, own)), None)
    eight = ladder.coarse if ladder else None
    return Precision(
        machine=own,
        eight=eight,
        sixteen=ladder.plain if eight else None,
        eight_gain=over(own.rate("fp8"), own.rate(faster)),
        faster=faster,
        ceiling_gain=over(own.rate(faster), own.rate("fp32")),
        speeds=_series(speeds),
        least=by_gain[0] if len(by_gain) > 1 else None,
        most=by_gain[-1] if by_gain else None,
        starved=next((each for each in speeds if each.limits == "launches" and each.alone), None),
        sums=sums,
        stuck=stuck if stuck and abs(stuck.error.value) > EXACT else None,
        half=next((each for each in sums if each.name == "fp16 += fp16"), None),
        wide=next((each for each in sums if each.name in ("fp32 += bf16", "fp32 += fp16")), None),
        products=_products(data),
        forced=tuple(each for each in forced if each.way in SHOWN and each.format in SIXTEEN),
        norm=find("LayerNorm", "all in the format", "bf16"),
        norm_half=find("LayerNorm", "all in the format", "fp16"),
        norm_autocast=find("LayerNorm", "under autocast", "bf16"),
        softmax=find("softmax", "all in the format", "fp16"),
        softmax_autocast=find("softmax", "under autocast", "fp16"),
        types=types,
        layer_norm=next((each for each in types if each.operator == "LayerNorm"), None),
        unsupported=tuple(Name(row["cell"]) for row in refused if row["precision"] in SIXTEEN),
    )


def _speeds(data: Data, own: Machine, faster: str) -> tuple[Speed, ...]:
    """Each plain timed place that has both precisions, the smallest first."""
    times = data.series(study="timing", quantity="time", mode="step", options="")
    found: dict[tuple, dict] = {}
    for row in times:
        found.setdefault((row["size"], row["context"], row["batch"]), {})[
            row["precision"], row["phase"]
        ] = row
    made = []
    for rows in found.values():
        of = lambda precision, phase, rows=rows: (  # noqa: E731
            of_series(rows[precision, phase]) if (precision, phase) in rows else None
        )
        gain = lambda phase, of=of: over(of("fp32", phase), of(faster, phase))  # noqa: E731
        if gain("step") is None:
            continue
        where = place(data, own, rows[faster, "step"], faster)
        made.append(
            Speed(
                place=where.name,
                parameters=where.parameters.value if where.parameters else 0.0,
                context=where.context,
                forward=gain("forward"),
                backward=gain("backward"),
                step=gain("step"),
                alone=over(*(_alone(data, rows[name, "step"]) for name in ("fp32", faster))),
                limits=rows[faster, "step"]["limits"].replace("gpu", "GPU"),
            )
        )
    return tuple(sorted(made, key=lambda each: (each.parameters, each.context)))


def _alone(data: Data, row: dict) -> Maybe:
    return data.measured("host_free_time", cell=row["cell"], mode="step", phase="step")


def _series(speeds: tuple[Speed, ...]) -> tuple[Speed, ...]:
    """The sizes at the longest context, and the contexts of the largest size."""
    longest = max((each.context for each in speeds), default=0)
    most = max((each.parameters for each in speeds), default=0)
    return tuple(each for each in speeds if each.context == longest or each.parameters == most)


def _sums(data: Data) -> tuple[Sum, ...]:
    return tuple(
        Sum(
            name=Name(row["variant"]),
            addends=count(row["times"]),
            sum=Quantity(row["sum"], "exact", cells=(row["cell"],)),
            exact=Quantity(row["exact"], "exact"),
            last=count(row["last_change"]),
            error=Quantity(row["sum"] / row["exact"] - 1, "off", cells=(row["cell"],)),
        )
        for row in data.dicts("sums")
    )


def _forced(data: Data) -> tuple[Forced, ...]:
    """Of each operation, way and format; breaking down is an error of all, or what is not
    finite."""
    found: dict[tuple, list[dict]] = {}
    for row in data.dicts("forced", status="ok"):
        if row["quantity"] != LAYER:
            found.setdefault((row["operation"], row["way"], row["format"]), []).append(row)
    made = []
    for (operation, way, format_), rows in found.items():
        broken = [
            row for row in rows if not row["error"] < 1 or row["infinite"] > 0 or row["nan"] > 0
        ]
        whole = [row["error"] for row in rows if row not in broken]
        first = min(broken, key=lambda row: row["value"], default=None)
        made.append(
            Forced(
                operation=Name(operation),
                way=Name(way),
                format=Name(format_),
                error=Quantity(max(whole), "error", cells=(rows[0]["cell"],)) if whole else None,
                breaks=Quantity(first["value"], "exact", cells=(first["cell"],)) if first else None,
                varied=Name(first["quantity"]) if first else None,
            )
        )
    return tuple(made)


def _products(data: Data) -> tuple[Product, ...]:
    found: dict[str, dict[str, list[dict]]] = {}
    for row in data.dicts("forced", status="ok", quantity=LAYER):
        if row["error"] == row["error"]:  # else it is not finite
            found.setdefault(row["operation"], {}).setdefault(row["format"], []).append(row)
    made = []
    for operation, formats in found.items():
        worst = {name: max(rows, key=lambda row: row["error"]) for name, rows in formats.items()}
        errors = {
            name: Quantity(row["error"], "error", cells=(row["cell"],))
            for name, row in worst.items()
        }
        made.append(
            Product(
                name=Name(operation), **{name: errors.get(name) for name in ("bf16", "fp16", "fp8")}
            )
        )
    return tuple(made)


def _types(data: Data) -> tuple[Type, ...]:
    """The toy model in bf16, else in fp16."""
    rows = data.dicts("dtypes", model="toy", autocast="bf16") or data.dicts(
        "dtypes", model="toy", autocast="fp16"
    )
    return tuple(
        Type(
            part=Name(row["part"]),
            operator=Name(row["operator"]),
            parameter=Name(row["parameter"]),
            input=Name(row["input"]),
            output=Name(row["output"]),
            gradient=Name(row["parameter_gradient"]),
        )
        for row in rows
    )
