"""Relations as macros of packages make them."""

from __future__ import annotations

import datetime

import pytest
from dbt.adapters.base.column import Column
from dbt.adapters.base.relation import EventTimeFilter
from jinja2 import Undefined

from dbt.adapters.hudi.relation import HudiRelation


def test_a_database_that_the_profile_does_not_have_is_none() -> None:
    """dbt_utils takes `target.database`, which is undefined where no database is set."""
    made = HudiRelation.create(database=Undefined(name="database"), schema="s", identifier="t", type="table")
    assert (made.database, made.render()) == (None, HudiRelation.create(None, "s", "t").render())


@pytest.mark.parametrize(
    ("event_time", "named"),
    [("at", "at"), (Column("at", "").quoted, "`at`"), (Column("a`t", "").quoted, "`a``t`")],
)
def test_a_window_of_a_quoted_event_time_compares_the_column(event_time: str, named: str) -> None:
    window = EventTimeFilter(event_time, datetime.datetime(2020, 1, 2), datetime.datetime(2020, 1, 3))
    made = HudiRelation.create(None, "s", "t", event_time_filter=window)
    assert f"where {named} >= '2020-01-02 00:00:00' and {named} < '2020-01-03 00:00:00'" in str(made)
