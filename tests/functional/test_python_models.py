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
