"""No partition value, however hostile, leads out of the table or into its metadata."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
from hudi_engine.errors import PathEscapeError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.generator import build_key_generator
from hudi_engine.format.keygen.partition_path import check_partition_path, split_partition_path
from hudi_engine.format.storage import open_storage

DOTS = [
    "..", ".", "...", "....", "..;", ". .", " ..", ".. ", "..\t", "․․", "‥", "．．", "。。", "..\u200b",
    "\u202e..", "..\ufeff",
]  # fmt: skip
SLASHES = [
    "/", "//", "\\", "\u2215", "\u2044", "\uff0f", "\u29f8", "\uff3c", "%2f", "%2F", "%5c", "%252f",
    "%c0%af", "%u2215", ":", "\u0338",
]  # fmt: skip
ABSOLUTE = [
    "/etc/passwd", "/", "//", "///etc", "//server/share", "\\\\server\\share", "C:\\Windows", "C:/Windows",
    "c:", "file:///etc/passwd", "file:/etc", "s3://other/bucket", "s3a://x", "hdfs://nn/x", "~", "~root",
    "~/x", "$HOME", "${HOME}", "%HOME%", "`id`", "$(id)", "/proc/self/environ", "/dev/null", "|cat",
    ";rm -rf /", "&& true", "-rf", "--help", "'", "\"", "*", "?", "[a-z]", "{a,b}",
]  # fmt: skip
METADATA = [
    ".hoodie", ".hoodie/", ".hoodie/x", "/.hoodie", "./.hoodie", ".hoodie/../x", "x/../.hoodie",
    ".hoodie/metadata", ".hoodie/hoodie.properties", ".hoodie/.temp", ".hoodie ", ".HOODIE", ".hoodie\0",
    ".hoodie_partition_metadata", "a/.hoodie", ".hoodie\n", "\n.hoodie",
]  # fmt: skip
TRICKS = [
    "%2e%2e", "%2E%2E/", "%2e%2e%2f", "..%2f", "%252e%252e", "%00", "%0a", "%", "%%", "%2", "%zz", "%ff",
    "a%2fb", "a%00b", "..%00/", "__HIVE_DEFAULT_PARTITION__", "dt=x", "=", "==", "a=b=c", "", " ", "\u00a0",
    "\u200b", "null", "None", "a" * 300, "é" * 200, "😀", "\ud7ff", "e\u0301", "é", "Ⅷ", "ﬁ", "İ", "ß",
    "a\u0000", "\u2028", "\u2029", "\u0085", "a\u007f",
]  # fmt: skip
CONTROLS = [chr(code) for code in range(33)]
FRAMES = ["{}", "x/{}", "{}/x", "x/{}/y", "../{}", "{}/..", "a{}b"]


def hostile_values() -> list[str]:
    values = {*ABSOLUTE, *METADATA, *TRICKS, *CONTROLS}
    values |= {frame.format(each) for frame in FRAMES for each in (*DOTS, *SLASHES, *CONTROLS, ".hoodie")}
    values |= {f"{dots}{slash}{dots}{slash}etc" for dots in DOTS for slash in SLASHES}
    return sorted(values)


VALUES = hostile_values()
STYLES = [(hive, encode) for hive in (False, True) for encode in (False, True)]


def config(hive_style: bool, url_encode: bool) -> TableConfig:
    return TableConfig.from_properties(
        {
            "hoodie.table.name": "t",
            "hoodie.table.type": "COPY_ON_WRITE",
            "hoodie.table.version": "6",
            "hoodie.table.recordkey.fields": "k",
            "hoodie.table.partition.fields": "p",
            "hoodie.datasource.write.hive_style_partitioning": str(hive_style).lower(),
            "hoodie.datasource.write.partitionpath.urlencode": str(url_encode).lower(),
        }
    )


def path_of(value: str, hive_style: bool, url_encode: bool) -> str | None:
    """The partition path of a value, None when it is refused."""
    generator = build_key_generator(config(hive_style, url_encode))
    try:
        return generator.partition_paths(pa.table({"k": ["1"], "p": [value]}))[0].as_py()
    except PathEscapeError:
        return None


def test_there_are_many_hostile_values():
    assert len(VALUES) >= 300


@pytest.mark.parametrize(("hive_style", "url_encode"), STYLES)
def test_every_path_stays_below_the_table(hive_style, url_encode):
    base = "/data/table"
    for value in VALUES:
        path = path_of(value, hive_style, url_encode)
        if path is None:
            continue
        # Also after the normal forms that some file systems apply to names.
        for seen in (path, unicodedata.normalize("NFC", path), unicodedata.normalize("NFD", path)):
            where = os.path.normpath(os.path.join(base, seen))
            assert where.startswith(f"{base}/"), value
            assert where == f"{base}/{seen}", value
            assert not where.lower().startswith(f"{base}/.hoodie/"), value
            assert where.lower() != f"{base}/.hoodie", value
        assert not any(ord(character) < 32 or ord(character) == 127 for character in path), value


@pytest.mark.parametrize(("hive_style", "url_encode"), STYLES)
def test_every_path_names_the_same_place_in_the_storage(hive_style, url_encode, tmp_path):
    storage = open_storage(str(tmp_path / "table"))
    for value in VALUES:
        path = path_of(value, hive_style, url_encode)
        if path is not None:
            assert storage.uri(path) == f"file:{tmp_path}/table/{path}", value


@pytest.mark.parametrize("hive_style", [False, True])
def test_encoded_values_stay_apart_and_come_back(hive_style):
    """Two values never share a folder, and what was written is what is read."""
    owners: dict[str, str] = {}
    for value in VALUES:
        path = path_of(value, hive_style, True)
        if path is None or value == "":
            continue
        assert owners.setdefault(path, value) == value
        found = split_partition_path(path, ["p"], hive_style=hive_style, url_encode=True)
        assert found == {"p": None if value == "__HIVE_DEFAULT_PARTITION__" else value}


def test_hive_style_and_encoding_together_refuse_only_the_null_character():
    refused = [value for value in VALUES if path_of(value, True, True) is None]
    assert refused
    assert all("\0" in value for value in refused)


@pytest.mark.parametrize(
    "value", ["..", "../x", "x/../..", "/etc/passwd", "a//b", ".hoodie", ".hoodie/x", "a\nb", "\0"]
)
def test_plain_folders_refuse_what_would_escape(value):
    assert path_of(value, False, False) is None


def test_folders_made_on_disk_lie_where_they_should(tmp_path):
    """The file system itself is the judge: nothing appears outside of the table's folder."""
    storage = open_storage(str(tmp_path / "table"))
    made = 0
    for value in VALUES:
        for hive_style, url_encode in STYLES:
            path = path_of(value, hive_style, url_encode)
            if path is None or any(len(part.encode()) > 200 for part in path.split("/")):
                continue
            storage.make_dirs(path)
            made += 1
            assert (tmp_path / "table" / path).is_dir()
    assert made > 300
    assert [each.name for each in tmp_path.iterdir()] == ["table"]
    assert not (tmp_path / "table" / ".hoodie").exists()
    inside = tmp_path.resolve()
    assert all(Path(each).resolve().is_relative_to(inside) for each, _, _ in os.walk(tmp_path))


def test_percent_encoding_for_spark_does_not_turn_names_into_steps():
    """Spark is given percent-encoded URIs: decoding them once gives back the same checked path."""
    for value in VALUES:
        path = path_of(value, True, False)
        if path is not None:
            assert "/../" not in f"/{quote(path)}/"
            assert check_partition_path(path) == path
