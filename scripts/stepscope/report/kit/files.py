"""Links from the report's pages to files beside them: only to those that are there."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from stepscope.archive import is_of_cells
from stepscope.report.kit.escaping import Prose, markdown, one_line

CELLS = "cells.zip"  # of a site: records, samples, analyses and tables, as an archive of results


@dataclass(frozen=True)
class Files:
    """Where things lie: the cells' folders, the tidy tables, the figures; and the folder that the pages stand in."""

    results: Path
    tables: Path
    figures: Path
    page: Path

    def of_cell(self, path: object) -> str:
        """The link to a file by its path in results/, quoted for a link's target; empty where it is not there."""
        name = one_line(path).removeprefix("results/").lstrip("/")
        return self._link(self.results / name) if name else ""

    def table(self, name: str) -> str:
        """The same of NAME.csv."""
        return self._link(self.tables / f"{name}.csv")

    def has_table(self, name: str) -> bool:
        """Whether it is with the pages: a site has no tables of samples and events, which its cells' files hold."""
        return bool(self.table(name)) or not (is_of_cells(name) and self.exists(self.results / CELLS))

    @property
    def all_tables(self) -> str:
        """The same of the folder with all of them; of a site's pages the archive that holds them."""
        return self._link(self.tables) or self._link(self.results / CELLS)

    def figure(self, name: str, suffix: str = "svg") -> str:
        """The same of a figure."""
        return self._link(self.figures / f"{name}.{suffix}")

    def exists(self, path: Path) -> bool:
        """Whether a link to it would lead anywhere."""
        try:
            return path.exists()
        except OSError:  # a name that no file can have
            return False

    def _link(self, path: Path) -> str:
        return quote(os.path.relpath(path, self.page), safe="/=-._~") if self.exists(path) else ""


def linked(words: object, target: str) -> Prose:
    """Words that link to a target, which is quoted already; the words alone without one."""
    return Prose(f"[{markdown(words)}]({target})" if target else markdown(words))
