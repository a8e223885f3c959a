"""Python models in the session."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonEmptyTests,
    BasePythonIncrementalTests,
    BasePythonMetaGetTests,
    BasePythonModelTests,
    BasePythonSampleTests,
)
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtBaseException


class TestPythonModelTests(BasePythonModelTests):
    pass


class TestPythonIncrementalTests(BasePythonIncrementalTests):
    pass


@pytest.mark.long
class TestPythonMetaGetTests(BasePythonMetaGetTests):
    pass


@pytest.mark.long
class TestPythonEmptyTests(BasePythonEmptyTests):
    pass


@pytest.mark.long
class TestPythonSampleTests(BasePythonSampleTests):
    pass


_ROWS = "{'id': [1, 2], 'name': ['a', None]}"
_OTHER_FRAMES = {
    "arrow": f"import pyarrow\ndef model(dbt, session):\n    return pyarrow.table({_ROWS})\n",
    "polars_rows": f"import polars\ndef model(dbt, session):\n    return polars.DataFrame({_ROWS}).lazy()\n",
    "a_list": "def model(dbt, session):\n    return [1, 2]\n",
}
_NAMES = ("a_list", "arrow", *(["polars_rows"] if find_spec("polars") else []))


class TestOtherFrames:
    """A Python model may return what other libraries have as rows."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        """Models that return an Arrow table, a lazy Polars frame, and no rows at all."""
        return {f"{name}.py": code for name, code in _OTHER_FRAMES.items() if name in _NAMES}

    def test_their_rows_become_the_table(self, project: Any) -> None:
        """Both tables hold the rows; what is no frame is refused with its type."""
        results = run_dbt(["run"], expect_pass=False)
        told = {result.node.name: result.message for result in results}
        assert "Python model a_list returned list: " in told["a_list"] and "Polars" in told["a_list"]
        for name in _NAMES[1:]:
            found = project.run_sql(
                f"select id, name from {project.test_schema}.{name} order by id", fetch="all"
            )
            assert [tuple(row) for row in found] == [(1, "a"), (2, None)]

    def test_one_is_not_shown_and_the_word_says_how_to_see_its_rows(self, project: Any) -> None:
        """The node's code is no query; the table that it makes is queried instead."""
        with pytest.raises(DbtBaseException) as raised:
            run_dbt(["show", "-s", "arrow"])
        told = str(raised.value)
        assert "arrow is a Python model" in told
        assert "dbt show --inline \"select * from {{ ref('arrow') }}\"" in told


_PANDAS = """
import datetime
import pandas
def model(dbt, session):
    dbt.config(materialized='incremental', unique_key='id')
    rows = {'id': [1, 2], 'name': ['a', None], 'day': [datetime.date(2026, 1, 1)] * 2, 'at': pandas.to_datetime(['2026-01-01'] * 2)}
    found = pandas.DataFrame(rows)
    return found[found['id'] > 2] if dbt.is_incremental else found
"""


_FLOATS = """
import datetime
import pandas
def model(dbt, session):
    dbt.config(materialized="incremental", unique_key="id")
    if dbt.is_incremental:
        return pandas.DataFrame({"id": [], "day": []}, dtype="float64")
    return pandas.DataFrame({"id": [1], "day": [datetime.date(2026, 1, 1)]})
"""


class TestPandasWithoutRows:
    """An increment that a Python model has no rows for is one, whatever the types of its columns."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        """A model whose increments are empty."""
        return {"frame.py": _PANDAS, "floats.py": _FLOATS}

    def test_columns_have_the_types_of_the_table(self, project: Any) -> None:
        """Each run succeeds, and the table keeps its rows and types."""
        query = f"select id, name, day, cast(at as string) as at, typeof(day) as kind from {project.test_schema}.frame order by id"
        run_dbt(["run"])
        before = project.run_sql(query, fetch="all")
        assert [tuple(row)[:2] for row in before] == [(1, "a"), (2, None)] and before[0][4] == "date"
        for words in ([], ["--empty"]):
            run_dbt(["run", *words])
            assert project.run_sql(query, fetch="all") == before
        kinds = f"select typeof(id), typeof(day) from {project.test_schema}.floats"
        assert [tuple(row) for row in project.run_sql(kinds, fetch="all")] == [("bigint", "date")]

    def test_a_first_build_without_rows_makes_text_of_what_has_no_type(self, project: Any) -> None:
        """As Spark would of a column of texts."""
        run_dbt(["run", "--empty", "--full-refresh"])
        columns = project.run_sql(f"describe {project.test_schema}.frame", fetch="all")
        assert {row[0]: row[1] for row in columns if row[0] in ("id", "name")} == {
            "id": "bigint",
            "name": "string",
        }


_SOURCE = (
    "sources: [{name: raw, schema: '{{ target.schema }}', tables: [{name: given, config: {event_time: at}}]}]"
)
_OF_SOURCE = """
def model(dbt, session):
    dbt.config(materialized='table')
    return dbt.source('raw', 'given').select('id')
"""


class TestWholeSources:
    """dbt does not filter what a Python model reads: neither a ref nor a source."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        """A model over a source that dbt would filter by time in a SQL model."""
        return {"of_source.py": _OF_SOURCE, "sources.yml": _SOURCE}

    def test_a_source_is_whole_in_samples_and_runs_without_rows(self, project: Any) -> None:
        """As a table of a model is."""
        project.run_sql("create table {schema}.given as select 1 as id, timestamp '2020-01-01' as at")
        for words in ([], ["--empty"], ["--sample", "1 day"]):
            run_dbt(["run", *words])
            assert project.run_sql("select id from {schema}.of_source", fetch="all") == [(1,)]


_ON_WORKERS = """
from dataclasses import dataclass
import pyarrow as pa
from pyspark.sql import functions as F

STEP = 10

@dataclass
class Step:
    size: int

    def after(self, number):
        return number + self.size

def later(number):
    return Step(STEP).after(number)

@F.udf('bigint')
def much_later(number):
    return later(later(number))

def twice(batches):
    for batch in batches:
        yield pa.RecordBatch.from_pylist([{'id': each['id'], 'more': later(each['id'])} for each in batch.to_pylist()])

def model(dbt, session):
    dbt.config(materialized='table')
    rows = session.range(2)
    KIND
"""
_WAYS = {
    "by_udf": "return rows.select('id', F.udf(later, 'bigint')('id').alias('more'))",
    "by_helper": "return rows.select('id', (much_later('id') - STEP).alias('more'))",
    "by_batches": "return rows.mapInArrow(twice, 'id bigint, more bigint')",
    "by_rdd": "return rows.rdd.map(lambda row: (row.id, later(row.id))).toDF('id bigint, more bigint')",
}


class TestFunctionsOnWorkers:
    """What a model's file defines beside `model` is there where Spark's workers run it."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        """A model for each way to hand a function to Spark."""
        return {f"{name}.py": _ON_WORKERS.replace("KIND", way) for name, way in _WAYS.items()}

    def test_functions_and_classes_of_the_file_are_known(self, project: Any) -> None:
        """Functions that are handed over, and those that they call."""
        run_dbt(["run"])
        for name in _WAYS:
            found = project.run_sql(f"select id, more from {{schema}}.{name} order by id", fetch="all")
            assert [tuple(row) for row in found] == [(0, 10), (1, 11)], name
