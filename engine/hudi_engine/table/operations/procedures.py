"""Apache Hudi's SQL procedures under Hudi's own names, arguments and columns.

Names and columns are those of Apache Hudi 0.15, and of 1.2 for procedures that came later.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from hudi_engine.errors import ConfigError
from hudi_engine.format.spelling import did_you_mean
from hudi_engine.table.operations import hudi_commits as commits
from hudi_engine.table.operations import hudi_files as files
from hudi_engine.table.operations import hudi_repairs as repairs
from hudi_engine.table.operations import hudi_services as services
from hudi_engine.table.operations.answer import Answer
from hudi_engine.table.operations.operation import Operation
from hudi_engine.table.table_services import TableServices

_RESTORED = (
    "restore_result boolean, start_restore_time string, time_taken_in_millis long, instants_rolled_back long, "
    "audit_result string"
)
_LOOKING = (
    Operation(commits.show_commits, commits.COMMITS),
    Operation(commits.show_archived_commits, commits.ARCHIVED),
    Operation(commits.show_commits_metadata, commits.COMMITS_METADATA),
    Operation(commits.show_archived_commits_metadata, commits.COMMITS_METADATA),
    Operation(commits.show_commit_files, commits.COMMIT_FILES),
    Operation(commits.show_commit_partitions, commits.COMMIT_PARTITIONS),
    Operation(commits.show_commit_write_stats, commits.WRITE_STATS),
    Operation(commits.show_commit_extra_metadata, commits.EXTRA_METADATA),
    Operation(commits.stats_wa, commits.AMPLIFICATION),
    Operation(commits.commits_compare, "compare_detail string"),
    Operation(files.show_fsview_all, files.SLICES),
    Operation(files.show_fsview_latest, files.LATEST_SLICES),
    Operation(files.stats_file_sizes, files.SIZES),
    Operation(files.show_invalid_parquet, "path string"),
    Operation(files.show_logfile_metadata, files.BLOCKS),
    Operation(files.show_logfile_records, "records string"),
    Operation(files.show_file_group_history, files.HISTORY),
    Operation(services.show_timeline, services.TIMELINE),
    Operation(services.show_table_properties, "key string, value string"),
    Operation(services.show_cleans, services.CLEANS),
    Operation(services.show_cleans_metadata, services.CLEANS_METADATA),
    Operation(services.show_clean_plans, services.CLEAN_PLANS),
    Operation(services.show_rollbacks, services.ROLLBACKS),
    Operation(services.show_rollback_detail, services.ROLLBACK_DETAIL),
    Operation(services.show_savepoints, "savepoint_time string"),
    Operation(services.show_compaction, services.COMPACTIONS),
    Operation(services.show_clustering, services.CLUSTERINGS),
)
_CHANGING = (
    Operation(services.run_clean, services.CLEANED, changes=True),
    Operation(services.run_compaction, services.COMPACTIONS, changes=True, table_at=1),
    Operation(services.run_clustering, services.CLUSTERINGS, changes=True),
    Operation(services.upgrade_table, "result boolean", changes=True),
    Operation(services.downgrade_table, "result boolean", changes=True),
    Operation(services.archive_commits, "result int", changes=True),
    Operation(services.rollback_to_instant, "rollback_result boolean", changes=True),
    Operation(services.run_rollback_inflight_tableservice, "instant string, time_cost string", changes=True),
    Operation(services.create_savepoint, "create_savepoint_result boolean", changes=True),
    Operation(services.delete_savepoint, "delete_savepoint_result boolean", changes=True),
    Operation(services.rollback_to_savepoint, "rollback_savepoint_result boolean", changes=True),
    Operation(services.restore_to_instant, _RESTORED, changes=True),
    Operation(repairs.drop_partition, "result string", changes=True),
    Operation(repairs.truncate_table, "result string, time_cost long", changes=True),
    Operation(repairs.repair_add_partition_meta, repairs.PARTITION_META, changes=True),
    Operation(repairs.repair_corrupted_clean_files, "result boolean", changes=True),
    Operation(repairs.repair_deduplicate, "result string", changes=True),
    Operation(repairs.repair_orphan_files, repairs.ORPHANS, changes=True),
    Operation(
        repairs.repair_overwrite_hoodie_props,
        "property string, old_value string, new_value string",
        changes=True,
    ),
    Operation(repairs.delete_marker, "delete_marker_result boolean", changes=True),
    Operation(repairs.delete_metadata_table, "result string", changes=True),
)
PROCEDURES: Mapping[str, Operation] = MappingProxyType({each.name: each for each in (*_LOOKING, *_CHANGING)})


def find_procedure(name: str) -> Operation:
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
            f"there is no procedure {name!r}; {did_you_mean(name, PROCEDURES)}there are: {', '.join(sorted(PROCEDURES))}"
        )
    return found


def call_procedure(procedure: Operation, services: TableServices, given: Mapping[str, Any]) -> Answer:
    """Run a procedure, and return its rows by column."""
    names = [column.split()[0].strip("`") for column in procedure.columns.split(", ")]
    return Answer([dict(zip(names, row)) for row in procedure.call(services, given)])


def help_text(command: str | None = None) -> str:
    """Return what the procedures do, a line each, or arguments and columns of one.

    Args:
        command: A procedure; None for all.

    Raises:
        ConfigError: There is none of that name.
    """
    if command is None:
        known = sorted(PROCEDURES.values(), key=lambda each: each.name)
        lines = [f"call {each.name}(...): {each.doc}" for each in known]
        return "\n".join([*lines, "call help(cmd => 'show_commits') names arguments and columns of one"])
    found = find_procedure(command.strip())
    notes = {each.name: each.about.refused for each in found.arguments.values()}
    notes |= dict.fromkeys(("table", *found.required), "required")
    arguments = ", ".join(f"{name} ({notes[name]})" if notes[name] else name for name in found.names)
    return f"{found.name}\narguments: {arguments}\ncolumns: {found.columns}"
