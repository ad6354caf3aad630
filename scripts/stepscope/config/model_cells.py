"""Cells that run the model: one for each point of size x context x precision and the options."""

from dataclasses import replace

from stepscope.axes import BUILT
from stepscope.model.shape import ModelShape

from . import Complaints, ConfigError, own_models, recordings
from .grid import (
    Cell,
    Target,
    changed,
    check_known,
    each_once,
    named,
    options_path,
    points,
)

# In this order in a command, whatever the configuration's.
SHAPE = ("d_model", "d_ff", "num_layers", "num_heads")
BYTES = 256  # different tokens of the learning study, and the least of its vocabulary
# In this order in a cell's path.
AXES = (
    "size",
    "context",
    "precision",
    "batch",
    "mode",
    "attention",
    "optimizer",
    "loss",
    "compile",
    "checkpoint",
    "key_value_heads",
    "window",
)


def timing_cells(target: Target) -> list[Cell]:
    """The cells of the timing grid, in the configuration's order."""
    return training_cells(target, timed_steps(target), with_steps=True)


def parallel_cells(target: Target) -> list[Cell]:
    """The cells of the grid of several devices, in the configuration's order; not those that ask
    for more GPUs than the machine has. Raises ConfigError for one with the neutral optimizer."""
    variants = strategies(target.settings, target.device)
    cells = training_cells(target, {"variants": variants} | timed_steps(target))
    for cell in cells:
        if "optimizer" not in cell.spec:
            raise ConfigError(
                f"config key parallel.grid: {cell.name} would have the project's own optimizer,"
                " and several devices need one of PyTorch's; add optimizer: [fused]"
            )
    machine = target.machine
    if machine.device == "cpu" or not machine.measured:
        return cells
    return [cell for cell in cells if cell.spec.get("devices", 1) <= machine.gpus]


def learning_cells(target: Target) -> list[Cell]:
    """The cells of the learning grid, in the configuration's order: bytes are their tokens.

    Raises ConfigError for a grid that is wrong, and for a model of one's own, which has its inputs
    by itself.
    """
    sizes_alone = replace(target, config=target.config | {"models": {}})
    settings = {"vocab_size": BYTES, "variants": learners(target.settings)}
    settings |= of_device(target, "processes", "steps", "learning_rate")
    return training_cells(sizes_alone, settings)


def learners(settings: dict) -> list[dict]:
    """The variants of the learning study by its settings. Raises ConfigError for equal names."""
    return named(settings["variants"], _learner, "config key learning.variants")


def strategies(settings: dict, device: str) -> list[dict]:
    """The variants of several devices by their study's settings. Raises ConfigError likewise."""
    key = f"config key parallel.strategies.{device}"
    return named(settings["strategies"][device], _strategy, key)


def _learner(variant: dict) -> str:
    """What a variant of the learning study is called: `bf16`, `fp16-scaled`."""
    values = [
        "scaled" if value is True else str(value)
        for value in variant.values()
        if value is not False
    ]
    return "-".join(values) or "plain"


def _strategy(strategy: dict) -> str:
    """What a variant of several devices is called: `overlapped`, `overlapped-ctas=8`."""
    changed = [f"{key}={value}" for key, value in strategy.items() if key != "strategy"]
    return "-".join([strategy["strategy"], *changed])


def memory_cells(target: Target) -> list[Cell]:
    """The cells of the memory grid, in the configuration's order."""
    return training_cells(target, of_device(target, "warmup", "steps"), with_steps=True)


def profile_cells(target: Target) -> list[Cell]:
    """The cells of the profile grid, in the configuration's order."""
    settings = of_device(target, "warmup", "steps") | {"profiler": target.settings["profiler"]}
    return training_cells(target, settings, with_steps=True)


def step_cells(target: Target, settings: dict) -> list[Cell]:
    """A cell of the study for each step of one's own."""
    found = []
    for name, step in own_models.steps(target.config).items():
        place = f"{name}/ctx{step['context']}/{BUILT}{batch_path(step, target)}"
        found.append(target.cell(place, step | settings, name))
    return found


def batch_path(spec: dict, target: Target) -> str:
    """What the folder of a cell says of its batch: nothing of the usual one."""
    usual = target.config["model"]["batch"]
    return options_path({"batch": spec["batch"]}) if spec["batch"] != usual else ""


def timed_steps(target: Target) -> dict:
    """How a study that takes times warms up and stops, as parts of a spec."""
    steps = target.settings["steps"][target.device]
    return {
        **of_device(target, "processes", "warmup"),
        "steps": steps["min"],
        "max_steps": steps["max"],
        "max_seconds": steps["seconds"],
    }


def of_device(target: Target, *keys: str) -> dict:
    """What a study's settings say under these keys for the device, as parts of a spec."""
    return {key: target.settings[key][target.device] for key in keys}


def training_cells(target: Target, settings: dict, with_steps: bool = False) -> list[Cell]:
    """The cells of the study's grid, in the configuration's order.

    settings: what the study adds to each spec, such as how many steps. with_steps: also those of
    steps of one's own. Raises ConfigError for a grid that is wrong.
    """
    models = models_of(target.config)
    cells: list[Cell] = []
    wrong = Complaints()
    for place, entry in enumerate(target.settings["grid"][target.device]):
        key = f"config key {target.study.name}.grid.{target.device}.{place}"
        for axis in entry:
            if axis not in target.study.axes:
                wrong.note(f"{key}: its cells have no {axis}; remove it")
        for point in points(entry, target.study.axes):
            with wrong.noted():
                check_known(point["size"], models, key)
                cells.append(_cell(target, point, models[point["size"]], settings, key))
    wrong.tell()
    return each_once(cells) + (step_cells(target, settings) if with_steps else [])


def _cell(target: Target, point: dict, model: dict, settings: dict, key: str) -> Cell:
    """The cell at a point of a grid."""
    size, context, precision = (point.pop(axis) for axis in ("size", "context", "precision"))
    options = changed(point)  # what is left of it
    of_attention = {
        axis: options[axis] for axis in ("key_value_heads", "window") if axis in options
    }
    if of_attention:
        if "model" in model:
            raise ConfigError(
                f"{key}: size {size} is a model of your own, which has its attention by itself;"
                f" remove {' and '.join(of_attention)}"
            )
        check_shape(model | of_attention, f"{key}: size {size}")
    # what is neutral, though it does not look it
    usual = {"batch": target.config["model"]["batch"], "key_value_heads": model.get("num_heads")}
    options = dict(option for option in options.items() if option not in usual.items())
    spec = {
        **model,
        "context": context,
        "batch": usual["batch"],
        "precision": precision,
        **settings,
        **recordings.in_spec(target.study.name, options),
    }
    return target.cell(f"{size}/ctx{context}/{precision}{options_path(options)}", spec, size)


def check_shape(spec: dict, key: str) -> None:
    """Raise ConfigError for a shape that no model can have."""
    try:
        ModelShape.of(spec)
    except ValueError as error:
        raise ConfigError(f"{key}: {error}") from None


def models_of(config: dict) -> dict[str, dict]:
    """What stands in a spec for each name that a grid's `size` may have: a shape, or a model of
    one's own.

    Raises ConfigError for a shape that no model can have, or a model of one's own that says not
    what it is.
    """
    result = {}
    for name, shape in config["sizes"].items():
        own = {"vocab_size": config["model"]["vocab_size"], **shape}
        check_shape(own, f"config key sizes.{name}")
        result[name] = {key: own[key] for key in SHAPE} | own
    return result | own_models.specs(config)
