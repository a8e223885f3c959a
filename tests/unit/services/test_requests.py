"""Requests to the storage: what an operation costs on a remote store, as numbers that only a decision may raise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.table.table_services import TableServices

from tests.helpers.handmade import HandmadeTable
from tests.helpers.logged import LoggingStorage
from tests.unit.services.tables import DAY_1, GROUP_1, SCHEMA, batch, copy_on_write, options, update, writes


def two_versions(path: Path) -> HandmadeTable:
    """A file group of two versions, published."""
    table = copy_on_write(path, 2)
    TableServices(table.storage, options()).publish()
    return table


def one_planned_slice(path: Path) -> HandmadeTable:
    """A file slice with a log, published, and the plan of its compaction."""
    table = HandmadeTable(path, SCHEMA, ("day",), merge_on_read=True)
    first = table.commit({DAY_1: {GROUP_1: batch({"a": 1, "b": 2}, DAY_1)}})
    update(table, {(DAY_1, GROUP_1): {"a": 9}}, first)
    services = TableServices(table.storage, options())
    services.publish()
    services.schedule_compaction()
    return table


@pytest.mark.parametrize(
    ("make", "act", "most"),
    [
        (two_versions, TableServices.rollback, 30),
        # Taking the plan 9, the slice 8, its commit under the lock 12, what late tasks left 5, the manifest 8. The partition is
        # listed four times: for the sizes, before and after the commit for files of earlier runs, and for the manifest.
        (one_planned_slice, lambda services, _: services.compact(), 42),
    ],
    ids=["rollback", "compaction"],
)
def test_an_operation_sends_few_requests(
    make: Callable[[Path], HandmadeTable],
    act: Callable[[TableServices, str], object],
    most: int,
    tmp_path: Path,
) -> None:
    storage = LoggingStorage(make(tmp_path / "table").storage)
    newest = writes(storage)[-1]
    storage.requests.clear()
    act(TableServices(storage, options()), newest)
    assert len(storage.requests) <= most, storage.requests
    assert storage.count("read", PROPERTIES_PATH) == 1
