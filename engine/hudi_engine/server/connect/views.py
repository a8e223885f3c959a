"""Temporary views of DataFrames, which Spark keeps with the files that their tables had when they were made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql.connect import proto

from hudi_engine.server.connect.messages import parts
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.catalog import is_temporary_view, temporary_view_mark
from hudi_engine.spark.sql.query import mentioned_tables
from hudi_engine.spark.sql.session import StatementSession

_SUBQUERY = re.compile(r"\b(?:select|table)\b", re.IGNORECASE)


@dataclass(frozen=True)
class FrameView:
    """A view as its client made it.

    Args:
        schema: The current one by then, in which its tables are looked for.
        mark: What tells it from one that was made in its place.
    """

    command: proto.CreateDataFrameViewCommand
    schema: str
    mark: int

    @property
    def as_command(self) -> proto.Command:
        """The command that makes it again."""
        command = proto.Command()
        command.create_dataframe_view.CopyFrom(self.command)
        command.create_dataframe_view.replace = True
        return command


class FrameViews:
    """The views of one session that read tables alone: made again, they show later commits, and mean the same."""

    def __init__(self, statements: StatementSession) -> None:
        self._spark = statements.spark
        self._known: dict[str, FrameView] = {}

    def note(self, command: proto.CreateDataFrameViewCommand) -> None:
        """Note that a view was made."""
        mark = temporary_view_mark(self._spark, command.name)
        if mark is not None:
            schema = self._spark.catalog.currentDatabase()
            self._known[command.name.lower()] = FrameView(command, schema, mark)

    def is_to_note(self, command: proto.CreateDataFrameViewCommand) -> bool:
        """Whether a view that is to be made reads tables, and no temporary views: those may be others by then."""
        if command.is_global:
            return False
        names = [each.unparsed_identifier for each in parts(proto.Read.NamedTable, command)]
        try:
            named = [plans.name_parts(self._spark, each) for each in names]
            for each in parts(proto.SQL, command):
                named += [found[2] for found in mentioned_tables(plans.parse(self._spark, each.query))]
        except PySparkException:
            return False
        texts = [each.expression for each in parts(proto.Expression.ExpressionString, command)]
        return bool(named) and not any(map(_SUBQUERY.search, texts)) and not any(map(self._is_view, named))

    def _is_view(self, parts: list[str]) -> bool:
        return len(parts) == 1 and is_temporary_view(self._spark, parts[0])

    def named_in(self, text: str) -> Iterator[FrameView]:
        """Give the views that a text may name and that are there still."""
        schema = self._spark.catalog.currentDatabase()
        for name, view in list(self._known.items()):
            if temporary_view_mark(self._spark, name) != view.mark:
                del self._known[name]
            elif view.schema == schema and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE):
                yield view
