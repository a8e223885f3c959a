"""Which merge mode the properties of a table ask for."""

from __future__ import annotations

import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.enums import MergeMode
from hudi_engine.format.config.table_config import resolve_merge_mode

PAYLOAD = "hoodie.compaction.payload.class"
PACKAGE = "org.apache.hudi.common.model."
STRATEGY_V6 = "hoodie.compaction.record.merger.strategy"
STRATEGY = "hoodie.record.merge.strategy.id"
MODE = "hoodie.record.merge.mode"
EVENT_TIME_ID = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_TIME_ID = "ce9acb64-bde0-424c-9b91-f6ebba25356d"


@pytest.mark.parametrize(
    ("version", "properties", "expected"),
    [
        (6, {}, MergeMode.EVENT_TIME_ORDERING),
        (6, {PAYLOAD: PACKAGE + "OverwriteWithLatestAvroPayload"}, MergeMode.COMMIT_TIME_ORDERING),
        (
            6,
            {PAYLOAD: PACKAGE + "OverwriteWithLatestAvroPayload", STRATEGY_V6: EVENT_TIME_ID},
            MergeMode.COMMIT_TIME_ORDERING,
        ),
        (6, {PAYLOAD: PACKAGE + "DefaultHoodieRecordPayload"}, MergeMode.EVENT_TIME_ORDERING),
        (6, {PAYLOAD: PACKAGE + "EventTimeAvroPayload"}, MergeMode.EVENT_TIME_ORDERING),
        (6, {PAYLOAD: PACKAGE + "PartialUpdateAvroPayload"}, MergeMode.PARTIAL_UPDATE),
        (
            6,
            {PAYLOAD: PACKAGE + "OverwriteNonDefaultsWithLatestAvroPayload"},
            MergeMode.OVERWRITE_NON_DEFAULTS,
        ),
        (6, {PAYLOAD: PACKAGE + "AWSDmsAvroPayload"}, MergeMode.AWS_DMS),
        (6, {PAYLOAD: "com.example.DefaultHoodieRecordPayload"}, MergeMode.CUSTOM),
        (6, {STRATEGY_V6: COMMIT_TIME_ID}, MergeMode.COMMIT_TIME_ORDERING),
        (6, {STRATEGY: EVENT_TIME_ID}, MergeMode.EVENT_TIME_ORDERING),
        (6, {STRATEGY: "11111111-0000-0000-0000-000000000000"}, MergeMode.CUSTOM),
        (8, {MODE: "COMMIT_TIME_ORDERING"}, MergeMode.COMMIT_TIME_ORDERING),
        (8, {MODE: "CUSTOM", PAYLOAD: PACKAGE + "PartialUpdateAvroPayload"}, MergeMode.PARTIAL_UPDATE),
        (8, {MODE: "CUSTOM"}, MergeMode.CUSTOM),
        (
            9,
            {MODE: "EVENT_TIME_ORDERING", "hoodie.table.legacy.payload.class": "x"},
            MergeMode.EVENT_TIME_ORDERING,
        ),
        (
            9,
            {MODE: "EVENT_TIME_ORDERING", "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"},
            MergeMode.PARTIAL_UPDATE,
        ),
        (
            9,
            {MODE: "COMMIT_TIME_ORDERING", "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"},
            MergeMode.OVERWRITE_NON_DEFAULTS,
        ),
        (
            9,
            {MODE: "EVENT_TIME_ORDERING", "hoodie.table.partial.update.mode": "FILL_UNAVAILABLE"},
            MergeMode.CUSTOM,
        ),
    ],
)
def test_a_table_with_an_ordering_field(
    version: int, properties: dict[str, str], expected: MergeMode
) -> None:
    assert resolve_merge_mode(properties, version, has_ordering=True) is expected


def test_without_an_ordering_field_the_newer_write_wins() -> None:
    properties = {PAYLOAD: PACKAGE + "DefaultHoodieRecordPayload"}

    assert resolve_merge_mode(properties, 6, has_ordering=False) is MergeMode.COMMIT_TIME_ORDERING
    assert resolve_merge_mode({}, 6, has_ordering=False) is MergeMode.COMMIT_TIME_ORDERING


def test_a_mode_that_hudi_does_not_know_is_corrupt() -> None:
    with pytest.raises(
        CorruptTableError, match="'NEWEST'.*COMMIT_TIME_ORDERING, EVENT_TIME_ORDERING, CUSTOM"
    ):
        resolve_merge_mode({MODE: "newest"}, 8, has_ordering=True)
