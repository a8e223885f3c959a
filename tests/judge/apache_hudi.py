"""Apache Hudi itself, in a process of its own: one long-lived Spark session per Hudi version.

`python3 dev.py setup all` brings in PySpark 3.5 and the jars and describes them in
``.cache/apache-hudi.json``; without that file Apache Hudi is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
DESCRIPTION = ROOT / ".cache" / "apache-hudi.json"
WORKER = Path(__file__).with_name("apache_hudi_worker.py")
VERSIONS = ("0.15.0", "1.2.0")
SHORT_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# What keeps Hudi 1.x from upgrading a version 6 table when it writes to it, and both from adding a metadata
# table.
KEEP_V6 = {
    "hoodie.metadata.enable": "false",
    "hoodie.write.table.version": "6",
    "hoodie.write.auto.upgrade": "false",
}


class ApacheHudiError(Exception):
    """Apache Hudi refused or failed; the message is its own."""


def available(version: str = VERSIONS[0]) -> bool:
    """Whether Apache Hudi of a version has been set up in this checkout."""
    return DESCRIPTION.exists() and version in json.loads(DESCRIPTION.read_text())["jars"]


class ApacheHudi:
    """A running Apache Hudi of one version.

    Args:
        version: ``0.15.0``, ``1.2.0``, or ``1.0.2`` where it could be fetched.
        timezone: Zone of its process; instants are in UTC, so anything else is for tests of that.
        java: Options of its Java; those of a short life without any.
        metastore: Folder of a Hive metastore (Derby) that is its catalog; None for names of its own.
    """

    def __init__(
        self, version: str, timezone: str = "UTC", java: str = SHORT_LIFE, metastore: Path | None = None
    ) -> None:
        self.version = version
        described = json.loads(DESCRIPTION.read_text())
        described |= described.get("releases", {}).get(version, {})
        self._folder = tempfile.TemporaryDirectory(prefix="apache-hudi-")
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))
        }
        environment.pop("PYTHONPATH", None)
        environment |= {
            "JAVA_HOME": described["java_home"],
            "TZ": timezone,
            "PYSPARK_PYTHON": described["python"],
            **described.get("variables", {}),
        }
        self._errors = Path(self._folder.name, "stderr.txt").open("w+b")
        self._process = subprocess.Popen(
            [described["python"], str(WORKER), described["jars"][version], self._folder.name, java,
             str(metastore or "")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=environment,
            cwd=self._folder.name, text=True,
        )  # fmt: skip

    def read(
        self,
        path: str | Path,
        query: str = "snapshot",
        *,
        as_of: str | None = None,
        begin: str | None = None,
        end: str | None = None,
        columns: Sequence[str] | None = None,
        options: Mapping[str, str] | None = None,
        where: str | None = None,
    ) -> list[dict[str, Any]]:
        """Read a table.

        Args:
            path: Base folder of the table.
            query: ``snapshot``, ``read_optimized``, ``incremental`` or ``cdc``.
            as_of: Instant of a time-travel snapshot.
            begin: First instant of an incremental or change data query, exclusive.
            end: Last instant of an incremental query, inclusive.
            columns: Columns to give; all without it.
            options: More read options in Hudi's keys.
            where: Condition of the rows; all without it.

        Returns:
            Plain rows, Hudi's meta columns among them.
        """
        given = _query(query, as_of, begin, end)
        rows = self._ask(
            "read",
            path=str(Path(path).resolve()),
            options={**given, **(options or {})},
            columns=columns,
            where=where,
        )
        assert isinstance(rows, list)
        return rows

    def drain(self, path: str | Path, query: str, *, begin: str | None = None) -> None:
        """Read all rows of a query and let them go, which is what is timed; see ``read``."""
        self._ask("drain", path=str(Path(path).resolve()), options=_query(query, None, begin, None))

    def read_arrow(self, path: str | Path) -> pa.Table:
        """Read a snapshot as an Arrow table, for tables too large for plain rows."""
        with tempfile.TemporaryDirectory(dir=self._folder.name) as folder:
            self._ask("export", path=str(Path(path).resolve()), folder=f"{folder}/rows")
            return pq.read_table(f"{folder}/rows")

    def write(
        self,
        path: str | Path,
        rows: pa.Table,
        options: Mapping[str, str],
        *,
        operation: str = "upsert",
        mode: str = "append",
        keep_v6: bool = True,
    ) -> None:
        """Write to a table.

        Args:
            path: Base folder of the table.
            rows: The rows.
            options: Options in Hudi's keys: table name, key, ordering and partition fields, table type.
            operation: Hudi's word for the operation.
            mode: Spark's save mode; ``overwrite`` makes the table anew.
            keep_v6: Keep or make a version 6 table without a metadata table; else Hudi's defaults.
        """
        with tempfile.NamedTemporaryFile(dir=self._folder.name, suffix=".parquet", delete=False) as file:
            pq.write_table(rows, file.name)
        chosen = {**(KEEP_V6 if keep_v6 else {}), "hoodie.datasource.write.operation": operation, **options}
        self._ask("write", path=str(Path(path).resolve()), file=file.name, options=chosen, mode=mode)

    def upsert(
        self, path: str | Path, rows: pa.Table, options: Mapping[str, str], *, keep_v6: bool = True
    ) -> None:
        """Upsert rows; see ``write``."""
        self.write(path, rows, options, keep_v6=keep_v6)

    def delete(
        self, path: str | Path, rows: pa.Table, options: Mapping[str, str], *, keep_v6: bool = True
    ) -> None:
        """Delete the keys of some rows; see ``write``."""
        self.write(path, rows, options, operation="delete", keep_v6=keep_v6)

    def sql(self, *statements: str) -> list[dict[str, Any]]:
        """Run SQL statements in order and give the plain rows of the last one."""
        rows = self._ask("sql", statements=list(statements))
        assert isinstance(rows, list)
        return rows

    def call(
        self, path: str | Path, procedure: str, *, keep_v6: bool = True, **arguments: str | int
    ) -> list[dict[str, Any]]:
        """Run one of Hudi's SQL procedures on the table in a folder.

        Args:
            path: Base folder of the table.
            procedure: Its name, for example ``run_compaction``.
            keep_v6: Do not upgrade a version 6 table, and keep it without a metadata table.
            arguments: Its arguments; ``table`` is given already, or ``path`` for the compaction procedures.
        """
        name = f"judged_{abs(hash(str(path)))}"
        base = Path(path).resolve()
        which = {"path": str(base)} if "compaction" in procedure else {"table": name}
        words = ", ".join(
            f"{key} => {value if isinstance(value, int) else repr(str(value))}"
            for key, value in {**which, **arguments}.items()
        )
        settings = [f"SET {key}={value}" if keep_v6 else f"RESET {key}" for key, value in KEEP_V6.items()]
        return self.sql(
            *settings, f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} USING hudi LOCATION '{base}'",
            f"CALL {procedure}({words})",
        )  # fmt: skip

    def close(self) -> None:
        """End the process."""
        if self._process.poll() is None and self._process.stdin is not None:
            self._process.stdin.close()
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()
        self._folder.cleanup()

    def _ask(self, action: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"action": action, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._errors.seek(0)
            raise ApacheHudiError(
                f"Apache Hudi {self.version} ended: {self._errors.read()[-4000:].decode(errors='replace')}"
            )
        answer = json.loads(line)
        if "error" in answer:
            raise ApacheHudiError(f"Apache Hudi {self.version}: {answer['error']}")
        return answer["rows"]


def _query(query: str, as_of: str | None, begin: str | None, end: str | None) -> dict[str, str]:
    """Give the read options of a query."""
    given: dict[str, str] = {}
    if query in ("read_optimized", "incremental"):
        given["hoodie.datasource.query.type"] = query
    if query == "cdc":
        given["hoodie.datasource.query.type"] = "incremental"
        given["hoodie.datasource.query.incremental.format"] = "cdc"
    if as_of is not None:
        given["as.of.instant"] = as_of
    if begin is not None:
        given["hoodie.datasource.read.begin.instanttime"] = begin
    if end is not None:
        given["hoodie.datasource.read.end.instanttime"] = end
    return given
