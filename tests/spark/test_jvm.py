"""Each function of the jvm room on the Spark that is installed: what a release of Spark may break shows here first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hudi_engine.errors import StatementError
from hudi_engine.spark.jvm import catalog, errors, frames, plans, session
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

pytestmark = pytest.mark.core


@pytest.fixture
def parquet(spark: SparkSession, tmp_path: Path) -> Any:
    path = str(tmp_path / "files")
    spark.range(10).withColumn("v", F.lit("x")).coalesce(1).write.parquet(path)
    return spark.read.parquet(path)


class TestPlans:
    def test_a_statement_is_parsed_and_its_target_named(self, spark: SparkSession) -> None:
        plan = plans.parse(spark, "delete from s.t as d where d.id = 1")
        assert plans.kind(plan) == "DeleteFromTable"
        assert plans.target_parts(plan.table()) == (["s", "t"], "d")

    def test_what_is_no_sql_raises_a_spark_error(self, spark: SparkSession) -> None:
        with pytest.raises(errors.SPARK_ERRORS) as raised:
            plans.parse(spark, "delete form t")
        assert isinstance(raised.value, ParseException)

    def test_a_part_of_a_statement_is_found_by_its_place(self, spark: SparkSession) -> None:
        sql = "delete from t where a in (select b from u) and c = 'x'"
        condition = plans.parse(spark, sql).condition()
        assert plans.text_of(sql, condition) == "a in (select b from u) and c = 'x'"
        assert plans.checked_text(spark, "a in (select b from u) and c = 'x'", condition)
        with pytest.raises(StatementError):
            plans.checked_text(spark, "a = 1", condition)

    def test_nodes_of_an_expression_include_its_subqueries(self, spark: SparkSession) -> None:
        condition = plans.parse_expression(spark, "id in (select 1) or exists (select 2)")
        assert {"ListQuery", "Exists"} <= {plans.kind(each) for each in plans.nodes(condition)}

    def test_below_gives_the_queries_of_a_with(self, spark: SparkSession) -> None:
        plan = plans.parse(spark, "with n as (select * from u) select * from n")
        assert [plans.kind(each) for each in plans.below(plan)] == ["Project", "SubqueryAlias"]

    def test_a_plan_becomes_a_frame(self, spark: SparkSession) -> None:
        assert plans.frame(spark, plans.parse(spark, "select 7 as n")).collect()[0].n == 7

    def test_a_plan_gets_another_child(self, spark: SparkSession) -> None:
        with_plan = plans.parse(spark, "with n as (select 1 as id) select id from n")
        other = plans.with_child(spark, with_plan, plans.parse(spark, "select id + 1 as id from n"))
        assert plans.frame(spark, other).collect()[0].id == 2

    def test_an_expression_becomes_a_column(self, spark: SparkSession) -> None:
        column = plans.column(spark, plans.parse_expression(spark, "id * 2"))
        assert [row[0] for row in spark.range(3).select(column).collect()] == [0, 2, 4]

    def test_types_become_those_of_python(self, spark: SparkSession) -> None:
        schema = plans.parse(spark, "create table t (id int, v array<string>)").tableSchema()
        assert plans.struct_type(schema).simpleString() == "struct<id:int,v:array<string>>"
        assert plans.data_type(schema.apply("id").dataType()) == T.IntegerType()

    def test_options_and_defaults_are_read(self, spark: SparkSession) -> None:
        spec = plans.parse(spark, "create table t (id int) comment 'why'").tableSpec()
        assert plans.option(spec.comment()) == "why" and plans.option(spec.location()) is None
        (added,) = plans.items(plans.parse(spark, "alter table t add column n int default 5").columnsToAdd())
        assert plans.default_text(added) == "5"


class TestFrames:
    def test_plans_of_a_frame(self, parquet: Any) -> None:
        rows = parquet.where("id > 1").select("id")
        assert plans.kind(frames.analyzed_plan(rows)) == "Project"
        assert plans.kind(frames.optimized_plan(rows)) in ("Project", "Filter")
        assert "Scan parquet" in frames.physical_plan_text(rows)

    def test_estimates_of_a_frame(self, parquet: Any) -> None:
        assert 0 < frames.size_estimate(parquet) < 10**6
        assert [*frames.scan_estimates(parquet.union(parquet))] == [frames.size_estimate(parquet)] * 2
        assert frames.row_size_estimate(parquet.select("id")) == 8
        assert frames.task_count(parquet) == 1

    def test_rows_of_a_command_are_there(self, spark: SparkSession) -> None:
        assert frames.is_done(spark.sql("show databases")) and not frames.is_done(spark.range(3))

    def test_the_time_of_a_query_is_found(self, parquet: Any) -> None:
        assert frames.depends_on_time(parquet.where("current_timestamp() > '2020-01-01'"))
        assert not frames.depends_on_time(parquet.where("id > 1"))

    def test_columns_are_called_by_a_name_of_several_parts(self, spark: SparkSession) -> None:
        rows = frames.under_name(spark.range(2), ("spark_catalog", "s", "t"))
        found = rows.where(F.expr("s.t.id > 0 and exists (select 1 where t.id = 1)")).select("t.id")
        assert [row.id for row in found.collect()] == [1]
        assert frames.under_name(spark.range(1), ()).columns == ["id"]


class TestSession:
    def test_state_of_a_session(self, spark: SparkSession) -> None:
        assert session.is_classic(spark)
        assert not session.is_stopped(spark.sparkContext)
        assert not session.is_stopped_in_java(spark.sparkContext)
        assert session.java_version(spark)[0].isdigit()

    def test_a_copy_has_settings_of_its_own(self, spark: SparkSession) -> None:
        copy = session.cloned(spark)
        copy.conf.set("spark.sql.shuffle.partitions", "3")
        assert spark.conf.get("spark.sql.shuffle.partitions") != "3"
        assert session.session_id(copy) != session.session_id(spark)
        assert "spark.sql.shuffle.partitions" in session.own_settings(copy)


class TestCatalog:
    @pytest.fixture(autouse=True)
    def _table(self, spark: SparkSession) -> Any:
        spark.sql("create database if not exists jvm_names")
        spark.sql("create table jvm_names.t (id int) using parquet")
        yield
        spark.sql("drop database jvm_names cascade")

    def test_names_of_schemas_and_views(self, spark: SparkSession) -> None:
        assert catalog.database_exists(spark, "jvm_names") and not catalog.database_exists(spark, "a-b")
        spark.range(1).createOrReplaceTempView("jvm_view")
        assert catalog.is_temporary_view(spark, "jvm_view") and not catalog.is_temporary_view(spark, "t")
        spark.catalog.dropTempView("jvm_view")

    def test_an_entry_is_found_by_its_identifier(self, spark: SparkSession) -> None:
        name = catalog.identifier_of(spark, "`jvm_names`.`t`")
        assert catalog.session_catalog(spark).getTableMetadata(name).identifier().table() == "t"
        assert catalog.external_catalog(spark).tableExists("jvm_names", "t")

    def test_stored_statistics_are_removed(self, spark: SparkSession) -> None:
        spark.sql("analyze table jvm_names.t compute statistics")
        name = catalog.identifier_of(spark, "jvm_names.t")
        catalog.forget_statistics(spark, name)
        assert not catalog.session_catalog(spark).getTableMetadata(name).stats().isDefined()

    def test_a_statement_is_analysed_and_not_run(self, spark: SparkSession) -> None:
        plan = catalog.analyzed_statement(spark, "create table jvm_names.other (id int) using parquet")
        assert plans.kind(plan).startswith("CreateDataSourceTable")
        with pytest.raises(AnalysisException):
            spark.table("jvm_names.other")

    def test_columns_and_options_of_scala(self, spark: SparkSession) -> None:
        columns = catalog.parsed_columns(spark, "id int, v string")
        assert plans.struct_type(columns).names == ["id", "v"]
        assert plans.option(catalog.some(spark, "x")) == "x"
        assert plans.option(catalog.some(spark, None)) is None

    def test_functions_of_a_schema(self, spark: SparkSession) -> None:
        assert [*catalog.functions_in(spark, "jvm_names")] == []
        assert [*catalog.functions_in(spark, "no_such_schema")] == []

    def test_the_kind_of_catalog(self, spark: SparkSession) -> None:
        assert catalog.has_hive_catalog(spark) is (
            spark.conf.get("spark.sql.catalogImplementation") == "hive"
        )


def test_messages_of_java_come_from_the_innermost_cause(spark: SparkSession) -> None:
    name = catalog.identifier_of(spark, "no_such_schema.t")
    with pytest.raises(errors.SPARK_ERRORS) as raised:
        catalog.session_catalog(spark).getTableMetadata(name)
    assert errors.java_message(raised.value) is None or "no_such" in str(errors.java_message(raised.value))
    assert not errors.is_unanswered(raised.value)
