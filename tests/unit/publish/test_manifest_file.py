from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.storage import open_storage
from hudi_engine.table.snapshot.manifest_file import (
    Derived,
    Layout,
    Manifest,
    ManifestEntry,
    ManifestFolder,
    Origin,
    Stamp,
    decode_uri,
    encode_uri,
    files_in,
    format_line,
    format_manifest,
    is_healthy,
    number_after,
    parse_line,
    parse_manifest,
)

STAMP = Stamp("file:/data/t", "COPY_ON_WRITE", "2", ("1", "2"), "digest")


def test_a_manifest_reads_back_as_it_was_written():
    entries = (
        ManifestEntry("file:/data/t/dt=50%25/a b#ü.parquet", 10, 7),
        ManifestEntry("file:/data/t/dt=x/f.delta", 11, 8, Origin(Derived.DELTA, "dt=x", "f-0", "abc")),
    )
    found = parse_manifest(9, format_manifest(STAMP, map(format_line, entries)))
    assert (found.stamp, found.entries, found.size_bytes) == (STAMP, entries, 21)
    assert list(found.uris()) == [entry.uri for entry in entries]


def test_a_line_that_is_damaged_inside_is_named_when_it_is_read():
    body = format_manifest(STAMP, [format_line(ManifestEntry("file:/data/t/a", 10, 7))])
    with pytest.raises(CorruptTableError, match="delete that folder"):
        _ = parse_manifest(9, body.replace(b'"size": 10', b'"size": ')).entries


def test_every_line_but_the_first_has_the_fields_of_spark_and_the_stamp_looks_like_a_folder():
    version, stamp, file = (
        format_manifest(STAMP, [format_line(ManifestEntry("file:/data/t/a b", 10, 7))]).decode().split("\n")
    )
    fields = {"path", "size", "isDir", "modificationTime", "blockReplication", "blockSize", "action"}
    assert version == "v1"
    assert json.loads(stamp)["isDir"] is True and fields <= json.loads(stamp).keys()
    assert json.loads(file).keys() == fields
    assert json.loads(file)["path"] == "file:/data/t/a%20b"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"v2\n",
        b"v1\n{",
        b"v1\n[]",
        b"\xff\xfe",
        b'v1\n{"isDir":false}',
        b'v1\n{"hudiSnapshot":{"format":2}}',
        format_manifest(STAMP, [format_line(ManifestEntry("file:/data/t/a", 10, 7))])[:-5],
    ],
)
def test_a_manifest_that_cannot_be_read_has_no_stamp(body):
    assert parse_manifest(19, body) == Manifest(19, None, ())


@pytest.mark.parametrize(
    "path",
    [
        "file:/data/other/a",
        "file:/data/t2/a",
        "file:/data/t/../other/a",
        "file:/data/t/dt=x/..",
        "file:/data/t/%2e%2E/other/a",
        "file:/data/t/..%2Fother/a",
        "file:/data/t/\\u002e\\u002e/other/a",
    ],
)
def test_a_manifest_that_lists_a_file_outside_of_the_table_is_damaged(path):
    files = [format_line(ManifestEntry(f"file:/data/t/{name}", 10, 7)) for name in ("a", "b", "c%20..d e")]
    body = format_manifest(STAMP, files)
    assert parse_manifest(9, body).stamp == STAMP
    assert parse_manifest(9, body.replace(b"file:/data/t/b", path.encode())) == Manifest(9, None, ())


def test_derived_files_may_lie_in_their_own_folder_and_nowhere_else():
    stamp = replace(STAMP, derived_at="file:/cache/1")
    files = [format_line(ManifestEntry(uri, 10, 7)) for uri in ("file:/cache/1/a", "file:/data/t/b")]
    assert len(parse_manifest(9, format_manifest(stamp, files)).lines) == 2
    assert parse_manifest(9, format_manifest(STAMP, files)).stamp is None


def test_a_stamp_that_looks_like_a_file_is_none():
    body = format_manifest(STAMP, []).replace(b'"isDir": true', b'"isDir":false')
    assert parse_manifest(9, body).stamp is None


def test_a_line_that_names_two_files_is_damaged_and_never_the_second():
    line = format_line(ManifestEntry("file:/data/t/a", 10, 7))
    twice = line.replace(b'"size"', b'"more": 1, "path": "file:/data/other/a", "size"')
    (kept,) = parse_manifest(9, format_manifest(STAMP, [twice])).lines
    with pytest.raises(CorruptTableError, match="delete that folder"):
        parse_line(kept)
    assert files_in([line, kept]) == [(b"file:/data/t/a", 10, 7)]


@pytest.mark.parametrize(
    "uri", ["file:/a b/c%20d/é?#", "s3a://bucket/x=1/50%", "hdfs://name:8020/a+b", "file:/plain/x=1"]
)
def test_uris_survive_percent_encoding(uri):
    encoded = encode_uri(uri)
    assert decode_uri(encoded) == uri
    assert not set(" ?#é") & set(encoded)


@pytest.mark.parametrize(
    ("numbers", "healthy"),
    [
        ([], False),
        ([9], True),
        ([9, 19], True),
        ([9, 39], False),
        ([9, 29, 39], True),
        ([12], False),
        ([49], True),
    ],
)
def test_spark_can_read_numbers_whose_newest_two_are_neighbours(numbers, healthy):
    assert is_healthy(numbers) is healthy


@pytest.mark.parametrize(
    ("numbers", "following"), [([], 9), ([9], 19), ([9, 39], 49), ([12], 19), ([19], 29)]
)
def test_the_next_number_comes_after_whatever_is_there(numbers, following):
    assert number_after(numbers) == following


def test_trimming_leaves_the_newest_two_and_removes_the_oldest_first(tmp_path):
    folder = ManifestFolder(open_storage(str(tmp_path)), Layout.HIVE)
    for number in (9, 19, 29, 39):
        folder.create(number, format_manifest(STAMP, []))
    folder.trim(39, folder.numbers())
    assert folder.numbers() == [29, 39]


def test_a_number_that_is_taken_is_refused(tmp_path):
    folder = ManifestFolder(open_storage(str(tmp_path)), Layout.FLAT)
    folder.create(9, b"first")
    with pytest.raises(FileExistsError):
        folder.create(9, b"second")
