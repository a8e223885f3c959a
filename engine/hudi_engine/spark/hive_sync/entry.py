"""What the entries of a table say, as Apache Hudi's HiveSyncTool writes them.

Input formats, serde and properties are those of hudi-hive-sync and of ``SparkDataSourceTableUtils`` in hudi-sync-common.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql import types as T

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.sync_options import SyncOptions
from hudi_engine.format.config.enums import SyncStrategy, TableType
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.config.trusted_rules import imported_function
from hudi_engine.format.keygen.partition_path import unescape_partition_value
from hudi_engine.format.schema.meta_fields import with_meta_columns
from hudi_engine.spark.catalog.entry import READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX
from hudi_engine.spark.schema.spark_types import arrow_to_spark
from hudi_engine.table.state import TableState

INPUT_FORMAT = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
REALTIME_INPUT_FORMAT = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
OUTPUT_FORMAT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
LAST_COMMIT = "last_commit_time_sync"


Extract = Callable[[str], list[str]]
_PACKAGE = "org.apache.hudi.hive."
_NONE, _HIVE_STYLE, _MULTI_PART = (
    "NonPartitionedExtractor",
    "HiveStylePartitionValueExtractor",
    "MultiPartKeysValueExtractor",
)


@dataclass(frozen=True)
class HiveEntry:
    """One table of the metastore."""

    database: str
    name: str
    location: str  # URI of the table's folder, not percent-encoded
    columns: Sequence[tuple[str, str]]
    keys: Sequence[tuple[str, str]]
    input_format: str
    serde_properties: Mapping[str, str]
    properties: Mapping[str, str]

    @property
    def label(self) -> str:
        """The name for messages."""
        return f"{self.database}.{self.name}"


def entries_of(
    state: TableState, schema: pa.Schema, options: Options, keys: Sequence[str], spark_version: str
) -> list[HiveEntry]:
    """Return the entries that a table gets."""
    whole = schema if options[SyncOptions.OMIT_META] else with_meta_columns(schema)
    rest, of_keys = _columns(whole, keys, timestamps=options[SyncOptions.SUPPORT_TIMESTAMP])
    properties = {"EXTERNAL": "TRUE", LAST_COMMIT: _last_commit(state)}
    if options[SyncOptions.AS_DATASOURCE]:
        properties |= _for_spark(whole, keys, options[SyncOptions.SCHEMA_PART], spark_version)
    location = state.storage.uri()
    return [
        HiveEntry(
            options[SyncOptions.DATABASE].lower(),
            name,
            location,
            rest,
            of_keys,
            INPUT_FORMAT
            if is_optimized or state.config.table_type is TableType.COPY_ON_WRITE
            else REALTIME_INPUT_FORMAT,
            _serde_properties(location, is_optimized, options),
            properties,
        )
        for name, is_optimized in entry_names(state.config, options)
    ]


def entry_names(config: TableConfig, options: Options) -> list[tuple[str, bool]]:
    """Return the names of a table's entries, and whether each shows base files alone."""
    name = (options[SyncOptions.TABLE] or config.name).lower()
    for key, given, legal in (
        (SyncOptions.TABLE.key, name, r"[\w-]+"),
        (SyncOptions.DATABASE.key, options[SyncOptions.DATABASE], r"\w+"),
    ):
        if not re.fullmatch(legal, given, re.ASCII):
            also = ", - " if "-" in legal else " "
            raise ConfigError(
                f"{given!r} cannot be a name in a Hive metastore: letters a to z, digits{also}and _ alone can; set {key} to another"
            )
    strategy = options[SyncOptions.STRATEGY]
    if config.table_type is TableType.COPY_ON_WRITE:
        return [(name, False)]
    if strategy is not SyncStrategy.ALL:
        return [(name, strategy is SyncStrategy.RO)]
    if options[SyncOptions.SKIP_RO_SUFFIX]:
        return [(name, True), (name + REALTIME_SUFFIX, False)]
    return [(name + READ_OPTIMIZED_SUFFIX, True), (name + REALTIME_SUFFIX, False), (name, False)]


def is_of_hudi(input_format: str) -> bool:
    """Tell whether an entry has one of Hudi's input formats."""
    return input_format in (INPUT_FORMAT, REALTIME_INPUT_FORMAT)


def outlived_names(config: TableConfig, options: Options) -> list[str]:
    """Return the names that a table had as merge-on-read or by another strategy, and does not get now."""
    name = (options[SyncOptions.TABLE] or config.name).lower()
    kept = {each for each, _ in entry_names(config, options)}
    return [each for each in (name + READ_OPTIMIZED_SUFFIX, name + REALTIME_SUFFIX) if each not in kept]


def _columns(
    schema: pa.Schema, keys: Sequence[str], *, timestamps: bool
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    fields = arrow_to_spark(schema).fields
    kinds = {
        each.name: (each.dataType if timestamps else _as_numbers(each.dataType)).simpleString()
        for each in fields
    }
    rest = [(name.lower(), kind) for name, kind in kinds.items() if name not in keys]
    return rest, [(name.lower(), kinds.get(name, "string")) for name in keys]


def _as_numbers(kind: T.DataType) -> T.DataType:
    """Return a type with numbers in place of timestamps, at whatever depth."""
    if isinstance(kind, T.TimestampType):
        return T.LongType()
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_as_numbers(kind.elementType))
    if isinstance(kind, T.MapType):
        return T.MapType(_as_numbers(kind.keyType), _as_numbers(kind.valueType))
    if isinstance(kind, T.StructType):
        return T.StructType([T.StructField(each.name, _as_numbers(each.dataType)) for each in kind.fields])
    return kind


def _last_commit(state: TableState) -> str:
    writes = state.timeline.completed_writes
    return writes[-1].requested_time if writes else ""


def _serde_properties(location: str, is_optimized: bool, options: Options) -> dict[str, str]:
    properties = {"serialization.format": "1"}
    if options[SyncOptions.AS_DATASOURCE]:
        properties |= {"path": location, "hoodie.query.as.ro.table": str(is_optimized).lower()}
    return properties


def _for_spark(schema: pa.Schema, keys: Sequence[str], part: int, spark_version: str) -> dict[str, str]:
    """Return the properties by which Spark knows a table of a provider; partition columns are the last of its schema."""
    columns = json.loads(arrow_to_spark(schema).json())
    known = {field["name"] for field in columns["fields"]}
    columns["fields"] += [
        {"name": key, "type": "string", "nullable": False, "metadata": {}} for key in keys if key not in known
    ]
    columns["fields"].sort(key=lambda field: keys.index(field["name"]) + 1 if field["name"] in keys else 0)
    text = json.dumps(columns, separators=(",", ":"), ensure_ascii=False)
    parts = [text[start : start + part] for start in range(0, len(text), part)]
    properties = {
        "spark.sql.sources.provider": "hudi",
        "spark.sql.create.version": spark_version,
        "spark.sql.sources.schema.numParts": str(len(parts)),
        **{f"spark.sql.sources.schema.part.{number}": each for number, each in enumerate(parts)},
    }
    if keys:
        properties["spark.sql.sources.schema.numPartCols"] = str(len(keys))
        properties |= {f"spark.sql.sources.schema.partCol.{number}": key for number, key in enumerate(keys)}
    return properties


def _value(part: str) -> str:
    """Return the value of a hive-style folder, of another folder all of it."""
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
        extractor: Class of Apache Hudi, with its package or without, or a function of the user's own as
            ``package.module:name``; None for the one that fits the partitioning.
        fields: Partition columns of the entries; empty for those of the table.
    """

    def __init__(
        self, config: TableConfig, extractor: str | None, *, decode: bool, fields: Sequence[str] = ()
    ) -> None:
        self.fields = tuple(fields) or tuple(field.name for field in config.partition_fields)
        self._name = (extractor or _fitting(config, len(self.fields))).removeprefix(_PACKAGE)
        self._extract = _extractor(self._name)
        if self._name == _NONE:
            self.fields = ()
        self._decode = decode

    def of(self, path: str) -> tuple[str, ...]:
        """Return the values of a partition, one for each field."""
        try:
            values = self._extract(path)
            if not isinstance(values, (list, tuple)) or not all(isinstance(each, str) for each in values):
                raise ValueError(f"it returned {values!r}, which is no list of texts")
            if len(values) != len(self.fields):
                raise ValueError(f"it has {len(values)} values for {len(self.fields)} partition columns")
        except ValueError as error:
            raise ConfigError(
                f"{self._name} cannot read the partition path {path!r}: {error}; set "
                "hoodie.datasource.hive_sync.partition_extractor_class to one that fits"
            ) from error
        return tuple(map(unescape_partition_value, values) if self._decode else values)


def _extractor(name: str) -> Extract:
    """Return what makes values of a path, a class of Hudi's or a function of the user's own."""
    key = SyncOptions.EXTRACTOR.key
    if ":" in name:
        return imported_function(name, key)
    if name not in _BY_NAME:
        legal = ", ".join(_PACKAGE + each for each in _BY_NAME)
        raise ConfigError(f"{key} is {name!r}; legal values: {legal}, or a function as package.module:name")
    return _BY_NAME[name]


def _fitting(config: TableConfig, count: int) -> str:
    if not config.partition_fields:
        return _NONE
    return _HIVE_STYLE if count == 1 and config.hive_style else _MULTI_PART
