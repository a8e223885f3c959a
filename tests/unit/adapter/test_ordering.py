"""The keys of an ORDER BY."""

from __future__ import annotations

import pytest
from hudi_engine.spark.sql.statements import order_keys


@pytest.mark.parametrize(
    ("clause", "keys"),
    [
        ("", []),
        ("order by n", [("n", False, False)]),
        ("ORDER  BY n DESC, f(a, ', b desc') asc", [("n", True, True), ("f(a, ', b desc')", False, False)]),
        ("n desc nulls first, x nulls last", [("n", True, False), ("x", False, True)]),
        ("order by case when a then 1 else 2 end desc", [("case when a then 1 else 2 end", True, True)]),
        ("order by `desc`", [("`desc`", False, False)]),
    ],
)
def test_each_key_has_its_direction_and_the_place_of_nulls(clause, keys):
    assert [tuple(key.values()) for key in order_keys(clause)] == keys
