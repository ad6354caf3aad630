"""The checked configuration: defaults, numbers in one spelling, and what a user reads when
something is wrong."""

import copy
import math
import os
from pathlib import Path

import pytest
from common import ROOT, one_line
from snakemake.cli import parse_config
from snakemake.utils import update_config
from stepscope.config import ConfigError
from stepscope.config.config import validated
from stepscope.config.run import refused
from stepscope.model.chosen import PACKAGES, names
from stepscope.yaml_files import read_yaml, unreadable

SCHEMA = ROOT / "rules/config.schema.yaml"
NANO = {"d_model": 128, "d_ff": 512, "num_layers": 4, "num_heads": 4}
GRID_ENTRY = {"size": ["nano"], "context": [64], "precision": ["fp32"]}


def grid(**over):
    return {"timing": {"grid": {"cpu": [{**GRID_ENTRY, **over}]}}}


def laid_over(ROOT, over):
    """The project's configuration with these keys."""
    config = read_yaml(ROOT / "config.yaml")
    update_config(config, over)
    return config


def test_missing_keys_get_the_schemas_defaults():
    given = {"sizes": {"nano": NANO}, "timing": {"warmup": {"cpu": 7}}}
    before = copy.deepcopy(given)
    filled = validated(given, SCHEMA)
    assert given == before
    assert filled["device"] == filled["threads"] == "auto"
    assert filled["model"] == {"vocab_size": 10000, "batch": 4, "seed": 0}
    assert filled["timing"]["processes"] == {"cuda": 3, "cpu": 3}
    assert filled["timing"]["warmup"] == {"cuda": 2, "cpu": 7}
    assert filled["timing"]["steps"]["cuda"] == {"min": 3, "max": 20, "seconds": 0.5}
    assert filled["timing"]["grid"] == {"cuda": [], "cpu": []}
    assert filled["ceilings"]["cuda"]["precision"] == ["fp32", "tf32", "bf16", "fp16"]


MISTAKES = {
    "a word of none": (
        {"device": "gpu"},
        ["device", "'gpu' is not one of ['auto', 'cuda', 'cpu']"],
    ),
    "a misspelt key": (
        {"modle": {}},
        ["'modle' is not a usable name", "known keys: preset, measure"],
    ),
    "a key that is a number": ({1: 2}, ["(top level)", "1 is not a usable name"]),
    "a limit for no study": (
        {"limits": [{"minutes": 1}, {"study": ["timing", "speed"]}]},
        ["limits.1.study.1", "'speed' is not one of ['timing', 'ladder'"],
    ),
    "not above zero": (
        {"timing": {"steps": {"cpu": {"seconds": 0}}}},
        ["timing.steps.cpu.seconds", "0 is less than or equal to the minimum of 0"],
    ),
    "above the most": (
        {"timing": {"time_limit": 10**15}},
        ["timing.time_limit", f"{10**15} is greater", "10080"],
    ),
    "a size without a key": (
        {"sizes": {"a": {"d_model": 2, "num_layers": 1, "num_heads": 1}}},
        ["sizes.a", "'d_ff' is a required property"],
    ),
    "no number": (
        {"timing": {"time_limit": math.nan}},
        ["timing.time_limit", "a number that is not finite"],
    ),
    "5000 digits": ({"model": {"seed": 16**5000}}, ["model.seed", "has hundreds of digits"]),
    "no threads": (
        {"threads": 0},
        ["threads", "0 is less than the minimum of 1", "auto is one on a GPU"],
    ),
    "a name that no file can have": ({"sizes": {"a" * 65: NANO}}, ["sizes", "at most 64 letters"]),
    "a new line in a name": ({"sizes": {"a\n": NANO}}, ["sizes", "'a\\n'", "letters, digits"]),
    "an axis that is no list": (
        grid(size="nano"),
        ["timing.grid.cpu.0.size", "'nano' is not of type 'array'"],
    ),
}


@pytest.mark.parametrize("over, shown", MISTAKES.values(), ids=MISTAKES)
def test_each_mistake_is_one_line_with_key_value_and_remedy(over, shown):
    with pytest.raises(ConfigError) as error:
        validated(laid_over(ROOT, over), SCHEMA)
    line = str(error.value)
    assert line.startswith(
        f"config key {shown[0]}: " if shown[0] in line.split(":")[0] else "config key (top level): "
    )
    assert line.isprintable() and len(line) < 600
    assert [part for part in shown if part not in line] == [], line


def resolved(part, root):
    """A part of the schema together with what it refers to."""
    return (
        {**root["$defs"][part["$ref"].removeprefix("#/$defs/")], **part} if "$ref" in part else part
    )


def parts(part, root, path=()):
    """(path, part) of all that the schema allows, by what leads to it in a configuration; a list's
    items are 0."""
    part = resolved(part, root)
    yield path, part
    below = [
        *part.get("properties", {}).items(),
        *(("mine", one) for one in part.get("patternProperties", {}).values()),
    ]
    below += [(0, part["items"])] if "items" in part else []
    for key, one in below:
        yield from parts(one, root, (*path, key))
    for one in part.get("oneOf", []):
        yield from parts(one, root, path)


def test_every_number_has_a_least_and_a_most(schema):
    found = [
        (path, part)
        for path, part in parts(schema, schema)
        if part.get("type") in ("integer", "number")
    ]
    assert {
        ("threads",),
        ("sizes", "mine", "num_layers"),
        ("timing", "steps", "cpu", "seconds"),
    } <= {path for path, _ in found}
    open_ended = [
        path
        for path, part in found
        if "maximum" not in part or not {"minimum", "exclusiveMinimum"} & set(part)
    ]
    assert open_ended == []


def test_every_key_has_a_description(schema):
    """Of its own, or that of its list's items."""
    found = list(parts(schema, schema))
    described = {path for path, part in found if part.get("description")}
    keys = {path for path, _ in found if path and path[-1] not in ("mine", 0)}
    assert {("timing", "grid", "cuda", 0, "window"), ("timing", "steps", "cpu", "min")} <= keys
    assert [path for path in keys if not {path, (*path, 0), (*path, 0, 0)} & described] == []


@pytest.mark.parametrize(
    "written, key, value",
    [
        ("hardware={gpu: {measure: false}}", ("hardware", "gpu", "measure"), False),
        ("hardware={gpu: {threads: 4}}", ("hardware", "gpu", "threads"), 4),
        ("timing={time_limit: 7}", ("timing", "time_limit"), 7),
        ("paired={a: b}", ("paired", "a"), "b"),
    ],
)
def test_what_stands_inside_a_mapping_of_the_command_line_is_no_text(written, key, value):
    config = laid_over(ROOT, parse_config([written]))
    found = validated(config, SCHEMA)
    for part in key:
        found = found[part]
    assert found == value and type(found) is type(value)


def test_a_number_is_the_same_in_each_spelling():
    def spelt(one):
        steps = {"min": one + one, "max": one + one, "seconds": one}
        return {"sizes": {"nano": NANO}, "timing": {"steps": {"cpu": steps}, "time_limit": one}}

    assert repr(validated(spelt(2.0), SCHEMA)) == repr(validated(spelt(2), SCHEMA))


def test_a_configuration_without_sizes_says_so():
    for config in ({}, {"sizes": {}}):
        assert "sizes" in one_line(ConfigError, validated, config, SCHEMA)


@pytest.mark.parametrize("option", PACKAGES)
def test_the_configuration_takes_what_an_options_package_holds(option):
    """A rung of the ladder with each value, and with one that no module has."""

    def with_rung(value):
        rungs = {"cpu": [{option: value}]}
        return validated({"sizes": {"nano": NANO}, "ladder": {"rungs": rungs}}, SCHEMA)

    for name in names(option):
        assert with_rung(name)["ladder"]["rungs"]["cpu"] == [{option: name}]
    with pytest.raises(ConfigError, match=f"ladder.rungs.cpu.0.{option}: 'magic' is not one of"):
        with_rung("magic")


UNREADABLE = {
    "a bracket": (b"a: 1\nb: [1,\n", ", line 3: did not find expected node content"),
    "a tab": (b"timing:\n\tx: 1\n", ", line 2: found character that cannot start any token"),
    "binary": (bytes(range(256)), " is not usable YAML: 'utf-8' codec can't decode byte 0x80"),
    "control characters": (b"a: \x01", " is not usable YAML: "),
    "a mapping that holds itself": (
        b"a: 1\nb: &x {b: *x}\n",
        " is not usable YAML: more than 100,000 values, what aliases repeat counted too",
    ),
    "10 to the 9 values by aliases": (
        b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b"*a%d, " % (n - 1) * 10) for n in range(1, 9)),
        " is not usable YAML: more than 100,000 values, what aliases repeat counted too",
    ),
    "a key twice": (
        b"a: 1\nb: {c: 1, d: 2,\n  c: 3}\n",
        ", line 3: key 'c' is there twice; remove one",
    ),
    "a number in base 8": (
        b"a: [8,\n 010]\n",
        ", line 2: 010 is not read as it looks; write it in decimal",
    ),
    "a number in base 60": (b"a: 1:30\n", ", line 1: 1:30 is not read as it looks"),
    "a list": (b"- 1\n", " holds no keys at its top level"),
    "Python": (
        b"a: !!python/object/apply:os.system [id]\n",
        ", line 1: could not determine a constructor",
    ),
    "levels beyond the parser's stack": (
        b'{"a":' * 100_000,
        " is not usable YAML: more than 100 levels",
    ),
    "a key that is a mapping": (b"? {a: b}\n: 1\n", ", line 1: found unhashable key"),
    "a number of 5000 digits": (b"a: " + b"9" * 5000, " is not usable YAML: Exceeds the limit"),
    "a day that is none": (b"a: 2026-02-31\n", " is not usable YAML: day is out of range"),
}


@pytest.mark.parametrize("content, said", UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_read_is_one_line(content, said, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    line = unreadable(path)
    assert line.startswith(f"{path}{said}"), line
    assert line.isprintable() and len(line) < 300


def test_all_that_is_wrong_with_a_file_is_said_at_once(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("a: 1\na: 2\nb: &x [007]\nc: *x\n")
    assert unreadable(path).splitlines() == [
        f"{path}, line 2: key 'a' is there twice; remove one",
        f"{path}, line 3: 007 is not read as it looks; write it in decimal",
    ]


def test_all_that_is_wrong_with_a_configuration_is_said_at_once():
    wrong = {
        "sizes": {"nano": NANO},
        "devise": "cpu",
        "modle": {},
        "threads": {},
        "timing": {"time_limit": 0, "grid": {"cpu": [GRID_ENTRY | {"context": [0, -1]}]}},
    }
    with pytest.raises(ConfigError) as refused:
        validated(wrong, SCHEMA)
    lines = str(refused.value).splitlines()
    assert [line.partition(": ")[0].removeprefix("config key ") for line in lines] == [
        "(top level)",
        "(top level)",
        "threads",
        "timing.grid.cpu.0.context.0",
        "timing.grid.cpu.0.context.1",
        "timing.time_limit",
    ]
    assert "'devise' is not" in lines[0] and "'modle' is not" in lines[1]


def test_what_is_no_file_or_endless_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "large", "wb") as file:
        file.truncate(2**40)
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        assert unreadable(path) == f"{path} is no file; give one"
    missing = f"{tmp_path}/no.yaml cannot be read: No such file or directory; name another file"
    assert unreadable(tmp_path / "no.yaml").startswith(missing)
    assert "more than 1,000,000 bytes" in unreadable(tmp_path / "large")
    assert "Too many levels of symbolic links" in unreadable(tmp_path / "loop")


def test_of_a_command_line_the_files_are_looked_at_and_nothing_else(tmp_path):
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("device: cpu\n")
    bad.write_text("a: 1\na: 2\n")
    there = ["-d", str(tmp_path)]
    plain = [*there, "-np", "--cores", "1", "--config", "a=b", "--configfile", str(good)]
    assert refused(plain) is refused([str(bad), *there, "--config", str(bad)]) is None
    for words in (["--configfiles", str(good), str(bad), "-n"], [*plain, f"--configfile={bad}"]):
        assert refused(words) == unreadable(bad) is not None


def test_of_many_complaints_the_first_are_told():
    with pytest.raises(ConfigError) as refused:
        validated({"sizes": {"nano": NANO}} | {f"k{number}": 1 for number in range(50_010)}, SCHEMA)
    *lines, last = str(refused.value).splitlines()
    assert len(lines) == 50 and last == "and 49960 more; correct these first"
