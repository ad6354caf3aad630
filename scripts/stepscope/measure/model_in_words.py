"""What is shown of a model of one's own, made of its description. Standard library only."""

OPTIMIZER_STATES = 2  # AdamW keeps two moments of each parameter


def lines(found: dict, context: int, batch: int) -> list[str]:
    """The description in words, a line each."""
    blocks, operations, count = found["blocks"], found["flops"], found["parameters"]
    trainable, attention = found["trainable_parameters"], found.get("attention")
    gradients, state = 4 * trainable, 4 * OPTIMIZER_STATES * trainable
    rows = [
        ("model", found["reference"] + "".join(f" {key}={value}" for key, value in found["keys"].items())),
        ("class", f"{found['class']}, {found['dtype']}"),
        ("parameters", f"{count:,}" + (f", of which {trainable:,} are trained" if trainable != count else "")),
        ("tied", ", ".join(found["tied"]) or "none"),
        *([("attention", f"{attention} (transformers: config._attn_implementation)")] if attention else []),
        ("inputs", f"{found['inputs']}; batch {batch}, context {context}"),
        ("loss", found["loss"]),
        ("blocks", "none" if blocks is None else f"{blocks['count']} x {blocks['class']} in {blocks['path']}"),
        ("ranges", f"by {found['ranges']['by']}: {', '.join(found['ranges']['names']) or 'none'}"),
        ("dropout", ", ".join(f"{each:g}" for each in found["dropout"]) or "none"),
        ("operations", f"{_giga(operations['counter'])} counted by torch, {_giga(operations['formula'])} by formula"),
        *([("", f"they disagree: {operations['why']}")] if operations["disagree"] else []),
        (
            "memory",
            f"{_mebi(4 * count)} parameters, {_mebi(gradients)} gradients, {_mebi(state)} optimizer, "
            f"{_mebi(found['buffers_bytes'])} buffers; activations are measured",
        ),
        *(("unknown", line) for line in found["unknown"]),
    ]
    return [f"{name:11} {text}" for name, text in rows]


def _giga(operations: int | None) -> str:
    return "not" if operations is None else f"{operations / 1e9:,.3f} GFLOP"


def _mebi(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"
