"""What the entries of a table say to other engines."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.sync_options import SyncOptions
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage import open_storage
from hudi_engine.spark.hive_sync.entry import entries_of
from hudi_engine.table.state import TableState

from tests.helpers.handmade import HandmadeTable

SYNC = "hoodie.datasource.hive_sync."
SCHEMA = pa.schema(
    [
        ("Id", pa.int64()),
        ("dt", pa.string()),
        ("Tags", pa.list_(pa.struct([("k", pa.string()), ("n", pa.decimal128(9, 2))]))),
    ]
)
ROWS = pa.table({"Id": [1], "dt": ["a"], "Tags": [[]]}, schema=SCHEMA)


def entries(folder, merge_on_read=False, keys=("dt",), schema=SCHEMA, **given):
    table = HandmadeTable(folder / "t", SCHEMA, ("dt",), merge_on_read=merge_on_read)
    table.commit({"dt=a": {"f-0": ROWS}})
    state = TableState.load(open_storage(str(folder / "t")))
    options = {SYNC + "table": "T"}
    options |= {f"hoodie.{name.replace('__', '.')}": value for name, value in given.items()}
    return entries_of(state, schema, resolve_options(options), keys, "4.0.0")


def test_a_copy_on_write_table_has_one_entry_with_partition_keys_apart(tmp_path):
    (found,) = entries(
        tmp_path, datasource__hive_sync__database="Lake", datasource__hive_sync__omit_metadata_fields="true"
    )
    assert found.label == "lake.t"
    assert found.columns == [("id", "bigint"), ("tags", "array<struct<k:string,n:decimal(9,2)>>")]
    assert found.keys == [("dt", "string")]
    assert found.input_format == "org.apache.hudi.hadoop.HoodieParquetInputFormat"
    assert found.properties["EXTERNAL"] == "TRUE"
    assert len(found.properties["last_commit_time_sync"]) == 17


def test_metadata_columns_come_first_unless_they_are_left_out(tmp_path):
    (found,) = entries(tmp_path)
    assert [name for name, _ in found.columns][:2] == ["_hoodie_commit_time", "_hoodie_commit_seqno"]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, {"t_ro": True, "t_rt": False, "t": False}),
        ({"datasource__hive_sync__skip_ro_suffix": "true"}, {"t": True, "t_rt": False}),
        ({"datasource__hive_sync__table__strategy": "RO"}, {"t": True}),
        ({"datasource__hive_sync__table__strategy": "rt"}, {"t": False}),
    ],
)
def test_the_names_of_a_merge_on_read_table_and_which_shows_base_files_alone(tmp_path, given, names):
    found = entries(tmp_path, merge_on_read=True, **given)
    optimized = {each.name: each.serde_properties["hoodie.query.as.ro.table"] == "true" for each in found}
    assert optimized == names
    for each in found:
        assert each.input_format.endswith("RealtimeInputFormat") is not optimized[each.name]


def test_spark_finds_provider_and_schema_in_parts_with_partition_columns_last(tmp_path):
    (found,) = entries(tmp_path, datasource__hive_sync__schema_string_length_thresh="100")
    count = int(found.properties["spark.sql.sources.schema.numParts"])
    text = "".join(found.properties[f"spark.sql.sources.schema.part.{n}"] for n in range(count))
    assert count > 1
    assert [field["name"] for field in json.loads(text)["fields"]][-3:] == ["Id", "Tags", "dt"]
    assert found.properties["spark.sql.sources.provider"] == "hudi"
    assert found.properties["spark.sql.sources.schema.partCol.0"] == "dt"


def test_partition_fields_that_the_table_lacks_are_texts(tmp_path):
    (found,) = entries(tmp_path, keys=("year", "month"))
    assert found.keys == [("year", "string"), ("month", "string")]
    assert ("dt", "string") in found.columns
    fields = json.loads(found.properties["spark.sql.sources.schema.part.0"])["fields"]
    assert [(each["name"], each["type"]) for each in fields[-2:]] == [("year", "string"), ("month", "string")]


@pytest.mark.parametrize(("support", "kind"), [("true", "timestamp"), ("false", "bigint")])
def test_timestamps_are_numbers_where_they_are_not_supported(tmp_path, support, kind):
    moment = pa.timestamp("us", "UTC")
    schema = pa.schema(
        [("at", moment), ("all", pa.list_(pa.struct([("timestamp", moment)]))), ("dt", pa.string())]
    )
    (found,) = entries(
        tmp_path,
        schema=schema,
        datasource__hive_sync__support_timestamp=support,
        datasource__hive_sync__omit_metadata_fields="true",
    )
    assert found.columns == [("at", kind), ("all", f"array<struct<timestamp:{kind}>>")]
    assert '"timestamp"' in found.properties["spark.sql.sources.schema.part.0"]


def test_without_a_data_source_only_the_input_format_speaks(tmp_path):
    (found,) = entries(tmp_path, datasource__hive_sync__sync_as_datasource="false")
    assert not [key for key in found.properties if key.startswith("spark.")]
    assert found.serde_properties == {"serialization.format": "1"}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("hoodie.datasource.hive_sync.mode", "jdbc", "legal values: hms"),
        ("hoodie.datasource.hive_sync.jdbcurl", "jdbc:hive2://hive:10000", "metastore of the Spark session"),
        ("hoodie.datasource.hive_sync.create_managed_table", "true", "legal values: false"),
        ("hoodie.datasource.hive_sync.table.strategy", "BOTH", "legal values: ALL, RO, RT"),
    ],
)
def test_other_ways_and_forms_are_refused_by_name(key, value, said):
    with pytest.raises(ConfigError, match=said):
        resolve_options({key: value})


def test_a_sync_is_asked_for_by_either_key_and_off_by_default():
    assert not resolve_options({})[SyncOptions.ENABLED]
    assert resolve_options({"hoodie.datasource.meta.sync.enable": "true"})[SyncOptions.ENABLED]
    assert resolve_options({SYNC + "auto_create_database": "false"}).is_set(SyncOptions.AUTO_CREATE)
    assert not resolve_options({SYNC + "ignore_exceptions": "false"})[SyncOptions.IGNORE_ERRORS]


@pytest.mark.parametrize("option", ["table", "database"])
@pytest.mark.parametrize("name", ["a/b", "a.b", "My Table", "x;y", "t`1", "ünï"])
def test_a_name_that_a_metastore_cannot_take_is_refused(tmp_path, name, option):
    with pytest.raises(
        ConfigError, match=f"cannot be a name in a Hive metastore.*hive_sync.{option} to another"
    ):
        entries(tmp_path, **{f"datasource__hive_sync__{option}": name})
