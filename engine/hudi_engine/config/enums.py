"""Closed sets of values in Hudi's own spelling.

Each value is the text that stands in ``hoodie.properties``, commit metadata or an option. Adding a kind
means adding it here and to the registry of the room that implements it.
"""

from __future__ import annotations

from enum import Enum


class TableType(str, Enum):
    """``hoodie.table.type``."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class KeyGeneratorType(str, Enum):
    """``hoodie.table.keygenerator.type``; older tables name a class, see :mod:`hudi_engine.config.table_config`."""

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    TIMESTAMP = "TIMESTAMP"
    NON_PARTITION = "NON_PARTITION"
    CUSTOM = "CUSTOM"
    GLOBAL_DELETE = "GLOBAL_DELETE"


class MergeMode(str, Enum):
    """How an older and a newer record of one key become one.

    The first two and CUSTOM are values of ``hoodie.record.merge.mode``; the others are what well-known
    payload classes do.
    """

    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    """The newer write wins."""
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    """The greater ordering value wins, the newer write on a tie."""
    PARTIAL_UPDATE = "PARTIAL_UPDATE"
    """As event time, and null columns of the winner are filled from the loser (PartialUpdateAvroPayload)."""
    FILL_UNAVAILABLE = "FILL_UNAVAILABLE"
    """As event time, and columns of the winner with the text for an unavailable value are filled from the loser."""
    OVERWRITE_NON_DEFAULTS = "OVERWRITE_NON_DEFAULTS"
    """The newer write wins column by column where it is not null
    (OverwriteNonDefaultsWithLatestAvroPayload).
    """
    AWS_DMS = "AWS_DMS"
    """The newer write wins, and ``Op = 'D'`` deletes (AWSDmsAvroPayload)."""
    CUSTOM = "CUSTOM"
    """A payload or merger class that this engine does not know."""


class WriteOperation(str, Enum):
    """``operationType`` of commit metadata."""

    INSERT = "INSERT"
    INSERT_PREPPED = "INSERT_PREPPED"
    UPSERT = "UPSERT"
    UPSERT_PREPPED = "UPSERT_PREPPED"
    BULK_INSERT = "BULK_INSERT"
    BULK_INSERT_PREPPED = "BULK_INSERT_PREPPED"
    DELETE = "DELETE"
    DELETE_PREPPED = "DELETE_PREPPED"
    BOOTSTRAP = "BOOTSTRAP"
    INSERT_OVERWRITE = "INSERT_OVERWRITE"
    INSERT_OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
    CLUSTER = "CLUSTER"
    DELETE_PARTITION = "DELETE_PARTITION"
    COMPACT = "COMPACT"
    LOG_COMPACT = "LOG_COMPACT"
    INDEX = "INDEX"
    ALTER_SCHEMA = "ALTER_SCHEMA"
    UNKNOWN = "UNKNOWN"


class IndexType(str, Enum):
    """``hoodie.index.type``: how a write finds the file group of a key."""

    SIMPLE = "SIMPLE"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    BLOOM = "BLOOM"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"
    BUCKET = "BUCKET"
    RECORD_INDEX = "RECORD_INDEX"
    INMEMORY = "INMEMORY"
