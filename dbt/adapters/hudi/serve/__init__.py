"""``dbt-hudi serve``: the warehouse for clients of HiveServer2."""

from dbt.adapters.hudi.serve.command import main

__all__ = ["main"]
