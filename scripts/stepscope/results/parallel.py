"""ranks.csv, rank_memory.csv, collectives.csv and parallel_predicted.csv: a step on several
devices, from the records of the study of that name."""

from collections.abc import Iterator

import pandas as pd

from stepscope.model.formats import FORMATS
from stepscope.parallel import predicted
from stepscope.results.cells import MeasuredCell
from stepscope.trace.collectives import bus_bytes

DEVICES = (2, 4, 8)
PHASES = ("forward", "backward", "optimizer")


def ranks(cells: list[MeasuredCell]) -> list[dict]:
    """A row for each variant and rank: the parts of its step under the profiler."""
    return list(_rows(cells, "ranks"))


def memory(cells: list[MeasuredCell]) -> list[dict]:
    """A row for each variant and point of a step."""
    return list(_rows(cells, "memory"))


def collectives(cells: list[MeasuredCell]) -> list[dict]:
    """A row for each collective and size."""
    found = []
    for row in _rows(cells, "collectives"):
        size = row["bytes"]
        if row["collective"] == "copy":
            found.append(row)
            continue
        crossing = bus_bytes(row["collective"], size, size, row["devices"])
        found.append(row | {"bus": crossing / row["seconds"]})
    return found


def predictions(cells: list[MeasuredCell], series: pd.DataFrame) -> list[dict]:
    """A row for each strategy that stands in a cell as it is, and number of devices: the step that
    one device's phases and the collectives let expect, beside the measured one."""
    found = []
    for cell in cells:
        times = _times(cell, series)
        network = _network(cell)
        if not network or not {"alone", *PHASES} <= times.keys():
            continue
        one = _one_device(cell, times)
        plain = [each["name"] for each in cell.spec["variants"] if each["name"] == each["strategy"]]
        for strategy in plain:
            for devices in DEVICES:
                own = (one, network, strategy, devices)
                is_measured = devices == cell.spec["devices"]
                found.append(
                    _key(cell)
                    | {
                        "variant": strategy,
                        "devices": devices,
                        "predicted": predicted.step(*own),
                        "measured": times.get(strategy) if is_measured else None,
                        "hiding_batch": predicted.hiding_batch(*own),
                    }
                )
    return found


def _rows(cells: list[MeasuredCell], part: str) -> Iterator[dict]:
    for cell in cells:
        if cell.place["study"] == "parallel":
            for row in cell.summary.get("tables", {}).get(part, []):
                yield _key(cell) | {"devices": cell.spec["devices"]} | row


def _key(cell: MeasuredCell) -> dict:
    return {"machine": cell.place["machine"], "cell": cell.name}


def _times(cell: MeasuredCell, series: pd.DataFrame) -> dict[str, float]:
    """Seconds of the phases of one device's step, and of each variant's whole step."""
    own = series[(series["cell"] == cell.name) & (series["quantity"] == "time")]
    own = own[own["median"].notna()]
    of_one = own[own["variant"] == "alone"]
    phases = dict(zip(of_one["phase"], of_one["median"], strict=True))
    steps = own[own["phase"] == "step"]
    return phases | dict(zip(steps["variant"], steps["median"], strict=True))


def _network(cell: MeasuredCell) -> predicted.Network | None:
    rows = cell.summary.get("tables", {}).get("collectives", [])
    sums = [row for row in rows if row["collective"] == "all_reduce"]
    if not sums:
        return None
    largest = max(sums, key=lambda row: row["bytes"])
    slowed = largest.get("beside", largest["seconds"]) / largest["seconds"]
    copies = [row["seconds"] / row["bytes"] for row in rows if row["collective"] == "copy"]
    return predicted.Network(
        cell.spec["devices"],
        tuple(sorted((row["bytes"], row["seconds"]) for row in sums)),
        lost=largest.get("lost", 0.0),
        slowed=max(1.0, slowed),
        copying=copies[0] if copies else 0.0,
    )


def _one_device(cell: MeasuredCell, times: dict[str, float]) -> predicted.OneDevice:
    assert cell.shape is not None, "the study runs sizes alone"
    phases = [times[name] for name in PHASES]
    # Phases that are waited for one by one take together longer than a step, or shorter.
    forward, backward, optimizer = (each * times["alone"] / sum(phases) for each in phases)
    return predicted.OneDevice(
        forward=forward,
        backward=backward,
        optimizer=optimizer,
        batch=cell.spec["batch"],
        gradients=predicted.gradients_of(predicted.sizes_of(cell.shape)),
        gathered=0.5 if FORMATS[cell.spec["precision"]].is_autocast else 1.0,
    )
