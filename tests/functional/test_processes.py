"""dbt as users run it: one process a command, found again by the next, ended by Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers.interrupts import take_interrupts
from tests.helpers.runtime import runtime_folder, servers

pytestmark = pytest.mark.slow

SPARK_CONF = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
ORDERS = """
{{ config(materialized='incremental', unique_key='id') }}
select id, id * 2 as twice, timestamp '2020-01-01 00:00:00' as at from range(3)
"""
OUTSIDE = "{{ config(materialized='table', location_root=var('outside', 'elsewhere')) }} select 1 as id"
SUMMARY = "{{ config(materialized='view') }} select count(*) as n, max(at) as at from {{ ref('orders') }}, {{ ref('outside') }}"
SLOW = """
{{ config(materialized='incremental', unique_key='id') }}
select id, {% if var('slow', false) %} java_method('java.lang.Thread', 'sleep', 100000 + id) {% else %} 'x' {% endif %} as v
from range(2)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("dbt project")
    target = {"type": "hudi", "schema": "analytics", "threads": 4, "spark_conf": SPARK_CONF}
    profile = {"shop": {"target": "dev", "outputs": {"dev": target}}}
    (root / "profiles.yml").write_text(yaml.safe_dump(profile), "utf-8")
    flags = {"send_anonymous_usage_stats": False}
    project = {"name": "shop", "version": "1.0", "profile": "shop", "flags": flags}
    (root / "dbt_project.yml").write_text(yaml.safe_dump(project), "utf-8")
    models = root / "models"
    models.mkdir()
    for name, sql in {"orders": ORDERS, "outside": OUTSIDE, "summary": SUMMARY, "slow": SLOW}.items():
        (models / f"{name}.sql").write_text(sql, "utf-8")
    return root


def start(folder: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("DBT_", "PYSPARK_"))
    }
    program = "import sys; from dbt.cli.main import cli; sys.argv[0] = 'dbt'; cli()"
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments, "--profiles-dir", str(folder)],
        cwd=folder,
        env={**environment, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=take_interrupts,
    )


def dbt(folder: Path, *arguments: str, **variables: str) -> str:
    process = start(folder, *arguments, **variables)
    output, _ = process.communicate(timeout=900)
    assert process.returncode == 0, output
    return output


def test_a_run_prints_no_line_of_spark_and_makes_tables_where_their_models_say(folder: Path) -> None:
    first = dbt(folder, "run", TZ="Asia/Tokyo")
    assert "+3 rows, 1 file" in first
    assert not [line for line in first.splitlines() if " WARN " in line or "[Stage" in line], first
    names = sorted(p.name for p in (folder / "warehouse" / "analytics").iterdir() if p.name[0] != ".")
    assert names == ["orders", "outside.table.json", "slow", "summary.view.json"]
    assert (folder / "elsewhere" / "outside" / ".hoodie" / "hoodie.properties").exists()


def test_interrupt_ends_a_run_and_two_processes_go_on_in_the_warehouse(folder: Path) -> None:
    process = start(folder, "run", "-s", "slow", "--vars", "{slow: true}")
    timeline = folder / "warehouse" / "analytics" / "slow" / ".hoodie"
    deadline = time.monotonic() + 600
    log = folder / "logs" / "dbt.log"
    while "java_method" not in _tail(log) and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    # The query would sleep for 100 s.
    output, _ = process.communicate(timeout=95)
    assert time.monotonic() - started < 80
    assert process.returncode != 0, output
    # One model is run again by a process beside another's: each does its own, and nothing of the ended run is left.
    both: list[Any] = [start(folder, "run", "-s", *models) for models in (("orders", "slow"), ("outside",))]
    outputs = [process.communicate(timeout=900)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert "UPSERT" in outputs[0] and "~3 rows" in outputs[0] and outputs[0].count("~2 rows") == 1
    assert not [
        path
        for path in timeline.iterdir()
        if path.name.endswith((".inflight", ".requested")) and not _done(path)
    ]


def test_interrupt_while_spark_starts_ends_the_run(folder: Path) -> None:
    process = start(folder, "run", "-s", "slow", "--vars", "{slow: true}")
    deadline = time.monotonic() + 600
    log = folder / "logs" / "dbt.log"
    while (
        "java_method" not in _tail(log) and "tarting Spark" not in _tail(log) and time.monotonic() < deadline
    ):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=80)
    assert process.returncode != 0, output


def _tail(path: Path) -> str:
    return (
        path.read_text("utf-8", errors="replace")[-20000:].split("Running with dbt")[-1]
        if path.exists()
        else ""
    )


def _done(path: Path) -> bool:
    """Hudi keeps the requested and inflight files of a completed instant; the completed one stands beside them."""
    instant, action = path.name.split(".")[:2]
    action = "commit" if action == "inflight" else action
    return any(
        (path.parent / f"{instant}.{name}").exists() for name in {action, "commit", "rollback", "clean"}
    )


@pytest.mark.long
def test_a_shell_in_another_time_zone_reads_the_same_starts_spark_anew_and_says_that_it_died(
    folder: Path,
) -> None:
    summary = "select n, at from {{ ref('summary') }}"
    dies = "select java_method('java.lang.System', 'exit', 9)"
    lines = f'show --inline "{summary}"\nrestart\nshow --inline "{dies}"\nrestart\n'
    with runtime_folder() as runtime:
        done = subprocess.run(
            [sys.executable, "-m", "dbt.adapters.hudi.shell", "shell", "--profiles-dir", str(folder)],
            cwd=folder,
            input=lines,
            env={**os.environ, "TZ": "America/New_York", "XDG_RUNTIME_DIR": str(runtime)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
            check=False,
        )
        deadline = time.monotonic() + 600
        while servers(runtime):
            assert time.monotonic() < deadline, "the server of a shell ends with it"
            time.sleep(0.2)
    answers = done.stdout.split("dbt-hudi> ")[1:]
    assert "| 3 | 2020-01-01 00:00:00 |" in answers[0] and "-- done" in answers[0], done.stdout
    assert "Spark is ended" in answers[1]
    assert "Spark started in" in answers[2] and "-- failed" in answers[2], done.stdout
    assert "Spark's Java process ended in the middle of the work" in answers[2], done.stdout
    assert "no Spark is idle" in answers[3] and "Traceback" not in done.stdout, done.stdout
    assert done.returncode == 1


_DIES_BEFORE_IT_TELLS = """
import os, signal
from dbt.adapters.hudi.spark.errors import dbt_errors
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
try:
    spark._jvm.java.lang.Class.forName("nowhere.None")
except Py4JError as error:
    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
    SparkContext._gateway.proc.wait()
    with dbt_errors("a query"):
        raise error
"""

_DIES_WHILE_ROWS_ARE_FETCHED = """
import os, signal, threading
from dbt.adapters.hudi.spark.errors import dbt_errors
from hudi_engine.spark.read.collect import to_arrow
from pyspark import SparkContext
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.sql("select java_method('java.lang.Thread', 'sleep', id + 60000L) as slept from range(2)")
threading.Timer(3, os.kill, (SparkContext._gateway.proc.pid, signal.SIGKILL)).start()
with dbt_errors("a query"):
    to_arrow(rows)
"""


@pytest.mark.parametrize("program", [_DIES_BEFORE_IT_TELLS, _DIES_WHILE_ROWS_ARE_FETCHED])
def test_an_error_that_java_cannot_tell_any_more_names_the_death_without_a_stack_of_py4j(
    program: str,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Spark's Java process ended in the middle of the work (killed by signal 9)" in done.stdout
    assert "sending command" not in done.stdout, done.stdout
