"""Which attention a model of transformers runs in as it was built. Standard library only."""

from types import ModuleType


def chosen_attention(package: ModuleType, reference: str, keys: dict, context: int) -> str | None:
    """The implementation that transformers chose, as `sdpa` or `eager`; None for a model that has no such choice.

    package: stepscope.model.own. The choice is made as the model is built (`config._attn_implementation`), here once
    more, without memory; None, too, of a model that cannot be built so.
    """
    try:
        module = package.build(reference, keys, context, batch=1, device="meta", seed=0).module
    except Exception:  # any that a model's own code raises where its tensors have no values
        return None
    chosen = getattr(getattr(module, "config", None), "_attn_implementation", None)
    return chosen if isinstance(chosen, str) else None
