"""Writes of DataFrames, and calls of the catalog, as the SQL statements that say the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.connect import proto

from hudi_engine.errors import StatementError
from hudi_engine.spark.catalog.sql_text import identifier, literal
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.sql.folders import check_files
from hudi_engine.spark.sql.session import StatementSession

_HUDI = "hudi"
_PATH = "path"
_AS_OF = "as.of.instant"
_V1, _V2 = proto.WriteOperation, proto.WriteOperationV2
_AS_CREATED = {
    _V1.SAVE_MODE_UNSPECIFIED: "create table",
    _V1.SAVE_MODE_ERROR_IF_EXISTS: "create table",
    _V1.SAVE_MODE_IGNORE: "create table if not exists",
    _V1.SAVE_MODE_OVERWRITE: "create or replace table",
    _V1.SAVE_MODE_APPEND: "create table",
}
_INTO = (_V1.SAVE_MODE_APPEND, _V1.SAVE_MODE_OVERWRITE)
_AS_CREATED_V2 = {
    _V2.MODE_CREATE: "create table",
    _V2.MODE_REPLACE: "replace table",
    _V2.MODE_CREATE_OR_REPLACE: "create or replace table",
}
# Calls of the catalog that change what the engine keeps; the others look at it.
_CALLS: Mapping[str, str] = {
    "drop_table": "drop table {if_exists} {table_name} {purge}",
    "drop_view": "drop view {if_exists} {view_name}",
    "truncate_table": "truncate table {table_name}",
    "analyze_table": "analyze table {table_name} compute statistics {no_scan}",
    "recover_partitions": "msck repair table {table_name}",
    "create_database": "create schema {if_not_exists} {db_name}",
    "drop_database": "drop schema {if_exists} {db_name} {cascade}",
}
_CLAUSES = {
    "if_exists": "if exists",
    "if_not_exists": "if not exists",
    "purge": "purge",
    "no_scan": "noscan",
    "cascade": "cascade",
}
_MADE_BY_CATALOG = ("create_table", "create_external_table")


@dataclass(frozen=True)
class Write:
    """A write as a statement.

    Args:
        rows: What is written, under the name of a view in the text.
        by_partition: Whether an INSERT OVERWRITE replaces the partitions that the rows have, and leaves the others; None for what
            the session says.
    """

    text: str
    rows: proto.Relation
    by_partition: bool | None = None


class Writes:
    """Writes of one session; what is no Hudi table's is left to Spark."""

    def __init__(self, statements: StatementSession) -> None:
        self._statements = statements

    def as_statement(self, command: proto.Command, view: str) -> Write | None:
        """Return a command that writes as a statement, None where Spark may run it itself; StatementError for what neither may do.

        Args:
            view: The name that the statement has for the rows.
        """
        kind = command.WhichOneof("command_type")
        if kind == "write_operation":
            self._carry_out_drop(command.write_operation.table.table_name)
            return self._v1(command.write_operation, view)
        if kind == "write_operation_v2":
            self._carry_out_drop(command.write_operation_v2.table_name)
            return self._v2(command.write_operation_v2, view)
        if kind == "merge_into_table_command" and self._base(
            command.merge_into_table_command.target_table_name
        ):
            raise StatementError(
                f"mergeInto {command.merge_into_table_command.target_table_name} is refused: make the rows a temporary view and "
                "write MERGE INTO ... USING the view with spark.sql"
            )
        if kind == "write_stream_operation_start":
            self._check_stream(command.write_stream_operation_start)
        return None

    def _carry_out_drop(self, name: str) -> None:
        """Have a write find no table that the session has dropped."""
        if name:
            self._statements.held.take(f"table {name}")

    def _v1(self, write: proto.WriteOperation, view: str) -> Write | None:
        """Return what ``df.write`` does as a statement: insertInto, and saveAsTable in its modes."""
        if not write.HasField("table"):
            self._check_path(write.path or write.options.get(_PATH, ""), write.source)
            return None
        name, source = write.table.table_name, write.source.lower()
        base = self._base(name)
        is_hudi = base is not None
        is_insert = write.table.save_method == _V1.SaveTable.TABLE_SAVE_METHOD_INSERT_INTO
        if base is not None and (is_insert or write.mode in _INTO):
            self._check_as_it_is(name, base, write, is_insert=is_insert)
        if is_insert:
            if not is_hudi:
                self._check_path_table(name)
                return None
            how = "overwrite" if write.mode == _V1.SAVE_MODE_OVERWRITE else "into"
            return Write(f"insert {how} {self._name(name)} select * from {identifier(view)}", write.input)
        if not is_hudi and self._is_of_spark(name, source):
            self._check_path(write.options.get(_PATH, ""), source)
            return None
        for what, given in (("sortBy", write.sort_column_names), ("clusterBy", write.clustering_columns)):
            _refuse(name, what, given)
        _refuse(name, "bucketBy", write.bucket_by.bucket_column_names)
        if is_hudi and write.mode == _V1.SAVE_MODE_APPEND:
            return Write(
                f"insert into {self._name(name)} by name select * from {identifier(view)}", write.input
            )
        if is_hudi and write.mode == _V1.SAVE_MODE_OVERWRITE and source in ("", _HUDI) and not write.options:
            # the table stays the one that it is, with its keys
            return Write(
                f"insert overwrite {self._name(name)} by name select * from {identifier(view)}",
                write.input,
                by_partition=False,
            )
        made = f"{_AS_CREATED[write.mode]} {self._name(name)} {_clauses(source, write.options, write.partitioning_columns)}"
        return Write(f"{made} as select * from {identifier(view)}", write.input)

    def _v2(self, write: proto.WriteOperationV2, view: str) -> Write | None:
        """Return what ``df.writeTo`` does as a statement."""
        name, source = write.table_name, write.provider.lower()
        if write.mode not in _AS_CREATED_V2:
            if self._base(name) is None:
                self._check_path_table(name)
                return None
            if write.mode == _V2.MODE_OVERWRITE:
                raise StatementError(
                    f"writeTo({name!r}).overwrite(condition) is refused: write INSERT INTO {name} REPLACE WHERE condition "
                    "SELECT ... with spark.sql, or call overwritePartitions()"
                )
            _refuse_options(name, write.options)
            by_partition = write.mode == _V2.MODE_OVERWRITE_PARTITIONS or None
            how = "overwrite" if by_partition else "into"
            text = f"insert {how} {self._name(name)} by name select * from {identifier(view)}"
            return Write(text, write.input, by_partition)
        if self._base(name) is None and self._is_of_spark(name, source):
            self._check_path(write.table_properties.get(_PATH, write.options.get(_PATH, "")), source)
            return None
        _refuse(name, "clusterBy", write.clustering_columns)
        columns = [each.unresolved_attribute.unparsed_identifier for each in write.partitioning_columns]
        if not all(columns):
            raise StatementError(f"partitionedBy of {name} takes columns, and no functions of them")
        options = {**write.options, **write.table_properties}
        made = f"{_AS_CREATED_V2[write.mode]} {self._name(name)} {_clauses(source, options, columns)}"
        return Write(f"{made} as select * from {identifier(view)}", write.input)

    def prepare(self, relation: proto.Relation) -> None:
        """Have a relation read the state of a Hudi table that its options ask for; StatementError for what it cannot read."""
        read, named = relation.read, relation.read.named_table
        if read.HasField("data_source") and read.data_source.format.lower() == _HUDI:
            raise StatementError(
                "spark.read.format('hudi') is refused, as it needs the bundle of Hudi: read the table by its name, "
                "spark.table('schema.t')"
            )
        given = {key.lower(): value for key, value in named.options.items()}
        name = named.unparsed_identifier
        if not name or not (read.is_streaming or given) or self._base(name) is None:
            return
        state = given.pop(_AS_OF, None)
        if read.is_streaming or given:
            what = "readStream" if read.is_streaming else f"reading with {', '.join(given)}"
            raise StatementError(
                f"{what} of the Hudi table {name} is refused: hudi_table_changes('schema.t', 'latest_state', "
                f"start) returns what changed since a commit, with spark.sql, and the option {_AS_OF} reads an earlier state"
            )
        if state is not None:
            how = "version" if state.isdigit() else "timestamp"
            relation.sql.query = f"select * from {self._name(name)} {how} as of {literal(state)}"

    def catalog_statement(self, catalog: proto.Catalog) -> str | None:
        """Return a call that changes names as a statement, None where Spark may run it itself."""
        kind = catalog.WhichOneof("cat_type")
        if kind is None:
            return None
        call: Any = getattr(catalog, kind)
        if kind in _MADE_BY_CATALOG and call.source.lower() in ("", _HUDI):
            raise StatementError(
                f"catalog.createTable of the Hudi table {call.table_name} is refused: write CREATE TABLE ... USING hudi "
                "with spark.sql"
            )
        if kind in _MADE_BY_CATALOG:
            self._check_path(call.path, call.source)
        if kind not in _CALLS:
            return None
        words = {key: (text if getattr(call, key, False) else "") for key, text in _CLAUSES.items()}
        names = {
            field.name: self._name(value)
            for field, value in call.ListFields()
            if field.name.endswith("_name")
        }
        return " ".join(_CALLS[kind].format_map({**words, **names}).split())

    def _check_as_it_is(self, name: str, base: str, write: proto.WriteOperation, *, is_insert: bool) -> None:
        """Raise StatementError for a write into a Hudi table that asks for another table than it is, or for another operation."""
        source, given = write.source.lower(), [each.lower() for each in write.partitioning_columns]
        if (
            write.mode == _V1.SAVE_MODE_OVERWRITE
            and not is_insert
            and (source not in ("", _HUDI) or write.options)
        ):
            return  # the table is made anew
        if source not in ("", _HUDI):
            raise StatementError(
                f"{name} is a Hudi table, and the write has the format {source}: leave the format out"
            )
        _refuse_options(name, write.options)
        config = self._statements.warehouse.table(self._statements.spark, base).config
        there = [each.name.lower() for each in config.partition_fields]
        if given and (is_insert or given != there):
            raise StatementError(
                f"partitionBy({', '.join(given)}) of a write into {name}, which is partitioned by "
                f"{', '.join(there) or 'nothing'}: leave it out"
            )

    def _check_stream(self, write: proto.WriteStreamOperationStart) -> None:
        if write.format.lower() == _HUDI or (write.table_name and self._base(write.table_name)):
            raise StatementError(
                f"writeStream into the Hudi table {write.table_name or write.path} is refused: write each batch with "
                "df.write.insertInto('schema.t') or INSERT INTO"
            )
        self._check_path(write.path or write.options.get(_PATH, ""), write.format)

    def _is_of_spark(self, name: str, source: str) -> bool:
        """Whether a table that is no Hudi table stays none; what names no format is one, as with CREATE TABLE, where it is new."""
        return source not in ("", _HUDI) or (
            not source and self._statements.spark.catalog.tableExists(self._name(name))
        )

    def _base(self, name: str) -> str | None:
        return self._statements.hudi_base(plans.name_parts(self._statements.spark, name))

    def _name(self, name: str) -> str:
        """Return a name as a statement has it; Spark's ParseException for a text that is more than a name."""
        return ".".join(identifier(each) for each in plans.name_parts(self._statements.spark, name))

    def _check_path_table(self, name: str) -> None:
        """Raise StatementError for a name such as ``parquet.`/folder` `` that means files of a Hudi table."""
        parts = plans.name_parts(self._statements.spark, name)
        if len(parts) == 2 and "/" in parts[1]:
            self._check_path(parts[1], "")

    def _check_path(self, path: str, source: str) -> None:
        """Raise StatementError for files that would be written as a Hudi table, into one, or in the place of some."""
        if source.lower() == _HUDI:
            raise StatementError(
                f"format('hudi').save({path!r}) is refused: write to a table by its name, "
                "df.write.format('hudi').saveAsTable('schema.t'), with option('path', ...) where it is to lie elsewhere"
            )
        if path:
            check_files(self._statements.spark, self._statements.warehouse, path)


def _refuse_options(name: str, options: Mapping[str, str]) -> None:
    if options:
        raise StatementError(
            f"options of a write into the Hudi table {name} are refused: {', '.join(sorted(options))}. A write appends or "
            "overwrites; MERGE INTO upserts and DELETE FROM deletes, with spark.sql, and TBLPROPERTIES set options of the table"
        )


def _refuse(name: str, what: str, given: Sequence[str]) -> None:
    if given:
        raise StatementError(
            f"{what} of the Hudi table {name} is refused: TBLPROPERTIES and partitionBy say how its files are laid out"
        )


def _clauses(source: str, options: Mapping[str, str], columns: Iterable[str]) -> str:
    """Return what a CREATE TABLE says of its table."""
    using = f"using {source}" if source else ""
    names = ", ".join(identifier(each.strip("`")) for each in columns)
    partitioned = f"partitioned by ({names})" if names else ""
    location = f"location {literal(options[_PATH])}" if _PATH in options else ""
    pairs = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in options.items() if key != _PATH)
    properties = f"tblproperties ({pairs})" if pairs else ""
    return " ".join(each for each in (using, partitioned, location, properties) if each)
