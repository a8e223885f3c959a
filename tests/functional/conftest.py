"""dbt projects run through the real adapter.

``DBT_HUDI_TEST_CATALOG`` (``directory`` or ``hive``) and ``DBT_HUDI_TEST_TABLE_TYPE`` (``cow`` or ``mor``)
choose the catalog and the table type of all models, seeds and snapshots that do not say theirs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from dbt.tests.fixtures.project import *  # noqa: F403
from dbt.tests.util import write_file

CATALOG = os.environ.get("DBT_HUDI_TEST_CATALOG", "directory")
TABLE_TYPE = os.environ.get("DBT_HUDI_TEST_TABLE_TYPE", "cow")

SPARK_CONF = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="class")
def dbt_profile_target() -> dict[str, Any]:
    conf = dict(SPARK_CONF)
    if CATALOG == "hive":
        conf["spark.hadoop.javax.jdo.option.ConnectionURL"] = "jdbc:derby:memory:dbt_hudi;create=true"
    return {
        "type": "hudi",
        "catalog": CATALOG,
        "isolate_sessions": True,
        "threads": 4,
        "user": "tester",
        "spark_conf": conf,
    }


@pytest.fixture(scope="class")
def dbt_project_yml(project_root: Any, project_config_update: Mapping[str, Any] | str) -> dict[str, Any]:
    """The project file, with the table type under test as the root default."""
    update = project_config_update
    config: dict[str, Any] = {
        "name": "test",
        "profile": "test",
        "flags": {"send_anonymous_usage_stats": False},
        **((yaml.safe_load(update) if isinstance(update, str) else update) or {}),
    }
    if TABLE_TYPE != "cow":
        for kind in ("models", "seeds", "snapshots"):
            config[kind] = {"+table_type": TABLE_TYPE, **(config.get(kind) or {})}
    write_file(yaml.safe_dump(config), project_root, "dbt_project.yml")
    return config


# The suite's fixtures are written for Postgres.
_DIALECT = (
    (r"\bNone\.|\{database\}\.", ""),
    (r"\s+default null\b", ""),
    (r'(?<![\'\w])"(\w+)"(?!\')', r"`\1`"),
    (r"`None`\.|\"None\"\.", ""),
    (r"\btimestamp without time zone\b", "timestamp"),
    (r"\b(?:text|character varying\(\d+\))(?=\s*[,)\n])", "string"),
    (r"('[^']*'|[\w.]+)::text\b", r"cast(\1 as string)"),
    (r"('[^']*'|[\w.]+)::(\w+)", r"cast(\1 as \2)"),
)


def spark_dialect(sql: str) -> str:
    """The suite's SQL as Spark understands it."""
    for pattern, replacement in _DIALECT:
        sql = re.sub(pattern, replacement, sql, flags=re.IGNORECASE)
    return sql


@pytest.fixture(scope="class")
def project_files(
    project_root: Any,
    models: Any,
    macros: Any,
    snapshots: Any,
    properties: Any,
    seeds: Any,
    tests: Any,
    analyses: Any,
    selectors_yml: Any,
    dependencies_yml: Any,
    packages_yml: Any,
    dbt_project_yml: Any,
) -> None:
    """Write the project's files, with two-part names and Spark's types."""
    written = {
        "models": {**models, **properties},
        "macros": macros,
        "snapshots": snapshots,
        "seeds": seeds,
        "tests": tests,
        "analyses": analyses,
    }
    for folder, files in written.items():
        write_project_files(project_root, folder, _spark_files(files))  # noqa: F405


def _spark_files(files: Any) -> Any:
    if isinstance(files, dict):
        return {name: _spark_files(content) for name, content in files.items()}
    if not isinstance(files, str):
        return files
    files = re.sub(r"\{\{\s*target\.database\s*\}\}\.", "", files)
    return re.sub(r"data_type: text\b", "data_type: string", files)


@pytest.fixture(scope="class")
def project(project_setup: Any, project_files: Any) -> Any:
    """The project, with its SQL put into Spark's dialect."""
    plain = project_setup.run_sql
    project_setup.run_sql = lambda sql, fetch=None: plain(spark_dialect(sql), fetch)
    return project_setup
