"""The statements that dbt 2, a program without Python, sends for models of `file_format: hudi`, one by one over Thrift."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyhive import hive

Connect = Callable[..., hive.Connection]
MODEL = """
create table sales2.orders
      using hudi
      options (primaryKey "id" , preCombineField "ts")
      partitioned by (day)
      comment 'orders'
      as
      select 1 as id, 1L as ts, 'new' as status, '2026-01-01' as day
      union all select 2, 1L, 'new', '2026-01-02'
"""


@pytest.fixture
def send(connect: Connect) -> Callable[[str], list[tuple[Any, ...]]]:
    cursor = connect().cursor()

    def run(statement: str) -> list[tuple[Any, ...]]:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []

    run("create schema if not exists sales2")
    run("drop table if exists sales2.orders")
    return run


def test_a_model_is_made_merged_overwritten_and_made_anew(
    send: Callable[[str], list[tuple[Any, ...]]], connect: Connect
) -> None:
    assert ("sales2",) in send("show databases")
    assert send("show table extended in sales2 like '*'") == []
    send(MODEL)
    (shown,) = send("show table extended in sales2 like '*'")
    assert "Provider: hudi" in shown[-1] and "Type: VIEW" not in shown[-1]
    described = send("describe extended sales2.orders")
    assert ("Provider", "hudi") in [(each[0], each[1]) for each in described]
    assert send("show tblproperties sales2.orders")

    send(
        "create or replace temporary view orders__dbt_tmp as select 2 as id, 2L as ts, 'paid' as status, "
        "'2026-01-02' as day union all select 3, 2L, 'new', '2026-01-02'"
    )
    send(
        """
        merge into sales2.orders as DBT_INTERNAL_DEST
            using orders__dbt_tmp as DBT_INTERNAL_SOURCE
            on DBT_INTERNAL_SOURCE.id = DBT_INTERNAL_DEST.id
            when matched then update set *
            when not matched then insert *
        """
    )
    assert send("select id, status from sales2.orders order by id") == [(1, "new"), (2, "paid"), (3, "new")]

    send("set spark.sql.sources.partitionOverwriteMode = DYNAMIC")
    send(
        "create or replace temporary view orders__dbt_tmp as select 4 as id, 3L as ts, 'new' as status, '2026-01-02' as day"
    )
    send(
        "insert overwrite table sales2.orders partition (day) select `id`, `ts`, `status`, `day` from orders__dbt_tmp"
    )
    assert send("select id from sales2.orders order by id") == [(1,), (4,)]
    send(
        "insert into table sales2.orders select `id`, `ts`, `status`, `day` from (select 5 id, 4L ts, 'new' status, '2026-01-03' day)"
    )
    assert send("select count(*) from sales2.orders") == [(3,)]

    reader = connect().cursor()
    send("drop table if exists sales2.orders")
    reader.execute("select count(*) from sales2.orders")
    assert reader.fetchall() == [(3,)], "readers find the old rows until the new ones are there"
    send(MODEL)
    reader.execute("select count(*) from sales2.orders")
    assert reader.fetchall() == [(2,)]


def test_a_model_is_renamed_and_replaced_by_a_view(send: Callable[[str], list[tuple[Any, ...]]]) -> None:
    send(MODEL)
    send("drop table if exists sales2.orders__dbt_backup")
    send("alter table sales2.orders rename to sales2.orders__dbt_backup")
    send("create or replace view sales2.orders as select 7 as id")
    assert send("select id from sales2.orders") == [(7,)]
    assert send("select count(*) from sales2.orders__dbt_backup") == [(2,)]
    send("drop view if exists sales2.orders")
    send("drop table if exists sales2.orders__dbt_backup")
    assert send("show table extended in sales2 like '*'") == []
