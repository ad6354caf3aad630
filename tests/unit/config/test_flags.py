"""From flags to a spec, and what is refused in one line."""

import importlib
import itertools
import json
import shlex
import sys

import pytest
from common import picked
from stepscope.config.grid import words_of

SHAPE = "--d-model 8 --d-ff 16 --num-layers 2 --num-heads 2"
NANO = {"d_model": 128, "d_ff": 512, "num_layers": 4, "num_heads": 4, "vocab_size": 10_000}
RUNNING = {"seed": 0, "threads": 1, "device": "cpu"}


def parsed(program, words):
    """The spec that a program reads."""
    return importlib.import_module(program).parse(
        [*shlex.split(words), "--device", "cpu", "--threads", "1"]
    )[0]


def test_a_size_is_its_numbers_and_neutral_options_are_left_out():
    spec = parsed(
        "time_step", "--size nano --precision bf16 --mode step --checkpoint 0 --attention sdpa"
    )
    budget = {"processes": 3, "warmup": 2, "steps": 3, "max_steps": 20, "max_seconds": 0.5}
    assert spec == {
        "study": "timing",
        **NANO,
        "context": 128,
        "batch": 4,
        "precision": "bf16",
        "attention": "sdpa",
    } | (budget | RUNNING)


@pytest.mark.parametrize(
    "program, words",
    [
        ("time_step", "--size nano --compile block --window 16 --mode forward"),
        ("time_ladder", "--size nano"),
        ("time_ladder", """--size nano --variants '[{"name": "a b"}]'""".replace(" b", "-b")),
        (
            "time_attention",
            "--lengths 4,8 --tokens 64 --mask causal --heads 4 --key-value-heads 2 --window 3",
        ),
        ("measure_ceilings", "--operation copy --mebibytes 7"),
        ("profile_step", "--size nano --start cold --nsys-trace cuda"),
        ("snapshot_memory", f"{SHAPE} --checkpoint 2"),
        ("probe_precision", "--probe normalisation"),
    ],
)
def test_the_command_that_a_record_names_gives_the_same_spec(program, words):
    spec = parsed(program, words)
    assert parsed(program, shlex.join(words_of(spec))) == spec


def test_keys_of_compared_steps_are_a_mapping_or_its_text():
    text = '{"a":1,"b":2}'
    for keys in ({"b": 2, "a": 1}, text):
        variants = json.dumps([{"name": "x", "step": "a.py:f", "step_keys": keys}])
        (found,) = parsed("time_ladder", f"--variants {shlex.quote(variants)}")["variants"]
        assert found == {"name": "x", "step": "a.py:f", "step_keys": text}


def test_threads_are_all_usable_cores_but_one(monkeypatch):
    from stepscope.machine import identity

    for cores, threads in ((1, 1), (2, 1), (8, 7)):
        monkeypatch.setattr(identity, "usable_cores", lambda cores=cores: cores)
        words = ["--operation", "copy", "--device", "cpu"]
        assert importlib.import_module("measure_ceilings").parse(words)[0]["threads"] == threads


def test_a_ladder_without_variants_changes_one_option_a_rung():
    variants = parsed("time_ladder", "--size nano")["variants"]
    assert picked(variants, "name") == ["fp32", "sdpa", "torch", "fused", "block"]
    for before, after in itertools.pairwise(variants):
        changed = {
            key
            for key in {*before, *after} - {"name", "after"}
            if before.get(key) != after.get(key)
        }
        assert len(changed) == 1 and after["after"] == before["name"]


@pytest.mark.parametrize(
    "program, words, shown",
    [
        ("time_step", f"{SHAPE} --d-model 9", "d_model = 9 is not divisible by num_heads = 2"),
        (
            "time_step",
            "--context 4",
            "give --size, or a model or step of your own, or also --d-model --d-ff",
        ),
        ("time_step", "--size huge", "there is no size 'huge' in config.yaml; choose from nano, "),
        ("time_step", "--model a.py:f --d-ff 4", "--d-ff does not go with a model of your own"),
        ("time_step", "--model a.py:f --size nano", "--size: not allowed with argument --model"),
        (
            "time_step",
            f"{SHAPE} --model-keys {{}}",
            "--model-keys does not go with a size; remove it",
        ),
        ("time_step", "--model a.py:f --model-keys [1]", "'[1]' is no mapping in JSON"),
        ("time_step", "--model net.py", "model 'net.py': write FILE.py:FUNCTION"),
        ("time_step", "--step net.py", "step 'net.py': write FILE.py:FUNCTION"),
        ("time_step", "--step hf:llama", "write FILE.py:FUNCTION, as models/mine.py:build ("),
        ("time_step", "--step a.py:f --attention sdpa", "--attention does not go with a step of"),
        ("snapshot_memory", "--step a.py:f --vocab-size 9", "--vocab-size does not go with a step"),
        ("time_step", "--model a.py:f --window 4", "--window does not go with a model of your own"),
        ("time_parallel", "--step a.py:f", "unrecognized arguments: --step a.py:f"),
        ("time_parallel", f"{SHAPE} --optimizer own", "several devices need one of PyTorch's"),
        ("time_parallel", f"{SHAPE} --devices 1", "1 is out of range; use at least 2"),
        ("time_ladder", "--step a.py:f", "unrecognized arguments: --step a.py:f"),
        (
            "time_ladder",
            """--size nano --variants '[{"name": "a", "step": "a.py:f"}]'""",
            "--size does not go with a step of your own; remove it",
        ),
        (
            "time_ladder",
            """--variants '[{"name": "a", "step": "a.py:f"}, {"name": "b", "loss": "own"}]'""",
            "b is no step of one's own, which has a name, step: FILE.py:FUNCTION and step_keys",
        ),
        (
            "time_ladder",
            """--variants '[{"name": "a", "step": "a.py:f"}, {"name": "b"}]'""",
            "b is no step of one's own",
        ),
        (
            "time_ladder",
            """--variants '[{"name": "a", "step": "a.py:f", "step_keys": "[1]"}]'""",
            "a is no step of one's own",
        ),
        ("time_attention", "--batch 2 --tokens 8", "give --batch or --tokens, not both"),
        ("time_attention", "--window 4", "--window needs a causal mask; add --mask causal"),
        ("time_attention", "--heads 4 --key-value-heads 3", "3 does not divide --heads 4; use a"),
        (
            "time_attention",
            """--variants '[{"name": "magic"}]'""",
            "there is no implementation 'magic'; choose from naive, ",
        ),
        (
            "time_step",
            f"{SHAPE} --checkpoint 3",
            "checkpoint 3 is more than the model's blocks (2); use fewer",
        ),
        ("time_step", f"{SHAPE} --steps x", "'x' is no whole number"),
        ("time_step", f"{SHAPE} --max-seconds inf", "inf is out of range"),
        ("time_attention", "--lengths 4,0", "0 is out of range; use at least 1"),
        ("time_attention", "--variants naive", "give a list such as"),
        ("time_attention", "--variants " + "[" * 100_000, "give a list such as"),
        (
            "time_attention",
            '--variants \'[{"name": "naive"}, {"name": "naive"}]\'',
            "each with a name of its own",
        ),
        (
            "time_ladder",
            f'{SHAPE} --variants \'[{{"name": "a/b"}}]\'',
            "of letters, digits and . _ = + -",
        ),
        (
            "time_ladder",
            f'{SHAPE} --variants \'[{{"name": "a", "batch": 2}}]\'',
            "a has no batch; options are precision",
        ),
        (
            "time_ladder",
            f'{SHAPE} --variants \'[{{"name": "a", "attention": "x"}}]\'',
            "attention 'x' is none of fa3",
        ),
        (
            "time_ladder",
            f'{SHAPE} --variants \'[{{"name": "a", "compile": "none"}}]\'',
            "is neutral; leave it out",
        ),
        (
            "time_ladder",
            f'{SHAPE} --variants \'[{{"name": "a", "checkpoint": 3}}]\'',
            "checkpoint 3 is more than",
        ),
        (
            "time_ladder",
            f'{SHAPE} --variants \'[{{"name": "a", "after": "b"}}]\'',
            "there is no other variant 'b'",
        ),
        (
            "measure_ceilings",
            "--order 3 --operation copy",
            "--order does not go with --operation copy; use --mebibytes",
        ),
        (
            "profile_step",
            f"{SHAPE} --start cold --profiler nsys",
            "--start cold needs torch.profiler",
        ),
        ("probe_precision", "--probe autocast --precision bf16", "use fp32"),
        ("probe_precision", f"--probe accumulation {SHAPE}", "unrecognized arguments: --d-model 8"),
        (
            "train_variants",
            "--size nano --vocab-size 255",
            "--vocab-size 255: a byte is a token; use at least 256",
        ),
        (
            "train_variants",
            '--size nano --variants \'[{"name": "a", "scaled": "no"}]\'',
            "a: scaled 'no' is neither true nor false",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(program, words, shown, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [f"{program}.py"])
    with pytest.raises(SystemExit) as end:
        parsed(program, words)
    assert end.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"{program}.py: error: ") and shown in last


def test_a_size_brings_its_vocabulary_and_heads_unless_others_are_typed():
    own = {"vocab_size": 128_256, "key_value_heads": 8}
    assert parsed("time_step", "--size 8b-wide").items() >= own.items()
    typed = parsed("time_step", "--size 8b-wide --vocab-size 50 --key-value-heads 4 --num-layers 1")
    assert typed.items() >= {"vocab_size": 50, "key_value_heads": 4, "num_layers": 1}.items()
