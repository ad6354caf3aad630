"""A spec as flags, read by its program again, is the same spec: the printed command measures the same cell."""

import importlib.util
import random
import shlex

import pytest
from stepscope.axes import MODES, NEUTRAL, PRECISIONS
from stepscope.config.grid import words_of
from stepscope.config.studies import PROFILE, STUDIES
from stepscope.measure.training import GPU_ONLY
from stepscope.model.chosen import names

# Values of an option; `compile` and `checkpoint` have others in the ladder only.
OPTIONS = {
    "mode": list(MODES),
    "attention": [name for name in names("attention") if name not in GPU_ONLY],
    "optimizer": names("optimizer"),
    "key_value_heads": [0, 1],
    "window": [0, 5],
    "repeat": [1, 2, 3],
}
SHAPE = "--d-model 8 --d-ff 8 --num-layers 1 --num-heads 2"


@pytest.fixture(scope="module")
def parse():
    """The parse() of a program in scripts/."""

    def load(program):
        path = importlib.util.find_spec("stepscope").submodule_search_locations[0]
        spec = importlib.util.spec_from_file_location(program, f"{path}/../{program}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.parse

    return {study.program: load(study.program) for study in STUDIES}


def running(chance):
    steps = chance.randint(1, 50)
    return {
        "processes": chance.randint(1, 9),
        "warmup": chance.randint(0, 9),
        "steps": steps,
        "max_steps": steps + chance.randint(0, 50),
        "max_seconds": chance.choice([1, 4, 0.5, 1e-05, 123.456789]),
        "seed": chance.randint(0, 2**40),
        "threads": chance.randint(1, 64),
        "device": "cpu",
    }


@pytest.mark.parametrize("seed", range(40))
def test_a_timing_spec_survives_its_flags(seed, parse):
    chance = random.Random(seed)
    heads = chance.randint(1, 9)
    shape = {"d_model": heads * 2 * chance.randint(1, 9), "d_ff": chance.randint(1, 99), "num_layers": 3}
    options = {key: chance.choice(values) for key, values in OPTIONS.items()}
    spec = {"study": "timing", **shape, "num_heads": heads, "vocab_size": chance.randint(2, 99), "context": 7}
    spec |= {"batch": chance.randint(1, 9), "precision": chance.choice(list(PRECISIONS)), **running(chance)}
    spec |= {key: value for key, value in options.items() if value != NEUTRAL[key]}
    words = words_of(spec)
    assert parse["time_step"]([*words, "--time-limit", "3"])[0] == spec
    chance.shuffle(pairs := list(zip(words[::2], words[1::2], strict=True)))
    assert parse["time_step"]([word for pair in pairs for word in pair])[0] == spec


@pytest.mark.parametrize("seed", range(20))
def test_a_spec_of_the_ceilings_survives_its_flags(seed, parse):
    chance = random.Random(seed)
    size = chance.choice([{"operation": "matmul", "order": 32}, {"operation": "copy", "mebibytes": 5}])
    spec = {"study": "ceilings", **size, "precision": chance.choice(list(PRECISIONS)), **running(chance)}
    assert parse["measure_ceilings"](words_of(spec))[0] == spec


@pytest.mark.parametrize("seed", range(20))
def test_a_spec_of_attention_survives_its_flags(seed, parse):
    chance = random.Random(seed)
    groups, masked = chance.randint(1, 4), chance.choice([{}, {"causal": "yes"}, {"mask": "causal-lower-right"}])
    spec = {"study": "attention", "implementation": "naive", "d_head": 80, "lengths": "4,16", "precision": "tf32"}
    spec |= chance.choice([{"batch": 8}, {"tokens": 512}]) | masked | running(chance)
    del spec["max_steps"]
    heads = {"heads": groups * chance.randint(2, 3)}
    more = [heads, heads | {"key_value_heads": groups}, {"keys": 24}, {"window": 5} if masked else {}]
    for each in chance.sample(more, 2):
        spec |= each
    assert parse["time_attention"](words_of(spec))[0] == spec


def test_as_many_heads_of_keys_as_of_queries_and_either_name_of_the_causal_mask_are_one_spec(parse):
    start = ["--device", "cpu", "--heads", "4"]
    plain = parse["time_attention"]([*start, "--causal", "yes"])[0]
    assert parse["time_attention"]([*start, "--key-value-heads", "4", "--mask", "causal"])[0] == plain
    assert plain["causal"] == "yes" and not {"mask", "key_value_heads", "keys", "window"} & set(plain)


NSYS = {
    "trace": ["cuda", "nvtx", "osrt"],
    "python_backtrace": "cuda",
    "pytorch": "autograd-nvtx",
    "cuda_memory_usage": True,
    "cuda_graph_trace": "graph",
}


@pytest.mark.parametrize("changed", [[], ["trace"], ["pytorch", "python_backtrace"], list(NSYS)])
def test_what_nsys_records_survives_its_flags_and_stands_in_the_spec_only_if_changed(changed, make_config, parse):
    config = make_config()
    config["profile"]["nsys"] |= {key: NSYS[key] for key in changed}
    plain = [cell for cell in PROFILE.cells(config, "cuda", "machine", 2) if "detail=" not in cell.name]
    for cell in plain:
        spec = cell.spec | {"device": "cpu"}  # a program refuses a GPU that is not there
        assert parse["profile_step"](words_of(spec))[0] == spec
        assert {key for key in cell.spec if key.startswith("nsys_")} == {f"nsys_{key}" for key in changed}
    assert len(plain) > 2


def test_a_cell_that_nsys_cannot_record_does_not_depend_on_its_options(make_config):
    plain, changed = make_config(), make_config()
    changed["profile"]["nsys"] |= NSYS
    assert PROFILE.cells(changed, "cpu", "machine", 2) == PROFILE.cells(plain, "cpu", "machine", 2)
    assert PROFILE.cells(changed, "cuda", "machine", 2) != PROFILE.cells(plain, "cuda", "machine", 2)
    for config in (plain, changed):
        config["profile"]["profiler"] = "torch"
    assert PROFILE.cells(changed, "cuda", "machine", 2) == PROFILE.cells(plain, "cuda", "machine", 2)


def test_what_nsys_traces_is_a_set(make_config):
    plain, turned = make_config(), make_config()
    turned["profile"]["nsys"]["trace"] = ["nvtx", "cuda"]
    assert PROFILE.cells(turned, "cuda", "machine", 2) == PROFILE.cells(plain, "cuda", "machine", 2)


@pytest.mark.parametrize("preset", ["default", "smoke", "published"])
def test_every_cell_of_every_preset_survives_its_flags(preset, make_config, parse):
    config = make_config(preset=preset)
    for study in STUDIES:
        for cell in (cell for device in ("cpu", "cuda") for cell in study.cells(config, device, "machine", 2)):
            words = words_of(cell.spec | {"device": "cpu"})  # a program refuses a GPU that is not there
            assert parse[study.program](words)[0] == cell.spec | {"device": "cpu"}
            assert cell.program == f"{study.program}.py"


def test_options_at_their_neutral_value_are_left_out(parse):
    spoken = f"{SHAPE} --device cpu --mode step --attention naive --compile none --optimizer own --repeat 1"
    spoken += " --key-value-heads 0 --window 0"
    assert parse["time_step"](spoken.split()) == parse["time_step"](f"{SHAPE} --device cpu".split())


def test_a_size_by_name_is_its_numbers(parse):
    spec, settings = parse["time_step"](["--size", "2.7B", "--device", "cpu"])
    numbers = [spec[key] for key in ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size")]
    assert numbers == [2560, 10240, 32, 32, 10000]
    assert settings.out is None


def test_defaults_that_depend_on_others(parse):
    spec, _ = parse["time_step"](shlex.split("--size nano --device cpu --steps 7"))
    assert spec["max_steps"] == 7
    assert spec["threads"] >= 1
    spec, _ = parse["measure_ceilings"](shlex.split("--operation copy --device cpu"))
    assert spec["mebibytes"] == 2048 and "order" not in spec


@pytest.mark.parametrize(
    "program, words, shown",
    [
        ("time_step", "", "give --size, or also --d-model, --d-ff, --num-layers, --num-heads"),
        ("time_step", "--d-model 8 --d-ff 8 --num-heads 2", "give --size, or also --num-layers"),
        ("time_step", "--size nano --d-model 8", "give --size or --d-model, not both"),
        ("time_step", "--size nana", "there is no size 'nana' in config.yaml; choose from nano, tiny"),
        ("time_step", f"{SHAPE} --num-heads 3", "d_model = 8 is not divisible by num_heads = 3"),
        ("time_step", f"{SHAPE} --num-heads 8", "must be even"),
        ("time_step", f"{SHAPE} --context 0", "--context: 0 is too small; use at least 1"),
        ("time_step", f"{SHAPE} --warmup -1", "--warmup: -1 is negative; use 0 or more"),
        ("time_step", f"{SHAPE} --batch x", "--batch: 'x' is not a whole number"),
        ("time_step", f"{SHAPE} --steps 9 --max-steps 8", "--max-steps 8 is less than --steps 9"),
        ("time_step", f"{SHAPE} --time-limit -1", "-1 is out of range; use a number of at least 0"),
        ("time_step", f"{SHAPE} --max-seconds nan", "nan is out of range; use a number of at least 0"),
        ("time_step", f"{SHAPE} --precision fp8", "choose from"),
        ("time_step", f"{SHAPE} --ctx 8", "unrecognized arguments: --ctx 8"),
        ("time_step", f"{SHAPE} --contex 8", "unrecognized arguments: --contex 8"),
        ("time_step", f"{SHAPE} --compile block", "--compile: invalid choice: 'block'"),
        (
            "time_step",
            f"{SHAPE} --attention triton",
            "--attention triton trains on a GPU only; on a CPU use naive or sdpa",
        ),
        ("profile_step", f"{SHAPE} --attention flex", "--attention flex trains on a GPU only"),
        ("snapshot_memory", f"{SHAPE} --attention triton", "--attention triton trains on a GPU only"),
        ("time_warmup", f"{SHAPE} --attention flex", "--attention flex trains on a GPU only"),
        ("time_ladder", f"{SHAPE} --compile jit", "--compile: invalid choice: 'jit'"),
        ("time_ladder", f"{SHAPE} --checkpoint 2", "--checkpoint 2 is more than the model's blocks (1)"),
        ("time_warmup", f"{SHAPE} --mode forward", "unrecognized arguments: --mode forward"),
        ("measure_ceilings", "--operation copy --order 8", "--order does not go with --operation copy"),
        ("measure_ceilings", "--mebibytes 8", "--mebibytes does not go with --operation matmul; use --order"),
    ],
)
def test_a_wrong_flag_ends_the_program_with_one_line(program, words, shown, parse, capsys):
    with pytest.raises(SystemExit) as end:
        parse[program]([*words.split(), "--device", "cpu"])
    assert end.value.code == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert len(errors) == 1
    assert shown in errors[0]


@pytest.mark.parametrize("attention", GPU_ONLY)
def test_a_ladder_records_what_a_cpu_cannot_run(attention, parse):
    assert parse["time_ladder"](f"{SHAPE} --device cpu --attention {attention}".split())[0]["attention"] == attention
