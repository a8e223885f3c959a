"""From the path of a partition to the values of its columns: Apache Hudi's partition value extractors by their names.

The rules are those of the classes of ``org.apache.hudi.hive`` in Apache Hudi's module hudi-hive-sync.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from types import MappingProxyType

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.partition_path import unescape_partition_value

Extract = Callable[[str], list[str]]
_PACKAGE = "org.apache.hudi.hive."
_NONE, _HIVE_STYLE, _MULTI_PART = (
    "NonPartitionedExtractor",
    "HiveStylePartitionValueExtractor",
    "MultiPartKeysValueExtractor",
)


def _value(part: str) -> str:
    """Return what stands behind the name of a hive-style folder, of another folder all of it."""
    return part.partition("=")[2] if "=" in part else part


def _multi_part(path: str) -> list[str]:
    return [_value(part) for part in path.split("/")] if path else []


def _hive_style(path: str) -> list[str]:
    if path.count("=") != 1 or "/" in path:
        raise ValueError("it is not one folder named column=value")
    return [_value(path)]


def _day(path: str) -> list[str]:
    year, month, day = (int(_value(part)) for part in path.split("/"))
    return [datetime.date(year, month, day).isoformat()]


def _hour(path: str) -> list[str]:
    year, month, day, hour = (int(_value(part)) for part in path.split("/"))
    return [datetime.datetime(year, month, day, hour).strftime("%Y-%m-%d-%H")]  # noqa: DTZ001 - no moment, a name


_BY_NAME: Mapping[str, Extract] = MappingProxyType(
    {
        _NONE: lambda _: [],
        _MULTI_PART: _multi_part,
        _HIVE_STYLE: _hive_style,
        "SinglePartPartitionValueExtractor": lambda path: [path],
        "SlashEncodedDayPartitionValueExtractor": _day,
        "SlashEncodedHourPartitionValueExtractor": _hour,
    }
)


class PartitionValues:
    """The values of partitions, for one table.

    Args:
        extractor: Class of Apache Hudi, with its package or without; None for the one that fits the partitioning.

    Raises:
        ConfigError: There is no such class here.
    """

    def __init__(self, config: TableConfig, extractor: str | None, *, decode: bool) -> None:
        self.fields = tuple(field.name for field in config.partition_fields)
        chosen = extractor or _fitting(config)
        self._name = chosen.removeprefix(_PACKAGE)
        if self._name not in _BY_NAME:
            raise ConfigError(
                f"hoodie.datasource.hive_sync.partition_extractor_class is {chosen!r}; legal values: "
                + ", ".join(_PACKAGE + name for name in _BY_NAME)
            )
        if self._name == _NONE:
            self.fields = ()
        self._decode = decode

    def of(self, path: str) -> tuple[str, ...]:
        """Return the values of a partition, one for each field.

        Raises:
            ConfigError: The extractor does not fit the path.
        """
        try:
            values = _BY_NAME[self._name](path)
            if len(values) != len(self.fields):
                raise ValueError(f"it has {len(values)} values for {len(self.fields)} partition columns")
        except ValueError as error:
            raise ConfigError(
                f"{self._name} cannot read the partition path {path!r}: {error}; set "
                "hoodie.datasource.hive_sync.partition_extractor_class to one that fits"
            ) from error
        return tuple(map(unescape_partition_value, values) if self._decode else values)


def _fitting(config: TableConfig) -> str:
    count = len(config.partition_fields)
    if not count:
        return _NONE
    return _HIVE_STYLE if count == 1 and config.hive_style else _MULTI_PART
