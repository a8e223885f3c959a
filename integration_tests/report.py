"""What the demo prints about the tables and of the data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hudi_engine import HudiTable
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.table.report import write_report
from hudi_engine.table.report.markup import size as in_bytes
from hudi_engine.table.state import TableState
from hudi_engine.table.write.result import summarise

_NEWEST = 8
_WRITES = ("commit", "deltacommit", "replacecommit")


def counts(name: str, response: Mapping[str, Any]) -> str:
    """Give one line about a model's run, from dbt's adapter_response."""
    rows = " ".join(
        f"{int(response.get(field) or 0):>8,} {word}"
        for field, word in (
            ("rows_inserted", "inserted"),
            ("rows_updated", "updated"),
            ("rows_deleted", "deleted"),
        )
    )
    files = int(response.get("files_written") or 0)
    size = in_bytes(int(response.get("bytes_written") or 0))
    return f"{name:18}{rows}  {files:>3} {'file ' if files == 1 else 'files'} {size:>9}"


def timelines(spark: Any, tables: Mapping[str, Path]) -> None:
    """Print the newest instants of some tables, and what each did as its own metadata tells."""
    for name, path in tables.items():
        instants = HudiTable.open(spark, str(path)).timeline()
        storage = open_storage(str(path))
        timeline = Timeline.load(storage, TableConfig.load(storage))
        print(f"{name}: {len(instants)} instants on the active timeline, the newest:")
        for instant in instants[-_NEWEST:]:
            effect = ""
            if instant.action in _WRITES and instant.state.name == "COMPLETED":
                metadata = timeline.commit_metadata(instant)
                done = summarise(instant.requested_time, metadata, "metadata")
                effect = counts(metadata.operation_type.lower(), vars(done))
            print(f"  {instant.requested_time}  {instant.action:12}{effect}")


def page(table: Path, folder: Path) -> Path:
    """Write the page about a table into a folder; returns where it is."""
    storage = open_storage(str(table))
    folder.mkdir(exist_ok=True)
    written = write_report(
        TableState.load(storage), resolve_options(None), folder / f"{table.name}.html", count_rows=True
    )
    return written.path


def answers(spark: Any, schema: str) -> None:
    """Print the answers to the questions of the demo."""
    spark.sql(f"select * from {schema}.airline_scorecard order by avg_minutes_made_up desc limit 5").show(
        truncate=False
    )
    spark.sql(f"select * from {schema}.worst_airport_months").show(truncate=False)
