"""SHOW CREATE TABLE of a Hudi table: a statement that makes it again by its name, without its rows."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_engine.errors import StatementError
from hudi_engine.format.config.declared.table_options import CHANGELOG_PROPERTY, TableOptions
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.table_config import TableConfig, partition_kinds
from hudi_engine.format.storage.uris import same_place
from hudi_engine.spark.catalog.entry import EntryNotes
from hudi_engine.spark.catalog.sql_text import identifier, literal, type_text
from hudi_engine.spark.sql.not_null import NOT_NULL
from hudi_engine.spark.sql.statement import Statement, StatementResult, Target, data_columns
from hudi_engine.table.write.define.definition import table_properties
from hudi_engine.table.write.define.table_options import PARTITION_OPTIONS, STICKY_INDEX, same_definition

_COLUMN = "createtab_stmt string"
_KEPT = (
    *(each.key for each in STICKY_INDEX),
    TableOptions.CHANGE_DATA_CAPTURE.key,
    TableOptions.CDC_LOGGING.key,
    TableOptions.CONSISTENT_TIMESTAMPS.key,
    TableOptions.MERGE_RULE.key,
)
"""Properties of a table that are options of a new one under the same key."""
_PREFIXES = ("hoodie.keygen.timebased.", "hoodie.payload.delete.")
_OF_THE_ENGINE = "dbt."


def show_create_table(statement: Statement) -> StatementResult | None:
    """SHOW CREATE TABLE; None for what is no Hudi table, or is one of its names that only reads."""
    target = statement.target()
    if target is None or target.is_face:
        return None
    rows = [(_statement(statement, target),)]
    return StatementResult(frame=statement.session.createDataFrame(rows, _COLUMN))


def _statement(statement: Statement, target: Target) -> str:
    """Return the CREATE TABLE; StatementError for a table whose properties no statement can give."""
    table = statement.table(target)
    config, notes = table.config, EntryNotes.load(table.storage)
    properties = {**_shape(config), **notes.properties}
    not_null = properties.pop(NOT_NULL, "").lower().split(",")
    columns = []
    for field in data_columns(table).fields:
        comment = notes.column_comments.get(field.name)
        columns.append(
            f"  {identifier(field.name)} {type_text(field.dataType)}"
            + " NOT NULL" * (field.name.lower() in not_null)
            + (f" COMMENT {literal(comment)}" if comment else "")
        )
    pairs = [
        f"  {literal(key)} = {literal(value)}"
        for key, value in properties.items()
        if not key.startswith(_OF_THE_ENGINE)
    ]
    place = f"{statement.warehouse.schema_folder(target.schema)}/{target.name}"
    clauses = [
        f"CREATE TABLE {identifier(target.schema)}.{identifier(target.name)} (",
        ",\n".join(columns) + ")",
        "USING hudi",
        *([f"COMMENT {literal(notes.comment)}"] if notes.comment else []),
        *([] if same_place(target.base, place) else [f"LOCATION {literal(target.base)}"]),
        "TBLPROPERTIES (",
        ",\n".join(pairs) + ")",
    ]
    return "\n".join(clauses) + "\n"


def _shape(config: TableConfig) -> Mapping[str, str]:
    """Return the options that give a new table the definition of one that is there."""
    kinds = partition_kinds(config.properties)
    partitions = [
        f"{each.name}:{kinds[each.name]}" if each.name in kinds else each.name
        for each in config.partition_fields
    ]
    fields = {
        "primaryKey": ",".join(config.record_key_fields),
        "preCombineField": ",".join(config.ordering_fields),
        # an option, as a field of them may lie in a struct, or have a kind for its key generator
        PARTITION_OPTIONS[0]: ",".join(partitions),
    }
    options = {
        key: value for key, value in config.properties.items() if key in _KEPT or key.startswith(_PREFIXES)
    }
    if config.properties.get(CHANGELOG_PROPERTY, "").lower() == "true":
        options[TableOptions.KEEP_OPERATIONS.key] = "true"
    usual = _defined(config, fields, options)
    if config.key_generator is not usual.key_generator:
        options[TableOptions.KEY_GENERATOR_TYPE.key] = config.key_generator.value
    if config.version != usual.version:
        options[TableOptions.TABLE_VERSION.key] = str(config.version)
    if config.merge_mode is not usual.merge_mode:
        by_class = {TableOptions.PAYLOAD_CLASS.key: config.payload_class or ""}
        options.update(
            by_class if config.payload_class else {TableOptions.MERGE_MODE.key: config.merge_mode.value}
        )
    flags = {
        TableOptions.HIVE_STYLE_PARTITIONING.key: str(config.hive_style).lower(),
        TableOptions.URL_ENCODE_PARTITIONS.key: str(config.url_encode).lower(),
    }
    if not same_definition(config, _defined(config, fields, {**options, **flags})):
        raise StatementError(
            f"SHOW CREATE TABLE is refused for the table at hand, {config.name}: its hoodie.properties have what no CREATE TABLE "
            f"gives; CALL show_table_properties(table => '{config.name}') shows them"
        )
    if partitions:  # a warehouse may have defaults of its own
        options.update(flags)
    kind = "mor" if config.table_type is TableType.MERGE_ON_READ else "cow"
    return {"type": kind, **{key: value for key, value in fields.items() if value}, **options}


def _defined(config: TableConfig, fields: Mapping[str, str], options: Mapping[str, str]) -> TableConfig:
    """Return what a CREATE TABLE with some options would make."""
    key, ordering, partitions = (each.split(",") if each else None for each in fields.values())
    return table_properties(
        None,
        name=config.name,
        record_key=key,
        precombine_field=ordering,
        partition_by=partitions,
        table_type=config.table_type.value,
        options={**options, TableOptions.DATABASE_NAME.key: config.database},
    )
