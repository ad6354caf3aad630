"""Configuration files that cannot be read: one line with the file, the place and what to do."""

import pytest
from stepscope.config.config_file import unreadable

LAUGHS = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcde", "bcdef", strict=True)
)
WRONG = {
    "a bracket": (b"a: 1\nb: [1,\n", ", line 3: did not find expected node content"),
    "a tab": (b"timing:\n\tx: 1\n", ", line 2: found character that cannot start any token"),
    "binary": (bytes(range(256)), " is not text in UTF-8 (byte 128); save it as UTF-8"),
    "control characters": (b"a: \x01", " is not YAML: "),
    "UTF-16": ("a: 1\n".encode("utf-16"), " is not text in UTF-8 (byte 0); save it as UTF-8"),
    "a mapping that holds itself": (b"a: &x {b: *x}\n", ": line 1: *x stands inside of what it names; write it out"),
    "a list that holds itself": (b"a: &x [*x]\n", ": line 1: *x stands inside of what it names"),
    "3000 levels": (b"a: " + b"{a: " * 3000 + b"1" + b"}" * 3000, ": line 1: more than 50 levels inside each other"),
    "a million values": (LAUGHS.encode(), ": line 5: more than 100000 values, counting what aliases stand for"),
    "a list": (b"- 1\n", " holds no keys at its top level"),
    "nothing": (b"", " holds no keys at its top level"),
    "an unknown alias": (b"a: *x\n", ", line 1: found undefined alias"),
    "Python": (b"a: !!python/object/apply:os.system [id]\n", ", line 1: could not determine a constructor"),
    "a key that is a mapping": (b"? {a: b}\n: 1\n", ", line 1: found unhashable key"),
    "a number of 5000 digits": (b"a: " + b"9" * 5000, " is not YAML: Exceeds the limit"),
    "a day that is none": (b"a: 2026-02-31\n", " is not YAML: day is out of range"),
}


@pytest.mark.parametrize(("content", "said"), WRONG.values(), ids=WRONG)
def test_one_line_says_what_is_wrong(content, said, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    line = unreadable(path)
    assert line.startswith(f"{path}{said}"), line
    assert line.isprintable() and len(line) < 300


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    assert unreadable(tmp_path / "no.yaml").startswith(f"{tmp_path}/no.yaml: there is no such file; restore it")
    assert unreadable(tmp_path) == f"{tmp_path} cannot be read: Is a directory; put a file in its place"


@pytest.mark.parametrize("depth", [49, 50])
def test_levels_up_to_the_deepest_are_read(depth, tmp_path):
    (tmp_path / "config.yaml").write_text("{a: " * (depth + 1) + "1" + "}" * (depth + 1))
    refused = unreadable(tmp_path / "config.yaml")
    assert (refused is None) is (depth + 1 <= 50), refused


def test_an_anchor_that_is_used_again_is_read(tmp_path):
    (tmp_path / "config.yaml").write_text("a: &x {b: 1}\nc: *x\nd: [*x, *x]\n")
    assert unreadable(tmp_path / "config.yaml") is None


def test_the_projects_own_files_are_read(project_root):
    for path in (project_root / "config.yaml", *(project_root / "rules/presets").glob("*.yaml")):
        assert unreadable(path) is None
