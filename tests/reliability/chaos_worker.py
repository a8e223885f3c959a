"""One process of the chaos row: ``python -m tests.reliability.chaos_worker TABLE LEDGER NAME COUNT SEED``.

It shares the Spark of the process that started it. Before each operation it notes what it is about to do, afterwards
what came of it; keys are its own, so that the notes say what a table may hold.
"""

from __future__ import annotations

import json
import logging
import os
import random
import sys
import time
from typing import Any

from hudi_engine import HudiTable
from hudi_engine.errors import HudiError

from tests.reliability.real_table import batch

OPTIONS = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.write.lock.wait_time_ms": "120000",
    "hoodie.write.num.retries.on.conflict.failures": "5",
    "hoodie.client.heartbeat.interval_in_ms": "1000",
    "hoodie.client.heartbeat.tolerable.misses": "2",
}


def shared_spark() -> Any:
    """Return a session on the Java process whose port and secret the environment names."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = launch_gateway()
    jvm: Any = gateway.jvm
    inner = jvm.org.apache.spark.SparkContext.getOrCreate()
    java_context = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(inner)
    context = SparkContext(gateway=gateway, jsc=java_context, conf=_conf(jvm, java_context))
    return SparkSession(context, jvm.org.apache.spark.sql.classic.SparkSession.builder().getOrCreate())


def _conf(jvm: Any, context: Any) -> Any:
    from pyspark import SparkConf

    return SparkConf(_jvm=jvm, _jconf=context.getConf())


class Worker:
    """Does operations on keys of its own, one after the other.

    Args:
        table: The table.
        ledger: File for the notes.
        name: Start of its keys.
        seed: Of its chance.
    """

    def __init__(self, table: HudiTable, ledger: str, name: str, seed: int) -> None:
        self._table, self._ledger, self._name = table, ledger, name
        self._chance = random.Random(seed)
        self._keys: list[str] = []
        self._part = f"p{seed % 4}"

    def play(self, count: int, first: int) -> None:
        """Do operations until the ledger has so many."""
        for number in range(first, count):
            kind = self._chance.choice(("insert", "insert", "insert", "upsert", "delete", "service"))
            if kind == "service" or (kind != "insert" and not self._keys):
                self._service()
                self._note("done", number, "service", [], True)
            else:
                self._write(kind, number)

    def _write(self, kind: str, number: int) -> None:
        text = f"{self._name}.{number}"
        keys = (
            [f"{text}.{each}" for each in range(2)] if kind == "insert" else [self._chance.choice(self._keys)]
        )
        rows = [(self._part, key, number, text) for key in keys]
        self._note("begin", number, kind, rows)
        try:
            getattr(self._table, kind)(batch(rows))
        except HudiError as error:
            self._note("done", number, kind, rows, False, type(error).__name__)
            return
        self._note("done", number, kind, rows, True)
        self._keys = [key for key in self._keys if kind != "delete" or key not in keys]
        self._keys += keys if kind == "insert" else []

    def _service(self) -> None:
        services = [
            lambda: self._table.clean(6),
            lambda: self._table.archive(12, 16, options={"hoodie.clean.commits.retained": "6"}),
        ]
        if self._table.config.table_type.value == "MERGE_ON_READ":
            services.append(self._table.compact)
        try:
            self._chance.choice(services)()
        except HudiError as error:
            logging.getLogger(__name__).info("%s", error)

    def _note(self, what: str, number: int, kind: str, rows: Any, ok: bool = False, why: str = "") -> None:
        entry = {
            "what": what,
            "at": time.time(),
            "number": number,
            "kind": kind,
            "rows": rows,
            "ok": ok,
            "why": why,
        }
        with open(self._ledger, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())


def main() -> None:
    """Parse the command line and play."""
    path, ledger, name, count, first, seed = sys.argv[1:]
    logging.disable(logging.CRITICAL)
    table = HudiTable.open(shared_spark(), path, options=OPTIONS)
    Worker(table, ledger, f"{name}.{first}", int(seed)).play(int(count), int(first))
    os._exit(0)  # the Java process is not its own


if __name__ == "__main__":
    main()
