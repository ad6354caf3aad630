"""Linters of the workflow and of its Python, and versions that are pinned the same everywhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(sys.executable).parent


def test_snakemake_finds_nothing_to_lint(bare_project):
    shown = bare_project.run("--lint")
    assert shown.code == 0, shown.text
    assert "Lints for" not in shown.text


@pytest.mark.parametrize(
    "command",
    ["snakefmt --check --format-shell Snakefile rules", "ruff check --no-cache", "ruff format --check --no-cache"],
)
def test_linters_and_formatters_find_nothing(command):
    program, *words = command.split()
    path = f"{TOOLS}:{os.environ['PATH']}"  # snakefmt looks for shfmt there
    shown = subprocess.run(
        [TOOLS / program, *words], cwd=ROOT, env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr


def required() -> dict[str, str]:
    """Package → version of requirements.txt and requirements-base.txt."""
    text = (ROOT / "requirements-base.txt").read_text() + (ROOT / "requirements.txt").read_text()
    return {name.lower(): version for name, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)}


def test_requirements_hold_everything_once():
    assert "-r requirements-base.txt" in (ROOT / "requirements.txt").read_text().splitlines()
    assert {"snakemake", "torch", "einops", "pandas", "matplotlib", "jinja2"} <= set(required())
    assert "torch==" not in (ROOT / "requirements-base.txt").read_text()


def test_every_requirement_is_pinned_and_says_why():
    for file in ROOT.glob("requirements*.txt"):
        lines = [line for line in file.read_text().splitlines() if line and not line.startswith(("#", "-r "))]
        assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.+]+(; \w+ == \S+)? +# \S.*", line)] == []


@pytest.mark.parametrize("environment", sorted(path.name for path in (ROOT / "envs").glob("*.yaml")))
def test_environments_pin_the_required_versions(environment):
    parts = yaml.safe_load((ROOT / "envs" / environment).read_text())["dependencies"]
    (pinned,) = [part["pip"] for part in parts if isinstance(part, dict)]
    versions = dict(line.lower().split("==") for line in pinned)
    assert versions == {name: required().get(name) for name in versions}


def test_environments_hold_what_their_programs_import():
    named = {file.stem: file.read_text().lower() for file in (ROOT / "envs").glob("*.yaml")}
    assert all(f"- {name}==" in named["measure"] for name in ("torch", "einops", "nvidia-ml-py"))
    assert all(f"- {name}==" in named["report"] for name in ("pandas", "matplotlib", "jinja2"))
    assert "torch==" not in named["report"]
