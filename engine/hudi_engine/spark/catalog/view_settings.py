"""Settings that a view was made under: Spark keeps them with the view, and its query goes by them in every session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from hudi_engine.spark.jvm.session import own_settings

_KEPT_AS = "view.sqlConfig."
# Name code to load, where to load it from, or put environment variables into a query; a file of a warehouse may not say those.
_NEVER = ("spark.sql.catalog", "spark.sql.maven.", "spark.sql.variable.substitute")

# Spark keeps none of these with a view, for they do not decide what its query means.
_NOT_KEPT = (
    "spark.sql.adaptive.",
    "spark.sql.codegen.",
    "spark.sql.execution.",
    "spark.sql.hive.convert",
    "spark.sql.optimizer.",
    "spark.sql.shuffle.",
    "spark.sql.view.maxNestedViewDepth",
)


def settings_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that Spark keeps among the properties of a view."""
    return {
        key.removeprefix(_KEPT_AS): value for key, value in properties.items() if key.startswith(_KEPT_AS)
    }


@contextmanager
def made_under(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Give a session the settings that a view is to be made under, and no others, for the time of this block.

    Only what is set for a query at any time is taken of them, for they come from a file of the warehouse; a setting that this
    version of Spark does not know is left out. What else the session has set would be kept with the view, so it is unset
    meanwhile. All threads of a session share its settings: it is to be one of its own.

    Args:
        settings: Those of the maker's session; where there are none, as in files of earlier versions, nothing changes.
    """
    before: dict[str, str | None] = {}
    try:
        for key in _others_set(spark, settings) if settings else ():
            before[key] = spark.conf.get(key)
            spark.conf.unset(key)
        for key, value in settings.items():
            now = spark.conf.get(key, None)
            if now != value and _may_be_set(spark, key):
                before[key] = now
                spark.conf.set(key, value)
        yield
    finally:
        for key, usual in before.items():
            if usual is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, usual)


def _others_set(spark: SparkSession, settings: Mapping[str, str]) -> list[str]:
    """Return what else the session has set of what Spark keeps with a view and may be set at any time."""
    others = own_settings(spark) - settings.keys()
    return [key for key in others if not key.startswith(_NOT_KEPT) and _may_be_set(spark, key)]


def _may_be_set(spark: SparkSession, key: str) -> bool:
    return key.startswith("spark.sql.") and not key.startswith(_NEVER) and spark.conf.isModifiable(key)
