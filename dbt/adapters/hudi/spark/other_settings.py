"""What a run is told that asks for another Spark than the one an earlier run of the same process has started."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from dbt.adapters.hudi.credentials import ANSI
from dbt.adapters.hudi.logs import logger

# By what a profile asks for a setting that it does not name.
_PROFILE_NAMES: Mapping[str, str] = {
    "spark.sql.warehouse.dir": "location_root",
    "spark.sql.catalogImplementation": "catalog",
    "spark.app.name": "app_name",
    "spark.master": "master",
    ANSI: "ansi",
}
# Settings of Hadoop that say which names or files there are; credentials are renewed, and the rest is of speed.
_OF_PLACES = re.compile(
    r"spark\.sql\.catalogImplementation|spark\.hadoop\.((javax\.jdo|hive|datanucleus)\..*|fs\.(defaultFS|.*endpoint))"
)
# A run says the folders of its schemas itself, and the other is a name for people.
_HARMLESS = ("spark.sql.warehouse.dir", "spark.app.name")
# What Spark does not know is read where it is used.
_READ_LATER = ("spark.sql.catalog.", "hoodie.")
_NEXT_STEP = (
    "run this in a process of its own, or stop that Spark before, SparkSession.builder.getOrCreate().stop(), and the next "
    "command starts another"
)

_said: set[str] = set()


def forget_what_was_said() -> None:
    """Begin a command, which is told again."""
    _said.clear()


def names_in_profile(keys: Iterable[str]) -> str:
    """Return settings by what a profile asks for them."""
    return ", ".join(_PROFILE_NAMES.get(key, key) for key in keys)


def tell_of_other_settings(other: Sequence[str], wanted: Mapping[str, str], spark: SparkSession) -> None:
    """Refuse settings by which names and files are other ones, and say once a command which of the rest do not count.

    Args:
        other: Settings that are not those which the Spark was started with.

    Raises:
        DbtRuntimeError: when names or files would be other ones.
    """
    refused = [key for key in other if _OF_PLACES.fullmatch(key)]
    if refused:
        raise DbtRuntimeError(
            "Spark was started in this process with other settings than the profile asks for now, by which it would find other "
            f"names or files: {names_in_profile(refused)}. They count when Spark starts: {_NEXT_STEP}"
        )
    kept = [key for key in other if key not in _HARMLESS and not (key in wanted and _can_change(spark, key))]
    named = names_in_profile(kept)
    if kept and named not in _said:
        _said.add(named)
        logger.warning(
            "Spark was started in this process with other settings than the profile asks for now, and keeps its own: {}. "
            "Where they matter, {}",
            named,
            _NEXT_STEP,
        )


def _can_change(spark: SparkSession, key: str) -> bool:
    return key.startswith(_READ_LATER) or bool(spark.conf.isModifiable(key))
