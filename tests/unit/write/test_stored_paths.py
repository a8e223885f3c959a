"""A write to another engine's table whose paths would not be those that its stored rows have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.state import TableState
from hudi_engine.table.write.define.table_options import with_table_options
from hudi_engine.table.write.stored_paths import check_stored_paths

from tests.golden.golden import unpack
from tests.helpers.handmade import HandmadeTable

KINDS = "hoodie.datasource.write.partitionpath.field"
TIMES = "hoodie.keygen.timebased."
DAYS = {f"{TIMES}timestamp.type": "EPOCHMILLISECONDS", f"{TIMES}output.dateformat": "yyyy/MM/dd"}
COUNTRIES = pa.schema([("id", pa.int64()), ("country", pa.string()), ("ts", pa.int64())])
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


def test_kinds_that_no_property_keeps_are_asked_for(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.commit({"us/2024/01/15": {"a-0": rows(NOON)}})
    with pytest.raises(ConfigError) as raised:
        check(table.storage)
    told = str(raised.value)
    assert "lie in 'us/2024/01/15'" in told and "would lie in 'us/1705320000000'" in told
    assert "partition_by (country:simple,ts:simple)" in told and "country='us', ts=1705320000000" in told
    assert (
        f"{KINDS} with the kind of each field (in dbt partition_by), such as country:simple,ts:timestamp"
        in told
    )
    assert "nothing was written" in told

    check(table.storage, **{KINDS: "country:SIMPLE,ts:TIMESTAMP"}, **DAYS)


def test_stored_paths_of_values_leave_everything_as_it_is(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.commit({f"us/{NOON}": {"a-0": rows(NOON)}})
    check(table.storage)
    with pytest.raises(ConfigError, match="would lie in 'us/2024/01/15'"):
        check(table.storage, **{KINDS: "country:SIMPLE,ts:TIMESTAMP"}, **DAYS)


def test_the_zone_of_the_machine_that_formatted_numbers_is_found(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "ts", "TimestampBasedKeyGenerator", **DAYS)
    # at 22:00 in UTC it is the next day in India
    table.commit({"2024/01/16": {"a-0": rows(*(NOON + hour * HOUR for hour in (10, 11, 12, 20)))}})
    with pytest.raises(ConfigError, match=r"in '2024/01/16'.* in '2024/01/15'.*output\.timezone=GMT\+02:00"):
        check(table.storage)
    check(table.storage, **{f"{TIMES}output.timezone": "Asia/Kolkata"})


def test_texts_that_lost_their_offset_were_read_in_utc(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.string())])
    times = {
        f"{TIMES}timestamp.type": "DATE_STRING",
        f"{TIMES}input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ",
        f"{TIMES}output.dateformat": "yyyy/MM/dd/HH",
    }
    table = made(tmp_path / "t", "at", "TimestampBasedKeyGenerator", schema=schema, **times)
    texts = ["2023-04-01T23:01:00+0530", "2023-04-01T19:31:00+0200"]
    table.commit({"2023/04/01/17": {"a-0": pa.table({"id": [1, 2], "at": texts}, schema=schema)}})
    with pytest.raises(ConfigError, match=r"would lie in '2023/04/01/23'.* fit \S+input\.timezone=UTC:"):
        check(table.storage)
    check(table.storage, **{f"{TIMES}input.timezone": "UTC"})


def test_a_row_whose_value_was_changed_where_it_lies_is_no_other_setting(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "ts", "TimestampBasedKeyGenerator", **DAYS)
    table.commit({"2024/01/15": {"a-0": rows(NOON, NOON + HOUR, NOON + 900 * HOUR)}})
    check(table.storage)


@pytest.mark.parametrize("place", [0, 500])
def test_one_row_that_a_zone_would_explain_is_no_other_zone(tmp_path: Path, place: int) -> None:
    table = made(tmp_path / "t", "ts", "TimestampBasedKeyGenerator", **DAYS)
    times = [NOON] * 1000
    times[place] = NOON + 15 * HOUR
    table.commit({"2024/01/15": {"a-0": rows(*times)}})
    check(table.storage)


def test_a_zone_explains_rows_wherever_they_come_in_all_files(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "ts", "TimestampBasedKeyGenerator", **DAYS)
    late = [NOON] * 500 + [NOON + 13 * HOUR] * 2
    table.commit({"2024/01/15": {"a-0": rows(*late)}, "2024/01/16": {"b-0": rows(NOON + 24 * HOUR)}})
    with pytest.raises(ConfigError, match=r"would lie in '2024/01/16'.* fit \S+output\.timezone=GMT-01:15:"):
        check(table.storage)
    table.commit({"2024/01/16": {"b-0": rows(NOON + 13 * HOUR)}})
    check(table.storage)


def day_in(zone: str, day: str, hours: Iterable[float] = range(24)) -> pa.Table:
    """Return rows of one day in a zone, at some hours."""
    first = datetime.strptime(day, "%Y/%m/%d").replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000
    return rows(*(int(first + hour * HOUR) for hour in hours))


def days_of(path: Path, zone: str, *days: str, **options: Any) -> HandmadeTable:
    """Make a table whose newest commits wrote one file a day, formatted on a machine in a zone."""
    hours = options.pop("hours", range(24))
    table = made(path, "ts", "TimestampBasedKeyGenerator", **DAYS, **options)
    for number, day in enumerate(days):
        table.commit({day: {f"{number}-0": day_in(zone, day, hours)}})
    return table


@pytest.mark.parametrize(
    ("zone", "told", "newest", "offset"),
    [
        ("Europe/Berlin", "Europe/Paris", "2024/07/16", "GMT+01:00"),
        ("Europe/London", "Europe/London", "2024/07/16", ""),
        ("America/Chicago", "America/Chicago", "2024/01/16", "GMT-5"),
    ],
)
def test_a_zone_with_summer_time_is_found_by_name(
    tmp_path: Path, zone: str, told: str, newest: str, offset: str
) -> None:
    table = days_of(tmp_path / "t", zone, "2024/01/15", "2024/07/15", newest)
    for given in ("", offset):
        with pytest.raises(ConfigError, match=rf"fit \S+output\.timezone={told}: .* by its name"):
            check(table.storage, **({f"{TIMES}output.timezone": given} if given else {}))
    check(table.storage, **{f"{TIMES}output.timezone": zone})


@pytest.mark.parametrize(
    "more", [{"output.timezone": ""}, {"input.timezone": ""}, {"timezone": ""}, {"input.timezone": "EST"}]
)
def test_a_zone_that_says_nothing_ends_no_search(tmp_path: Path, more: dict[str, str]) -> None:
    options = {f"{TIMES}{key}": value for key, value in more.items()}
    table = days_of(tmp_path / "t", "Europe/Paris", "2024/01/15", "2024/07/15", "2024/07/16", **options)
    with pytest.raises(ConfigError, match=r"fit \S+output\.timezone=Europe/Paris: "):
        check(table.storage)


def test_times_that_a_turned_clock_does_not_show_are_of_another_zone(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.string())])
    times = {
        f"{TIMES}timestamp.type": "DATE_STRING",
        f"{TIMES}input.dateformat": "yyyy-MM-dd HH:mm:ss",
        f"{TIMES}output.dateformat": "yyyy/MM/dd",
        f"{TIMES}output.timezone": "UTC",
    }
    table = made(tmp_path / "t", "at", "TimestampBasedKeyGenerator", schema=schema, **times)
    texts = [f"2024-03-30 {hour:02d}:00:00" for hour in range(24)]
    texts += ["2024-03-31 01:30:00", "2024-03-31 05:00:00"]  # moved; the first is no time in London
    stored = pa.table({"id": range(len(texts)), "at": texts}, schema=schema)
    table.commit({"2024/03/30": {"a-0": stored}})
    check(table.storage)


def test_an_offset_that_the_table_says_is_not_asked_for_summer_time(tmp_path: Path) -> None:
    zone = {f"{TIMES}output.timezone": "GMT-8"}
    table = days_of(tmp_path / "t", "Etc/GMT+8", "2024/01/15", hours=range(8, 24), **zone)
    table.commit({"2024/01/16": {"b-0": day_in("Etc/GMT+8", "2024/01/16", [*range(8, 24), 24.2, 24.3])}})
    check(table.storage)


def test_the_zone_of_both_is_said_anew_by_its_own_name(tmp_path: Path) -> None:
    both = f"{TIMES}timezone"
    table = days_of(tmp_path / "t", "Etc/GMT+8", "2024/01/15", "2024/01/16", **{both: "-08:00"})
    with pytest.raises(ConfigError, match=rf"fit {both}=GMT-08:00: give that"):
        check(table.storage, **{both: "UTC"})
    check(table.storage, **{both: "GMT-8"})


def test_one_row_a_night_in_several_files_is_a_zone(tmp_path: Path) -> None:
    hours = [0.5, *range(8, 20)]
    table = days_of(tmp_path / "t", "Asia/Kolkata", "2024/01/15", "2024/01/16", "2024/01/17", hours=hours)
    with pytest.raises(ConfigError, match=r"fit \S+output\.timezone=GMT\+05:00: .* by its name"):
        check(table.storage)
    check(table.storage, **{f"{TIMES}output.timezone": "Asia/Kolkata"})


def test_rows_that_no_zone_explains_beside_whole_days_were_moved(tmp_path: Path) -> None:
    table = days_of(tmp_path / "t", "UTC", "2024/01/15", "2024/01/16")
    table.commit({"2024/01/17": {"moved-0": day_in("UTC", "2024/01/17", [9, 10, 11, 12, 26, 26.5])}})
    check(table.storage)


def test_who_knows_that_rows_were_moved_says_utc(tmp_path: Path) -> None:
    table = days_of(tmp_path / "t", "UTC", "2024/01/15", hours=[9, 10, 11, 12, 26, 26.5])
    with pytest.raises(ConfigError, match=r"all lie in UTC but for .* \S+output\.timezone=UTC; nothing"):
        check(table.storage)
    check(table.storage, **{f"{TIMES}output.timezone": "UTC"})


ANEW = [
    ("-08:00", "UTC"),
    ("-08:00", "GMT-8"),
    ("EST", "GMT-5"),
    ("EST", "America/New_York"),
    ("gmt+5", "UTC"),
]


@pytest.mark.parametrize(("stored", "given"), ANEW)
@pytest.mark.parametrize("creator", ["0.15", "dbt-hudi"])
def test_a_zone_that_two_take_for_two_may_be_said_anew(
    tmp_path: Path, creator: str, stored: str, given: str
) -> None:
    zone = f"{TIMES}output.timezone"
    written_in = {"GMT-8": "Etc/GMT+8", "GMT-5": "Etc/GMT+5"}.get(given, given)
    days = ("2024/07/15", "2024/07/16")
    table = days_of(tmp_path / "t", written_in, *days, ours=creator == "dbt-hudi", **{zone: stored})
    check(table.storage, **{zone: given})
    for other in {"GMT-8" if stored == "-08:00" else "America/New_York", "UTC", "GMT-5"} - {given}:
        with pytest.raises(
            ConfigError, match=r"rows fit \S+output.timezone=\S+: give that|leave the option out"
        ):
            check(table.storage, **{zone: other})


@pytest.mark.parametrize("stored", ["UTC", "GMT-8", "HST", "MET"])
def test_a_zone_that_all_take_for_one_stays(tmp_path: Path, stored: str) -> None:
    table = made(
        tmp_path / "t", "ts", "TimestampBasedKeyGenerator", **DAYS, **{f"{TIMES}output.timezone": stored}
    )
    with pytest.raises(ConfigError, match="leave the option out"):
        check(table.storage, **{f"{TIMES}output.timezone": "GMT-5"})


def test_a_parser_of_its_own_may_agree_for_some(tmp_path: Path) -> None:
    parser = {"hoodie.keygen.datetime.parser.class": "com.acme.FiscalDates"}
    table = made(tmp_path / "t", "ts", "TimestampBasedKeyGenerator", **DAYS, **parser)
    table.commit({"2024/01/15": {"a-0": rows(NOON, NOON + HOUR, NOON + 900 * HOUR)}})
    with pytest.raises(ConfigError, match="by a parser of dates of their own"):
        check(table.storage)


def test_timestamps_that_a_bulk_load_wrote_as_text_name_their_option(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("country", pa.string()), ("ts", pa.timestamp("us", "UTC"))])
    table = made(tmp_path / "t", schema=schema)
    at = datetime(2024, 1, 15, 12, tzinfo=timezone.utc)
    stored = pa.table({"id": [1], "country": ["us"], "ts": [at]}, schema=schema)
    table.commit({"us/2024-01-15 12:00:00.0": {"a-0": stored}})
    option = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
    with pytest.raises(ConfigError, match=rf"ts=datetime.* {option} \(false\)"):
        check(table.storage)
    check(table.storage, **{option: "true"})


def test_rows_of_null_say_nothing_and_other_files_are_asked(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "ts", "TimestampBasedKeyGenerator", **DAYS)
    table.commit({"15.01.2024": {"a-0": rows(NOON)}})
    nothing = pa.table({"id": [1], "country": ["us"], "ts": [None]}, schema=COUNTRIES)
    table.commit({"1970/01/01": {"b-0": nothing}})
    with pytest.raises(ConfigError, match=r"lie in '15\.01\.2024'.*output\.dateformat \(yyyy/MM/dd\)"):
        check(table.storage)


def test_a_file_that_is_gone_says_nothing(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.commit({"us/2024/01/15": {"a-0": rows(NOON)}})
    for file in (tmp_path / "t/us/2024/01/15").glob("*.parquet"):
        file.unlink()
    check(table.storage)


def test_logs_say_it_too(tmp_path: Path) -> None:
    table, partition = made(tmp_path / "t", merge_on_read=True), "us/2024/01/15"
    instant = table.next_instant()
    (tmp_path / "t" / partition).mkdir(parents=True)
    blocks = table.data_blocks(partition, "a-0", rows(NOON), instant)
    table.complete(instant, [table.append_log(partition, "a-0", instant, blocks, instant)])
    with pytest.raises(ConfigError, match="would lie in 'us/1705320000000'"):
        check(table.storage)


def test_a_log_names_the_base_file_below_it(tmp_path: Path) -> None:
    table, partition = made(tmp_path / "t", merge_on_read=True), "us/2024/01/15"
    base, instant = table.next_instant(), table.next_instant()
    below = table.write_file(partition, "a-0", rows(NOON), base)
    blocks = table.delete_blocks(partition, ["0"], instant)
    log = table.append_log(partition, "a-0", base, blocks, instant)
    table.complete(instant, [replace(log, base_file=below.file_name)])
    with pytest.raises(ConfigError, match="would lie in 'us/1705320000000'"):
        check(table.storage)


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
    monkeypatch.setattr("hudi_engine.table.write.stored_paths.build_key_generator", None)
    check_stored_paths(state, resolve_options({}))


def test_a_table_of_this_engine_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keygen = {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator"}
    table = HandmadeTable(tmp_path / "t", COUNTRIES, ("country", "ts"), properties=keygen)
    table.commit({"elsewhere": {"a-0": rows(NOON)}})
    state = TableState.load(table.storage)
    monkeypatch.setattr("hudi_engine.table.write.stored_paths.build_key_generator", None)
    check_stored_paths(state, resolve_options({}))


def test_a_table_that_apache_hudi_wrote_is_gone_on_with_by_its_settings_only(tmp_path: Path) -> None:
    storage = open_storage(str(unpack("v6_cow_timestamp_keys_h120", tmp_path)))
    check(storage)
    with pytest.raises(ConfigError, match="in '2024/03/01'.* in '2024/02/29'"):
        check(storage, **{f"{TIMES}output.timezone": "America/New_York"})
