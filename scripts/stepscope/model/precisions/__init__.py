"""Precisions that are more than a context of torch: a module for each, with `unsupported` and
`convert`."""
