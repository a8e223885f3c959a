"""dbt's incremental suite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import BaseMergeExcludeColumns
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import BaseIncrementalOnSchemaChange
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey
from dbt.tests.util import run_dbt


class TestMergeExcludeColumns(BaseMergeExcludeColumns):
    pass


@pytest.mark.long
class TestIncrementalOnSchemaChange(BaseIncrementalOnSchemaChange):
    pass


@pytest.mark.long
class TestIncrementalUniqueKey(BaseIncrementalUniqueKey):
    def fail_to_build_inc_missing_unique_key_column(self, incremental_model_name: str) -> tuple[str, str]:
        """A key that is no column is refused by the first run already, not by the second."""
        run_dbt(["seed", "--select", "seed", "--full-refresh"])
        (result,) = run_dbt(["run", "--select", incremental_model_name, "--full-refresh"], expect_pass=False)
        return result.status, result.message


OLD = "select 1 as id, 2 as Amount, named_struct('x', 1Y, 'Note', 'a') as parts, 5 as small"
NEW = (
    "select 2 as id, 3 as amount, named_struct('more', 7, 'note', 'b', 'x', 2) as parts, 9999999999 as small,"
    " 'new' as extra"
)
FITTING = NEW.replace("9999999999", "cast(6 as bigint)")


def changing(mode: str, second: str) -> str:
    config = f"config(materialized='incremental', unique_key='id', on_schema_change='{mode}')"
    return f"{{{{ {config} }}}} {{% if is_incremental() %}} {second} {{% else %}} {OLD} {{% endif %}}"


class TestChangesInsideColumns:
    """Upper and lower case make no other column; fields of structs come and widen as columns do."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "ignored.sql": changing("ignore", FITTING),
            "appended.sql": changing("append_new_columns", FITTING),
            "synced.sql": changing("sync_all_columns", NEW),
            "too_large.sql": changing("append_new_columns", NEW),
            "lacking.sql": changing("append_new_columns", NEW.replace("'note', 'b', ", "")),
        }

    def test_each_mode(self, project: Any) -> None:
        run_dbt(["run"])
        results = {result.node.name: result for result in run_dbt(["run"], expect_pass=False)}

        def found(name: str) -> tuple[str, list[Any]]:
            with project.adapter.connection_named("look"):
                with project.adapter.connections.get_thread_connection().handle.job("look") as session:
                    frame = session.table(f"{project.test_schema}.{name}")
                    parts = frame.schema["parts"].dataType.simpleString()
                    return parts, [tuple(row) for row in frame.orderBy("id").collect()]

        assert found("ignored") == (
            "struct<x:int,Note:string>", [(1, 2, (1, "a"), 5), (2, 3, (2, "b"), 6)],
        )  # fmt: skip
        assert found("appended") == (
            "struct<x:int,Note:string,more:int>",
            [(1, 2, (1, "a", None), 5, None), (2, 3, (2, "b", 7), 6, "new")],
        )
        assert found("synced")[1] == [
            (1, 2, (1, "a", None), 5, None), (2, 3, (2, "b", 7), 9999999999, "new"),
        ]  # fmt: skip
        assert "value 9999999999 of column small does not fit its type int" in results["too_large"].message
        assert "parts lacks the field 'Note', which the table has" in results["lacking"].message


class TestALocationThatIsLeftAndComesBack:
    """A name is one table; what lies at the place of an earlier build is none of it, and is not written to."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = "config(materialized='incremental', unique_key='id', location_root=var('root', none))"
        return {"moved.sql": f"{{{{ {config} }}}} select {{{{ var('id') }}}} as id"}

    def test_rows_go_where_the_name_is_or_nowhere(self, project: Any) -> None:
        other = str(Path(project.project_root) / "elsewhere")

        def run(number: int, *more: str, root: str | None = None, expect_pass: bool = True) -> Any:
            given = json.dumps({"id": number, **({} if root is None else {"root": root})})
            (result,) = run_dbt(["run", "--vars", given, *more], expect_pass=expect_pass)
            return result

        def rows() -> list[int]:
            return [
                row[0] for row in project.run_sql("select id from {schema}.moved order by id", fetch="all")
            ]

        run(1)
        run(2, "--full-refresh", root=other)
        run(3, root=f"file:{other}")
        told = run(4, expect_pass=False).message
        assert f"is the table at {other}/moved, and by its config it would be at /" in told
        assert "restore location_root, or run it with --full-refresh" in told
        assert rows() == [2, 3]
        run(5, root=other)
        assert rows() == [2, 3, 5]
        run(6, "--full-refresh")
        run(7)
        assert rows() == [6, 7]
