"""The labels under which results stand: the machine behind each, and which machine its records say it is.

Nobody can see the driver of a cluster's node from the machine that plans. What holds is what the newest record says:
a cell that was measured on another GPU type, driver or version is stale.
"""

import datetime
import json
from dataclasses import dataclass, field
from pathlib import Path

TOOLS = "tools"  # the part of an identity that a study has for itself
PACKAGES = "packages"  # the part that a cell has for itself: those of Python that its model imports


@dataclass(frozen=True)
class Hardware:
    """A label, and the machine behind it.

    `here`: the machine at hand. `measured`: False to use the results that are there and plan nothing. `expect`: what
    the name of its GPU or CPU has to contain. `asked`: what a job asks Slurm for. `python`: the interpreter that
    measures there, None for the one that runs the workflow.
    """

    label: str
    device: str
    threads: int
    here: bool = True
    measured: bool = True
    expect: str | None = None
    asked: dict = field(default_factory=dict)
    python: str | None = None

    @property
    def by_jobs(self) -> bool:
        """Whether its cells are measured by jobs of a cluster."""
        return self.measured and not self.here


def is_expected(name: str, expect: str) -> bool:
    """Whether a GPU's or CPU's name contains what is expected, in any case."""
    return expect.lower() in name.lower()


def read_records(results: Path, names: list[str], expect: str | None = None) -> dict[str, dict]:
    """Cell → its record, for those that are there and whole enough to say where they were measured, and when.

    Left out are those of a machine that is not the expected one, and those from the future: one of them, wrong
    itself, would otherwise put all others in the wrong.
    """
    found, latest = {}, (datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)).isoformat()
    for name in names:
        try:
            record = json.loads((results / name / "record.json").read_bytes())
            machine, is_past = record["machine"], record["provenance"]["started"] < latest
            expected = expect is None or is_expected(str(machine.get("gpu") or machine.get("cpu")), expect)
            machine["device"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        if is_past and expected:
            found[name] = record
    return found


def newest(studies: dict[str, list[dict]]) -> dict[str, dict | None]:
    """Study → the identity that its cells have to have: the newest record's of all, with the study's own tools.

    Of packages that only some cells use it has all, each as of the newest record that has it. `studies` holds the
    records of one label. None for every study if there is no record at all.
    """
    every = sorted((record for records in studies.values() for record in records), key=_started)
    if not every:
        return dict.fromkeys(studies)
    common = {key: value for key, value in every[-1]["machine"].items() if key not in (TOOLS, PACKAGES)}
    packages: dict = {}
    for record in every:
        packages |= record["machine"].get(PACKAGES, {})
    common |= {PACKAGES: packages} if packages else {}
    return {study: common | _tools(records) for study, records in studies.items()}


def _tools(records: list[dict]) -> dict:
    if not records:
        return {}
    machine = max(records, key=_started)["machine"]
    return {TOOLS: machine[TOOLS]} if TOOLS in machine else {}


def _started(record: dict) -> str:
    return record["provenance"]["started"]


def first_difference(found: dict, expected: dict) -> tuple[str, object, object] | None:
    """(key, value found, value expected) of the first key in which two mappings differ; None if they are the same."""
    for key in sorted({*found, *expected}):
        if found.get(key) != expected.get(key):
            return key, found.get(key), expected.get(key)
    return None


def from_newest(found: dict, newest: dict) -> str | None:
    """In what an identity differs from that of the label's newest record, in words; None if in nothing.

    Of packages those count that the identity itself has.
    """
    used = {name: version for name, version in newest.get(PACKAGES, {}).items() if name in found.get(PACKAGES, {})}
    rest = {key: value for key, value in newest.items() if key != PACKAGES}
    difference = first_difference(found, rest | ({PACKAGES: used} if used else {}))
    return difference and "{} is {!r} there, {!r} on the newest".format(*difference)
