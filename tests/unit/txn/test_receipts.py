"""The receipt of a table by the notes of its commits: overlapping writes are put together, whatever else breaks the chain."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine.errors import WriteConflictError
from hudi_engine.format.schema.row_hash import MODULUS
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, Content
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.table.txn.receipts import Receipt, newest_write, receipt_of, with_receipt

from tests.helpers.handmade import HandmadeTable

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int32())])


class Commits:
    """Commits of a table without files: each is known by the last digits of its time."""

    def __init__(self, folder: Path) -> None:
        self.table = HandmadeTable(folder / "t", SCHEMA)
        self.schema = self.table.avro_text()

    @property
    def timeline(self) -> Timeline:
        return Timeline.load(self.table.storage, self.table.config)

    def noted(self, number: int, content: Content | None, **more: object) -> CommitMetadata:
        made = CommitMetadata(extra_metadata={"schema": self.schema}, content=content, **more)
        return with_receipt(made, instant=self.time(number), current=self.timeline)

    def commit(self, number: int, content: Content | None, **more: object) -> None:
        self.put(number, self.noted(number, content, **more))

    def begin(self, *numbers: int) -> None:
        for number in numbers:
            self.table.storage.create(f".hoodie/{self.time(number)}.commit.requested", b"")

    def put(self, number: int, metadata: CommitMetadata) -> None:
        self.table.storage.create(f".hoodie/{self.time(number)}.commit", metadata.to_json())

    def time(self, number: int) -> str:
        return f"202601010000{number:02d}000"

    def receipt(self, number: int | None = None) -> Receipt:
        return receipt_of(self.timeline, None if number is None else self.time(number))


@pytest.fixture
def commits(tmp_path: Path) -> Commits:
    return Commits(tmp_path)


def test_the_newest_commit_and_the_one_before_are_read(
    commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 9):
        commits.commit(number, Content(1, 10))
    timeline, read = commits.timeline, Timeline.commit_metadata
    asked: set[str] = set()

    def counted(self: Timeline, instant: Instant) -> CommitMetadata:
        asked.add(instant.requested_time)
        return read(self, instant)

    monkeypatch.setattr(Timeline, "commit_metadata", counted)
    assert receipt_of(timeline) == Receipt(8, 80)
    assert asked == {commits.time(8), commits.time(7)}


def test_each_commit_adds_to_the_one_before(commits: Commits) -> None:
    assert commits.receipt() == Receipt()
    commits.commit(1, Content(3, 30))
    commits.commit(2, Content(-1, MODULUS - 5))
    assert commits.receipt() == Receipt(2, 25) and commits.receipt(1) == Receipt(3, 30)
    commits.commit(3, Content(7, 70, whole=True))
    assert commits.receipt() == Receipt(7, 70)


@pytest.mark.parametrize("later", [[], [4], [4, 5]])
def test_writes_that_overlapped_are_put_together(commits: Commits, later: list[int]) -> None:
    commits.commit(1, Content(3, 30))
    commits.begin(2)
    for each in (3, *later):
        commits.commit(each, Content(2, 20))
    commits.commit(2, Content(1, 10))  # began before 3, and is committed after it
    overtaken = 2 * len(later)
    assert commits.receipt() == Receipt(6 + overtaken, 60 + 10 * overtaken)
    assert commits.receipt(2) == Receipt(4, 40) and commits.receipt(3) == Receipt(6, 60)
    commits.commit(6, Content(1, 1))
    assert commits.receipt() == Receipt(7 + overtaken, 61 + 10 * overtaken)


def test_a_write_that_no_commit_saw_pending_is_not_counted_by_guess(commits: Commits) -> None:
    commits.commit(1, Content(3, 30))
    commits.commit(3, Content(2, 20))
    commits.commit(2, Content(1, 10))
    assert commits.receipt().since == commits.time(3)


@pytest.mark.parametrize("note", [None, Content(9, 90, whole=True)])
def test_a_late_write_that_does_not_say_what_it_added_breaks_the_chain(
    commits: Commits, note: Content | None
) -> None:
    commits.commit(1, Content(3, 30))
    commits.begin(2)
    commits.commit(3, Content(2, 20))
    assert commits.receipt() == Receipt(5, 50), "it has added nothing while it is pending"
    commits.commit(2, note)
    assert commits.receipt().since == commits.time(2)


def test_a_late_write_may_be_archived_or_rolled_back(
    commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits.begin(1)
    commits.commit(2, Content(2, 20))
    commits.table.storage.delete(f".hoodie/{commits.time(1)}.commit.requested")
    assert commits.receipt() == Receipt(2, 20)
    commits.commit(1, Content(1, 10))
    archived = commits.timeline
    commits.table.storage.delete(f".hoodie/{commits.time(1)}.commit")
    monkeypatch.setattr(Timeline, "archived", property(lambda _: archived))
    assert commits.receipt().since == commits.time(1)


def test_first_writes_that_overlapped_are_put_together(commits: Commits) -> None:
    commits.begin(1)
    commits.commit(2, Content(2, 20))
    commits.commit(1, Content(1, 10))
    assert commits.receipt() == Receipt(3, 30)


@pytest.mark.parametrize("note", [None, "{}", "no JSON", '{"rows": 1}'])
def test_a_commit_that_does_not_say_what_it_did_breaks_the_chain(commits: Commits, note: str | None) -> None:
    commits.commit(1, Content(3, 30))
    extra = {"schema": commits.schema, **({} if note is None else {"hudi_engine.receipt": note})}
    commits.put(2, CommitMetadata(extra_metadata=extra))
    assert commits.receipt().since == commits.time(2)
    commits.commit(3, Content(1, 10))
    assert commits.receipt().since == commits.time(3)
    commits.commit(4, Content(9, 90, counted_at=newest_write(commits.timeline)))
    commits.commit(5, Content(1, 1))
    assert commits.receipt() == Receipt(10, 91)


def test_services_change_nothing(commits: Commits) -> None:
    commits.commit(1, Content(3, 30))
    commits.put(2, CommitMetadata(extra_metadata={"schema": commits.schema}, operation_type="CLUSTER"))
    assert commits.receipt() == Receipt(3, 30)
    commits.commit(3, Content(1, 10))
    assert commits.receipt() == Receipt(4, 40)


def test_a_count_is_refused_when_another_commit_came_meanwhile(commits: Commits) -> None:
    commits.commit(1, Content(3, 30))
    with pytest.raises(WriteConflictError, match="was committed meanwhile"):
        commits.noted(2, Content(3, 30, counted_at="20260101000000000"))


def test_a_write_that_left_the_timeline_is_taken_as_archived(commits: Commits) -> None:
    for number in (1, 2, 3):
        commits.commit(number, Content(number, 10 * number))
    commits.table.storage.delete(f".hoodie/{commits.time(2)}.commit")  # 1 is kept by a savepoint
    assert commits.receipt() == Receipt(6, 60)


def test_services_alone_on_the_timeline_of_a_table_with_rows_say_nothing(
    commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (2, 3):
        commits.put(
            number, CommitMetadata(extra_metadata={"schema": commits.schema}, operation_type="CLUSTER")
        )
    assert commits.receipt() == Receipt()
    archived = commits.timeline
    monkeypatch.setattr(Timeline, "archived", property(lambda _: archived))
    assert commits.receipt().since == commits.time(2)
    commits.commit(4, Content(1, 10))
    assert commits.receipt().since == commits.time(4)


def test_writes_that_overlapped_after_an_archived_one_are_put_together(commits: Commits) -> None:
    commits.commit(1, Content(1, 10))
    commits.begin(2)
    commits.commit(3, Content(3, 30))
    commits.put(2, commits.noted(2, Content(2, 20)))
    commits.table.storage.delete(f".hoodie/{commits.time(1)}.commit")
    assert commits.receipt() == Receipt(6, 60)


@pytest.mark.parametrize(
    ("columns", "keeps"),
    [
        ([("id", pa.string()), ("n", pa.int64())], True),
        ([("id", pa.string()), ("n", pa.int32()), ("m", pa.string())], True),
        ([("id", pa.string()), ("n", pa.string())], False),
        ([("id", pa.string()), ("n", pa.float64())], False),
        ([("id", pa.string())], False),
    ],
)
def test_columns_may_change_where_stored_rows_keep_their_hash(
    commits: Commits, columns: list[tuple[str, pa.DataType]], keeps: bool
) -> None:
    commits.commit(1, Content(3, 30))
    commits.table.schema = pa.schema(columns)
    commits.schema = commits.table.avro_text()
    commits.commit(2, Content(1, 10))
    assert commits.receipt() == (Receipt(4, 40) if keeps else Receipt(since=commits.time(2)))


def test_a_column_that_comes_back_brings_old_values(commits: Commits) -> None:
    commits.commit(1, Content(3, 30))
    with_both, commits.table.schema = commits.schema, pa.schema([("id", pa.string())])
    commits.schema = commits.table.avro_text()
    commits.put(2, CommitMetadata(extra_metadata={"schema": commits.schema}))
    commits.commit(3, Content(3, 33, counted_at=commits.time(2)))
    assert commits.receipt() == Receipt(3, 33)
    commits.schema = with_both
    commits.commit(4, Content(1, 10))
    assert commits.receipt().since == commits.time(4)
