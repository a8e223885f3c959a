"""What a table's definition becomes in hoodie.properties, and what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError, StorageError, TableExistsError, WriteConflictError
from hudi_engine.format.config.enums import MergeMode
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.config.version_properties import in_version
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.merge.modes.rule import MergeRule
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.write.define.create_table import create_table
from hudi_engine.table.write.define.definition import table_properties
from hudi_engine.table.write.define.table_options import (
    check_same_definition,
    same_definition,
    with_table_options,
)

SCHEMA = pa.schema(
    [("id", pa.int64()), ("ts", pa.int64()), ("dt", pa.string()), ("tags", pa.list_(pa.string()))]
)

TIMEBASED = "hoodie.deltastreamer.keygen.timebased."
GENERATORS = "org.apache.hudi.keygen."


def define(**changes):
    definition = {
        "name": "orders",
        "record_key": ["id"],
        "precombine_field": None,
        "partition_by": None,
        "table_type": "cow",
        "schema": SCHEMA,
        "options": None,
    }
    return table_properties(**{**definition, **changes})


@pytest.mark.parametrize(
    ("key", "partition", "generator"),
    [
        (["id"], None, "NonpartitionedKeyGenerator"),
        (["id"], ["dt"], "SimpleKeyGenerator"),
        (["id", "ts"], ["dt"], "ComplexKeyGenerator"),
        (["id"], ["dt", "ts"], "CustomKeyGenerator"),
        (["id"], ["dt:timestamp"], "CustomKeyGenerator"),
    ],
)
def test_the_key_generator_follows_the_fields(key, partition, generator):
    options = {f"{TIMEBASED}timestamp.type": "EPOCHMILLISECONDS", f"{TIMEBASED}output.dateformat": "yyyy"}
    timed = any(":" in each for each in partition or ())
    config = define(record_key=key, partition_by=partition, options=options if timed else None)
    assert config.properties["hoodie.table.keygenerator.class"].endswith(f".{generator}")


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_with_a_precombine_field_the_newest_event_wins_for_every_reader(table_type):
    config = define(precombine_field="ts", table_type=table_type)
    assert config.merge_mode is MergeMode.EVENT_TIME_ORDERING
    assert config.properties["hoodie.compaction.payload.class"].endswith(".DefaultHoodieRecordPayload")


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_without_one_the_last_commit_wins(table_type):
    assert define(table_type=table_type).merge_mode is MergeMode.COMMIT_TIME_ORDERING


def test_hudis_defaults_for_partition_folders_are_off():
    config = define(partition_by=["dt"])
    assert (config.hive_style, config.url_encode) == (False, False)


def test_all_problems_of_a_definition_come_at_once():
    with pytest.raises(ConfigError) as caught:
        define(name="a b", record_key=["id", "id"], partition_by=["nowhere"], table_type="cold")
    assert len(caught.value.problems) == 4
    for part in ("'a b'", "twice", "'nowhere'", "'cold'"):
        assert part in str(caught.value)


@pytest.mark.parametrize("schema", [SCHEMA, None], ids=["known", "to come"])
@pytest.mark.parametrize(
    ("argument", "fields"),
    [
        ("record_key", ["id", "ID"]),
        ("precombine_field", ["ts", "TS"]),
        ("partition_by", ["dt", "DT"]),
        ("partition_by", ["dt:simple", "id", "Dt:timestamp"]),
    ],
)
def test_a_column_that_is_named_twice_in_whatever_case_is_refused(argument, fields, schema):
    with pytest.raises(ConfigError, match=rf"{argument} \[.*\] names a column twice; leave one out"):
        define(**{argument: fields, "schema": schema})


def test_a_definition_in_hudis_own_options_is_the_same():
    arguments = define(precombine_field="ts", partition_by=["dt"], table_type="mor")
    options = {
        "hoodie.table.name": "orders",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "dt",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    }
    assert define(record_key=None, table_type=None, options=options).properties == arguments.properties
    assert define(precombine_field="ts", partition_by=["dt"], table_type="mor", options=options) == arguments


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"options": {"hoodie.datasource.write.recordkey.field": "ts"}}, "recordkey.field is 'ts'"),
        ({"options": {"hoodie.table.type": "MERGE_ON_READ"}}, "table_type is 'cow'"),
        ({"options": {"hoodie.table.name": "other"}}, "hoodie.table.name is 'other'"),
        ({"options": {"hoodie.table.base.file.format": "ORC"}}, "only PARQUET"),
        ({"options": {"hoodie.index.type": "BUCKET"}, "record_key": None}, "needs a record_key"),
        (
            {"options": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.hash.field": "ts"}},
            "choose among",
        ),
        ({"record_key": ["tags"]}, "'tags' has type array<string> and cannot be part of a key"),
        ({"precombine_field": "id.ts"}, "inside a struct"),
        ({"partition_by": ["dt:daily"]}, "kind 'daily'"),
        ({"partition_by": ["dt:timestamp"]}, "output.dateformat is not set"),
        (
            {
                "partition_by": ["dt"],
                "options": {
                    "hoodie.datasource.write.keygenerator.class": f"{GENERATORS}NonpartitionedKeyGenerator"
                },
            },
            "makes no partitions",
        ),
        (
            {"options": {"hoodie.datasource.write.keygenerator.type": "SIMPLE"}},
            "takes one partition column",
        ),
        ({"options": ["hoodie.table.name"]}, "must be a dictionary"),
    ],
)
def test_a_definition_that_contradicts_itself_is_refused(changes, words):
    with pytest.raises(ConfigError, match=words.replace("(", r"\(")):
        define(**changes)


def test_an_ordering_column_needs_an_order():
    with pytest.raises(ConfigError, match="has no order"):
        define(precombine_field="tags")


@pytest.mark.parametrize(("precision", "scale", "fits"), [(38, 18, False), (20, 0, False), (30, 15, True)])
def test_an_ordering_decimal_fits_the_logs_where_rows_move(precision, scale, fits):
    schema = SCHEMA.set(1, pa.field("ts", pa.decimal128(precision, scale)))
    asked = {"schema": schema, "precombine_field": "ts", "partition_by": ["dt"], "table_type": "mor"}
    moves = {"hoodie.index.type": "GLOBAL_SIMPLE"}
    stays = {**moves, "hoodie.simple.index.update.partition.path": "false"}
    for others in ({"options": stays}, {"table_type": "cow", "options": moves}, {"options": None}):
        define(**{**asked, **others})
    if fits:
        define(**asked, options=moves)
    else:
        with pytest.raises(
            ConfigError, match=r"precombine_field 'ts' has type decimal.*GLOBAL_SIMPLE.*use a bigint"
        ):
            define(**asked, options=moves)


@pytest.mark.parametrize(
    "option",
    [
        {"hoodie.populate.meta.fields": "false"},
        {"hoodie.datasource.write.drop.partition.columns": "true"},
    ],
    ids=lambda option: next(iter(option)),
)
def test_features_that_are_read_but_not_written_are_refused_by_name(option):
    with pytest.raises(ConfigError, match=next(iter(option)).replace(".", r"\.")):
        define(options=option)


def test_a_folder_that_a_killed_create_left_is_finished(tmp_path):
    storage = open_storage(str(tmp_path / "t"))
    storage.make_dirs(".hoodie/.temp")
    create_table(storage, define())
    with pytest.raises(TableExistsError, match="already"):
        create_table(storage, define())


@pytest.mark.parametrize("done", [True, False])
def test_a_create_whose_answer_was_lost_has_made_the_table_or_says_so(tmp_path, done):
    class Lossy(LocalStorage):
        def create(self, path, data):
            if done:
                super().create(path, data)
            raise TimeoutError(110, "Connection timed out", path)

    storage = Lossy(str(tmp_path / "t"))
    if done:
        create_table(storage, define())
    else:
        with pytest.raises(StorageError, match="failed to make a table"):
            create_table(storage, define())
    assert storage.exists(".hoodie/hoodie.properties") == done


def test_a_folder_with_strange_files_is_left_alone(tmp_path):
    (tmp_path / "data.csv").write_text("1")
    with pytest.raises(TableExistsError, match=r"data\.csv"):
        create_table(open_storage(str(tmp_path)), define())
    assert [entry.name for entry in tmp_path.iterdir()] == ["data.csv"]


@pytest.mark.parametrize("spelling", ["changelog.enabled", "hoodie.allow.operation.metadata.field"])
def test_a_changelog_is_kept_by_merge_on_read_tables(spelling):
    assert define(table_type="mor", options={spelling: "true"}).keeps_operations
    assert not define(table_type="mor").keeps_operations
    with pytest.raises(ConfigError, match=r"table_type is cow.*legal value: false"):
        define(options={spelling: "true"})


def test_a_changelog_needs_keys_and_a_merge_of_whole_rows():
    partial = {
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"
    }
    with pytest.raises(ConfigError, match="record_key"):
        define(table_type="mor", record_key=None, options={"changelog.enabled": True})
    with pytest.raises(ConfigError, match=r"merged by PARTIAL_UPDATE; legal modes: EVENT_TIME_ORDERING"):
        define(table_type="mor", precombine_field="ts", options={**partial, "changelog.enabled": True})


def test_a_changelog_is_known_after_another_catalog_dropped_the_property():
    config = define(table_type="mor", options={"changelog.enabled": True})
    schema = '{"type":"record","name":"r","fields":[{"name":"_hoodie_operation","type":"string"}]}'
    dropped = config.with_properties(
        {"hoodie.table.create.schema": schema}, removals=("hoodie.engine.changelog",)
    )
    assert dropped.keeps_operations


def test_a_definition_is_spelled_as_the_columns_are():
    schema = pa.schema(
        [("Id", pa.int64()), ("TS", pa.int64()), ("dt", pa.string()), ("s", pa.struct([("N", pa.int32())]))]
    )
    config = define(
        schema=schema,
        record_key=["ID", "S.n"],
        precombine_field="ts",
        partition_by=["DT:simple"],
        options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.hash.field": "id"},
    )
    assert config.record_key_fields == ("Id", "s.N")
    assert config.ordering_fields == ("TS",)
    assert [field.name for field in config.partition_fields] == ["dt"]


@pytest.mark.parametrize("generator", ["CustomKeyGenerator", "CustomAvroKeyGenerator"])
def test_kinds_of_partition_fields_are_kept_beside_their_names(generator):
    options = {
        f"{TIMEBASED}timestamp.type": "EPOCHMILLISECONDS",
        f"{TIMEBASED}output.dateformat": "yyyy",
        "hoodie.datasource.write.keygenerator.class": GENERATORS + generator,
    }
    config = define(partition_by=["ts:timestamp", "dt:simple"], options=options)
    assert config.properties["hoodie.table.partition.fields"] == "ts,dt"
    assert [(field.name, field.kind) for field in config.partition_fields] == [
        ("ts", "timestamp"),
        ("dt", "simple"),
    ]


def test_a_rebuild_in_place_needs_the_same_definition():
    stored = define(precombine_field="ts", partition_by=["dt"])
    assert same_definition(
        stored, define(schema=None, record_key=["ID"], precombine_field="Ts", partition_by=["DT"])
    )
    assert not same_definition(stored, define(precombine_field="ts"))
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 4}
    assert not same_definition(define(), define(options=buckets))
    assert not same_definition(
        define(options=buckets), define(options={**buckets, "hoodie.bucket.index.num.buckets": 8})
    )
    assert same_definition(define(options=buckets), define(options=buckets))
    assert same_definition(define(options={"hoodie.index.type": "BLOOM"}), define())
    database = {"hoodie.database.name": "shop"}
    assert not same_definition(define(), define(options=database))
    assert same_definition(define(options=database), define())
    mine, other = (
        define().with_properties({"hoodie.engine.merge.rule": each}) for each in ("a:Rule", "a:rule")
    )
    assert not same_definition(mine, other)


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.datasource.write.hive_style_partitioning": "true"},
        {"hoodie.datasource.write.partitionpath.urlencode": "true"},
        {"hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": "true"},
        {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"},
        {"hoodie.payload.delete.field": "v", "hoodie.payload.delete.marker": "gone"},
        {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"},
        {"hoodie.table.cdc.enabled": "true"},
    ],
    ids=lambda options: "+".join(options),
)
def test_what_places_and_merges_rows_is_of_the_definition_for_rebuilds_and_for_overtaken_writes(options):
    one, other = (
        define(precombine_field="ts", partition_by=["dt"], options=given) for given in ({}, options)
    )
    assert not same_definition(one, other)
    with pytest.raises(WriteConflictError, match="rebuilt or upgraded by another writer"):
        check_same_definition(one, other, "20260101000000001")
    check_same_definition(one, one, "20260101000000001")
    upgraded = TableConfig.from_properties(in_version(one.properties, 9))
    with pytest.raises(WriteConflictError, match="differs in version"):
        check_same_definition(one, upgraded, "20260101000000001")


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("ordering", [None, "ts"])
def test_a_table_of_any_kind_keeps_its_merge_rule(table_type, ordering):
    rule = {"hoodie.engine.merge.rule": f"{__name__}:RULE"}
    config = define(precombine_field=ordering, table_type=table_type, options=rule)
    assert merge_rule(config) is RULE


RULE = MergeRule(compares=False)


@pytest.mark.parametrize(
    ("mode", "named"),
    [
        ("COMMIT_TIME_ORDERING", {"payload.class": "DefaultHoodieRecordPayload"}),
        ("EVENT_TIME_ORDERING", {"payload.class": "OverwriteWithLatestAvroPayload"}),
        ("EVENT_TIME_ORDERING", {"payload.class": "PartialUpdateAvroPayload"}),
        ("COMMIT_TIME_ORDERING", {"rule": f"{__name__}:RULE"}),
    ],
)
def test_a_merge_mode_and_what_merges_otherwise_are_refused_together(mode, named):
    classes = "org.apache.hudi.common.model."
    options = {
        **{f"hoodie.engine.merge.{key}": text for key, text in named.items() if key == "rule"},
        **{f"hoodie.datasource.write.{key}": classes + text for key, text in named.items() if key != "rule"},
    }
    define(precombine_field="ts", options=options)
    define(precombine_field="ts", options={**options, "hoodie.record.merge.mode": "CUSTOM"})
    with pytest.raises(ConfigError, match=f"merge.mode is {mode}, but .* merges otherwise"):
        define(precombine_field="ts", options={**options, "hoodie.record.merge.mode": mode})


def test_a_new_table_says_the_zone_of_its_texts_and_is_the_one_that_did_not(tmp_path):
    storage = LocalStorage(str(tmp_path / "t"))
    texts = {f"{TIMEBASED}input.dateformat": "yyyy-MM-dd", f"{TIMEBASED}output.dateformat": "yyyy"}
    wanted = define(partition_by=["dt:timestamp"], options=texts)
    create_table(storage, wanted)
    stored = TableConfig.load(storage)
    zone = "hoodie.keygen.timebased.input.timezone"
    assert stored.properties[zone] == "UTC"
    assert same_definition(stored, wanted) and same_definition(wanted, stored)
    other = define(partition_by=["dt:timestamp"], options={**texts, zone: "Asia/Kolkata"})
    assert not same_definition(wanted, other)


@pytest.mark.parametrize(
    ("made", "given", "same", "other"),
    [
        ({}, "output.timezone", "Etc/UTC", "Asia/Tokyo"),
        ({}, "timezone", "UTC", "Asia/Tokyo"),
        ({"input.timezone": "Europe/Paris"}, "output.timezone", None, "Europe/Paris"),
        ({"output.timezone": "Europe/Paris"}, "timezone", None, "Europe/Paris"),
        ({"timestamp.type": "SCALAR"}, "timestamp.scalar.time.unit", "seconds", "DAYS"),
    ],
)
def test_how_times_were_written_stays_also_where_a_table_leaves_it_out(made, given, same, other):
    settings = {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy", **made}
    options = {f"hoodie.keygen.timebased.{key}": value for key, value in settings.items()}
    config = define(partition_by=["ts:timestamp"], options=options)
    key = f"hoodie.keygen.timebased.{given}"
    if same is not None:
        with_table_options(config, resolve_options({key: same}), "UPSERT")
    with pytest.raises(ConfigError, match=f"{key} is '{other}', but table 'orders' has"):
        with_table_options(config, resolve_options({key: other}), "UPSERT")


@pytest.mark.parametrize(
    "zones",
    [
        {"timezone": "Europe/Paris", "output.timezone": "UTC"},
        {"timezone": "UTC", "input.timezone": "Europe/Paris"},
        {"output.timezone": ""},
        {"timezone": ""},
        {"input.timezone": "", "output.timezone": ""},
        {"input.timezone": "Europe/Paris"},
        {"timestamp.scalar.time.unit": "DAYS"},
    ],
)
@pytest.mark.parametrize("prefix", ["hoodie.keygen.timebased.", TIMEBASED])
def test_how_times_are_written_may_be_said_again_as_it_was(zones, prefix):
    settings = {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy", **zones}
    options = {f"{prefix}{key}": value for key, value in settings.items()}
    config = define(partition_by=["ts:timestamp"], options=options)
    with_table_options(config, resolve_options(options), "UPSERT")
