"""Published figures beside ours: which were measured here too, what the GPUs' rates explain of the difference, and what
cannot be compared."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from stepscope.report.data.published_partners import Partner, Partners
from stepscope.report.data.published_truth import impossible
from stepscope.report.data.roofline import device_name
from stepscope.report.kit.compare import NOT_COMPARABLE, SAME
from stepscope.report.kit.formatting import known
from stepscope.tables import peaks
from stepscope.tables.columns import LAUNCHES
from stepscope.tables.published import UNITS
from stepscope.tables.reader import Tables

EXPLAINED, BETTER, WORSE = "explained by the hardware", "better here", "worse here"
FITS_HERE, FITS_THERE = "fits here only", "fits there only"
VERDICTS = (EXPLAINED, SAME, BETTER, WORSE, FITS_HERE, FITS_THERE, NOT_COMPARABLE)
TOLERANCE = 0.25  # beyond the ratios of peak rate and bandwidth: clocks, libraries, and how it was timed
# Within which what no GPU changes counts as the same.
MEMORY_TOLERANCE = 0.10
ROUNDED = 1e-4  # of a sum: how far it was printed


@dataclass(frozen=True)
class Beside:
    """A published figure beside ours of the same cell; what is compared is a cost: time, memory, or a rate's inverse.

    figure: the row of published.csv. partner: ours, in the same unit. published: its value in that unit, None where it
    ran out of memory. arithmetic, memory: our GPU's peak rate and bandwidth over its GPU's; None where one is not
    known. verdict: one of VERDICTS. reason: why it is not comparable; else empty.
    """

    figure: dict
    partner: Partner
    published: float | None
    arithmetic: float | None
    memory: float | None
    verdict: str
    reason: str = ""

    @property
    def ratio(self) -> float | None:
        """The published cost over ours: above 1 it takes more time or memory there. None unless both have a value."""
        if not (self.published and self.partner.value):
            return None
        found = self.published / self.partner.value
        return 1 / found if self.figure["quantity"] == "rate" else found

    @property
    def has_time(self) -> bool:
        """Whether it is a time or a rate, which the GPU's rates bear on."""
        return is_of_rates(self.figure)

    @property
    def is_of_kernel(self) -> bool:
        """Whether it is a rate: of a fused attention kernel, which keeps the scores off memory and multiplies."""
        return self.figure["quantity"] == "rate"


def is_of_rates(figure: Mapping) -> bool:
    """Whether a published figure depends on how fast the GPU is."""
    return figure["quantity"] in ("time", "rate")


def verdict_of(ratio: float, low: float, high: float, tolerance: float = TOLERANCE) -> str:
    """What to say of a published cost over ours where the hardware foretells a ratio from low to high.

    EXPLAINED within that range widened by the tolerance at either end; above it BETTER, below it WORSE.
    """
    if ratio > high * (1 + tolerance):
        return BETTER
    return WORSE if ratio < low / (1 + tolerance) else EXPLAINED


def rate_ratios(ours: object, other: object, precision: str) -> tuple[float | None, float | None]:
    """(peak rate in a precision, bandwidth) of our GPU over those of another, by their data sheets."""
    found = []
    for of in (lambda gpu: peaks.tflops(gpu, precision), peaks.bandwidth):
        own, theirs = of(ours), of(other)
        found.append(own / theirs if known(own) and known(theirs) and theirs > 0 else None)
    return found[0], found[1]


def in_our_unit(figure: Mapping) -> float | None:
    """A published value in the unit that it is compared in: ms, bytes, TFLOP/s …; None without a value."""
    value = figure["value"]
    return value * UNITS[figure["unit"] or ""][1] if known(value) else None


class Published:
    """The rows of published.csv, and those of them that one of our machines measured too."""

    def __init__(self, tables: Tables):
        self.tables = tables
        self.figures = tables["published"].to_dict("records")

    def beside(self, hardware: str) -> list[Beside]:
        """In the order of the files: every published figure that the machine has a value or a status of."""
        partners = Partners(self.tables, hardware)
        gpu = device_name(self.tables, hardware)
        return [_beside(each, found, gpu) for each in self.figures if (found := partners.of(each))]

    @property
    def untrue(self) -> list[tuple[dict, str]]:
        """(figure, why it cannot be true), in the order of the files."""
        return [(each, why) for each in self.figures if (why := impossible(each, in_our_unit(each)))]

    @property
    def slips(self) -> list[dict]:
        """The figures beside which a slip is quoted."""
        return [each for each in self.figures if "slip:" in (each["note"] or "")]


def _beside(figure: dict, partner: Partner, gpu: str | None) -> Beside:
    published = in_our_unit(figure)
    arithmetic, memory = rate_ratios(gpu, figure["gpu"], figure["precision"] or "")
    found = Beside(figure, partner, published, arithmetic, memory, "")
    if reason := _not_comparable(found):
        return replace(found, verdict=NOT_COMPARABLE, reason=reason)
    return replace(found, verdict=_verdict(found))


def _not_comparable(found: Beside) -> str:
    """Why nothing may be said of the pair; empty where something may."""
    figure, partner = found.figure, found.partner
    if impossible(figure, found.published):
        return "cannot be true"
    if figure["doubt"]:
        return figure["doubt"]
    if partner.differs:
        return partner.differs
    if found.has_time and found.ratio is not None:
        if not figure["gpu"]:
            return "GPU not named"
        if found.arithmetic is None or found.memory is None:
            return "no data sheet gives the rates of both machines"
        if partner.limited_by == LAUNCHES:
            return "here the host's launches fill the time, and the other host is not known"
        if partner.is_unsteady:
            return "our processes differ by more than chance"
    return ""


def _verdict(found: Beside) -> str:
    """Where it may be compared: a lost cell against ours, a number against what the hardware foretells."""
    if found.ratio is None:
        if found.published is None and found.partner.value is None:
            return SAME
        return FITS_HERE if found.published is None else FITS_THERE
    if found.has_time:
        rates = (found.arithmetic, found.arithmetic if found.is_of_kernel else found.memory)
        return verdict_of(found.ratio, *sorted(rates))
    tolerance = ROUNDED if found.figure["quantity"] == "sum" else MEMORY_TOLERANCE
    told = verdict_of(found.ratio, 1.0, 1.0, tolerance)
    return SAME if told == EXPLAINED else told


def counts(found: Iterable[Beside]) -> dict[str, int]:
    """Verdict → how many have it, in the order of VERDICTS; those that none has are left out."""
    verdicts = [each.verdict for each in found]
    return {word: verdicts.count(word) for word in VERDICTS if word in verdicts}


def reasons(found: Iterable[Beside]) -> dict[str, list[Beside]]:
    """Reason → those that are not comparable for it, the most frequent first."""
    groups: dict[str, list[Beside]] = {}
    for each in found:
        if each.verdict == NOT_COMPARABLE:
            groups.setdefault(each.reason, []).append(each)
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))
