"""From the configuration to the grid of cells, and what makes a cell stale."""


class ConfigError(Exception):
    """The configuration is wrong; the message is one line that names the key, the value and what to
    do.

    Stands here, since measuring programs raise it too: an edit of the checks makes no cell stale.
    """
