"""Procedures that run a clean or a compaction, with Hudi's arguments in Hudi's order."""

from __future__ import annotations

from dataclasses import replace

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.service_options import CleanOptions
from hudi_engine.format.config.enums import CleanPolicy, CleanTrigger
from hudi_engine.format.config.options import Options
from hudi_engine.format.layout.layout import split_names
from hudi_engine.spark.procedures.procedure import Call, Row
from hudi_engine.spark.procedures.services import record_of
from hudi_engine.table.services.inline import clean_due
from hudi_engine.table.table_services import TableServices

CLEANED = (
    "start_clean_time string, time_taken_in_millis long, total_files_deleted int, earliest_commit_to_retain string, "
    "bootstrap_part_metadata string, version int"
)
CLEAN_ARGUMENTS = (
    "table",
    "skip_locking",
    "schedule_in_line",
    "clean_policy",
    "retain_commits",
    "hours_retained",
    "file_versions_retained",
    "trigger_strategy",
    "trigger_max_commits",
    "options",
)
COMPACTION_ARGUMENTS = ("op", "table", "path", "timestamp", "options", "instants", "limit")
_RETAINED = {
    "retain_commits": (CleanOptions.COMMITS_RETAINED, CleanPolicy.KEEP_LATEST_COMMITS),
    "hours_retained": (CleanOptions.HOURS_RETAINED, CleanPolicy.KEEP_LATEST_BY_HOURS),
    "file_versions_retained": (CleanOptions.FILE_VERSIONS_RETAINED, CleanPolicy.KEEP_LATEST_FILE_VERSIONS),
}
_OPS = ("run", "schedule", "scheduleAndExecute", "execute")


def run_clean(call: Call) -> list[Row]:
    """Clean, and tell what the clean says about itself; no row when there was nothing to do.

    A figure without ``clean_policy`` says the policy too, as one that the policy does not look at would have no effect.
    """
    services = replace(call.services, options=_clean_options(call))
    if "trigger_max_commits" in call.given and not clean_due(call.state.timeline, services.options):
        return []
    done = services.clean()
    if done.instant is None:
        return []
    record = record_of(call, call.state.timeline.find(done.instant, "clean"))
    return [
        (
            record["startCleanTime"],
            record["timeTakenInMillis"],
            record["totalFilesDeleted"],
            record["earliestCommitToRetain"],
            "{}",
            record["version"],
        )
    ]


def _clean_options(call: Call) -> Options:
    """Return the options of a clean; what this engine has no other way for is refused by name."""
    if call.truth("skip_locking", False):
        raise ConfigError(
            "run_clean has skip_locking => true; this engine cleans under the table's lock: leave it out"
        )
    if not call.truth("schedule_in_line", True):
        raise ConfigError(
            "run_clean has schedule_in_line => false; this engine plans what it runs: leave it out"
        )
    strategy = call.text("trigger_strategy", CleanTrigger.NUM_COMMITS)
    if strategy.upper() not in list(CleanTrigger):
        legal = ", ".join(CleanTrigger)
        raise ConfigError(f"run_clean has trigger_strategy => {strategy!r}; legal values: {legal}")
    figures = [name for name in _RETAINED if name in call.given]
    if len(figures) > 1 and "clean_policy" not in call.given:
        raise ConfigError(
            f"run_clean has {' and '.join(figures)}; name the one, or the clean_policy that counts"
        )
    asked: dict[str, object] = {_RETAINED[name][0].key: call.number(name, 1) for name in figures}
    if "clean_policy" in call.given:
        asked[CleanOptions.POLICY.key] = call.text("clean_policy").upper()
    elif figures:
        asked[CleanOptions.POLICY.key] = _RETAINED[figures[0]][1]
    if "trigger_max_commits" in call.given:
        asked[CleanOptions.TRIGGER_COMMITS.key] = call.number("trigger_max_commits", 1)
    return call.options(asked)


def schedule_or_run_compaction(call: Call) -> list[Row]:
    """Plan a compaction, run those that are planned, or both; the rows are of the plans that were made or run."""
    op = call.text("op", _OPS[0]).lower()
    if op not in [each.lower() for each in _OPS]:
        raise ConfigError(f"run_compaction has op => {op!r}; legal values: {', '.join(_OPS)}")
    if "path" in call.given:
        raise ConfigError(
            "run_compaction has a path; this engine finds the table by its name: leave path out"
        )
    services = replace(call.services, options=call.options())
    named = split_names(call.given.get("instants")) or split_names(call.given.get("timestamp"))
    if op == "schedule" and named:
        raise ConfigError(
            "run_compaction has op => 'schedule' and an instant; instants are run by op => 'execute'"
        )
    if named or op == "execute":
        return _run_pending(services, named, call.number("limit", 1) if "limit" in call.given else None)
    done = services.schedule_compaction() if op == "schedule" else services.compact()
    state = {"scheduled": "REQUESTED"}.get(done.state, done.state.upper())
    return [] if done.instant is None else [(done.instant, done.file_groups, state)]


def _run_pending(services: TableServices, named: tuple[str, ...], limit: int | None) -> list[Row]:
    """Run plans that are there, oldest first, and make none."""
    pending = [each.instant for each in services.compactions() if each.state != "COMPLETED"]
    done = [services.compact(instant) for instant in (named or tuple(pending)[:limit])]
    return [(each.instant, each.file_groups, each.state.upper()) for each in reversed(done) if each.instant]
