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
            "config key (top level): unknown key 'devise'; did you mean 'device'?",
        ),
    ],
    ids=["unreadable", "misspelt"],
)
def test_one_line_says_what_is_wrong(content, said, bare_project):
    path = bare_project.folder / "config.yaml"
    path.write_bytes(content)
    assert bare_project.run("--cores", 1, "report").complaint == said.format(path=path)
    assert not (bare_project.folder / "results").exists()
