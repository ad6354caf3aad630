"""What a measuring program shows on the terminal. Standard library only."""

import statistics
from collections import defaultdict

from stepscope.model.shape import ModelShape

from .found import chosen

LARGE = {"B": (2**20, "MiB"), "s": (1e-3, "ms"), "J": (1, "J"), "1": (1, "")}


def configuration(spec: dict) -> None:
    """The spec, one key a line, and the model's parameters."""
    width = max(map(len, spec))
    for key, value in spec.items():
        print(f"{key:<{width}}  {value}")
    if "num_layers" in spec:
        print(f"parameters: {ModelShape.of(spec).parameters / 1e6:,.3f} M")
    print(flush=True)


def summary(rows: list[dict], content: dict) -> None:
    """A line for each series of samples, then the values, and what is not ok."""
    series(rows)
    found: dict[tuple, list[float]] = defaultdict(list)
    for one in content["values"]:
        found[_place(one), one["quantity"], one["unit"]].append(one["value"])
    for (place, quantity, unit), numbers in found.items():
        scale, shown = LARGE.get(unit, (1, unit))
        number = f"{statistics.median(numbers) / scale:,.6g}"
        print(f"{place}: {quantity.replace('_', ' ')} {number} {shown}".rstrip())
    for one in content["statuses"]:
        if one["status"] != "ok":
            print(f"{_place(one)}: {one['status']}: {one['reason']}")
    print(end="", flush=True)


def series(rows: list[dict]) -> None:
    """Mean, standard deviation and median of each series without its warm-up, in ms."""
    found: dict[str, list[float]] = defaultdict(list)
    for row in chosen(rows, warmup=False):
        found[_place(row)].append(1000 * row["seconds"])
    if not found:
        return
    width = max(map(len, found)) + 2
    print(f"{'(ms)':<{width}}{'n':>5}{'mean':>11}{'std':>10}{'median':>11}")
    for place, times in found.items():
        mean = statistics.fmean(times)
        spread = statistics.stdev(times) if len(times) > 1 else 0.0
        median = statistics.median(times)
        print(f"{place:<{width}}{len(times):>5}{mean:>11.4f}{spread:>10.4f}{median:>11.4f}")


def _place(one: dict) -> str:
    """Where a sample, a value or a status belongs, each word once."""
    words = [one.get(key) for key in ("variant", "mode", "kind", "length", "direction", "phase")]
    return " ".join(dict.fromkeys(str(word) for word in words if word is not None))
