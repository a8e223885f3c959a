"""A write to another engine's table whose paths would not be those that its stored rows have."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.state import TableState
from hudi_engine.table.write.define.table_options import with_table_options
from hudi_engine.table.write.stored_rows import check_stored_paths

from tests.golden.golden import unpack
from tests.helpers.handmade import HandmadeTable

KINDS = "hoodie.datasource.write.partitionpath.field"
TIMES = "hoodie.keygen.timebased."
DAYS = {f"{TIMES}timestamp.type": "EPOCHMILLISECONDS", f"{TIMES}output.dateformat": "yyyy/MM/dd"}
COUNTRIES = pa.schema([("id", pa.int64()), ("country", pa.string()), ("ts", pa.int64())])
ZONE = f"{TIMES}output.timezone"
GIVEN = {KINDS: "country:simple,ts:simple"}
NOON, HOUR = 1705320000000, 3_600_000
"""12:00 of 2024-01-15 in UTC."""


def made(
    path: Path,
    partition_by: str = "country,ts",
    keygen: str = "CustomKeyGenerator",
    *,
    schema: pa.Schema = COUNTRIES,
    merge_on_read: bool = False,
    ours: bool = False,
    **more: str,
) -> HandmadeTable:
    """Make a table as Apache Hudi 0.15 keeps it, or as this engine does."""
    of_hudi = {
        "hoodie.table.timeline.timezone": "LOCAL",
        "hoodie.partition.metafile.use.base.format": "false",
    }
    properties = {
        **({} if ours else of_hudi),
        "hoodie.table.keygenerator.class": f"org.apache.hudi.keygen.{keygen}",
        "hoodie.datasource.write.hive_style_partitioning": "false",
        "hoodie.datasource.write.partitionpath.urlencode": "false",
        **{key.replace("__", "."): value for key, value in more.items()},
    }
    fields = tuple(partition_by.split(","))
    return HandmadeTable(path, schema, fields, merge_on_read=merge_on_read, properties=properties)


def rows(*times: int, country: str = "us") -> pa.Table:
    """Return one row for each time."""
    return pa.table(
        {"id": range(len(times)), "country": [country] * len(times), "ts": times}, schema=COUNTRIES
    )


def check(storage: Storage, **options: str) -> None:
    """Ask as an upsert does."""
    state = TableState.load(storage)
    given = resolve_options({key.replace("__", "."): value for key, value in options.items()})
    check_stored_paths(state, with_table_options(state.config, given, "UPSERT"))


def test_kinds_that_no_property_keeps_are_required(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.commit({"us/2024/01/15": {"a-0": rows(NOON)}})
    example = (
        f"{KINDS} with the kind of each field (in dbt partition_by), such as country:simple,ts:timestamp"
    )
    with pytest.raises(ConfigError, match=rf"{re.escape(example)}.*nothing was written"):
        check(table.storage)
    check(table.storage, **{KINDS: "country:SIMPLE,ts:TIMESTAMP", ZONE: "UTC"}, **DAYS)


def test_the_zone_of_numbers_is_required(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "ts", "TimestampBasedKeyGenerator", **DAYS)
    # at 22:00 in UTC it is the next day in India
    table.commit({"2024/01/16": {"a-0": rows(*(NOON + hour * HOUR for hour in (10, 11, 12, 20)))}})
    with pytest.raises(ConfigError, match=rf"give {ZONE} \(the zone of the machine"):
        check(table.storage)
    check(table.storage, **{ZONE: "Asia/Kolkata"})
    with pytest.raises(ConfigError, match="lie in '2024/01/16'.* would lie in '2024/01/15'"):
        check(table.storage, **{ZONE: "America/New_York"})


def test_a_zone_that_the_table_keeps_is_not_required(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "ts", "TimestampBasedKeyGenerator", **DAYS, **{ZONE: "UTC"})
    table.commit({"2024/01/15": {"a-0": rows(NOON)}})
    check(table.storage)


def test_texts_with_an_offset_need_their_zone(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.string())])
    times = {
        f"{TIMES}timestamp.type": "DATE_STRING",
        f"{TIMES}input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ",
        f"{TIMES}output.dateformat": "yyyy/MM/dd/HH",
    }
    table = made(tmp_path / "t", "at", "TimestampBasedKeyGenerator", schema=schema, **times)
    texts = ["2023-04-01T23:01:00+0530", "2023-04-01T19:31:00+0200"]
    table.commit({"2023/04/01/17": {"a-0": pa.table({"id": [1, 2], "at": texts}, schema=schema)}})
    zone = f"{TIMES}input.timezone"
    with pytest.raises(ConfigError, match=rf"give {zone} \(blank where each text keeps its own offset\)"):
        check(table.storage)
    with pytest.raises(ConfigError, match="would lie in '2023/04/01/23'"):
        check(table.storage, **{zone: ""})
    check(table.storage, **{zone: "UTC"})


@pytest.mark.parametrize("place", [0, 500])
def test_single_rows_may_lie_elsewhere(tmp_path: Path, place: int) -> None:
    table = made(tmp_path / "t", "ts", "TimestampBasedKeyGenerator", **DAYS)
    times = [NOON] * 1000
    times[place] = NOON + 900 * HOUR
    table.commit({"2024/01/15": {"a-0": rows(*times)}})
    check(table.storage, **{ZONE: "UTC"})


def test_a_zone_unknown_to_java_may_be_replaced(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "ts", "TimestampBasedKeyGenerator", **DAYS, **{ZONE: "-08:00"})
    table.commit({"2024/01/15": {"a-0": rows(NOON)}})
    with pytest.raises(ConfigError, match="'-08:00' is not known to Java"):
        check(table.storage)
    check(table.storage, **{ZONE: "GMT-8"})


@pytest.mark.parametrize("stored", ["UTC", "GMT-8", "HST", "MET"])
def test_a_known_zone_stays(tmp_path: Path, stored: str) -> None:
    table = made(tmp_path / "t", "ts", "TimestampBasedKeyGenerator", **DAYS, **{ZONE: stored})
    with pytest.raises(ConfigError, match="leave the option out"):
        check(table.storage, **{ZONE: "GMT-5"})


def test_a_parser_of_the_tables_own_is_refused(tmp_path: Path) -> None:
    parser = {"hoodie.keygen.datetime.parser.class": "com.acme.FiscalDates"}
    table = made(tmp_path / "t", "ts", "TimestampBasedKeyGenerator", **DAYS, **parser)
    with pytest.raises(ConfigError, match="a parser of dates of its own"):
        check(table.storage, **{ZONE: "UTC"})


def test_timestamps_stored_as_text_name_their_option(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("country", pa.string()), ("ts", pa.timestamp("us", "UTC"))])
    table = made(tmp_path / "t", schema=schema)
    at = datetime(2024, 1, 15, 12, tzinfo=timezone.utc)
    stored = pa.table({"id": [1], "country": ["us"], "ts": [at]}, schema=schema)
    table.commit({"us/2024-01-15 12:00:00.0": {"a-0": stored}})
    option = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
    with pytest.raises(ConfigError, match=rf"ts=datetime.* {option} \(false\)"):
        check(table.storage, **GIVEN)
    check(table.storage, **GIVEN, **{option: "true"})


def test_files_with_nulls_only_are_skipped(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "ts", "TimestampBasedKeyGenerator", **DAYS)
    table.commit({"15.01.2024": {"a-0": rows(NOON)}})
    nothing = pa.table({"id": [1], "country": ["us"], "ts": [None]}, schema=COUNTRIES)
    table.commit({"1970/01/01": {"b-0": nothing}})
    with pytest.raises(ConfigError, match=r"lie in '15\.01\.2024'.*output\.dateformat \(yyyy/MM/dd\)"):
        check(table.storage, **{ZONE: "UTC"})


def test_missing_file_is_ignored(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.commit({"us/2024/01/15": {"a-0": rows(NOON)}})
    for file in (tmp_path / "t/us/2024/01/15").glob("*.parquet"):
        file.unlink()
    check(table.storage, **GIVEN)


def test_logs_are_compared_too(tmp_path: Path) -> None:
    table, partition = made(tmp_path / "t", merge_on_read=True), "us/2024/01/15"
    instant = table.next_instant()
    (tmp_path / "t" / partition).mkdir(parents=True)
    blocks = table.data_blocks(partition, "a-0", rows(NOON), instant)
    table.complete(instant, [table.append_log(partition, "a-0", instant, blocks, instant)])
    with pytest.raises(ConfigError, match="would lie in 'us/1705320000000'"):
        check(table.storage, **GIVEN)


def test_a_log_names_the_base_file_below_it(tmp_path: Path) -> None:
    table, partition = made(tmp_path / "t", merge_on_read=True), "us/2024/01/15"
    base, instant = table.next_instant(), table.next_instant()
    below = table.write_file(partition, "a-0", rows(NOON), base)
    blocks = table.delete_blocks(partition, ["0"], instant)
    log = table.append_log(partition, "a-0", base, blocks, instant)
    table.complete(instant, [replace(log, base_file=below.file_name)])
    with pytest.raises(ConfigError, match="would lie in 'us/1705320000000'"):
        check(table.storage, **GIVEN)


@pytest.mark.parametrize(
    ("partition_by", "keygen", "more"),
    [
        ("country", "SimpleKeyGenerator", {}),
        ("country,ts", "ComplexKeyGenerator", {}),
        ("country:simple,ts:simple", "CustomKeyGenerator", {}),
        ("country,ts", "CustomKeyGenerator", {"hoodie.datasource.write.drop.partition.columns": "true"}),
    ],
)
def test_other_tables_cost_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partition_by: str, keygen: str, more: dict[str, str]
) -> None:
    table = made(tmp_path / "t", partition_by, keygen, **more)
    table.commit({"elsewhere": {"a-0": rows(NOON)}})
    state = TableState.load(table.storage)
    monkeypatch.setattr("hudi_engine.table.write.stored_rows.build_key_generator", None)
    check_stored_paths(state, resolve_options({}))


def test_a_table_of_this_engine_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keygen = {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator"}
    table = HandmadeTable(tmp_path / "t", COUNTRIES, ("country", "ts"), properties=keygen)
    table.commit({"elsewhere": {"a-0": rows(NOON)}})
    state = TableState.load(table.storage)
    monkeypatch.setattr("hudi_engine.table.write.stored_rows.build_key_generator", None)
    check_stored_paths(state, resolve_options({}))


def test_a_golden_table_needs_its_zone(tmp_path: Path) -> None:
    storage = open_storage(str(unpack("v6_cow_timestamp_keys_h120", tmp_path)))
    check(storage, **{ZONE: "UTC"})
    with pytest.raises(ConfigError, match=rf"give {ZONE}"):
        check(storage)
