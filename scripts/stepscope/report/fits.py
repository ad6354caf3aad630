"""The page that says whether a training step fits a card. It needs no results and no network."""

import json
from pathlib import Path

import jinja2
from markupsafe import Markup

from stepscope.figures import colours
from stepscope.formulas import page
from stepscope.yaml_files import read_yaml

FILE = "fits.html"
SCRIPTS = ("evaluate", "main")


def document(folder: Path) -> str:
    """The whole page. folder: that of its parts, report/."""
    styles = [(folder / name).read_text() for name in ("style.css", "fits/style.css")]
    scripts = [(folder / f"fits/{name}.js").read_text() for name in SCRIPTS]
    sizes = read_yaml(folder.parent / "config.yaml")["sizes"]
    data = json.dumps(page.data(folder / "fits/published.toml", sizes), ensure_ascii=False)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True)
    template = environment.from_string((folder / "fits/page.html").read_text())
    return template.render(
        style=Markup(colours.css() + "".join(styles)),
        data=Markup(data.replace("</", "<\\/")),
        script=Markup("\n".join(scripts)),
    )
