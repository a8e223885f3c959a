"""Files that filters and keys rule out by the metadata table, on tables of Apache Hudi."""

from __future__ import annotations

import datetime
import logging
from pathlib import Path
from typing import Any

import hudi_engine
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hudi_engine.format.merge.filters import as_expression
from hudi_engine.format.storage.local import LocalStorage

from tests.unit.data_skipping.hudi_tables import (
    ALL_INDEXES,
    LISTED,
    LOG_STATS,
    NAMES,
    OLD_INDEX,
    OLD_STATS,
    PARTITIONED_INDEX,
    TYPES,
    opened_files,
    unpack,
)

KEY = "_hoodie_record_key"


def rows(found: pa.Table) -> list[str]:
    return sorted(map(repr, found.to_pylist()))


def skipped(found: hudi_engine.Rows) -> dict[str, int]:
    return {each.by: each.seen - each.kept for each in found.plan.steps if each.kept < each.seen}


def some_filters(table: pa.Table) -> list[Any]:
    """Make filters on every column that has comparable values: each operator, with values that are there and between them."""
    found: list[Any] = []
    for name in table.column_names:
        values = table[name].drop_null()
        if not len(values) or pa.types.is_nested(values.type):
            continue
        some = list(dict.fromkeys((values[0].as_py(), values[len(values) - 1].as_py())))
        found += [[(name, operator, value)] for value in some for operator in ("=", "!=", "<=", ">")]
        found += [[(name, "in", some)], [(name, "not in", some)], pc.field(name).is_null()]
        found.append([[(name, "=", some[0])], [(KEY, "=", table[KEY][0].as_py())]])
        found.append(~(pc.field(name) == pa.scalar(some[0], values.type)))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_filter_gives_the_rows_of_a_full_read(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    columns = [KEY, "_hoodie_commit_time", *hudi_engine.read(path).schema.names]
    everything = hudi_engine.read(path, columns=columns, options=LISTED).to_arrow()
    for each in some_filters(everything):
        expected = everything.filter(as_expression(each, everything.schema))
        found = hudi_engine.read(path, columns=columns, filters=each)
        assert rows(found.to_arrow()) == rows(expected), each
        assert not found.plan.is_listed


@pytest.mark.parametrize("name", NAMES)
def test_every_key_is_found_and_no_other(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    everything = hudi_engine.read(path, columns=[KEY, "_hoodie_commit_time"], options=LISTED).to_arrow()
    keys = everything[KEY].to_pylist()
    for key in [*keys, "", "no such key", f"{keys[0]} "]:
        expected = everything.filter(pc.equal(everything[KEY], key))
        assert rows(hudi_engine.lookup(path, [key], columns=[KEY, "_hoodie_commit_time"]).to_arrow()) == rows(
            expected
        )
    assert rows(hudi_engine.lookup(path, keys, columns=[KEY, "_hoodie_commit_time"]).to_arrow()) == rows(
        everything
    )


@pytest.mark.parametrize("name", [ALL_INDEXES, OLD_INDEX, PARTITIONED_INDEX, LOG_STATS])
def test_a_look_up_opens_the_files_of_its_key_alone(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    everything = hudi_engine.read(path, columns=[KEY], options=LISTED)
    key = everything.to_arrow()[KEY][-1].as_py()
    with opened_files() as opened:
        found = hudi_engine.lookup(path, [key])
        assert found.to_arrow().num_rows == 1
    assert len(found.plan.slices) == 1
    assert set(opened) == {each.path for each in found.files()}
    assert len(everything.plan.slices) > 1


def test_files_come_from_the_metadata_table_and_no_folder_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, listed, own = unpack(ALL_INDEXES, tmp_path), [], LocalStorage.list

    def noted(self: LocalStorage, folder: str, *more: Any, **others: Any) -> Any:
        listed.append(folder)
        return own(self, folder, *more, **others)

    monkeypatch.setattr(LocalStorage, "list", noted)
    assert hudi_engine.read(path, filters=[("qty", "=", 11)]).to_arrow().num_rows == 1
    assert all(folder.startswith(".hoodie/") for folder in listed) and len(listed) <= 7


def test_a_key_that_the_record_index_lacks_opens_no_file(tmp_path: Path) -> None:
    path = unpack(ALL_INDEXES, tmp_path)
    with opened_files() as opened:
        assert hudi_engine.lookup(path, ["k2"]).to_arrow().num_rows == 0  # deleted
    assert opened == []


def test_a_filter_on_the_key_goes_by_the_record_index(tmp_path: Path) -> None:
    found = hudi_engine.read(
        unpack(ALL_INDEXES, tmp_path), filters=[("id", "in", ["k1", "k3"]), ("qty", ">", 0)]
    )
    assert "record_index" in skipped(found) and len(found.plan.slices) == 2


def test_a_filter_on_another_column_goes_by_its_secondary_index(tmp_path: Path) -> None:
    path = unpack(ALL_INDEXES, tmp_path)
    everything = hudi_engine.read(path, columns=["name"], options=LISTED).to_arrow()["name"].drop_null()
    for name in [*everything.to_pylist(), "nobody", "e$ve", ""]:
        with opened_files() as opened:
            found = hudi_engine.read(path, filters=[("name", "in", [name]), ("qty", ">", 0)])
            assert found.to_arrow().num_rows == (name in everything.to_pylist())
        assert len(set(opened)) == (name in everything.to_pylist())
        assert "secondary_index_idx_name" in skipped(found)
    either = [[("name", "=", "eve")], [("qty", "=", 10)]]
    assert "secondary_index_idx_name" not in skipped(hudi_engine.read(path, filters=either))


@pytest.mark.parametrize("option", ["hoodie.metadata.enable", "hoodie.enable.data.skipping"])
def test_either_option_keeps_a_read_from_the_metadata_table(option: str, tmp_path: Path) -> None:
    found = hudi_engine.lookup(unpack(ALL_INDEXES, tmp_path), ["k1"], options={option: "false"})
    assert found.to_arrow().num_rows == 1 and found.plan.is_listed


def test_statistics_of_partitions_and_files_rule_files_out(tmp_path: Path) -> None:
    path = unpack(ALL_INDEXES, tmp_path)
    day = datetime.date(2024, 1, 1)
    amount = hudi_engine.read(path, columns=["amt"]).to_arrow()["amt"].drop_null()[0].as_py()
    for each in [("qty", "=", 11), ("ts", ">", "2030-01-01"), ("d", "<", day), ("amt", "=", amount + 1)]:
        with opened_files() as opened:
            found = hudi_engine.read(path, filters=[each])
            assert found.to_arrow().num_rows == (each[0] == "qty")
        assert len(set(opened)) == (each[0] == "qty"), each
        assert skipped(found).keys() & {"partition_stats", "column_stats"}


def test_table_version_6_skips_by_column_statistics_and_bloom_filters(tmp_path: Path) -> None:
    path = unpack(OLD_STATS, tmp_path)
    key = hudi_engine.read(path, columns=[KEY]).to_arrow()[KEY][0].as_py()
    assert skipped(hudi_engine.lookup(path, [key])).keys() <= {"column_stats", "bloom_filters"}
    with opened_files() as opened:
        assert hudi_engine.read(path, filters=[("_hoodie_commit_time", "<", "2")]).to_arrow().num_rows == 0
    assert opened == []


def test_a_slice_is_skipped_only_if_its_logs_are_ruled_out_too(tmp_path: Path) -> None:
    path = unpack(LOG_STATS, tmp_path)
    found = hudi_engine.read(path, filters=[("name", "=", "zz")])
    in_log = found.to_arrow()
    assert in_log.num_rows == 0 or len(found.plan.slices) == 1
    assert {each.partition for each in found.plan.slices} == {"p=a"}
    assert [each.partition for each in hudi_engine.read(path, filters=[("name", "=", "n3")]).plan.slices] == [
        "p=b"
    ]


def test_bounds_that_hudi_takes_for_a_column_with_nan_are_not_believed(tmp_path: Path) -> None:
    path = unpack(TYPES, tmp_path)
    everything = hudi_engine.read(path, options=LISTED).to_arrow()
    doubles = [field.name for field in everything.schema if pa.types.is_floating(field.type)]
    with_nan = [name for name in doubles if pc.any(pc.is_nan(everything[name])).as_py()]
    assert with_nan
    for name in with_nan:
        for value in (
            everything[name].drop_nan().drop_null() if hasattr(everything[name], "drop_nan") else [1.0]
        ):
            condition = pc.field(name) >= value
            assert rows(hudi_engine.read(path, filters=condition).to_arrow()) == rows(
                everything.filter(condition)
            )


def test_an_earlier_state_is_not_read_by_what_partitions_have_now(tmp_path: Path) -> None:
    path = unpack(LOG_STATS, tmp_path)
    first = hudi_engine.read(path, columns=["_hoodie_commit_time"]).to_arrow()["_hoodie_commit_time"]
    instant = min(first.to_pylist())
    then = hudi_engine.read(path, as_of=instant, options=LISTED).to_arrow()
    for name in then["name"].drop_null().to_pylist():
        found = hudi_engine.read(path, filters=[("name", "=", name)], as_of=instant)
        assert rows(found.to_arrow()) == rows(then.filter(pc.equal(then["name"], name)))
        assert "partition_stats" not in {each.by for each in found.plan.steps}
    keys = [each["id"] for each in then.to_pylist()]
    assert rows(hudi_engine.lookup(path, keys, as_of=instant).to_arrow()) == rows(then)


def test_a_metadata_table_that_lacks_a_commit_is_not_believed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = unpack(ALL_INDEXES, tmp_path)
    timeline = Path(path, ".hoodie/metadata/.hoodie/timeline")
    newest = max(each for each in timeline.iterdir() if each.name.endswith(".deltacommit"))
    instant = newest.name.partition("_")[0]
    newest.unlink()
    with caplog.at_level(logging.WARNING):
        found = hudi_engine.lookup(path, ["k1"])
        assert found.to_arrow().num_rows == 1
    assert found.plan.is_listed
    assert "files are listed, as the metadata table is not used: it lacks" in caplog.text
    assert instant in caplog.text


def test_a_metadata_table_is_not_read_for_a_state_from_before_its_newest_instant(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = unpack(LOG_STATS, tmp_path)
    timeline = Path(path, ".hoodie/timeline")
    newest = max(each.name.partition(".")[0].partition("_")[0] for each in timeline.glob("2*.deltacommit"))
    for each in timeline.glob(f"{newest}*"):
        each.unlink()  # as a reader sees the timeline that looked before that write began
    everything = hudi_engine.read(path, columns=[KEY], options=LISTED).to_arrow()
    found = hudi_engine.lookup(path, everything[KEY].to_pylist(), columns=[KEY])
    assert rows(found.to_arrow()) == rows(everything) and found.plan.is_listed
    assert f"it has instant {newest}, which began after the table was looked at" in caplog.text


def test_a_metadata_table_that_cannot_be_read_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = unpack(ALL_INDEXES, tmp_path)
    for each in Path(path, ".hoodie/metadata/files").rglob("*.hfile"):
        each.write_bytes(b"damaged")
    for each in Path(path, ".hoodie/metadata/files").rglob(".files*"):
        each.write_bytes(each.read_bytes()[: -each.stat().st_size // 2])
    found = hudi_engine.lookup(path, ["k1"])
    assert found.to_arrow().num_rows == 1 and found.plan.is_listed
    assert "without the metadata table" in caplog.text


def test_a_log_says_what_was_skipped_by_which_index(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "hudi_engine"):
        found = hudi_engine.read(unpack(ALL_INDEXES, tmp_path), filters=[("qty", "=", 11)])
        found.to_arrow()
    assert "1 of 2 file slices are read" in caplog.text and "skipped by partition_stats" in caplog.text


def test_keys_may_be_values_of_the_key_columns(tmp_path: Path) -> None:
    path = unpack(ALL_INDEXES, tmp_path)
    assert hudi_engine.lookup(path, [("k1",)]).to_arrow()["id"].to_pylist() == ["k1"]
    with pytest.raises(hudi_engine.ConfigError, match="is no key of table 'all_cow', whose record key is id"):
        hudi_engine.lookup(path, [("k1", "k2")])
