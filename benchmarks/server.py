"""Seconds of clients of `dbt-hudi serve`, and of Spark's own Thrift server beside it: a small answer, a million rows.

python3 dev.py run python -m benchmarks.server [--rows 1000000]

PyHive asks both, each in a process of its own on this machine, one after the other. A first run of each question is not counted.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyspark
from pyhive import hive

_WITHIN_S = 180.0
_SMALL, _LARGE = 51, 3
_ROWS = """
select id, cast(id as string) s, id * 1.5D d, cast(id % 7 as int) i, date'2026-01-01' + cast(id % 100 as int) dt,
    timestamp'2026-01-01' + make_interval(0, 0, 0, 0, 0, 0, id) ts, cast(id as decimal(12, 2)) n, id % 2 = 0 b
from range({rows})
"""
_SPARK = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


def main() -> int:
    """Command line; prints a line a question and server, and the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="server-") as folder:
        for name, command in _servers(Path(folder)).items():
            port = _free_port()
            with _running([each.format(port=port) for each in command], Path(folder), port):
                found[name] = _measured(port, rows)
    for what, seconds in found["dbt-hudi serve"].items():
        theirs = found["Spark's Thrift server"][what]
        print(
            f"{what:<44} {seconds * 1000:>9.1f} ms   Spark {theirs * 1000:>9.1f} ms   {seconds / theirs:>5.2f} x"
        )
    return 0


def _servers(folder: Path) -> dict[str, list[str]]:
    ours = [str(Path(sys.executable).parent / "dbt-hudi"), "serve", "--port", "{port}"]
    spark = [
        *(str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--class", _SPARK),
        *("--master", "local[*]", "--conf", f"spark.sql.warehouse.dir={folder}/spark", "spark-internal"),
        *(
            "--hiveconf",
            "hive.server2.thrift.port={port}",
            "--hiveconf",
            "hive.server2.authentication=NOSASL",
        ),
        *("--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1"),
    ]
    return {"dbt-hudi serve": ours, "Spark's Thrift server": spark}


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        return int(found.getsockname()[1])


@contextmanager
def _running(command: list[str], folder: Path, port: int) -> Iterator[None]:
    """Run a server until the end of the block."""
    with (folder / f"{port}.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        until = time.monotonic() + _WITHIN_S
        while True:
            try:
                _connect(port).close()
                break
            except Exception:
                if process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.5)
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def _connect(port: int) -> hive.Connection:
    return hive.connect("127.0.0.1", port, auth="NOSASL")


def _measured(port: int, rows: int) -> dict[str, float]:
    """Return the median seconds of each question."""
    with closing(_connect(port)) as connection:
        cursor = connection.cursor()

        def asked(text: str) -> float:
            begun = time.perf_counter()
            cursor.execute(text)
            found = len(cursor.fetchall())
            assert found == (1 if text == "select 1" else rows)
            return time.perf_counter() - begun

        texts = {
            "first row of select 1": "select 1",
            f"{rows:,} rows of eight columns": _ROWS.format(rows=rows),
        }
        counts = dict(zip(texts, (_SMALL, _LARGE)))
        return {
            what: statistics.median([asked(text) for _ in range(counts[what] + 1)][1:])
            for what, text in texts.items()
        }


if __name__ == "__main__":
    raise SystemExit(main())
