"""The implementations that the attention study compares, and what each is made of. Standard library only."""

# name -> (module of stepscope.model.attention, how it is run)
IMPLEMENTATIONS = {
    "naive": ("naive", "as it is"),
    "compiled": ("naive", "under torch.compile"),
    "sdpa-flash": ("sdpa", "FLASH_ATTENTION"),  # the backend, by its name in torch.nn.attention.SDPBackend
    "sdpa-cudnn": ("sdpa", "CUDNN_ATTENTION"),
    "sdpa-efficient": ("sdpa", "EFFICIENT_ATTENTION"),
    "flex": ("flex", "as it is"),
    "triton": ("triton", "as it is"),
}
DIRECTIONS = ("forward", "backward")


def chosen(implementation: str) -> dict[str, str]:
    """The module that a cell loads by name, as code_digest() takes it."""
    return {"attention": IMPLEMENTATIONS[implementation][0]}
