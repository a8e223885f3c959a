"""What is kept for a registered reader of changes, and for how long."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import ConfigError, CorruptTableError, HistoryGapError
from hudi_engine.table.services import clean
from hudi_engine.table.txn.consumers import (
    CONSUMERS,
    forget_consumer,
    list_consumers,
    oldest_needed,
    register_consumer,
)

from tests.helpers.handmade import HandmadeTable
from tests.unit.services import tables
from tests.unit.services.tables import options, rows
from tests.unit.services.test_clean import versions

SECOND = "20260101000002000"
BY_COMMITS = options(clean__commits__retained=1)
BY_VERSIONS = options(clean__policy="KEEP_LATEST_FILE_VERSIONS", clean__fileversions__retained=1)


@pytest.fixture
def five(tmp_path: Path) -> HandmadeTable:
    """A copy-on-write file group with five versions."""
    return tables.copy_on_write(tmp_path / "five", 5)


@pytest.mark.parametrize("policy", [BY_COMMITS, BY_VERSIONS], ids=["commits", "versions"])
def test_clean_spares_what_a_reader_has_not_taken(five: HandmadeTable, policy: object) -> None:
    register_consumer(five.storage, "daily", SECOND, 1)
    register_consumer(five.storage, "hourly", "20260101000004000", 1)
    clean(five.storage, policy)  # type: ignore[arg-type]
    assert SECOND[12:14] == "02" and {2, 3, 4, 5} <= set(versions(five))
    assert rows(five.storage, SECOND) == {"a": 2}, "the state that the reader has reached can be read"

    assert forget_consumer(five.storage, "daily")
    clean(five.storage, policy)  # type: ignore[arg-type]
    assert 2 not in versions(five)
    assert {4, 5} <= set(versions(five))


def test_a_reader_that_went_away_holds_nothing(five: HandmadeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    register_consumer(five.storage, "daily", SECOND, 24)
    (found,) = list_consumers(five.storage)
    monkeypatch.setattr("hudi_engine.table.txn.consumers.time.time", lambda: found.until_ms / 1000 + 1)
    assert list_consumers(five.storage) == []
    assert clean(five.storage, BY_COMMITS).files_deleted == 3


def test_a_reader_registered_again_takes_the_place_of_what_it_was(five: HandmadeTable) -> None:
    assert oldest_needed(five.storage) is None
    register_consumer(five.storage, "daily", SECOND, 1)
    register_consumer(five.storage, "daily", "20260101000003000", 1)
    assert oldest_needed(five.storage) == "20260101000003000"
    assert not forget_consumer(five.storage, "weekly")


@pytest.mark.parametrize(
    ("name", "instant", "hours"),
    [(" ", SECOND, 1), ("a", "then", 1), ("a", SECOND, 0), ("a", SECOND, float("nan"))],
)
def test_a_registration_that_says_nothing_is_refused(
    five: HandmadeTable, name: str, instant: str, hours: float
) -> None:
    with pytest.raises(ConfigError, match="legal values: a name, the digits of a commit and a time above 0"):
        register_consumer(five.storage, name, instant, hours)


@pytest.mark.parametrize("instant", ["20990101000000000", "2026", SECOND[:-3]])
def test_a_reader_is_not_registered_from_an_instant_that_the_table_never_had(
    five: HandmadeTable, instant: str
) -> None:
    session: Any = SimpleNamespace(conf={})
    table = HudiTable(session, str(five.path), five.storage)
    with pytest.raises(
        HistoryGapError, match=f"after {instant} .* no commit of its timeline is that instant"
    ):
        table.register_consumer("daily", instant, hours=1)
    with pytest.raises(ConfigError, match="the digits of a commit"):
        table.register_consumer("daily", "then", hours=1)
    assert table.consumers() == []
    assert table.register_consumer("daily", SECOND, hours=1).instant == SECOND


def test_a_registration_that_cannot_be_read_stops_the_clean(five: HandmadeTable) -> None:
    five.storage.create(f"{CONSUMERS}/x.json", b"{}")
    with pytest.raises(CorruptTableError, match="Delete the file"):
        clean(five.storage, BY_COMMITS)
    assert versions(five) == [1, 2, 3, 4, 5]
