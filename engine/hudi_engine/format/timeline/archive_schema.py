"""Schema of the entries of the layout 1 archive (Hudi's ``HoodieArchivedMetaEntry``), one entry a timeline file.

Every string carries ``avro.java.string``: Hudi 1.x reads entries as Java strings and fails without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_engine.format.timeline import schemas
from hudi_engine.format.timeline.schemas import NAMESPACE, Schema

_JAVA = {"avro.java.string": "String"}

_STAT_FIELDS = {
    "fileId": "string",
    "path": "string",
    "prevCommit": "string",
    "numWrites": "long",
    "numDeletes": "long",
    "numUpdateWrites": "long",
    "totalWriteBytes": "long",
    "totalWriteErrors": "long",
    "partitionPath": "string",
    "totalLogRecords": "long",
    "totalLogFiles": "long",
    "totalUpdatedRecordsCompacted": "long",
    "numInserts": "long",
    "totalLogBlocks": "long",
    "totalCorruptLogBlock": "long",
    "totalRollbackBlocks": "long",
    "fileSizeInBytes": "long",
    "logVersion": "int",
    "logOffset": "long",
    "baseFile": "string",
    "logFiles": {"type": "array", "items": "string"},
    "cdcStats": {"type": "map", "values": "long"},
}
_TEXTS = {"type": "map", "values": "string"}
_TEXT_LISTS = {"type": "map", "values": {"type": "array", "items": "string"}}


def _optional_fields(fields: Mapping[str, object]) -> list[Schema]:
    return [{"name": name, "type": ["null", kind], "default": None} for name, kind in fields.items()]


def _commit_metadata(name: str, **more: object) -> Schema:
    stat = {"type": "record", "name": "HoodieWriteStat", "fields": _optional_fields(_STAT_FIELDS)}
    stats = {"type": "map", "values": {"type": "array", "items": stat}}
    fields = _optional_fields(
        {"partitionToWriteStats": stats, "compacted": "boolean", "extraMetadata": _TEXTS}
    )
    fields.append({"name": "version", "type": ["int", "null"], "default": 1})
    fields += _optional_fields({"operationType": "string", **more})
    return {"type": "record", "name": name, "namespace": NAMESPACE, "fields": fields}


def _archived_meta_entry() -> Schema:
    """Return the schema of an archive's entry; its fields stand in the order in which Hudi writes them."""
    fields = _optional_fields(
        {
            "hoodieCommitMetadata": _commit_metadata("HoodieCommitMetadata"),
            "hoodieCleanMetadata": schemas.CLEAN_METADATA,
            "hoodieRollbackMetadata": schemas.ROLLBACK_METADATA,
            "hoodieSavePointMetadata": schemas.SAVEPOINT_METADATA,
            "commitTime": "string",
            "actionType": "string",
        }
    )
    fields.append({"name": "version", "type": ["int", "null"], "default": 1})
    fields += _optional_fields(
        {
            "hoodieCompactionPlan": schemas.COMPACTION_PLAN,
            "hoodieCleanerPlan": schemas.CLEANER_PLAN,
            "actionState": "string",
            "hoodieReplaceCommitMetadata": _commit_metadata(
                "HoodieReplaceCommitMetadata", partitionToReplaceFileIds=_TEXT_LISTS
            ),
            "hoodieRequestedReplaceMetadata": schemas.REQUESTED_REPLACE_METADATA,
            "HoodieInflightReplaceMetadata": f"{NAMESPACE}.HoodieCommitMetadata",
            "stateTransitionTime": "string",
        }
    )
    return {"type": "record", "name": "HoodieArchivedMetaEntry", "namespace": NAMESPACE, "fields": fields}


def _for_java(schema: Any, defined: set[str]) -> Any:
    """Copy a schema with Java's string type everywhere, each named type spelled out at its first use only."""
    if isinstance(schema, list):
        return [_for_java(branch, defined) for branch in schema]
    if schema == "string":
        return {"type": "string", **_JAVA}
    if not isinstance(schema, Mapping):
        return schema
    kind = schema["type"]
    if kind == "array":
        return {"type": "array", "items": _for_java(schema["items"], defined)}
    if kind == "map":
        return {"type": "map", "values": _for_java(schema["values"], defined), **_JAVA}
    if kind != "record":
        return _for_java(kind, defined)
    name = schema["name"].rpartition(".")[2]
    if name in defined:
        return f"{NAMESPACE}.{name}"
    defined.add(name)
    fields = [{**field, "type": _for_java(field["type"], defined)} for field in schema["fields"]]
    return {"type": "record", "name": name, "namespace": NAMESPACE, "fields": fields}


ARCHIVED_META_ENTRY: Schema = _for_java(_archived_meta_entry(), set())
"""Unparsed, since its text goes into the header of every block."""
