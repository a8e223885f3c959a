"""CREATE, ALTER and DROP of tables, views, schemas and functions, with the warehouse kept in step."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from hudi_engine import HudiTable
from hudi_engine.errors import CorruptTableError, StatementError
from hudi_engine.spark.catalog import DirectoryCatalog, FunctionDefinition, function_names
from hudi_engine.spark.catalog.directory import held_in
from hudi_engine.spark.catalog.entry import CatalogEntry, EntryNotes, kept_name_problems
from hudi_engine.spark.catalog.kept import ViewDefinition
from hudi_engine.spark.catalog.sql_text import TableName, identifier, literal
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.read.reason import reason_of, spark_errors
from hudi_engine.spark.schema.spark_types import stored_type
from hudi_engine.spark.sql.folders import check_files
from hudi_engine.spark.sql.not_null import forget_columns, noted
from hudi_engine.spark.sql.statement import Statement, StatementResult, Target, data_columns, refused_face
from hudi_engine.spark.sql.warehouse import NewTable

_NEW = ("CreateTable", "CreateTableAsSelect")
_COMMENT = "comment"
# Keys of a column's metadata in the schema that Spark makes of CREATE TABLE (PySpark 3.5 and 4).
_NO_COLLATION = (
    "{}: a collation is not kept by a Hudi table; leave it out, and write COLLATE in the queries that compare"
)
_DEFAULT, _GENERATED, _IDENTITY = "CURRENT_DEFAULT", "GENERATION_EXPRESSION", "identity.start"
_FIRST_VERSION_WITH_FUNCTIONS = 4
_log = logging.getLogger(__name__)


# --- columns --------------------------------------------------------------------------------------------------------


def add_columns(statement: Statement, target: Target) -> StatementResult:
    """ALTER TABLE ... ADD COLUMNS."""
    table = statement.table(target)
    schema = data_columns(table)
    added, comments = [], {}
    for item in plans.items(statement.plan.columnsToAdd()):
        name = str(item.colName())
        if plans.option(item.path()) is not None:
            raise StatementError(
                f"column {name} of {target.label}: a field cannot be added inside a struct by SQL; rebuild the table"
            )
        if plans.option(item.position()) is not None:
            raise StatementError(
                f"column {name} of {target.label}: new columns come last; leave out FIRST and AFTER"
            )
        check_default(name, plans.default_text(item), target.label)
        column = T.StructField(name, plans.data_type(item.dataType()), bool(item.nullable()))
        check_added(column, target.label)
        added.append(column)
        comment = plans.option(item.comment())
        if comment is not None:
            comments[name] = str(comment)
    return _altered(statement, target, table, T.StructType([*schema.fields, *added]), comments)


def drop_columns(statement: Statement, target: Target) -> StatementResult:
    """ALTER TABLE ... DROP COLUMNS."""
    table = statement.table(target)
    schema = data_columns(table)
    dropped = {
        whole_column(plans.texts(item.name()), target.label).lower()
        for item in plans.items(statement.plan.columnsToDrop())
    }
    known = {column.name.lower() for column in schema.fields}
    if dropped - known and not statement.plan.ifExists():
        raise StatementError(
            f"{target.label} has no column {', '.join(sorted(dropped - known))}; its columns: {', '.join(schema.names)}"
        )
    kept = [column for column in schema.fields if column.name.lower() not in dropped]
    return _altered(statement, target, table, T.StructType(kept), {})


def alter_columns(statement: Statement, target: Target) -> StatementResult:
    """ALTER COLUMN, which PySpark 3.5 parses as one column, and PySpark 4 as any number of specifications."""
    plan = statement.plan
    if statement.kind == "AlterColumn":
        settings = (
            plan.dataType(),
            plan.comment(),
            plan.nullable(),
            plan.position(),
            plan.setDefaultExpression(),
        )
        return _alter_columns(statement, target, [(plan.column(), *settings)])
    return _alter_columns(
        statement,
        target,
        [
            (
                item.column(),
                item.newDataType(),
                item.newComment(),
                item.newNullability(),
                item.newPosition(),
                item.newDefaultExpression(),
            )
            for item in plans.items(plan.specs())
        ],
    )


def _alter_columns(
    statement: Statement, target: Target, changes: list[tuple[plans.JavaPlan, ...]]
) -> StatementResult:
    """Change types and comments of columns; what else Spark's grammar allows is refused by name."""
    table = statement.table(target)
    schema = data_columns(table)
    fields = {column.name.lower(): column for column in schema.fields}
    comments: dict[str, str] = {}
    for column, data_type, comment, nullable, position, default in changes:
        name = whole_column(plans.texts(column.name()), target.label)
        field = fields.get(name.lower())
        if field is None:
            raise StatementError(
                f"{target.label} has no column {name}; its columns: {', '.join(schema.names)}"
            )
        if plans.option(nullable) is not None or plans.option(position) is not None:
            raise StatementError(f"column {name} of {target.label}: only its type and comment can be altered")
        check_default(field.name, plans.sql_text(plans.option(default)), target.label)
        new_type, new_comment = plans.option(data_type), plans.option(comment)
        if new_type is not None:
            fields[name.lower()] = T.StructField(field.name, plans.data_type(new_type), True)
        if new_comment is not None:
            comments[field.name] = str(new_comment)
    changed = T.StructType([fields[column.name.lower()] for column in schema.fields])
    return _altered(statement, target, table, changed, comments)


def _altered(
    statement: Statement,
    target: Target,
    table: HudiTable,
    schema: T.StructType,
    comments: Mapping[str, str],
) -> StatementResult:
    """Give a table other columns and comments, made of those it had when it was opened: changes that others made since stay."""
    if comments and _is_foreign(statement, target):
        raise StatementError(
            f"{target.label} is the table of another writer at {target.base}, in which no comments are kept; leave COMMENT out"
        )
    before = data_columns(table)
    if _shape(schema) != _shape(before):
        table.alter_schema(schema)
        dropped = set(before.names) - set(schema.names)
        if dropped and not _is_foreign(
            statement, target
        ):  # the notes of another writer's table are that writer's
            forget_columns(table, dropped)
    statement.warehouse.show(statement.session, target.schema, target.name, table)
    if comments:
        statement.warehouse.add_comments(statement.session, target.schema, target.name, table, comments)
    return StatementResult()


def _is_foreign(statement: Statement, target: Target) -> bool:
    return statement.warehouse.is_foreign(statement.session, target.schema, target.name)


def _shape(schema: T.StructType) -> list[tuple[str, str]]:
    return [(column.name.lower(), stored_type(column.dataType.simpleString())) for column in schema.fields]


def comment_on_table(statement: Statement, target: Target) -> StatementResult | None:
    """COMMENT ON TABLE."""
    return _noted(statement, target, {_COMMENT: str(statement.plan.comment())}, ())


def analyze(statement: Statement, target: Target) -> StatementResult:
    """ANALYZE TABLE: the table's size is known from its commits, Spark would store zero bytes."""
    statement.warehouse.show(statement.session, target.schema, target.name, statement.table(target))
    return StatementResult()


def analyze_tables(statement: Statement) -> StatementResult | None:
    """ANALYZE TABLES of a schema: Spark measures the tables that are not Hudi's."""
    namespace, session = statement.plan.child(), statement.session
    parts = [] if plans.kind(namespace) == "CurrentNamespace$" else _name_parts(namespace)
    statement.check_catalog(parts)
    schema = parts[-1] if parts else session.catalog.currentDatabase()
    if not session.catalog.databaseExists(schema):
        return None
    scan = " noscan" if statement.plan.noScan() else ""
    for entry in statement.warehouse.entries(session, schema):
        if entry.base is None and not entry.is_view:
            session.sql(f"analyze table {entry.name.sql} compute statistics{scan}")
    return StatementResult()


# --- names ----------------------------------------------------------------------------------------------------------


def rename_table(statement: Statement, target: Target) -> StatementResult:
    """ALTER TABLE ... RENAME TO."""
    return _renamed(statement, TableName(target.schema, target.name))


def _renamed(statement: Statement, old: TableName) -> StatementResult:
    new = plans.texts(statement.plan.newName())
    schema = new[-2] if len(new) > 1 else old.database
    statement.warehouse.rename(statement.session, old, TableName(schema, new[-1]))
    return StatementResult()


def create_table_like(statement: Statement) -> None:
    """CREATE TABLE ... LIKE: Spark would give the new table the notes by which it reads the files of a Hudi one."""
    plan = statement.plan
    source = plan.source() if plans.hasattr_java(plan, "source") else plan.sourceTable()
    schema, name = statement.names(plans.target_parts(source)[0])
    if statement.warehouse.hudi_base(statement.session, schema, name) is not None:
        raise StatementError(
            f"CREATE TABLE ... LIKE the Hudi table {schema}.{name} is refused: CREATE TABLE ... USING hudi TBLPROPERTIES (...) "
            f"AS SELECT * FROM {schema}.{name} WHERE false makes an empty one with its columns"
        )


def set_properties(statement: Statement, target: Target) -> StatementResult | None:
    """ALTER TABLE ... SET TBLPROPERTIES: notes of the user's are kept; options of Hudi would change nothing there."""
    given = plans.pairs(statement.plan.properties())
    options = sorted(key for key in given if key.startswith("hoodie."))
    if options:
        raise StatementError(
            f"SET TBLPROPERTIES of {', '.join(options)} on the Hudi table {target.label} is refused: writes do not look there; set "
            "them under options of the model or the profile"
        )
    return _noted(statement, target, given, ())


def unset_properties(statement: Statement, target: Target) -> StatementResult | None:
    """ALTER TABLE ... UNSET TBLPROPERTIES."""
    return _noted(statement, target, {}, plans.texts(statement.plan.propertyKeys()))


def _noted(
    statement: Statement, target: Target, given: Mapping[str, str], unset: Sequence[str]
) -> StatementResult | None:
    """Keep properties with the table, where every later process finds them; those of another writer's table are Spark's alone."""
    warehouse, session = statement.warehouse, statement.session
    if _is_foreign(statement, target):
        return None
    table = statement.table(target)
    kept = {**EntryNotes.load(table.storage).properties, **given}
    comment = kept.pop(_COMMENT, "" if _COMMENT in unset else None)
    for name in unset:
        kept.pop(name, None)
    warehouse.register(session, target.schema, target.name, table, comment=comment, properties=kept)
    return StatementResult()


def drop_target(statement: Statement, target: Target) -> StatementResult:
    """DROP TABLE."""
    statement.warehouse.drop(statement.session, target.schema, target.name)
    return StatementResult()


def other_target(statement: Statement) -> StatementResult | None:
    """DROP TABLE and RENAME of what is no Hudi table in Spark's catalog: views keep their definition file in step."""
    named = statement.lasting(plans.target_parts(statement.plan.child())[0])
    if named is None:
        return None
    schema, name = named
    entry = statement.warehouse.entry(statement.session, schema, name)
    if statement.kind == "RenameTable" and entry is not None and entry.reads_only:
        return _renamed(statement, TableName(schema, name))
    return None


def create_view(statement: Statement) -> StatementResult:
    """CREATE VIEW: Spark makes it, the warehouse keeps its definition."""
    schema, name = statement.names(plans.texts(statement.plan.child().nameParts()))
    if problems := kept_name_problems(name):
        raise StatementError(f"CREATE VIEW {schema}.{name} is refused: {'; '.join(problems)}")
    if statement.plan.allowExisting() and (
        statement.warehouse.entry(statement.session, schema, name)
        or is_kept(statement, ViewDefinition, TableName(schema, name))
    ):
        return StatementResult()
    _write_view(statement, schema, name)
    return StatementResult()


def _write_view(statement: Statement, schema: str, name: str) -> None:
    entry = _refuse_table(statement, schema, name)
    if entry is not None and entry.is_face:
        raise refused_face(f"{schema}.{name}", entry.base)
    statement.session.sql(statement.text)
    statement.warehouse.save_view(statement.session, schema, name)


def is_kept(statement: Statement, kind: type[ViewDefinition | FunctionDefinition], name: TableName) -> bool:
    """Make the session know a view or function that another process has made; returns whether there is one."""
    directory, kept = statement.warehouse.directory, TableName(name.database.lower(), name.name)
    try:
        return directory is not None and directory.restore(statement.session, kind, kept)
    except spark_errors(CorruptTableError) as error:
        what = "view" if kind is ViewDefinition else "function"
        raise StatementError(
            f"the {what} {name.label} is there, as another process has made it, but cannot be used: {reason_of(error)}. "
            f"CREATE OR REPLACE {what.upper()} replaces it"
        ) from error


def _refuse_table(statement: Statement, schema: str, name: str) -> CatalogEntry | None:
    """Return what the catalog has under the name of a view; the view by which Spark knows a merge-on-read table is the table."""
    entry = statement.warehouse.entry(statement.session, schema, name)
    if entry is not None and entry.is_hudi_table:
        raise StatementError(
            f"{schema}.{name} is the Hudi table at {entry.base} and no view; ALTER TABLE alters it, DROP TABLE drops it"
        )
    return entry


def alter_view(statement: Statement) -> StatementResult | None:
    """ALTER VIEW ... AS, SET and UNSET TBLPROPERTIES and WITH SCHEMA: Spark does it; a temporary view is Spark's alone."""
    named = statement.lasting(plans.target_parts(statement.plan.child())[0])
    if named is None:
        return None
    _write_view(statement, *named)
    return StatementResult()


def drop_view(statement: Statement) -> StatementResult | None:
    """DROP VIEW; a temporary view is Spark's."""
    named = statement.lasting(plans.texts(statement.plan.child().nameParts()))
    if named is None:
        return None
    schema, name = named
    entry = _refuse_table(statement, schema, name)
    directory = statement.warehouse.directory
    # a view that could not be restored has its file alone
    if entry is None and directory is not None and directory.remove_view(schema.lower(), name):
        return StatementResult()
    if entry is None or not entry.reads_only:
        return None
    statement.warehouse.drop(statement.session, schema, name)
    return StatementResult()


def create_schema(statement: Statement) -> StatementResult | None:
    """CREATE SCHEMA: below the location root, unless it names a place of its own."""
    properties = plans.pairs(statement.plan.properties())
    parts = _name_parts(statement.plan.name())
    statement.check_catalog(parts)
    if "location" in properties or len(parts) != 1:
        return None
    exists = statement.session.catalog.databaseExists(parts[0])
    if exists and not statement.plan.ifNotExists():
        return None
    statement.warehouse.create_schema(statement.session, parts[0])
    if properties and not exists:
        _note_schema(statement, parts[0], properties)
    return StatementResult()


def _note_schema(statement: Statement, schema: str, properties: dict[str, str]) -> None:
    """Keep comment and properties of a new schema in Spark's catalog."""
    comment = properties.pop(_COMMENT, None)
    if comment is not None:
        statement.session.sql(f"comment on database {identifier(schema)} is {literal(comment)}")
    if properties:
        pairs = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
        statement.session.sql(f"alter database {identifier(schema)} set dbproperties ({pairs})")
    if statement.warehouse.directory is not None:
        _log.warning(
            "CREATE SCHEMA %s: a folder keeps no COMMENT and no DBPROPERTIES, so that they end with this process",
            schema,
        )


def drop_schema(statement: Statement) -> StatementResult | None:
    """DROP SCHEMA ... CASCADE with the files of its Hudi tables."""
    parts = _name_parts(statement.plan.namespace())
    statement.check_catalog(parts)
    if len(parts) != 1 or not statement.session.catalog.databaseExists(parts[0]):
        return None
    if not statement.plan.cascade():
        _refuse_held(statement, parts[0])
    statement.warehouse.drop_schema(statement.session, parts[0])
    return StatementResult()


def _refuse_held(statement: Statement, schema: str) -> None:
    """Refuse to drop a schema with something in it: other processes may have made tables that this session does not list."""
    folder = statement.warehouse.schema_folder(schema)
    listed = [entry.name.name for entry in statement.warehouse.entries(statement.session, schema)]
    held = sorted({*listed, *held_in(folder)})
    if held:
        more = f" and {len(held) - 5} more" if len(held) > 5 else ""
        raise StatementError(
            f"[SCHEMA_NOT_EMPTY] the schema {schema} is not empty: it holds {', '.join(held[:5])}{more} ({folder}); drop what is "
            "there first, or use DROP SCHEMA ... CASCADE, which removes all of it with its files"
        )


def _name_parts(node: plans.JavaPlan) -> list[str]:
    for method in ("multipartIdentifier", "nameParts"):
        if plans.hasattr_java(node, method):
            return plans.texts(getattr(node, method)())
    raise StatementError(f"the name cannot be read from {node.toString()}")


# --- new tables -----------------------------------------------------------------------------------------------------


def create_table(statement: Statement) -> StatementResult | None:
    """CREATE TABLE with columns or AS SELECT: a Hudi table with USING hudi or without USING; other formats are left to Spark."""
    plan, spec = statement.plan, statement.plan.tableSpec()
    location, comment = plans.option(spec.location()), plans.option(spec.comment())
    if not makes_hudi_table(plan):
        if location is not None and statement.kind in _NEW:
            check_files(statement.session, statement.warehouse, str(location))
        return None
    name = TableName(*statement.names(plans.texts(plan.name().nameParts())))
    check_new_table(spec, name.label)
    schema, rows = T.StructType(), None
    if statement.kind.endswith("AsSelect"):
        rows = partial(plans.frame, statement.session, plan.query())
    else:
        schema = plans.struct_type(plan.tableSchema())
        check_new_columns(schema, name.label)
    replaces = statement.kind.startswith("Replace")
    new = NewTable(
        name,
        T.StructType([T.StructField(each.name, _plain_type(each.dataType), True) for each in schema.fields]),
        rows,
        location=None if location is None else str(location),
        options=plans.pairs(spec.optionExpression().options()),
        properties=plans.pairs(spec.properties()),
        partition_by=[_identity(item, name.label) for item in plans.items(plan.partitioning())],
        replaces=replaces,
        if_not_exists=not replaces and bool(plan.ignoreIfExists()),
        comment="" if comment is None else str(comment),
        column_comments={
            each.name: each.metadata["comment"] for each in schema.fields if "comment" in each.metadata
        },
        notes=noted(schema),
    )
    return StatementResult(write=statement.warehouse.create_table(statement.session, new))


def makes_hudi_table(plan: plans.JavaPlan) -> bool:
    """Whether a CREATE TABLE makes a Hudi table, and no other format's."""
    spec = plan.tableSpec()
    provider = plans.option(spec.provider())
    return (provider is None or str(provider).lower() == "hudi") and plans.option(spec.serde()) is None


def _identity(transform: plans.JavaPlan, label: str) -> str:
    if plans.kind(transform) != "IdentityTransform":
        raise StatementError(
            f"PARTITIONED BY or CLUSTER BY ({transform.toString()}) of {label} is refused: partition by columns, which may be "
            "selected as expressions; {{ hudi_cluster(...) }} puts rows in order"
        )
    return str(transform.describe()).strip("`")


def _plain_type(kind: T.DataType) -> T.DataType:
    """Bounded text becomes text: a Hudi table has no length limit."""
    return T.StringType() if isinstance(kind, (T.CharType, T.VarcharType)) else kind


# --- what a Hudi table does not keep of a column ------------------------------------------------------------------------


def check_new_table(spec: plans.JavaPlan, label: str) -> None:
    """Refuse table-level clauses of a CREATE TABLE of PySpark 4 that a Hudi table does not keep."""
    if plans.hasattr_java(spec, "constraints") and spec.constraints().size():
        kinds = ", ".join(
            plans.kind(each).removesuffix("Constraint") for each in plans.items(spec.constraints())
        )
        raise StatementError(
            f"{label}: a Hudi table keeps no constraints ({kinds}): a key is TBLPROPERTIES (primaryKey = 'id'), and the contract "
            "of a model checks the rest"
        )
    if plans.hasattr_java(spec, "collation") and plans.option(spec.collation()) is not None:
        raise StatementError(_NO_COLLATION.format(label))


def check_new_columns(schema: T.StructType, label: str) -> None:
    """Refuse columns of a CREATE TABLE whose values the table would have to fill in."""
    for column in schema.fields:
        _refuse_required_inside(column, label)
        if getattr(column.dataType, "collation", None) not in (None, "UTF8_BINARY"):
            raise StatementError(_NO_COLLATION.format(f"column {column.name} of {label}"))
        if _GENERATED in column.metadata or _IDENTITY in column.metadata:
            raise StatementError(
                f"column {column.name} of {label}: GENERATED columns are not computed by a Hudi table; "
                "leave it out and select the expression where rows are written"
            )
        check_default(column.name, column.metadata.get(_DEFAULT), label)


def check_added(column: T.StructField, label: str) -> None:
    """Refuse an added column that is NOT NULL, itself or inside: the stored rows lack it."""
    if not column.nullable:
        raise StatementError(
            f"column {column.name} of {label}: a column that is added cannot be NOT NULL, as the rows there lack it; leave that out"
        )
    _refuse_required_inside(column, label)


def whole_column(parts: Sequence[str], label: str) -> str:
    """Return the name of a column that a statement drops or changes; raises StatementError for a field of a struct."""
    if len(parts) > 1:
        raise StatementError(
            f"{'.'.join(parts)} of {label} is a field inside of column {parts[0]}: a field cannot be dropped or be given another "
            "type or a comment, by SQL; name a whole column, or rebuild the table"
        )
    return parts[0]


def check_default(column: str, default: str | None, label: str) -> None:
    """Refuse a default (SQL text, None for none) other than null, which every column has."""
    if default is not None and default.strip().lower() != "null":
        raise StatementError(
            f"column {column} of {label}: DEFAULT {default} is not kept by a Hudi table and rows would read NULL; "
            f"leave it out, and write the value (`coalesce({column}, {default})`) where rows are written"
        )


def _refuse_required_inside(column: T.StructField, label: str) -> None:
    if '"nullable":false' in column.dataType.json():
        raise StatementError(
            f"column {column.name} of {label}: NOT NULL is kept for whole columns, not inside of one; leave it out, and check it "
            "where rows are written (the contract of a model: `type: check`)"
        )


# --- functions ------------------------------------------------------------------------------------------------------


def check_function_version(session: SparkSession, name: str) -> None:
    """Refuse a function in a Spark older than 4, which has no SQL functions."""
    if int(session.version.split(".")[0]) < _FIRST_VERSION_WITH_FUNCTIONS:
        raise StatementError(
            f"function {name}: SQL functions need PySpark 4, and this is Spark {session.version}; install pyspark>=4, or "
            "write the function as a macro"
        )


def drop_function_of(session: SparkSession, directory: DirectoryCatalog | None, name: TableName) -> None:
    """Drop a function; no error when it is not there."""
    session.sql(f"drop function if exists {identifier(name.database)}.{identifier(name.name)}")
    if directory is not None:
        directory.remove_function(name.database.lower(), name.name)


def create_function(statement: Statement) -> StatementResult:
    """CREATE FUNCTION ... RETURN."""
    session, name, directory = statement.session, _name(statement), statement.warehouse.directory
    if statement.plan.ignoreIfExists() and (
        name.name.lower() in function_names(session, name.database)
        or is_kept(statement, FunctionDefinition, name)
    ):
        return StatementResult()
    check_function_version(session, name.label)
    session.sql(statement.text)
    if directory is not None:
        kept = TableName(name.database.lower(), name.name)
        directory.save_function(FunctionDefinition(kept, statement.text, session.catalog.currentDatabase()))
    return StatementResult()


def drop_function(statement: Statement) -> StatementResult:
    """DROP FUNCTION: Spark drops it or reports that it is not there, and the kept definition is removed."""
    name, directory = _name(statement), statement.warehouse.directory
    statement.session.sql(statement.text)
    if directory is not None:
        directory.remove_function(name.database.lower(), name.name)
    return StatementResult()


def _name(statement: Statement) -> TableName:
    return TableName(*statement.names(_name_parts(statement.plan.child())))
