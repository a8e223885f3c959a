"""Receipts: row count and content hash of a table's base files, kept from commit to commit, and never guessed.

A commit notes what its rows add, the receipt of the table after it with the write that this follows, and the earlier instants
that were not completed then: what those add that have completed since is added to it. Clusterings of a copy-on-write table change
no rows. Any other commit without a note breaks the chain. Logs add nothing until they are compacted, so that a write into logs need
not read the rows that it replaces; `validate` and readers hold logs to the sizes and checksums that commits and blocks tell.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from hudi_engine.errors import WriteConflictError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.options import Options
from hudi_engine.format.schema.avro import avro_to_arrow
from hudi_engine.format.schema.row_hash import MODULUS, same_hash
from hudi_engine.format.timeline.active import Timeline, since_all_was_replaced
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, Content
from hudi_engine.format.timeline.instant import COMPLETE_AS_WRITES, Instant

RECEIPT = "hudi_engine.receipt"
"""Key of the extra metadata: rows and hash as JSON, of the table and of what the commit adds."""


@dataclass(frozen=True)
class Receipt:
    """Rows of a table's base files and the sum of their hashes, modulo 2^64.

    Args:
        since: The commit from which on they are not known; None where they are.
    """

    rows: int = 0
    hash: int = 0
    since: str | None = None

    @property
    def text(self) -> str:
        """The hash in hexadecimal digits."""
        return f"{self.hash:016x}"

    def plus(self, rows: int, added: int) -> Receipt:
        """Return the receipt with more rows; they may be less than none."""
        return replace(self, rows=self.rows + rows, hash=(self.hash + added) % MODULUS)


@dataclass(frozen=True)
class _Note:
    after: str | None
    table: Receipt
    added: tuple[int, int]
    whole: bool
    pending: frozenset[str]

    @classmethod
    def of(cls, metadata: CommitMetadata) -> _Note | None:
        try:
            raw = json.loads(metadata.extra_metadata[RECEIPT])
            added = (int(raw["rowsAdded"]), int(raw["hashAdded"], 16))
            table = Receipt(int(raw["rows"]), int(raw["hash"], 16))
            return cls(
                raw.get("after"), table, added, bool(raw.get("whole")), frozenset(raw.get("pending") or ())
            )
        except (KeyError, ValueError, TypeError, AttributeError):
            return None


def receipt_of(timeline: Timeline, as_of: str | None = None) -> Receipt:
    """Return the receipt of a table, or of an earlier state of it.

    Args:
        as_of: Newest requested time that counts; None for all.
    """
    writes = _writes(timeline, as_of)
    newest = next(writes, None)
    if newest is None:
        # services alone may be left on the timeline of a table that has rows
        if timeline.completed_writes and timeline.archived.completed_writes:
            return Receipt(since=timeline.completed_writes[0].requested_time)
        return Receipt()
    note = _Note.of(timeline.commit_metadata(newest))
    # each commit is a request: only the newest and the one before it are read where nothing overlapped
    before = next(
        (each.requested_time for each in writes if note and each.requested_time not in note.pending), None
    )
    if note is None or not (note.whole or _follows(note.after, before, timeline)):
        return Receipt(since=newest.requested_time)
    found = note.table
    for late in sorted(note.pending):
        added = _added_late(timeline, late)
        if added is None:
            return Receipt(since=late)
        found = found.plus(*added)
    return found


def _follows(after: str | None, before: str | None, timeline: Timeline) -> bool:
    """Return whether the write that a receipt follows is still the one before it, or has left the timeline.

    A savepoint may keep an older one on the timeline; one that is newer came without being noticed.
    """
    known = {each.requested_time for each in timeline.completed_writes}
    is_archived = after is not None and after not in known and (before is None or before < after)
    return after == before or is_archived


def _added_late(timeline: Timeline, instant: str) -> tuple[int, int] | None:
    """Return what an instant adds that was pending for a later commit: nothing while it is, None where it is not known."""
    write = next((each for each in timeline.completed_writes if each.requested_time == instant), None)
    if write is None:
        is_pending = any(each.requested_time == instant for each in timeline.pending)
        archived = () if is_pending else timeline.archived.completed_writes
        return None if any(each.requested_time == instant for each in archived) else (0, 0)
    metadata = timeline.commit_metadata(write)
    if _keeps_rows(metadata, timeline):
        return 0, 0
    note = _Note.of(metadata)
    return None if note is None or note.whole else note.added


def keeps_receipts(timeline: Timeline, options: Options) -> bool:
    """Return whether a write notes what it adds: unless that is off, or what was there before is not known."""
    return bool(options[EngineOptions.RECEIPTS]) and receipt_of(timeline).since is None


def newest_write(timeline: Timeline) -> str | None:
    """Return the requested time of the newest write that may have changed rows, None without one."""
    return next((each.requested_time for each in _writes(timeline)), None)


def _writes(timeline: Timeline, as_of: str | None = None) -> Iterator[Instant]:
    """Yield the writes that may change rows of base files, the newest by completion first."""
    for each in sorted(timeline.completed_writes, key=attrgetter("order"), reverse=True):
        if as_of is None or each.requested_time <= as_of:
            if not _keeps_rows(timeline.commit_metadata(each), timeline):
                yield each


def _keeps_rows(metadata: CommitMetadata, timeline: Timeline) -> bool:
    """Return whether a commit leaves all rows of base files as they are, whoever wrote it: a clustering that meets no logs."""
    return metadata.is_of_service and timeline.config.table_type is TableType.COPY_ON_WRITE


def with_receipt(metadata: CommitMetadata, *, instant: str, current: Timeline) -> CommitMetadata:
    """Return commit metadata with the receipt of the table after it, none where it cannot be known."""
    content = metadata.content
    if content is None or _keeps_rows(metadata, current):
        return metadata
    later = current.config.table_version.has_completion_times
    as_of = None if later else instant
    newest = next(_writes(current, as_of), None)
    after = None if newest is None else newest.requested_time
    if content.counted_at is not None and content.counted_at != after:
        raise WriteConflictError(
            f"the receipt of the table at {content.counted_at} cannot be noted: {after} was committed meanwhile. Run it again"
        )
    replaces = content.whole or content.counted_at is not None
    before = Receipt() if replaces else receipt_of(current, as_of)
    if before.since is not None or (not replaces and not _keeps_hashes(metadata, current)):
        return metadata
    table = before.plus(content.rows, content.hash)
    added = Content(0, 0) if content.counted_at is not None else content
    note: dict[str, object] = {"rows": table.rows, "hash": table.text, "after": after}
    note |= {"rowsAdded": added.rows, "hashAdded": f"{added.hash:016x}"}
    note |= {"whole": True} if content.whole else {}
    pending = {each.requested_time for each in current.pending if each.action in COMPLETE_AS_WRITES}
    earlier = sorted(each for each in pending if each < instant)
    note |= {"pending": earlier} if earlier else {}
    return replace(metadata, extra_metadata={**metadata.extra_metadata, RECEIPT: json.dumps(note)})


def _keeps_hashes(metadata: CommitMetadata, current: Timeline) -> bool:
    """Return whether stored rows have the hashes that they had: not after a change of columns that changes values."""
    old, new = current.table_schema_json(), metadata.schema_json
    if old is None or new is None or old == new:
        return True
    before = {each.name.lower(): each for each in avro_to_arrow(old)}
    after = {each.name.lower(): each for each in avro_to_arrow(new)}
    if any(name not in after or not same_hash(each.type, after[name].type) for name, each in before.items()):
        return False
    added = after.keys() - before.keys()
    defaults = {each["name"].lower(): each.get("default") for each in json.loads(new)["fields"]}
    return not added or not (any(defaults[name] is not None for name in added) or _were_there(added, current))


def _were_there(names: Sequence[str] | set[str], current: Timeline) -> bool:
    """Return whether a column was in the table before, whose values older files have."""
    return any(
        any(each["name"].lower() in names for each in json.loads(metadata.schema_json)["fields"])
        for metadata in since_all_was_replaced(current)
        if metadata.schema_json
    )


def content_of(metadata: CommitMetadata, *, whole: bool = False) -> Content | None:
    """Return what the files of a commit add, None where one of them does not say it."""
    if metadata.replaced and not whole:
        return None
    stats = [stat.content for _, stat in metadata.write_stats()]
    known = [each for each in stats if each is not None]
    if len(known) < len(stats):
        return None
    return Content(sum(rows for rows, _ in known), sum(each for _, each in known) % MODULUS, whole)
