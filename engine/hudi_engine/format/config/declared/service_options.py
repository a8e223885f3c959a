"""Options of the table services (see `hudi_engine.format.config.options`)."""

from __future__ import annotations

from hudi_engine.format.config.enums import CleanPolicy, CompactionOrder, CompactionTrigger
from hudi_engine.format.config.option import bool_option, choice_option, int_option, text_option

SERVICES = "Table services"
COMPACTION = "Compaction"
CLEAN = "Clean"
ARCHIVE = "Archive"


class ServiceOptions:
    """All table services."""

    GROUP = SERVICES

    ENABLED = bool_option(
        "hoodie.table.services.enabled",
        True,
        "With false no service runs after a write, whatever its own options say; calls of a service run.",
    )
    STRICT = bool_option(
        "hoodie.engine.services.strict", False, "A failed table service fails the write that started it."
    )
    PARALLELISM = int_option(
        "hoodie.engine.services.parallelism",
        0,
        "Most tasks (without Spark, threads) of a compaction or clustering; 0: one for each file group, as cores are free.",
    )


class CompactionOptions:
    """When and how logs are merged into base files."""

    GROUP = COMPACTION

    INLINE = bool_option(
        "hoodie.compact.inline",
        False,
        "Compaction runs after a deltacommit when its trigger fires.",
        aliases=("hoodie.compaction.inline",),
    )
    SCHEDULE_INLINE = bool_option(
        "hoodie.compact.schedule.inline", False, "Compaction is only scheduled after a deltacommit."
    )
    TRIGGER = choice_option(
        "hoodie.compact.inline.trigger.strategy",
        CompactionTrigger.NUM_COMMITS,
        CompactionTrigger,
        "When inline compaction fires.",
    )
    DELTA_COMMITS = int_option(
        "hoodie.compact.inline.max.delta.commits", 5, "Deltacommits after which NUM_COMMITS fires.", minimum=1
    )
    DELTA_SECONDS = int_option(
        "hoodie.compact.inline.max.delta.seconds", 3600, "Seconds after which TIME_ELAPSED fires.", minimum=1
    )
    STRATEGY = text_option(
        "hoodie.compaction.strategy",
        "org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy",
        "Order and limit of a plan: LogFileSizeBased, LogFileNumBased, BoundedIO, DayBased, UnBounded, "
        "BoundedPartitionAware or UnBoundedPartitionAware...CompactionStrategy.",
    )
    TARGET_IO = int_option(
        "hoodie.compaction.target.io", 500 * 1024, "MB read and written by one bounded plan.", minimum=1
    )
    LOG_SIZE_THRESHOLD = int_option(
        "hoodie.compaction.logfile.size.threshold", 0, "Bytes of logs a slice needs to be planned."
    )
    LOG_COUNT_THRESHOLD = int_option(
        "hoodie.compaction.logfile.num.threshold", 0, "Log files a slice needs to be planned."
    )
    TARGET_PARTITIONS = int_option(
        "hoodie.compaction.daybased.target.partitions",
        10,
        "Partitions of one day-based plan; of the partition-aware strategies the days back from today that BoundedPartitionAware "
        "takes, and UnBoundedPartitionAware leaves.",
        minimum=1,
    )
    ORDER = choice_option(
        "hoodie.compaction.order",
        CompactionOrder.FIFO,
        CompactionOrder,
        "Which pending plan runs first (this engine's own).",
    )


class CleanOptions:
    """Which old files go."""

    GROUP = CLEAN

    AUTOMATIC = bool_option(
        "hoodie.clean.automatic", True, "Clean runs after a commit when there is something to do."
    )
    TRIGGER_COMMITS = int_option(
        "hoodie.clean.trigger.max.commits",
        1,
        "Commits since the last clean after which a clean runs by itself.",
        minimum=1,
        aliases=("hoodie.clean.max.commits",),
    )
    POLICY = choice_option(
        "hoodie.clean.policy",
        CleanPolicy.KEEP_LATEST_COMMITS,
        CleanPolicy,
        "What a clean keeps.",
        aliases=("hoodie.cleaner.policy",),
    )
    COMMITS_RETAINED = int_option(
        "hoodie.clean.commits.retained",
        10,
        "Commits whose files stay (KEEP_LATEST_COMMITS).",
        minimum=1,
        aliases=("hoodie.cleaner.commits.retained",),
    )
    FILE_VERSIONS_RETAINED = int_option(
        "hoodie.clean.fileversions.retained",
        3,
        "Slices kept of a file group (KEEP_LATEST_FILE_VERSIONS).",
        minimum=1,
        aliases=("hoodie.cleaner.fileversions.retained",),
    )
    HOURS_RETAINED = int_option(
        "hoodie.clean.hours.retained",
        24,
        "Hours of commits kept (KEEP_LATEST_BY_HOURS).",
        minimum=0,
        aliases=("hoodie.cleaner.hours.retained",),
    )
    INCREMENTAL = bool_option(
        "hoodie.clean.incremental.enabled",
        True,
        "Only partitions touched since the last clean are looked at.",
        aliases=("hoodie.cleaner.incremental.mode",),
    )


class ArchiveOptions:
    """Which instants leave the active timeline."""

    GROUP = ARCHIVE

    AUTOMATIC = bool_option(
        "hoodie.archive.automatic",
        True,
        "Old instants leave the active timeline for the archive after a commit when there are too many.",
    )
    MIN_COMMITS = int_option(
        "hoodie.keep.min.commits",
        20,
        "Completed commits that stay on the active timeline when older ones are archived; raised to what the cleaner retains.",
        minimum=1,
    )
    MAX_COMMITS = int_option(
        "hoodie.keep.max.commits", 30, "Completed commits above which older ones are archived.", minimum=2
    )
    BATCH = int_option("hoodie.commits.archival.batch", 10, "Entries of a file's block.", minimum=1)
    BEYOND_SAVEPOINT = bool_option(
        "hoodie.archive.beyond.savepoint",
        False,
        "Commits after the oldest savepoint are archived too; the saved ones stay. In tables of version 8 and 9 they never are.",
    )
