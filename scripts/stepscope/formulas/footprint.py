"""GPU memory of a training step and of inference, in closed form: the tensors. Standard library
only.

Every tensor is written as its dimensions ("batch × heads × context × context") and its type, and
its bytes are computed from that very text, so that a formula in a report cannot disagree with its
number. Which tensors there are follows from the model's code and from what PyTorch's derivatives
save (tools/autograd/derivatives.yaml); views and tensors that share a storage count once.
`stepscope.formulas.footprint_peak` adds them up at the moments that can be the peak.

Under autocast (bf16, fp16) this follows CUDA's lists of operators (ATen/autocast_mode.h): matrix
products and fused attention run in 16 bits; exp, log, rsqrt, reciprocal and sum in fp32; addcmul in
the widest type among its inputs; and all others, as mul, silu and mean, in the type that they are
given. A weight's 16-bit copy is kept until autocast ends, without gradients too (`cached_cast` asks
whether the weight is a leaf that requires a gradient, not whether autograd is on); an activation's
copy is made anew for each product. The residual stream stays in fp32, because the embedding is not
cast and fp32 + bf16 is fp32.

`sdpa` is taken to run a fused kernel: FlashAttention or cuDNN's in 16 bits, the memory-efficient
kernel in fp32, which rounds its row statistics up to 32 queries. All three save Q, K, V, their
result and one number a row. A window is a mask to `sdpa` (context × context), which it turns into
numbers and keeps for every block; `flex` and `triton` know it by its width. With fewer heads of K
and V PyTorch's memory-efficient kernel does not run: in fp32 `sdpa` then needs more than is said
here.
"""

import math
from dataclasses import dataclass, replace

from stepscope.model.about import Attention, Loss, Optimizer
from stepscope.model.chosen import said
from stepscope.model.formats import FORMATS
from stepscope.model.losses import CHUNK
from stepscope.model.shape import ModelShape

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "int64": 8, "uint8": 1}
STREAM = "batch × context × d_model"
_HEADS = "batch × heads × context × d_head"
_KV_HEADS = "batch × K heads × context × d_head"
QKV = "batch × context × 3 d_model"
SCORES = "batch × heads × context × context"
HIDDEN = "batch × context × d_ff"
LOGITS = "batch × context × vocabulary"


@dataclass(frozen=True)
class Setup:
    """A model and how it is run. precision, attention, optimizer and loss are values of the options
    of those names."""

    shape: ModelShape
    batch: int
    context: int  # tokens
    precision: str = "fp32"
    attention: str = "naive"
    optimizer: str = "own"
    loss: str = "own"

    @property
    def is_known(self) -> bool:
        """Whether the closed form knows all that the options need: of a precision in the blocks'
        linear layers alone it does not know the operands that are kept."""
        says = said("optimizer", self.optimizer, Optimizer)
        is_whole = not FORMATS[self.precision].outside
        return is_whole and None not in (says.state, says.workspace)

    @property
    def keeps_scores(self) -> bool:
        """Whether attention has tensors of (context x context) for each head."""
        return said("attention", self.attention, Attention).keeps == "scores"

    @property
    def of_loss(self) -> Loss:
        """What the loss says of itself."""
        return said("loss", self.loss, Loss)

    @property
    def is_autocast(self) -> bool:
        return FORMATS[self.precision].is_autocast

    @property
    def low(self) -> str:
        """Type of the results of matrix products."""
        return FORMATS[self.precision].dtype

    @property
    def sizes(self) -> dict[str, int]:
        """What the dimensions in formulas stand for."""
        shape = self.shape
        return {
            "batch": self.batch,
            "heads": shape.num_heads,
            "context": self.context,
            "chunk": min(CHUNK, self.batch * self.context),
            "context in 32s": math.ceil(self.context / 32) * 32,
            "d_head": shape.d_head,
            "K heads": shape.kv_heads,
            "d_K": shape.kv_width,
            "d_model": shape.d_model,
            "3 d_model": 3 * shape.d_model,
            "d_model + 2 d_K": shape.qkv_width,
            "d_ff": shape.d_ff,
            "vocabulary": shape.vocab_size,
            "parameters": shape.parameters,
        }


@dataclass(frozen=True)
class Contribution:
    """`count` equal tensors."""

    category: str
    # the part that makes it, or saves it where autograd keeps it: "blocks.*/attention/softmax"
    module: str
    name: str
    dims: str  # of one, in words: "batch × context × d_model"
    shape: tuple[int, ...]  # of one
    dtype: str
    count: int = 1
    op: str = ""  # PyTorch's operator that makes it, where it is known

    @property
    def bytes(self) -> int:
        """Of all together."""
        return self.count * math.prod(self.shape) * DTYPE_BYTES[self.dtype]

    @property
    def formula(self) -> str:
        """What `bytes` is made of: "24 × batch × context × d_model × 4 B"."""
        return f"{self.count} × " * (self.count != 1) + f"{self.dims} × {DTYPE_BYTES[self.dtype]} B"


def tensor(
    setup: Setup, category: str, module: str, name: str, dims: str, dtype: str, count: int = 1
) -> Contribution:
    """`count` tensors of dimensions such as "batch × context × d_model"."""
    dims = spelled(setup, dims)
    shape = tuple(setup.sizes[dim] for dim in dims.split(" × "))
    return Contribution(category, module, name, dims, shape, dtype, count)


# A dimension of Q's, K's or V's -> what it is called where K and V have as many heads as Q, and
# where they have fewer.
_OF_HEADS = {
    "3 d_model": ("3 d_model", "d_model + 2 d_K"),
    "K heads": ("heads", "K heads"),
    "d_K": ("d_model", "d_K"),
}


def spelled(setup: Setup, dims: str) -> str:
    """Dimensions by the names that they have in this model."""
    is_grouped = setup.shape.kv_heads != setup.shape.num_heads
    return " × ".join(_OF_HEADS.get(dim, (dim, dim))[is_grouped] for dim in dims.split(" × "))


def total(contributions: list[Contribution]) -> int:
    """Bytes of all together."""
    return sum(each.bytes for each in contributions)


# The weights of a block in the order of the forward pass, which is that of their products, then
# those outside.
_BLOCK_WEIGHTS = {
    "QKV": ("blocks.*/attention/QKV projection", "3 d_model × d_model"),
    "output": ("blocks.*/attention/output projection", "d_model × d_model"),
    "gate": ("blocks.*/FFN", "d_ff × d_model"),
    "up": ("blocks.*/FFN", "d_ff × d_model"),
    "down": ("blocks.*/FFN", "d_model × d_ff"),
}
_BLOCK_GAINS = {
    "attention gain": ("blocks.*/attention norm", "d_model"),
    "FFN gain": ("blocks.*/FFN norm", "d_model"),
}
_OUTSIDE = {
    "head": ("LM head", "vocabulary × d_model"),
    "final gain": ("final norm", "d_model"),
    "embedding": ("embedding", "vocabulary × d_model"),
}
WEIGHTS = _BLOCK_WEIGHTS | _BLOCK_GAINS | _OUTSIDE


def parameters(setup: Setup) -> Contribution:
    """All of them, in fp32 whatever the precision."""
    return tensor(setup, "parameters", "", "parameters", "parameters", "float32")


def optimizer_state(setup: Setup) -> Contribution:
    """AdamW's two moments of each parameter, or as many as another optimizer says. (PyTorch's fused
    AdamW also keeps a step count for each parameter.)

    Raises ValueError for one that does not say it.
    """
    count = said("optimizer", setup.optimizer, Optimizer).state
    if count is None:
        raise ValueError(f"optimizer {setup.optimizer}: its state is not known to the closed form")
    return tensor(setup, "optimizer state", "optimizer", "moments", "parameters", "float32", count)


def gradients(setup: Setup) -> Contribution:
    """Those of all parameters."""
    return tensor(setup, "gradients", "", "gradients", "parameters", "float32")


def weight_gradients(setup: Setup, names: tuple[str, ...], count: int = 1) -> list[Contribution]:
    """Gradients of the named weights in each of `count` blocks (1 for those outside of the
    blocks)."""
    return [
        tensor(setup, "gradients", module, f"{name} gradient", dims, "float32", count)
        for name, (module, dims) in WEIGHTS.items()
        if name in names and count
    ]


def gradients_of_block(setup: Setup, count: int = 1) -> list[Contribution]:
    """Gradients of all parameters of `count` blocks."""
    return weight_gradients(setup, (*_BLOCK_WEIGHTS, *_BLOCK_GAINS), count)


def buffers(setup: Setup) -> list[Contribution]:
    """Tables of the rotary embedding, the mask that naive attention keeps, and the batch."""
    tables = tensor(setup, "buffers", "RoPE", "cos and sin", "context × d_head", "float32", 2)
    batch = tensor(setup, "buffers", "", "tokens and targets", "batch × context", "int64", 2)
    if not setup.keeps_scores and not _masks_window(setup):
        return [tables, batch]
    dtype = "uint8" if _masks_window(setup) else setup.low
    mask = tensor(setup, "buffers", "attention", "causal mask", "context × context", dtype)
    return [tables, mask, batch]


def _masks_window(setup: Setup) -> bool:
    """Whether attention, as PyTorch's, is given a mask of booleans, since it knows no window that
    hides something."""
    hides = setup.shape.keys_seen(setup.context) < setup.context
    return hides and said("attention", setup.attention, Attention).masks_window


def cast_weights(
    setup: Setup, names: tuple[str, ...] = tuple(_BLOCK_WEIGHTS), count: int = 1
) -> list[Contribution]:
    """Autocast's copies of the named matrices in each of `count` blocks; none without autocast."""
    return [
        tensor(setup, "cast weights", module, f"{name} weight", dims, setup.low, count)
        for name, (module, dims) in WEIGHTS.items()
        if name in names and count and setup.is_autocast
    ]


def all_cast_weights(setup: Setup) -> list[Contribution]:
    """Autocast's copies of all matrices that are multiplied by. The embedding is a look-up, and not
    among them."""
    return cast_weights(setup, count=setup.shape.num_layers) + cast_weights(setup, ("head",))


def largest_parameter(setup: Setup) -> str:
    """Dimensions of the largest parameter."""

    def size(dims: str) -> int:
        return tensor(setup, "", "", "", dims, "float32").bytes

    return max(sorted({dims for _, dims in WEIGHTS.values()}), key=size)


Row = tuple[str, str, str, str, str]  # module, name, operator, dimensions, type


def saved_by_block(setup: Setup, count: int = 1) -> list[Contribution]:
    """What autograd keeps for the backward pass of each of `count` blocks, in the order in which it
    is saved.

    Autocast's copies of weights are not in it (`cast_weights`), nor the block's result, which the
    next part saves.
    """
    low = setup.low
    # without autocast the norm's result itself
    input_op = "_to_copy" if setup.is_autocast else "mul"
    of_attention = _saved_by_scores if setup.keeps_scores else _saved_by_fused
    # Each of the two products casts its input for itself; in fp32 both share the norm's result.
    up_input = [("FFN", "up input", input_op, STREAM, low)] if setup.is_autocast else []
    rows = [
        *_saved_by_norm("attention norm", "block input"),
        ("attention/QKV projection", "QKV input", input_op, STREAM, low),
        *of_attention(setup),
        *_saved_by_norm("FFN norm", "residual after attention"),
        ("FFN", "gate input", input_op, STREAM, low),
        ("FFN", "gate", "mm", HIDDEN, low),
        *up_input,
        ("FFN", "silu", "silu", HIDDEN, low),
        ("FFN", "up", "mm", HIDDEN, low),
        ("FFN", "silu × up", "mul", HIDDEN, low),
    ]
    return _saved(setup, "blocks.*/", rows, count)


def saved_outside(setup: Setup) -> list[Contribution]:
    """What autograd keeps for the final norm, the LM head and the loss; the embedding needs only
    the tokens."""
    norm = _saved(setup, "", _saved_by_norm("final norm", "residual of the last block"))
    return [*norm, *saved_by_head_and_loss(setup)]


def saved_by_head_and_loss(setup: Setup) -> list[Contribution]:
    """What they keep: the head's input, and the logits and a number or two a row, or all logarithms
    of probabilities; in chunks the gradients of both factors of the head's product instead."""
    input_op = "_to_copy" if setup.is_autocast else "mul"
    head_input = ("LM head", "head input", input_op, STREAM, setup.low)
    row = ("loss", "log-sum-exp of logits", "add", "batch × context", "float32")
    logits = ("loss", "logits", "mm", LOGITS, setup.low)
    if setup.of_loss.keeps == "gradients":
        return [
            tensor(setup, "workspace", "LM head", "gradient of head input", STREAM, setup.low),
            *weight_gradients(setup, ("head",)),
        ]
    if setup.of_loss.keeps == "log-softmax":
        log_softmax = ("loss", "log-softmax of logits", "_log_softmax", LOGITS, "float32")
        return _saved(setup, "", [head_input, log_softmax])
    if setup.of_loss.is_fused:  # a compiler keeps maximum and logarithm apart
        maximum = ("loss", "maximum of logits", "amax", "batch × context", "float32")
        return _saved(setup, "", [head_input, logits, maximum, row])
    return _saved(setup, "", [head_input, logits, row])


def _saved(setup: Setup, prefix: str, rows: list[Row], count: int = 1) -> list[Contribution]:
    """A contribution for each row, of as many tensors as there are blocks; none of no block."""
    found = []
    for module, name, op, dims, dtype in rows:
        one = tensor(setup, "activations", prefix + module, name, dims, dtype, count)
        found.append(replace(one, op=op))
    return found if count else []


def _saved_by_norm(module: str, input_name: str) -> list[Row]:
    """RMSNorm: its input, a version of the residual stream; 1 / rms; and x / rms for the gain's
    gradient."""
    return [
        (module, input_name, "add", STREAM, "float32"),
        (module, f"{module}: 1 / rms", "rsqrt", "batch × context", "float32"),
        (module, f"{module}: x / rms", "mul", STREAM, "float32"),
    ]


def _saved_by_scores(setup: Setup) -> list[Row]:
    """Attention as the formula reads. The scores themselves are not kept: the mask and the
    exponential are applied in place."""
    # matmul wants batch and heads as one dimension. Heads are cut out of the projection's result,
    # so that this makes a copy, unless one of the two is 1: then V stays a view, and keeps Q, K and
    # V of the projection in memory. Heads of Q that share one of K stand one after the other, which
    # is a copy in any case.
    shape, low = setup.shape, setup.low
    is_view = 1 in (setup.batch, shape.kv_heads)
    scaled = "mul" if is_view and shape.kv_heads == shape.num_heads else "clone"
    v = ("QKV", "mm", QKV, low) if is_view else ("V", "clone", _KV_HEADS, low)
    weights_op = "_to_copy" if setup.is_autocast else "mul"
    scores, times_v = "attention/attention scores", "attention/attention × V"
    return [
        (scores, "scaled Q", scaled, _HEADS, low),
        (scores, "K", "clone", _KV_HEADS, low),
        # of the difference, in place
        ("attention/softmax", "exponentials", "sub", SCORES, "float32"),
        ("attention/softmax", "1 / sums", "reciprocal", "batch × heads × context", "float32"),
        (times_v, "attention weights", weights_op, SCORES, low),
        (times_v, *v),
        ("attention/output projection", "attended", "clone", STREAM, low),
    ]


def _saved_by_fused(setup: Setup) -> list[Row]:
    """PyTorch's fused attention. V is a view of the projection's result; the output projection's
    input is a view of what attention returns."""
    operator, module = "fused attention", "attention/fused attention"
    rotated = "_to_copy" if setup.is_autocast else "addcmul"
    queries = "context" if setup.is_autocast else "context in 32s"
    rows = [
        (module, "Q", rotated, _HEADS, setup.low),
        (module, "K", rotated, _KV_HEADS, setup.low),
        (module, "QKV", "mm", QKV, setup.low),
        (module, "attended", operator, _HEADS, setup.low),
        (module, "log-sum-exp", operator, f"batch × heads × {queries}", "float32"),
    ]
    if _masks_window(setup):
        rows.append((module, "mask as numbers", "masked_fill", "context × context", setup.low))
    return rows
