"""Python models in the session."""

from __future__ import annotations

from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonEmptyTests,
    BasePythonIncrementalTests,
    BasePythonMetaGetTests,
    BasePythonModelTests,
    BasePythonSampleTests,
)


class TestPythonModelTests(BasePythonModelTests):
    pass


class TestPythonIncrementalTests(BasePythonIncrementalTests):
    pass


class TestPythonMetaGetTests(BasePythonMetaGetTests):
    pass


class TestPythonEmptyTests(BasePythonEmptyTests):
    pass


class TestPythonSampleTests(BasePythonSampleTests):
    pass
