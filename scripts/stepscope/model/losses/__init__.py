"""Cross-entropy of next-token prediction, one module for each implementation, loaded by name (see
`stepscope.model.chosen`).

Each has `loss(model, tokens, targets)`: the forward pass of a TransformerLM and the mean negative
log-likelihood, in nats, over all positions, a scalar in fp32. tokens, targets: (batch, length)
int64, targets in [0, vocab_size). Its gradients reach all parameters of the model. The part that is
no part of the model has the range "loss". One of which torch.compile makes a part has IS_COMPILED =
True.
"""

CHUNK = 2048  # tokens whose logits are made at once, where they are made in chunks
