"""Bytes and names of a Hudi table: options, storage, schema, timeline, file groups, logs, merging. No Spark, no lock.

Arguments of one name mean the same in every room: ``as_of`` is the newest requested time that counts, None for now; ``partition``
a partition path, ``""`` for a table without partitions; ``columns`` names in the wanted order, None for all; ``path`` a path
below the table's folder; ``action`` a planned action of the timeline such as ``compaction``; times are in milliseconds of the
epoch, sizes in bytes. Damage is a CorruptTableError, what this engine does not do an UnsupportedTableError.
"""
