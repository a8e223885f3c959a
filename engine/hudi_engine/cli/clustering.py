"""The command that clusters a table. Spark is started only for groups that one task cannot sort."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import replace

from hudi_engine.cli.command import Answer, Call
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.enums import LayoutStrategy
from hudi_engine.format.layout.layout import split_names
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.table.services import RunLarge
from hudi_engine.table.services.clustering.arguments import check_partitions, clustering_options
from hudi_engine.table.services.clustering.write_group import ClusteringContext, GroupTask
from hudi_engine.table.state import TableState


def cluster_arguments(parser: ArgumentParser) -> None:
    """Declare the plan to run, the order of rows, partitions, ``--schedule``, ``--execute`` and ``--dry-run``."""
    parser.add_argument("instant", nargs="?", help="a pending clustering; else the oldest, or a new one")
    parser.add_argument(
        "--by", metavar="COLUMNS", help="columns by which rows are ordered, with commas between"
    )
    parser.add_argument("--strategy", metavar="ORDER", help=f"one of {', '.join(LayoutStrategy)}")
    parser.add_argument(
        "--partitions", metavar="PATHS", help="partition paths to look at, with commas between"
    )
    parser.add_argument("--schedule", action="store_true", help="plan it only")
    parser.add_argument("--execute", action="store_true", help="run what is planned, and plan nothing")
    parser.add_argument(
        "--dry-run", action="store_true", help="say what a plan would take, and change nothing"
    )


def cluster(call: Call) -> Answer:
    """Run or schedule a clustering, or say what a plan would take."""
    given = call.given
    if given.schedule and (given.instant or given.execute):
        raise ConfigError(
            "--schedule plans a new clustering; leave the instant and --execute out, or --schedule"
        )
    if given.dry_run and (given.instant or given.execute):
        raise ConfigError(
            "--dry-run says what a new plan would take; leave the instant and --execute out; `clusterings` shows what is planned"
        )
    partitions = None if given.partitions is None else split_names(given.partitions)
    options = clustering_options(
        call.options, columns=given.by, strategy=given.strategy, partitions=partitions
    )
    if partitions is not None:
        check_partitions(TableState.load(call.services.storage), options)
    services = replace(call.services, options=options, run_large=_in_local_spark())
    if given.schedule or given.dry_run:
        done = services.schedule_clustering(dry_run=given.dry_run)
    else:
        done = services.cluster(given.instant, plans=not given.execute)
    facts = {
        "instant": done.instant,
        "state": done.state,
        "groups": done.groups,
        "file_groups": done.file_groups,
        "files_read": done.files_read,
        "files_written": done.files_written,
        "rows": done.rows,
        "bytes": done.bytes_written,
    }
    notes = [done.reason] if done.reason else []
    if given.dry_run and not done.reason:
        notes = [f"file groups that would be rewritten: {done.file_groups}"]
    return Answer([{"partition": each} for each in done.partitions], facts, notes, rows_name="partitions")


def clusterings(call: Call) -> Answer:
    """Return the clusterings of the active timeline, newest first."""
    rows = [
        {
            "instant": each.instant,
            "state": each.state,
            "groups": each.groups,
            "file_groups": each.file_groups,
            "partitions": ",".join(each.partitions),
        }
        for each in call.services.clusterings()[::-1]
    ]
    return Answer(rows, rows_name="clusterings")


def _in_local_spark() -> RunLarge:
    def run(context: ClusteringContext, task: GroupTask) -> list[WriteStat]:
        try:
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise ConfigError(
                f"a group of {task.size_bytes} bytes is sorted by Spark, and PySpark is not installed; install pyspark, or raise "
                "hoodie.engine.clustering.task.bytes"
            ) from error
        from hudi_engine.spark.services.clustering import run_large_in_spark

        settings = {
            "spark.ui.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.variable.substitute": "false",
        }
        builder = SparkSession.builder.master("local[*]").appName("hudi-engine")
        for key, value in settings.items():
            builder = builder.config(key, value)
        return run_large_in_spark(builder.getOrCreate())(context, task)

    return run
