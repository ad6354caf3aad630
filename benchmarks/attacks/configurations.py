"""Configuration files: the plan of a changed one, as the workflow makes it, and now and then what
Snakemake itself says of it."""

import copy
import datetime
import math
import random
import sys
from collections.abc import Callable
from pathlib import Path

import snakemake.cli
import yaml
from stepscope.config import ConfigError
from stepscope.config.config import validated
from stepscope.config.hardware import hardware_of
from stepscope.config.published import published_files
from stepscope.config.registry import Registry
from stepscope.config.studies import STUDIES
from stepscope.machine.identity import MachineError
from stepscope.yaml_files import read_yaml, unreadable

from attacks.cells import ROOT
from attacks.trying import Attempt
from attacks.values import holder_of, no_file, somewhere, spoilt_bytes

MOST_LINES = 60  # one for each thing that is wrong, which may stand in many places
SECONDS_OF_SNAKEMAKE = 60
VALUES = (
    *(None, True, False, 0, -1, 1, 3, 0.5, -0.0, 1e-9, 1e300, math.nan, math.inf, -math.inf),
    *(10**9, 10**15, -(10**15), 10**30, 2**63, 10**4000, datetime.date(2026, 2, 3), b"bytes"),
    *("", " ", "\n", "x\n", "a" * 64, "a" * 300, "../up", "/etc", "~", "#", "'", '"', "`id`"),
    *("$(touch outside)", "${HOME}", "{wild}", "%s", "<b>", "ü", "\x07", "-n", "--help", "1e3"),
    *("plan.json", "aggregate.log", "tables", "report", ".", "..", "a/b", "a b", "con", "nano"),
    *("cuda", "auto", "none", "fp32", "default", "no/such", "no/such.py:build", "/dev/zero"),
    *([], {}, [[]], [{}], {"": 1}, {"x": {}}, {1: 2}, {None: 1}, [None], [1, 1], [99], ["a"]),
    *(list(range(200)), list(range(1, 5001)), {f"a{number}": 1 for number in range(1000)}),
)
KEYS = ("", "a" * 64, "../up", "a/b", "plan.json", "tables", "{wild}", "ü", 1, None, True, 1.5)
LEVELS = 12  # of a bomb


def _levels(value: str) -> str:
    """Mappings of which each repeats the one above it nine times."""
    lines = ["a0: &a0 {x: 1}"]
    for level in range(1, LEVELS):
        others = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} {value.format(others)}")
    return "\n".join(lines) + "\n"


TEXTS = {
    "bomb": _levels("[{}]"),
    "bomb that merges": _levels("{{<<: [{}]}}"),
    "bomb with keys twice": _levels("{{<<: [{}], x: 1, x: 2}}"),
    "holds itself": "timing: &t {grid: *t}\n",
    "merges itself": "timing: &t {<<: *t}\n",
    "deep": "a: " + "[" * 20_000 + "]" * 20_000,
    "deep blocks": "".join(f"{' ' * level}a:\n" for level in range(3000)),
    "code": "a: !!python/object/apply:os.system ['touch outside']\n",
    "code of YTE": "__use_yte__: true\n__definitions__: [\"open('outside', 'w')\"]\n",
    "two documents": "device: cpu\n---\ndevice: cuda\n",
    "a list": "- device\n",
    "a word": "device\n",
    "nothing": "",
    "twice": "device: cpu\ntiming: {warmup: 1, warmup: 2}\ndevice: cpu\n",
    "octal": "threads: 010\n",
    "base 60": "threads: 1:30\n",
    "tab": "timing:\n\twarmup: 1\n",
    "Latin-1": "device: \xe9\n",
    "a key of a mapping": "? {a: b}\n: 1\n",
    "a set": "device: !!set {a, b}\n",
    "long key": f"{'k' * 100_000}: 1\n",
    "many digits": f"threads: {'9' * 5000}\n",
    "many keys": "".join(f"k{number}: 1\n" for number in range(50_000)),
    "preset": "preset: [a]\n",
    "preset above": "preset: ../../config\n",
}


def configurations(place: Path) -> Callable:
    """A function that makes an attempt with a configuration."""
    whole = read_yaml(ROOT / "config.yaml")

    def attempt(work: Path, draw: random.Random) -> Attempt:
        file = work / "given.yaml"
        way = draw.choice((*["inside"] * 6, "text", "text", "bytes", "no file"))
        if way == "text":
            how = draw.choice(list(TEXTS))
            file.write_bytes(TEXTS[how].encode("latin-1"))
        elif way == "inside":
            how, content = changed(whole, draw)
            file.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
        else:
            file.write_bytes((ROOT / "config.yaml").read_bytes())
            how = no_file(file, draw) if way == "no file" else ""
        if way == "bytes":
            how, made = spoilt_bytes(file.read_bytes(), draw)
            file.write_bytes(made)
        if draw.random() < (0.5 if way == "text" else 0.05):
            how = f"Snakemake: {how}"
            run, seconds = dry_run, SECONDS_OF_SNAKEMAKE
        else:
            run, seconds = planned, 30
        return Attempt(how=how, run=run, most_lines=MOST_LINES, seconds=seconds)

    return attempt


def changed(whole: dict, draw: random.Random) -> tuple[str, dict]:
    """(what, the configuration with it)."""
    config = copy.deepcopy(whole)
    path = somewhere(config, draw)
    holder, key = holder_of(config, path), path[-1]
    way = draw.choice(("another", "another", "another", "gone", "renamed", "more"))
    value = draw.choice(VALUES)
    named = ".".join(map(str, path))
    if way == "gone":
        del holder[key]
        return f"{named} is gone", config
    if way == "renamed" and isinstance(holder, dict):
        name = draw.choice(KEYS)
        holder[name] = holder.pop(key)
        return f"{named} is called {name!r:.40}", config
    if way == "more" and isinstance(holder, dict):
        name = draw.choice(KEYS)
        holder[name] = copy.deepcopy(holder[key])
        return f"{named} is there as {name!r:.40}, too", config
    holder[key] = copy.deepcopy(value)
    return f"{named} = {repr(value)[:40] if value != 10**4000 else 'many digits'}", config


def planned() -> None:
    """Plan given.yaml as the whole configuration, as the workflow does before anything runs."""
    if complaint := unreadable(Path("given.yaml")):
        sys.exit(complaint)
    try:
        config = validated(read_yaml(Path("given.yaml")), ROOT / "rules/config.schema.yaml")
        published_files(config, ROOT / "report/published")
        registry = Registry(config, hardware_of(config), STUDIES)
        assert registry.plan
    except (ConfigError, MachineError) as error:
        sys.exit(str(error))


def dry_run() -> None:
    """Have Snakemake plan it."""
    sys.argv = ["snakemake", "-n", "--quiet", "all", "--cores", "1"]
    sys.argv += ["--snakefile", str(ROOT / "Snakefile"), "--configfile", "given.yaml"]
    snakemake.cli.main(sys.argv[1:])
