"""From the configuration's grids to cells: one cell is one point, measured by one job."""

import functools
import itertools
import json
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from stepscope import axes
from stepscope.machine.labels import Hardware

from . import ConfigError, profilers, recordings

# The value of an option that stands neither in a cell's path nor in its spec.
NEUTRAL = {
    **axes.NEUTRAL,
    **profilers.NSYS_NEUTRAL,
    **recordings.USUAL,
    "mask": axes.FULL,
    "heads": 0,  # no dimension of heads
}


def changed(options: dict) -> dict:
    """The options that are not neutral, and are there at all."""
    return {
        name: value
        for name, value in options.items()
        if value is not None and value != NEUTRAL.get(name)
    }


@dataclass(frozen=True)
class Cell:
    """One point of a study's grid.

    `name` is its folder below results/, `spec` all that the measuring program is told, `program`
    its file in scripts/.
    """

    name: str
    study: str
    size: str | None
    program: str
    spec: dict

    @property
    def label(self) -> str:
        """The machine that the cell belongs to."""
        return self.name.partition("/")[0]

    @functools.cached_property
    def json(self) -> str:
        """The spec as JSON, sorted by name: the same for the same spec."""
        return json.dumps(self.spec, sort_keys=True)


@dataclass(frozen=True, kw_only=True)
class Study:
    """One kind of measurement.

    name: its key in the configuration, and the folder of its cells.
    program: the rule that measures a cell, and its file in scripts/.
    axes: what an entry of its grid may name. A study with `size` among them runs the model.
    expand: from the configuration to its cells.
    samples_are_series: whether its samples are times, which become series, and by which two
        versions of the code can be compared; else a module of results/ makes its tables, of records
        or of analyses.
    start_seconds: what a process takes on a GPU besides its steps; a rough figure, for the plan.
    variant_seconds: the same, of each variant and length.
    analysis: the rule and the program that take a cell's raw output apart, where it has any.
    tools: the programs that a cell uses on a device. It is stale when one appears or changes.
    """

    name: str
    program: str
    axes: tuple[str, ...]
    expand: Callable[["Target"], list[Cell]]
    samples_are_series: bool = False
    start_seconds: float
    variant_seconds: float = 0
    analysis: str | None = None
    tools: Callable[[str], tuple[str, ...]] = lambda device: ()

    @property
    def file(self) -> str:
        """The name of its program's file."""
        return f"{self.program}.py"

    def cells(self, config: dict, machine: Hardware) -> list[Cell]:
        """The cells for a machine, in the configuration's order. Raises ConfigError for a grid that
        is wrong."""
        return self.expand(Target(self, config, machine))


@dataclass(frozen=True)
class Target:
    """What a study's cells are planned for: the whole configuration, and a machine."""

    study: Study
    config: dict
    machine: Hardware

    @property
    def device(self) -> str:
        """The machine's."""
        return self.machine.device

    @property
    def settings(self) -> dict:
        """The study's part of the configuration."""
        return self.config[self.study.name]

    def cell(self, place: str, spec: dict, size: str | None = None) -> Cell:
        """The study's cell in the folder `place`; `spec` without what all cells have,
        what is neutral in it being left out."""
        study = self.study.name
        check_blocks(spec, f"config key {study}: {place}")
        of_all = {
            "seed": self.config["model"]["seed"],
            "threads": self.machine.threads,
            "device": self.device,
        }
        return Cell(
            name=f"{self.machine.label}/{study}/{place}",
            study=study,
            size=size,
            program=self.study.file,
            spec={"study": study, **changed(spec), **of_all},
        )


def check_blocks(spec: dict, key: str) -> None:
    """Raise ConfigError for a checkpoint of more blocks than the model has; of a model of one's own
    they are counted when it is built."""
    for options in (spec, *spec.get("variants", [])):
        every = options.get("checkpoint", 0)
        if isinstance(every, int) and every > spec.get("num_layers", every):
            raise ConfigError(
                f"{key}: checkpoint {every} is more than the model's blocks"
                f" ({spec['num_layers']}); use fewer"
            )


def words_of(spec: dict) -> list[str]:
    """A spec as the flags of its measuring program: {"d_model": 512} is `--d-model`, `512`. Lists
    are JSON."""
    words: list[str] = []
    for key, value in spec.items():
        if key != "study":
            is_json = isinstance(value, list | dict)
            text = json.dumps(value, separators=(",", ":")) if is_json else str(value)
            words += [f"--{key.replace('_', '-')}", text]
    return words


def points(entry: dict, axes: Iterable[str]) -> list[dict]:
    """The points of a grid's entry, in its order: the product of its lists."""
    names = [axis for axis in axes if axis in entry]
    products = itertools.product(*(entry[name] for name in names))
    return [dict(zip(names, values, strict=True)) for values in products]


def named(changes: Iterable[dict], name_of: Callable[[dict], str], key: str) -> list[dict]:
    """Changes as variants, each with its name. Raises ConfigError as check_names() does."""
    variants = [{"name": name_of(change)} | change for change in changes]
    check_names([variant["name"] for variant in variants], key)
    return variants


def check_names(names: list[str], key: str) -> None:
    """Raise ConfigError, with one line, for a name that several variants have."""
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{key}: {name} is there twice; remove one")


def check_known(name: str, known: Iterable[str], key: str, kind: str = "size") -> None:
    """Raise ConfigError, with one line, for a name that is not among those known of a kind."""
    if name not in known:
        names = ", ".join(known) or "none"
        told = f"there is no {kind} {name!r}; add it to the configuration, or choose from {names}"
        raise ConfigError(f"{key}: {told}")


def each_once(cells: Iterable[Cell]) -> list[Cell]:
    """The cells in their order; one that several entries of a grid name is one cell.

    Raises ConfigError if they do not say the same of it.
    """
    found: dict[str, Cell] = {}
    for cell in cells:
        if found.setdefault(cell.name, cell).spec != cell.spec:
            key = next(key for key in cell.spec if cell.spec[key] != found[cell.name].spec.get(key))
            raise ConfigError(
                f"config key {cell.study}.grid: {cell.name} is there with two {key}; make one of"
                " them"
            )
    return list(found.values())


def options_path(options: dict) -> str:
    """`/batch=64/window=128` for the options that are not neutral; empty if all are."""
    return "".join(f"/{key}={value}" for key, value in options.items())


def command_of(program: str, spec: dict) -> str:
    """What a person types in the project's folder to measure this spec."""
    return shlex.join(["python", str(Path("scripts") / program), *words_of(spec)])
