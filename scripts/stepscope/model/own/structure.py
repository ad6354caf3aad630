"""What a module is made of: its parameters, its blocks, and which of its parts are attention, FFN,
norm and so on."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torch import Tensor, nn

# of the parameters that have no row for each token: what blocks hold that are called the model's
LEAST_SHARE = 0.5


@dataclass(frozen=True)
class Blocks:
    """The repeated part of a model: `container`, at `path`, holds modules of one class."""

    path: str
    container: nn.ModuleList | nn.Sequential

    @property
    def parameters(self) -> int:
        """Numbers in them."""
        return numbers(self.container.parameters())


def described(module: nn.Module, blocks: Blocks | None) -> dict:
    """What is in it, ready for JSON: its class, as it was written; numbers and bytes of parameters,
    of those of them that have a gradient, and of buffers, of which what several modules share
    counts once; the parameters' types, that of most numbers first; its blocks."""
    trained = [each for each in module.parameters() if each.requires_grad]
    dtypes: Counter[str] = Counter()
    for each in module.parameters():
        dtypes[str(each.dtype)] += each.numel()
    return {
        # what torch.compile() was given
        "class": type(getattr(module, "_orig_mod", module)).__name__,
        "parameters": numbers(module.parameters()),
        "trainable_parameters": numbers(trained),
        "parameters_bytes": _bytes(module.parameters()),
        "trained_bytes": _bytes(trained),
        "buffers_bytes": _bytes(module.buffers()),
        "dtype": " + ".join(name for name, _ in dtypes.most_common()),
        "blocks": blocks
        and {
            "count": len(blocks.container),
            "class": type(blocks.container[0]).__name__,
            "path": blocks.path,
        },
    }


def numbers(tensors: Iterable[Tensor]) -> int:
    """How many numbers they hold."""
    return sum(each.numel() for each in tensors)


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(each.numel() * each.element_size() for each in tensors)


def refused(module: nn.Module) -> str | None:
    """Why the model cannot be measured, in one line: numbers that our counts, losses and optimizers
    do not take. None if it can."""
    for name, each in module.named_parameters():
        if each.is_complex() or each.is_sparse:
            kind = "complex" if each.is_complex() else "sparse"
            return f"parameter {name} is {kind}; only dense real ones are measured"
    return None


def drops(part: nn.Module) -> bool:
    """Whether a layer or an attention drops, by the probability that it holds."""
    names = ("p", "dropout", "dropout_p", "attention_dropout")
    values = [getattr(part, name, None) for name in names]
    return any(isinstance(value, float) and value > 0 for value in values)


def blocks_of(module: nn.Module) -> Blocks | None:
    """The list or sequence of modules of one class with the most parameters, the longest of
    several; None if it holds less than half of the model's, embeddings and head left out."""
    found = [
        Blocks(path, part)
        for path, part in module.named_modules()
        if isinstance(part, (nn.ModuleList, nn.Sequential)) and len(set(map(type, part))) == 1
    ]
    best = max(found, key=lambda one: (one.parameters, len(one.container)), default=None)
    rows = _rows(module)
    inner = [each for each in module.parameters() if each.ndim != 2 or len(each) not in rows]
    is_most = best is not None and best.parameters >= max(LEAST_SHARE * numbers(inner), 1)
    return best if is_most else None


def _rows(module: nn.Module) -> set[int]:
    """How many rows its embeddings have, of torch or of one's own."""
    return {
        _outputs(part)
        for part in module.modules()
        if isinstance(part, nn.Embedding) or type(part).__name__ == "Embedding"
    }


def _outputs(part: nn.Module) -> int:
    """Rows of its weight; 0 without one."""
    weight = getattr(part, "weight", None)
    return len(weight) if isinstance(weight, Tensor) else 0


WITHIN = {"directly": "in blocks", "after": "outside"}  # a place is a part of another


@dataclass(frozen=True)
class Rule:
    """A part is called `name` if its class's name matches `kind`, or its own name matches
    `attribute` as a whole.

    where: "" anywhere, "in blocks", of these "directly" in one, "outside" of them, of these "after"
    them, "in attention". inside: whether parts within it are named too.
    """

    name: str
    kind: str = ""
    attribute: str = ""
    where: str = ""
    inside: bool = False

    def fits(self, part: nn.Module, own: str, place: str) -> bool:
        by_class = self.kind and re.search(self.kind, type(part).__name__)
        by_name = self.attribute and re.fullmatch(self.attribute, own, re.IGNORECASE)
        return bool(by_class or by_name) and self.where in ("", place, WITHIN.get(place))


HEAD = "LM head"  # of a vocabulary; any other is a head
NORM = r"Norm(?![a-z])|Normali[sz]ation"
# The first that fits decides. The names are those of the ranges of our own model, where it has the
# part.
RULES = (
    Rule("", kind=r"Dropout|Identity|Rotary|Activation"),
    Rule("norm in attention", kind=NORM, where="in attention"),
    Rule("final norm", kind=NORM, where="after"),
    Rule("norm", kind=NORM),
    Rule("Q projection", attribute=r"q|q_proj|query|wq|to_q", where="in attention"),
    Rule("K projection", attribute=r"k|k_proj|key|wk|to_k", where="in attention"),
    Rule("V projection", attribute=r"v|v_proj|value|wv|to_v", where="in attention"),
    Rule(
        "QKV projection",
        attribute=r"c_attn|w?qkv|qkv_proj|in_proj|query_key_value|to_qkv",
        where="in attention",
    ),
    Rule(
        "output projection",
        attribute=r"o|o_proj|out_proj|c_proj|proj|wo|dense|output|to_out",
        where="in attention",
    ),
    Rule(
        "attention",
        kind=r"Attention|Attn",
        attribute=r"(self_|cross_|multihead_)?(attn|attention)|mha",
        inside=True,
    ),
    Rule(
        "FFN",
        kind=r"(MLP|Mlp|FeedForward|FFN|SwiGLU|MoE|Moe)(Block|Layer|Network)?$",
        attribute=r"mlp|ffn|feed_forward|feedforward|ff",
    ),
    Rule("FFN", attribute=r"intermediate|output", where="directly"),
    Rule(HEAD, attribute=r"lm_head|head|heads|classifier|output|unembed(ding)?", where="outside"),
    Rule("embedding", kind=r"Embed", where="outside"),
)


def parts_of(module: nn.Module, blocks: Blocks | None) -> dict[str, str]:
    """Path of a part → what it is called; of parts within each other the outermost, but for blocks
    and attention. What no rule knows has no name."""
    found = dict(_parts(module, "", blocks, "outside"))
    rows = _rows(module)
    for path, name in found.items():
        if name == HEAD and _outputs(module.get_submodule(path)) not in rows:
            found[path] = "head"
    return found


def _parts(
    module: nn.Module, path: str, blocks: Blocks | None, place: str
) -> Iterator[tuple[str, str]]:
    if isinstance(module, nn.MultiheadAttention):
        return  # it calls none of its parts as modules
    ffn = _ffn_layers(module)
    for own, part in module.named_children():
        inner = f"{path}.{own}" if path else own
        if blocks and place == "outside" and f"{blocks.path}.".startswith(f"{inner}."):
            # what holds the blocks is no part of a model, whatever it is called
            yield from _parts(part, inner, blocks, place)
            place = "after"
            continue
        if blocks and module is blocks.container:
            yield inner, "block"
            # a block that is a single layer has no parts
            yield from _parts(part, inner, blocks, "directly")
            continue
        rule = next((rule for rule in RULES if rule.fits(part, own, place)), Rule(""))
        name = rule.name
        if not name and place != "in attention" and (own in ffn or _is_ffn(part)):
            name = "FFN"
        # lists are never called themselves
        if name and not isinstance(part, (nn.ModuleList, nn.ModuleDict)):
            yield inner, name
        else:
            yield from _parts(part, inner, blocks, "in blocks" if place == "directly" else place)
        if rule.inside:
            yield from _parts(part, inner, blocks, "in attention")


def _ffn_layers(module: nn.Module) -> set[str]:
    """Which of a module's linear layers are a feed-forward network: the first widens, and one goes
    back by as much; a gate widens, too. Beside a convolution they are something else."""
    sizes = {
        own: (each.in_features, each.out_features)
        for own, each in module.named_children()
        if isinstance(each, nn.Linear)
    }
    found = {
        own: d_out - d_in
        for own, (d_in, d_out) in sizes.items()
        if d_in != d_out and (d_out, d_in) in sizes.values()
    }
    has_convolution = any(each.ndim > 2 for each in module.parameters())
    if not 2 <= len(found) <= 3 or has_convolution or next(iter(found.values())) < 0:
        return set()
    return set(found)


def _is_ffn(module: nn.Module) -> bool:
    """Whether it has the layers of a feed-forward network and no others."""
    held = {own for own, part in module.named_children() if list(part.parameters())}
    return bool(held) and held == _ffn_layers(module)
