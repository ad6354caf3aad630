"""The machine that a label's records say it is."""

from stepscope.machine import labels


def record(started, **machine):
    return {"machine": {"device": "cuda", **machine}, "provenance": {"started": started}}


def test_packages_count_for_the_cells_that_use_them_each_as_of_its_newest_record():
    old = record("1", packages={"timm": "1", "transformers": "5"})
    new = record("2", packages={"timm": "2"})
    plain = record("3")
    newest = labels.newest({"timing": [new, plain], "memory": [old]})["timing"]
    assert labels.from_newest(plain["machine"], newest) is None
    assert labels.from_newest(new["machine"], newest) is None
    assert labels.from_newest(old["machine"], newest) == (
        "packages is {'timm': '1', 'transformers': '5'} there, {'timm': '2', 'transformers': '5'} on the newest"
    )
    assert labels.from_newest({"device": "cpu"}, newest) == "device is 'cpu' there, 'cuda' on the newest"
