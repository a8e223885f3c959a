"""A model's config: resolved once, all problems in one message."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.spark.write.rows.clauses import MergeClauses

from dbt.adapters.hudi.model.engine_options import option_problems
from dbt.adapters.hudi.model.known_configs import USED
from dbt.adapters.hudi.model.plan import ModelPlan, Places, resolve_plan

PLACES = Places("/warehouse", "/project")


def plan(materialized: str = "incremental", own_strategies: Sequence[str] = (), **config: Any) -> ModelPlan:
    node = {"config": {"materialized": materialized, **config}}
    return resolve_plan(node, "analytics", "orders", PLACES, own_strategies)


def problems(materialized: str = "incremental", **config: Any) -> list[str]:
    with pytest.raises(DbtRuntimeError) as raised:
        plan(materialized, **config)
    return [line.removeprefix("  * ") for line in raised.value.msg.splitlines() if line.startswith("  * ")]


def test_a_model_without_config_is_a_keyless_copy_on_write_table_that_appends() -> None:
    resolved = plan()
    assert resolved.base == "/warehouse/analytics/orders"
    assert resolved.table.table_type == "cow"
    assert resolved.table.record_key == ()
    assert resolved.merge.strategy == "insert"
    assert resolved.write_options == {}


def test_clauses_of_a_merge_are_called_by_their_configs() -> None:
    clauses = plan(unique_key="id", matched_condition="true").merge.clauses
    assert clauses is not None
    names = {field.name for field in dataclasses.fields(clauses)}
    assert set(clauses.called) <= names
    assert set(clauses.called.values()) <= set(USED)


@pytest.mark.parametrize("keys", [["options"], ["options", "hudi_options"]])
@pytest.mark.parametrize(
    ("project", "model"),
    [
        ("hoodie.clean.commits.retained", "hoodie.cleaner.commits.retained"),
        ("hoodie.cleaner.commits.retained", "hoodie.clean.commits.retained"),
    ],
)
def test_an_option_in_two_spellings_must_have_one_value(keys: list[str], project: str, model: str) -> None:
    config: dict[str, dict[str, int]] = {key: {} for key in keys}
    config[keys[0]][project] = 5
    config[keys[-1]][model] = 7
    with pytest.raises(
        DbtRuntimeError, match=f"{project}: '5' and {model}: '7' are one option in two spellings"
    ):
        plan(**config)
    config[keys[-1]][model] = 5
    assert plan(**config).given_options == {model: "5"}


def test_table_properties_take_every_option_and_may_repeat_what_options_say() -> None:
    given = {"Changelog.Enabled": True, "type": "MERGE_ON_READ", "team": "a"}
    resolved = plan(unique_key="id", options={"type": "mor"}, tblproperties=given)
    assert resolved.given_options == {"changelog.enabled": "true"}
    assert (resolved.table.table_type, resolved.properties) == ("mor", {"team": "a"})


@pytest.mark.parametrize("config", ["options", "hudi_options", "tblproperties"])
def test_flinks_options_are_refused_with_their_counterpart(config: str) -> None:
    assert problems(**{config: {"compaction.delta_commits": 3}}) == [
        f"{config}: option 'compaction.delta_commits' is of Apache Hudi's Flink connector; use "
        "hoodie.compact.inline.max.delta.commits"
    ]


def test_a_key_makes_upsert_the_default() -> None:
    resolved = plan(unique_key="id")
    assert resolved.table.record_key == ("id",)
    assert resolved.merge.strategy == "upsert"
    assert resolved.index.type == "SIMPLE"


def test_a_key_without_the_partition_column_is_unique_over_all_partitions() -> None:
    resolved = plan(unique_key="id", partition_by="dt")
    assert resolved.write_options == {
        "hoodie.index.type": "GLOBAL_SIMPLE",
        "hoodie.simple.index.update.partition.path": "true",
    }


@pytest.mark.parametrize("config", [{"unique_key": ["id", "DT"]}, {"unique_key": "id", "index": "simple"}])
def test_a_key_lives_in_its_partition_when_it_holds_it_or_the_index_says_so(config: dict[str, Any]) -> None:
    assert plan(partition_by="dt", **config).index.type == "SIMPLE"


def test_names_of_dbt_spark_mean_the_same() -> None:
    options = {
        "type": "mor",
        "primaryKey": "id,line",
        "preCombineField": "ts",
        "hoodie.parquet.max.file.size": 1024,
    }
    resolved = plan(file_format="hudi", options=options)
    assert resolved.table.table_type == "mor"
    assert resolved.table.record_key == ("id", "line")
    assert resolved.table.precombine_field == ("ts",)
    assert resolved.given_options == {"hoodie.parquet.max.file.size": "1024"}


def test_tables_of_dbt_are_hive_style_and_url_encoded_unless_said_otherwise() -> None:
    key = "hoodie.datasource.write.hive_style_partitioning"
    assert plan(partition_by="dt").create_options[key] == "true"
    assert plan(partition_by="dt", hive_style_partitioning=False).create_options[key] == "false"
    assert plan(partition_by="dt", options={key: False}).create_options[key] == "false"


def test_a_location_of_its_own_counts_from_the_project() -> None:
    assert plan(location_root="lake").base == "/project/lake/orders"
    assert plan(location_root="s3a://bucket/lake/").base == "s3a://bucket/lake/orders"


ERRORS = {"hoodie.errortable.enable": True}


def test_an_error_table_is_no_option_of_the_write() -> None:
    resolved = plan(unique_key="id", options=ERRORS)
    assert resolved.error_table and not plan(unique_key="id").error_table
    assert "hoodie.errortable.enable" not in (resolved.options | resolved.hook_options)


@pytest.mark.parametrize(
    ("materialized", "config", "why"),
    [
        ("snapshot", {"unique_key": "id"}, "a snapshot has none"),
        ("seed", {}, "a seed has none"),
        ("incremental", {"unique_key": "id", "incremental_strategy": "delete"}, "'delete' has none"),
        ("incremental", {"incremental_strategy": "own", "own_strategies": ["own"]}, "'own' has none"),
        (
            "incremental",
            {"unique_key": "id", "not_matched_by_source_action": "delete"},
            "would take the stored row of a row with an error",
        ),
    ],
)
def test_an_error_table_is_refused_by_name(materialized: str, config: dict[str, Any], why: str) -> None:
    assert why in problems(materialized, options=ERRORS, **config)[0]
    assert not plan(materialized, options={"hoodie.errortable.enable": False}, **config).error_table


def test_all_problems_come_in_one_message() -> None:
    found = problems(
        table_type="copy",
        incremental_strategy="delete",
        merge_update_columns=["a"],
        merge_exclude_columns=["b"],
        on_schema_change="append",
        compaction=True,
        file_format="delta",
        options={"primarykey": "id"},
    )
    assert len(found) == 9
    assert (
        found[0]
        == "options has the unknown key 'primarykey'; did you mean 'primaryKey'? legal keys: type, primaryKey, preCombineField, precombineKey, preCombineKey, orderingFields, changelog.enabled, hoodie.*"
    )
    assert found[1] == "table_type is 'copy'; legal values: cow, mor, copy_on_write, merge_on_read"


def test_a_strategy_that_does_not_exist_is_refused_by_name() -> None:
    found = problems(incremental_strategy="insert_by_period", unique_key="id")
    assert len(found) == 1
    assert "incremental_strategy 'insert_by_period' is not supported; use microbatch" in found[0]


def test_delete_and_insert_goes_by_columns_that_need_not_be_the_record_key() -> None:
    resolved = plan(incremental_strategy="delete+insert", unique_key="day", record_key=["id"])
    assert resolved.merge.delete_by == ("day",)
    assert resolved.table.record_key == ("id",)
    assert plan(incremental_strategy="delete+insert", unique_key="day").table.record_key == ("day",)


def test_the_window_of_a_batch_is_what_dbt_says() -> None:
    bounds = {
        "__dbt_internal_microbatch_event_time_start": datetime(2026, 1, 1, tzinfo=timezone.utc),
        "__dbt_internal_microbatch_event_time_end": "2026-01-02T00:00:00+00:00",
    }
    window = plan(incremental_strategy="microbatch", event_time="at", **bounds).merge.window
    assert window is not None
    assert (window.column, window.start, window.end) == (
        "at",
        datetime(2026, 1, 1, tzinfo=timezone.utc),
        datetime(2026, 1, 2, tzinfo=timezone.utc),
    )


def test_several_columns_order_versions_and_the_merge_mode_is_a_word() -> None:
    resolved = plan(unique_key="id", precombine_field=["ts", "seq"], merge_mode="event_time")
    assert resolved.definition["precombine_field"] == ["ts", "seq"]
    assert resolved.create_options["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"


def test_clauses_of_a_merge_have_the_names_of_other_adapters() -> None:
    clauses = plan(
        unique_key="id",
        matched_condition="s.n > t.n",
        not_matched_by_source_action="update set t.n = coalesce(t.n, 0) + 1, gone = true",
        not_matched_by_source_condition="t.n > 0",
        skip_not_matched_step=True,
        merge_update_set_expressions={"n": "s.n + t.n"},
        source_alias="s",
        target_alias="t",
    ).merge.clauses
    assert clauses == MergeClauses(
        matched_condition="s.n > t.n",
        by_source={"n": "coalesce(t.n, 0) + 1", "gone": "true"},
        by_source_condition="t.n > 0",
        skip_not_matched=True,
        update_set={"n": "s.n + t.n"},
        source="s",
        target="t",
    )
    assert plan(unique_key="id", skip_matched_step=False).merge.clauses is None
    assert (
        plan(unique_key="id", merge_with_schema_evolution=True).merge.on_schema_change == "append_new_columns"
    )


def test_an_overwrite_with_a_predicate_replaces_the_rows_that_fulfil_it() -> None:
    merge = plan(incremental_strategy="insert_overwrite", incremental_predicates=["id > 2"]).merge
    assert (merge.operation, merge.condition) == ("replace_where", "(id > 2)")


def test_a_strategy_of_the_user_is_left_to_dbt() -> None:
    assert plan(own_strategies=["my_own"], incremental_strategy="my_own").merge.operation is None
    merge = plan(own_strategies=["default"], unique_key="id").merge
    assert (merge.strategy, merge.operation) == ("default", None)
    assert plan("table", own_strategies=["default"], unique_key="id", audit=True).merge.operation == "upsert"


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"incremental_strategy": "upsert"}, "incremental_strategy 'upsert' needs unique_key"),
        ({"incremental_strategy": "insert_new"}, "incremental_strategy 'insert_new' needs unique_key"),
        (
            {"incremental_strategy": "delete"},
            "incremental_strategy 'delete' needs unique_key to find the rows; set it, or use replace_where",
        ),
        ({"incremental_strategy": "delete+insert"}, "incremental_strategy 'delete+insert' needs unique_key"),
        (
            {"unique_key": "id", "not_matched_by_source_action": "drop"},
            "not_matched_by_source_action is 'drop'; legal",
        ),
        (
            {"unique_key": "id", "not_matched_by_source_condition": "a = 1"},
            "not_matched_by_source_condition is set without",
        ),
        ({"matched_condition": "a = 1"}, "matched_condition is set, but incremental_strategy 'insert'"),
        ({"incremental_strategy": "microbatch"}, "incremental_strategy 'microbatch' needs event_time"),
        ({"incremental_strategy": "replace_where"}, "incremental_strategy 'replace_where' needs incremental"),
        (
            {"incremental_strategy": "append", "incremental_predicates": ["a = 1"]},
            "incremental_predicates is set",
        ),
        ({"unique_key": "id", "options": {"primaryKey": "no"}}, "unique_key is 'id' but primaryKey is 'no'"),
        ({"index": "bucket"}, "index is 'bucket' but the model has no unique_key"),
        ({"unique_key": "id", "index": "record"}, "index is 'record'; legal values: simple, bloom"),
        (
            {"unique_key": "id", "index": {"type": "bucket", "bucket": 4}},
            "index has the unknown key 'bucket'",
        ),
        (
            {"unique_key": "id", "index": "bucket", "skip_unchanged": True},
            "skip_unchanged is true and index is bucket",
        ),
        ({"merge_mode": "newest"}, "merge_mode is 'newest'; legal values: event_time, commit_time"),
        ({"unique_key": [1]}, "unique_key is [1]; give a column name"),
        (
            {"compaction": {"trigger": "NUM_COMMITS", "every": 1}, "table_type": "mor"},
            "compaction has the unknown key 'every'",
        ),
        ({"clean": "sometimes"}, "clean is 'sometimes'; give true, false or a mapping"),
        ({"cluster_by": [1]}, "cluster_by is [1]; give a column name"),
        ({"clustering": "weekly"}, "clustering is 'weekly'; legal values: inline, schedule, off"),
        ({"clustering": {"every": 1}}, "clustering has the unknown key 'every'; legal keys: execute, order"),
        (
            {"clustering": {"order": "spiral"}},
            "order of clustering: hoodie.layout.optimize.strategy is 'spiral'; legal values: linear, z-order, hilbert",
        ),
        ({"archive": {"keep": 3}}, "archive has the unknown key 'keep'; legal keys: enabled, min_commits"),
        ({"clustered_by": "id"}, "clustered_by is 'id', but dbt-hudi does not have this config; use index"),
    ],
)
def test_a_config_that_makes_no_sense_is_refused(config: dict[str, Any], problem: str) -> None:
    found = problems(**config)
    assert len(found) == 1
    assert found[0].startswith(problem)


def test_tables_do_not_mind_incremental_configs_of_their_folder() -> None:
    resolved = plan("table", incremental_strategy="microbatch", merge_update_columns=["a"])
    assert resolved.table.record_key == ()


def test_the_record_key_of_a_snapshot_is_its_version_id() -> None:
    assert plan("snapshot", unique_key="id").table.record_key == ("dbt_scd_id",)
    renamed = plan("snapshot", unique_key="id", snapshot_meta_column_names={"dbt_scd_id": "version"})
    assert renamed.table.record_key == ("version",)


def test_services_become_options_of_each_write() -> None:
    resolved = plan(
        unique_key="id",
        table_type="mor",
        compaction={"trigger": "NUM_COMMITS", "delta_commits": 3},
        clean={"policy": "KEEP_LATEST_COMMITS", "retain_commits": 2},
    )
    assert resolved.services.options() == {
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.trigger.strategy": "NUM_COMMITS",
        "hoodie.compact.inline.max.delta.commits": "3",
        "hoodie.clean.policy": "KEEP_LATEST_COMMITS",
        "hoodie.clean.commits.retained": "2",
    }
    assert plan(clean=False).services.options() == {"hoodie.clean.automatic": "false"}
    assert plan(archive=False).services.options() == {"hoodie.archive.automatic": "false"}
    assert plan(archive={"min_commits": 5, "max_commits": 9}).services.options() == {
        "hoodie.keep.min.commits": "5",
        "hoodie.keep.max.commits": "9",
    }


def test_a_model_says_how_rows_are_ordered_and_when_they_are_clustered() -> None:
    by_day = plan(cluster_by=["day", "id"])
    assert by_day.services.options() == {
        "hoodie.clustering.plan.strategy.sort.columns": "day,id",
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "day,id",
    }
    assert by_day.named_columns["cluster_by"] == ("day", "id")
    assert plan(clustering=True).services.options() == {"hoodie.clustering.inline": "true"}
    assert plan(clustering="schedule").services.options() == {"hoodie.clustering.schedule.inline": "true"}
    chosen = plan(clustering={"order": "hilbert", "max_commits": 2, "updates": "SparkAllowUpdateStrategy"})
    assert chosen.services.options() == {
        "hoodie.clustering.inline": "true",
        "hoodie.clustering.inline.max.commits": "2",
        "hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy",
        "hoodie.layout.optimize.strategy": "hilbert",
    }


def test_excluded_columns_leave_the_others_to_update() -> None:
    merge = plan(unique_key="id", merge_exclude_columns=["Color"]).merge
    assert merge.columns_to_update(("id", "color", "msg")) == ["id", "msg"]
    assert plan(unique_key="id").merge.columns_to_update(("id",)) is None


def test_unchanged_rows_are_skipped_where_the_model_says_so_and_rows_are_merged() -> None:
    assert plan(unique_key="id", skip_unchanged=True).write_options["hoodie.engine.skip.unchanged"] == "true"
    assert "hoodie.engine.skip.unchanged" not in plan(unique_key="id").write_options
    with pytest.raises(DbtRuntimeError, match="skip_unchanged is set, but incremental_strategy 'insert'"):
        plan(incremental_strategy="insert", skip_unchanged=True)


def test_predicates_keep_their_meaning_when_joined() -> None:
    merge = plan(unique_key="id", incremental_predicates=["a = 1 or b = 2", "c = 3"]).merge
    assert merge.condition == "(a = 1 or b = 2) AND (c = 3)"


def test_problems_of_hoodie_options_join_the_message() -> None:
    node = {
        "config": {
            "materialized": "table",
            "options": {"hoodie.parquet.max.file.sise": "1"},
            "table_type": "no",
        }
    }
    with pytest.raises(DbtRuntimeError, match="2 problems") as raised:
        resolve_plan(node, "s", "t", PLACES)
    assert "option 'hoodie.parquet.max.file.sise' is not known" in str(raised.value)


def test_values_given_in_dbts_words_are_checked_with_the_others() -> None:
    with pytest.raises(DbtRuntimeError) as raised:
        resolve_plan(
            {
                "config": {
                    "materialized": "incremental",
                    "unique_key": "id",
                    "table_type": "mor",
                    "index": {"type": "bucket", "buckets": "many"},
                    "compaction": {"trigger": "NEVER"},
                    "clean": {"retain_commits": 0},
                }
            },
            "s",
            "t",
            PLACES,
        )
    assert "has 3 problems; nothing was run" in raised.value.msg
    for key in ("hoodie.bucket.index.num.buckets", "trigger.strategy", "hoodie.clean.commits.retained"):
        assert key in raised.value.msg
    assert "hoodie.compaction.strategy is 'Best'; legal values" in "".join(
        option_problems({"hoodie.compaction.strategy": "Best"})
    )


def test_a_table_that_cannot_be_made_is_refused_before_anything_runs() -> None:
    node = {
        "config": {
            "materialized": "table",
            "unique_key": "id",
            "index": {"type": "bucket", "hash_field": "city"},
            "options": {"changelog.enabled": True},
        }
    }
    with pytest.raises(DbtRuntimeError, match="2 problems; nothing was run") as raised:
        resolve_plan(node, "s", "t", PLACES)
    assert "hash.field names ['city']" in raised.value.msg
    assert "has no logs to keep changes in" in raised.value.msg


def test_hudis_write_operation_names_the_strategy() -> None:
    key = "hoodie.datasource.write.operation"
    assert plan(options={key: "BULK_INSERT"}).merge.strategy == "bulk_insert"
    assert (
        plan(unique_key="id", incremental_strategy="merge", options={key: "upsert"}).merge.operation
        == "upsert"
    )
    assert problems(incremental_strategy="append", options={key: "delete_partition"}) == [
        f"options say {key} = 'delete_partition'; legal values: upsert, merge, insert, append, bulk_insert, "
        "insert_overwrite, insert_overwrite_table, delete",
        f"incremental_strategy is 'append' but options say {key} = 'delete_partition'; give one of them",
    ]


def test_a_table_is_partitioned_by_columns_only() -> None:
    pattern = {
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy",
    }
    resolved = plan(partition_by=["dt", "ts:timestamp"], options=pattern)
    assert resolved.table.partition_by == ("dt", "ts:timestamp")
    assert problems(partition_by="year(ts)") == [
        "partition_by has 'year(ts)'; Hudi partitions by columns, so select the expression as a column and name that"
    ]


def test_clone_copy_is_a_switch_that_may_be_text() -> None:
    given = (None, False, "false", True, "true")
    assert [plan(clone_copy=each).clone_copy for each in given] == [False, False, False, True, True]
    assert problems(clone_copy="maybe") == ["clone_copy is 'maybe'; legal values: true, false"]
