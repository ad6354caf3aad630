"""A model of one's own from the configuration to the tables, and what makes its cells stale."""

import csv
import json

import pytest

MINE = """
import torch
import torch.nn.functional as F
from parts import Mlp
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv, self.mlp = nn.Linear(width, 3 * width, bias=False), Mlp(width)

    def forward(self, x):
        q, k, v = self.qkv(x).split(x.shape[-1], -1)
        x = x + F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], is_causal=True)[:, 0]
        return x + self.mlp(x)


class Net(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.embedding, self.head = nn.Embedding(11, width), nn.Linear(width, 11, bias=False)
        self.head.weight = self.embedding.weight
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def build(context, width, layers=2):
    return Net(width, layers)


def broken(context):
    net = Net(4, 1)
    net.head = nn.Linear(5, 11)
    return net
"""
PARTS = """
from torch import nn


class Mlp(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.Linear(width, 2 * width, bias=False), nn.GELU(), nn.Linear(2 * width, width, bias=False))
"""
WIDTH = 8
# A tied embedding of 11 tokens, and two blocks of QKV (3 x 8 x 8) and the MLP (2 x 8 x 16).
PARAMETERS = 11 * WIDTH + 2 * (3 * WIDTH**2 + 4 * WIDTH**2)
BATCH, CONTEXT = 2, 16
# Forward and backward: six operations a weight and token, all weights being in products, and for both blocks two
# products of attention, 2 batch context^2 width each, three times.
FLOP = 6 * PARAMETERS * BATCH * CONTEXT + 2 * 2 * 3 * 2 * BATCH * CONTEXT**2 * WIDTH
PLACE = f"mine/ctx{CONTEXT}/fp32"
CELLS = {
    *(f"timing/{PLACE}", f"profile/{PLACE}", f"memory/{PLACE}", f"ladder/{PLACE}"),
    *(f"ladder/{PLACE}/attention=sdpa", f"ladder/{PLACE}/attention=sdpa/checkpoint=2"),
}


@pytest.fixture
def project(bare_project):
    """A project with two models in a folder of theirs, one of which fails."""
    folder = bare_project.folder / "models"
    folder.mkdir()
    (folder / "mine.py").write_text(MINE)
    (folder / "parts.py").write_text(PARTS)
    (folder / "unrelated.py").write_text("size = 1\n")

    def own(config):
        config["model"]["batch"] = BATCH
        config["models"] = {
            "mine": {"build": "models/mine.py:build", "width": WIDTH},
            "broken": {"build": "models/mine.py:broken"},
        }
        for study in ("timing", "profile", "memory"):
            config[study]["grid"]["cpu"] = [{"size": ["mine"], "context": [CONTEXT], "precision": ["fp32"]}]
        config["timing"]["grid"]["cpu"].append({"size": ["alpha"], "context": [8], "precision": ["fp32"]})
        config["ladder"]["places"]["cpu"] = [{"size": "mine", "context": CONTEXT}]
        config["ladder"]["rungs"] = {"cpu": [{"precision": "fp32"}, {"attention": "sdpa"}]}
        config["ladder"]["asides"] = {"cpu": [{"rung": 1, "checkpoint": [2]}]}

    bare_project.configure(own)
    return bare_project


def table(project, name):
    """The rows of a table."""
    with (project.folder / f"results/tables/{name}.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_model_goes_from_its_line_in_the_configuration_to_the_tables(project):
    names = ("timing", "profile", "memory", "ladder", "models")
    ran = project.run("--cores", 1, *(f"results/tables/{name}.csv" for name in names))
    assert ran.code == 0, ran.text
    (timing,) = (row for row in table(project, "timing") if row["size"] == "mine")
    assert (timing["status"], timing["parameters"], timing["num_layers"]) == ("ok", str(PARAMETERS), "")
    assert float(timing["step_tflops"]) == pytest.approx(FLOP / float(timing["step_median_ms"]) / 1e9)
    (built,) = table(project, "models")
    assert (built["parameters"], built["blocks"]) == (str(PARAMETERS), "2")
    assert built["tied"] == "head.weight = embedding.weight"
    assert built["flops_formula"] == str(FLOP)

    (memory,) = table(project, "memory")
    assert memory["status"] == "ok"
    accounting = {row["item"]: row for row in table(project, "memory_accounting")}
    exact = {"parameters": 4 * PARAMETERS, "gradients": 4 * PARAMETERS, "optimizer state": 8 * PARAMETERS}
    assert {name: int(accounting[name]["measured_bytes"]) for name in exact} == exact
    assert {name: int(accounting[name]["predicted_bytes"]) for name in exact} == exact

    (profile,) = table(project, "profile")
    assert profile["status"] == "ok"
    named = {row["range"]: float(row["count_per_step"]) for row in table(project, "profile_ranges")}
    assert (named["block"], named["FFN"], named["LM head"]) == (2, 2, 1)

    rungs = {row["cell"].partition("fp32")[2]: row for row in table(project, "ladder")}
    plain, sdpa, checkpoint = rungs[""], rungs["/attention=sdpa"], rungs["/attention=sdpa/checkpoint=2"]
    assert (plain["status"], sdpa["status"], sdpa["agrees"]) == ("ok", "ok", "True")
    assert checkpoint["status"] == "unsupported" and "use checkpoint: 1" in checkpoint["reason"]

    measured = set(project.state_of_cells())
    assert measured == CELLS | {project.ALPHA}
    (project.folder / "models/unrelated.py").write_text("size = 2\n")
    project.edit("models/mine.py", "class Net(nn.Module):", "class Net(nn.Module):  # a comment")
    gate = "F.silu(self.gate(x))", "F.silu(1 * self.gate(x))"
    project.edit("scripts/stepscope/model/transformer.py", *gate)
    assert project.planned().cells & measured == {project.ALPHA}
    project.edit("scripts/stepscope/model/transformer.py", *reversed(gate))
    project.edit("models/parts.py", "nn.GELU()", "nn.ReLU()")
    assert project.planned().cells & measured == CELLS
    (project.folder / "models/mine.py").unlink()
    assert project.run("-n").complaint.startswith(
        "config key models.mine: models/mine.py:build: there is no file models/mine.py"
    )


def test_a_model_that_fails_is_one_line_and_other_cells_go_on(project):
    def both(config):
        config["timing"]["grid"]["cpu"][0]["size"] = ["broken", "mine"]

    project.configure(both)
    records = [f"results/cpu/timing/{name}/ctx{CONTEXT}/fp32/record.json" for name in ("broken", "mine")]
    project.configure(hardware={"cpu": {}})
    ran = project.run("--cores", 1, *records)
    assert ran.code == 1
    assert [(project.folder / record).is_file() for record in records] == [False, True]
    last = (project.folder / records[0]).with_name("measure.log").read_text().splitlines()[-1]
    assert last.startswith("error: models/mine.py:broken: forward fails: line ") and "RuntimeError: mat1" in last
    assert last in ran.text
    record = json.loads((project.folder / records[1]).read_text())
    assert record["summary"]["model"]["parameters"] == PARAMETERS
