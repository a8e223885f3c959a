"""What stands behind a query of a part of a table, as dbt writes a ref in a sample, goes to the table's name."""

from __future__ import annotations

import pytest
from hudi_engine.spark.sql.earlier_states import _PART_OF, _state_inside

LATER = "at >= '2020-01-02' and at < '2020-01-03'"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (f"(select * from s.t where {LATER})_ro o", f"(select * from s.t_ro where {LATER}) o"),
        ("(select * from `s`.`t` where false limit 0)_rt", "(select * from `s`.`t_rt` where false limit 0)"),
        (
            "(select * from s.t where cast(ts as date) < '2020') version as of '1'",
            "(select * from s.t version as of '1' where cast(ts as date) < '2020')",
        ),
        (
            f"(select * from (select * from s.t where false limit 0) where {LATER}) timestamp as of 'x' o",
            f"(select * from (select * from s.t timestamp as of 'x' where false limit 0) where {LATER}) o",
        ),
        (f"(select * from s.t where {LATER}) _ro", f"(select * from s.t where {LATER}) _ro"),
    ],
)
def test_a_state_is_one_of_the_table(given: str, expected: str) -> None:
    assert _PART_OF.sub(_state_inside, f"select * from {given}") == f"select * from {expected}"
