"""Sessions and operations of clients: opened, run, waited for, cancelled and closed."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TypeVar

from pyspark.sql import types as T

from hudi_engine.errors import StatementError
from hudi_engine.server.code_loading import allowed_formats, check_no_code, check_setting
from hudi_engine.server.history import CANCELLED, FAILED, Ended, History, now, shown_text
from hudi_engine.server.history import FINISHED as DONE
from hudi_engine.server.limits import ServerError, ServerLimits
from hudi_engine.server.row_sets import as_texts
from hudi_engine.spark.sql.failure import Failure, failure_of
from hudi_engine.spark.sql.jobs import JobGroup
from hudi_engine.spark.sql.session import NO_ROWS, Rows, StatementSession

log = logging.getLogger(__name__)
Result = TypeVar("Result")

INITIALIZED, RUNNING, FINISHED, CANCELED, CLOSED, ERROR, PENDING = 0, 1, 2, 3, 4, 5, 7
_ID_BYTES = 16
_SHOWN_LENGTH = 200
_LOOK_EVERY_S = 1.0
_CALLS = 4
_CANCELLED = "the statement was cancelled by its client"
_CANCELLED_ON_PAGE = "the statement was cancelled on the page of the server"
_STOPPED = "the server stops; a write that was under way is taken back"
# Keys of a session's configuration that are no setting of Spark.
_DATABASE, _SETTINGS = "use:database", ("set:hiveconf:", "set:hivevar:")


@dataclass(eq=False)
class Operation:
    """A statement or a question for metadata, with its rows once it has run; ``kind`` is Hive's number."""

    session: ClientSession
    text: str = ""
    kind: int = 0
    state: int = PENDING
    rows: Rows = NO_ROWS
    failure: Failure | None = None
    position: int = 0
    started_ms: int = field(default_factory=lambda: int(time.time() * 1000))
    completed_ms: int = 0
    handle: bytes = field(default_factory=lambda: secrets.token_bytes(_ID_BYTES))
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(_ID_BYTES))
    ended: threading.Event = field(default_factory=threading.Event)
    jobs: JobGroup = field(init=False)

    def __post_init__(self) -> None:
        self.jobs = JobGroup(f"hudi-serve-{self.handle.hex()}")

    def cancel(self, why: str = _CANCELLED) -> None:
        """Stop the Spark jobs; a write under way is taken back. One that has committed by then is finished."""
        if not self.ended.is_set():
            self.jobs.cancel(why)

    def run(self) -> None:
        """Run the statement, in a thread of the pool."""
        try:
            if self.jobs.cancelled:
                raise StatementError(self.jobs.cancelled)
            self.state = RUNNING
            self.rows = self.collected()
            self._end(FINISHED, None)
        except Exception as error:
            if self.jobs.cancelled:
                self._end(CANCELED, Failure(self.jobs.cancelled, "57014"))
            else:
                self._end(ERROR, failure_of(error))

    def collected(self) -> Rows:
        """Return the rows of the statement, as clients of Hive read them."""
        return _names_first(self.session.statements.run(self.text, self.jobs, as_texts))

    def _end(self, state: int, failure: Failure | None) -> None:
        self.jobs.close()
        self.failure = failure
        self.completed_ms = int(time.time() * 1000)
        self.state = state
        self.session.touch()
        self.session.history.ended(self.as_ended())
        self.ended.set()
        if failure is not None and state == ERROR:
            log.info(
                "failed (%s): %s: %s",
                failure.sqlstate,
                shown_text(self.text, _SHOWN_LENGTH),
                shown_text(failure.message),
            )

    @property
    def seconds(self) -> float:
        """Since the statement came, until its end."""
        return (self.completed_ms or int(time.time() * 1000)) / 1000 - self.started_ms / 1000

    def as_ended(self) -> Ended:
        """Return what is kept of a statement that has ended."""
        how = {FINISHED: DONE, CANCELED: CANCELLED}.get(self.state, FAILED)
        reason = "" if self.failure is None else shown_text(self.failure.message)
        rows = self.rows.changed if self.rows.changed is not None else len(self.rows.table)
        shown = rows if how == DONE and self.rows.schema.fields else None
        return Ended(self.session.user, shown_text(self.text), how, now(), self.seconds, shown, reason)


@dataclass(eq=False)
class ClientSession:
    """One client's session."""

    user: str
    statements: StatementSession
    history: History
    handle: bytes = field(default_factory=lambda: secrets.token_bytes(_ID_BYTES))
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(_ID_BYTES))
    operations: dict[bytes, Operation] = field(default_factory=dict)
    opened: datetime = field(default_factory=now)
    formats: frozenset[str] | None = None
    used: float = field(default_factory=time.monotonic)

    def touch(self) -> None:
        """Note that the session is in use."""
        self.used = time.monotonic()

    @property
    def is_running(self) -> bool:
        """Whether a statement of the session runs."""
        return any(not each.ended.is_set() for each in list(self.operations.values()))

    def close(self) -> None:
        """End the session on Spark."""
        self.statements.close()


Session = TypeVar("Session", bound=ClientSession)
Begun = TypeVar("Begun", bound=Operation)


class Sessions:
    """All sessions of a server.

    Args:
        open_statements: Opens a session on Spark.
    """

    def __init__(self, open_statements: Callable[[], StatementSession], limits: ServerLimits) -> None:
        self._open_statements = open_statements
        self.limits = limits
        self.history = History()
        self._open: dict[bytes, ClientSession] = {}
        self._operations: dict[bytes, Operation] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        # threads that stay: PySpark has a thread of Java for each of Python's
        self._pool = ThreadPoolExecutor(limits.statements, "statement")
        # what a client waits for is not behind long statements
        self._calls = ThreadPoolExecutor(_CALLS, "call")
        threading.Thread(target=self._close_idle, name="idle sessions", daemon=True).start()

    def open(self, user: str, configuration: Mapping[str, str]) -> ClientSession:
        """Open a session with settings that Hive's clients send: the current schema, and settings of Spark."""
        return self.admit(lambda: ClientSession(user, self._open_statements(), self.history), configuration)

    def admit(self, make: Callable[[], Session], configuration: Mapping[str, str]) -> Session:
        """Open a session that ``make`` makes; ServerError where there are as many as the server allows."""
        with self._lock:
            if self._stopping.is_set():
                raise ServerError(_STOPPED, "57P01")
            if len(self._open) >= self.limits.sessions:
                raise ServerError(
                    f"there are {len(self._open)} sessions, as many as the server allows: close some, or start it with a larger "
                    "--max-sessions",
                    "53300",
                )
        session = self.on_spark(make)
        try:
            self._configure(session, configuration)
        except Exception:
            session.close()
            raise
        with self._lock:
            self._open[session.handle] = session
        self.history.opened()
        log.info("session %s of %s opened", session.handle.hex()[:8], session.user or "anonymous")
        return session

    def is_open(self, session: ClientSession) -> bool:
        """Whether a session was not closed."""
        return session.handle in self._open

    def _configure(self, session: ClientSession, configuration: Mapping[str, str]) -> None:
        """Apply what Hive's clients send with a session; settings that Spark cannot change any more are left out."""
        spark = session.statements.spark
        for key, value in configuration.items():
            setting = key
            for prefix in _SETTINGS:
                setting = setting.removeprefix(prefix)
            if key == _DATABASE:
                self.on_spark(partial(spark.catalog.setCurrentDatabase, value))
            elif setting.startswith(("spark.", "hoodie.")):
                if not self.limits.allow_code:
                    check_setting(setting)
                if not spark.conf.isModifiable(setting) and setting.startswith("spark."):
                    log.warning("%s of a client is not used: it counts when Spark starts", setting)
                    continue
                self.on_spark(partial(spark.conf.set, setting, value))

    def on_spark(self, work: Callable[[], Result]) -> Result:
        """Do what a client waits for, in a thread that stays; statements are not among it."""
        return self._calls.submit(work).result()

    def look(self, work: Callable[[StatementSession], Result]) -> Result:
        """Look at the warehouse in a session that is no client's and counts for no limit."""

        def looked() -> Result:
            statements = self._open_statements()
            try:
                return work(statements)
            finally:
                statements.close()

        return self.on_spark(looked)

    def get(self, handle: bytes, secret: bytes, user: str | None) -> ClientSession:
        """Return a session, of a user where users log in; ServerError when there is none."""
        session = self._open.get(handle)
        if session is None or not _is_of(session, session.secret, secret, user):
            raise ServerError(
                "the session is not known: it was closed, or was idle for too long; connect again",
                "08003",
                bad_handle=True,
            )
        session.touch()
        return session

    def operation(self, handle: bytes, secret: bytes, user: str | None) -> Operation:
        """Return an operation, of a user where users log in; ServerError when there is none."""
        found = self._operations.get(handle)
        if found is None or not _is_of(found.session, found.secret, secret, user):
            raise ServerError(
                "the operation is not known: it was closed; run the statement again", "24000", bad_handle=True
            )
        found.session.touch()
        return found

    def execute(self, session: ClientSession, text: str) -> Operation:
        """Begin a statement; ServerError for one that is not accepted."""
        self.check(session, text)
        return self.begin(Operation(session, text))

    def check(self, session: ClientSession, text: str) -> None:
        """Raise StatementError for a statement that is not accepted."""
        if len(text.encode("utf-8", "surrogatepass")) > self.limits.statement_bytes:
            raise ServerError(
                f"the statement is longer than {self.limits.statement_bytes} bytes; start the server with a larger "
                "--max-statement-bytes, or write the rows to a file and read that",
                "54000",
            )
        if not self.limits.allow_code:
            check_no_code(text, self.formats(session))

    def formats(self, session: ClientSession) -> frozenset[str]:
        """Return the formats that clients may name."""
        if session.formats is None:
            session.formats = self.on_spark(partial(allowed_formats, session.statements.spark))
        return session.formats

    def begin(self, operation: Begun) -> Begun:
        """Have a statement run when one of those that run at a time has ended."""
        self.add(operation)
        self._pool.submit(operation.run)
        return operation

    def listing(
        self, session: ClientSession, kind: int, rows: Callable[[StatementSession], Rows]
    ) -> Operation:
        """Run a question for metadata."""

        def held_first() -> Rows:
            session.statements.held.release()
            return rows(session.statements)

        operation = Operation(session, kind=kind)
        operation.rows = self.on_spark(held_first)
        operation.state = FINISHED
        operation.ended.set()
        return self.add(operation)

    def add(self, operation: Begun) -> Begun:
        """Keep an operation with its session, until it is closed."""
        with self._lock:
            if operation.session.handle not in self._open:
                raise ServerError("the session was closed meanwhile; connect again", "08003", bad_handle=True)
            operation.session.operations[operation.handle] = operation
            self._operations[operation.handle] = operation
        return operation

    def close_operation(self, operation: Operation) -> None:
        """Forget an operation; one that runs is cancelled."""
        operation.cancel()
        with self._lock:
            operation.session.operations.pop(operation.handle, None)
            self._operations.pop(operation.handle, None)

    def close(self, session: ClientSession, why: str = "the session was closed") -> None:
        """Close a session: what runs is cancelled and taken back, what is held is carried out."""
        with self._lock:
            if self._open.pop(session.handle, None) is None:
                return
            operations = list(session.operations.values())
            for each in operations:
                self._operations.pop(each.handle, None)
        for each in operations:
            each.cancel(why)
        for each in operations:
            each.ended.wait()
        try:
            self.on_spark(session.close)
        except Exception as error:
            log.warning("closing a session of %s: %s", session.user or "anonymous", failure_of(error).message)
        log.info("session %s of %s closed", session.handle.hex()[:8], session.user or "anonymous")

    def _close_idle(self) -> None:
        while not self._stopping.wait(min(_LOOK_EVERY_S, self.limits.idle_s)):
            oldest = time.monotonic() - self.limits.idle_s
            for each in list(self._open.values()):
                if each.used < oldest and not each.is_running:
                    self.close(each, "the session was idle")

    def cancel(self, handle: str, user: str | None) -> bool:
        """Cancel a statement by its id in hexadecimal, of a user where users log in; returns whether it runs."""
        found = next((each for each in self.running if each.handle.hex() == handle), None)
        if found is None or user not in (None, found.session.user):
            return False
        log.info("a statement of %s is cancelled on the page", found.session.user or "anonymous")
        found.cancel(_CANCELLED_ON_PAGE)
        return True

    @property
    def open_sessions(self) -> list[ClientSession]:
        """The sessions."""
        return list(self._open.values())

    @property
    def is_stopping(self) -> bool:
        """Whether the server ends."""
        return self._stopping.is_set()

    @property
    def running(self) -> list[Operation]:
        """The statements that run or wait."""
        return [each for each in list(self._operations.values()) if not each.ended.is_set()]

    @property
    def count(self) -> int:
        """How many sessions are open."""
        return len(self._open)

    def stop(self, grace_s: float) -> None:
        """Close all: no session is opened any more, statements may end within a time, and what runs then is taken back."""
        with self._lock:
            self._stopping.set()
        deadline = time.monotonic() + grace_s
        for each in self.running:
            each.ended.wait(max(0.0, deadline - time.monotonic()))
        for session in list(self._open.values()):
            self.close(session, _STOPPED)
        self._pool.shutdown()
        self._calls.shutdown()


def _names_first(rows: Rows) -> Rows:
    """Return the rows of SHOW TABLES and SHOW VIEWS with the name first, where Hive has it and PyHive reads it."""
    names = rows.schema.names
    if len(names) != 3 or names[0] != "namespace" or names[1] not in ("tableName", "viewName"):
        return rows
    order = (1, 0, 2)
    return Rows(T.StructType([rows.schema.fields[each] for each in order]), rows.table.select(list(order)))


def _is_of(session: ClientSession, secret: bytes, given: bytes, user: str | None) -> bool:
    return secrets.compare_digest(secret, given) and user in (None, session.user)
