"""A mistake in the configuration is one line without a traceback, and nothing is run."""

import pytest


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"timing:\n\twarmup: 1\n", "{path}, line 2: found character that cannot start any token; correct it"),
        (b"devise: cpu\n", "config key (top level): unknown key 'devise'; did you mean 'device'?"),
    ],
    ids=["unreadable", "misspelt"],
)
def test_one_line_says_what_is_wrong(content, said, bare_project):
    path = bare_project.folder / "config.yaml"
    path.write_bytes(content)
    assert bare_project.run("--cores", 1, "report").complaint == said.format(path=path)
    assert not (bare_project.folder / "results").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--contxt 8", ["--contxt"]),
        ("--context eight", ["--context", "eight"]),
        ("--size gigantic", ["gigantic"]),
    ],
)
def test_a_wrong_flag_of_a_program_is_named(bare_project, words, said):
    shown = bare_project.python("scripts/time_step.py", *words.split(), "--out", "cell")
    line = shown.text.rstrip().splitlines()[-1]
    assert shown.code == 2
    assert line.startswith("time_step.py: error: ")
    assert [part for part in said if part not in line] == [], line
    assert not (bare_project.folder / "cell").exists()
