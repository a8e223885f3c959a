"""``dbt-hudi shell``: dbt commands at a prompt, in a process that keeps dbt and Spark up."""

from dbt.adapters.hudi.shell.session import main

__all__ = ["main"]
