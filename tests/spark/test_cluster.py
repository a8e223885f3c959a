"""A standalone cluster of real processes: a master, a worker, and executors that were given the engine by the session."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest
from hudi_engine.merge.table_reader import read_table
from hudi_engine.storage.factory import open_storage

pytestmark = pytest.mark.slow

SPARK = Path(pyspark.__file__).parent
PROGRAM = Path(__file__).with_name("cluster_program.py")
ENGINE = Path(__file__).parents[2] / "engine"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(**more: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "PYTHONPATH"))
    }
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    return {
        **kept,
        "SPARK_HOME": str(SPARK),
        "SPARK_DAEMON_JAVA_OPTS": quick,
        "SPARK_DAEMON_MEMORY": "256m",
        **more,
    }


def daemon(log: Path, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [
        SPARK / "bin" / "spark-class",
        f"org.apache.spark.deploy.{kind}",
        "--webui-port",
        "0",
        *arguments,
    ]
    with log.open("wb") as output:
        return subprocess.Popen(
            [str(each) for each in command], env=environment(), stdout=output, stderr=subprocess.STDOUT
        )


def wait_for(log: Path, text: str) -> None:
    for _ in range(300):
        if text in log.read_text("utf-8"):
            return
        time.sleep(0.1)
    pytest.fail(f"{text!r} never came:\n{log.read_text('utf-8')}")


@pytest.fixture
def master(tmp_path):
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    processes = []
    try:
        log = tmp_path / "master.log"
        processes.append(daemon(log, "master.Master", "--host", "127.0.0.1", "--port", str(port)))
        wait_for(log, "New state: ALIVE")
        log = tmp_path / "worker.log"
        size = ["--cores", "2", "--memory", "2g", "--work-dir", str(tmp_path / "work")]
        processes.append(daemon(log, "worker.Worker", "--host", "127.0.0.1", *size, url))
        wait_for(log, "Successfully registered with master")
        yield url
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(timeout=30)


def test_a_table_lives_on_a_cluster_whose_executors_have_no_engine_of_their_own(master, tmp_path):
    tables = tmp_path / "tables"
    tables.mkdir()
    told = subprocess.run(
        [sys.executable, str(PROGRAM), master, str(tables)],
        env=environment(PYTHONPATH=str(ENGINE), PYSPARK_PYTHON=sys.executable),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert told.returncode == 0, told.stderr[-4000:]
    result = json.loads(told.stdout.splitlines()[-1])

    assert (result["updated"], result["compacted"]) == (100, True)
    assert result["counts"] == {"old": 900, "new": 100}
    assert all("hudi_engine.zip" in path for path in result["engines"]), result["engines"]
    assert read_table(open_storage(str(tables / "orders"))).num_rows == 1000
