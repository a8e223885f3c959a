"""Procedures that change a table do what Apache Hudi's of the same name do: the same rows told, the same files and rows left."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.table_services import TableServices
from hudi_engine.table.txn.owner import Owner

from tests.golden.golden import unpack
from tests.helpers.owners import write_owner
from tests.judge.apache_hudi import ApacheHudi
from tests.judge.readers import Judges
from tests.judge.rows import difference
from tests.judge.test_procedures import ours

pytestmark = pytest.mark.long


def services(path: Path) -> TableServices:
    return TableServices(open_storage(str(path)), resolve_options({}))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """The same merge-on-read table of Apache Hudi twice: for our procedure, and for Hudi's."""
    unpacked = Path(unpack("v6_mor_simple_deletes_h0150", tmp_path / "made"))
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for place in (mine, theirs):
        shutil.copytree(unpacked, place, copy_function=shutil.copy2)
    return mine, theirs


@pytest.fixture
def hudi(apache_hudi: Judges) -> Iterator[ApacheHudi]:
    return apache_hudi("1.2.0")


def files(path: Path) -> list[str]:
    """Base files of a table."""
    return sorted(str(each.relative_to(path)) for each in path.rglob("*.parquet"))


def test_properties_are_overwritten_and_told_alike(pair: tuple[Path, Path], hudi: ApacheHudi) -> None:
    name, told = "repair_overwrite_hoodie_props", []
    for path in pair:
        lines = (path / ".hoodie/hoodie.properties").read_text().splitlines()
        new = path.with_suffix(".properties")
        new.write_text("\n".join([*(line for line in lines if "checksum" not in line), "hoodie.note=new"]))
    for path, run in zip(pair, (ours, hudi.call), strict=True):
        rows = run(path, name, new_props_file_path=str(path.with_suffix(".properties")))
        told.append({row["property"]: (row["old_value"], row["new_value"]) for row in rows})
    # Hudi 1.2 adds two properties of its own, with the values that it takes where they are not said
    more = {"hoodie.timeline.history.path", "hoodie.timeline.path"}
    assert told[1].keys() - told[0].keys() <= more
    assert told[0] == {key: values for key, values in told[1].items() if key not in more}
    assert told[0]["hoodie.note"] == ("null", "new")
    assert difference(hudi.read(pair[0]), hudi.read(pair[1])) == ""


@pytest.mark.parametrize("drops_plan", [False, True])
def test_a_compaction_in_flight_is_taken_back_alike(
    drops_plan: bool, pair: tuple[Path, Path], hudi: ApacheHudi
) -> None:
    before = hudi.read(pair[0])
    planned = str(services(pair[0]).schedule_compaction().instant)
    shutil.rmtree(pair[1])
    meta = pair[0] / ".hoodie"
    (meta / f"{planned}.compaction.inflight").write_bytes(b"")
    # an owner that this process does not work for is gone
    write_owner(services(pair[0]).storage, planned, Owner.current())
    shutil.copytree(pair[0], pair[1], copy_function=shutil.copy2)
    name, dropping = "run_rollback_inflight_tableservice", {"delete_request_instant_file": True}
    dropping = dropping if drops_plan else {}
    rows: list[dict[str, Any]] = hudi.call(pair[1], name, pending_instant=planned, **dropping)
    rows += ours(pair[0], name, pending_instant=planned, **dict.fromkeys(dropping, "true"))
    assert [row["instant"] for row in rows] == [planned, planned]
    assert set(rows[0]) == set(rows[1]) == {"instant", "time_cost"}
    left = [[(each.instant, str(each.state)) for each in services(path).compactions()] for path in pair]
    assert left[0] == left[1] == ([] if drops_plan else [(planned, "REQUESTED")])
    assert files(pair[0]) == files(pair[1])
    for path in pair:
        assert difference(hudi.read(path), before) == ""
