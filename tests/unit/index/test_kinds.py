"""What an index type means for a write, by its options."""

from __future__ import annotations

import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.enums import IndexType
from hudi_engine.format.config.options import resolve_options
from hudi_engine.table.lookup.kinds import index_kind


def test_a_write_that_names_no_index_looks_keys_up_in_their_partition() -> None:
    kind = index_kind(resolve_options({}))

    assert (kind.name, kind.is_global, kind.uses_footers, kind.buckets) == (
        IndexType.SIMPLE,
        False,
        False,
        None,
    )


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path"),
        ("RECORD_INDEX", "hoodie.record.index.update.partition.path"),
        ("GLOBAL_RECORD_LEVEL_INDEX", "hoodie.record.index.update.partition.path"),
        ("GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path"),
    ],
)
@pytest.mark.parametrize("moves", [True, False])
def test_a_global_index_moves_rows_as_its_own_option_says(name: str, key: str, moves: bool) -> None:
    kind = index_kind(resolve_options({"hoodie.index.type": name, key: moves}))

    assert kind.is_global
    assert kind.moves_partition is moves


@pytest.mark.parametrize("prunes", [True, False])
def test_key_ranges_are_looked_at_unless_switched_off(prunes: bool) -> None:
    options = resolve_options({"hoodie.index.type": "bloom", "hoodie.bloom.index.prune.by.ranges": prunes})

    pruning = index_kind(options).pruning(options)

    assert pruning == type(pruning)(True, prunes)


def test_only_the_bucket_index_has_buckets() -> None:
    settings = {"hoodie.bucket.index.num.buckets": 16}

    assert index_kind(resolve_options({"hoodie.index.type": "BUCKET", **settings})).buckets == 16
    assert index_kind(resolve_options({"hoodie.index.type": "BLOOM", **settings})).buckets is None


def test_a_bucket_engine_that_is_not_written_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="hoodie.index.bucket.engine is 'CONSISTENT_HASHING'; legal values: SIMPLE"
    ):
        resolve_options({"hoodie.index.bucket.engine": "CONSISTENT_HASHING"})
