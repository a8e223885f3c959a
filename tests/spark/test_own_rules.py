"""A merge rule of the user's own on its way through whole writes; what it does to single rows is in tests/unit/merge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hudi_engine.format.merge.modes.rule import MergeRule

from tests.helpers.forms import in_turn
from tests.helpers.keyed import keyed_table


class _Smallest(MergeRule):
    """Keeps the row with the smaller value, whole."""

    def first(self, old: Any, new: Any, ordering_fields: Any) -> Any:
        values = [np.asarray(side.rows.column("n")) for side in (old, new)]
        return values[1] <= values[0]


smallest = _Smallest(compares=True)


@pytest.mark.parametrize(("kind", "small", "ordering"), in_turn(("cow", "mor"), ("0", "1000"), (None, "n")))
def test_a_rule_decides_in_batches_and_with_stored_rows(spark, tmp_path, kind, small, ordering):
    options = {
        "hoodie.engine.merge.rule": f"{__name__}:smallest",
        "hoodie.engine.small.batch.rows": small,
        "hoodie.engine.skip.unchanged": "true",
    }
    table = keyed_table(
        spark, tmp_path / "t", kind, precombine_field=ordering, partition_by=None, options=options
    )
    for rows in (
        [(1, 5), (2, 7), (2, 6), (2, 8)],
        [(1, 4), (2, 9)],
        [(1, 6), (2, 3), (1, 2), (1, 9)],
    ):
        table.upsert(spark.createDataFrame(rows, "id int, n int").coalesce(1))
    assert sorted((row.id, row.n) for row in table.snapshot().collect()) == [(1, 2), (2, 3)]
