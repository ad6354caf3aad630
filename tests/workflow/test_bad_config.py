"""A mistake in the configuration is one line without a traceback, and nothing is run."""

import pytest

SIZES = b"sizes: {a: {d_model: 2, d_ff: 1, num_layers: 1, num_heads: 1}}\n"


@pytest.mark.parametrize(
    "content, said",
    [
        (
            b"timing:\n\twarmup: 1\n",
            "{path}, line 2: found character that cannot start any token; correct it",
        ),
        (
            b"devise: cpu\n" + SIZES,
            "config key (top level): 'devise' is not a usable name; known keys: preset, ",
        ),
    ],
    ids=["unreadable", "misspelt"],
)
def test_one_line_says_what_is_wrong(content, said, bare_project):
    path = bare_project.folder / "config.yaml"
    path.write_bytes(content)
    said = said.format(path=path)
    assert bare_project.run("--cores", 1, "report").complaint.startswith(said)
    assert not (bare_project.folder / "results").exists()


# Each level repeats the one above it nine times, and says a key twice.
BOMB = "a0: &a0 {x: 1}\n" + "".join(
    f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 9)}], x: 1, x: 2}}\n"
    for level in range(1, 12)
)
CODE = "__use_yte__: true\n__definitions__: [\"open('made', 'w')\"]\n"


@pytest.mark.parametrize(
    "content, said",
    [
        (BOMB, "more than 100,000 values"),
        ("timing: &t {grid: *t}\n", "more than 100,000 values"),
        ("a: " + "[" * 20_000 + "]" * 20_000, "more than 100 levels"),
        (CODE, "asks for YTE, which would run what it holds"),
        (None, "No such file or directory"),
    ],
    ids=["bomb", "recursive", "deep", "code", "missing"],
)
def test_a_file_of_the_command_line_is_looked_at_before_snakemake_reads_it(
    content, said, bare_project
):
    path = bare_project.folder / "given.yaml"
    if content:
        path.write_text(content)
    run = bare_project.run("-n", "--configfile", path)
    assert str(path) in run.complaint and said in run.complaint
    assert not (bare_project.folder / "made").exists()


def test_a_study_whose_cells_no_rule_measures_is_named_even_beside_its_results(project):
    rules = project.folder / "rules/measure.smk"
    start = "    use rule measure as "
    parts = rules.read_text().split(start)
    (lost,) = (part for part in parts if part.startswith("probe_precision "))
    project.edit("rules/measure.smk", start + lost, "")
    said = project.run("-n").complaint
    assert said.startswith("study precision: 1 cells") and "rules/measure.smk" in said
