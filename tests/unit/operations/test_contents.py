"""A count and a comparison of tables that Apache Hudi wrote, which have no receipts until one is noted."""

from __future__ import annotations

import shutil
from pathlib import Path

from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.operations import OPERATIONS
from hudi_engine.table.table_services import TableServices

from tests.golden.golden import unpack

COW = "v6_cow_nonpartitioned_upsert_h0150"


def services(folder: Path) -> TableServices:
    return TableServices(open_storage(str(folder)), resolve_options(None))


def test_a_table_of_another_writer_has_no_receipt_until_one_is_noted(tmp_path: Path) -> None:
    table, verify = unpack(COW, tmp_path), OPERATIONS["verify"]
    first = verify.call(services(table), {})
    assert first.ok and first.facts["receipt"].startswith("none at") and first.facts["rows"] > 0
    noted = verify.call(services(table), {"note": True})
    assert noted.notes[0].startswith("receipt noted by commit")
    again = verify.call(services(table), {})
    assert again.ok and again.facts["receipt"] == "matches"
    assert (again.facts["rows"], again.facts["hash"]) == (first.facts["rows"], first.facts["hash"])


def test_copies_are_the_same_by_key_and_then_by_receipts(tmp_path: Path) -> None:
    table, diff = unpack(COW, tmp_path), OPERATIONS["diff"]
    copy = tmp_path / "copy"
    shutil.copytree(table, copy)
    by_key = diff.call(services(table), {"other": str(copy)})
    assert by_key.ok and by_key.notes == ["the same rows, by key and hash"]
    for each in (table, copy):
        OPERATIONS["verify"].call(services(each), {"note": True})
    assert diff.call(services(table), {"other": str(copy)}).notes == [
        "the same rows, by the receipts of both"
    ]


def test_a_state_before_the_oldest_commit_is_counted_not_taken_from_a_later_receipt(tmp_path: Path) -> None:
    table = services(unpack(COW, tmp_path))
    OPERATIONS["verify"].call(table, {"note": True})
    before = OPERATIONS["diff"].call(table, {"as_of": "2020-01-01"})
    assert not before.ok and before.notes != ["the same rows, by the receipts of both"]
    verified = OPERATIONS["verify"].call(table, {"as_of": "2020-01-01"})
    assert verified.ok and verified.facts["rows"] == 0


def test_tables_of_other_key_fields_are_compared_by_rows(tmp_path: Path) -> None:
    table = unpack(COW, tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(table, copy)
    properties = copy / ".hoodie" / "hoodie.properties"
    lines = [each for each in properties.read_text().splitlines() if "checksum" not in each]
    properties.write_text(
        "\n".join(f"{each},name" if "recordkey.fields" in each else each for each in lines) + "\n"
    )
    assert OPERATIONS["diff"].call(services(table), {"other": str(copy)}).ok
