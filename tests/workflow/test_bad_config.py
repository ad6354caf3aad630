"""A mistake in the configuration: one line that names the key and the value and says what to do, and nothing is run."""

import pytest
import yaml
from stepscope.config.config import merged

SIZE = {"d_model": 16, "d_ff": 32, "num_layers": 1, "num_heads": 2}
ENTRY = {"size": ["alpha"], "context": [8], "precision": ["fp32"]}


def grid(*entries):
    return {"timing": {"grid": {"cpu": list(entries)}}}


def sizes(**shape):
    return {"sizes": {"alpha": SIZE, "gamma": SIZE | shape}}


MISTAKES = {
    "published figures that are not there": ({"published": ["none.csv"]}, ["published[0]", "no file 'none.csv'"]),
    "an unknown key": ({"colour": "red"}, ["colour", "unknown key", "known keys:"]),
    "a misspelt key": ({"devise": "cpu"}, ["'devise'", "did you mean 'device'?"]),
    "a misspelt key further down": ({"timing": {"warm_up": {}}}, ["timing", "'warm_up'", "did you mean 'warmup'?"]),
    "a misspelt key of a size": (
        {"sizes": {"alpha": {**SIZE, "dmodel": 1}}},
        ["sizes.alpha", "did you mean 'd_model'?"],
    ),
    "a misspelt axis": (grid(ENTRY | {"optimiser": ["own"]}), ["timing.grid.cpu.0", "did you mean 'optimizer'?"]),
    "a size without a key": ({"sizes": {"gamma": {"d_model": 16}}}, ["sizes.gamma", "'d_ff' is missing"]),
    "a grid entry without an axis": (grid({"size": ["alpha"]}), ["timing.grid.cpu.0", "'context' is missing"]),
    "a negative warm-up": ({"timing": {"warmup": {"cpu": -1}}}, ["timing.warmup.cpu", "-1", "at least 0"]),
    "fewer steps than two": (
        {"timing": {"steps": {"cpu": {"min": 1, "max": 2, "seconds": 1}}}},
        ["timing.steps.cpu.min", "1", "at least 2"],
    ),
    "more least steps than most": (
        {"timing": {"steps": {"cpu": {"min": 9}}}},
        ["timing.steps.cpu", "min 9", "max 2", "raise max"],
    ),
    "heads that do not divide": (sizes(num_heads=3), ["sizes.gamma", "d_model", "16", "num_heads", "3"]),
    "an odd head dimension": (sizes(d_model=18, num_heads=6), ["sizes.gamma", "3", "even"]),
    "an unknown size": (grid(ENTRY | {"size": ["gama"]}), ["timing.grid.cpu", "'gama'", "alpha, beta"]),
    "an unknown precision": (grid(ENTRY | {"precision": ["fp8"]}), ["timing.grid.cpu.0.precision.0", "fp8", "bf16"]),
    "an empty grid": (grid(), ["timing.grid", "empty", "at least one entry"]),
    "an axis that is no list": (grid(ENTRY | {"context": 8}), ["timing.grid.cpu.0.context", "8", "array"]),
    "a value twice": (
        grid(ENTRY | {"context": [8, 8]}),
        ["timing.grid.cpu.0.context", "[8, 8]", "twice", "remove one"],
    ),
    "a grid point twice": (grid(ENTRY, ENTRY), ["timing.grid", "timing/alpha/ctx8/fp32", "twice", "remove one"]),
    "a size that leaves the folder": ({"sizes": {"../x": SIZE}}, ["sizes", "'../x'", "letters, digits"]),
    "a size whose name ends in a new line": ({"sizes": {"x\n": SIZE}}, ["sizes", "'x\\n'", "letters, digits"]),
    "a size whose name no file can have": ({"sizes": {"x" * 200: SIZE}}, ["sizes", "at most 64 letters"]),
    "a series without an end": (
        {"timing": {"steps": {"cpu": {"min": 2, "max": 9, "seconds": float("inf")}}}},
        ["timing.steps.cpu.seconds", "inf is not a finite number"],
    ),
    "a context of a thousand million": (
        grid(ENTRY | {"context": [10**9]}),
        ["timing.grid.cpu.0.context.0", "1000000000 is too large", "at most 16777216"],
    ),
    "more threads than processors": ({"threads": 4000}, ["threads", "4000 is more than the processors", "at most"]),
    "a size with a space": ({"sizes": {"my size": SIZE}}, ["sizes", "'my size'", "letters, digits"]),
    "a size with HTML": ({"sizes": {"<b>x</b>": SIZE}}, ["sizes", "'<b>x</b>'", "letters, digits"]),
    "a key that is a number": ({1: 2}, ["config key", "1 is not a usable name"]),
    "a size whose name is a number": ({"sizes": {7: SIZE}}, ["sizes", "7"]),
    "a text for a number": ({"model": {"batch": "four"}}, ["model.batch", '"four"', "integer"]),
    "a fraction for a count": ({"model": {"batch": 1.5}}, ["model.batch", "1.5", "integer"]),
    "a key without a value": ({"timing": None}, ["timing", "null", "object"]),
    "an unknown device": ({"device": "tpu"}, ["device", "tpu", "auto, cuda, cpu"]),
    "a GPU where there is none": ({"device": "cuda"}, ["device: cuda", "no NVIDIA GPU", "device: cpu"]),
    "an unknown preset": ({"preset": "smok"}, ["preset", "'smok'", "default, published, published-000"]),
    "a preset that is a number": ({"preset": 7}, ["preset", "7"]),
}


@pytest.mark.parametrize(("keys", "said"), MISTAKES.values(), ids=MISTAKES)
def test_one_line_says_what_is_wrong(bare_project, keys, said):
    path = bare_project.folder / "config.yaml"
    path.write_text(yaml.safe_dump(merged(yaml.safe_load(path.read_text()), keys)))
    complaint = bare_project.run("--cores", 1, "report").complaint
    assert [part for part in said if part not in complaint] == [], complaint
    assert not (bare_project.folder / "results").exists()


def test_keys_on_the_command_line_are_checked_too(bare_project):
    complaint = bare_project.run("--cores", 1, "report", "--config", "preset=smoke", "devise=cpu").complaint
    assert "did you mean 'device'?" in complaint


def test_a_file_of_ones_own_is_checked_too(bare_project):
    (bare_project.folder / "mine.yaml").write_text("modle: {batch: 2}\n")
    assert "did you mean 'model'?" in bare_project.run("--cores", 1, "report", "--configfile", "mine.yaml").complaint


@pytest.mark.parametrize("name", ["brace{wild}", "x}", "new\nline", "back\\slash", 'it\'s "quoted"'])
def test_a_checkout_in_a_folder_that_jobs_cannot_be_given_is_refused_at_once(name, bare_projects):
    project = bare_projects(name)
    complaint = project.run("--cores", 1, "report").complaint
    assert complaint.startswith(repr(str(project.folder))) and complaint.endswith("; rename it")
    assert not (project.folder / "results").exists()


@pytest.mark.parametrize("name", ["it's", 'say "x" $HOME; `x`'])
def test_a_checkout_in_a_folder_with_quotes_works(name, bare_projects):
    project = bare_projects(name)
    run = project.run("--cores", 1, "aggregate_ceilings")
    assert run.code == 0, run.text
    assert (project.folder / "results/tables/ceilings.csv").is_file()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"timing:\n\twarmup: 1\n", ", line 2: "),
        (b"\xff\xfed\x00", " is not text in UTF-8"),
        (b"a: " + b"{a: " * 3000, ": line 1: more than 50 levels inside each other"),
        (b"a: &x {b: *x}\n", ": line 1: *x stands inside of what it names"),
        (None, ": there is no such file; restore it, or name another with --configfile"),
    ],
    ids=["a tab", "UTF-16", "3000 levels", "a mapping that holds itself", "no file"],
)
def test_a_configuration_that_cannot_be_read_is_one_line(content, said, bare_project):
    path = bare_project.folder / "config.yaml"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert bare_project.run("--cores", 1, "report").complaint.startswith(f"{path}{said}")


def test_a_file_of_ones_own_may_take_the_place_of_the_projects(bare_project):
    (bare_project.folder / "config.yaml").rename(bare_project.folder / "mine.yaml")
    assert "Job stats" in bare_project.run("-n", "report", "--configfile", "mine.yaml").text


def test_a_target_in_no_grid_is_named(project):
    target = str(project.result("timing/alpha/ctx99/fp32/record.json").relative_to(project.folder))
    shown = project.run("--cores", 1, target)
    assert shown.code != 0
    assert "Traceback" not in shown.text
    (line,) = [line for line in shown.text.splitlines() if "ctx99" in line and "Command" not in line]
    assert line.endswith("timing/alpha/ctx99/fp32 is in no grid of the configuration; add it there to measure it")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--contxt 8", ["--contxt"]),
        ("--context eight", ["--context", "eight"]),
        ("--context 0", ["--context", "0"]),
        ("--precision fp8", ["--precision", "fp8", "bf16"]),
        ("--size gigantic", ["gigantic"]),
        ("--d-model 30 --d-ff 8 --num-layers 1 --num-heads 4", ["d_model", "30", "num_heads", "4"]),
    ],
)
def test_a_wrong_flag_of_a_program_is_named(bare_project, words, said):
    shown = bare_project.python("scripts/time_step.py", *words.split(), "--out", "cell")
    line = shown.text.rstrip().splitlines()[-1]
    assert shown.code == 2
    assert line.startswith("time_step.py: error: ")
    assert [part for part in said if part not in line] == [], line
    assert not (bare_project.folder / "cell").exists()
