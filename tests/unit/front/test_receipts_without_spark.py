"""Receipts of tables that are written without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine import ConfigError
from hudi_engine.table.operations import OPERATIONS

from tests.unit.front.test_tables_without_spark import FORMS, arrow, orders


@pytest.mark.parametrize(("kind", "version"), FORMS)
def test_replacing_all_rows_begins_a_new_chain(tmp_path: Path, kind: str, version: int) -> None:
    table = orders(tmp_path / "t", kind, version)
    table.upsert(arrow((1, 1, "a", 1.0), (2, 1, "b", 2.0)))
    assert table.verify().noted.since is None
    table.upsert(arrow((3, 1, "a", 3.0)), options={"hoodie.engine.receipts": "false"})
    assert table.verify().noted.since is not None
    table.insert_overwrite_table(arrow((4, 1, "a", 4.0)))
    found = table.verify()
    assert found.ok and (found.noted.since, found.noted.rows) == (None, 1)


def test_an_answer_that_proves_nothing_fails_where_proof_is_asked_for(tmp_path: Path) -> None:
    table = orders(tmp_path / "t")
    table.upsert(arrow((1, 1, "a", 1.0)), options={"hoodie.engine.receipts": "false"})
    services = table.services()
    assert OPERATIONS["verify"].call(services, {}).ok
    assert not OPERATIONS["verify"].call(services, {"strict": True}).ok
    with pytest.raises(ConfigError, match="nothing to compare"):
        OPERATIONS["diff"].call(services, {})
