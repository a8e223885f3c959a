"""Plans as Spark is to run them: with the newest commits, and with what Hudi's words in their queries mean."""

from __future__ import annotations

import logging
import uuid

import grpc
from google.protobuf.message import Message
from pyspark.sql.connect import proto

from hudi_engine.errors import HudiError, StatementError
from hudi_engine.server.connect.clients import ConnectSession
from hudi_engine.server.connect.messages import parts
from hudi_engine.server.connect.views import FrameView
from hudi_engine.server.sessions import Sessions
from hudi_engine.spark.sql.failure import failure_of
from hudi_engine.spark.sql.statements import QUERIES, first_keyword, outer_words, split_statements

log = logging.getLogger(__name__)
_CHANGING = frozenset(("insert", "merge", "update", "delete"))


class Rewriting:
    """Rewrites plans in place."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def rewrite(self, session: ConnectSession, *plans: Message, text: str = "") -> list[str]:
        """Have plans read the newest commits, and what Hudi's words in their queries mean; returns the views that this takes.

        Args:
            text: A statement that is to see the newest commits too.
        """
        named = [text, *(each.query for each in parts(proto.SQL, *plans))]
        named += (each.unparsed_identifier for each in parts(proto.Read.NamedTable, *plans))
        for view in self._sessions.on_spark(lambda: list(session.frames.named_in("\n".join(named)))):
            self._make_again(session, view)
        return self._rewrite_queries(session, *plans)

    def _make_again(self, session: ConnectSession, view: FrameView) -> None:
        command = view.as_command
        own = proto.ExecutePlanRequest(session_id=session.name, user_context=session.context)
        try:
            views = self._rewrite_queries(session, command)
            try:
                session.inner.run(own, command)
            finally:
                self.drop(session, views)
            self._sessions.on_spark(lambda: session.frames.note(view.command))
        except (grpc.RpcError, HudiError) as error:
            # its table may be gone, and the text may not mean the view
            log.info(
                "the temporary view %s stays as it was made: %s", view.command.name, failure_of(error).message
            )

    def _rewrite_queries(self, session: ConnectSession, *plans: Message) -> list[str]:
        """Rewrite plans without a look at temporary views; returns the views that this takes."""
        reads = [
            each
            for each in parts(proto.Relation, *plans)
            if each.HasField("read") or each.HasField("catalog")
        ]
        if reads:
            self._sessions.on_spark(lambda: session.prepare(reads))
        queries = parts(proto.SQL, *plans)
        for each in queries:
            self._sessions.check(session, each.query)
            if not is_query(each.query):
                raise StatementError(
                    f"a statement that is no query is refused inside of a DataFrame: {each.query[:80]}; run it with spark.sql"
                )
        views: list[str] = []

        def own_view(stem: str) -> str:
            views.append(f"{stem}_{uuid.uuid4().hex}")
            return views[-1]

        def rewrite() -> None:
            session.statements.look_again()
            for each in queries:
                each.query = session.statements.rewritten(each.query, own_view)

        try:
            self._sessions.on_spark(rewrite)
        except Exception:
            self.drop(session, views)
            raise
        return views

    def drop(self, session: ConnectSession, views: list[str]) -> None:
        """Drop the views that a plan took."""
        if views and self._sessions.is_open(session):
            self._sessions.on_spark(lambda: session.drop(views))


def is_query(text: str) -> bool:
    """Whether Spark may run a text by itself."""
    statements = split_statements(text)
    if len(statements) != 1 or first_keyword(text) not in QUERIES:
        return False
    return not any(word in _CHANGING for _, word in outer_words(text))
