"""One self-contained HTML page about a table, from its files alone: no Spark, no JVM, no network."""

from hudi_engine.table.report.page import Facts, Report, default_name, document, gather, page, write_report

__all__ = ["Facts", "Report", "default_name", "document", "gather", "page", "write_report"]
