"""The dry run: what it prints, and what it says of what it cannot describe."""

import json

import pytest
from common import ROOT


@pytest.fixture
def describe(monkeypatch, run_script):
    """The program's output for command-line words; where it fails, its one line."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.chdir(ROOT)

    def describe(*words):
        done = run_script("describe_model.py", *words)
        return done.stdout or done.stderr.strip()

    return describe


@pytest.fixture
def configuration(tmp_path):
    """A configuration with models."""
    path = tmp_path / "mine.yaml"
    path.write_text(
        "models:\n  small: {build: models/gpt.py:build, layers: 1, width: 8, heads: 2}\n  odd:"
        " {layers: 2}\n"
    )
    return str(path)


def test_what_is_printed(describe):
    words = ["--keys", '{"layers": 1, "width": 8, "heads": 2}', "--context", "16", "--batch", "2"]
    said = describe("models/gpt.py:build", *words)
    count = 10_000 * 8 + 16 * 8 + (12 * 64 + 13 * 8) + 2 * 8
    gflop = (6 * 32 * (10_000 * 8 + 12 * 64) + 12 * 2 * 16**2 * 8) / 1e9
    assert f"parameters  {count:,}\n" in said and f"{gflop:.3f} GFLOP counted by torch" in said
    assert f"{2 * count * 4 / 2**20:.1f} MiB optimizer" in said


def test_a_model_of_the_configuration_as_json(describe, configuration):
    found = json.loads(describe("--models", "small", "--config", configuration, "--json"))
    assert found["reference"] == "models/gpt.py:build"
    assert found["keys"] == {"layers": 1, "width": 8, "heads": 2}


@pytest.mark.parametrize("chosen", ["eager", "sdpa"])
def test_the_attention_of_transformers_is_shown(chosen, describe):
    sizes = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    keys = dict.fromkeys(sizes, 2) | {"vocab_size": 16, "attn_implementation": chosen}
    lines = describe("hf:gpt_neox", "--keys", json.dumps(keys), "--context", "8").splitlines()
    assert f"attention   {chosen} (transformers: config._attn_implementation)" in lines


NOTHING = "give FILE.py:FUNCTION or hf:NAME, or else --models NAME"


@pytest.mark.parametrize(
    "words, said",
    {
        "": NOTHING,
        "x.py:build --models small": NOTHING,
        "x.py:build": "x.py:build: there is no file x.py",
        "models/gpt.py:build --keys layers": "--keys: 'layers' is no mapping in JSON",
        "models/gpt.py:build --keys 3": "--keys: '3' is no mapping in JSON",
        "--models large --config {}": "has no model 'large'; under models there are: small, odd",
        "--models odd --config {}": "models.odd has neither build nor hf",
        "--models odd --config absent.yaml": "absent.yaml cannot be read: No such file",
    }.items(),
)
def test_what_cannot_be_described_is_one_line(words, said, describe, configuration):
    answer = describe(*words.format(configuration).split())
    assert answer.startswith("error: ") and said in answer
    assert "\n" not in answer
