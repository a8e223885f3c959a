"""The command ``dbt-hudi``."""

from dbt.adapters.hudi.shell.client import main

__all__ = ["main"]
