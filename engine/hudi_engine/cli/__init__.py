"""`hudi-engine TABLE COMMAND`: looking at a table, and keeping it, from a shell. Needs neither dbt nor Spark nor a JVM."""

from hudi_engine.cli.program import main

__all__ = ["main"]
