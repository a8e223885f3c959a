"""Names of base and log files, parsed and formatted."""

from __future__ import annotations

import pytest
from hudi_engine.errors import DataError
from hudi_engine.format.filegroup.base_file import BaseFile, base_file_name, parse_base_file
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import LogFile, log_file_name, parse_log_file
from hudi_engine.format.storage.base import FileStatus

UUID = "6d3d1d6e-2298-4080-a0c1-494877d6f40a-0"
T = "20240418173550988"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{UUID}_0-182-253_{T}.parquet", BaseFile("p", UUID, "0-182-253", T)),
        (f"files-0000-0_0-0-0_{'0' * 17}.hfile", BaseFile("p", "files-0000-0", "0-0-0", "0" * 17, "hfile")),
        (
            "any text-0_1-2-3_20240418173550.orc",
            BaseFile("p", "any text-0", "1-2-3", "20240418173550", "orc"),
        ),
    ],
)
def test_base_file_names_are_parsed_and_formatted_back(name: str, expected: BaseFile) -> None:
    assert parse_base_file(name, "p") == expected
    assert (expected.name, expected.path) == (name, f"p/{name}")


@pytest.mark.parametrize(
    "name",
    [
        f"._{UUID}_0-182-253_{T}.parquet",
        f"{UUID}_0-182_{T}.parquet",
        f"{UUID}_{T}.parquet",
        f"a_b_0-1-2_{T}.parquet",
        f"{UUID}_0-1-2_{T}.parquet.crc",
        f"{UUID}_0-1-2_{T}.csv",
        ".hoodie_partition_metadata",
        ".hoodie_partition_metadata.parquet",
        "part-00000.parquet",
        ".tmp-0123",
    ],
)
def test_other_files_are_no_base_files(name: str) -> None:
    assert parse_base_file(name, "") is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f".{UUID}_{T}.log.1_0-33-43", LogFile("", UUID, T, 1, "0-33-43")),
        (f".{UUID}_{T}.log.12_1-0-1", LogFile("", UUID, T, 12, "1-0-1")),
        (f".{UUID}_{T}.log.3", LogFile("", UUID, T, 3)),
        (f".{UUID}_{T}.log.1_1-33-40.cdc", LogFile("", UUID, T, 1, "1-33-40", is_cdc=True)),
    ],
)
def test_log_file_names_are_parsed_and_formatted_back(name: str, expected: LogFile) -> None:
    assert parse_log_file(name, "") == expected
    assert (expected.name, expected.path) == (name, name)


@pytest.mark.parametrize(
    "name",
    [
        f"{UUID}_{T}.log.1_0-1-2",
        f".{UUID}_{T}.log.x_0-1-2",
        f".{UUID}_{T}.log.1_0-1",
        f".{UUID}_{T}.archive.1_0-1-2",
        f"..{UUID}_{T}.log.1_0-1-2.crc",
        f".{UUID}.log.1_0-1-2",
    ],
)
def test_other_files_are_no_log_files(name: str) -> None:
    assert parse_log_file(name, "") is None


def test_size_and_time_come_from_the_listing() -> None:
    path = f"dt=1/{UUID}_0-1-2_{T}.parquet"
    base = parse_base_file(path, "dt=1", FileStatus(path, 77, 1234, False))

    assert base is not None and (base.size, base.modified_ms, base.path) == (77, 1234, path)


def test_log_versions_compare_as_numbers() -> None:
    logs = [LogFile("", "f", T, version) for version in (10, 9, 1)]

    assert [log.version for log in sorted(logs, key=lambda log: log.sort_key)] == [1, 9, 10]


@pytest.mark.parametrize(
    ("file_id", "token", "instant"),
    [("a_b", "0-1-2", T), ("a", "0-1", T), ("a", "0-1-2", "now"), ("a/b", "0-1-2", T), ("", "0-1-2", T)],
)
def test_names_that_no_reader_could_parse_are_not_made(file_id: str, token: str, instant: str) -> None:
    with pytest.raises(DataError, match="is no base file name"):
        base_file_name(file_id, token, instant)
    with pytest.raises(DataError, match="is no log file name"):
        log_file_name(file_id, instant, 1, token)


def test_made_names_are_parsed_back() -> None:
    assert parse_base_file(base_file_name(UUID, "0-1-2", T), "") == BaseFile("", UUID, "0-1-2", T)
    assert parse_log_file(log_file_name(UUID, T, 3, "0-1-2"), "") == LogFile("", UUID, T, 3, "0-1-2")
    with pytest.raises(DataError, match="a version is 1 or more"):
        log_file_name(UUID, T, 0, "0-1-2")


def test_a_slice_is_as_large_as_its_rows_and_names_all_its_files() -> None:
    base = BaseFile("p", "f", "0-1-2", T, size=100)
    log, change = (
        LogFile("p", "f", T, 1, "0-1-2", size=20),
        LogFile("p", "f", T, 1, "0-1-2", is_cdc=True, size=7),
    )
    file_slice = FileSlice("p", "f", T, base, (log,), (change,))

    assert file_slice.size == 120
    assert file_slice.paths == (base.path, log.path, change.path)
