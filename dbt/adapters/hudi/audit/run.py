"""Running a model's tests over the rows its table is about to have."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.schema.meta_fields import META_FIELDS
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.sql.failure import is_cancellation, short_message
from hudi_engine.spark.sql.query import with_view
from hudi_engine.spark.sql.statement import own_name
from hudi_engine.spark.sql.statements import QUERIES, first_keyword
from hudi_engine.table.write.inspection import before_commit
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.audit import AuditConfig, AuditTest, PlannedTest
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.rows.failing_rows import failures_query
from dbt.adapters.hudi.spark.handle import HudiHandle
from dbt.adapters.hudi.spark.warehouse import Warehouse


def audit_tests(wanted: AuditConfig, unique_id: str, manifest: Any, config: Any) -> tuple[PlannedTest, ...]:
    """Find the tests that a model's config names."""
    if not wanted:
        return ()
    every = [node for node in manifest.nodes.values() if str(node.resource_type) == "test"]
    about = [node for node in every if unique_id in node.depends_on.nodes]
    chosen = {node.unique_id: node for node in about if wanted.everything and _is_attached(node, unique_id)}
    for name in wanted.named:
        found = [node for node in about if name in _names(node)]
        if not found:
            known = ", ".join(sorted(node.name for node in about)) or "none"
            raise DbtRuntimeError(
                f"pre_commit_tests of {unique_id} names {name!r}, but no test of the model has this name; nothing was run. Its "
                f"tests: {known}"
            )
        chosen.update({node.unique_id: node for node in found})
    if wanted.everything and not chosen:
        logger.warning(
            "audit is on for {}, but no test is attached to it: nothing looks at its rows", unique_id
        )
    return (
        *(
            PlannedTest(node.name, partial(_compiled, node, unique_id, manifest, config))
            for node in chosen.values()
        ),
        *(PlannedTest(name, partial(AuditTest, name, sql)) for name, sql in wanted.written),
    )


def warnings_fail() -> bool:
    """Whether dbt takes a test that warns for one that fails: `--warn-error`, or its options name results of tests."""
    from dbt.flags import get_flags

    flags: Any = get_flags()  # type: ignore[no-untyped-call]
    return bool(flags.WARN_ERROR or flags.WARN_ERROR_OPTIONS.includes("LogTestResult"))


def _is_attached(node: Any, unique_id: str) -> bool:
    """Whether a test is a node's: a generic one where it is written, a singular one where it reads no other node."""
    attached = getattr(node, "attached_node", None)
    if getattr(node, "test_metadata", None) is not None:
        return bool(attached == unique_id)
    return set(node.depends_on.nodes) == {unique_id}


def _names(node: Any) -> set[str]:
    kind = getattr(node, "test_metadata", None)
    return {node.name, node.alias, node.unique_id, *(() if kind is None else (kind.name,))}


def _compiled(node: Any, unique_id: str, manifest: Any, config: Any) -> AuditTest:
    # dbt runs, so its compiler is there; whoever only reads the adapter's rooms does not wait for it
    from dbt.compilation import Compiler

    with _not_deferred(manifest.nodes[unique_id]):
        done: Any = Compiler(config).compile_node(copy.deepcopy(node), manifest, write=False)
    settings = node.config
    sql = str(done.compiled_code)
    if settings.limit is not None:
        sql = f"select * from (\n{sql}\n) dbt_hudi_failing\nlimit {int(settings.limit)}"
    return AuditTest(
        node.name,
        sql,
        settings.fail_calc,
        settings.warn_if,
        settings.error_if,
        str(settings.severity).lower(),
        (node.schema, node.alias) if node.should_store_failures else None,
    )


@contextmanager
def _not_deferred(audited: Any) -> Iterator[None]:
    """Let refs to a node mean the table that it builds: before the first one is there, dbt takes what it defers to for it.

    No other node needs it meanwhile: those that refer to the node run after it.
    """
    deferred = getattr(audited, "defer_relation", None)
    if deferred is None:
        yield
        return
    audited.defer_relation = None
    try:
        yield
    finally:
        audited.defer_relation = deferred


_THIS = "this"


@dataclass(frozen=True)
class UncommittedView:
    """A view of the rows that a model's table is about to have, read in place of the table while a test compiles and runs."""

    plan: ModelPlan
    view: str

    def in_statement(self, session: SparkSession, statement: str) -> str:
        """Return a statement that reads the view where it is a query that named the table; any other one as it is."""
        if first_keyword(statement) not in QUERIES:
            return statement
        return with_view(session, statement, lambda parts: self._is_meant(session, parts), self.view)

    def shown_for(self, schema: str | None, name: str | None) -> str | None:
        """Return the name of the view where a relation is the table, None where it is another one."""
        relation = (str(schema or "").lower(), str(name or "").lower())
        return f"`{self.view}`" if relation == self._own else None

    @property
    def _own(self) -> tuple[str, str]:
        return self.plan.schema.lower(), self.plan.name.lower()

    def _is_meant(self, session: SparkSession, parts: list[str]) -> bool:
        if [part.lower() for part in parts] == [_THIS]:
            return True
        named = own_name(session, parts)
        return named is not None and (named[0].lower(), named[1].lower()) == self._own


class Audit:
    """The tests of one write."""

    def __init__(
        self, warehouse: Warehouse, handle: HudiHandle, session: SparkSession, plan: ModelPlan
    ) -> None:
        self._warehouse = warehouse
        self._handle = handle
        self._session = session
        self._plan = plan
        self._view = f"dbt_hudi_to_be_{uuid.uuid4().hex}"

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Test what the writes of this block leave, before readers see it."""
        if not self._plan.tests:
            yield
            return
        with before_commit(self.look):
            yield

    def look(self, rows: DataFrame) -> None:
        """Run every test over the rows, and raise one error that names those that fail."""
        # names of tables show no meta columns either
        rows.drop(*META_FIELDS).createOrReplaceTempView(self._view)
        self._handle.stand_in = UncommittedView(self._plan, self._view)
        try:
            failed = [message for test in self._plan.tests if (message := self._run(test)) is not None]
        finally:
            self._handle.stand_in = None
            self._session.catalog.dropTempView(self._view)
        if failed:
            raise DbtRuntimeError(_failure(self._plan, failed, is_first=self._is_first()))
        logger.debug(
            "{} test(s) of {}.{} passed before the commit",
            len(self._plan.tests),
            self._plan.schema,
            self._plan.name,
        )

    def _is_first(self) -> bool:
        """Whether no table has the name yet."""
        return self._warehouse.hudi_base(self._session, self._plan.schema, self._plan.name) is None

    def _run(self, planned: PlannedTest) -> str | None:
        """Return the message of a test that fails, None for one that passes."""
        try:
            test = planned.compiled()
        except DbtRuntimeError as error:
            return f"{planned.name} cannot be compiled over the rows to be: {error.msg}"
        with self._handle.job(f"{test.name} before the commit"):
            pass  # sources that it is the first to name are made known where work begins
        try:
            query = self._query(test.counted)
            failures, should_warn, should_error = self._session.sql(query).collect()[0]
        except PySparkException as error:
            if is_cancellation(error):
                raise
            return f"{test.name} cannot be run over the rows to be: {short_message(error)}"
        limit = test.error_if
        if not (should_error and test.severity == "error"):
            if not should_warn:
                return None
            limit = test.warn_if
            if not warnings_fail():
                logger.warning("{}: got {} result(s), configured to warn if {}", test.name, failures, limit)
                return None
        stored = "" if test.store is None else f"; {self._stored(test, test.store)}"
        return f"{test.name}: got {failures} result(s), configured to fail if {limit}{stored}"

    def _stored(self, test: AuditTest, place: tuple[str, str]) -> str:
        """Keep the failing rows in a table; the test's result counts also where that fails."""
        schema, name = place
        try:
            self._warehouse.create_schema(self._session, schema)
            cursor = self._handle.cursor()
            query = self._query(test.sql)
            failures = failures_query(query, self._session.sql(query).schema)
            cursor.execute(
                f"create or replace table {quoted(schema)}.{quoted(name)} using hudi as {failures}"
            )
            cursor.run_to_end()
        except Exception as error:  # the test has failed, which this must not hide
            return f"its failing rows could not be stored in {schema}.{name}: {error}"
        return f"its failing rows are in {schema}.{name}"

    def _query(self, sql: str) -> str:
        return self._handle.with_states(self._session, sql)


def _failure(plan: ModelPlan, failed: Sequence[str], *, is_first: bool) -> str:
    listed = "\n".join(f"  * {each}" for each in failed)
    left = "no table is made" if is_first else "the table is as it was"
    return f"{len(failed)} of {len(plan.tests)} test(s) of {plan.schema}.{plan.name} failed before the commit; {left}:\n{listed}"
