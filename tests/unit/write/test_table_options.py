"""Options of a write beside what its table keeps: how times become keys and folders is the table's to say."""

from __future__ import annotations

import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.table.write.define.definition import table_properties
from hudi_engine.table.write.define.table_options import with_table_options, with_write_options

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


HASHED = "hoodie.bucket.index.hash.field"
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "8"}


def _made(table_type: str = "cow", **options: str) -> TableConfig:
    """A table of this engine."""
    return table_properties(
        name="t",
        record_key=["id", "city"],
        precombine_field=None,
        partition_by=None,
        table_type=table_type,
        schema=None,
        options=options,
    )


@pytest.mark.parametrize(
    ("made", "given"),
    [
        ({}, {HASHED: "id"}),
        ({HASHED: "id"}, {HASHED: "id,city"}),
        ({HASHED: "id"}, {HASHED: ""}),
        ({}, {"hoodie.bucket.index.num.buckets": "4"}),
        ({}, {"hoodie.index.type": "SIMPLE"}),
    ],
)
def test_rows_of_a_bucket_table_are_not_looked_for_in_other_buckets(
    made: dict[str, str], given: dict[str, str]
) -> None:
    with pytest.raises(ConfigError, match="which decides where its rows are"):
        with_table_options(_made(**BUCKETS, **made), resolve_options(given), "UPSERT")


@pytest.mark.parametrize(
    ("made", "given"),
    [
        ({}, {HASHED: "ID, city"}),
        ({}, {HASHED: ""}),
        ({HASHED: "id,city"}, {HASHED: ""}),
        ({HASHED: "id"}, {HASHED: " Id"}),
        ({}, {**BUCKETS, "hoodie.index.type": "bucket", "hoodie.index.bucket.engine": "SIMPLE"}),
    ],
)
def test_the_buckets_of_a_table_may_be_said_again(made: dict[str, str], given: dict[str, str]) -> None:
    assert with_table_options(_made(**BUCKETS, **made), resolve_options(given), "UPSERT").raw


FIELD, MARKER = "hoodie.payload.delete.field", "hoodie.payload.delete.marker"
RULE = "hoodie.engine.merge.rule"


@pytest.mark.parametrize(
    "given",
    [
        {FIELD: "kind", MARKER: "D"},
        {MARKER: "d"},
        {RULE: "rules:mine"},
        {"hoodie.populate.meta.fields": "false"},
        {"hoodie.datasource.write.drop.partition.columns": "true"},
        {"hoodie.database.name": "sales"},
    ],
)
def test_a_write_may_not_say_of_its_table_what_is_not_so(given: dict[str, str]) -> None:
    table = _made(**{FIELD: "op", MARKER: "D", "hoodie.database.name": "shop"})
    with pytest.raises(ConfigError, match=next(iter(given))):
        with_table_options(table, resolve_options(given), "UPSERT")


def test_a_write_may_say_again_what_its_table_was_made_with() -> None:
    said = {
        FIELD: "op",
        MARKER: "D",
        "hoodie.database.name": "shop",
        "hoodie.populate.meta.fields": "true",
        "hoodie.datasource.write.drop.partition.columns": "false",
    }
    table = _made(**said)
    for given in ({**said, FIELD: "OP"}, {MARKER: "D"}):
        assert with_write_options(table, with_table_options(table, resolve_options(given), "UPSERT")) is table


@pytest.mark.parametrize(("had", "given"), [("default", "sales"), ("Default", "sales"), ("shop", "default")])
def test_a_table_of_the_usual_database_is_one_that_names_none(had: str, given: str) -> None:
    options = resolve_options({"hoodie.database.name": given})
    assert with_table_options(_made(**{"hoodie.database.name": had}), options, "UPSERT").raw == options.raw


def test_a_rule_that_a_table_does_not_keep_is_refused_with_what_to_do() -> None:
    expected = "keeps no rule of its own, so its rows were merged without; leave the option out, or rebuild the table"
    with pytest.raises(ConfigError, match=expected):
        with_table_options(TABLE, resolve_options({RULE: "rules:mine"}), "UPSERT")


def test_rows_are_deleted_by_the_mark_of_the_call_where_the_table_names_none_and_has_no_logs() -> None:
    options = resolve_options({FIELD: "op", MARKER: "D"})
    assert with_write_options(TABLE, with_table_options(TABLE, options, "UPSERT")).delete_marker == (
        "op",
        "D",
    )
    with pytest.raises(ConfigError, match="merge-on-read table 't' has none.*_hoodie_is_deleted"):
        with_table_options(_made("mor"), options, "UPSERT")


@pytest.mark.parametrize("given", [{FIELD: "op"}, {MARKER: "D"}])
def test_a_delete_field_needs_its_marker(given: dict[str, str]) -> None:
    for ask in (lambda: _made(**given), lambda: with_table_options(TABLE, resolve_options(given), "UPSERT")):
        with pytest.raises(ConfigError, match="set both, or neither"):
            ask()
