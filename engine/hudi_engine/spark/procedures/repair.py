"""Procedures that repair a table."""

from __future__ import annotations

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.properties import parse_properties
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.partition_metadata import PARTITION_METADATA_NAMES
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.paths import join
from hudi_engine.spark.procedures.procedure import Call, Row
from hudi_engine.table.repair import DUPLICATE_KEYS
from hudi_engine.table.txn.recovery import table_lock

ORPHANS = "partition string, file_name string, instant_time string, backup_path string, status string"
DEDUPLICATED = "result string"
DEDUPLICATE_ARGUMENTS = (
    "table",
    "duplicated_partition_path",
    "repaired_output_path",
    "dry_run",
    "dedupe_type",
)
_DEDUPE_TYPES = ("insert_type", "update_type", "upsert_type")
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


def repair_deduplicate(call: Call) -> list[Row]:
    """Take rows out of a partition whose key another row has; with ``dry_run``, Hudi's default, only tell how many.

    Hudi copies files to a folder and then over those of the partition; here the repair is a commit, which needs no such
    folder and can be rolled back. Whatever the ``dedupe_type``, the newest row of a key stays.
    """
    kind = call.text("dedupe_type", _DEDUPE_TYPES[0])
    if kind not in _DEDUPE_TYPES:
        raise ConfigError(f"dedupe_type is {kind!r}; legal values: {', '.join(_DEDUPE_TYPES)}")
    dry_run = call.truth("dry_run", True)
    partition = call.text("duplicated_partition_path").strip("/")
    found = call.services.repair((DUPLICATE_KEYS,), dry_run=dry_run, partitions=[partition])
    said = "; ".join(each.done for each in found) or "every key is there once"
    return [(f"dry run: {said}" if dry_run and found else said,)]


def repair_orphan_files(call: Call) -> list[Row]:
    """Delete base files that no commit names; with ``dry_run``, Hudi's default, only name them."""
    if call.text("backup_path"):
        raise ConfigError(
            "backup_path is set, but orphan files are deleted and nothing is copied; leave it out, and copy what dry_run names"
        )
    dry_run, wanted = call.truth("dry_run", True), call.given.get("partition")
    if wanted is not None and not dry_run:
        raise ConfigError("partition narrows only what dry_run names; leave it out, or leave dry_run at true")
    found = call.services.repair(("orphan_files",), dry_run=dry_run)
    rows: list[Row] = []
    for each in found:
        partition, _, name = each.path.rpartition("/")
        if wanted is None or partition == wanted.strip("/"):
            file = parse_base_file(name, partition)
            instant = "" if file is None else file.instant
            rows.append((partition, name, instant, "", "IDENTIFIED" if dry_run else "DELETED"))
    return rows


def repair_overwrite_hoodie_props(call: Call) -> list[Row]:
    """Put the properties of a file in the place of the table's, if a table with them can be read and written."""
    given, services = call.text("new_props_file_path"), call.services
    folder, _, name = given.rpartition("/")
    try:
        new = TableConfig.from_properties(parse_properties(open_storage(folder or ".").read(name)))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise ConfigError(f"new_props_file_path is {given!r}, where there is no file") from error
    except ValueError as error:
        raise ConfigError(f"the properties of {given!r} are none of a table: {error}") from error
    new.check_writable()
    with table_lock(services.storage, services.options):
        old = TableConfig.load(services.storage)
        if old.version != new.version:
            raise ConfigError(
                f"{given!r} says table version {new.version}, but the table's files are of version {old.version}; give a file "
                "of that version"
            )
        new.save(services.storage)
    now = TableConfig.load(services.storage).properties
    return [
        (key, old.properties.get(key, "null"), now.get(key, "null"))
        for key in sorted({*old.properties, *now})
    ]
