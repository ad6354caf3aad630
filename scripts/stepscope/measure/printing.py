"""What a measuring program shows on the terminal."""


def configuration(spec: dict, note: str = "") -> None:
    """The spec, one key a line, and a note such as the parameter count."""
    width = max(map(len, spec))
    for key, value in spec.items():
        print(f"{key:<{width}}  {value}")
    if note:
        print(note)
    print(flush=True)


def series_header() -> None:
    """Heading of the lines that series() prints."""
    print(f"{'mode':<17}{'kind':<8}{'phase':<18}{'n':>4}{'mean':>11}{'std':>10}{'median':>11}   95 % interval (ms)")


def phases(found: list[dict]) -> None:
    """The heading and a line for each phase of a summary; nothing if there are none."""
    if found:
        series_header()
    for entry in found:
        series(entry["mode"], entry["kind"], entry["phase"], entry)


def series(mode: str, kind: str, phase: str, found: dict) -> None:
    """One line of statistics in milliseconds, or the status."""
    name = f"{mode:<17}{kind:<8}{phase:<18}"
    if found["status"] != "ok":
        print(f"{name}{found['status']}", flush=True)
        return
    mean, std, median, low, high = (
        1000 * (found[key] or 0.0) for key in ("mean", "std", "median", "ci_low", "ci_high")
    )
    print(
        f"{name}{found['count']:>4}{mean:>11.3f}{std:>10.3f}{median:>11.3f}   [{low:.3f}, {high:.3f}]",
        flush=True,
    )
