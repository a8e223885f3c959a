"""Whether a clean is due, as a look at a table says it, against what a clean does."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.format.config.options import resolve_options
from hudi_engine.table.services.clean.execute import clean
from hudi_engine.table.services.due import services_due
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.consumers import CONSUMERS, register_consumer

from tests.unit.services.tables import copy_on_write


@pytest.mark.parametrize(
    "policy", ["KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS"]
)
def test_a_clean_is_due_when_one_would_do_something_beside_what_readers_need(
    tmp_path: Path, policy: str
) -> None:
    storage = copy_on_write(tmp_path / "t", 8).storage
    writes = [each.requested_time for each in TableState.load(storage).timeline.completed_writes]
    amounts = {"commits": 2, "fileversions": 2, "hours": 1}
    given = resolve_options(
        {
            "hoodie.clean.policy": policy,
            **{f"hoodie.clean.{key}.retained": each for key, each in amounts.items()},
        }
    )

    def due() -> tuple[bool, str]:
        state = TableState.load(storage)
        return next((each.due, each.reason) for each in services_due(state, given) if each.service == "clean")

    register_consumer(storage, "feed", writes[0], 1)
    assert due()[0] is False and f"what a registered reader needs after {writes[0]}" in due()[1]
    assert clean(storage, given).files_deleted == 0
    register_consumer(storage, "feed", writes[4], 1)
    assert due()[0] is True
    assert clean(storage, given).files_deleted > 0
    assert due()[0] is False
    storage.replace(f"{CONSUMERS}/damaged.json", b"?")
    assert due()[0] is False and "does not say which changes are kept for whom" in due()[1]


def test_a_clean_that_is_damaged_is_the_reason_and_no_error_of_the_look(tmp_path: Path) -> None:
    storage = copy_on_write(tmp_path / "t", 8).storage
    given = resolve_options({"hoodie.clean.commits.retained": 2})
    clean(storage, given)
    timeline = TableState.load(storage).timeline
    damaged = next(each.file_name for each in timeline.completed if each.action == "clean")
    storage.replace(f".hoodie/{damaged}", b"?")
    found = {each.service: each for each in services_due(TableState.load(storage), given)}
    assert not found["clean"].due
