"""What a table's version decides: one description a version, asked by whoever writes a name, a body or a log.

A version that is not in :data:`TABLE_VERSIONS` is refused when the table is opened. To support another one, describe it here
(Hudi table versions, ``HoodieTableVersion``).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableVersion:
    """How tables of one version differ from those of the others.

    Args:
        number: ``hoodie.table.version``.
        timeline_layout: ``hoodie.timeline.layout.version``. Layout 1 keeps the timeline in ``.hoodie`` and the archive in log
            files; layout 2 keeps it in ``.hoodie/timeline``, names completed files with their completion time, stores the
            metadata of commits as Avro and the archive as Parquet files with a manifest.
        is_written: Whether this engine writes tables of this version; others are read.
    """

    number: int
    timeline_layout: int
    is_written: bool = True

    @property
    def has_completion_times(self) -> bool:
        """Whether the completed file of an instant is named with the time at which it completed."""
        return self.timeline_layout >= 2

    @property
    def stores_avro_commits(self) -> bool:
        """Whether the metadata of commits is Avro; it is JSON otherwise."""
        return self.timeline_layout >= 2

    @property
    def names_logs_by_write(self) -> bool:
        """Whether a log is named after the write that made it; otherwise after its slice, and many writes share it.

        A log of one write goes with its rollback. In one that writes share, a command block takes the blocks back.
        """
        return self.timeline_layout >= 2

    @property
    def has_partial_blocks(self) -> bool:
        """Whether a block of a log may have fewer columns than the table: stored rows keep their values in the others."""
        return self.timeline_layout >= 2

    @property
    def log_marker(self) -> str:
        """Type of the marker that announces a log file."""
        return "CREATE" if self.names_logs_by_write else "APPEND"

    @property
    def clustering_action(self) -> str:
        """Action under which a clustering is planned; it completes as ``replacecommit``."""
        return "clustering" if self.timeline_layout >= 2 else "replacecommit"

    @property
    def keeps_history(self) -> bool:
        """Whether the archive is a history of Parquet files with a manifest; it is made of log files otherwise."""
        return self.timeline_layout >= 2

    @property
    def keeps_metadata_table(self) -> bool:
        """Whether this engine keeps the metadata table of such tables up to date; others lose theirs with the next write."""
        return self.number >= 6

    @property
    def enables_metadata_table(self) -> bool:
        """Whether tables have a metadata table unless a user switches it off."""
        return self.timeline_layout >= 2


TABLE_VERSIONS = {
    each.number: each
    for each in (
        TableVersion(4, 1, is_written=False),
        TableVersion(5, 1, is_written=False),
        TableVersion(6, 1),
        TableVersion(8, 2),
        TableVersion(9, 2),
    )
}
"""The versions that are read, by number; 7 was never released."""
