"""Table services: compaction, clustering, clean and archive, called by name or run after a commit."""

from hudi_engine.format.parallel import RunTasks, run_in_threads
from hudi_engine.table.services.archive.execute import archive, drop_savepoint, finish_archive
from hudi_engine.table.services.clean.execute import clean
from hudi_engine.table.services.clustering.execute import Workers, run_clustering
from hudi_engine.table.services.clustering.plan import show_clusterings
from hudi_engine.table.services.clustering.schedule import schedule_clustering
from hudi_engine.table.services.clustering.write_group import RunLarge
from hudi_engine.table.services.compaction.execute import run_compaction
from hudi_engine.table.services.compaction.plan import schedule_compaction, show_compactions
from hudi_engine.table.services.inline import run_after_commit
from hudi_engine.table.services.result import (
    ArchiveResult,
    CleanResult,
    ClusteringResult,
    CompactionResult,
    PendingClustering,
    PendingCompaction,
    ServicesReport,
)
from hudi_engine.table.services.upgrade import VersionChange, change_version
from hudi_engine.table.txn.publication import Publication

__all__ = [
    "ArchiveResult",
    "CleanResult",
    "ClusteringResult",
    "CompactionResult",
    "PendingClustering",
    "PendingCompaction",
    "Publication",
    "RunLarge",
    "RunTasks",
    "ServicesReport",
    "VersionChange",
    "Workers",
    "archive",
    "change_version",
    "clean",
    "drop_savepoint",
    "finish_archive",
    "run_after_commit",
    "run_clustering",
    "run_compaction",
    "run_in_threads",
    "schedule_clustering",
    "schedule_compaction",
    "show_clusterings",
    "show_compactions",
]
