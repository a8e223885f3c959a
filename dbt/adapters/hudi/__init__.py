"""dbt-hudi: dbt models as Apache Hudi tables, on PySpark alone."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbt.adapters.hudi.plugin import (
        HudiAdapter,
        HudiColumn,
        HudiConnectionManager,
        HudiCredentials,
        HudiRelation,
        Plugin,
    )

__all__ = ["HudiAdapter", "HudiColumn", "HudiConnectionManager", "HudiCredentials", "HudiRelation", "Plugin"]


def __getattr__(name: str) -> object:
    """Load dbt and Spark when dbt asks for the plug-in: a command that hands its work to a server needs neither."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("dbt.adapters.hudi.plugin"), name)
