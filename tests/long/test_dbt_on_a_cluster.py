"""dbt on a standalone cluster of real processes: the executors get the engine by themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.cluster import environment, running_cluster
from tests.helpers.hudi_rs import rows_by_hudi_rs

pytestmark = pytest.mark.slow

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
PROJECT = {
    "name": "onacluster",
    "version": "1.0.0",
    "profile": "onacluster",
    "models": {"+options": {"hoodie.engine.small.batch.rows": "0"}},
}
ORDERS = """
{{ config(materialized='incremental', unique_key='id', partition_by='day', precombine_field='ts', table_type=TYPE) }}
{% if is_incremental() %}
select cast(id as int) as id, 2 as ts, concat('d', id % 3) as day, 'new' as name from range(90, 110)
{% else %}
select cast(id as int) as id, 1 as ts, concat('d', id % 3) as day, 'old' as name from range(0, 100)
{% endif %}
"""
ENGINES = """
def model(dbt, session):
    dbt.ref("orders_cow")  # executors have worked for it by then
    found = session.sparkContext.parallelize(range(4), 2).map(lambda _: __import__("hudi_engine").__file__)
    return session.createDataFrame([(each,) for each in sorted(set(found.collect()))], "path string")
"""
WANTED = [(each, "new" if each >= 90 else "old") for each in range(110)]


def test_models_are_built_and_tested_on_a_cluster_to_which_the_engine_is_sent(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "models").mkdir(parents=True)
    (project / "dbt_project.yml").write_text(json.dumps(PROJECT))
    for kind in ("cow", "mor"):
        text = ORDERS.replace("TYPE", repr(kind))
        (project / "models" / f"orders_{kind}.sql").write_text(text)
    (project / "models" / "engines.py").write_text(ENGINES)
    columns = [{"name": "id", "data_tests": ["unique", "not_null"]}]
    models = [{"name": f"orders_{kind}", "columns": columns} for kind in ("cow", "mor")]
    (project / "models" / "models.yml").write_text(json.dumps({"models": models}))
    with running_cluster(tmp_path, workers=1, cores=2) as master:
        (project / "profiles.yml").write_text(json.dumps(profile(master)))
        for _ in range(2):
            done = subprocess.run(
                [str(Path(sys.executable).with_name("dbt")), "build", "--threads", "2"],
                cwd=project,
                env=environment(PYSPARK_PYTHON=sys.executable),
                capture_output=True,
                text=True,
                timeout=1200,
            )
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    tables = project / "warehouse" / "lake"
    for kind in ("cow", "mor"):
        assert rows_by_hudi_rs(str(tables / f"orders_{kind}"), ["id", "name"]) == WANTED
    paths = [str(path) for (path,) in rows_by_hudi_rs(str(tables / "engines"), ["path"])]
    assert paths and all("hudi_engine.zip" in path for path in paths), paths


def profile(master: str) -> dict[str, object]:
    """Say where the cluster is, and no more than a user's profile does besides small sizes."""
    target = {
        "type": "hudi",
        "schema": "lake",
        "master": master,
        "spark_conf": {
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": QUICK,
            "spark.driver.extraJavaOptions": QUICK,
            "spark.driver.host": "127.0.0.1",
        },
    }
    return {"onacluster": {"target": "dev", "outputs": {"dev": target}}}
