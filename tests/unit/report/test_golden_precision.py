"""The precision study's whole section, as it was last looked at."""

import golden
from synthetic_precision import GIB, dtypes, lost, probe, profile, summed, timing, tried, write

SQUARES = "variance as mean(x²) − mean(x)²"
SHAPE = {"d_model": 128, "d_ff": 512, "num_layers": 4, "num_heads": 4, "context": 64, "batch": 2}


def probes() -> list[dict]:
    """A GPU on which all probes ran, and a CPU that lacks one of them."""
    host = [probe(name, "host", device="cpu") for name in ("accumulation", "autocast")]
    host.append(probe("normalisation", "host", "unsupported", "cpu", reason="no kernel of this kind."))
    return [probe("accumulation"), probe("autocast"), probe("normalisation", status="failed"), *host]


def accumulation() -> list[dict]:
    kinds = (("bf16 += bf16",), ("fp16 += fp16", 9.953125, 1000), ("fp32 += bf16 cast to fp32", 10.00976562, 1000))
    return [summed(*kind, hardware=hardware) for hardware in ("gpu", "host") for kind in kinds]


def parts() -> list[dict]:
    """What autocast gives, with a format that the host does not have."""
    own = [dtypes("head", "bf16", "own"), dtypes("blocks.*.attention.qkv", "bf16", "own", modules=4)]
    own += [dtypes("embedding", "fp32", "own", parameter=None, buffer="fp32"), dtypes("unheard of", "fp32", "own")]
    toy = [dtypes("loss", "fp32"), *(dtypes("layer_norm", "fp32", name=name) for name in ("fp16", "bf16"))]
    host = dtypes("layer_norm", "bf16", hardware="host")
    none = {"hardware": "host", "model": "toy", "autocast": "fp16", "status": "unsupported", "reason": "no kernel"}
    return [*toy, *own, host, none]


def forced() -> list[dict]:
    """Overflow, cancellation, sums that stop, and a format that is not there."""
    rows = [tried(operation, value=value) for operation in ("RMSNorm", "LayerNorm") for value in (0.001, 255.0)]
    rows += [tried(name, value=256.0, error=1.0, zero=8, inner="inf") for name in ("RMSNorm", "LayerNorm")]
    rows += [tried(value=256.0, way="under autocast", inner=None), tried("LayerNorm", value=255.0, way=SQUARES)]
    rows += [tried("LayerNorm", value=1e5, name="bf16", error=None, infinite=2, inner="inf")]
    near = tried("LayerNorm", "mean of x", 10.0, way=SQUARES, error=0.01, inner=1.0078125)
    far = tried("LayerNorm", "mean of x", 100.0, way=SQUARES, error=314.0, inner=0.0)
    negative = tried("LayerNorm", "mean of x", 1000.0, "bf16", SQUARES, error=None, nan=8, inner=-4.0)
    sums = [tried("softmax", "equal logits", 8192.0, way="sum one by one", inner=2048.0, inner_exact=8192.0, error=3.0)]
    sums += [tried("softmax", "equal logits", 8192.0, "bf16", "sum one by one", inner=256.0, inner_exact=8192.0)]
    none = tried("softmax", "largest logit", 8.0, "bf16", status="unsupported", error=None, reason="no bf16 here")
    return [*rows, near, far, negative, *sums, none]


def gradients() -> list[dict]:
    row = {"hardware": "gpu", "loss_fp32": 2.0, "zero_share": 0.0, "not_finite": 0} | SHAPE
    plain = row | {"autocast": "fp32", "loss": 2.0, "error": 0.0}
    fp16 = row | {"autocast": "fp16", "loss": 2.004, "error": 0.01, "zero_share": 0.25}
    return [plain, fp16, row | {"autocast": "bf16", "loss": None, "error": None, "not_finite": 1200}]


def operators() -> list[dict]:
    key = {"hardware": "gpu", "operation": "own softmax", "autocast": "bf16", "given": "bf16", "status": "ok"}
    ran = [("amax", "bf16", "bf16"), ("_to_copy", "bf16", "fp32"), ("exp_", "fp32", "fp32"),
           ("_to_copy", "fp32", "bf16")]  # fmt: skip
    rows = [key | {"order": i, "operator": a, "input_dtypes": b, "output_dtype": c} for i, (a, b, c) in enumerate(ran)]
    norm = key | {"operation": "torch LayerNorm", "operator": "native_layer_norm", "input_dtypes": "bf16 + fp32"}
    rows += [norm | {"order": 1, "output_dtype": "bf16 + fp32"}, norm | {"given": "fp32", "output_dtype": "fp32"}]
    return [*rows, key | {"operation": "torch RMSNorm", "status": "unsupported", "reason": "none"}]


def attention() -> list[dict]:
    key = {"hardware": "gpu", "autocast": "fp16", "part": "attention scores"}
    shapes = [{"operator": "mul", "input_dtypes": "fp16"}, {"operator": "arange", "input_dtypes": None}]
    return [key | each | {"output_dtype": "fp16"} for each in shapes]


def times() -> list[dict]:
    """Faster, slower, same, unclear, of one process; what fits nowhere, only in bf16, or is not possible."""
    small = [timing(), timing(precision="bf16", ms=12.5), timing(precision="fp16", ms=12.0, processes=1)]
    medium = [timing("medium", ms=20.0), timing("medium", precision="bf16", ms=19.9)]
    large = [timing("large", ms=80.0), timing("large", precision="bf16", ms=20.0, step_peak_allocated_bytes=3 * GIB)]
    longer = [timing(context=512), timing(context=512, precision="bf16", ms=5.0)]
    longer += [lost(size="medium", context=512), timing("medium", 512, "bf16", ms=7.0)]
    longer += [lost(size="large", context=512), lost(size="large", context=512, precision="bf16")]
    none = lost(size="medium", precision="fp16") | {"step_status": "unsupported", "step_peak_allocated_bytes": None}
    host = [timing(ms=ms, precision=name, repeat=run, hardware="host", spread=0.0001)
            for name, both in (("fp32", (10.0, 10.1)), ("bf16", (10.02, 10.03)))
            for run, ms in enumerate(both, start=1)]  # fmt: skip
    host += [timing("medium", hardware="host"), timing("medium", precision="bf16", hardware="host", ms=25.0)]
    return [*small, *medium, *large, *longer, none, *host]


def test_the_section_is_the_one_that_was_looked_at(tmp_path):
    profiles = [profile(kernels=1000.0, busy=8.0), profile(precision="bf16", kernels=1250.0, busy=4.0)]
    tables = write(
        tmp_path,
        {
            "precision": probes(),
            "precision_accumulation": accumulation(),
            "precision_dtypes": parts(),
            "precision_forced": forced(),
            "precision_gradients": gradients(),
            "precision_operators": operators(),
            "precision_attention": attention(),
            "timing": [*times(), timing(context=256), timing(context=256, precision="bf16", ms=10.2)],
            "profile": profiles,
        },
    )
    golden.check("precision", tables)
