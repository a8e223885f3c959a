"""Options of the table services (see `hudi_engine.config.options`)."""

from __future__ import annotations

from hudi_engine.config.enums import CleanPolicy, CompactionOrder, CompactionTrigger
from hudi_engine.config.option import Option, bool_option, choice_option, int_option, text_option

SERVICES = "Table services"
COMPACTION = "Compaction"
CLEAN = "Clean"
ARCHIVE = "Archive"

SERVICE_OPTIONS: tuple[Option, ...] = (
    bool_option(
        "hoodie.table.services.enabled",
        True,
        SERVICES,
        "With false no service runs after a write, whatever its own options say; calls of a service run.",
    ),
    bool_option(
        "hoodie.compact.inline",
        False,
        COMPACTION,
        "Compaction runs after a deltacommit when its trigger fires.",
        aliases=("hoodie.compaction.inline",),
    ),
    bool_option(
        "hoodie.compact.schedule.inline",
        False,
        COMPACTION,
        "Compaction is only scheduled after a deltacommit.",
    ),
    choice_option(
        "hoodie.compact.inline.trigger.strategy",
        CompactionTrigger.NUM_COMMITS,
        CompactionTrigger,
        COMPACTION,
        "When inline compaction fires.",
    ),
    int_option(
        "hoodie.compact.inline.max.delta.commits",
        5,
        COMPACTION,
        "Deltacommits after which NUM_COMMITS fires.",
        minimum=1,
    ),
    int_option(
        "hoodie.compact.inline.max.delta.seconds",
        3600,
        COMPACTION,
        "Seconds after which TIME_ELAPSED fires.",
        minimum=1,
    ),
    text_option(
        "hoodie.compaction.strategy",
        "org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy",
        COMPACTION,
        "Order and limit of a plan: LogFileSizeBased, LogFileNumBased, BoundedIO, DayBased or UnBounded...CompactionStrategy.",
    ),
    int_option(
        "hoodie.compaction.target.io",
        500 * 1024,
        COMPACTION,
        "MB read and written by one bounded plan.",
        minimum=1,
    ),
    int_option(
        "hoodie.compaction.logfile.size.threshold",
        0,
        COMPACTION,
        "Bytes of logs a slice needs to be planned.",
    ),
    int_option(
        "hoodie.compaction.logfile.num.threshold", 0, COMPACTION, "Log files a slice needs to be planned."
    ),
    int_option(
        "hoodie.compaction.daybased.target.partitions",
        10,
        COMPACTION,
        "Partitions of one day-based plan.",
        minimum=1,
    ),
    choice_option(
        "hoodie.compaction.order",
        CompactionOrder.FIFO,
        CompactionOrder,
        COMPACTION,
        "Which pending plan runs first (this engine's own).",
    ),
    bool_option(
        "hoodie.engine.services.strict",
        False,
        COMPACTION,
        "A failed table service fails the write that started it.",
    ),
    bool_option(
        "hoodie.clean.automatic", True, CLEAN, "Clean runs after a commit when there is something to do."
    ),
    int_option(
        "hoodie.clean.trigger.max.commits",
        1,
        CLEAN,
        "Commits since the last clean after which a clean runs by itself.",
        minimum=1,
        aliases=("hoodie.clean.max.commits",),
    ),
    choice_option(
        "hoodie.clean.policy",
        CleanPolicy.KEEP_LATEST_COMMITS,
        CleanPolicy,
        CLEAN,
        "What a clean keeps.",
        aliases=("hoodie.cleaner.policy",),
    ),
    int_option(
        "hoodie.clean.commits.retained",
        10,
        CLEAN,
        "Commits whose files stay (KEEP_LATEST_COMMITS).",
        minimum=1,
        aliases=("hoodie.cleaner.commits.retained",),
    ),
    int_option(
        "hoodie.clean.fileversions.retained",
        3,
        CLEAN,
        "Slices kept of a file group (KEEP_LATEST_FILE_VERSIONS).",
        minimum=1,
        aliases=("hoodie.cleaner.fileversions.retained",),
    ),
    int_option(
        "hoodie.clean.hours.retained",
        24,
        CLEAN,
        "Hours of commits kept (KEEP_LATEST_BY_HOURS).",
        minimum=0,
        aliases=("hoodie.cleaner.hours.retained",),
    ),
    bool_option(
        "hoodie.clean.incremental.enabled",
        True,
        CLEAN,
        "Only partitions touched since the last clean are looked at.",
        aliases=("hoodie.cleaner.incremental.mode",),
    ),
    bool_option(
        "hoodie.archive.automatic",
        True,
        ARCHIVE,
        "Old instants leave the active timeline for the archive after a commit when there are too many.",
    ),
    int_option(
        "hoodie.keep.min.commits",
        20,
        ARCHIVE,
        "Completed commits that stay on the active timeline when older ones are archived; raised to what the cleaner retains.",
        minimum=1,
    ),
    int_option(
        "hoodie.keep.max.commits",
        30,
        ARCHIVE,
        "Completed commits above which older ones are archived.",
        minimum=2,
    ),
    int_option(
        "hoodie.commits.archival.batch", 10, ARCHIVE, "Entries in a block of an archive file.", minimum=1
    ),
    bool_option(
        "hoodie.archive.beyond.savepoint",
        False,
        ARCHIVE,
        "Commits after the oldest savepoint are archived too; the saved ones stay.",
    ),
    bool_option("hoodie.archive.merge.enable", False, ARCHIVE, "Small files of the archive are merged."),
    int_option(
        "hoodie.archive.merge.files.batch.size",
        10,
        ARCHIVE,
        "Small files of the archive that are merged at once.",
        minimum=2,
    ),
    int_option(
        "hoodie.archive.merge.small.file.limit.bytes",
        20 * 1024 * 1024,
        ARCHIVE,
        "Bytes up to which a file of the archive counts as small.",
        minimum=0,
    ),
)
