"""The frame of programs that run the model: from flags to the cell's spec, and what every one of them shows.

A program adds its own flags, names its spec's keys, measures, and prints what only it has.
"""

import argparse
import json
from pathlib import Path

from stepscope.axes import MODES, NEUTRAL, PRECISIONS
from stepscope.config import own_models
from stepscope.measure import arguments
from stepscope.measure.cell import Cell, Settings
from stepscope.model.chosen import names
from stepscope.model.shape import ModelShape

CONFIG = Path(__file__).resolve().parents[3] / "config.yaml"
SIZE = ("d_model", "d_ff", "num_layers", "num_heads")
COMPILES = ("none", "block", "model", "graphs")


class TrainingCell(Cell):
    """A cell that runs the model: it shows the number of parameters."""

    def __init__(
        self, program: str, spec: dict, settings: Settings, tools: tuple[str, ...] = (), files: str | None = None
    ):
        note = "" if "model" in spec else f"parameters: {ModelShape.of(spec).parameters / 1e6:,.3f} M"
        super().__init__(program, spec, settings, tools, files, note)


def cell(
    program: str, spec: dict, settings: Settings, tools: tuple[str, ...] = (), files: str | None = None
) -> TrainingCell:
    """The cell of a spec, to be entered; see Cell."""
    from stepscope.measure.own_cell import OwnCell  # which is a TrainingCell

    return (OwnCell if "model" in spec else TrainingCell)(program, spec, settings, tools, files)


def flags_of_cell(description: str, options: bool = True) -> argparse.ArgumentParser:
    """A parser with what a cell that runs the model is: its shape, its place in the grid and, unless its variants have
    these, its options."""
    flags = arguments.parser(description)
    add_shape(flags)
    add_own(flags)
    group = flags.add_argument_group("cell")
    group.add_argument("--context", type=arguments.positive, default=128, help="sequence length in tokens")
    group.add_argument("--batch", type=arguments.positive, default=4, help="sequences")
    group.add_argument(
        "--key-value-heads", type=arguments.not_negative, default=0, help="heads of K and V; 0: as many as heads"
    )
    group.add_argument(
        "--window",
        type=arguments.not_negative,
        default=0,
        help="tokens that one sees at most, itself and those just before it; 0: all before it",
    )
    if not options:
        return flags
    group.add_argument("--precision", choices=PRECISIONS, default="fp32", help="fp32 has TF32 off; 16 bits: autocast")
    group.add_argument("--mode", choices=MODES, default="step", help="the heaviest thing to run")
    group.add_argument("--attention", choices=names("attention"), default="naive", help="implementation")
    group.add_argument(
        "--compile",
        choices=COMPILES,
        default="none",
        help="torch.compile of each block or of the whole model; graphs: of blocks, replayed from CUDA graphs",
    )
    group.add_argument("--optimizer", choices=names("optimizer"), default="own", help="AdamW's implementation")
    group.add_argument(
        "--checkpoint",
        type=arguments.not_negative,
        default=0,
        help="keep the input of every so many blocks only, and compute the rest again; 0: keep all",
    )
    return flags


def read(
    flags: argparse.ArgumentParser,
    words: list[str],
    study: str,
    keys: tuple[str, ...] = (),
    changed: tuple[str, ...] = (),
) -> tuple[dict, Settings]:
    """The spec of a cell that runs the model, without options at their neutral value, and what does not belong to it.

    `keys` are the study's own, `changed` those that are omitted at their default. Ends the program with one line if no
    model can have the shape or the options.
    """
    given = flags.parse_args(words)
    resolve_shape(given, flags)
    arguments.resolve_running(given, flags)
    spec = cell_spec(study, given, flags, keys)
    spec |= {name: value for name in changed if (value := getattr(given, name)) != flags.get_default(name)}
    return spec, arguments.settings(given)


def cell_spec(study: str, given: argparse.Namespace, flags: argparse.ArgumentParser, keys: tuple[str, ...]) -> dict:
    """The spec of flags that were read and resolved; see read(). A model of one's own may stand in place of a shape."""
    place = [key for key in ("context", "batch", "precision") if hasattr(given, key)]
    spec = {"study": study} | _model(given, flags) | {key: getattr(given, key) for key in (*place, *keys)}
    spec |= arguments.running_keys(given)
    spec |= {key: value for key in NEUTRAL if (value := getattr(given, key, NEUTRAL[key])) != NEUTRAL[key]}
    for options in spec.get("variants", [spec]):
        every, blocks = options.get("checkpoint", 0), spec.get("num_layers")
        if blocks and every > blocks:
            flags.error(f"checkpoint {every} is more than the model's blocks ({blocks}); use fewer")
    return spec


def _model(given: argparse.Namespace, flags: argparse.ArgumentParser) -> dict:
    """What the flags say of the model, as parts of a spec; ends the program with one line if there can be none such."""
    try:
        if getattr(given, "model", None) is not None:
            own_models.package().parse(given.model)
            return own_models.part_of_spec(given.model, given.model_keys)
        shape = {key: getattr(given, key) for key in (*SIZE, "vocab_size")}
        ModelShape(**shape)
    except (ValueError, own_models.package().ModelError) as error:
        flags.error(str(error))
    return shape


def add_own(flags: argparse.ArgumentParser) -> None:
    """A model of one's own, instead of a shape."""
    group = flags.add_argument_group("model of one's own")
    group.add_argument(
        "--model",
        metavar="FILE:FUNCTION",
        help="a file and its function that builds it, or hf: and an architecture; the file is code that runs as you",
    )
    group.add_argument(
        "--model-keys", type=_keys, default={}, metavar="JSON", help='what it is built with, as {"layers": 12}'
    )


def _keys(text: str) -> dict:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f'{text!r} is no mapping in JSON, such as {{"layers": 12}}')
    return found


def add_shape(flags: argparse.ArgumentParser) -> None:
    """The model's shape: a size from config.yaml by name, or its numbers."""
    group = flags.add_argument_group("model")
    group.add_argument("--size", help="name of a size in config.yaml, instead of the four numbers below")
    group.add_argument("--d-model", type=arguments.positive, help="width of the residual stream")
    group.add_argument("--d-ff", type=arguments.positive, help="width of the feed-forward layer")
    group.add_argument("--num-layers", type=arguments.positive, help="number of blocks")
    group.add_argument("--num-heads", type=arguments.positive, help="attention heads of a block")
    group.add_argument("--vocab-size", type=arguments.positive, default=10_000, help="number of different tokens")


def resolve_shape(given: argparse.Namespace, flags: argparse.ArgumentParser) -> None:
    """Replace --size by its numbers; ends the program with one line if something is missing or unknown."""
    numbers = [name for name in SIZE if getattr(given, name) is not None]
    if getattr(given, "model", None) is not None:
        if given.size is not None or numbers:
            flags.error(f"give --model or --{(numbers or ['size'])[0].replace('_', '-')}, not both")
        return
    if getattr(given, "model_keys", {}):
        flags.error("--model-keys is of a model of one's own; give --model, too")
    if given.size is None:
        missing = [f"--{name.replace('_', '-')}" for name in SIZE if name not in numbers]
        if missing:
            also = ", or --model" if hasattr(given, "model") else ""
            flags.error(f"give --size, or also {', '.join(missing)}{also}")
        return
    if numbers:
        flags.error(f"give --size or --{numbers[0].replace('_', '-')}, not both")
    import yaml

    sizes = yaml.safe_load(CONFIG.read_text())["sizes"]
    if given.size not in sizes:
        flags.error(f"there is no size {given.size!r} in {CONFIG.name}; choose from {', '.join(map(str, sizes))}")
    for name in SIZE:
        setattr(given, name, sizes[given.size][name])
