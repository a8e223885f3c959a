"""Little data is queried without code generated for it, and the session is as it was afterwards."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable
from hudi_engine.frames.small_plans import estimated_bytes, interpreted_if_small

STAGES, FACTORY = "spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode"
MOST = 1 << 20


def settings(session):
    return session.conf.get(STAGES), session.conf.get(FACTORY, None)


@pytest.fixture
def session(spark):
    return spark.newSession()


def test_code_is_generated_again_after_the_last_of_several_users(session):
    before, frame = settings(session), session.range(10)
    with interpreted_if_small(frame, estimated_bytes(frame), MOST):
        with interpreted_if_small(frame, estimated_bytes(frame), MOST):
            assert settings(session) == ("false", "NO_CODEGEN")
        assert settings(session) == ("false", "NO_CODEGEN")
    assert settings(session) == before


def test_the_settings_come_back_after_a_query_that_fails(session):
    before, frame = settings(session), session.range(10).selectExpr("raise_error('boom')")
    with pytest.raises(Exception, match="boom"), interpreted_if_small(frame, 80, MOST):
        frame.collect()
    assert settings(session) == before


@pytest.mark.parametrize("most", [0, 79], ids=["never", "larger-than-the-limit"])
def test_other_queries_keep_generated_code(session, most):
    before, frame = settings(session), session.range(10)
    with interpreted_if_small(frame, 80, most):
        assert settings(session) == before


def test_settings_of_the_user_are_left_alone(session):
    session.conf.set(FACTORY, "CODEGEN_ONLY")
    with interpreted_if_small(session.range(10), 80, MOST):
        assert settings(session) == ("true", "CODEGEN_ONLY")
    assert settings(session) == ("true", "CODEGEN_ONLY")


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
