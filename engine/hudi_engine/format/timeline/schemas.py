"""Avro schemas of plans and metadata on the timeline (Hudi's ``org.apache.hudi.avro.model``).

They are used for writing. Reading always goes by the schema that a file carries, since other writers add
fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import fastavro

NAMESPACE = "org.apache.hudi.avro.model"

Schema = dict[str, Any]
STAT_FIELDS = {
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
"""Fields of ``HoodieWriteStat`` that every release stores; versions 8 and 9 store further ones after them."""
_REQUIRED = object()


def _field(name: str, kind: object, default: object = _REQUIRED) -> Schema:
    field: Schema = {"name": name, "type": kind}
    if default is not _REQUIRED:
        field["default"] = default
    return field


def _optional(name: str, kind: object) -> Schema:
    """Return field that may be null and is null by default."""
    return _field(name, ["null", kind], None)


def _version(default: int = 1) -> Schema:
    return _field("version", ["int", "null"], default)


def _list_of(items: object) -> Schema:
    return {"type": "array", "items": items}


def _map_of(values: object) -> Schema:
    return {"type": "map", "values": values}


def _record(name: str, *fields: Schema) -> Schema:
    return {"type": "record", "name": name, "namespace": NAMESPACE, "fields": list(fields)}


def _parsed(schema: Schema) -> Schema:
    parsed = fastavro.parse_schema(schema)
    assert isinstance(parsed, dict)
    return parsed


def _instant_info() -> Schema:
    return _record("HoodieInstantInfo", _field("commitTime", "string"), _field("action", "string"))


def optional_fields(fields: Mapping[str, object]) -> list[Schema]:
    """Return fields that may be null and are null by default."""
    return [_optional(name, kind) for name, kind in fields.items()]


def _commit_metadata(name: str, *more: Schema) -> Schema:
    """Return the schema of what a commit wrote, as table versions 8 and 9 store it."""
    runtime = _record(
        "HoodieRuntimeStats",
        *optional_fields(dict.fromkeys(("totalScanTime", "totalCreateTime", "totalUpsertTime"), "long")),
    )
    stat = _record(
        "HoodieWriteStat",
        *optional_fields(
            {
                **STAT_FIELDS,
                "prevBaseFile": "string",
                **dict.fromkeys(("minEventTime", "maxEventTime"), "long"),
                "runtimeStats": runtime,
                **dict.fromkeys(("totalLogFilesCompacted", "totalLogReadTimeMs"), "long"),
                "totalLogSizeCompacted": "long",
                "tempPath": "string",
                "numUpdates": "long",
            }
        ),
    )
    return _record(
        name,
        _optional("partitionToWriteStats", _map_of(_list_of(stat))),
        _optional("compacted", "boolean"),
        _optional("extraMetadata", _map_of("string")),
        _version(),
        _optional("operationType", "string"),
        *more,
    )


def _rollback_metadata() -> Schema:
    partition = _record(
        "HoodieRollbackPartitionMetadata",
        _field("partitionPath", "string"),
        _field("successDeleteFiles", _list_of("string")),
        _field("failedDeleteFiles", _list_of("string")),
        _optional("rollbackLogFiles", _map_of("long")),
        _optional("logFilesFromFailedCommit", _map_of("long")),
    )
    return _record(
        "HoodieRollbackMetadata",
        _field("startRollbackTime", "string"),
        _field("timeTakenInMillis", "long"),
        _field("totalFilesDeleted", "int"),
        _field("commitsRollback", _list_of("string")),
        _field("partitionMetadata", _map_of(partition)),
        _version(),
        _field("instantsRollback", _list_of(_instant_info()), []),
    )


def _clustering_plan() -> Schema:
    """Return the schema of a clustering plan, fields in Hudi's order."""
    slice_info = _record(
        "HoodieSliceInfo",
        _optional("dataFilePath", "string"),
        _optional("deltaFilePaths", _list_of("string")),
        _field("fileId", ["null", "string"]),
        _optional("partitionPath", "string"),
        _optional("bootstrapFilePath", "string"),
        _version(),
    )
    group = _record(
        "HoodieClusteringGroup",
        _optional("slices", _list_of(slice_info)),
        _optional("metrics", _map_of("double")),
        _field("numOutputFileGroups", ["int", "null"], 1),
        _optional("extraMetadata", _map_of("string")),
        _version(),
    )
    return _record(
        "HoodieClusteringPlan",
        _optional("inputGroups", _list_of(group)),
        _optional("strategy", _strategy("HoodieClusteringStrategy", "strategyClassName")),
        _optional("extraMetadata", _map_of("string")),
        _version(),
        _optional("preserveHoodieMetadata", "boolean"),
    )


def _strategy(name: str, class_field: str) -> Schema:
    return _record(
        name, _optional(class_field, "string"), _optional("strategyParams", _map_of("string")), _version()
    )


def _compaction_plan() -> Schema:
    """Return the schema of a compaction plan, fields in Hudi's order."""
    operation = _record(
        "HoodieCompactionOperation",
        _field("baseInstantTime", ["null", "string"]),
        _optional("deltaFilePaths", _list_of("string")),
        _optional("dataFilePath", "string"),
        _field("fileId", ["null", "string"]),
        _optional("partitionPath", "string"),
        _optional("metrics", _map_of("double")),
        _optional("bootstrapFilePath", "string"),
    )
    return _record(
        "HoodieCompactionPlan",
        _optional("operations", _list_of(operation)),
        _optional("extraMetadata", _map_of("string")),
        _version(),
        _optional("strategy", _strategy("HoodieCompactionStrategy", "compactorClassName")),
        _field("preserveHoodieMetadata", ["boolean", "null"], False),
        _optional("missingSchedulePartitions", _list_of("string")),
    )


def _cleaner_plan() -> Schema:
    instant = _record(
        "HoodieActionInstant",
        _field("timestamp", "string"),
        _field("action", "string"),
        _field("state", "string"),
    )
    file_info = _record(
        "HoodieCleanFileInfo", _optional("filePath", "string"), _optional("isBootstrapBaseFile", "boolean")
    )
    return _record(
        "HoodieCleanerPlan",
        _optional("earliestInstantToRetain", instant),
        _field("lastCompletedCommitTimestamp", "string", ""),
        _field("policy", "string"),
        _optional("filesToBeDeletedPerPartition", _map_of(_list_of("string"))),
        _version(),
        _optional("filePathsToBeDeletedPerPartition", _map_of(_list_of(file_info))),
        _optional("partitionsToBeDeleted", _list_of("string")),
        _optional("extraMetadata", _map_of("string")),
    )


def _clean_metadata() -> Schema:
    partition = _record(
        "HoodieCleanPartitionMetadata",
        _field("partitionPath", "string"),
        _field("policy", "string"),
        _field("deletePathPatterns", _list_of("string")),
        _field("successDeleteFiles", _list_of("string")),
        _field("failedDeleteFiles", _list_of("string")),
        _optional("isPartitionDeleted", "boolean"),
    )
    return _record(
        "HoodieCleanMetadata",
        _field("startCleanTime", "string"),
        _field("timeTakenInMillis", "long"),
        _field("totalFilesDeleted", "int"),
        _field("earliestCommitToRetain", "string"),
        _field("lastCompletedCommitTimestamp", "string", ""),
        _field("partitionMetadata", _map_of(partition)),
        _version(),
        _optional("bootstrapPartitionMetadata", _map_of("HoodieCleanPartitionMetadata")),
        _optional("extraMetadata", _map_of("string")),
    )


def _savepoint_metadata() -> Schema:
    partition = _record(
        "HoodieSavepointPartitionMetadata",
        _field("partitionPath", "string"),
        _field("savepointDataFile", _list_of("string")),
    )
    return _record(
        "HoodieSavepointMetadata",
        _field("savepointedBy", "string"),
        _field("savepointedAt", "long"),
        _field("comments", "string"),
        _field("partitionMetadata", _map_of(partition)),
        _version(),
    )


_rollback_request = _record(
    "HoodieRollbackRequest",
    _field("partitionPath", "string"),
    _optional("fileId", "string"),
    _optional("latestBaseInstant", "string"),
    _field("filesToBeDeleted", _list_of("string"), []),
    _optional("logBlocksToBeDeleted", _map_of("long")),
)

ROLLBACK_PLAN = _parsed(
    _record(
        "HoodieRollbackPlan",
        _optional("instantToRollback", _instant_info()),
        _optional("RollbackRequests", _list_of(_rollback_request)),
        _version(),
    )
)
ROLLBACK_METADATA = _parsed(_rollback_metadata())
COMMIT_METADATA = _parsed(_commit_metadata("HoodieCommitMetadata"))
REPLACE_COMMIT_METADATA = _parsed(
    _commit_metadata(
        "HoodieReplaceCommitMetadata", _optional("partitionToReplaceFileIds", _map_of(_list_of("string")))
    )
)
REQUESTED_REPLACE_METADATA = _parsed(
    _record(
        "HoodieRequestedReplaceMetadata",
        _optional("operationType", "string"),
        _optional("clusteringPlan", _clustering_plan()),
        _optional("extraMetadata", _map_of("string")),
        _version(),
    )
)
COMPACTION_PLAN = _parsed(_compaction_plan())
CLEANER_PLAN = _parsed(_cleaner_plan())
CLEAN_METADATA = _parsed(_clean_metadata())
SAVEPOINT_METADATA = _parsed(_savepoint_metadata())
RESTORE_PLAN = _parsed(
    _record(
        "HoodieRestorePlan",
        _field("instantsToRollback", _list_of(_instant_info()), []),
        _version(2),
        _optional("savepointToRestoreTimestamp", "string"),
    )
)
RESTORE_METADATA = _parsed(
    _record(
        "HoodieRestoreMetadata",
        _field("startRestoreTime", "string"),
        _field("timeTakenInMillis", "long"),
        _field("instantsToRollback", _list_of("string")),
        _field("hoodieRestoreMetadata", _map_of(_list_of(["null", _rollback_metadata()]))),
        _version(),
        _field("restoreInstantInfo", _list_of("HoodieInstantInfo"), []),
    )
)
_INDEX_INFOS = _optional(
    "indexPartitionInfos",
    _list_of(
        _record(
            "HoodieIndexPartitionInfo",
            _version(),
            _optional("metadataPartitionPath", "string"),
            _optional("indexUptoInstant", "string"),
            _optional("extraMetadata", _map_of("string")),
        )
    ),
)
INDEX_PLAN = _parsed(_record("HoodieIndexPlan", _version(), _INDEX_INFOS))
INDEX_COMMIT_METADATA = _parsed(
    _record("HoodieIndexCommitMetadata", _version(), _optional("operationType", "string"), _INDEX_INFOS)
)
LSM_INSTANT = _record(
    "HoodieLSMTimelineInstant",
    *optional_fields(
        {
            **dict.fromkeys(("instantTime", "completionTime", "action"), "string"),
            **dict.fromkeys(("metadata", "plan"), "bytes"),
        }
    ),
    _field("version", "int", 1),
)
