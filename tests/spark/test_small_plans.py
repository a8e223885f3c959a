"""Little data is queried without code generated for it, and the session is as it was afterwards."""

from __future__ import annotations

import threading
import time

import pytest
from hudi_engine import HudiTable, MergeClauses
from hudi_engine.spark.read.small_plans import interpreted_if_small, is_small

pytestmark = pytest.mark.sampled

STAGES, FACTORY = "spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode"
MOST = 1 << 20


def settings(session):
    return session.conf.get(STAGES, None), session.conf.get(FACTORY, None)


def without_code(session):
    """Return the settings while little data is queried; those of Spark 3 stay, which looks at them again while a query runs."""
    return settings(session) if session.version.startswith("3.") else ("false", "NO_CODEGEN")


@pytest.fixture
def session(spark):
    return spark.newSession()


@pytest.mark.parametrize("said", [None, "true"])
def test_code_is_generated_again_after_the_last_of_several_users(session, said):
    if said is not None:
        session.conf.set(STAGES, said)
    before, within, frame = settings(session), without_code(session), session.range(10)
    with interpreted_if_small(frame, MOST):
        with interpreted_if_small(frame, MOST):
            assert settings(session) == within
        assert settings(session) == within
    assert settings(session) == before


def test_the_settings_come_back_after_a_query_that_fails(session):
    before, frame = settings(session), session.range(10).selectExpr("raise_error('boom')")
    with pytest.raises(Exception, match="boom"), interpreted_if_small(frame, MOST):
        frame.collect()
    assert settings(session) == before


@pytest.mark.parametrize("most", [0, 79], ids=["never", "larger-than-the-limit"])
def test_other_queries_keep_generated_code(session, most):
    before, frame = settings(session), session.range(10)
    with interpreted_if_small(frame, most):
        assert settings(session) == before


def test_settings_of_the_user_are_left_alone(session):
    session.conf.set(FACTORY, "CODEGEN_ONLY")
    with interpreted_if_small(session.range(10), MOST):
        assert settings(session) == (None, "CODEGEN_ONLY")
    assert settings(session) == (None, "CODEGEN_ONLY")


@pytest.mark.parametrize(
    ("query", "small"),
    [
        (
            "select a.id, b.id as more from range(100) a join range(100) b on a.id = b.id left join range(9) c on c.id = a.id",
            True,
        ),
        ("select id from range(100) where id not in (select id from range(5))", True),
        ("select explode(sequence(1, 1000000)) as id", False),
        ("select a.id from range(100) a join range(100) b on a.id < b.id", False),
        ("select id from range(1000000)", False),
    ],
    ids=["joins", "null-aware", "explode", "without-equality", "large"],
)
def test_a_query_that_reads_little_and_makes_no_more_of_it_is_small(session, query, small):
    assert is_small(session.sql(query), MOST) is small


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_a_merge_of_few_rows_is_small(spark, tmp_path, index):
    table = HudiTable.create(
        spark,
        str(tmp_path),
        name="t",
        record_key=["id"],
        partition_by=["p"],
        options={"hoodie.index.type": index},
    )
    table.insert(spark.sql("select id, 1 as p from range(3)"))
    seen = []
    clauses = MergeClauses(by_source="delete", test=lambda rows, kept: seen.append(rows) or rows)
    table.merge(spark.sql("select id, 2 as p from range(2)"), clauses)
    assert [is_small(rows, MOST) for rows in seen] == [True]


@pytest.mark.core
def test_queries_of_another_thread_in_the_same_session_go_on(session, tmp_path):
    session.range(3000).selectExpr("id", "id % 7 as k").write.parquet(str(tmp_path / "rows"))
    session.read.parquet(str(tmp_path / "rows")).createOrReplaceTempView("rows")
    query = "select k, count(*) from rows where id > (select avg(id) from rows) group by k having k in (select k from rows)"
    done = threading.Event()

    def keep_changing():
        while not done.is_set():
            with interpreted_if_small(session.range(1), MOST):
                time.sleep(0.01)

    changing = threading.Thread(target=keep_changing)
    changing.start()
    try:
        assert [len(session.sql(query).collect()) for _ in range(20)] == [7] * 20
    finally:
        done.set()
        changing.join()


@pytest.mark.core
def test_rows_that_are_kept_in_memory_are_queried_as_they_were_planned(session, tmp_path):
    session.range(30).write.parquet(str(tmp_path / "rows"))
    session.read.parquet(str(tmp_path / "rows")).createOrReplaceTempView("rows")
    kept = session.sql("select id from rows where id > (select max(id) - 4 from rows)").cache()
    try:
        limited = kept.limit(10)
        with interpreted_if_small(limited, MOST):
            assert len(limited.collect()) == 4
    finally:
        kept.unpersist()


QUERY = """
select id, cast(id % 3 as decimal(12, 2)) as d, named_struct('a', id, 'b', array(id, null)) as s, map('k', id) as m,
  timestamp_seconds(id) as at, date_add(date '1969-12-30', cast(id as int)) as day, cast(null as string) as nothing,
  cast('NaN' as double) as f, if(id % 2 = 0, -0.0d, 0.5d) as z, concat('ü', id, '\U0001f600') as t, cast(concat('b', id) as binary) as x,
  sum(id) over (partition by id % 2 order by id) as w, count(*) over () as n
from range(20) where id not in (select id + 5 from range(3)) order by id desc
"""


def test_rows_are_the_same_with_and_without(spark, tmp_path):
    found = []
    for limit in ("0", str(MOST)):
        path = str(tmp_path / limit)
        table = HudiTable.create(spark, path, name="t", record_key=["id"])
        table.upsert(spark.sql(QUERY), options={"hoodie.engine.small.plan.bytes": limit})
        data = table.snapshot().drop(
            *[each for each in table.snapshot().columns if each.startswith("_hoodie")]
        )
        found.append(str(sorted(map(str, data.collect()))))
    assert found[0] == found[1]
    assert found[0].count("Row(id=") == 17
