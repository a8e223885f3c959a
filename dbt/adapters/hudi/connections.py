"""dbt's connection manager over Spark sessions of this process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnContext
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.connection import (
    AdapterRequiredConfig,
    AdapterResponse,
    Connection,
    ConnectionState,
)
from dbt.adapters.events.types import ConnectionUsed, SQLQuery, SQLQueryStatus
from dbt.adapters.spark.connections import SparkConnectionManager
from dbt_common.events.contextvars import get_node_info
from dbt_common.events.functions import fire_event
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.utils.casting import cast_to_str
from hudi_engine.spark.sql.router import StatementRouter
from pyspark.sql import SparkSession

from dbt.adapters.hudi.credentials import HudiCredentials
from dbt.adapters.hudi.interrupt import end_in_order, show_no_stack
from dbt.adapters.hudi.preview import PREVIEW
from dbt.adapters.hudi.run import RUNS, name_hook, say_once
from dbt.adapters.hudi.spark.errors import dbt_errors
from dbt.adapters.hudi.spark.handle import HudiHandle
from dbt.adapters.hudi.sql.creating import SqlWarehouse

if TYPE_CHECKING:
    import agate

_BEFORE_RUN = "master"
# Commands that run only what models and macros need to be compiled, and those that always run something.
_ONLY_LOOK = ("compile", "list", "parse", "freshness", "source", "run-operation")
_ONLY_COMPILE = ("compile", "generate")
_RUN = ("run", "build", "test", "seed", "snapshot", "show", "retry", "clone", "generate")
_WRITE = ("run", "build", "seed", "snapshot", "retry", "clone")


class HudiConnectionManager(SparkConnectionManager):
    """Opens handles, runs SQL, hands out sessions for the engine."""

    TYPE = "hudi"

    def __init__(self, profile: AdapterRequiredConfig, mp_context: SpawnContext) -> None:
        super().__init__(profile, mp_context)
        RUNS.clear()
        show_no_stack()
        end_in_order()
        _check_threads(getattr(profile, "threads", None))
        assert isinstance(profile.credentials, HudiCredentials)
        command = getattr(getattr(profile, "args", None), "which", None)
        root = getattr(profile, "project_root", None)
        writes = command in _WRITE and not PREVIEW.is_on
        self.warehouse = SqlWarehouse(profile.credentials, root, writes=writes)
        self.router = StatementRouter(self.warehouse)
        self.only_looks = command in _ONLY_LOOK
        self.only_compiles = command in _ONLY_COMPILE
        if command in _RUN and not (self.warehouse.will_write and self.warehouse.read_only):
            self.warehouse.start_early()

    def open(self, connection: Connection) -> Connection:  # type: ignore[override]
        """Attach a handle; Spark starts when the first statement comes."""
        if connection.state != ConnectionState.OPEN:
            connection.handle = HudiHandle(
                self.warehouse.open_session,
                self.router,
                self.warehouse.writes,
                self.warehouse.register_sources,
            )
            connection.state = ConnectionState.OPEN
        return connection

    def set_connection_name(self, name: str | None = None) -> Connection:
        """Take or make the thread's connection; under this name dbt names the nodes of a run next."""
        if name == _BEFORE_RUN:
            RUNS.take_selected()
        return super().set_connection_name(name)

    def cancel(self, connection: Connection) -> None:
        """Stop what the connection is running."""
        connection.handle.cancel()

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Errors of Spark and of the engine become dbt's, here and nowhere else."""
        try:
            with dbt_errors(sql):
                yield
        except DbtRuntimeError as error:
            name_hook(error)
            say_once(error)
            raise

    @classmethod
    def get_response(cls, cursor: Any) -> AdapterResponse:
        """Return the response of the cursor's last statement."""
        return AdapterResponse("OK") if cursor is None else cursor.response

    @classmethod
    def data_type_code_to_name(cls, type_code: type | int | str) -> str:
        """Cursors describe columns by Spark's own type names."""
        return str(type_code)

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> tuple[AdapterResponse, agate.Table]:
        """Run SQL; a query runs to its end also if its rows are not fetched."""
        from dbt_common.clients.agate_helper import table_from_rows

        _, cursor = self.add_query(self._add_query_comment(sql), auto_begin)
        if fetch:
            table = self.get_result_from_cursor(cursor, limit)
        else:
            with self.exception_handler(sql):
                cursor.run_to_end()
            table = table_from_rows([], [])
        return self.get_response(cursor), table

    @contextmanager
    def work(self, description: str) -> Iterator[SparkSession]:
        """Lend the thread's session for work of the engine, logged and cancellable like a query."""
        connection = self.get_thread_connection()
        text = self._add_query_comment(description)
        fire_event(
            ConnectionUsed(
                conn_type=self.TYPE, conn_name=cast_to_str(connection.name), node_info=get_node_info()
            )
        )
        fire_event(SQLQuery(conn_name=cast_to_str(connection.name), sql=text, node_info=get_node_info()))
        start = time.perf_counter()
        with self.exception_handler(text), connection.handle.job(description) as session:
            yield session
        fire_event(
            SQLQueryStatus(
                status="OK", elapsed=time.perf_counter() - start, node_info=get_node_info(), query_id=None
            )
        )


def _check_threads(threads: object) -> None:
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise DbtRuntimeError(
            f"threads of the profile is {threads!r}; legal values: whole numbers of at least 1, such as 4"
        )
