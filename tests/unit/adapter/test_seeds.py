"""Types of seed columns."""

from __future__ import annotations

import agate
import pytest

from dbt.adapters.hudi.rows.seeds import number_type


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "9223372036854775807", None], "bigint"),
        (["1", "9223372036854775808"], "decimal(38,0)"),
        (["1", "2.5"], "double"),
        (["1", "Infinity"], "double"),
        (["NaN"], "double"),
        ([None], "bigint"),
    ],
)
def test_the_type_of_a_column_of_numbers_holds_all_of_them(values: list[str | None], kind: str) -> None:
    table = agate.Table([[value] for value in values], ["n"], [agate.Number()])
    assert number_type(table, 0) == kind
