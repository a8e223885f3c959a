"""CREATE, ALTER and DROP of tables, views and schemas, with the warehouse told about each."""

from __future__ import annotations

from collections.abc import Mapping

from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable, rebuild_table
from hudi_engine.catalog.entry import CatalogEntry
from pyspark.sql import types as T

from dbt.adapters.hudi.column import stored_type
from dbt.adapters.hudi.model.plan import ModelPlan, resolve_plan
from dbt.adapters.hudi.response import HudiAdapterResponse, write_response
from dbt.adapters.hudi.rows.alignment import drop_meta_columns
from dbt.adapters.hudi.rows.builds import data_columns, with_options
from dbt.adapters.hudi.spark.handle import Routed
from dbt.adapters.hudi.sql import not_null, plans
from dbt.adapters.hudi.sql.column_rules import check_added, check_default, check_new_columns, check_new_table
from dbt.adapters.hudi.sql.statements import files_read, with_absolute_files
from dbt.adapters.hudi.sql.targets import Statement, Target

_OK = AdapterResponse("OK")


# --- columns --------------------------------------------------------------------------------------------------------


def add_columns(statement: Statement, target: Target) -> Routed:
    """ALTER TABLE ... ADD COLUMNS."""
    schema = data_columns(statement.table(target))
    added, comments = [], {}
    for item in plans.items(statement.plan.columnsToAdd()):
        name = str(item.colName())
        if plans.option(item.path()) is not None:
            raise DbtRuntimeError(
                f"column {name} of {target.label}: a field cannot be added inside a struct by SQL; rebuild the table"
            )
        if plans.option(item.position()) is not None:
            raise DbtRuntimeError(
                f"column {name} of {target.label}: new columns come last; leave out FIRST and AFTER"
            )
        check_default(name, plans.default_text(item), target.label)
        column = T.StructField(name, plans.data_type(item.dataType()), bool(item.nullable()))
        check_added(column, target.label)
        added.append(column)
        comment = plans.option(item.comment())
        if comment is not None:
            comments[name] = str(comment)
    return _altered(statement, target, T.StructType([*schema.fields, *added]), comments)


def drop_columns(statement: Statement, target: Target) -> Routed:
    """ALTER TABLE ... DROP COLUMNS."""
    schema = data_columns(statement.table(target))
    dropped = {
        ".".join(plans.texts(item.name())).lower() for item in plans.items(statement.plan.columnsToDrop())
    }
    known = {column.name.lower() for column in schema.fields}
    if dropped - known and not statement.plan.ifExists():
        raise DbtRuntimeError(
            f"{target.label} has no column {', '.join(sorted(dropped - known))}; its columns: {', '.join(schema.names)}"
        )
    kept = [column for column in schema.fields if column.name.lower() not in dropped]
    return _altered(statement, target, T.StructType(kept), {})


def alter_column(statement: Statement, target: Target) -> Routed:
    """ALTER COLUMN of PySpark 3.5: one column a statement."""
    plan = statement.plan
    return _alter_columns(
        statement,
        target,
        [
            (
                plan.column(),
                plan.dataType(),
                plan.comment(),
                plan.nullable(),
                plan.position(),
                plan.setDefaultExpression(),
            )
        ],
    )


def alter_columns(statement: Statement, target: Target) -> Routed:
    """ALTER COLUMN of PySpark 4: any number of columns."""
    changes = [
        (
            item.column(),
            item.newDataType(),
            item.newComment(),
            item.newNullability(),
            item.newPosition(),
            item.newDefaultExpression(),
        )
        for item in plans.items(statement.plan.specs())
    ]
    return _alter_columns(statement, target, changes)


def _alter_columns(statement: Statement, target: Target, changes: list[tuple[plans.JavaPlan, ...]]) -> Routed:
    """Change types and comments of columns; what else Spark's grammar allows is refused by name."""
    schema = data_columns(statement.table(target))
    fields = {column.name.lower(): column for column in schema.fields}
    comments: dict[str, str] = {}
    for column, data_type, comment, nullable, position, default in changes:
        name = ".".join(plans.texts(column.name()))
        field = fields.get(name.lower())
        if field is None:
            raise DbtRuntimeError(
                f"{target.label} has no column {name}; its columns: {', '.join(schema.names)}"
            )
        if plans.option(nullable) is not None or plans.option(position) is not None:
            raise DbtRuntimeError(
                f"column {name} of {target.label}: only its type and comment can be altered"
            )
        check_default(field.name, plans.sql_text(plans.option(default)), target.label)
        new_type, new_comment = plans.option(data_type), plans.option(comment)
        if new_type is not None:
            fields[name.lower()] = T.StructField(field.name, plans.data_type(new_type), True)
        if new_comment is not None:
            comments[field.name] = str(new_comment)
    changed = T.StructType([fields[column.name.lower()] for column in schema.fields])
    return _altered(statement, target, changed, comments)


def _altered(
    statement: Statement, target: Target, schema: T.StructType, comments: Mapping[str, str]
) -> Routed:
    table = statement.table(target)
    if _shape(schema) != _shape(data_columns(table)):
        table.alter_schema(schema)
    statement.warehouse.register(statement.session, target.schema, target.name, table)
    if comments:
        statement.warehouse.add_comments(statement.session, target.schema, target.name, table, comments)
    return Routed(_OK)


def _shape(schema: T.StructType) -> list[tuple[str, str]]:
    return [(column.name.lower(), stored_type(column.dataType.simpleString())) for column in schema.fields]


def comment_on_table(statement: Statement, target: Target) -> Routed:
    """COMMENT ON TABLE."""
    table = statement.table(target)
    statement.warehouse.register(
        statement.session, target.schema, target.name, table, comment=str(statement.plan.comment())
    )
    return Routed(_OK)


def analyze(statement: Statement, target: Target) -> Routed:
    """ANALYZE TABLE: the table's size is known from its commits, Spark would store zero bytes."""
    statement.warehouse.show(statement.session, target.schema, target.name, statement.table(target))
    return Routed(_OK)


# --- names ----------------------------------------------------------------------------------------------------------


def rename_table(statement: Statement, target: Target) -> Routed:
    """ALTER TABLE ... RENAME TO."""
    new = plans.texts(statement.plan.newName())
    new_schema = new[-2] if len(new) > 1 else target.schema
    statement.warehouse.rename(statement.session, target.schema, target.name, new_schema, new[-1])
    return Routed(_OK)


def create_table_like(statement: Statement) -> None:
    """CREATE TABLE ... LIKE: Spark would give the new table the notes by which it reads the files of a Hudi one."""
    plan = statement.plan
    source = plan.source() if plans.hasattr_java(plan, "source") else plan.sourceTable()
    schema, name = statement.names(plans.target_parts(source)[0])
    if statement.warehouse.hudi_base(statement.session, schema, name) is not None:
        raise DbtRuntimeError(
            f"CREATE TABLE ... LIKE the Hudi table {schema}.{name} is refused: CREATE TABLE ... USING hudi TBLPROPERTIES (...) "
            f"AS SELECT * FROM {schema}.{name} WHERE false makes an empty one with its columns"
        )


def set_properties(statement: Statement, target: Target) -> Routed | None:
    """ALTER TABLE ... SET TBLPROPERTIES: Spark keeps notes of the user's, but options of Hudi would change nothing there."""
    options = sorted(
        key
        for pair in plans.items(statement.plan.properties())
        if (key := str(pair._1())).startswith("hoodie.")
    )
    if options:
        raise DbtRuntimeError(
            f"SET TBLPROPERTIES of {', '.join(options)} on the Hudi table {target.label} is refused: writes do not look there; set "
            "them under options of the model or the profile"
        )
    return None


def drop_target(statement: Statement, target: Target) -> Routed:
    """DROP TABLE."""
    statement.warehouse.drop(statement.session, target.schema, target.name)
    return Routed(_OK)


def other_target(statement: Statement) -> Routed | None:
    """DROP TABLE and RENAME of what is no Hudi table in Spark's catalog: views keep their definition file in step."""
    parts, _ = plans.target_parts(statement.plan.child())
    if len(parts) == 1:
        return None
    schema, name = statement.names(parts)
    entry = statement.warehouse.entry(statement.session, schema, name)
    if statement.kind == "RenameTable" and entry is not None and entry.reads_only:
        new = plans.texts(statement.plan.newName())
        statement.warehouse.rename(
            statement.session, schema, name, new[-2] if len(new) > 1 else schema, new[-1]
        )
        return Routed(_OK)
    return None


def create_view(statement: Statement) -> Routed:
    """CREATE VIEW: Spark makes it, the warehouse keeps its definition."""
    schema, name = statement.names(plans.texts(statement.plan.child().nameParts()))
    if statement.plan.allowExisting() and statement.warehouse.entry(statement.session, schema, name):
        return Routed(_OK)
    _refuse_table(statement, schema, name)
    statement.session.sql(_lasting(statement))
    statement.warehouse.save_view(statement.session, schema, name)
    return Routed(_OK)


def _refuse_table(statement: Statement, schema: str, name: str) -> CatalogEntry | None:
    """Return what the catalog has under the name of a view; the view by which Spark knows a merge-on-read table is the table."""
    entry = statement.warehouse.entry(statement.session, schema, name)
    if entry is not None and entry.is_hudi_table:
        raise DbtRuntimeError(
            f"{schema}.{name} is the Hudi table at {entry.base} and no view; DROP TABLE drops it"
        )
    return entry


def _lasting(statement: Statement) -> str:
    """Return the text of a view as every later process has to read it, wherever that runs."""
    catalog = statement.session.catalog
    schemas = [name for name in files_read(statement.text) if catalog.databaseExists(name)]
    return with_absolute_files(statement.text, statement.warehouse.places.project_root, schemas)


def alter_view(statement: Statement) -> Routed:
    """ALTER VIEW ... AS."""
    parts, _ = plans.target_parts(statement.plan.child())
    schema, name = statement.names(parts)
    _refuse_table(statement, schema, name)
    statement.session.sql(_lasting(statement))
    statement.warehouse.save_view(statement.session, schema, name)
    return Routed(_OK)


def drop_view(statement: Statement) -> Routed | None:
    """DROP VIEW; a temporary view is Spark's."""
    named = statement.lasting(plans.texts(statement.plan.child().nameParts()))
    if named is None:
        return None
    schema, name = named
    entry = _refuse_table(statement, schema, name)
    if entry is None or not entry.reads_only:
        return None
    statement.warehouse.drop(statement.session, schema, name)
    return Routed(_OK)


def create_schema(statement: Statement) -> Routed | None:
    """CREATE SCHEMA: below the location root, unless it names a place of its own."""
    properties = {str(pair._1()): str(pair._2()) for pair in plans.items(statement.plan.properties())}
    parts = _schema_parts(statement.plan.name())
    statement.check_catalog(parts)
    if "location" in properties or len(parts) != 1:
        return None
    exists = statement.session.catalog.databaseExists(parts[0])
    if exists and not statement.plan.ifNotExists():
        return None
    statement.warehouse.create_schema(statement.session, parts[0])
    return Routed(_OK)


def drop_schema(statement: Statement) -> Routed | None:
    """DROP SCHEMA ... CASCADE with the files of its Hudi tables."""
    parts = _schema_parts(statement.plan.namespace())
    statement.check_catalog(parts)
    if len(parts) != 1 or not statement.session.catalog.databaseExists(parts[0]):
        return None
    if not statement.plan.cascade() and statement.warehouse.entries(statement.session, parts[0]):
        return None
    statement.warehouse.drop_schema(statement.session, parts[0])
    return Routed(_OK)


def _schema_parts(node: plans.JavaPlan) -> list[str]:
    for method in ("multipartIdentifier", "nameParts"):
        if plans.hasattr_java(node, method):
            return plans.texts(getattr(node, method)())
    raise DbtRuntimeError(f"the schema's name cannot be read from {node.toString()}")


# --- CREATE TABLE ---------------------------------------------------------------------------------------------------


def create_from_columns(statement: Statement) -> Routed | None:
    """CREATE TABLE with columns: a Hudi table when it says USING hudi or nothing."""
    plan = _new_table(statement)
    if plan is None or isinstance(plan, Routed):
        return plan
    schema = plans.struct_type(statement.plan.tableSchema())
    check_new_columns(schema, f"{plan.schema}.{plan.name}")
    columns = [T.StructField(column.name, _plain_type(column.dataType), True) for column in schema.fields]
    HudiTable.create(statement.session, plan.base, schema=T.StructType(columns), **plan.definition)
    return _made(statement, plan, _OK, schema)


def create_table_as_select(statement: Statement) -> Routed | None:
    """CREATE TABLE AS SELECT: a Hudi table when it says USING hudi or nothing."""
    plan = _new_table(statement)
    if plan is None or isinstance(plan, Routed):
        return plan
    frame = drop_meta_columns(plans.frame(statement.session, statement.plan.query()))
    definition = with_options(plan, statement.warehouse.options)
    result = rebuild_table(statement.session, plan.base, frame, **definition)
    return _made(statement, plan, write_response(result))


def _table_plan(statement: Statement) -> ModelPlan | None:
    """Return the plan of a CREATE TABLE, None when it asks for another format."""
    spec = statement.plan.tableSpec()
    provider = plans.option(spec.provider())
    if (provider is not None and str(provider).lower() != "hudi") or plans.option(spec.serde()) is not None:
        return None
    parts = plans.texts(statement.plan.name().nameParts())
    schema, name = statement.names(parts)
    check_new_table(spec, f"{schema}.{name}")
    location = plans.option(spec.location())
    properties = {str(pair._1()): str(pair._2()) for pair in plans.items(spec.properties())}
    options = {
        str(pair._1()): str(pair._2().toString()) for pair in plans.items(spec.optionExpression().options())
    }
    partitions = [_identity(item, f"{schema}.{name}") for item in plans.items(statement.plan.partitioning())]
    config: dict[str, object] = {
        "materialized": "table",
        "options": options,
        "tblproperties": properties,
        "partition_by": partitions,
    }
    places = statement.warehouse.places
    plan = resolve_plan({"config": config}, schema, name, places)
    if location is None:
        return plan
    return ModelPlan(**{**plan.__dict__, "base": str(location), "own_location": True})


def _identity(transform: plans.JavaPlan, label: str) -> str:
    if plans.kind(transform) != "IdentityTransform":
        raise DbtRuntimeError(
            f"PARTITIONED BY or CLUSTER BY ({transform.toString()}) of {label} is refused: partition by columns, which may be "
            "selected as expressions; {{ hudi_cluster(...) }} puts rows in order"
        )
    return str(transform.describe()).strip("`")


def _new_table(statement: Statement) -> ModelPlan | Routed | None:
    """Return the plan of a table to make: None when it is not Hudi's, the answer when it is there and may be."""
    plan = _table_plan(statement)
    if plan is None:
        return None
    if not statement.session.catalog.databaseExists(plan.schema):
        raise DbtRuntimeError(
            f"[SCHEMA_NOT_FOUND] the schema {plan.schema} of {plan.schema}.{plan.name} does not exist; CREATE SCHEMA "
            f"{plan.schema} first"
        )
    return Routed(_OK) if _exists(statement, plan) else plan


def _exists(statement: Statement, plan: ModelPlan) -> bool:
    """Whether the name is taken and the statement is content with that."""
    replace = statement.kind.startswith("Replace")
    entry = statement.warehouse.entry(statement.session, plan.schema, plan.name)
    if entry is None:
        return False
    if not replace:
        if statement.plan.ignoreIfExists():
            return True
        kind = "view" if entry.reads_only else "table"
        raise DbtRuntimeError(
            f"[TABLE_OR_VIEW_ALREADY_EXISTS] the {kind} {plan.schema}.{plan.name} exists; drop it first"
        )
    if statement.kind == "ReplaceTable" or not entry.is_hudi_table:
        statement.warehouse.drop(statement.session, plan.schema, plan.name)
    return False


def _made(
    statement: Statement,
    plan: ModelPlan,
    response: HudiAdapterResponse | AdapterResponse,
    schema: T.StructType | None = None,
) -> Routed:
    """Register a table that was just made, with what its statement says of it and its columns."""
    table = statement.warehouse.table(statement.session, plan.base)
    statement.warehouse.register_plan(statement.session, plan, table)
    comment = plans.option(statement.plan.tableSpec().comment())
    comments = {
        column.name: column.metadata["comment"]
        for column in (schema or T.StructType()).fields
        if "comment" in column.metadata
    }
    required = not_null.noted(schema or T.StructType())
    if comment is not None or comments or required:
        statement.warehouse.register(
            statement.session,
            plan.schema,
            plan.name,
            table,
            comment=None if comment is None else str(comment),
            column_comments=comments or None,
            properties={**plan.properties, **required} or None,
        )
    return Routed(response)


def _plain_type(kind: T.DataType) -> T.DataType:
    """Bounded text becomes text: a Hudi table has no length limit."""
    return T.StringType() if isinstance(kind, (T.CharType, T.VarcharType)) else kind
