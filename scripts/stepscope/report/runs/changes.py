"""What changed between two runs besides the times: machine, driver, software, code, settings."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stepscope.report.kit.formatting import commit, gib
from stepscope.report.runs.judging import HOW_OFTEN, Results

CODE = "code that measured"
UNKNOWN = "not known"
# What is told of a record's machine and versions, in the order in which it is shown: words → where it stands.
_HARDWARE = {
    "GPU": "gpu",
    "card (UUID)": "gpu_uuid",
    "power limit (W)": "power_limit_w",
    "processor": "cpu",
    "driver": "driver",
}
_VERSIONS = {"CUDA": "cuda", "torch": "torch", "triton": "triton", "Python": "python", "einops": "einops"}


@dataclass(frozen=True)
class Change:
    """A fact that differs: its value in the baseline and in the results, and in how many of the common cells."""

    fact: str
    before: str
    after: str
    cells: int


def changes(before: Results, after: Results, common: list[tuple[str, str]]) -> list[Change]:
    """Every fact that differs in a common cell; what differs in most cells first within a fact."""
    found: dict[str, Counter[tuple[str, str]]] = {}
    for old, new in common:
        records = before.records[old], after.records[new]
        facts = [dict(facts_of(record)) for record in records]
        for fact in dict.fromkeys([*facts[0], *facts[1]]):
            values = tuple(each.get(fact, UNKNOWN) for each in facts)
            if values[0] != values[1]:
                found.setdefault(fact, Counter())[values] += 1
    return [Change(fact, *values, count) for fact, seen in found.items() for values, count in seen.most_common()]


def facts_of(record: Mapping) -> Iterator[tuple[str, str]]:
    """(fact, value) of a record, as text."""
    provenance = record["provenance"]
    hardware, versions = provenance["hardware"], provenance["versions"]
    for fact, key in _HARDWARE.items():
        if hardware.get(key) is not None:
            yield fact, str(hardware[key])
    if size := hardware.get("gpu_memory_bytes"):
        yield "GPU memory (GiB)", gib(size)
    for fact, key in _VERSIONS.items():
        if versions.get(key) is not None:
            yield fact, str(versions[key])
    for tool, version in (record["machine"].get("tools") or {}).items():
        yield str(tool), str(version)
    yield CODE, str(record["code"])
    if provenance.get("git_commit"):
        yield "commit", commit(provenance["git_commit"])
    for key, value in sorted(provenance["settings"].items()):
        yield f"setting: {key}", str(value)
    for key in sorted(HOW_OFTEN.intersection(record["spec"])):
        yield f"configuration: {key}", str(record["spec"][key])
