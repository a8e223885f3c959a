"""The calls of HiveServer2's TCLIService: a message in, the message that answers it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import types as T

from hudi_engine.server import binary, listings
from hudi_engine.server.binary import Fields, Message
from hudi_engine.server.limits import ServerError
from hudi_engine.server.row_sets import row_set, table_schema
from hudi_engine.server.sessions import (
    FINISHED,
    ClientSession,
    Operation,
    Sessions,
    log,
)
from hudi_engine.spark.sql.failure import Failure, failure_of
from hudi_engine.spark.sql.session import Rows

_OLDEST_PROTOCOL, _NEWEST_PROTOCOL = 5, 7  # HIVE_CLI_SERVICE_PROTOCOL_V6, the first with columns, and V8
_SUCCESS, _ERROR, _INVALID_HANDLE = 0, 3, 4
_FETCH_NEXT, _FETCH_FIRST = 0, 4
_LOGS = 1
_DEFAULT_ROWS = 1000
# What a statement without a result shows, as with Spark's own server: that there is one is said before it runs.
_NO_RESULT = T.StructType([T.StructField("Result", T.StringType())])
# Numbers of TGetInfoType, with text or a number.
_SERVER_NAME, _DBMS_NAME, _DBMS_VERSION, _LONGEST_NAMES = 13, 17, 18, (30, 32, 34, 35)
_LONGEST_NAME = 128
_NO_TOKENS = "delegation tokens are Kerberos'; log in by user and password"
Answer = tuple[bytes, ...]


class Connection:
    """What one client calls, by whichever transport.

    Args:
        user: Who has logged in; None where nobody has to.
    """

    def __init__(self, sessions: Sessions, user: str | None = None) -> None:
        self._sessions = sessions
        self._user = user
        self._opened: list[ClientSession] = []

    def answer(self, call: Message) -> bytes:
        """Return the message that answers a call; whatever goes wrong is told in it."""
        handler = _CALLS.get(call.name)
        if handler is None:
            return binary.failure(call, binary.UNKNOWN_METHOD, f"Invalid method name: {call.name!r}")
        request = call.arguments.get(1)
        if not isinstance(request, dict):
            return binary.failure(call, binary.INTERNAL_ERROR, f"{call.name} without its request")
        try:
            return binary.reply(call, *handler(self, request))
        except ServerError as error:
            code = _INVALID_HANDLE if error.bad_handle else _ERROR
            return binary.reply(call, _failed(Failure(str(error), error.sqlstate), code))
        except Exception as error:
            log.debug("%s failed", call.name, exc_info=True)
            return binary.reply(call, _failed(failure_of(error)))

    def close(self) -> None:
        """Close the sessions that were opened, when the client has gone."""
        for session in self._opened:
            self._sessions.close(session, "the client closed its connection")

    # --- sessions -----------------------------------------------------------------------------------------------

    def _open_session(self, request: Fields) -> Answer:
        protocol = _number(request, 1, _OLDEST_PROTOCOL)
        if protocol < _OLDEST_PROTOCOL:
            raise ServerError(
                f"the client speaks version {protocol + 1} of HiveServer2's protocol; take one of version 6 (Hive 0.13) or later",
                "0A000",
            )
        given = request.get(4)
        settings = (
            {_plain(key): _plain(value) for key, value in given.items()} if isinstance(given, dict) else {}
        )
        session = self._sessions.open(self._user or _text(request, 2), settings)
        self._opened.append(session)
        handle = binary.struct(
            3, binary.struct(1, binary.text(1, session.handle), binary.text(2, session.secret))
        )
        return _OK, binary.i32(2, min(protocol, _NEWEST_PROTOCOL)), handle, binary.texts(4, {})

    def _close_session(self, request: Fields) -> Answer:
        session = self._session(request)
        self._sessions.close(session)
        if session in self._opened:
            self._opened.remove(session)
        return (_OK,)

    def _get_info(self, request: Fields) -> Answer:
        session = self._session(request)
        asked = _number(request, 2, -1)
        known = {
            _SERVER_NAME: "Spark SQL",
            _DBMS_NAME: "Spark SQL",
            _DBMS_VERSION: session.statements.spark.version,
        }
        if asked in known:
            return _OK, binary.struct(2, binary.text(1, known[asked]))
        if asked in _LONGEST_NAMES:
            return _OK, binary.struct(2, binary.number(binary.I64, 6, _LONGEST_NAME))
        raise ServerError(f"GetInfo of type {asked} is not answered", "HYC00")

    def _no_tokens(self, request: Fields) -> Answer:
        self._session(request)
        raise ServerError(_NO_TOKENS, "0A000")

    # --- statements ---------------------------------------------------------------------------------------------

    def _execute(self, request: Fields) -> Answer:
        operation = self._sessions.execute(self._session(request), _text(request, 2))
        if not request.get(4):
            operation.ended.wait()
            if operation.failure is not None:
                self._sessions.close_operation(operation)
                return (_failed(operation.failure),)
        return _OK, _handle(operation)

    def _status_of(self, request: Fields) -> Answer:
        operation = self._operation(request)
        # as Hive does: clients that sleep between questions, such as dbt-spark for 5 s, do not wait in vain
        operation.ended.wait(self._sessions.limits.poll_s)
        fields = [_OK, binary.i32(2, operation.state)]
        if operation.failure is not None:
            fields += [
                binary.text(3, operation.failure.sqlstate),
                binary.i32(4, 0),
                binary.text(5, operation.failure.message),
            ]
        fields += [
            binary.number(binary.I64, 7, operation.started_ms),
            binary.number(binary.I64, 8, operation.completed_ms),
            binary.flag(9, True),
        ]
        return tuple(fields)

    def _cancel(self, request: Fields) -> Answer:
        self._operation(request).cancel()
        return (_OK,)

    def _close_operation(self, request: Fields) -> Answer:
        self._sessions.close_operation(self._operation(request))
        return (_OK,)

    def _schema(self, request: Fields) -> Answer:
        operation = self._finished(request)
        return _OK, table_schema(2, operation.rows.schema if operation.rows.schema.fields else _NO_RESULT)

    def _fetch(self, request: Fields) -> Answer:
        """Return the next window: as many rows as the client wants and one answer may have."""
        if _number(request, 4, 0) == _LOGS:
            self._operation(request)
            return _OK, binary.flag(2, False), row_set(3, listings.logs().table, 0)
        operation = self._finished(request)
        orientation, wanted = _number(request, 2, _FETCH_NEXT), _number(request, 3, _DEFAULT_ROWS)
        if orientation == _FETCH_FIRST:
            operation.position = 0
        elif orientation != _FETCH_NEXT:
            raise ServerError(
                "rows are fetched forward, or from the first one again (FETCH_NEXT, FETCH_FIRST)", "HY106"
            )
        rows, start = operation.rows, operation.position
        if not rows.schema.fields:
            return _OK, binary.flag(2, False), row_set(3, listings.logs().table, 0)
        count = wanted if wanted > 0 else _DEFAULT_ROWS
        window = rows.window(start, count)
        while len(window) > 1 and window.nbytes > self._sessions.limits.window_bytes:
            window = window.slice(0, len(window) // 2)
        written = row_set(3, window, start)
        # flags and short floats are longer in Thrift than in Arrow
        while len(window) > 1 and len(written) > self._sessions.limits.window_bytes:
            window = window.slice(0, len(window) // 2)
            written = row_set(3, window, start)
        operation.position = start + len(window)
        self._sessions.history.sent(0, len(window))
        return _OK, binary.flag(2, operation.position < len(rows.table)), written

    def _finished(self, request: Fields) -> Operation:
        operation = self._operation(request)
        operation.ended.wait()
        if operation.state != FINISHED:
            failure = operation.failure or Failure("the statement has no result", "HY010")
            raise ServerError(failure.message, failure.sqlstate)
        return operation

    # --- metadata -----------------------------------------------------------------------------------------------

    def _get_schemas(self, request: Fields) -> Answer:
        patterns = [_optional(request, 3)]
        return self._listing(request, 3, lambda session: listings.schemas(session, patterns))

    def _get_tables(self, request: Fields) -> Answer:
        patterns = [_optional(request, 3), _optional(request, 4)]
        given = request.get(5)
        types = [_plain(each) for each in given] if isinstance(given, list) else []
        return self._listing(request, 4, lambda session: listings.tables(session, patterns, types))

    def _get_columns(self, request: Fields) -> Answer:
        patterns = [_optional(request, field) for field in (3, 4, 5)]
        return self._listing(request, 6, lambda session: listings.columns(session, patterns))

    def _get_functions(self, request: Fields) -> Answer:
        patterns = [_optional(request, 3), _optional(request, 4)]
        return self._listing(request, 7, lambda session: listings.functions(session, patterns))

    def _get_primary_keys(self, request: Fields) -> Answer:
        schema, name = _text(request, 3), _text(request, 4)
        return self._listing(request, 0, lambda session: listings.primary_keys(session, schema, name))

    def _listing(self, request: Fields, kind: int, rows: Callable[[Any], Rows]) -> Answer:
        operation = self._sessions.listing(self._session(request), kind, rows)
        return _OK, _handle(operation)

    # --- handles ------------------------------------------------------------------------------------------------

    def _session(self, request: Fields) -> ClientSession:
        return self._sessions.get(*_identifier(request.get(1)), self._user)

    def _operation(self, request: Fields) -> Operation:
        return self._sessions.operation(*_identifier(request.get(1)), self._user)


_CALLS: Mapping[str, Callable[[Connection, Fields], Answer]] = {
    "OpenSession": Connection._open_session,
    "CloseSession": Connection._close_session,
    "GetInfo": Connection._get_info,
    "ExecuteStatement": Connection._execute,
    "GetTypeInfo": lambda client, request: client._listing(request, 1, lambda _: listings.types()),
    "GetCatalogs": lambda client, request: client._listing(request, 2, lambda _: listings.catalogs()),
    "GetSchemas": Connection._get_schemas,
    "GetTables": Connection._get_tables,
    "GetTableTypes": lambda client, request: client._listing(request, 5, lambda _: listings.table_types()),
    "GetColumns": Connection._get_columns,
    "GetFunctions": Connection._get_functions,
    "GetPrimaryKeys": Connection._get_primary_keys,
    "GetCrossReference": lambda client, request: client._listing(
        request, 0, lambda _: listings.cross_references()
    ),
    "GetOperationStatus": Connection._status_of,
    "CancelOperation": Connection._cancel,
    "CloseOperation": Connection._close_operation,
    "GetResultSetMetadata": Connection._schema,
    "FetchResults": Connection._fetch,
    "GetDelegationToken": Connection._no_tokens,
    "CancelDelegationToken": Connection._no_tokens,
    "RenewDelegationToken": Connection._no_tokens,
}
_OK = binary.struct(1, binary.i32(1, _SUCCESS))


def _failed(failure: Failure, code: int = _ERROR) -> bytes:
    return binary.struct(
        1,
        binary.i32(1, code),
        binary.text(3, failure.sqlstate),
        binary.i32(4, 0),
        binary.text(5, failure.message),
    )


def _handle(operation: Operation) -> bytes:
    identifier = binary.struct(1, binary.text(1, operation.handle), binary.text(2, operation.secret))
    return binary.struct(2, identifier, binary.i32(2, operation.kind), binary.flag(3, True))


def _identifier(handle: Any) -> tuple[bytes, bytes]:
    """Return id and secret of a handle; bytes that are none's for anything else."""
    found = handle.get(1) if isinstance(handle, dict) else None
    if not isinstance(found, dict):
        return b"", b""
    guid, secret = found.get(1), found.get(2)
    return (guid, secret) if isinstance(guid, bytes) and isinstance(secret, bytes) else (b"", b"")


def _number(request: Fields, field: int, default: int) -> int:
    value = request.get(field)
    return value if isinstance(value, int) else default


def _text(request: Fields, field: int) -> str:
    return _plain(request.get(field))


def _optional(request: Fields, field: int) -> str | None:
    return _text(request, field) if field in request else None


def _plain(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
