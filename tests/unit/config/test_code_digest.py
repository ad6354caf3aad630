"""What in a source file changes its digest, and what does not, on any Python."""

import ast
import subprocess

import pytest
from common import SCRIPTS
from stepscope.config.code_digest import Sources, tree_digest


def source_digest(source):
    return tree_digest(ast.parse(source))


CODE = """
def scaled(x, factor=2):
    y = x * factor
    z = y + 1
    return {"name": "a b", "value": z}
"""


@pytest.mark.parametrize(
    "same",
    [
        CODE.replace("factor\n", "factor  # why\n    # and how\n"),
        CODE.replace("    y =", '    """Scales."""\n    y ='),
        f'"""A module."""\n{CODE}',
        CODE.replace("\n", "\n\n\n"),
        CODE.replace("    ", "\t"),
        CODE.replace('"', "'"),
        CODE.replace("x * factor", "(x\n        *factor)"),
        CODE.replace('"a b"', '("a "\n "b")'),
        CODE.replace("factor=2", "factor=0x2"),
        CODE.replace("\n", "\r\n"),
    ],
)
def test_how_code_is_written_does_not_count(same):
    assert same != CODE
    assert source_digest(same) == source_digest(CODE)


@pytest.mark.parametrize(
    "one, another",
    [
        ("x + 1", "x + 1.0"),
        ("x + 1", "x + True"),
        ("f('a b')", "f(b'a b')"),
        ("x\n'no docstring: not the first statement'", "x"),
        ("def f(a=2): x", "def f(*, a=2): x"),
        ("f([], ())", "f((), [])"),
        ("f(None)", "f('')"),
        ("x[1:]", "x[:1]"),
        ("f'{x!r}'", "f'{x!s}'"),
        ("{**a, 'b': 1}", "{'b': 1, **a}"),
        ("def f(a, /): ...", "def f(a): ..."),
        ("def f(*, a=None, b): ...", "def f(*, a, b=None): ..."),
    ],
)
def test_what_code_does_counts(one, another):
    assert source_digest(one) != source_digest(another)


# Syntax whose tree differs between Python 3.11, 3.12 and 3.13, or is written down differently by
# them.
SNIPPET = r'''
"""Docstring."""
from __future__ import annotations
import a.b as c
@d
@e(1, *f, g=[], **h)
def i(j, /, k: int = 2, *l, m, n=(), **o) -> None:
    """Docstring."""
    if (p := 0x10) and not {}:
        return f"{j!r:>{k}.{p}}" f"{{{m}}}" "q" f"{n = }" rf"\d{o:}" f"{k:{p}a{j}z}"
    match l:
        case [1, *r] | {"s": r, **t} if r: pass
        case T(u=None) as v: yield v
        case _: return lambda *w, x=1e400, **y: [*w, {**y}, x[1:, ::2], ..., b"\0", -1j,
                                                 "é\ud800", u"z"]
class A(B, metaclass=C):
    "Docstring."
    x: list[int] = []
    async def y(self):
        async with a as b, c: await d
        try: raise E from None
        except* F as g: del x.y[0]
        else: assert 1_000, "z"
'''
# Computed by Python 3.11.7, 3.12.1 and 3.13.0, which agreed.
SNIPPET_DIGEST = "e88c107e4ac752b6a4c903d2a2557d7bb696b0ceebb98a85fa6363f989b31ce5"


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_another_python_gives_the_same_digests(version):
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\nfrom stepscope.config.code_digest import"
        " *\nprint(tree_digest(ast.parse(sys.stdin.read())), Sources().digest('time_step.py'),"
        " Sources().digest('draw_figures.py'))"
    )
    command = [f"python{version}", "-I", "-B", "-c", program, str(SCRIPTS)]
    try:
        shown = subprocess.run(command, input=SNIPPET.encode(), capture_output=True, timeout=60)
    except FileNotFoundError:
        pytest.skip(f"no python{version} here")
    if shown.returncode == 127:  # a version manager's placeholder
        pytest.skip(f"no python{version} here")
    expected = [
        SNIPPET_DIGEST,
        Sources().digest("time_step.py"),
        Sources().digest("draw_figures.py"),
    ]
    assert (shown.stdout.decode().split(), shown.stderr) == (expected, b"")
