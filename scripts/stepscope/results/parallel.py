"""collectives.csv and parallel_predicted.csv: a step on several devices, from the records of the
study of that name."""

import itertools
from collections.abc import Iterator

from pandas import DataFrame

from stepscope.model.formats import FORMATS
from stepscope.parallel import predicted
from stepscope.trace.collectives import bus_bytes

from .cells import MeasuredCell, of_study, told
from .tables import where

DEVICES = (2, 4, 8)
COPY = "copy"  # stands among the collectives of a record, and is none
PHASES = ("forward", "backward", "optimizer")


def collectives(cells: list[MeasuredCell]) -> Iterator[dict]:
    """Rows with the bandwidth that crosses a link, as nccl-tests counts."""
    for row in told(cells, "tables", "collectives"):
        if row["collective"] != COPY:
            size = row["bytes"]
            crossing = bus_bytes(row["collective"], size, size, row["devices"])
            yield row | {"bus": crossing / row["seconds"]}


def predictions(cells: list[MeasuredCell], series: DataFrame) -> Iterator[dict]:
    """A row for each strategy that stands in a cell as it is, and number of devices: the step that
    one device's phases and the collectives let expect, beside the measured one. series: by
    series.of()."""
    for cell in of_study(cells, "parallel"):
        network, times = _network(cell), _times(cell, series)
        if network is None or not {"alone", *PHASES} <= times.keys():
            continue
        one = _one_device(cell, times)
        names = [name for name, each in cell.variants.items() if name == each["strategy"]]
        counts = sorted({*DEVICES, cell.spec["devices"]})
        for strategy, devices in itertools.product(names, counts):
            on = (network, strategy, devices)
            is_measured = devices == cell.spec["devices"]
            yield cell.key | {
                "variant": strategy,
                "devices": devices,
                "predicted": predicted.step(one, *on),
                "strong": predicted.step(one.with_batch(one.batch / devices), *on),
                "measured": times.get(strategy) if is_measured else None,
                "hiding_batch": predicted.hiding_batch(one, *on),
            }


def _times(cell: MeasuredCell, series: DataFrame) -> dict[str, float]:
    """Seconds of the phases of one device's step, and of each variant's whole step."""
    own = where(series, cell=cell.name, quantity="time").dropna(subset="median")
    phases = where(own, variant="alone").set_index("phase")["median"]
    steps = where(own, phase="step").set_index("variant")["median"]
    return phases.to_dict() | steps.to_dict()


def _network(cell: MeasuredCell) -> predicted.Network | None:
    """What the cell's collectives say of its links; None where none was measured."""
    rows = told([cell], "tables", "collectives")
    sums = [row for row in rows if row["collective"] == "all_reduce"]
    if not sums:
        return None
    largest = max(sums, key=lambda row: row["bytes"])
    slowed = largest.get("beside", largest["seconds"]) / largest["seconds"]
    copies = [row["seconds"] / row["bytes"] for row in rows if row["collective"] == COPY]
    return predicted.Network(
        cell.spec["devices"],
        tuple(sorted((row["bytes"], row["seconds"]) for row in sums)),
        lost=largest.get("lost", 0.0),
        slowed=max(1.0, slowed),
        copying=copies[0] if copies else 0.0,
    )


def _one_device(cell: MeasuredCell, times: dict[str, float]) -> predicted.OneDevice:
    """Seconds and bytes of one device's step, as predictions of several start from."""
    assert cell.shape is not None, "the study runs sizes alone"
    phases = [times[name] for name in PHASES]
    # Phases that are waited for one by one take together longer than a step, or shorter.
    forward, backward, optimizer = (each * times["alone"] / sum(phases) for each in phases)
    return predicted.OneDevice(
        forward=forward,
        backward=backward,
        optimizer=optimizer,
        batch=cell.spec["batch"],
        gradients=predicted.gradients_of(cell.shape),
        gathered=0.5 if FORMATS[cell.spec["precision"]].is_autocast else 1.0,
    )
