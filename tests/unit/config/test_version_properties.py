"""Properties of one table in versions 6, 8 and 9: what a new table has, and what an upgrade and a downgrade change."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError, UnsupportedTableError
from hudi_engine.format.config.enums import MergeMode
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.config.version_properties import in_version
from hudi_engine.table.write.define.definition import table_properties

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("dt", pa.string()), ("Op", pa.string())])
PACKAGE = "org.apache.hudi.common.model"
EVENT_TIME, COMMIT_TIME = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5", "ce9acb64-bde0-424c-9b91-f6ebba25356d"


def define(version: int, table_type: str = "mor", **more: Any) -> TableConfig:
    options = {"hoodie.write.table.version": str(version), **more.pop("options", {})}
    asked = {"record_key": ["id"], "precombine_field": "ts", "partition_by": ["dt"], **more}
    return table_properties(name="t", table_type=table_type, schema=SCHEMA, options=options, **asked)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (
            8,
            {
                "hoodie.timeline.layout.version": "2",
                "hoodie.timeline.path": "timeline",
                "hoodie.timeline.history.path": "history",
                "hoodie.table.initial.version": "8",
                "hoodie.table.keygenerator.type": "SIMPLE",
                "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
                "hoodie.record.merge.strategy.id": EVENT_TIME,
                "hoodie.compaction.payload.class": f"{PACKAGE}.DefaultHoodieRecordPayload",
                "hoodie.table.precombine.field": "ts",
            },
        ),
        (
            9,
            {
                "hoodie.timeline.layout.version": "2",
                "hoodie.table.initial.version": "9",
                "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
                "hoodie.table.ordering.fields": "ts",
            },
        ),
    ],
)
def test_new_table_has_the_keys_of_its_version(version: int, expected: dict[str, str]) -> None:
    properties = define(version).properties

    assert {key: properties.get(key) for key in expected} == expected
    assert "hoodie.table.keygenerator.class" not in properties
    if version == 9:
        gone = ("merge.strategy.id", "payload.class", "precombine.field", "merger.strategy")
        assert [key for key in properties if key.endswith(gone)] == []


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize(
    ("payload", "mode"),
    [
        ("OverwriteWithLatestAvroPayload", MergeMode.COMMIT_TIME_ORDERING),
        ("DefaultHoodieRecordPayload", MergeMode.EVENT_TIME_ORDERING),
        ("PartialUpdateAvroPayload", MergeMode.PARTIAL_UPDATE),
        ("OverwriteNonDefaultsWithLatestAvroPayload", MergeMode.OVERWRITE_NON_DEFAULTS),
        ("AWSDmsAvroPayload", MergeMode.AWS_DMS),
    ],
)
def test_merge_rule_is_the_same_in_every_version(
    version: int, table_type: str, payload: str, mode: MergeMode
) -> None:
    given = {"hoodie.datasource.write.payload.class": f"{PACKAGE}.{payload}"}
    old = define(6, table_type, options=given)
    new = define(version, table_type, options=given)
    back = TableConfig.from_properties(in_version(new.properties, 6))

    # Version 9 has no mode of its own for a marker that deletes: its column and value are properties.
    plain = MergeMode.COMMIT_TIME_ORDERING if (version, mode) == (9, MergeMode.AWS_DMS) else mode
    assert (old.merge_mode, new.merge_mode, back.merge_mode) == (mode, plain, mode)
    if plain is not mode:
        assert new.properties["hoodie.record.merge.property.hoodie.payload.delete.field"] == "Op"


@pytest.mark.parametrize("version", [8, 9])
def test_upgrade_and_downgrade_give_the_properties_back(version: int) -> None:
    old = define(6).properties
    up = in_version(old, version)
    down = in_version(up, 6)

    assert up["hoodie.table.initial.version"] == "6"
    assert all(TableConfig.from_properties(each).is_of_this_engine for each in (up, down))
    assert {**down, "hoodie.table.checksum": ""} == {**old, "hoodie.table.checksum": ""}


def test_partition_kinds_move_into_the_names_and_back() -> None:
    old = define(6, partition_by=["dt:simple", "id:simple"]).properties
    up = in_version(old, 9)

    assert up["hoodie.table.partition.fields"] == "dt:simple,id:simple"
    assert "hoodie.engine.partition.kinds" not in up
    assert in_version(up, 6)["hoodie.table.partition.fields"] == "dt,id"


def test_several_ordering_fields_need_version_6_or_9() -> None:
    assert define(9, precombine_field=["ts", "Op"]).properties["hoodie.table.ordering.fields"] == "ts,Op"
    with pytest.raises(ConfigError, match="'ts,Op'.*version 8 has one at most.*6 and 9"):
        define(8, precombine_field=["ts", "Op"])


def test_versions_that_are_only_read_are_refused() -> None:
    properties = {**define(6).properties, "hoodie.table.version": "5"}
    with pytest.raises(UnsupportedTableError, match="version 5 .*legal: 6, 8, 9"):
        in_version(properties, 9)
