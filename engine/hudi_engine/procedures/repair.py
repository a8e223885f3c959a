"""Procedures that repair a table."""

from __future__ import annotations

from hudi_engine.filegroup.partition_metadata import PARTITION_METADATA_NAMES
from hudi_engine.procedures.procedure import Call, Row
from hudi_engine.storage.paths import join

PARTITION_META = "partition_path string, metadata_is_present string, action string"


def repair_add_partition_meta(call: Call) -> list[Row]:
    """Add partition metadata where it is missing; with ``dry_run``, Hudi's default, only tell where."""
    dry_run = call.truth("dry_run", True)
    missing = {each.path for each in call.services.repair(("partition_metadata",), dry_run=dry_run)}
    action = "None" if dry_run else "Repaired"
    present = [
        (partition, "Yes", "None")
        for partition in call.state.view().partitions
        if partition not in missing
        and any(call.state.storage.exists(join(partition, name)) for name in PARTITION_METADATA_NAMES)
    ]
    return [*((path, "No", action) for path in sorted(missing)), *present]


def repair_corrupted_clean_files(call: Call) -> list[Row]:
    """Drop the plans of cleans that cannot be read."""
    call.services.repair(("damaged_plans",), dry_run=False)
    return [(True,)]
