"""Hudi tables that lie where a model's table would be, and that its warehouse has no name for: another environment's, or adopted ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from hudi_engine import HudiTable
from pyspark.sql import SparkSession

from dbt.adapters.hudi.spark.warehouse import Warehouse
from tests.functional.conftest import CATALOG

KEPT = """
{{ config(materialized='incremental', unique_key='id', location_root=var('lake')) }}
select cast(id as int) as id, '{{ target.name }}' as v, {{ is_incremental() }} as adds
from range({{ var('first', 0) }}, {{ var('first', 0) }} + 2)
"""
WHOLE = "{{ config(materialized='table', location_root=var('lake')) }} select '{{ target.name }}' as v"
SOURCES = """
sources:
  - name: theirs
    tables:
      - name: orders
        external: {location: lake/orders, using: hudi}
"""
SNAPSHOT = """
{% snapshot history %}
{{ config(target_schema=target.schema, unique_key='id', strategy='check', check_cols=['v'], location_root=var('lake')) }}
select 1 as id, '{{ target.name }}' as v
{% endsnapshot %}
"""


@pytest.mark.core
@pytest.mark.skipif(CATALOG != "directory", reason="a metastore is one for all folders")
class TestTablesOfAnotherEnvironment:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"kept.sql": KEPT, "whole.sql": WHOLE}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.sql": SNAPSHOT}

    @pytest.fixture(scope="class")
    def dbt_profile_data(self, unique_schema: str, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        target = {**dbt_profile_target, "schema": unique_schema}
        others = {name: {**target, "location_root": name} for name in ("prod", "dev")}
        return {"test": {"outputs": {"default": target, **others}, "target": "default"}}

    @pytest.fixture(scope="class")
    def lake(self, tmp_path_factory: Any) -> Path:
        return Path(tmp_path_factory.mktemp("lake"))

    def told(self, lake: Path, target: str, *words: str, passes: bool = True, first: int = 0) -> str:
        given = ["--target", target, "--vars", f"{{lake: '{lake}', first: {first}}}"]
        return str(run_dbt_and_capture([*words, *given], expect_pass=passes)[1])

    def shown(self, lake: Path, name: str) -> str:
        query = f"select concat_ws(',', sort_array(collect_list(v))) as v from {{{{ ref('{name}') }}}}"
        return self.told(lake, "prod", "show", "--quiet", "--output", "json", "--inline", query)

    def test_they_are_not_replaced_unless_that_is_asked_for_and_are_gone_on_with_once_adopted(
        self, project: Any, lake: Path
    ) -> None:
        for first in (0, 2):
            self.told(lake, "prod", "run", first=first)
        self.told(lake, "prod", "snapshot")

        for command in (["run", "--select", "kept"], ["snapshot"]):
            told = self.told(lake, "dev", *command, passes=False)
            assert "a Hudi table lies that this warehouse has no name for" in told
        assert '"prod,prod,prod,prod"' in self.shown(lake, "kept")
        assert '"prod"' in self.shown(lake, "history")
        told = self.told(lake, "dev", "run", "--select", "whole")
        assert f"whole has replaced a Hudi table at {lake}/whole" in told

        schema = project.test_schema
        adopts = "{table: %s.%s, location: '%s'}"
        for name in ("kept", "history"):
            place = adopts % (schema, name, lake / name)
            told = self.told(lake, "dev", "run-operation", "hudi_adopt", "--args", place)
            assert f"{name}: is the table at {lake / name} from now on" in told
        self.told(lake, "dev", "run", "--select", "kept", first=3)
        assert '"dev,dev,prod,prod,prod"' in self.shown(lake, "kept")
        self.told(lake, "dev", "snapshot")
        assert '"dev,prod"' in self.shown(lake, "history")

        self.told(lake, "dev", "run", "--select", "kept", "--full-refresh")
        assert '"dev,dev"' in self.shown(lake, "kept")


@pytest.mark.core
class TestBuildsThatEndBeforeTheTableHasItsName:
    """Their rows are committed, and no name leads to them."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"kept.sql": KEPT.replace("var('lake')", "'lake'")}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.sql": SNAPSHOT.replace("var('lake')", "'lake'")}

    @pytest.fixture
    def cut_off(self, project: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
        """Run a command that ends between the commit and the name."""

        def run(*words: str) -> None:
            with monkeypatch.context() as killed:
                killed.setattr(Warehouse, "register_plan", cut)
                (result,) = run_dbt([*words], expect_pass=False)
            assert "cut off" in result.message

        def cut(*_given: Any, **_named: Any) -> None:
            raise RuntimeError("cut off")

        return run

    @pytest.mark.parametrize(
        ("name", "command"), [("kept", ("run", "--select", "kept")), ("history", ("snapshot",))]
    )
    def test_the_next_run_is_refused_until_the_table_is_adopted(
        self, project: Any, cut_off: Callable[..., None], name: str, command: tuple[str, ...]
    ) -> None:
        cut_off(*command)
        (refused,) = run_dbt([*command], expect_pass=False)
        assert "no name for" in refused.message and "hudi_adopt" in refused.message
        adopted = f"{{table: {project.test_schema}.{name}, location: lake/{name}}}"
        run_dbt(["run-operation", "hudi_adopt", "--args", adopted])
        run_dbt([*command])
        query = f"select count(*) from {{schema}}.{name}"
        assert project.run_sql(query, fetch="one")[0] == (2 if name == "kept" else 1)


class TestAdopting:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "adopted.sql": KEPT.replace("var('lake')", "'lake'"),
            "reader.sql": "{{ config(materialized='table') }} select * from {{ source('theirs', 'orders') }}",
            "sources.yml": SOURCES,
        }

    def adopt(self, given: str, passes: bool = True) -> str:
        words = ["run-operation", "hudi_adopt", "--args", f"{{{given}}}"]
        return str(run_dbt_and_capture(words, expect_pass=passes)[1])

    def test_a_source_becomes_the_table_of_a_model_and_of_no_second_one(self, project: Any) -> None:
        spark = SparkSession.builder.getOrCreate()
        place = str(project.project_root / "lake" / "orders")
        table = HudiTable.create(spark, place, name="orders", record_key=["id"], schema="id int, v string")
        table.insert(spark.sql("select 1 as id, 'a' as v"))
        run_dbt(["run", "--select", "reader"])
        assert "theirs.orders is a source" in self.adopt(
            "table: theirs.orders, location: lake/orders", passes=False
        )
        assert f"is the table at {place} from now on" in self.adopt("table: orders, location: lake/orders")
        again = self.adopt("table: second, location: lake/orders", passes=False)
        assert f"{place} is the table {project.test_schema}.orders already" in again
        project.run_sql("insert into {schema}.orders values (2, 'b')")
        run_dbt(["run", "--select", "reader"])
        assert project.run_sql("select count(*) from {schema}.reader", fetch="one")[0] == 2
        project.run_sql("create table {schema}.bare (id int) using hudi location 'lake/bare'")
        assert "already, and one table" in self.adopt("table: second, location: lake/bare", passes=False)

    def test_the_first_run_of_a_model_adds_to_a_table_that_was_given_its_name(self, project: Any) -> None:
        project.run_sql(
            "create table {schema}.elsewhere tblproperties (primaryKey = 'id') location 'lake/adopted' "
            "as select 7 as id, 'before' as v, false as adds"
        )
        taken = self.adopt("table: adopted, location: lake/adopted", passes=False)
        assert f"is the table {project.test_schema}.elsewhere already, and one table gets one name" in taken
        with (
            project.adapter.connection_named("forget"),
            project.adapter.connections.work("forget") as session,
        ):
            project.adapter.connections.warehouse.forget(session, project.test_schema, "elsewhere")
        (refused,) = run_dbt(["run", "--select", "adopted"], expect_pass=False)
        assert "adopted would be built at" in refused.message and "no name for" in refused.message
        assert "from now on" in self.adopt("table: adopted, location: lake/adopted")
        assert "already" in self.adopt("table: adopted, location: lake/adopted")
        assert "is there already; choose another name" in self.adopt("table: adopted", passes=False)
        assert "TableNotFoundError" in self.adopt("table: nothing, location: lake/nothing", passes=False)
        run_dbt(["run", "--select", "adopted"])
        found = project.run_sql("select id, v, adds from {schema}.adopted order by id", fetch="all")
        assert [tuple(row) for row in found] == [
            (0, "default", True),
            (1, "default", True),
            (7, "before", False),
        ]
