"""Page one, as it was last looked at."""

import golden
import page_one_maker as made


def test_the_page_is_the_one_that_was_looked_at(tmp_path):
    golden.check("page_one", made.everything(tmp_path))
