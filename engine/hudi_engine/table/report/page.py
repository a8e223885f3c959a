"""The page: one file that loads nothing else."""

from __future__ import annotations

import base64
import hashlib

from hudi_engine.table.report.facts import Facts
from hudi_engine.table.report.markup import Markup, glued, tag, text
from hudi_engine.table.report.sections import sections
from hudi_engine.table.report.style import CSS, SCRIPT


def page(facts: Facts) -> str:
    """Return a table's report as HTML; the policy in its head lets nothing run or load but its own style and script."""
    policy = f"default-src 'none'; style-src {_hash(CSS)}; script-src {_hash(SCRIPT)}; base-uri 'none'; form-action 'none'"
    head = [
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", f"{facts.stats.name}: Hudi table"),
        tag("style", Markup(CSS)),
    ]
    foot = tag("footer", "Made by hudi-engine. Times are in UTC, sizes in decimal units.")
    body = [tag("main", sections(facts), foot), tag("script", Markup(SCRIPT))]
    whole = tag("html", tag("head", *head), tag("body", glued(body)), lang="en")
    return text(Markup(f"<!DOCTYPE html>\n{whole}\n"))


def _hash(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"'sha256-{digest}'"
