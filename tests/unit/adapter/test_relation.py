"""Relations as macros of packages make them."""

from __future__ import annotations

from jinja2 import Undefined

from dbt.adapters.hudi.relation import HudiRelation


def test_a_database_that_the_profile_does_not_have_is_none() -> None:
    """dbt_utils takes `target.database`, which is undefined where no database is set."""
    made = HudiRelation.create(database=Undefined(name="database"), schema="s", identifier="t", type="table")
    assert (made.database, made.render()) == (None, HudiRelation.create(None, "s", "t").render())
