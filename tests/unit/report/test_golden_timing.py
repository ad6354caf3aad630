"""The timing study's whole section, as it was last looked at."""

import golden
import synthetic
from stepscope.tables.reader import Tables


def test_the_section_is_the_one_that_was_looked_at(tmp_path):
    golden.check("timing", Tables(synthetic.write("h100", tmp_path), ["timing", "ceilings"]))
