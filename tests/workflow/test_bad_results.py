"""Results that are damaged are named in one line, with the command that measures just these again."""

import json
import re
import shlex


def test_the_printed_command_repairs_a_refused_cell(project):
    path = project.result(project.BETA) / "record.json"
    record = json.loads(path.read_text())
    record["summary"]["phases"][0]["processes"][0]["median"] = 1e308
    path.write_text(json.dumps(record))
    before = project.state_of_cells()
    refused = project.run("--cores", 1, "report", "--config", "threads=1")
    (line,) = [line for line in refused.text.splitlines() if line.startswith("error: ")]
    assert f"{project.BETA}: record.json is damaged: summary.phases[0].processes[0].median must be smaller" in line
    assert "Traceback" not in refused.text
    (command,) = re.findall("^To measure exactly these again: (.*)$", refused.text, re.MULTILINE)
    assert shlex.split(command)[4:6] == ["--config", "threads=1"]
    repaired = project.run(*shlex.split(command)[1:], *project.UNTIL_TABLES)
    after = project.state_of_cells()
    assert (refused.code, repaired.code) == (1, 0), repaired.text
    assert {cell for cell in after if after[cell] != before[cell]} == {project.BETA}
