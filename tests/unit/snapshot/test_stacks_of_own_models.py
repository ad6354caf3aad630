"""Whose line an allocation gets where StepScope calls a model that is not its own."""

from types import SimpleNamespace

import pytest
from stepscope.snapshot.events import Frame
from stepscope.snapshot.stacks import user_lines

SITE = "/opt/env/lib/python3.12/site-packages"
LINEAR = Frame(f"{SITE}/torch/nn/modules/linear.py", 125, "forward")
LLAMA = Frame(f"{SITE}/transformers/models/llama/modeling_llama.py", 180, "forward")
MINE = Frame("/home/someone/models/mine.py", 12, "forward")
LIBRARY = Frame("/usr/lib/python3.12/contextlib.py", 81, "inner")
CALL = Frame("/repo/scripts/stepscope/model/own/inputs.py", 57, "call")
PROGRAM = Frame("/repo/scripts/snapshot_memory.py", 9, "<module>")


@pytest.mark.parametrize(
    "stack, line",
    [
        ([LINEAR, LLAMA, CALL, PROGRAM], "modeling_llama.py:180 forward"),
        ([LINEAR, MINE, LLAMA, CALL, PROGRAM], "mine.py:12 forward"),
        ([LINEAR, LIBRARY, CALL, PROGRAM], "scripts/stepscope/model/own/inputs.py:57 call"),
        ([LINEAR, LLAMA, PROGRAM], "scripts/snapshot_memory.py:9 <module>"),
        ([LINEAR], ""),
    ],
)
def test_line_of_a_stack(stack, line):
    frames = list(dict.fromkeys(stack))
    assert user_lines(
        SimpleNamespace(frames=frames, stacks=[[frames.index(each) for each in stack]])
    ) == [line]
