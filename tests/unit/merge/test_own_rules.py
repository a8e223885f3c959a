"""Merge rules of the user's own decide wherever rows of one key meet: in a batch, between files, and with what is stored."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.merge.combine_batch import combine_batch
from hudi_engine.format.merge.merge_rows import merge_rows
from hudi_engine.format.merge.modes.registry import keeps_newer_rows
from hudi_engine.format.merge.modes.rule import MergeRule
from hudi_engine.format.merge.slice_reader import read_slice, resolve_delta
from slices import DATA, SliceBuilder, data_rows, row, trusting, upserts, with_meta

Rows = list[dict[str, Any]]


class _Smallest(MergeRule):
    """Keeps the row with the smaller ordering value, whole."""

    def first(self, old: Any, new: Any, ordering_fields: Any) -> Any:
        values = [np.asarray(side.rows.column("ts")) for side in (old, new)]
        return values[1] <= values[0]


class _LongestText(MergeRule):
    """Keeps the row with the longer text, whole."""

    def first(self, old: Any, new: Any, ordering_fields: Any) -> Any:
        values = [np.asarray(pc.utf8_length(side.rows.column("b"))) for side in (old, new)]
        return values[1] >= values[0]


class _Adds(MergeRule):
    """Adds a column up, whichever row stands."""

    def merge(self, old: Any, new: Any, ordering_fields: Any) -> Any:
        merged = super().merge(old, new, ordering_fields)
        total = pc.add(old.rows.column("a"), new.rows.column("a"))
        place = merged.rows.schema.get_field_index("a")
        return replace(merged, rows=merged.rows.set_column(place, merged.rows.schema.field(place), total))


smallest, longest, adds = _Smallest(compares=True), _LongestText(compares=False), _Adds(compares=True)


@pytest.fixture(params=["smallest", "longest", "adds"])
def settings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> TableConfig:
    return trusting(f"test_own_rules:{request.param}", monkeypatch)


def _batches() -> list[Rows]:
    """Rows of four commits, several of a key in each; no two of a key have the same ordering value or length of text."""
    chance = random.Random(7)  # noqa: S311
    ranks = {key: chance.sample(range(100), 100) for key in range(12)}
    return [
        [
            row(f"k{key}", rank := ranks[key].pop(), chance.randrange(9), "x" * (rank * 7 % 101))
            for key in chance.choices(range(12), k=30)
        ]
        for _ in range(4)
    ]


def _rewritten(batches: Iterable[Rows], settings: TableConfig) -> Rows:
    """What a copy-on-write table has after one commit for each batch."""
    table = with_meta([], 1)
    for number, rows in enumerate(batches, 1):
        batch = combine_batch(with_meta(rows, number), settings)
        stored, keys = table.column("_hoodie_record_key"), batch.column("_hoodie_record_key")
        known = pc.is_in(keys, value_set=stored.combine_chunks())
        updates = batch.filter(known)
        olds = table.take(
            pc.index_in(updates.column("_hoodie_record_key"), value_set=stored.combine_chunks())
        )
        merged = merge_rows(olds, updates, settings)
        stays = table.filter(pc.invert(pc.is_in(stored, value_set=keys.combine_chunks())))
        kept = [merged.rows.filter(merged.changed), olds.filter(pc.invert(merged.changed))]
        table = pa.concat_tables([stays, *kept, batch.filter(pc.invert(known))])
    return data_rows(table)


def test_rows_are_the_same_in_files_written_anew_in_logs_and_in_one_batch(
    settings: TableConfig, builder: SliceBuilder
) -> None:
    first, *later = _batches()
    expected = _rewritten([first, *later], settings)
    assert _rewritten([[each for rows in (first, *later) for each in rows]], settings) == expected

    base = combine_batch(with_meta(first, 1), settings)
    builder.add_base(base.select(DATA.names).to_pylist())
    for number, rows in enumerate(later, 2):
        batch = combine_batch(with_meta(rows, number), settings)
        builder.add_log(upserts(batch.select(DATA.names).to_pylist(), number))
    context = builder.context(settings)
    assert data_rows(read_slice(context, builder.build())) == expected
    assert read_slice(context, builder.build(), columns=["a"]).num_rows == len(expected)

    delta = resolve_delta(context, builder.build())
    stays = np.setdiff1d(np.arange(base.num_rows), delta.masked_positions)
    assert data_rows(pa.concat_tables([base.take(pa.array(stays)), delta.live])) == expected


def test_no_row_is_left_out_for_its_ordering_value_before_such_a_rule_has_seen_it(
    settings: TableConfig,
) -> None:
    assert not keeps_newer_rows(settings)
