"""The record of Hudi's metadata table: one Avro schema for all its partitions, to bytes and back, and how two are merged.

Source: Hudi metadata table format. The key is the key of the HFile's cell, and empty in the value.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

import fastavro

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.schema.meta_fields import META_FIELDS

Record = dict[str, Any]

_JAVA = {"avro.java.string": "String"}
_STRING = {"type": "string", **_JAVA}
"""As in Hudi's own schemas: some readers refuse a file group whose schemas differ in this."""
_WRAPPERS: tuple[tuple[str, Any], ...] = (
    ("BooleanWrapper", "boolean"),
    ("IntWrapper", "int"),
    ("LongWrapper", "long"),
    ("FloatWrapper", "float"),
    ("DoubleWrapper", "double"),
    ("BytesWrapper", "bytes"),
    ("StringWrapper", _STRING),
    ("DateWrapper", "int"),
    ("DecimalWrapper", {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}),
    ("TimeMicrosWrapper", {"type": "long", "logicalType": "time-micros"}),
    ("TimestampMicrosWrapper", "long"),
)
_NAMESPACE = "org.apache.hudi.avro.model"


class MetadataPartition(str, Enum):
    """The partitions of a metadata table; those of a kind that has several carry a name after the last underscore.

    The value is the name, or what it begins with.
    """

    FILES = "files"
    COLUMN_STATS = "column_stats"
    PARTITION_STATS = "partition_stats"
    BLOOM_FILTERS = "bloom_filters"
    RECORD_INDEX = "record_index"
    SECONDARY_INDEX = "secondary_index_"
    EXPRESSION_INDEX = "expr_index_"

    @classmethod
    def of(cls, name: str) -> MetadataPartition | None:
        """Return the kind of a partition; None for one that is not known."""
        named = (cls.SECONDARY_INDEX, cls.EXPRESSION_INDEX)
        return next(
            (each for each in cls if name == each.value or (each in named and name.startswith(each.value))),
            None,
        )


def record_schema(table_version: int) -> dict[str, Any]:
    """Return the record's schema as the Hudi release that first wrote a table version has it, without meta columns."""
    release_1, release_1_2 = table_version >= 8, table_version >= 9
    value = _value_union(release_1, release_1_2)
    names = ["null", *(each["name"] for each in value[1:])]
    statistics = [
        _optional("fileName", _STRING),
        _optional("columnName", _STRING),
        {"name": "minValue", "type": value, "default": None},
        {"name": "maxValue", "type": names, "default": None},
        *(
            _optional(each, "long")
            for each in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
        ),
        {"name": "isDeleted", "type": "boolean"},
    ]
    if release_1:
        statistics.append({"name": "isTightBound", "type": "boolean", "default": False})
    if release_1_2:
        kind = [{"name": "typeOrdinal", "type": "int"}, _optional("additionalInfo", _STRING)]
        statistics.append(_optional("valueType", _record("HoodieValueTypeInfo", kind)))
    bloom = [
        *({"name": each, "type": _STRING} for each in ("type", "timestamp")),
        {"name": "bloomFilter", "type": "bytes"},
        {"name": "isDeleted", "type": "boolean"},
    ]
    location = [
        _optional("partitionName", _STRING),
        _optional("fileIdHighBits", "long"),
        _optional("fileIdLowBits", "long"),
        _optional("fileIndex", "int"),
        _optional("fileId", _STRING),
        _optional("instantTime", "long"),
        {"name": "fileIdEncoding", "type": "int", "default": 0},
        _optional("position", "long"),
    ]
    file = _record(
        "HoodieMetadataFileInfo", [{"name": "size", "type": "long"}, {"name": "isDeleted", "type": "boolean"}]
    )
    files = {"type": "map", "values": file, **_JAVA}
    fields = [
        {"name": "key", "type": _STRING},
        {"name": "type", "type": "int"},
        {"name": "filesystemMetadata", "type": ["null", files]},
        _optional("BloomFilterMetadata", _record("HoodieMetadataBloomFilter", bloom)),
        _optional("ColumnStatsMetadata", _record("HoodieMetadataColumnStats", statistics)),
        _optional("recordIndexMetadata", _record("HoodieRecordIndexInfo", location)),
    ]
    if release_1:
        deleted = [{"name": "isDeleted", "type": "boolean"}]
        fields.append(_optional("SecondaryIndexMetadata", _record("HoodieSecondaryIndexInfo", deleted)))
    return {**_record("HoodieMetadataRecord", fields), "namespace": _NAMESPACE}


def _value_union(release_1: bool, release_1_2: bool) -> list[Any]:
    wrappers = [*_WRAPPERS, *([("LocalDateWrapper", "int")] if release_1 else ())]
    union = ["null", *(_record(name, [{"name": "value", "type": kind}]) for name, kind in wrappers)]
    if release_1_2:
        items = {"type": "array", "items": ["null", *(name for name, _ in wrappers)]}
        union.append(_record("ArrayWrapper", [_optional("wrappedValues", items)]))
    return union


def _record(name: str, fields: list[Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


def _optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def with_meta_columns(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record's schema with the meta columns in front, which Hudi writes into every block and base file."""
    meta = [_optional(name, "string") for name in META_FIELDS]
    return {**schema, "fields": [*meta, *schema["fields"]]}


@lru_cache(maxsize=64)
def _parsed(schema: str) -> Any:
    return fastavro.parse_schema(json.loads(schema))


@lru_cache(maxsize=1 << 16)
def _decoded(value: bytes, schema: str) -> Record:
    try:
        found: Any = fastavro.schemaless_reader(
            io.BytesIO(value),
            _parsed(schema),
            None,
            return_record_name=True,
            return_record_name_override=True,
        )
    except (EOFError, ValueError, IndexError, KeyError, OverflowError, UnicodeDecodeError) as error:
        raise CorruptTableError(f"a record of the metadata table cannot be read: {error!r}") from error
    return dict(found)


def decode_record(value: bytes, schema: str) -> Record:
    """Return a record; equal values are decoded once, as thousands of keys of a record index share one. Not to be changed.

    Values of the union of minima and maxima are pairs of the wrapper's name and its fields.
    """
    return _decoded(value, schema)


def encode_record(record: Mapping[str, Any], schema: str) -> bytes:
    """Return a record's bytes; members that it does not have are null."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _parsed(schema), {"key": "", **record})
    return out.getvalue()


def merge_records(kind: MetadataPartition, older: Record, newer: Record) -> Record:
    """Return what two records of one key make."""
    if kind is MetadataPartition.FILES:
        return _merged_files(older, newer)
    if kind in _OF_STATISTICS:
        return _merged_statistics(older, newer)
    return newer


_OF_STATISTICS = (
    MetadataPartition.COLUMN_STATS,
    MetadataPartition.PARTITION_STATS,
    MetadataPartition.EXPRESSION_INDEX,
)


def _merged_files(older: Record, newer: Record) -> Record:
    """Return names of both; the newer one's deletes take the older one's names, and of two sizes the larger counts."""
    files = dict(older.get("filesystemMetadata") or {})
    for name, info in (newer.get("filesystemMetadata") or {}).items():
        known = files.get(name)
        if known is not None and info["isDeleted"] and not known["isDeleted"]:
            del files[name]
        elif known is not None and not info["isDeleted"]:
            files[name] = {**info, "size": max(info["size"], known["size"])}
        else:
            files[name] = info
    return {**newer, "filesystemMetadata": files}


def _merged_statistics(older: Record, newer: Record) -> Record:
    """Return the newer one, but for bounds of a partition that are not tight: these cover both."""
    before, after = (each.get("ColumnStatsMetadata") or {} for each in (older, newer))
    if after.get("isTightBound") or after.get("isDeleted") or before.get("isDeleted") or not before:
        return newer
    if newer.get("type") != PARTITION_STATS_TYPE:
        return newer
    union = {
        **after,
        "minValue": _bound(before["minValue"], after["minValue"], min),
        "maxValue": _bound(before["maxValue"], after["maxValue"], max),
        **{
            each: (before.get(each) or 0) + (after.get(each) or 0)
            for each in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
        },
    }
    return {**newer, "ColumnStatsMetadata": union}


PARTITION_STATS_TYPE = 6


def _bound(one: Any, other: Any, choose: Callable[..., Any]) -> Any:
    """Return the smaller or larger of two wrapped values; None, which bounds nothing, for those of two types."""
    if one is None or other is None:
        return one if other is None else other
    return choose((one, other), key=lambda each: each[1]["value"]) if one[0] == other[0] else None


def plain_schema(schema: str) -> str:
    """Return the text of a record's schema without the meta columns, as commit metadata has it."""
    record = json.loads(schema)
    fields = [each for each in record["fields"] if each["name"] not in META_FIELDS]
    return schema_text({**record, "fields": fields})


def schema_text(schema: Mapping[str, Any]) -> str:
    """Return a schema as it is written into files and headers."""
    return json.dumps(schema, separators=(",", ":"))
