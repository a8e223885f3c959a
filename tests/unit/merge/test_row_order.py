"""The order in which a slice is read: who reads its keys first and whole rows later finds each row in one place."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.config.trusted_rules import trust_rules
from hudi_engine.format.logformat.format import HeaderKey
from hudi_engine.format.logformat.writer import encode_data_blocks
from hudi_engine.format.merge.modes.rule import MergeRule
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.schema.avro import arrow_to_avro
from hudi_engine.format.schema.meta_fields import META_FIELDS, RECORD_KEY
from slices import (
    AWS_DMS,
    DATA,
    DEFAULT,
    LATEST,
    NON_DEFAULTS,
    PARTIAL,
    SliceBuilder,
    config,
    deletes,
    instant,
    row,
    upserts,
    with_meta,
)

pytestmark = pytest.mark.sampled

ALL, KEYS_ALONE = [*META_FIELDS, *DATA.names], [RECORD_KEY]
MEMORY = [10**9, 20_000, 4000]
"""Bytes of records: all of them, those of the keys but not of whole rows, none."""
OF_HUDI = {"hoodie.partition.metafile.use.base.format": "false"}
RELEASE_0 = {**OF_HUDI, "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"}
VERSION_9 = {
    "hoodie.table.version": "9",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS",
}


class _LongerText(MergeRule):
    """Keeps the row with the longer text, and deletes it where that is very long."""

    def merge(self, old: Any, new: Any, ordering_fields: Any) -> Any:
        merged = super().merge(old, new, ordering_fields)
        lengths = [len(text or "") for text in merged.rows.column("b").to_pylist()]
        merged.deleted[np.array(lengths) > 95] = True
        return merged


longer_text = _LongerText(compares=True, fills=True)
OWN = {"hoodie.engine.merge.rule": "test_row_order:longer_text"}
MODES = {
    **{
        payload.rsplit(".", 1)[-1]: (payload, {})
        for payload in (LATEST, DEFAULT, PARTIAL, NON_DEFAULTS, AWS_DMS)
    },
    "partial of Hudi": (PARTIAL, OF_HUDI),
    "partial of release 0": (PARTIAL, RELEASE_0),
    "partial of version 9": ("", VERSION_9),
    "a rule of the user's own": ("com.acme.MyPayload", OWN),
}


@pytest.fixture(params=list(MODES))
def settings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> TableConfig:
    payload, properties = MODES[request.param]
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    trust_rules(OWN["hoodie.engine.merge.rule"])
    return config(payload, **properties)


def _some_rows(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """Rows of some of 80 keys, a few of them more than once."""
    keys = chance.choices(range(80), k=count)
    texts = [None, *("x" * length for length in (1, 50, 100))]
    return [row(f"k{key}", chance.randrange(9), chance.randrange(9), chance.choice(texts)) for key in keys]


@pytest.fixture(params=[1, 2], ids=["whole rows", "records of some columns"])
def file_slice(request: pytest.FixtureRequest, builder: SliceBuilder) -> SliceBuilder:
    """A base file, a key of it twice, and logs with updates, new keys and deletes."""
    chance = random.Random(request.param)  # noqa: S311
    builder.add_base([*(row(f"k{key}", 3, key, "base") for key in range(0, 80, 2)), row("k4", 5, 0, "twice")])
    for number in range(2, 8):
        builder.add_log(upserts(_some_rows(chance, 40), number))
    gone = [f"k{key}" for key in chance.sample(range(80), 10)]
    builder.add_log(deletes(gone[:5], 8), deletes(gone[5:], 8, pa.array([4] * 5, pa.int64())))
    if request.param == 2:
        some = with_meta(_some_rows(chance, 20), 9).drop_columns(["a"])
        header = [(HeaderKey.IS_PARTIAL, "true")]
        avro = arrow_to_avro(some.schema, "t")
        builder.add_log(*encode_data_blocks(some, avro, instant(9), extra_header=header))
    return builder.add_log(upserts(_some_rows(chance, 40), 10))


@pytest.mark.parametrize("merge_type", ["payload_combine", "skip_merge"])
def test_neither_columns_nor_memory_change_the_rows_or_their_order(
    settings: TableConfig, file_slice: SliceBuilder, merge_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_engine.format.merge.spill._ORDERED_AT_ONCE", 10_000)

    def read(columns: list[str], memory: int) -> pa.Table:
        context = file_slice.context(settings, memory_limit_bytes=memory)
        return read_slice(context, file_slice.build(), columns=columns, merge_type=merge_type)

    whole = read(ALL, MEMORY[0])
    assert whole.num_rows > 30
    for memory in MEMORY:
        for columns in (ALL, KEYS_ALONE):
            found = read(columns, memory)
            assert found.to_pydict() == whole.select(columns).to_pydict(), (columns, memory)


def test_rows_that_only_logs_have_come_in_the_order_in_which_the_logs_first_name_them(
    builder: SliceBuilder,
) -> None:
    builder.add_base([row("b"), row("a")])
    builder.add_log(upserts([row("z", 1), row("c", 1), row("a", 1)], 2)).add_log(
        upserts([row("d", 2), row("c", 2), row("z", 2)], 3)
    )
    for memory in MEMORY:
        found = read_slice(builder.context(config(), memory_limit_bytes=memory), builder.build())
        assert found.column("id").to_pylist() == ["b", "a", "z", "c", "d"]
