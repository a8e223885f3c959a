"""Names matched without regard to case."""

from __future__ import annotations

from hudi_engine.format.schema.any_case import AnyCase, spellings


def test_a_name_is_found_in_every_spelling_and_told_in_its_own() -> None:
    names = spellings(["Id", "NAME"])

    assert (names["ID"], names["id"], names.get("Name")) == ("Id", "Id", "NAME")
    assert "iD" in names and "other" not in names
    assert names.get("other", "none") == "none"
    assert list(names.values()) == ["Id", "NAME"]


def test_of_names_that_differ_in_case_the_last_counts() -> None:
    values = AnyCase([("a", 1), ("A", 2)])

    assert (values["a"], len(values)) == (2, 1)
