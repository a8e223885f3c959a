"""Options of a write beside what its table keeps: how times become keys and folders is the table's to say."""

from __future__ import annotations

import pytest
from hudi_engine.config.options import resolve_options
from hudi_engine.config.table_config import TableConfig
from hudi_engine.errors import ConfigError
from hudi_engine.write.define.table_options import with_table_options

CONSISTENT = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
OUTPUT, INPUT, KIND = (
    f"hoodie.keygen.timebased.{name}" for name in ("output.dateformat", "input.dateformat", "timestamp.type")
)
TABLE = TableConfig.from_properties(
    {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.table.partition.fields": "at",
        OUTPUT: "yyyy/MM/dd",
        KIND: "EPOCHMILLISECONDS",
        CONSISTENT: "false",
    }
)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (OUTPUT, "yyyy/mm/dd"),
        (OUTPUT.replace("hoodie.", "hoodie.deltastreamer."), "yyyy"),
        (KIND, "UNIX_TIMESTAMP"),
        (CONSISTENT, "true"),
    ],
)
def test_a_write_may_not_make_keys_and_folders_by_other_settings_than_the_table_has(
    key: str, value: str
) -> None:
    with pytest.raises(ConfigError, match=f"is '{value}', but table 't' has"):
        with_table_options(TABLE, resolve_options({key: value}), "UPSERT")


@pytest.mark.parametrize(
    ("key", "value"),
    [(OUTPUT, "yyyy/MM/dd"), (KIND, "epochmilliseconds"), (CONSISTENT, "False"), (INPUT, "yyyy-MM-dd")],
)
def test_a_write_may_say_again_what_the_table_has_and_what_it_does_not_keep(key: str, value: str) -> None:
    assert with_table_options(TABLE, resolve_options({key: value}), "UPSERT").raw


@pytest.mark.parametrize("ours", [True, False])
def test_consistent_timestamps_that_a_table_does_not_keep_are_not_had_by_this_engines(ours: bool) -> None:
    zone = {"hoodie.table.timeline.timezone": "UTC"} if ours else {}
    bare = {key: value for key, value in TABLE.properties.items() if key != CONSISTENT}
    table, asked = TableConfig.from_properties({**bare, **zone}), resolve_options({CONSISTENT: "true"})
    assert table.is_of_this_engine is ours
    if not ours:
        assert with_table_options(table, asked, "UPSERT").raw
        return
    with pytest.raises(ConfigError, match="is 'true', but table 't' has 'false'"):
        with_table_options(table, asked, "UPSERT")
