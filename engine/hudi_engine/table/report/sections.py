"""The parts of the page, top to bottom."""

from __future__ import annotations

from hudi_engine.table.report import files, history
from hudi_engine.table.report.facts import Facts
from hudi_engine.table.report.markup import NOTHING, Markup, glued, moment, number, plural, share, size, tag
from hudi_engine.table.report.tables import names


def sections(facts: Facts) -> Markup:
    """Return everything between the head of the page and its foot."""
    return glued(
        [
            _header(facts),
            _figures(facts),
            _section("Services", "services", [_services(facts)]),
            _section("History", "history", history.history_charts(facts)),
            _section("Commits", "commits", history.tables(facts)),
            _section("Files", "files", files.file_charts(facts)),
            _section("Partitions", "partitions", files.partitions(facts)),
        ]
    )


def _section(title: str, name: str, content: list[Markup]) -> Markup:
    return tag("section", tag("h2", title), *content, id=name)


def _header(facts: Facts) -> Markup:
    config, stats = facts.config, facts.stats
    keys = ", ".join(config.record_key_fields) or "generated"
    shown = [
        ("Type", stats.table_type.lower().replace("_", " ")),
        ("Table version", stats.version),
        ("Record key", keys),
        ("Partitioned by", ", ".join(each.name for each in config.partition_fields) or "nothing"),
        ("Newest commit", stats.instant or "none"),
        ("Seen at", f"{moment(facts.seen_at)} UTC"),
    ]
    pairs = [tag("div", tag("dt", name), tag("dd", value)) for name, value in shown]
    place = tag("p", tag("code", facts.base), class_="place")
    return tag("header", tag("h1", stats.name), place, tag("dl", *pairs))


def _figures(facts: Facts) -> Markup:
    stats = facts.stats
    archived = sum(each.archived for each in facts.commits)
    rows = stats.rows if stats.rows is not None else stats.base_rows
    shown = [
        ("rows" if stats.rows is not None else "rows in base files", number(rows), _logs_note(facts)),
        ("on storage", size(stats.base_bytes + stats.log_bytes), "in the newest file slices"),
        ("file groups", number(stats.file_groups), f"in {plural(len(stats.partitions), 'partition')}"),
        (
            "small files",
            number(stats.small_files),
            f"of {plural(stats.base_files, 'base file')}, below {size(facts.small_limit)}",
        ),
        ("in logs", share(stats.log_share), f"of the bytes, {plural(stats.log_files, 'log file')}"),
        (
            "commits",
            number(stats.commits + archived),
            f"{number(archived)} of them archived, {number(stats.pending)} pending",
        ),
    ]
    tiles = [
        tag("div", tag("b", value), tag("span", name), tag("small", note)) for name, value, note in shown
    ]
    return tag("div", *tiles, class_="figures")


def _logs_note(facts: Facts) -> str:
    if facts.stats.rows is None:
        return "set count to merge the logs"
    return "in a snapshot"


def _services(facts: Facts) -> Markup:
    coming = {each.service: each for each in facts.upcoming}
    cards = []
    for due in facts.stats.services:
        badge = tag("span", "due" if due.due else "not due", class_="badge due" if due.due else "badge")
        next_ = coming[due.service]
        if not next_.items:
            takes = tag("p", f"Run now it would take nothing: {next_.reason}.")
        else:
            takes = names(_cost(due.service, len(next_.items), next_.bytes), next_.items)
        cards.append(
            tag("article", tag("h3", due.service, badge), tag("p", due.reason, class_="note"), takes)
        )
    return tag("div", *cards, class_="cards") if cards else NOTHING


def _cost(service: str, count: int, taken: int) -> str:
    return {
        "compaction": f"Run now it would merge {plural(count, 'file group')}, reading {size(taken)}",
        "clean": f"Run now it would delete {plural(count, 'file')}, {size(taken)}",
        "archive": f"Run now it would move {plural(count, 'instant')} to the archive",
    }[service]
