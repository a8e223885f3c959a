"""The procedures. A new one is a function of a `Call` in a module of this room, and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hudi_engine.errors import ConfigError
from hudi_engine.format.spelling import did_you_mean
from hudi_engine.spark.procedures import (
    clustering,
    commits,
    files,
    history,
    logs,
    repair,
    running,
    services,
    whole_table,
)
from hudi_engine.spark.procedures.procedure import Procedure

_INSTANT = ("instant_time",)
_ONE_COMMIT = ("table", "limit", "instant_time")
_AT_INSTANT = ("table", "instant_time")
_BETWEEN = ("table", "limit", "start_ts", "end_ts")
_SAVED = ("table", "commit_time", "user", "comments")
_ARCHIVED = ("table", "min_commits", "max_commits", "retain_commits")
_LOOKING = (
    Procedure("show_commits", commits.COMMITS, commits.show_commits),
    Procedure(
        "show_archived_commits",
        commits.ARCHIVED,
        commits.show_archived_commits,
        _BETWEEN,
    ),
    Procedure("show_commits_metadata", commits.COMMITS_METADATA, commits.show_commits_metadata),
    Procedure(
        "show_archived_commits_metadata",
        commits.COMMITS_METADATA,
        commits.show_archived_commits_metadata,
        _BETWEEN,
    ),
    Procedure("show_fsview_all", files.SLICES, files.show_fsview_all, files.IN_PARTITION),
    Procedure("show_fsview_latest", files.LATEST_SLICES, files.show_fsview_latest, files.IN_PARTITION),
    Procedure("stats_file_sizes", files.SIZES, files.stats_file_sizes, ("table", "partition_path", "limit")),
    Procedure("show_invalid_parquet", files.INVALID, files.show_invalid_parquet),
    Procedure(
        "show_logfile_metadata",
        logs.BLOCKS,
        logs.show_logfile_metadata,
        logs.ARGUMENTS,
        ("log_file_path_pattern",),
    ),
    Procedure(
        "show_logfile_records",
        logs.RECORDS,
        logs.show_logfile_records,
        logs.ARGUMENTS,
        ("log_file_path_pattern",),
    ),
    Procedure(
        "show_file_group_history",
        history.HISTORY,
        history.show_file_group_history,
        history.HISTORY_ARGUMENTS,
        ("file_group_id",),
    ),
    Procedure(
        "commits_compare", "compare_detail string", history.commits_compare, ("table", "path"), ("path",)
    ),
    Procedure("show_clean_plans", history.CLEAN_PLANS, history.show_clean_plans),
    Procedure("show_commit_files", commits.COMMIT_FILES, commits.show_commit_files, _ONE_COMMIT, _INSTANT),
    Procedure(
        "show_commit_partitions",
        commits.COMMIT_PARTITIONS,
        commits.show_commit_partitions,
        _ONE_COMMIT,
        _INSTANT,
    ),
    Procedure(
        "show_commit_write_stats", commits.WRITE_STATS, commits.show_commit_write_stats, _ONE_COMMIT, _INSTANT
    ),
    Procedure(
        "show_commit_extra_metadata",
        commits.EXTRA_METADATA,
        commits.show_commit_extra_metadata,
        (*_ONE_COMMIT, "metadata_key"),
        _INSTANT,
    ),
    Procedure("stats_wa", commits.AMPLIFICATION, commits.stats_wa),
    Procedure("show_timeline", services.TIMELINE, services.show_timeline, ("table", "limit", "showarchived")),
    Procedure("show_table_properties", services.PROPERTIES, services.show_table_properties),
    Procedure("show_cleans", services.CLEANS, services.show_cleans),
    Procedure("show_cleans_metadata", services.CLEANS_METADATA, services.show_cleans_metadata),
    Procedure("show_rollbacks", services.ROLLBACKS, services.show_rollbacks),
    Procedure(
        "show_rollback_detail", services.ROLLBACK_DETAIL, services.show_rollback_detail, _ONE_COMMIT, _INSTANT
    ),
    Procedure("show_savepoints", "savepoint_time string", services.show_savepoints, ("table",)),
    Procedure("show_compaction", services.COMPACTIONS, services.show_compaction),
    Procedure(
        "show_clustering",
        clustering.CLUSTERINGS,
        clustering.show_clustering,
        ("table", "limit", "show_involved_partition"),
    ),
)
_CHANGING = (
    Procedure("run_clean", running.CLEANED, running.run_clean, running.CLEAN_ARGUMENTS, changes=True),
    Procedure(
        "run_compaction",
        services.COMPACTIONS,
        running.schedule_or_run_compaction,
        running.COMPACTION_ARGUMENTS,
        changes=True,
    ),
    Procedure(
        "run_clustering",
        clustering.CLUSTERINGS,
        clustering.schedule_or_run_clustering,
        clustering.RUN_ARGUMENTS,
        changes=True,
    ),
    Procedure(
        "run_rollback_inflight_tableservice",
        "instant string, time_cost string",
        services.run_rollback_inflight_tableservice,
        ("table", "pending_instant", "delete_request_instant_file"),
        ("pending_instant",),
        changes=True,
    ),
    Procedure(
        "rollback_to_instant",
        "rollback_result boolean",
        services.rollback_to_instant,
        _AT_INSTANT,
        _INSTANT,
        changes=True,
    ),
    Procedure(
        "create_savepoint", "create_savepoint_result boolean", services.save_commit, _SAVED, changes=True
    ),
    Procedure(
        "delete_savepoint",
        "delete_savepoint_result boolean",
        services.give_commit_free,
        _AT_INSTANT,
        _INSTANT,
        changes=True,
    ),
    Procedure(
        "rollback_to_savepoint",
        "rollback_savepoint_result boolean",
        services.rollback_to_savepoint,
        _AT_INSTANT,
        _INSTANT,
        changes=True,
    ),
    Procedure(
        "restore_to_instant",
        whole_table.RESTORED,
        whole_table.restore_to_instant,
        _AT_INSTANT,
        _INSTANT,
        changes=True,
    ),
    Procedure(
        "drop_partition",
        "result string",
        whole_table.drop_partition,
        ("table", "partition"),
        ("partition",),
        changes=True,
    ),
    Procedure(
        "truncate_table",
        whole_table.TRUNCATED,
        whole_table.truncate_table,
        ("table", "partitions"),
        changes=True,
    ),
    Procedure(
        "delete_marker",
        "delete_marker_result boolean",
        whole_table.delete_marker,
        _AT_INSTANT,
        _INSTANT,
        changes=True,
    ),
    Procedure(
        "delete_metadata_table",
        "result string",
        whole_table.delete_metadata_table,
        ("table",),
        changes=True,
    ),
    Procedure(
        "repair_orphan_files",
        repair.ORPHANS,
        repair.repair_orphan_files,
        ("table", "partition", "dry_run", "backup_path"),
        changes=True,
    ),
    Procedure("archive_commits", "result int", services.archive_commits, _ARCHIVED, changes=True),
    Procedure(
        "repair_add_partition_meta",
        repair.PARTITION_META,
        repair.repair_add_partition_meta,
        ("table", "dry_run"),
        changes=True,
    ),
    Procedure(
        "repair_deduplicate",
        repair.DEDUPLICATED,
        repair.repair_deduplicate,
        repair.DEDUPLICATE_ARGUMENTS,
        ("duplicated_partition_path",),
        changes=True,
    ),
    Procedure(
        "repair_overwrite_hoodie_props",
        "property string, old_value string, new_value string",
        repair.repair_overwrite_hoodie_props,
        ("table", "new_props_file_path"),
        ("new_props_file_path",),
        changes=True,
    ),
    Procedure(
        "repair_corrupted_clean_files",
        "result boolean",
        repair.repair_corrupted_clean_files,
        ("table",),
        changes=True,
    ),
)
_REFUSED: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("run_compaction", "path"): "refused: the table goes by its name",
        ("run_clean", "skip_locking"): "true is refused",
        ("run_clean", "schedule_in_line"): "false is refused",
        ("repair_orphan_files", "backup_path"): "refused: nothing is copied",
    }
)
"""Arguments of Hudi's that are legal there and refused here, or one value of them is; what reads them says more."""
PROCEDURES: Mapping[str, Procedure] = MappingProxyType({each.name: each for each in (*_LOOKING, *_CHANGING)})


def find_procedure(name: str) -> Procedure:
    """Return a procedure by Hudi's name, in whatever case.

    Raises:
        ConfigError: There is none; the message names those there are.
    """
    found = PROCEDURES.get(name.lower())
    if found is None and "metadata_table" in name.lower():
        raise ConfigError(
            f"procedure {name!r} is about the metadata table, which this engine does not keep; legal of these: "
            "delete_metadata_table"
        )
    if found is None:
        raise ConfigError(
            f"procedure {name!r} is not known; {did_you_mean(name, PROCEDURES)}legal: {', '.join(sorted(PROCEDURES))}"
        )
    return found


def help_text(command: str | None = None) -> str:
    """Return what the procedures do, a line each, or arguments and columns of one.

    Args:
        command: A procedure; None for all.

    Raises:
        ConfigError: There is none of that name.
    """
    if command is None:
        known = sorted(PROCEDURES.values(), key=lambda each: each.name)
        lines = [f"call {each.name}(...): {(each.run.__doc__ or '').splitlines()[0]}" for each in known]
        return "\n".join([*lines, "call help(cmd => 'show_commits') names arguments and columns of one"])
    found = find_procedure(command.strip())
    notes = {name: said for (of, name), said in _REFUSED.items() if of == found.name}
    notes |= dict.fromkeys(("table", *found.required), "required")
    arguments = ", ".join(f"{name} ({notes[name]})" if name in notes else name for name in found.arguments)
    return f"{found.name}\narguments: {arguments}\ncolumns: {found.columns}"
