"""What a measuring program shows on the terminal. Standard library only."""

import statistics

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


def summary(spec: dict, rows: list[dict], content: dict) -> None:
    """A line for each series of samples, then the values, what is not ok, and whether variants agree."""
    series(rows)
    for line in [*_values(content["values"]), *_statuses(content["statuses"])]:
        print(line)
    for name, check in content.get("checks", {}).items():
        if not check["same"]:
            print(f"{name}: computes something else: {check['difference']} is more than {check['tolerance']:.3g}")
    for name, about in content["variants"].items():
        if about["limited"] in ("launches", "gpu"):
            print(f"{name}: limited by {about['limited']}")
    print(end="", flush=True)


def series(rows: list[dict]) -> None:
    """Mean, standard deviation and median of each series without its warm-up, and each process's median, in ms."""
    found: dict[tuple, dict[int, list[float]]] = {}
    for row in rows:
        if not row["warmup"]:
            words = [row.get(key) for key in ("variant", "mode", "kind", "length", "direction", "phase")]
            key = tuple(dict.fromkeys(str(word) for word in words if word is not None))
            found.setdefault(key, {}).setdefault(row["process"], []).append(row["seconds"])
    if not found:
        return
    width = max(len(" ".join(key)) for key in found) + 2
    print(f"{'(ms)':<{width}}{'n':>5}{'mean':>11}{'std':>10}{'median':>11}   of each process")
    for key, processes in found.items():
        samples = [1000 * one for own in processes.values() for one in own]
        medians = [1000 * statistics.median(own) for own in processes.values()]
        spread = statistics.stdev(samples) if len(samples) > 1 else 0.0
        numbers = (
            f"{len(samples):>5}{statistics.fmean(samples):>11.4f}{spread:>10.4f}{statistics.median(medians):>11.4f}"
        )
        print(f"{' '.join(key):<{width}}{numbers}   {' '.join(f'{one:.4f}' for one in medians)}")


def _values(values: list[dict]) -> list[str]:
    """The values, the median of processes."""
    found: dict[tuple, list[float]] = {}
    for one in values:
        place = [one[key] for key in ("variant", "mode", "phase", "length", "direction")]
        key = (" ".join(str(word) for word in dict.fromkeys(place) if word is not None), one["quantity"], one["unit"])
        found.setdefault(key, []).append(one["value"])
    lines = []
    for (place, quantity, unit), numbers in found.items():
        scale, shown = LARGE.get(unit, (1, unit))
        name = quantity.replace("_", " ")
        lines.append(f"{place}: {name} {statistics.median(numbers) / scale:,.6g} {shown}".rstrip())
    return lines


def _statuses(statuses: list[dict]) -> list[str]:
    lines = []
    for one in statuses:
        if one["status"] != "ok":
            place = [one[key] for key in ("variant", "mode", "length", "direction") if one[key] is not None]
            lines.append(f"{' '.join(map(str, dict.fromkeys(place)))}: {one['status']}: {one['reason']}")
    return lines
