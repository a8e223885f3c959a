"""The version of dbt-hudi, which is that of the engine; dbt looks for it here."""

from hudi_engine import __version__ as version

__all__ = ["version"]
