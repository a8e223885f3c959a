"""A table's own settings, in the spelling of each table version."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hudi_engine.errors import CorruptTableError, TableNotFoundError, UnsupportedTableError
from hudi_engine.format.config.enums import KeyGeneratorType, MergeMode, TableType
from hudi_engine.format.config.properties import format_properties, parse_properties, table_checksum
from hudi_engine.format.config.table_config import PartitionField, TableConfig
from hudi_engine.format.storage.local import LocalStorage

V6 = {
    "hoodie.table.name": "trips",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
}
V9 = V6 | {"hoodie.table.version": "9", "hoodie.timeline.layout.version": "2"}
PATH = ".hoodie/hoodie.properties"


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def with_checksum(properties: dict[str, str]) -> bytes:
    return format_properties(properties | {"hoodie.table.checksum": str(table_checksum(properties))}, "")


def test_a_bare_version_6_table_has_hudis_defaults() -> None:
    config = TableConfig.from_properties(V6)

    assert (config.name, config.database, config.version, config.layout_version) == ("trips", "", 6, 1)
    assert config.table_type is TableType.COPY_ON_WRITE
    assert (config.record_key_fields, config.ordering_fields, config.partition_fields) == ((), (), ())
    assert config.is_partitioned is False
    assert config.key_generator is KeyGeneratorType.NON_PARTITION
    assert (config.hive_style, config.url_encode, config.populate_meta_fields) == (False, False, True)
    assert config.merge_mode is MergeMode.COMMIT_TIME_ORDERING
    assert (config.timeline_path, config.archive_folder) == (".hoodie", ".hoodie/archived")
    assert config.base_file_format == "PARQUET"
    assert (config.metadata_partitions, config.create_schema, config.delete_marker) == ((), None, None)


def test_versions_8_and_9_keep_their_timeline_in_folders_of_its_own() -> None:
    named = {"hoodie.timeline.path": "tl", "hoodie.timeline.history.path": "old"}

    assert TableConfig.from_properties(V9).timeline_path == ".hoodie/timeline"
    assert TableConfig.from_properties(V9).archive_folder == ".hoodie/timeline/history"
    assert TableConfig.from_properties(V9 | named).archive_folder == ".hoodie/tl/old"
    # Tables of version 6 made by Hudi 1.x carry these keys too, without meaning.
    assert TableConfig.from_properties(V6 | named).timeline_path == ".hoodie"


@pytest.mark.parametrize("key", ["hoodie.table.precombine.field", "hoodie.table.ordering.fields"])
def test_ordering_fields_are_found_under_both_names(key: str) -> None:
    assert TableConfig.from_properties(V6 | {key: "ts, seq"}).ordering_fields == ("ts", "seq")


@pytest.mark.parametrize(
    "fields",
    [
        {"hoodie.table.partition.fields": "country:simple,ts:TIMESTAMP"},
        {
            "hoodie.table.partition.fields": "country,ts",
            "hoodie.engine.partition.kinds": "country:simple,ts:TIMESTAMP",
        },
    ],
    ids=["in the names", "beside the names"],
)
def test_partition_fields_may_carry_their_kind(fields: dict[str, str]) -> None:
    config = TableConfig.from_properties(
        V6
        | fields
        | {
            "hoodie.table.keygenerator.type": "CUSTOM",
            "hoodie.keygen.timebased.output.dateformat": "yyyy",
            "hoodie.deltastreamer.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        }
    )

    assert config.partition_fields == (PartitionField("country"), PartitionField("ts", "timestamp"))
    assert config.timestamp_keygen == {"output.dateformat": "yyyy", "timestamp.type": "EPOCHMILLISECONDS"}
    assert config.folders_say_values


def test_folders_are_not_read_for_values_where_the_kinds_were_lost() -> None:
    """Hudi 0.15 drops what it does not know when its catalog registers a table, but keeps the format of times."""
    custom = V6 | {
        "hoodie.table.partition.fields": "country,ts",
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        "hoodie.table.timeline.timezone": "UTC",
    }
    assert TableConfig.from_properties(custom).folders_say_values
    timed = custom | {"hoodie.keygen.timebased.output.dateformat": "yyyy"}
    assert not TableConfig.from_properties(timed).folders_say_values


def test_the_field_of_a_timestamp_key_generator_is_of_kind_timestamp() -> None:
    config = TableConfig.from_properties(
        V6
        | {
            "hoodie.table.partition.fields": "ts",
            "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        }
    )

    assert config.partition_fields == (PartitionField("ts", "timestamp"),)


@pytest.mark.parametrize(
    ("keys", "partitions", "expected"),
    [
        ("id", "", KeyGeneratorType.NON_PARTITION),
        ("id", "dt", KeyGeneratorType.SIMPLE),
        ("", "dt", KeyGeneratorType.SIMPLE),
        ("id,sub", "dt", KeyGeneratorType.COMPLEX),
        ("id", "dt,hr", KeyGeneratorType.COMPLEX),
        ("id", "dt:simple", KeyGeneratorType.CUSTOM),
    ],
)
def test_an_unnamed_key_generator_is_inferred(keys: str, partitions: str, expected: KeyGeneratorType) -> None:
    config = TableConfig.from_properties(
        V6 | {"hoodie.table.recordkey.fields": keys, "hoodie.table.partition.fields": partitions}
    )

    assert config.key_generator is expected


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"hoodie.table.keygenerator.type": "complex"}, KeyGeneratorType.COMPLEX),
        (
            {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator"},
            KeyGeneratorType.NON_PARTITION,
        ),
        (
            {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.ComplexAvroKeyGenerator"},
            KeyGeneratorType.COMPLEX,
        ),
    ],
)
def test_a_named_key_generator_is_taken(properties: dict[str, str], expected: KeyGeneratorType) -> None:
    assert TableConfig.from_properties(V6 | properties).key_generator is expected


def test_a_foreign_key_generator_is_refused_when_asked_for_and_for_writing() -> None:
    config = TableConfig.from_properties(V6 | {"hoodie.table.keygenerator.class": "com.example.MyKeys"})

    with pytest.raises(UnsupportedTableError, match=r"com\.example\.MyKeys"):
        _ = config.key_generator
    with pytest.raises(UnsupportedTableError, match=r"com\.example\.MyKeys"):
        config.check_writable()


def test_a_delete_marker_is_found_under_the_names_of_both_generations() -> None:
    plain = {"hoodie.payload.delete.field": "kind", "hoodie.payload.delete.marker": "DEL"}
    prefixed = {f"hoodie.record.merge.property.{key}": value for key, value in plain.items()}
    dms = {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.AWSDmsAvroPayload"}

    assert TableConfig.from_properties(V6 | plain).delete_marker == ("kind", "DEL")
    assert TableConfig.from_properties(V9 | prefixed).delete_marker == ("kind", "DEL")
    assert TableConfig.from_properties(V6 | dms).delete_marker == ("Op", "D")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"hoodie.table.version": "3"}, UnsupportedTableError, r"version 3 .* reads versions 4 \(layout 1\)"),
        ({"hoodie.table.version": "7"}, UnsupportedTableError, "version 7"),
        ({"hoodie.timeline.layout.version": "2"}, UnsupportedTableError, "layout 2"),
        ({"hoodie.table.version": "six"}, CorruptTableError, "'six'"),
        (
            {"hoodie.table.type": "VIEW"},
            CorruptTableError,
            "'VIEW'; legal values: COPY_ON_WRITE, MERGE_ON_READ",
        ),
        ({"hoodie.populate.meta.fields": "yes"}, CorruptTableError, "'yes'; legal values: true, false"),
    ],
)
def test_what_cannot_be_read_right_is_refused(
    changes: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        TableConfig.from_properties(V6 | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hoodie.table.base.file.format": "ORC"}, "ORC"),
        ({"hoodie.datasource.write.drop.partition.columns": "true"}, "drop.partition.columns"),
        ({"hoodie.populate.meta.fields": "false"}, "populate.meta.fields"),
        ({"hoodie.partition.metafile.use.base.format": "true"}, "metafile"),
        ({"hoodie.datasource.write.slash.separated.date.partitioning": "true"}, "slash.separated"),
        (
            {"hoodie.table.version": "5"},
            "version 5; this engine writes versions 6, 8, 9. Write to it once with Apache Hudi 0.14 or 0.15, which upgrades it",
        ),
        ({"hoodie.table.version": "4"}, "version 4; .* Apache Hudi 0.14 or 0.15"),
    ],
)
def test_some_tables_are_read_but_not_written(changes: dict[str, str], message: str) -> None:
    config = TableConfig.from_properties(V6 | changes)

    with pytest.raises(UnsupportedTableError, match=message):
        config.check_writable()


def test_a_way_of_keeping_change_data_that_is_none_is_refused_by_who_needs_it() -> None:
    config = TableConfig.from_properties(V6 | {"hoodie.table.cdc.supplemental.logging.mode": "ALL"})
    with pytest.raises(
        CorruptTableError, match="'ALL'; legal values: OP_KEY_ONLY, DATA_BEFORE, DATA_BEFORE_AFTER"
    ):
        _ = config.cdc_logging


@pytest.mark.parametrize("version", ["4", "5", "6"])
def test_logs_of_releases_0_are_merged_as_these_do(version: str) -> None:
    logs = V6 | {"hoodie.table.version": version, "hoodie.table.type": "MERGE_ON_READ"}

    assert TableConfig.from_properties(logs).merges_as_release_0
    assert not TableConfig.from_properties(logs | {"hoodie.table.type": "COPY_ON_WRITE"}).merges_as_release_0


def test_a_plain_version_6_table_is_writable() -> None:
    TableConfig.from_properties(V6).check_writable()


def test_settings_are_saved_and_loaded_with_a_valid_checksum(storage: LocalStorage) -> None:
    TableConfig.from_properties(V6 | {"hoodie.database.name": "db"}).save(storage)

    stored = parse_properties(storage.read(PATH))
    assert stored["hoodie.table.checksum"] == str(table_checksum({**V6, "hoodie.database.name": "db"}))
    assert TableConfig.load(storage).database == "db"


def test_changed_settings_make_a_new_config_with_a_new_checksum() -> None:
    config = TableConfig.from_properties(V6 | {"hoodie.table.metadata.partitions": "files"})

    changed = config.with_properties(
        {"hoodie.table.name": "rides"}, removals=["hoodie.table.metadata.partitions"]
    )

    assert (config.name, config.metadata_partitions) == ("trips", ("files",))
    assert (changed.name, changed.metadata_partitions) == ("rides", ())
    assert changed.properties["hoodie.table.checksum"] == str(table_checksum({"hoodie.table.name": "rides"}))


def test_no_properties_file_is_no_table(storage: LocalStorage) -> None:
    with pytest.raises(TableNotFoundError, match="no Hudi table at"):
        TableConfig.load(storage)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cut short"),
        (with_checksum(V6)[:30], "cut short"),
        (with_checksum(V6).replace(b"=trips", b"=tripz"), "checksum"),
        (with_checksum(V6) + b"x=\\u1", "hexadecimal"),
    ],
)
def test_a_damaged_file_is_reported_and_the_backup_taken_if_there_is_one(
    storage: LocalStorage, content: bytes, message: str
) -> None:
    storage.create(PATH, content)

    with pytest.raises(CorruptTableError, match=message):
        TableConfig.load(storage)
    storage.create(f"{PATH}.backup", with_checksum(V6))
    assert TableConfig.load(storage).name == "trips"


def test_a_crash_between_backup_and_rewrite_loses_nothing(storage: LocalStorage) -> None:
    storage.create(f"{PATH}.backup", with_checksum(V6))

    assert TableConfig.load(storage).name == "trips"


def test_saving_takes_an_older_backup_away(storage: LocalStorage) -> None:
    storage.create(f"{PATH}.backup", with_checksum(V6))

    TableConfig.load(storage).save(storage)

    assert not storage.exists(f"{PATH}.backup")


def test_a_config_can_be_sent_to_another_process() -> None:
    config = TableConfig.from_properties(V6)
    _ = config.merge_mode

    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301
