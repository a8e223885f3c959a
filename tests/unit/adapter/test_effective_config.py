"""`dbt-hudi show-config` names the place that each setting of a model comes from; there is no Java that it could start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FILES = {
    "dbt_project.yml": """
name: shop
profile: shop
flags: {send_anonymous_usage_stats: false}
models: {shop: {+table_type: mor, marts: {+clean: {retain_commits: 3}}}}
""",
    "profiles.yml": """
shop:
  target: dev
  outputs:
    dev: {type: hudi, schema: analytics, options: {hoodie.parquet.compression.codec: zstd, hoodie.parquet.max.file.size: 1000}}
""",
    "models/marts/orders.sql": """
{{ config(materialized='incremental', unique_key='id', hudi_options={'hoodie.parquet.max.file.size': 2000}) }}
select 1 as id, 2 as at
""",
    "models/marts/orders.yml": "models: [{name: orders, config: {precombine_field: at, wap: true}}]",
}


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dbt.adapters.hudi.shell", *words],
        cwd=folder,
        env={**os.environ, "JAVA_HOME": str(folder / "no-java")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text(text)
    return folder


def test_each_setting_has_the_place_it_comes_from(project: Path) -> None:
    done = run(project, "show-config", "orders", "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    answer = json.loads(done.stdout)
    found = {each["setting"]: (each["value"], each["from"]) for each in answer["rows"]}
    assert answer["node"] == "model.shop.orders" and answer["table"] == "analytics.orders"
    model, properties = "models/marts/orders.sql", "models/marts/orders.yml"
    assert found["unique_key"] == ("id", model)
    assert found["precombine_field"] == ("at", properties) and found["wap"] == ("True", properties)
    assert found["table_type"] == ("mor", "dbt_project.yml")
    assert found["hoodie.parquet.compression.codec"] == ("zstd", "options of the profile")
    assert found["hoodie.parquet.max.file.size"] == ("2000", model)
    assert found["hoodie.clean.commits.retained"] == ("3", "compaction, clean, archive, clustering")
    assert found["hoodie.combine.before.insert"] == ("true", "unique_key and precombine_field")
    assert "hoodie.engine.receipts" not in found
    assert "hoodie.engine.receipts" in run(project, "show-config", "orders", "--all").stdout


def test_a_name_that_nothing_has_is_an_error(project: Path) -> None:
    done = run(project, "show-config", "ordres")
    assert done.returncode == 2 and "no model, seed or snapshot is selected by ordres" in done.stderr
