"""What is shown of texts that programs and files of others bring."""

import pytest
from stepscope.recordings.text import last_error


@pytest.mark.parametrize(
    "log, said",
    {
        "$ python\nerror: no data\nadvice\n": "error: no data",
        "error: first\nerror: second\n\n": "error: second",
        "Traceback (most recent call last):\nKeyError: 'x'\n\n": "KeyError: 'x'",
        "error: early\n" + "x" * 2**17 + "\nlast\n": "",  # only its end is read
        "error: \x1b[31mred\n": "error: \ufffd[31mred",
        "step 3.5 ms\n": "",
        "": "",
    }.items(),
)
def test_a_logs_last_error_is_what_the_end_of_a_run_shows(log, said, tmp_path):
    path = tmp_path / "measure.log"
    path.write_bytes(log.encode())
    assert last_error(path) == said
    assert last_error(tmp_path / "none.log") == ""
