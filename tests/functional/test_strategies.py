"""Every incremental strategy, with ``--long`` on both table types, and what a second run makes of the table."""

from __future__ import annotations

import glob
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file
from dbt_common.exceptions import DbtRuntimeError

FIRST = "select 1 as id, 'a' as name, 10 as ts, 'x' as dt union all select 2, 'b', 10, 'y'"
SECOND = "select 2 as id, 'B' as name, 20 as ts, 'y' as dt union all select 3, 'c', 20, 'y'"
APPENDED = [(1, "a", "x"), (2, "B", "y"), (2, "b", "y"), (3, "c", "y")]
MERGED = [(1, "a", "x"), (2, "B", "y"), (3, "c", "y")]
TOUCHED = [(1, "a", "x"), (2, "B", "y"), (3, "c", "y")]


def model(first: str = FIRST, second: str = SECOND, **config: Any) -> str:
    """An incremental model whose first and second run select different rows."""
    arguments = ", ".join(
        f"{key}={value!r}" for key, value in {"materialized": "incremental", **config}.items()
    )
    return (
        f"{{{{ config({arguments}) }}}}\n{{% if is_incremental() %}}{second}{{% else %}}{first}{{% endif %}}"
    )


# strategy and config, rows after the second run, and (inserted, updated, deleted) it reports
CASES: dict[str, tuple[dict[str, Any], list[tuple[Any, ...]], tuple[int, int, int]]] = {
    "upsert": ({"unique_key": "id"}, MERGED, (1, 1, 0)),
    "merge": ({"unique_key": ["id"], "incremental_strategy": "merge"}, MERGED, (1, 1, 0)),
    "event_time": ({"unique_key": "id", "precombine_field": "ts"}, MERGED, (1, 1, 0)),
    "several_orderings": (
        {"unique_key": "id", "precombine_field": ["ts", "name"], "merge_mode": "event_time"},
        MERGED,
        (1, 1, 0),
    ),
    "clauses": (
        {
            "unique_key": "id",
            "matched_condition": "s.ts > t.ts",
            "not_matched_condition": "s.id > 3",
            "not_matched_by_source_action": "update set name = upper(t.name)",
            "source_alias": "s",
            "target_alias": "t",
        },
        [(1, "A", "x"), (2, "B", "y")],
        (0, 2, 0),
    ),
    "clauses_of_one_side": (
        {
            "unique_key": "id",
            "not_matched_condition": "id > 3",
            "not_matched_by_source_action": "update set name = upper(name)",
            "not_matched_by_source_condition": "ts < 15",
        },
        [(1, "A", "x"), (2, "B", "y")],
        (0, 2, 0),
    ),
    "branches": (
        {
            "unique_key": "id",
            "merge_clauses": {
                "when_matched": [
                    {"action": "do_nothing", "condition": "DBT_INTERNAL_DEST.ts > DBT_INTERNAL_SOURCE.ts"},
                    {
                        "action": "update",
                        "mode": "explicit",
                        "update": {
                            "include": ["dt"],
                            "set_expressions": {"name": "DBT_INTERNAL_SOURCE.name || '!'"},
                        },
                    },
                ],
                "when_not_matched": [
                    {"action": "insert"},
                    {"action": "delete", "by": "source", "condition": "id = 1"},
                ],
            },
        },
        [(2, "B!", "y"), (3, "c", "y")],
        (1, 1, 1),
    ),
    "full_sync": (
        {"unique_key": "id", "not_matched_by_source_action": "delete", "skip_matched_step": True},
        [(2, "b", "y"), (3, "c", "y")],
        (1, 0, 1),
    ),
    "partitioned": ({"unique_key": "id", "partition_by": "dt"}, MERGED, (1, 1, 0)),
    "bucketed": ({"unique_key": "id", "index": {"type": "bucket", "buckets": 2}}, MERGED, (1, 1, 0)),
    "append": ({}, APPENDED, (2, 0, 0)),
    "merge_no_key": ({"incremental_strategy": "merge"}, APPENDED, (2, 0, 0)),
    "bulk_insert": ({"incremental_strategy": "bulk_insert"}, APPENDED, (2, 0, 0)),
    "overwrite_parts": (
        {"incremental_strategy": "insert_overwrite", "partition_by": ["dt"]},
        TOUCHED,
        (2, 0, 1),
    ),
    "overwrite_whole": (
        {"incremental_strategy": "insert_overwrite"},
        [(2, "B", "y"), (3, "c", "y")],
        (2, 0, 2),
    ),
    "delete_insert": (
        {
            "incremental_strategy": "delete+insert",
            "unique_key": "dt",
            "record_key": "id",
            "partition_by": "dt",
        },
        MERGED,
        (2, 0, 1),
    ),
    "delete_insert_where": (
        {
            "incremental_strategy": "delete+insert",
            "unique_key": "dt",
            "record_key": "id",
            "incremental_predicates": ["ts >= 10"],
        },
        MERGED,
        (2, 0, 1),
    ),
    "replace_where": (
        {"incremental_strategy": "replace_where", "incremental_predicates": ["id > 1"]},
        MERGED,
        (2, 0, 1),
    ),
    "overwrite_where": (
        {"incremental_strategy": "insert_overwrite", "incremental_predicates": ["DBT_INTERNAL_DEST.id > 1"]},
        MERGED,
        (2, 0, 1),
    ),
    "insert_new": (
        {"incremental_strategy": "insert_new", "unique_key": "id", "partition_by": "dt"},
        [(1, "a", "x"), (2, "b", "y"), (3, "c", "y")],
        (1, 0, 0),
    ),
    "deleting": ({"incremental_strategy": "delete", "unique_key": "id"}, [], (0, 0, 0)),
}


class StrategyRuns:
    """Two runs of one model for each case, in one project; the types of tables in turn, or all of one."""

    types = ("cow", "mor")

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            f"{name}.sql": model(table_type=table_type, **config)
            for (name, (config, _, _)), table_type in zip(CASES.items(), cycle(self.types))
        }

    def test_the_second_run_changes_the_table_as_the_strategy_says(self, project: Any) -> None:
        first = {result.node.name: result for result in run_dbt(["run"])}
        assert first["upsert"].adapter_response["rows_inserted"] == 2
        assert project.run_sql("select * from {schema}.deleting", fetch="all") == []
        second = {result.node.name: result for result in run_dbt(["run"])}
        for name, (_, rows, counts) in CASES.items():
            found = project.run_sql(
                f"select id, name, dt from {{schema}}.{name} order by id, name", fetch="all"
            )
            assert [tuple(row) for row in found] == rows, name
            response = second[name].adapter_response
            reported = tuple(response[key] for key in ("rows_inserted", "rows_updated", "rows_deleted"))
            assert reported == counts, name


@pytest.mark.core
class TestStrategies(StrategyRuns):
    pass


@pytest.mark.long
class TestStrategiesCopyOnWrite(StrategyRuns):
    types = ("cow",)


@pytest.mark.long
class TestStrategiesMergeOnRead(StrategyRuns):
    types = ("mor",)


class TestKeysAndPartitions:
    """What a key means when its row comes with another partition or an older version."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        moved = "select 1 as id, 'a2' as name, 20 as ts, 'z' as dt"
        stale = "select 1 as id, 'old' as name, 5 as ts, 'x' as dt"
        twice = "select 2 as id, 'new' as name, 30 as ts, 'y' as dt union all select 2, 'newer', 40, 'y'"
        return {
            "moves.sql": model(second=moved, unique_key="id", partition_by="dt"),
            "stays.sql": model(second=moved, unique_key="id", partition_by="dt", index="simple"),
            "late.sql": model(second=stale, unique_key="id", precombine_field="ts"),
            "repeated.sql": model(second=twice, unique_key="id", precombine_field="ts"),
            "repeated_at_first.sql": model(twice, unique_key="id", precombine_field="ts"),
            "composite.sql": model(second=moved, unique_key=["id", "dt"]),
            "marked.sql": model(second=f"{moved}, true as _hoodie_is_deleted", unique_key="id"),
            "marked_in_capitals.sql": model(second=f"{moved}, true as _HOODIE_IS_DELETED", unique_key="id"),
        }

    def test_keys(self, project: Any) -> None:
        run_dbt(["run"])
        run_dbt(["run"])

        def rows(name: str) -> list[tuple[Any, ...]]:
            found = project.run_sql(
                f"select id, name, dt from {{schema}}.{name} order by id, name", fetch="all"
            )
            return [tuple(row) for row in found]

        assert rows("moves") == [(1, "a2", "z"), (2, "b", "y")]
        assert rows("stays") == [(1, "a", "x"), (1, "a2", "z"), (2, "b", "y")]
        assert rows("late") == [(1, "a", "x"), (2, "b", "y")]
        assert rows("repeated") == [(1, "a", "x"), (2, "newer", "y")]
        assert rows("repeated_at_first") == [(2, "newer", "y"), (3, "c", "y")]
        assert rows("composite") == [(1, "a", "x"), (1, "a2", "z"), (2, "b", "y")]
        assert rows("marked") == rows("marked_in_capitals") == [(2, "b", "y")]


MACRO = """
{% macro get_incremental_newest_only_sql(arg_dict) %}
  insert overwrite {{ arg_dict['target_relation'] }} select * from {{ arg_dict['temp_relation'] }} where id > 2
{% endmacro %}
"""


class TestFurtherStrategies:
    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"own.sql": MACRO}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        keys = (
            "{{ config(materialized='incremental', unique_key='id', incremental_strategy=var('how', 'upsert'),"
            " on_schema_change='sync_all_columns') }}"
        )
        name = "{% if var('how', 'upsert') != 'delete' %}, 'a' as name{% endif %}"
        return {
            "erased.sql": keys + f"select id{name} from range({{{{ var('from', 0) }}}}, 3)",
            "own_strategy.sql": model(incremental_strategy="newest_only"),
        }

    def test_delete_removes_the_keys_the_model_selects(self, project: Any) -> None:
        run_dbt(["run", "-s", "erased"])
        (result,) = run_dbt(["run", "-s", "erased", "--vars", "{how: delete, from: 1}"])
        assert result.adapter_response["rows_deleted"] == 2
        rows = project.run_sql("select id, name from {schema}.erased", fetch="all")
        assert [tuple(row) for row in rows] == [(0, "a")], "keys to delete say nothing of the other columns"

    def test_a_strategy_of_the_users_own_returns_sql(self, project: Any) -> None:
        run_dbt(["run", "-s", "own_strategy"])
        run_dbt(["run", "-s", "own_strategy"])
        assert [row[0] for row in project.run_sql("select id from {schema}.own_strategy", fetch="all")] == [3]


class TestPartialUpdates:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "only_name.sql": model(unique_key="id", merge_update_columns=["name"]),
            "not_name.sql": model(unique_key="id", merge_exclude_columns=["name"]),
            "nothing.sql": model(
                second="select 2 as id, 'B' as name, 'y' as dt union all select 3, 'c', 'y'",
                unique_key="id",
                merge_exclude_columns=["id", "name", "ts", "dt"],
                on_schema_change="append_new_columns",
            ),
            "guarded.sql": model(
                second="select 1 as id, 'A' as name, 20 as ts, 'x' as dt union all select 2, 'B', 20, 'y'",
                unique_key="id",
                merge_update_columns=["name", "ts"],
                incremental_predicates=["DBT_INTERNAL_DEST.dt = 'y' or DBT_INTERNAL_DEST.dt = 'x'"],
            ),
        }

    def test_matched_rows_keep_the_other_columns(self, project: Any) -> None:
        run_dbt(["run"])
        run_dbt(["run"])
        query = "select id, name, ts from {schema}.%s order by id"
        assert [tuple(r) for r in project.run_sql(query % "only_name", fetch="all")] == [
            (1, "a", 10), (2, "B", 10), (3, "c", 20),
        ]  # fmt: skip
        assert [tuple(r) for r in project.run_sql(query % "not_name", fetch="all")] == [
            (1, "a", 10), (2, "b", 20), (3, "c", 20),
        ]  # fmt: skip
        assert [tuple(r) for r in project.run_sql(query % "nothing", fetch="all")] == [
            (1, "a", 10), (2, "b", 10), (3, "c", None),
        ]  # fmt: skip
        assert [tuple(r) for r in project.run_sql(query % "guarded", fetch="all")] == [
            (1, "A", 20),
            (2, "B", 20),
        ]


class TestRebuild:
    """A table model, run again with another shape."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "shaped.sql": "{{ config(materialized='table', unique_key=var('key', 'id'), table_type=var('type', 'cow'),"
            " partition_by=var('parts', none)) }} select 1 as id, 'a' as name, 'x' as dt",
            "grown.sql": model(unique_key="id"),
            "folders.sql": "{{ config(materialized='incremental', unique_key='id', partition_by='dt',"
            " hive_style_partitioning=var('style', none)) }} select 1 as id, 'x' as dt",
        }

    def test_key_type_and_partitions_follow_the_config(self, project: Any) -> None:
        run_dbt(["run", "-s", "shaped"])
        for variables in ("{key: name}", "{type: mor}", "{parts: dt}", "{}"):
            run_dbt(["run", "-s", "shaped", "--vars", variables])
            assert [tuple(r) for r in project.run_sql("select * from {schema}.shaped", fetch="all")] == [
                (1, "a", "x")
            ]
        with project.adapter.connection_named("look"):
            names = {each.identifier for each in project.adapter.list_relations(None, project.test_schema)}
        assert "shaped_ro" not in names, "what was merge-on-read is copy-on-write now"

    def test_an_incremental_run_refuses_a_changed_config_until_full_refresh(self, project: Any) -> None:
        run_dbt(["run", "-s", "grown"])
        path = project.project_root / "models" / "grown.sql"
        wider = model(
            second=f"{FIRST.split(' union')[0]}, 1 as more",
            unique_key=["id", "dt"],
            table_type="mor",
            on_schema_change="append_new_columns",
        )
        path.write_text(wider, "utf-8")
        (result,) = run_dbt(["run", "-s", "grown"], expect_pass=False)
        assert "unique_key is id, dt, but the table has id" in result.message
        assert "table_type is mor, but the table has cow" in result.message
        columns = [row[0] for row in project.run_sql("describe {schema}.grown", fetch="all")]
        assert columns == ["id", "name", "ts", "dt"], "a refused run changes no schema"
        (result,) = run_dbt(["run", "-s", "grown", "--full-refresh"])
        assert result.adapter_response["rows_inserted"] == 2

    def test_other_names_of_partition_folders_are_refused_where_they_are_asked_for(
        self, project: Any
    ) -> None:
        first = "{style: false}"
        run_dbt(["run", "-s", "folders", "--vars", first])
        for style in ("{}", first):
            run_dbt(["run", "-s", "folders", "--vars", style])
        (result,) = run_dbt(["run", "-s", "folders", "--vars", "{style: true}"], expect_pass=False)
        assert "hive_style_partitioning is True, but the table has False" in result.message


class TestRefusals:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "wrong.sql": model(
                incremental_strategy="delete+insert",
                table_type="heap",
                options={"hoodie.parquet.max.file.sise": 1},
            ),
            "no_column.sql": "{{ config(materialized='table', partition_by='day', unique_key='key') }}"
            " select 1 as id, 2 as ID",
            "first_fails.sql": model(
                "select cast({{ var('key', 'null') }} as int) as id", "select -1 as id", unique_key="id"
            ),
            "no-name.sql": "{{ config(materialized='table') }} select 1 as id",
        }

    def test_nothing_runs_and_all_problems_are_told(self, project: Any) -> None:
        with pytest.raises(DbtRuntimeError) as raised:
            run_dbt(["run"], expect_pass=False)
        message = raised.value.msg
        assert "incremental test" in message and "has 3 problems; nothing was run" in message
        assert "incremental_strategy 'delete+insert' needs unique_key" in message
        assert "table_type is 'heap'; legal values: cow, mor" in message
        assert "did you mean 'hoodie.parquet.max.file.size'?" in message
        assert "the name is 'no-name'; Spark's names hold letters" in message
        assert not glob.glob(f"{project.project_root}/**/.hoodie", recursive=True), "nothing was written"

    def test_columns_are_checked_when_they_are_known(self, project: Any) -> None:
        (result,) = run_dbt(["run", "-s", "no_column"], expect_pass=False)
        assert "the column 'id' is selected 2 times" in result.message
        assert "unique_key names 'key', but the model's columns are id" in result.message
        assert "partition_by names 'day', but the model's columns are id" in result.message

    def test_a_first_build_that_fails_leaves_no_table_behind(self, project: Any) -> None:
        (result,) = run_dbt(["run", "-s", "first_fails"], expect_pass=False)
        assert "null or empty record key" in result.message and "the first is row " in result.message
        run_dbt(["run", "-s", "first_fails", "--vars", "{key: 1}"])
        assert project.run_sql("select id from {schema}.first_fails", fetch="one")[0] == 1


UNKNOWN = {
    "predicate": ("incremental_predicates=['DBT_INTERNAL_DEST.nope > 1']", "incremental_predicates "),
    "no_sql": (
        "matched_condition='DBT_INTERNAL_SOURCE.v >'",
        "matched_condition 'DBT_INTERNAL_SOURCE.v >' cannot be resolved: [PARSE_SYNTAX_ERROR]",
    ),
    "word_too_many": ("matched_condition='DBT_INTERNAL_SOURCE.v > 0 and'", "[PARSE_SYNTAX_ERROR]"),
    "word_after_all": (
        "not_matched_by_source_action='delete', not_matched_by_source_condition='v > 0 typo'",
        "[PARSE_SYNTAX_ERROR]",
    ),
    "value_and_name": (
        "merge_update_set_expressions={'v': 'DBT_INTERNAL_DEST.v plus'}",
        "[PARSE_SYNTAX_ERROR]",
    ),
    "matched": ("matched_condition='DBT_INTERNAL_SOURCE.nope > 1'", "matched_condition "),
    "new": ("not_matched_condition='DBT_INTERNAL_SOURCE.nope > 1'", "not_matched_condition "),
    "field": ("matched_condition='DBT_INTERNAL_DEST.s.nope > 1'", "No such struct field"),
    "left": (
        "not_matched_by_source_action='delete', not_matched_by_source_condition='nope > 1'",
        "not_matched_by_source_condition ",
    ),
    "value": ("merge_update_set_expressions={'v': 'nope + 1'}", "merge_update_set_expressions sets v to"),
    "column": ("merge_update_set_expressions={'nope': '1'}", "merge_update_set_expressions names 'nope'"),
    "going": ("incremental_strategy='replace_where', incremental_predicates=['nope > 1']", "nope"),
}
KNOWN = {
    "of_itself": "incremental_predicates=['DBT_INTERNAL_DEST.v <= (select max(v) from ' ~ this ~ ')']",
    "of_commits": "matched_condition='DBT_INTERNAL_DEST._hoodie_commit_time is not null'",
    "of_marks": "matched_condition='not coalesce(DBT_INTERNAL_SOURCE._hoodie_is_deleted, false)'",
    "of_comments": "matched_condition='DBT_INTERNAL_SOURCE.v > 0 -- or so', incremental_predicates=['DBT_INTERNAL_DEST.v > 0 -- too']",
    "of_later": "on_schema_change='append_new_columns', matched_condition='DBT_INTERNAL_SOURCE.later > 1'",
    "of_either": "incremental_strategy='replace_where', incremental_predicates=['v > 0']",
}


class TestClausesOfAFirstBuild:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        sql = "{{ config(materialized='incremental', KEY SAID) }} select 1 as id, 2 as v, named_struct('p', 1) as s"
        said = {**{name: text for name, (text, _) in UNKNOWN.items()}, **KNOWN}
        return {
            f"{name}.sql": sql.replace("SAID", text).replace(
                "KEY", "" if "replace_where" in text else "unique_key='id',"
            )
            for name, text in said.items()
        }

    def test_unknown_columns_and_what_is_no_sql_are_refused_before_there_is_a_table(
        self, project: Any
    ) -> None:
        results = run_dbt(["run"], expect_pass=False)
        told = {result.node.name: (str(result.status), result.message) for result in results}
        for name, (_, message) in UNKNOWN.items():
            assert told[name][0] == "error" and message in told[name][1], told[name]
            assert not (Path(project.project_root) / "warehouse" / project.test_schema / name).exists()
        assert {told[name][0] for name in KNOWN} == {"success"}, told
        run_dbt(["run", "--select", *(name for name in KNOWN if name not in ("of_marks", "of_later"))])

    def test_a_full_refresh_does_not_ask_the_table_that_it_replaces(self, project: Any) -> None:
        sql = "{{ config(materialized='incremental', unique_key='id' SAID) }} select 1 as id, 2 as v"
        write_file(sql.replace("SAID", ""), project.project_root, "models", "grown.sql")
        run_dbt(["run", "-s", "grown"])
        asks = ", incremental_predicates=['DBT_INTERNAL_DEST.n <= (select max(n) from ' ~ this ~ ')']"
        write_file(sql.replace("SAID", asks) + ", 3 as n", project.project_root, "models", "grown.sql")
        run_dbt(["run", "-s", "grown", "--full-refresh"])
        assert project.run_sql("select n from {schema}.grown", fetch="all") == [(3,)]
