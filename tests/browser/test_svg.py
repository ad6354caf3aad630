"""A figure said shorter, in a browser: it looks as it did."""

import io

import made
from matplotlib.pyplot import imread
from stepscope.figures import svg


def test_a_figure_said_shorter_looks_as_before(opened, tmp_path):
    """Pixel by pixel, but for what a hundredth of a point changes at an edge."""
    original, seen = made.plot(), []
    for number, text in enumerate((original, svg.shorter(original))):
        path = tmp_path / f"{number}.svg"
        path.write_text(text)
        seen.append(imread(io.BytesIO(opened(path.as_uri()).screenshot())))
    before, after = seen
    assert before.std() > 0.1
    assert abs(before - after).max() < 0.3
