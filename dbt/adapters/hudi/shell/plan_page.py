"""The HTML page of a plan: one file that loads nothing else, in the look of a table's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hudi_engine.table.report.markup import Cell, Markup, cut, table, tag
from hudi_engine.table.report.page import document

_MAX_LINES = 1_000
"""Lines of one remark that the page shows."""


def plan_page(rows: Sequence[Mapping[str, Cell]], remarks: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Return the page.

    Args:
        rows: What each node does, with the same figures for all.
        remarks: Titles with the lines below them.
    """
    nodes = table("Nodes", rows) if rows else tag("p", "None.", class_="note")
    content = [
        tag("header", tag("h1", "dbt-hudi plan"), tag("p", "Nothing was written.", class_="note")),
        tag("section", tag("h2", "Nodes"), nodes),
        *(_section(title, lines) for title, lines in remarks),
    ]
    return document("dbt-hudi plan", content)


def _section(title: str, lines: Sequence[str]) -> Markup:
    shown = [tag("li", each) for each in lines[:_MAX_LINES]]
    head = tag("h2", title[:1].upper() + title[1:])
    return tag("section", head, tag("ul", *shown), cut(len(shown), len(lines), "lines"))
