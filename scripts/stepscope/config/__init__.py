"""From the configuration to the grid of cells, and what makes a cell stale."""

import contextlib
from collections.abc import Iterator


class ConfigError(Exception):
    """The configuration is wrong; each line of the message names a key, the value and what to do.

    Stands here, since measuring programs raise it too: an edit of the checks makes no cell stale.
    """


MOST_COMPLAINTS = 50  # that a person reads at once


class Complaints:
    """What is wrong with a configuration, so that a person reads all of it at once."""

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}  # each once, in their order

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Within it a ConfigError ends the block, and is kept."""
        try:
            yield
        except ConfigError as error:
            self.note(str(error))

    def note(self, lines: str) -> None:
        """Keep a complaint."""
        self._lines |= dict.fromkeys(lines.splitlines())

    def tell(self) -> None:
        """Raise a ConfigError with all that was kept, if there is anything."""
        told = list(self._lines)[:MOST_COMPLAINTS]
        if len(self._lines) > len(told):
            told.append(f"and {len(self._lines) - len(told)} more; correct these first")
        if told:
            raise ConfigError("\n".join(told))
