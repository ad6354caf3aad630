"""What several chapters make their parts of."""

from collections.abc import Sequence

from stepscope.report.kit import formatting


def present(*found):
    """Those that are there, of findings or of what is shown."""
    return tuple(each for each in found if each)


def count_range(values: Sequence[float]) -> str:
    """`12 to 48`, whole numbers."""
    return _range([formatting.count(which(values)) for which in (min, max)])


def parameter_range(values: Sequence[float]) -> str:
    """`128.6 M to 3.41 B`."""
    return _range([formatting.parameters(which(values)) for which in (min, max)])


def end_range(values: Sequence[float]) -> str:
    """`19.0 to 325`: the first and the last."""
    return _range([formatting.significant(value) for value in (values[0], values[-1])])


def percent_range(shares: Sequence[float]) -> str:
    """`26 to 78 %`, of shares of one."""
    return formatting.value_range([100 * share for share in shares], 2, " %")


def _range(both: list[str]) -> str:
    return " to ".join(dict.fromkeys(both))
