"""Options that say what a table is (see `hudi_engine.format.config.options`)."""

from __future__ import annotations

from hudi_engine.format.config.enums import DECLARED_MERGE_MODES, CdcLogging, KeyGeneratorType, WrittenVersion
from hudi_engine.format.config.option import bool_option, choice_option, text_option

TABLE = "Table"

CHANGELOG_PROPERTY = "hoodie.engine.changelog"
"""Where a table keeps `TableOptions.KEEP_OPERATIONS`. Under Hudi's own name its Spark writer would find it
and lose every update, because its records name no operation."""


class TableOptions:
    """What a table is; most of it is kept in ``hoodie.properties``."""

    GROUP = TABLE

    TABLE_VERSION = choice_option(
        "hoodie.write.table.version",
        WrittenVersion.SIX,
        WrittenVersion,
        "Version of a new table: 6 is read by all engines, 8 by Apache Hudi 1.0 and later, 9 by 1.1 and later. A table "
        "that is there keeps its version.",
    )
    AUTO_UPGRADE = bool_option(
        "hoodie.write.auto.upgrade",
        False,
        "A write to a table of an earlier version than hoodie.write.table.version upgrades it first. False, as here by default, "
        "keeps the version; Apache Hudi's default is true.",
    )
    TIMELINE_ZONE = text_option(
        "hoodie.table.timeline.timezone",
        None,
        "Zone of the machines that write a table of Apache Hudi whose instants are in local time (`LOCAL`), as an IANA name such "
        "as `America/New_York`; the table keeps it. New tables, and others with `UTC`, have instants in UTC whatever is given.",
    )
    DATABASE_NAME = text_option(
        "hoodie.database.name",
        "default",
        "Database name kept in the table's properties; enters the checksum.",
    )
    HIVE_STYLE_PARTITIONING = bool_option(
        "hoodie.datasource.write.hive_style_partitioning",
        False,
        "Partition folders are named field=value instead of value.",
    )
    URL_ENCODE_PARTITIONS = bool_option(
        "hoodie.datasource.write.partitionpath.urlencode",
        False,
        "Special characters of a partition value are escaped in its folder name; without it '/' makes nested folders.",
    )
    KEY_GENERATOR_CLASS = text_option(
        "hoodie.datasource.write.keygenerator.class",
        None,
        "Key generator class; inferred from the number of key and partition fields when absent.",
        aliases=("hoodie.table.keygenerator.class",),
    )
    KEY_GENERATOR_TYPE = choice_option(
        "hoodie.datasource.write.keygenerator.type",
        None,
        KeyGeneratorType,
        "Key generator by short name; the class wins when both are given.",
        aliases=("hoodie.table.keygenerator.type",),
    )
    CONSISTENT_TIMESTAMPS = bool_option(
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
        False,
        "Timestamps in keys and partition paths are written as text instead of numbers; as in Apache Hudi the text has "
        "milliseconds, so that keys that differ by less are one.",
    )
    PAYLOAD_CLASS = text_option(
        "hoodie.datasource.write.payload.class",
        None,
        "Merge rule of the table by Hudi's payload class; default DefaultHoodieRecordPayload with an ordering field, "
        "OverwriteWithLatestAvroPayload without. With EmptyHoodieRecordPayload an upsert deletes the keys of its rows.",
        aliases=("hoodie.compaction.payload.class",),
    )
    MERGE_MODE = choice_option(
        "hoodie.record.merge.mode",
        None,
        DECLARED_MERGE_MODES,
        "Merge rule of the table by mode; written to the table as the matching payload class.",
        aliases=("hoodie.write.record.merge.mode",),
    )
    MERGE_RULE = text_option(
        "hoodie.engine.merge.rule",
        None,
        "A merge rule of your own, as package.module:name; Apache Hudi cannot merge the logs of such a table. The table keeps "
        "the name, but it is imported only for callers who give this option, or in sessions with spark.hudi.merge.rules.",
    )
    DELETE_FIELD = text_option(
        "hoodie.payload.delete.field",
        None,
        "Column that marks a row as deleted (DefaultHoodieRecordPayload).",
    )
    DELETE_MARKER = text_option(
        "hoodie.payload.delete.marker", None, "Value of the delete field that deletes the row."
    )
    CHANGE_DATA_CAPTURE = bool_option(
        "hoodie.table.cdc.enabled",
        False,
        "Writes keep a change data file next to each base file that they rewrite, for Hudi's CDC query.",
    )
    CDC_LOGGING = choice_option(
        "hoodie.table.cdc.supplemental.logging.mode",
        CdcLogging.DATA_BEFORE_AFTER,
        CdcLogging,
        "What change data files keep of a change: operation and key, the row before too, or the rows before and after.",
    )
    KEEP_OPERATIONS = bool_option(
        "hoodie.allow.operation.metadata.field",
        False,
        "Changelog mode of merge-on-read tables: the meta column _hoodie_operation has I, -U, U or D for every row, and the "
        "logs keep each change with the row before it.",
        aliases=("changelog.enabled", CHANGELOG_PROPERTY),
    )
    TIMESTAMP_TYPE = text_option(
        "hoodie.keygen.timebased.timestamp.type",
        None,
        "Input of the timestamp key generator: UNIX_TIMESTAMP, EPOCHMILLISECONDS, EPOCHMICROSECONDS, SCALAR, DATE_STRING, MIXED.",
        aliases=("hoodie.deltastreamer.keygen.timebased.timestamp.type",),
    )
    INPUT_DATE_FORMAT = text_option(
        "hoodie.keygen.timebased.input.dateformat",
        None,
        "Pattern(s) of the input text, comma separated.",
        aliases=("hoodie.deltastreamer.keygen.timebased.input.dateformat",),
    )
    INPUT_DATE_FORMAT_DELIMITER = text_option(
        "hoodie.keygen.timebased.input.dateformat.list.delimiter.regex",
        None,
        "Delimiter of the input patterns.",
        aliases=("hoodie.deltastreamer.keygen.timebased.input.dateformat.list.delimiter.regex",),
    )
    INPUT_TIME_ZONE = text_option(
        "hoodie.keygen.timebased.input.timezone",
        None,
        "Zone of input text without an offset, and of the partition path where no output zone is set. Tables that Apache Hudi "
        "made: none, so that a text keeps its offset; those of this engine keep UTC where it is not set.",
        aliases=("hoodie.deltastreamer.keygen.timebased.input.timezone",),
    )
    OUTPUT_DATE_FORMAT = text_option(
        "hoodie.keygen.timebased.output.dateformat",
        None,
        "Pattern of the partition path.",
        aliases=("hoodie.deltastreamer.keygen.timebased.output.dateformat",),
    )
    OUTPUT_TIME_ZONE = text_option(
        "hoodie.keygen.timebased.output.timezone",
        None,
        "Zone of the partition path, by a name of Java's such as `America/Los_Angeles` or `GMT-8`; where neither zone is set "
        "numbers are formatted in UTC, and by Apache Hudi in the zone of its machine.",
        aliases=("hoodie.deltastreamer.keygen.timebased.output.timezone",),
    )
    TIME_ZONE = text_option(
        "hoodie.keygen.timebased.timezone",
        None,
        "Zone used when input or output zone is not set.",
        aliases=("hoodie.deltastreamer.keygen.timebased.timezone",),
    )
    SCALAR_TIME_UNIT = text_option(
        "hoodie.keygen.timebased.timestamp.scalar.time.unit",
        None,
        "Unit of SCALAR input, e.g. DAYS.",
        aliases=("hoodie.deltastreamer.keygen.timebased.timestamp.scalar.time.unit",),
    )
