"""The adapter: dbt's methods, each handing over to the room that does the work."""

from __future__ import annotations

import datetime
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.spark.impl import SparkAdapter, SparkConfig
from dbt_common.contracts.config.base import MergeBehavior
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.contracts.metadata import CatalogTable
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.errors import HudiError
from hudi_engine.format.config.options import laid_over
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.redact import shown_settings
from hudi_engine.spark.jvm.catalog import invalidate_cached_tables
from hudi_engine.spark.sql.ddl import check_function_version, drop_function_of
from hudi_engine.spark.sql.own_rows import with_state_read
from hudi_engine.spark.sql.statements import order_keys
from hudi_engine.spark.write.rows.casts import drop_meta_columns
from hudi_engine.table.state import TableState
from hudi_engine.table.write.metadata_only import rows_of_table
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.hudi.audit.run import Audit, audit_tests
from dbt.adapters.hudi.catalogs import (
    DirectoryCatalogIntegration,
    HiveCatalogIntegration,
    with_catalog,
)
from dbt.adapters.hudi.changes.consume import consumed
from dbt.adapters.hudi.changes.new_files import (
    FileFeeds,
    set_bad_files_aside,
    with_files,
    without_metadata,
)
from dbt.adapters.hudi.column import HudiColumn
from dbt.adapters.hudi.column_changes import ColumnChanges
from dbt.adapters.hudi.connections import HudiConnectionManager
from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.merge import STRATEGIES
from dbt.adapters.hudi.model.plan import ModelPlan, resolve_plan, time_limit
from dbt.adapters.hudi.model.run_notes import notes_of_run
from dbt.adapters.hudi.names import Names
from dbt.adapters.hudi.past_runs import PastRuns
from dbt.adapters.hudi.preview import PREVIEW
from dbt.adapters.hudi.relation import HudiRelation, in_session, named
from dbt.adapters.hudi.response import HudiAdapterResponse
from dbt.adapters.hudi.rows import builds, seeds, snapshots
from dbt.adapters.hudi.rows.alignment import chosen_columns, name_ignored, refuse_absent
from dbt.adapters.hudi.rows.builds import resumes_build
from dbt.adapters.hudi.rows.constraints import checked, read_constraints
from dbt.adapters.hudi.rows.deletes import stores_mark
from dbt.adapters.hudi.rows.python_models import run_python_model
from dbt.adapters.hudi.run import RUNS, ModelRun, hook_text, name_hook
from dbt.adapters.hudi.samples import check_sample, in_part
from dbt.adapters.hudi.spark import catalog_rows
from dbt.adapters.hudi.spark.catalog_rows import last_changes
from dbt.adapters.hudi.spark.folders import probe_writable
from dbt.adapters.hudi.spark.memory import warn_of_memory
from dbt.adapters.hudi.spark.new_names import rename
from dbt.adapters.hudi.spark.warehouse import Warehouse
from dbt.adapters.hudi.sql.creating import check_query

if TYPE_CHECKING:
    import agate


@dataclass
class HudiConfig(SparkConfig):
    """Model configs beyond dbt's own; what they mean is read in ``model_config``.

    The options of project, folder and model are put together, key by key; of one key the nearest to the model counts.
    """

    file_format: str = "hudi"
    table_type: str | None = None
    precombine_field: Any | None = None
    merge_mode: str | None = None
    index: Any | None = None
    hive_style_partitioning: bool | None = None
    options: dict[str, Any] | None = field(default=None, metadata=MergeBehavior.Update.meta())
    hudi_options: dict[str, Any] | None = field(default=None, metadata=MergeBehavior.Update.meta())
    merge_update_columns: Any | None = None
    merge_exclude_columns: Any | None = None
    skip_unchanged: bool | None = None
    as_of: Any | None = None
    compaction: Any | None = None
    clean: Any | None = None
    archive: Any | None = None
    clustering: Any | None = None
    audit: bool | None = None
    wap: bool | None = None
    pre_commit_tests: Any | None = None
    job_execution_timeout_seconds: int | None = None
    cluster_by: Any | None = None


class HudiAdapter(PastRuns, FileFeeds, ColumnChanges, Names, SparkAdapter):
    """dbt on Apache Hudi tables."""

    Relation = HudiRelation
    Column = HudiColumn
    ConnectionManager = HudiConnectionManager
    AdapterSpecificConfigs = HudiConfig
    CATALOG_INTEGRATIONS = (DirectoryCatalogIntegration, HiveCatalogIntegration)
    connections: HudiConnectionManager

    CONSTRAINT_SUPPORT = {
        ConstraintType.check: ConstraintSupport.ENFORCED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.NOT_ENFORCED,
        ConstraintType.primary_key: ConstraintSupport.NOT_ENFORCED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_ENFORCED,
    }
    _capabilities = CapabilityDict(
        {
            Capability.SchemaMetadataByRelations: CapabilitySupport(support=Support.Full),
            Capability.TableLastModifiedMetadata: CapabilitySupport(support=Support.Full),
            Capability.TableLastModifiedMetadataBatch: CapabilitySupport(support=Support.Full),
            Capability.MicrobatchConcurrency: CapabilitySupport(support=Support.Full),
            Capability.GetCatalogForSingleRelation: CapabilitySupport(support=Support.Full),
        }
    )

    @contextmanager
    def _work(self, description: str) -> Iterator[SparkSession]:
        with self.connections.work(description) as session:
            yield session

    @property
    def _warehouse(self) -> Warehouse:
        return self.connections.warehouse

    def pre_model_hook(self, config: Mapping[str, Any]) -> threading.Timer | None:
        """Begin the time that a node may take (``job_execution_timeout_seconds``)."""
        seconds = time_limit(config)
        return self.connections.get_thread_connection().handle.end_after(seconds) if seconds else None

    def post_model_hook(self, config: Mapping[str, Any], context: threading.Timer | None) -> None:  # noqa: ARG002
        """Lift the limit of time, and name the hook of which dbt could not make SQL."""
        if context is not None:
            context.cancel()
        failed = sys.exc_info()[1]  # dbt calls this as it passes an error on
        if isinstance(failed, DbtRuntimeError):
            name_hook(failed)

    # --- schemas and relations ----------------------------------------------------------------------------------

    @available.parse_none
    def drop_relation(self, relation: BaseRelation) -> None:
        if not PREVIEW.runs(f"drop {relation}"):
            return
        self.cache_dropped(relation)
        with self._work(f"drop {relation}") as session:
            name = in_session(session, relation)
            if relation.type == RelationType.Function:
                drop_function_of(session, self._warehouse.directory, name)
            elif not relation.include_policy.schema:
                session.catalog.dropTempView(name.name)
            elif relation.schema or not session.catalog.dropTempView(name.name):
                self._warehouse.drop(session, name.database, name.name)

    @available.parse_none
    def rename_relation(self, from_relation: BaseRelation, to_relation: BaseRelation) -> None:
        if not PREVIEW.runs(f"alter {from_relation}"):
            return
        self.cache_renamed(from_relation, to_relation)
        with self._work(f"rename {from_relation} to {to_relation}") as session:
            rename(
                self._warehouse, session, in_session(session, from_relation), in_session(session, to_relation)
            )

    @available.parse_list
    def get_columns_in_relation(self, relation: BaseRelation) -> list[HudiColumn]:
        with self._work(f"columns of {relation.render()}") as session:
            handle = self.connections.get_thread_connection().handle
            shown = handle.shown_for(relation.schema, relation.identifier)
            return catalog_rows.columns(session, relation, shown=shown)

    def expand_column_types(self, goal: BaseRelation, current: BaseRelation) -> None:
        """Spark's text has no length, so there is nothing to expand."""

    # --- types and seeds ----------------------------------------------------------------------------------------

    @classmethod
    def convert_number_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return seeds.number_type(agate_table, col_idx)

    @classmethod
    def convert_time_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return "string"

    @available.parse_none
    def hudi_seed(
        self, run: ModelRun, agate_table: agate.Table, column_types: Mapping[str, str]
    ) -> AdapterResponse:
        """Load a seed in one commit."""
        plan = run.plan
        types = seeds.seed_types(plan.name, agate_table, column_types or {}, self.convert_type)
        with self._work(f"load seed {plan.schema}.{plan.name}") as session:
            frame = seeds.seed_frame(session, agate_table, types)
            with self._audit(session, plan):
                return builds.rebuild_model(self._warehouse, session, plan, builds.ModelRows(frame))

    # --- models -------------------------------------------------------------------------------------------------

    def valid_incremental_strategies(self) -> list[str]:
        return [*STRATEGIES, *self._own_strategies()]

    @available.parse(lambda *_: {})
    def hudi_configs(self, model: Mapping[str, Any]) -> dict[str, object]:
        """Return a node's config with those under ``meta: {hudi: ...}``."""
        return self._config_of(model)

    @available.parse_none
    def hudi_plan(self, relation: BaseRelation, model: Mapping[str, Any]) -> ModelRun:
        """Check a node's whole config before anything runs, and begin its run."""
        name, known = named(relation), self.get_macro_resolver()
        plan = self._resolve(name.database, name.name, self.hudi_configs(model))
        node = str(model.get("unique_id") or "")
        table = f"{plan.schema}.{plan.name}".lower()
        run, root = RUNS.of(node), self._warehouse.places.project_root
        if run.inputs is None:
            run.inputs = self.inputs_of(model)
        tests = audit_tests(plan.audit, node, known, self.config)
        audits = [each.name for each in tests]
        notes = notes_of_run(model, root, plan.merge.window, table=table, inputs=run.inputs, audits=audits)
        plan = replace(plan, run_notes=notes, tests=tests, resumes=resumes_build(node, known))
        options = laid_over(self._warehouse.options, plan.write_options)
        logger.debug("{}.{} is written with options {}", plan.schema, plan.name, shown_settings(options))
        run = RUNS.begin(model, in_part(plan, self.config.args))
        run.begins = run.is_kind("snapshot")
        return run

    @available.parse_none
    def hudi_choose_build(self, run: ModelRun, existing: BaseRelation | None, full_refresh: bool) -> None:
        """Decide whether an incremental model's run builds its table or writes into it."""
        plan, keeps_rows = run.plan, (run.node.get("config") or {}).get("full_refresh") is False
        is_other = existing is not None and not self.is_hudi_table(existing)
        if PREVIEW.rebuilds:
            if not is_other:
                PREVIEW.refuse("its batches after the first go into a table that the first one rebuilds")
            existing = None  # dbt takes the table of the first batch, which is planned, for made
        elif is_other and existing is not None and existing.is_table and not full_refresh:
            # dbt goes by the relation's type where it chooses the batches of a run
            why = (
                "dbt would build its newest batches alone"
                if plan.merge.window
                else "its rows would be replaced"
            )
            way = "run it with --full-refresh"
            if keeps_rows:
                way = f"take full_refresh: false out of the model and {way} once, or drop the table"
            if plan.merge.window or keeps_rows:
                raise DbtRuntimeError(f"{existing.render()} is a table of another format; {why}: {way}")
        replaces = full_refresh and not plan.resumes
        run.rebuilds, run.begins = existing is None or replaces or is_other, not replaces

    @available.parse_none
    def hudi_check_sample(self, run: ModelRun, in_run: list[str]) -> None:
        """Refuse or warn of what a run with ``--sample`` would lose; see `samples.py`."""
        check_sample(run, in_run, self.get_macro_resolver())

    def _audit(self, session: SparkSession, plan: ModelPlan) -> AbstractContextManager[None]:
        """Run the model's tests over what the writes of a block leave, before they are committed."""
        handle = self.connections.get_thread_connection().handle
        return Audit(self._warehouse, handle, session, plan).watching()

    def _resolve(self, schema: str, name: str, config: Mapping[str, Any]) -> ModelPlan:
        config = with_catalog(config, self.get_catalog_integration, self.config.credentials.catalog)
        own = self._own_strategies()
        return resolve_plan({"config": config}, schema, name, self._warehouse.places, own)

    @available.parse_none
    def hudi_stage(self, run: ModelRun, relation: BaseRelation, code: str) -> None:
        """Analyse a query and name it; it fails for rows that break the contract where a macro is to write them."""
        name, plan = named(relation).name, run.plan

        def evaluate(session: SparkSession) -> None:
            frame = self._frame(session, run, code)
            if not plan.table.keeps_history:
                frame = consumed(plan, frame, run.feed, rebuilds=False)
            if plan.merge.operation is None:
                frame = checked(frame, read_constraints(run.node))
            frame.createOrReplaceTempView(name)

        with self._work(code) as session:
            evaluate(session)
        self.connections.get_thread_connection().handle.track_view(name)
        run.evaluate = evaluate

    def _frame(self, session: SparkSession, run: ModelRun, code: str) -> DataFrame:
        """Analyse a query; where it reads its model's own rows, the table as it was before is noted."""
        handle = self.connections.get_thread_connection().handle

        def analysed() -> DataFrame:
            if run.node.get("language") == "python":
                for table in run.feed.named:
                    schema, _, name = table.partition(".")
                    PREVIEW.check_unchanged(schema, name, "it is Python that may read", session)
                return run_python_model(session, run.plan.name, code)
            return without_metadata(session.sql(handle.with_states(session, code)), run.feed)

        frame, run.base = with_state_read(self._warehouse, session, run.plan, code, analysed)
        return frame

    @available.parse_none
    def hudi_rebuild(self, run: ModelRun, code: str) -> HudiAdapterResponse:
        """Run a model's query and make its rows the table, in one replace commit."""
        plan, is_incremental = run.plan, run.is_kind("incremental")
        with self._work(code) as session:
            set_bad_files_aside(self._warehouse, session, plan, run.feed)

            def write() -> HudiAdapterResponse:
                frame = self._frame(session, run, code)
                if is_incremental:
                    frame = consumed(plan, frame, run.feed, rebuilds=True)
                if is_incremental and plan.merge.operation == "delete":
                    frame = frame.limit(0)  # nothing is stored yet that its rows could delete
                noted = run.feed.noted_in(plan, rebuilds=True)
                stores = stores_mark(run.node, plan)
                with snapshots.keyed_rows(plan, frame, plan.table.versions_of) as keyed:
                    rows = builds.ModelRows(keyed, read_constraints(run.node), run.begins, run.base, stores)
                    with self._warehouse.one_writer(session, plan.base), self._audit(session, plan):
                        return builds.rebuild_model(self._warehouse, session, noted, rows, run)

            response = builds.evaluated_again(
                write, lambda: invalidate_cached_tables(session), plan.conflict_retries
            )
            return with_files(response, run.feed)

    @available.parse(lambda *_: False)
    def hudi_only_plans(self) -> bool:
        """Whether the run is planned (``dbt-hudi plan``) and writes nothing."""
        return PREVIEW.is_on

    @available.parse_none
    def hudi_refuse_plan(self, why: str) -> None:
        """Stop a node that cannot be planned; in a run that writes nothing happens."""
        PREVIEW.refuse(why)

    @available.parse_none
    def hudi_plan_view(self, relation: BaseRelation, sql: str, existing: BaseRelation | None) -> None:
        """Note the view that a planned run would make, and its rows for those that read it."""
        name = named(relation)
        with self._work(sql) as session:
            handle = self.connections.get_thread_connection().handle
            PREVIEW.note_rows(name.database, name.name, session.sql(handle.with_states(session, sql)))
            if existing is None or existing.is_view:
                PREVIEW.note_action("create view" if existing is None else "replace view")
                return
            base, gone = self.connections.warehouse.hudi_base(session, name.database, name.name), 0
        with suppress(HudiError):
            if base is not None:
                gone = rows_of_table(TableState.load(open_storage(base)))
        PREVIEW.note_action("replace table by view", gone)

    @available.parse_none
    def hudi_in_hook(self, when: str = "", number: int = 0, of: int = 0) -> None:
        """Note which hook of a node is under way, for the text of an error; none without arguments."""
        RUNS.current().hook = hook_text(when, number, of)

    @available.parse_none
    def hudi_check_query(self, sql: str, node: Mapping[str, Any] | None = None) -> None:
        """Refuse what is no query where dbt is about to show its rows."""
        check_query(sql, node)

    @available.parse_none
    def hudi_write(
        self, run: ModelRun, source: BaseRelation, columns: Sequence[Any] = ()
    ) -> HudiAdapterResponse:
        """Run a staged query and write its rows by the model's strategy."""
        if run.feed.brings_nothing:
            return HudiAdapterResponse(_message=run.feed.empty_message, code="OK")
        plan = run.feed.noted_in(run.plan, rebuilds=False)
        operation = plan.merge.operation
        with self._work(f"{operation} into {plan.schema}.{plan.name}") as session:
            set_bad_files_aside(self._warehouse, session, plan, run.feed)
            name = named(source).name
            frame = drop_meta_columns(session.table(name))
            wanted, absent = chosen_columns(frame.columns, [column.name for column in columns])
            if absent and operation != "delete" and plan.merge.on_schema_change == "ignore":
                builds.check_shape(plan, builds.current_table(self._warehouse, session, plan))
                roles = ("unique_key", "partition_by", "precombine_field")
                named_by_roles = {role: plan.named_columns[role] for role in roles}
                refuse_absent(f"{plan.schema}.{plan.name}", absent, frame.columns, wanted, named_by_roles)
            if operation != "delete" and plan.merge.on_schema_change == "ignore":
                name_ignored(f"{plan.schema}.{plan.name}", frame.columns, wanted)

            def write() -> HudiAdapterResponse:
                # by name: the query may have been evaluated again
                staged = drop_meta_columns(session.table(name)).select(*wanted)
                stores = stores_mark(run.node, plan)
                rows = builds.ModelRows(staged, read_constraints(run.node), base=run.base, stores_mark=stores)
                if builds.side_by_side(plan):
                    return builds.write_model(self._warehouse, session, plan, rows, run)
                with self._warehouse.one_writer(session, plan.base), self._audit(session, plan):
                    return builds.write_model(self._warehouse, session, plan, rows, run)

            response = builds.evaluated_again(
                write, lambda: _stage_again(run, session), plan.conflict_retries
            )
            return with_files(response, run.feed)

    @available.parse_none
    def hudi_snapshot(
        self, run: ModelRun, source: BaseRelation, valid_to: str, is_deleted: str, relation: BaseRelation
    ) -> HudiAdapterResponse:
        """Close changed rows of a snapshot, by the column ``valid_to``, and add new ones, in one upsert of the staged changes."""
        plan = run.plan
        with self._work(f"snapshot {plan.schema}.{plan.name}") as session:
            name = named(source).name

            def write() -> HudiAdapterResponse:
                # by name: the query may have been evaluated again
                rows = builds.ModelRows(session.table(name), base=run.base)
                with self._audit(session, plan):
                    return snapshots.write_snapshot(
                        self._warehouse, session, plan, rows, valid_to, is_deleted, relation.render()
                    )

            return builds.evaluated_again(write, lambda: _stage_again(run, session), plan.conflict_retries)

    @available.parse_none
    def hudi_comment(
        self,
        relation: BaseRelation,
        comment: str | None = None,
        column_comments: Mapping[str, str] | None = None,
    ) -> None:
        """Store descriptions of a Hudi table."""
        if not PREVIEW.runs(f"comment on {relation}"):
            return
        with self._work(f"comments of {relation}") as session:
            name = named(relation)
            self._warehouse.note(
                session, name.database, name.name, comment=comment, column_comments=column_comments
            )

    @available.parse_list
    def hudi_order_keys(self, clause: str) -> list[dict[str, str | bool]]:
        """Return the keys of an ORDER BY; see `sql/ordering.py`."""
        return order_keys(clause)

    @available.parse_none
    def hudi_check_functions(self, relation: BaseRelation) -> None:
        """Refuse a function resource where Spark has no SQL functions."""
        with self._work(f"create function {relation}") as session:
            check_function_version(session, relation.render())

    # --- docs, freshness, debug ---------------------------------------------------------------------------------

    def _get_one_catalog(self, information_schema: Any, schemas: Any, used_schemas: Any) -> agate.Table:
        relations = [relation for schema in schemas for relation in self._relations(schema)]
        return self._get_one_catalog_by_relations(information_schema, relations, used_schemas)

    def get_catalog_by_relations(
        self, used_schemas: frozenset[tuple[str, str]], relations: set[BaseRelation]
    ) -> tuple[agate.Table, list[Exception]]:
        with self.connection_named("catalog"):
            return self._get_one_catalog_by_relations(None, list(relations), used_schemas), []

    def _get_one_catalog_by_relations(
        self, information_schema: Any, relations: list[BaseRelation], used_schemas: Any
    ) -> agate.Table:
        with self._work("catalog") as session:
            return catalog_rows.catalog_table(self._warehouse, session, relations)

    def get_catalog_for_single_relation(self, relation: BaseRelation) -> CatalogTable | None:
        with self._work(f"catalog of {relation}") as session:
            return catalog_rows.catalog_entry(self._warehouse, session, relation)

    def calculate_freshness_from_metadata_batch(
        self, sources: list[BaseRelation], macro_resolver: Any = None
    ) -> tuple[list[AdapterResponse | None], dict[BaseRelation, Any]]:
        now = datetime.datetime.now(datetime.timezone.utc)
        times = last_changes(self._warehouse, self._work, sources)
        found = {source: self._create_freshness_response(time, now) for source, time in times.items()}
        return [AdapterResponse("OK")], found

    def debug_query(self) -> None:
        with self._work("write probe") as session:
            probe_writable(self._warehouse.places.location_root)
            session.sql("select 1 as id").collect()
            described = self._warehouse.described(session)
            warn_of_memory(session)
        logger.info("{}", described)

    @classmethod
    def _get_adapter_specific_run_info(cls, config: Any) -> dict[str, Any]:
        return {"adapter_type": "hudi", "table_format": "hudi"}

    def run_sql_for_tests(self, sql: str, fetch: str, conn: Any) -> Any:
        """Run the SQL of fixtures of dbt's test suite, several statements at once."""
        cursor = conn.handle.cursor()
        cursor.execute(sql)
        if fetch == "one":
            return cursor.fetchone()
        return cursor.fetchall() if fetch == "all" else None


def _stage_again(run: ModelRun, session: SparkSession) -> None:
    invalidate_cached_tables(session)
    assert run.evaluate is not None, "hudi_stage comes first"
    run.evaluate(session)
