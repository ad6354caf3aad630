"""What a measuring program shows on the terminal. Standard library only."""

import statistics
from collections import defaultdict

from stepscope.measure.found import chosen
from stepscope.model.shape import ModelShape

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
    """Mean, standard deviation and median of each series without its warm-up, and each process's
    median, in ms."""
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in chosen(rows, warmup=False):
        found[_place(row)][row["process"]].append(1000 * row["seconds"])
    if not found:
        return
    width = max(map(len, found)) + 2
    print(f"{'(ms)':<{width}}{'n':>5}{'mean':>11}{'std':>10}{'median':>11}   of each process")
    for place, processes in found.items():
        samples = [one for own in processes.values() for one in own]
        medians = [statistics.median(own) for own in processes.values()]
        mean = statistics.fmean(samples)
        spread = statistics.stdev(samples) if len(samples) > 1 else 0.0
        median = statistics.median(medians)
        shown = f"{len(samples):>5}{mean:>11.4f}{spread:>10.4f}{median:>11.4f}"
        of_each = " ".join(f"{one:.4f}" for one in medians)
        print(f"{place:<{width}}{shown}   {of_each}")


def _place(one: dict) -> str:
    """Where a sample, a value or a status belongs, each word once."""
    words = [one.get(key) for key in ("variant", "mode", "kind", "length", "direction", "phase")]
    return " ".join(dict.fromkeys(str(word) for word in words if word is not None))
