"""``dbt-hudi shell``: dbt commands at a prompt, in a process that keeps dbt and Spark up."""

from dbt.adapters.hudi.shell.program import main

__all__ = ["main"]
