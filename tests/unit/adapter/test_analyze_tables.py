"""ANALYZE TABLES: what one table's trouble means for the others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import AnalysisException

from dbt.adapters.hudi.sql import ddl


def analyze(monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[str]:
    """Analyse two tables that Spark fails at; returns the warnings."""
    told: list[str] = []
    monkeypatch.setattr(ddl.logger, "warning", lambda text, *names: told.append(text.format(*names)))
    monkeypatch.setattr(ddl.plans, "kind", lambda _: "CurrentNamespace$")

    def failing(_: Any, entry: Any, __: str) -> None:
        raise error

    monkeypatch.setattr(ddl, "_analyze_entry", failing)
    entries = [SimpleNamespace(name=SimpleNamespace(label=f"s.{name}")) for name in ("a", "b")]
    statement: Any = SimpleNamespace(
        plan=SimpleNamespace(child=lambda: None, noScan=lambda: False),
        session=SimpleNamespace(
            catalog=SimpleNamespace(currentDatabase=lambda: "s", databaseExists=lambda _: True)
        ),
        warehouse=SimpleNamespace(entries=lambda *_: entries),
        check_catalog=lambda _: None,
    )
    ddl.analyze_tables(statement)
    return told


@pytest.mark.parametrize("error", [AnalysisException("no"), PermissionError("no")])
def test_a_table_that_cannot_be_analysed_is_warned_of_and_the_next_one_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    assert [text[:3] for text in analyze(monkeypatch, error)] == ["s.a", "s.b"]


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError("refused"), Py4JNetworkError("no answer"), Py4JError("no answer")]
)
def test_when_java_is_gone_the_statement_fails(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    with pytest.raises(type(error)):
        analyze(monkeypatch, error)
