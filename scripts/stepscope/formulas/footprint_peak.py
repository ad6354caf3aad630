"""GPU memory of a training step and of inference, in closed form: the peak. Standard library only.

The peak is the largest of a few moments, each a list of all that is alive then. From one block to
the next the memory in backward changes by the same amount, what a block's gradients need less what
the block saved, so that it is largest in the last or in the first block. Left out are moments that
hold less than these in models of usual proportions, and what is small (single numbers, the logits
of the targets, the sorting of tokens in the embedding's backward pass).

What libraries take for themselves is passed in (cuBLAS on an H100: 32 MiB for each thread that
multiplies, thus one in inference and two in a step). Bytes are those that tensors ask for.
PyTorch's allocator counts whole blocks: a tensor of 10 MiB or more gets memory of its own in steps
of 2 MiB, of which up to 1 MiB is not split off but counted as allocated
(c10/cuda/CUDACachingAllocator.cpp, `should_split`). For some sizes of weights that is 2 to 3 % of a
model.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

from stepscope.formulas import footprint
from stepscope.formulas.footprint import (
    HIDDEN,
    LOGITS,
    SCORES,
    STREAM,
    Contribution,
    Setup,
    tensor,
)
from stepscope.model.about import Optimizer
from stepscope.model.chosen import said

_KV = "batch × context × d_K"
_HEAD = "vocabulary × d_model"
Moment = tuple[str, str, list[Contribution]]  # phase, part, what is alive


@dataclass(frozen=True)
class Peak:
    """A moment and all that is alive in it, largest first."""

    phase: str
    part: str  # as modules are named, e.g. "last block/attention/softmax"
    contributions: list[Contribution]

    @property
    def bytes(self) -> int:
        return footprint.total(self.contributions)


def peak(setup: Setup, mode: str, workspace: int = 0) -> Peak:
    """Where most memory is allocated in a mode, in any step but the first, which makes the moments.

    workspace: bytes that libraries hold throughout.
    """
    return max(moments(setup, mode, workspace), key=lambda moment: moment.bytes)


def moments(setup: Setup, mode: str, workspace: int = 0) -> list[Peak]:
    """All moments that can be the peak, in their order.

    mode: "inference", "forward", "forward-backward" or "step".
    """
    always = [footprint.parameters(setup), *footprint.buffers(setup)]
    if workspace:
        library = Contribution("workspace", "", "libraries", "as given", (workspace,), "uint8")
        always.append(library)
    if mode == "inference":
        found = [*_inference(setup)]
    else:
        found = [*_loss(setup), *_backward(setup)]
        if mode == "forward":
            found = [moment for moment in found if moment[0] == "forward"]
        elif mode == "step":
            always.append(footprint.optimizer_state(setup))
            found.append(_optimizer(setup))
    return [
        Peak(phase, part, sorted([*always, *_merged(alive)], key=lambda each: -each.bytes))
        for phase, part, alive in found
    ]


def first_context_that_fails(
    setup: Setup, mode: str, capacity_bytes: int, workspace: int = 0
) -> int:
    """The smallest context, in tokens, whose peak is larger than `capacity_bytes`. The setup's own
    does not count."""

    def fails(context: int) -> bool:
        return peak(replace(setup, context=context), mode, workspace).bytes > capacity_bytes

    limit = 1
    while not fails(limit):
        limit *= 2
    # No moment shrinks with the context, and neither does their maximum.
    return bisect_left(range(limit + 1), True, lo=limit // 2, key=fails) if limit > 1 else 1


def _merged(contributions: list[Contribution]) -> list[Contribution]:
    """Equal tensors of several blocks as one contribution."""
    counts: dict[Contribution, int] = {}
    for each in contributions:
        one = replace(each, count=1)
        counts[one] = counts.get(one, 0) + each.count
    return [replace(one, count=count) for one, count in counts.items()]


def _loss(setup: Setup) -> Iterator[Moment]:
    """The end of forward and the start of backward: all activations and cast weights are alive, and
    no gradient of a block is."""
    blocks = footprint.saved_by_block(setup, setup.shape.num_layers)
    outside = footprint.saved_outside(setup)
    casts = footprint.all_cast_weights(setup)
    if setup.of_loss.keeps == "gradients":
        casts = footprint.cast_weights(setup, count=setup.shape.num_layers)
        yield "forward", "loss", [*blocks, *outside, *casts, *_made_by_chunk(setup)]
        of_norm = tensor(setup, "workspace", "loss", "gradient of final norm", STREAM, "float32")
        widened = [of_norm] if setup.is_autocast else []
        yield "backward", "loss", [*blocks, *outside, *casts, *widened]
        return
    made_forward, made_backward = _made_by_loss(setup)
    yield "forward", "loss", [*blocks, *outside, *casts, *made_forward]
    yield "backward", "loss", [*blocks, *outside, *casts, *made_backward]

    # What the loss has saved and the weight's copy are gone once the head's two products are done.
    remaining = [each for each in outside if each.module != "loss"]
    of_head = [
        tensor(setup, "workspace", "loss", "gradient of logits", LOGITS, setup.low),
        tensor(setup, "workspace", "LM head", "gradient of head input", STREAM, setup.low),
        tensor(setup, "workspace", "LM head", "gradient of head weight", _HEAD, setup.low),
    ]
    yield "backward", "LM head", [*blocks, *remaining, *casts, *of_head]


def _made_by_loss(setup: Setup) -> tuple[list[Contribution], list[Contribution]]:
    """What a loss of all logits needs at its largest moment of forward and of backward, besides
    what it saves.

    Our own works in fp32 and in place, on one tensor as large as the logits; its gradient is cast
    to the logits' type. Compiled it writes that gradient alone. PyTorch's is given the logits in
    fp32, and makes a gradient for its mean of logarithms and one for their softmax.
    """

    def made(category: str, name: str, dtype: str = "float32") -> Contribution:
        return tensor(setup, category, "loss", name, LOGITS, dtype)

    of_logits = made("workspace", "gradient of logits", setup.low)
    wide_gradient = made("workspace", "gradient of logits in fp32")
    if setup.of_loss.keeps == "log-softmax":
        forward = [made("activations", "logits", setup.low)]
        if setup.is_autocast:
            forward.append(made("activations", "logits in fp32"))
        return forward, [made("workspace", "gradient of log-softmax"), wide_gradient]
    if setup.of_loss.is_fused:
        return [], [of_logits]
    backward = [wide_gradient, of_logits] if setup.is_autocast else [wide_gradient]
    return [made("activations", "exponentials")], backward


def _made_by_chunk(setup: Setup) -> list[Contribution]:
    """What the head and the loss of a chunk of tokens need at the last of them: what all are made
    from, the chunk's logits and their gradient; under autocast also the weight's copy, and the
    product that is added to its gradient."""

    def made(name: str, dims: str, dtype: str) -> Contribution:
        return tensor(setup, "workspace", "LM head", name, dims, dtype)

    found = [
        tensor(setup, "activations", "final norm", "final norm", STREAM, "float32"),
        made("logits of a chunk", "chunk × vocabulary", setup.low),
        made("gradient of logits of a chunk", "chunk × vocabulary", setup.low),
    ]
    if setup.is_autocast:
        found.append(made("head weight", _HEAD, setup.low))
        found.append(made("chunk of head input", "chunk × d_model", setup.low))
        found.append(made("product for head weight's gradient", _HEAD, setup.low))
    return found


def _backward(setup: Setup) -> Iterator[Moment]:
    """The largest moments of a block's backward pass, in the last block, which is the first to run,
    and the first; then the embedding's."""
    layers = setup.shape.num_layers
    residual_gradient = tensor(
        setup, "workspace", "blocks.*", "gradient of residual", STREAM, "float32"
    )
    for label, before in {"last block": layers - 1, "first block": 0}.items():
        elsewhere = [
            *footprint.saved_by_block(setup, before),
            *footprint.cast_weights(setup, count=before),
            *footprint.weight_gradients(setup, ("head", "final gain")),
            *footprint.gradients_of_block(setup, layers - 1 - before),
            residual_gradient,
        ]
        yield "backward", f"{label}/FFN", [*elsewhere, *_gate_backward(setup)]
        if setup.keeps_scores:
            yield "backward", f"{label}/attention/softmax", [*elsewhere, *_softmax_backward(setup)]
        if layers == 1:
            break
    # The embedding comes last, when nothing else that the forward pass saved is left.
    yield "backward", "embedding", [footprint.gradients(setup), residual_gradient]


def _gate_backward(setup: Setup) -> list[Contribution]:
    """The product silu(gate) × up passes its gradient on to both factors; the down projection's
    backward is done."""
    saved = [each for each in footprint.saved_by_block(setup) if each.name != "silu × up"]
    hidden = [
        tensor(setup, "workspace", "blocks.*/FFN", f"gradient of {name}", HIDDEN, setup.low)
        for name in ("silu × up", "silu", "up")
    ]
    casts = footprint.cast_weights(setup, ("QKV", "output", "gate", "up"))
    return [*saved, *casts, *footprint.weight_gradients(setup, ("down",)), *hidden]


def _softmax_backward(setup: Setup) -> list[Contribution]:
    """exponentials / sums passes its gradient on to both factors, the second one's as large as the
    scores before it is summed; the backward of the FFN, the output projection and attention × V is
    done."""
    saved = footprint.saved_by_block(setup)
    names = [each.name for each in saved]
    gone = ("attention weights", "V", "QKV")
    kept = [each for each in saved[: names.index("attended")] if each.name not in gone]
    module = "blocks.*/attention/softmax"
    scores = [
        tensor(setup, "workspace", module, f"gradient of {name}", SCORES, "float32")
        for name in ("attention weights", "exponentials", "1 / sums, before the sum")
    ]
    of_v = tensor(
        setup, "workspace", "blocks.*/attention/attention × V", "gradient of V", _KV, setup.low
    )
    done = footprint.weight_gradients(setup, ("output", "gate", "up", "down", "FFN gain"))
    return [*kept, *footprint.cast_weights(setup, ("QKV",)), *done, of_v, *scores]


def _optimizer(setup: Setup) -> Moment:
    """All gradients, and what the optimizer needs in a step: the roots of second moments of one
    parameter at a time in our own AdamW, of all in PyTorch's, none in the fused one.

    Raises ValueError for one that does not say it.
    """
    dims = said("optimizer", setup.optimizer, Optimizer).workspace
    if dims is None:
        raise ValueError(f"optimizer {setup.optimizer}: its workspace is not known")
    alive = [footprint.gradients(setup)]
    if dims:
        size = footprint.largest_parameter(setup) if dims == "largest parameter" else dims
        alive.append(tensor(setup, "workspace", "optimizer", "denominators", size, "float32"))
    return "optimizer", "", alive


def _inference(setup: Setup) -> Iterator[Moment]:
    """The largest moments of the last block, when autocast has copied most weights, and the LM
    head.

    A variable of Python keeps its tensor until its function returns: in a block its input, the
    norm's result and what attention returns, in attention Q, K and the projection of which V is a
    view.
    """
    low, is_autocast = setup.low, setup.is_autocast

    def made(module: str, name: str, dims: str, dtype: str = "float32") -> Contribution:
        return tensor(setup, "activations", module, name, dims, dtype)

    def in_block(module: str, name: str, dims: str, dtype: str = "float32") -> Contribution:
        return made(f"blocks.*/{module}", name, dims, dtype)

    casts_before = footprint.cast_weights(setup, count=setup.shape.num_layers - 1)
    residual = made("blocks.*", "residual", STREAM)
    in_attention = [
        *casts_before,
        *footprint.cast_weights(setup, ("QKV",)),
        residual,
        in_block("attention norm", "attention norm", STREAM),
        in_block("attention/QKV projection", "QKV", footprint.QKV, low),
        in_block("attention/RoPE(Q)", "Q", STREAM, low),
    ]
    rotation = [
        in_block("attention/RoPE(K)", "swapped pairs", _KV, low),
        in_block("attention/RoPE(K)", "K × cos", _KV),
        in_block("attention/RoPE(K)", "K in fp32", _KV),
    ]
    if is_autocast:
        rotation.append(in_block("attention/RoPE(K)", "swapped pairs in fp32", _KV))
    yield "inference", "last block/attention/RoPE(K)", [*in_attention, *rotation]

    if setup.keeps_scores:
        softmax = [
            in_block("attention/RoPE(K)", "K", _KV, low),
            in_block("attention/attention scores", "scores", SCORES, low),
            in_block("attention/softmax", "exponentials", SCORES),
            in_block("attention/softmax", "attention weights in fp32", SCORES),
            in_block("attention/softmax", "maxima", "batch × heads × context"),
            in_block("attention/softmax", "1 / sums", "batch × heads × context"),
        ]
        if is_autocast:
            softmax.append(in_block("attention/softmax", "attention weights", SCORES, low))
        yield "inference", "last block/attention/softmax", [*in_attention, *softmax]

    in_ffn = [
        *casts_before,
        *footprint.cast_weights(setup, ("QKV", "output", "gate", "up")),
        replace(residual, count=2),
        in_block("attention/output projection", "attended", STREAM, low),
        in_block("FFN norm", "FFN norm", STREAM),
        in_block("FFN", "silu", HIDDEN, low),
        in_block("FFN", "up", HIDDEN, low),
        in_block("FFN", "silu × up", HIDDEN, low),
    ]
    yield "inference", "last block/FFN", in_ffn

    outside = [made("final norm", "final norm", STREAM), made("LM head", "logits", LOGITS, low)]
    if is_autocast:
        outside.append(made("LM head", "head input", STREAM, low))
    yield "inference", "LM head", [*footprint.all_cast_weights(setup), *outside]
