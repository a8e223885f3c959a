"""Hudi's procedures that repair a table, or delete markers and the metadata table."""

from __future__ import annotations

from typing import Annotated

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.properties import parse_properties
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.markers import delete_markers
from hudi_engine.format.filegroup.partition_metadata import PARTITION_METADATA_NAMES
from hudi_engine.format.metadata.table import METADATA_FOLDER
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.paths import join
from hudi_engine.table.metadata.writer import drop_metadata_table
from hudi_engine.table.operations.operation import Arg, Call, Row, procedure
from hudi_engine.table.repair import DUPLICATE_KEYS
from hudi_engine.table.txn.recovery import table_lock


@procedure("partition_path string, metadata_is_present string, action string", changes=True)
def repair_add_partition_meta(call: Call, dry_run: bool = True) -> list[Row]:
    """Add partition metadata where it is missing; with ``dry_run``, Hudi's default, only say where."""
    missing = {each.path for each in call.services.repair(("partition_metadata",), dry_run=dry_run)}
    action = "None" if dry_run else "Repaired"
    present = [
        (partition, "Yes", "None")
        for partition in call.state.view().partitions
        if partition not in missing
        and any(call.state.storage.exists(join(partition, name)) for name in PARTITION_METADATA_NAMES)
    ]
    return [*((path, "No", action) for path in sorted(missing)), *present]


@procedure("result boolean", changes=True)
def repair_corrupted_clean_files(call: Call) -> list[Row]:
    """Drop the plans of cleans that cannot be read."""
    call.services.repair(("damaged_plans",), dry_run=False)
    return [(True,)]


@procedure("result string", changes=True)
def repair_deduplicate(
    call: Call,
    duplicated_partition_path: str,
    repaired_output_path: str | None = None,  # noqa: ARG001
    dry_run: bool = True,
    dedupe_type: Annotated[str, Arg(legal=("insert_type", "update_type", "upsert_type"))] = "insert_type",  # noqa: ARG001
) -> list[Row]:
    """Delete rows of a partition whose key another row has; with ``dry_run``, Hudi's default, only count them.

    Hudi copies files to a folder and then over those of the partition; here the repair is a commit, which needs no such
    folder and can be rolled back. Whatever the ``dedupe_type``, the newest row of a key stays.
    """
    partition = duplicated_partition_path.strip("/")
    found = call.services.repair((DUPLICATE_KEYS,), dry_run=dry_run, partitions=[partition])
    result = "; ".join(each.done for each in found) or "every key is there once"
    return [(f"dry run: {result}" if dry_run and found else result,)]


@procedure(
    "partition string, file_name string, instant_time string, backup_path string, status string", changes=True
)
def repair_orphan_files(
    call: Call,
    partition: str | None = None,
    dry_run: bool = True,
    backup_path: Annotated[str | None, Arg(refused="refused: nothing is copied")] = None,
) -> list[Row]:
    """Delete base files that no commit names; with ``dry_run``, Hudi's default, only name them."""
    if backup_path:
        raise ConfigError(
            "backup_path is set, but orphan files are deleted and nothing is copied; leave it out, and copy what dry_run names"
        )
    if partition is not None and not dry_run:
        raise ConfigError("partition narrows only what dry_run names; leave it out, or leave dry_run at true")
    rows: list[Row] = []
    for each in call.services.repair(("orphan_files",), dry_run=dry_run):
        folder, _, name = each.path.rpartition("/")
        if partition is None or folder == partition.strip("/"):
            file = parse_base_file(name, folder)
            instant = "" if file is None else file.instant
            rows.append((folder, name, instant, "", "IDENTIFIED" if dry_run else "DELETED"))
    return rows


@procedure("property string, old_value string, new_value string", changes=True)
def repair_overwrite_hoodie_props(call: Call, new_props_file_path: str) -> list[Row]:
    """Overwrite the table's properties with those of a file, if a table with them can be read and written."""
    given, services = new_props_file_path, call.services
    folder, _, name = given.rpartition("/")
    try:
        new = TableConfig.from_properties(parse_properties(open_storage(folder or ".").read(name)))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise ConfigError(f"new_props_file_path is {given!r}, where there is no file") from error
    except ValueError as error:
        raise ConfigError(f"{given!r} does not hold the properties of a table: {error}") from error
    new.check_writable()
    with table_lock(services.storage, services.options):
        old = TableConfig.load(services.storage)
        if old.version != new.version:
            raise ConfigError(
                f"{given!r} has table version {new.version}, but the table's files are of version {old.version}; give a file "
                "of that version"
            )
        new.save(services.storage)
    now = TableConfig.load(services.storage).properties
    return [
        (key, old.properties.get(key, "null"), now.get(key, "null"))
        for key in sorted({*old.properties, *now})
    ]


@procedure("delete_marker_result boolean", changes=True)
def delete_marker(call: Call, instant_time: str) -> list[Row]:
    """Delete the markers of a write that is over."""
    services = call.services
    if not instant_time.isdigit():
        raise ConfigError(
            f"instant_time is {instant_time!r}; legal values: instants, such as 20260101093000000"
        )
    with table_lock(services.storage, services.options):
        if any(each.requested_time == instant_time for each in call.state.timeline.pending):
            raise ConfigError(
                f"instant {instant_time} is under way, and its markers tell what it has written; roll it back instead"
            )
        delete_markers(services.storage, instant_time)
    return [(True,)]


@procedure("result string", changes=True)
def delete_metadata_table(call: Call) -> list[Row]:
    """Switch off and delete the metadata table, so that readers list files."""
    storage = call.services.storage
    with table_lock(storage, call.services.options):
        drop_metadata_table(storage, TableConfig.load(storage))
    return [(f"Deleted Metadata Table at '{storage.uri(METADATA_FOLDER)}'",)]
