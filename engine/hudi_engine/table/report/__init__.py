"""One self-contained HTML page about a table, from its files alone: no Spark, no JVM, no network."""

from hudi_engine.table.report.facts import Facts, gather
from hudi_engine.table.report.page import page
from hudi_engine.table.report.write import Report, default_name, write_report

__all__ = ["Facts", "Report", "default_name", "gather", "page", "write_report"]
