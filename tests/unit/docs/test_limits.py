"""What is refused is on the page of limits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hudi_engine.format.config.unsupported_keys import UNSUPPORTED
from hudi_engine.spark.sql import router

from dbt.adapters.hudi.model import merge

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/limits.md").read_text(encoding="utf-8")
LISTED = {text for line in PAGE.splitlines() for text in line.split("`")[1::2]}
STATEMENTS = {
    "RenameColumn": "RENAME COLUMN",
    "ReplaceColumns": "REPLACE COLUMNS",
    "SetTableLocation": "SET LOCATION",
    "AddPartitions": "ADD PARTITION",
    "RenamePartitions": "PARTITION ... RENAME TO PARTITION",
    "RecoverPartitions": "RECOVER PARTITIONS",
    "RepairTable": "MSCK REPAIR TABLE",
    "LoadData": "LOAD DATA",
    "AnalyzeColumn": "ANALYZE TABLE ... FOR COLUMNS",
    "SetTableSerDeProperties": "SET SERDE",
    "AddConstraint": "ADD CONSTRAINT",
    "AddCheckConstraint": "ADD CONSTRAINT ... CHECK",
    "AlterTableClusterBy": "ALTER TABLE ... CLUSTER BY",
}


@pytest.mark.parametrize("key", UNSUPPORTED)
def test_every_unsupported_option_is_listed(key: str) -> None:
    assert key in LISTED


def test_every_feature_of_a_table_that_is_not_written_is_listed() -> None:
    source = (ROOT / "engine/hudi_engine/format/config/table_config.py").read_text(encoding="utf-8")
    features = re.findall(r'"(hoodie[\w.]+=\w+)"', source)

    assert features
    assert set(features) <= LISTED


def test_no_option_is_listed_that_is_done_by_now() -> None:
    listed = {each for each in LISTED if each.startswith("hoodie.") and "=" not in each}

    assert listed - set(UNSUPPORTED) == set()


@pytest.mark.parametrize("strategy", merge._REFUSED)
def test_every_strategy_that_is_refused_is_listed(strategy: str) -> None:
    assert strategy in LISTED


def test_no_strategy_is_listed_that_is_legal_by_now() -> None:
    assert (
        set(merge.STRATEGIES) & {line.split("`")[1] for line in PAGE.splitlines() if line.startswith("| `")}
        == set()
    )


def test_every_statement_that_is_refused_is_listed() -> None:
    assert set(router._REFUSED) == set(STATEMENTS)
    assert set(STATEMENTS.values()) <= LISTED


def test_the_readme_leads_there() -> None:
    assert "(docs/limits.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
