"""Options of clustering and of the layout it gives (see `hudi_engine.format.config.options`)."""

from __future__ import annotations

from hudi_engine.format.config.enums import CurveBuild, LayoutStrategy, PartitionFilter
from hudi_engine.format.config.option import bool_option, choice_option, int_option, text_option

CLUSTERING = "Clustering"
_MEGABYTE = 1024 * 1024


class ClusteringOptions:
    """When, what and how clustering rewrites."""

    GROUP = CLUSTERING

    INLINE = bool_option(
        "hoodie.clustering.inline",
        False,
        "Clustering runs after a commit when enough commits have come since the last one.",
        aliases=("hoodie.datasource.clustering.inline.enable",),
    )
    SCHEDULE_INLINE = bool_option(
        "hoodie.clustering.schedule.inline",
        False,
        "Clustering is only planned after a commit; not together with hoodie.clustering.inline.",
    )
    MAX_COMMITS = int_option(
        "hoodie.clustering.inline.max.commits",
        4,
        "Commits since the last clustering after which inline clustering plans the next.",
        minimum=1,
    )
    PLAN_STRATEGY = text_option(
        "hoodie.clustering.plan.strategy.class",
        "org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy",
        "What a plan takes: Spark (or Java) SizeBased, RecentDays or SelectedPartitionsClusteringPlanStrategy.",
    )
    PARTITION_FILTER = choice_option(
        "hoodie.clustering.plan.partition.filter.mode",
        PartitionFilter.NONE,
        PartitionFilter,
        "Which partitions a plan looks at.",
    )
    RECENT_PARTITIONS = int_option(
        "hoodie.clustering.plan.strategy.daybased.lookback.partitions",
        2,
        "Newest partitions that RECENT_DAYS takes.",
        minimum=1,
    )
    SKIPPED_PARTITIONS = int_option(
        "hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions",
        0,
        "Newest partitions that RECENT_DAYS leaves alone first.",
    )
    BEGIN_PARTITION = text_option(
        "hoodie.clustering.plan.strategy.cluster.begin.partition",
        None,
        "First partition path of SELECTED_PARTITIONS.",
    )
    END_PARTITION = text_option(
        "hoodie.clustering.plan.strategy.cluster.end.partition",
        None,
        "Last partition path of SELECTED_PARTITIONS.",
    )
    SELECTED_PARTITIONS = text_option(
        "hoodie.clustering.plan.strategy.partition.selected",
        None,
        "Partition paths that a plan looks at, with commas between.",
    )
    PARTITION_PATTERN = text_option(
        "hoodie.clustering.plan.strategy.partition.regex.pattern",
        None,
        "Only partition paths that match as a whole.",
    )
    SMALL_FILE_LIMIT = int_option(
        "hoodie.clustering.plan.strategy.small.file.limit",
        300 * _MEGABYTE,
        "Bytes of a base file below which a plan takes its file group.",
        minimum=1,
    )
    TARGET_FILE_BYTES = int_option(
        "hoodie.clustering.plan.strategy.target.file.max.bytes",
        1024 * _MEGABYTE,
        "Bytes of a new base file.",
        minimum=1,
    )
    MAX_GROUP_BYTES = int_option(
        "hoodie.clustering.plan.strategy.max.bytes.per.group",
        2048 * _MEGABYTE,
        "Bytes of the file groups that are rewritten together.",
        minimum=1,
    )
    MAX_GROUPS = int_option(
        "hoodie.clustering.plan.strategy.max.num.groups", 30, "Groups of file groups in a plan.", minimum=1
    )
    SINGLE_GROUPS = bool_option(
        "hoodie.clustering.plan.strategy.single.group.clustering.enabled",
        True,
        "A file group that is alone is rewritten too, which sorts it.",
    )
    SORT_COLUMNS = text_option(
        "hoodie.clustering.plan.strategy.sort.columns",
        None,
        "Columns by which rows are ordered, with commas between; none keeps their order.",
    )
    EXECUTION_STRATEGY = text_option(
        "hoodie.clustering.execution.strategy.class",
        "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy",
        "How a plan is carried out: Spark or JavaSortAndSizeExecutionStrategy.",
    )
    PRESERVE_COMMIT_METADATA = bool_option(
        "hoodie.clustering.preserve.commit.metadata", True, "Rows keep commit time and sequence number."
    )
    UPDATES_STRATEGY = text_option(
        "hoodie.clustering.updates.strategy",
        "org.apache.hudi.client.clustering.update.strategy.SparkRejectUpdateStrategy",
        "Writes to file groups of a planned clustering: SparkReject or SparkAllowUpdateStrategy.",
    )
    ROLLBACK_ON_CONFLICT = bool_option(
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
        False,
        "A write that is allowed into file groups of a planned clustering takes the plan back; an overwrite does unless this "
        "is set to false.",
    )
    TASK_BYTES = int_option(
        "hoodie.engine.clustering.task.bytes",
        32 * _MEGABYTE,
        "Bytes of files up to which one task sorts a group in its memory; larger groups are sorted by a shuffle of Spark.",
        minimum=0,
    )


class LayoutOptions:
    """How rows are ordered by the sort columns."""

    GROUP = CLUSTERING

    STRATEGY = choice_option(
        "hoodie.layout.optimize.strategy",
        LayoutStrategy.LINEAR,
        LayoutStrategy,
        "How rows are ordered by the sort columns.",
    )
    CURVE_BUILD = choice_option(
        "hoodie.layout.optimize.curve.build.method",
        CurveBuild.DIRECT,
        CurveBuild,
        "How values become coordinates of a curve; SAMPLE for skewed values and texts that begin alike.",
    )
    CURVE_SAMPLE = int_option(
        "hoodie.layout.optimize.build.curve.sample.size",
        200_000,
        "Rows that are looked at to lay a curve through a group that Spark sorts.",
        minimum=1,
    )
