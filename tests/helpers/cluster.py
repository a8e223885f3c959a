"""A standalone Spark cluster of real processes on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

_SPARK = Path(pyspark.__file__).parent
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Executors may be killed as often as a test likes.
_LENIENT = "-Dspark.deploy.maxExecutorRetries=-1"


def environment(**more: str) -> dict[str, str]:
    """Return the variables of this process for one of the cluster, without what leads to this one's Spark."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "PYTHONPATH"))
    }
    settings = {
        "SPARK_HOME": str(_SPARK),
        "SPARK_DAEMON_JAVA_OPTS": f"{_QUICK} {_LENIENT}",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    return {**kept, **settings, **more}


@contextmanager
def running_cluster(folder: Path, workers: int = 1, cores: int = 2) -> Iterator[str]:
    """Run a master and workers; gives the master's URL.

    Args:
        folder: For logs and the workers' folders.
        workers: How many.
        cores: Of each worker.
    """
    url = f"spark://127.0.0.1:{_free_port()}"
    processes = []
    try:
        log = folder / "master.log"
        processes.append(
            _daemon(log, "master.Master", "--host", "127.0.0.1", "--port", url.rpartition(":")[2])
        )
        _wait_for(log, "New state: ALIVE")
        logs = [folder / f"worker{number}.log" for number in range(workers)]
        for log in logs:
            size = ("--cores", str(cores), "--memory", "2g", "--work-dir", str(folder / log.stem))
            processes.append(_daemon(log, "worker.Worker", "--host", "127.0.0.1", *size, url))
        for log in logs:
            _wait_for(log, "Successfully registered with master")
        yield url
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(timeout=30)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _daemon(log: Path, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
    program = [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", "--webui-port", "0"]
    with log.open("wb") as output:
        return subprocess.Popen(
            [*program, *arguments], env=environment(), stdout=output, stderr=subprocess.STDOUT
        )


def _wait_for(log: Path, text: str) -> None:
    for _ in range(300):
        if text in log.read_text("utf-8"):
            return
        time.sleep(0.1)
    raise AssertionError(f"{text!r} never came:\n{log.read_text('utf-8')}")
