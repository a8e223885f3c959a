"""The page of a server in a browser: sessions, statements, errors and tables, and each table's report.

Whatever it shows may be written by anybody, so the markup escapes all of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from datetime import timezone
from importlib.resources import files
from urllib.parse import quote, unquote

from hudi_engine.format.config.options import Options
from hudi_engine.server.history import Ended, History, shown_text
from hudi_engine.server.sessions import PENDING, ClientSession, Operation, Sessions
from hudi_engine.spark.sql.failure import failure_of
from hudi_engine.spark.sql.session import StatementSession
from hudi_engine.table.report import document, gather, page
from hudi_engine.table.report.markup import Cell, Markup, number, plural, table, tag
from hudi_engine.table.state import TableState

CANCEL, TABLES = "/cancel", "/tables/"
"""Where the form of a statement goes, and where the reports of tables are."""
TOKEN, STATEMENT = "token", "statement"
_SCRIPT = files("hudi_engine.server").joinpath("page.js").read_text("utf-8")
_LISTED_FOR_S = 10.0
_OTHERS = "(of another user)"
Row = Mapping[str, Cell]


class Page:
    """What a browser sees of a server's sessions."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._tables: list[Row] = []
        self._listed, self._after = float("-inf"), -1
        self._why = ""
        self._listing, self._reporting = threading.Lock(), threading.Lock()

    def overview(self, user: str | None, token: str) -> str:
        """Return the first page.

        Args:
            user: Who looks; statements of others are without their text and cannot be cancelled. None where nobody logs in.
            token: What the forms send, so that they are known to be of this page.
        """
        sessions, history = self._sessions, self._sessions.history
        running, opened = sessions.running, sessions.open_sessions
        tables = self._tables_now()
        content = [
            tag("header", tag("h1", "dbt-hudi serve")),
            _part("figures", tag("div", *_figures(history, opened, running), class_="figures")),
            _section("Running statements", "running", [_running(each, user, token) for each in running]),
            _section("Last statements", "last", [_ended(each, user) for each in history.last]),
            _section("Last errors", "errors", [_failed(each, user) for each in history.failures]),
            _section("Sessions", "sessions", [_session(each) for each in opened]),
            _section("Tables", "tables", tables, self._why),
            tag("footer", "Times are in UTC. The page renews itself every 3 seconds."),
        ]
        return document("dbt-hudi serve", content, _SCRIPT, allowed="connect-src 'self'; form-action 'self'")

    def report(self, path: str) -> str | None:
        """Return the report of the table of a path, ``/tables/<schema>/<name>``; None where there is no such Hudi table."""
        schema, slash, name = path.removeprefix(TABLES).partition("/")
        if not slash:
            return None

        def opened(session: StatementSession) -> tuple[TableState, Options] | None:
            base = session.warehouse.hudi_base(session.spark, unquote(schema), unquote(name))
            if base is None:
                return None
            services = session.warehouse.table(session.spark, base).services()
            return TableState.load(services.storage), services.options

        with self._reporting:  # one at a time, as it reads the footers of all files
            found = self._sessions.look(opened)
            return None if found is None else page(gather(*found))

    def _tables_now(self) -> list[Row]:
        """Return the tables, listed again after a statement has ended, and for those of other processes now and then."""
        with self._listing:
            ended = self._sessions.history.count
            if ended != self._after or time.monotonic() - self._listed > _LISTED_FOR_S:
                try:
                    self._tables, self._why = self._sessions.look(_tables), ""
                except Exception as error:  # noqa: BLE001 - the rest of the page counts most when Spark fails
                    self._tables, self._why = [], shown_text(failure_of(error).message)
                self._listed, self._after = time.monotonic(), ended
            return self._tables


def _part(name: str, *content: Markup) -> Markup:
    return tag("div", *content, data_part=name)


def _section(title: str, name: str, rows: Sequence[Row], why: str = "") -> Markup:
    shown = table(title, rows) if rows else tag("p", why or "None.", class_="note")
    return _part(name, tag("section", tag("h2", title), shown, id=name))


def _figures(history: History, opened: Sequence[ClientSession], running: Sequence[Operation]) -> list[Markup]:
    waiting = sum(each.state == PENDING for each in running)
    shown = [
        ("sessions", number(len(opened)), f"of {plural(len({each.user for each in opened}), 'user')}"),
        ("running", number(len(running) - waiting), f"{number(waiting)} waiting"),
        ("statements", number(history.count), f"{number(history.failed)} failed"),
    ]
    return [tag("div", tag("b", value), tag("span", name), tag("small", note)) for name, value, note in shown]


def _running(each: Operation, user: str | None, token: str) -> Row:
    is_own = user in (None, each.session.user)
    return {
        "user": each.session.user,
        "seconds": round(each.seconds, 1),
        "state": "waiting" if each.state == PENDING else "running",
        "statement": _code(shown_text(each.text) if is_own else _OTHERS),
        "cancel": _cancel_form(each, token) if is_own else "",
    }


def _cancel_form(each: Operation, token: str) -> Markup:
    if each.jobs.cancelled:
        return tag("span", "is being cancelled")
    hidden = {STATEMENT: each.handle.hex(), TOKEN: token}
    fields = [tag("input", type="hidden", name_=name, value=value) for name, value in hidden.items()]
    return tag("form", *fields, tag("button", "Cancel"), method="post", action=CANCEL)


def _ended(each: Ended, user: str | None) -> Row:
    return {
        "at": each.at,
        "user": each.user,
        "seconds": round(each.seconds, 1),
        "rows": each.rows,
        "end": each.how,
        "statement": _code(each.text if user in (None, each.user) else _OTHERS),
    }


def _failed(each: Ended, user: str | None) -> Row:
    is_own = user in (None, each.user)
    return {
        "at": each.at,
        "user": each.user,
        "error": tag("span", each.reason if is_own else _OTHERS, title=each.reason if is_own else None),
        "statement": _code(each.text if is_own else _OTHERS),
    }


def _session(each: ClientSession) -> Row:
    idle = round(time.monotonic() - each.used, 1)
    return {
        "user": each.user or "anonymous",
        "opened_at": each.opened.astimezone(timezone.utc),
        "idle_seconds": 0.0 if each.is_running else idle,
        "statements_open": len(each.operations),
    }


def _code(shown: str) -> Markup:
    return tag("code", shown, title=shown)


def _tables(session: StatementSession) -> list[Row]:
    """Return all tables and views; those of Hudi with a link to their report."""
    found: list[Row] = []
    for schema in sorted(session.warehouse.schemas(session.spark)):
        for entry in session.warehouse.entries(session.spark, schema):
            name = entry.name.name
            link = f"{TABLES}{quote(schema, safe='')}/{quote(name, safe='')}"
            shown: Cell = tag("a", name, href=link) if entry.is_hudi_table else name
            kind = "Hudi table" if entry.is_hudi_table else "view" if entry.reads_only else "other table"
            found.append({"schema": schema, "name": shown, "kind": kind, "comment": entry.comment or ""})
    return sorted(found, key=lambda each: (str(each["schema"]), str(each["name"])))
