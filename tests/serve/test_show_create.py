"""SHOW CREATE TABLE over the server: its statement makes a table of the same definition again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.write.define.table_options import same_definition
from pyhive import hive

from dbt.adapters.hudi.serve.warehouse import ServedWarehouse

COLUMNS = "(id bigint not null comment 'it''s', at timestamp, day string, s struct<ab: int, m: map<string, array<date>>>)"


@pytest.mark.parametrize(
    "clauses",
    [
        "",
        "comment 'all `of` it' tblproperties (primaryKey = 'id', preCombineField = 'at', team = 'blue')",
        "partitioned by (day) tblproperties (type = 'mor', primaryKey = 'id,day', 'hoodie.index.type' = 'BUCKET', "
        "'hoodie.bucket.index.num.buckets' = '3', 'hoodie.datasource.write.hive_style_partitioning' = 'false')",
        "partitioned by (day) options (primaryKey 'id', preCombineField 'at', `hoodie.record.merge.mode` "
        "'COMMIT_TIME_ORDERING', `hoodie.table.cdc.enabled` 'true')",
        "tblproperties (type = 'mor', primaryKey = 'id', 'hoodie.write.table.version' = '8', "
        "'hoodie.datasource.write.partitionpath.field' = 'day:simple,at:timestamp', "
        "'hoodie.keygen.timebased.timestamp.type' = 'EPOCHMILLISECONDS', "
        "'hoodie.keygen.timebased.output.dateformat' = 'yyyy-MM')",
    ],
    ids=["plain", "keyed", "buckets", "cdc", "version-8"],
)
def test_the_statement_makes_the_table_again(
    warehouse: ServedWarehouse, connect: Callable[..., hive.Connection], clauses: str
) -> None:
    cursor = connect(database="shop").cursor()

    def rows(text: str) -> list[tuple[Any, ...]]:
        cursor.execute(text)
        return [] if cursor.description is None else list(cursor.fetchall())

    def config() -> TableConfig:
        base = warehouse.hudi_base(warehouse.open_session(), "shop", "shown")
        assert base is not None
        return TableConfig.load(open_storage(base))

    cursor.execute("drop table if exists shop.shown")
    cursor.execute(f"create table shop.shown {COLUMNS} using hudi {clauses}")
    first, described = config(), rows("describe shop.shown")
    ((text,),) = rows("show create table shown")
    for inner in (
        "hudi_files",
        "parquet",
        "hoodie.base.path",
        "hoodie.catalog",
        "spark_catalog",
        "LOCATION",
        "dbt.",
    ):
        assert inner not in text
    cursor.execute("drop table shop.shown")
    cursor.execute("show tables in shop like 'shown'")  # carries the drop out
    assert cursor.fetchall() == []
    cursor.execute(text)
    assert same_definition(first, config()), text
    assert rows("describe shop.shown") == described
    assert rows("show create table shop.shown") == [(text,)]


def test_a_location_of_its_own_is_in_it(connect: Callable[..., hive.Connection], tmp_path: Any) -> None:
    cursor = connect().cursor()
    cursor.execute(f"create or replace table shop.placed using hudi location '{tmp_path}/own' as select 1 id")
    cursor.execute("show create table shop.placed")
    assert f"{tmp_path}/own'" in cursor.fetchall()[0][0]


def test_a_view_is_shown_by_spark(connect: Callable[..., hive.Connection]) -> None:
    cursor = connect().cursor()
    cursor.execute("create or replace view shop.looked as select 1 id")
    cursor.execute("show create table shop.looked")
    assert cursor.fetchall()[0][0].startswith("CREATE VIEW")
