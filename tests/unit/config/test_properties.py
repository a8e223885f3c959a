"""Java properties files, as java.util.Properties reads and writes them."""

from __future__ import annotations

import pytest
from hudi_engine.format.config.properties import format_properties, parse_properties, table_checksum
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        (b"a=b", "a", "b"),
        (b"  a : b ", "a", "b "),
        (b"a b c", "a", "b c"),
        (b"a\t=\tb", "a", "b"),
        (b"a", "a", ""),
        (b"a==b", "a", "=b"),
        (b"a\\=b=c", "a=b", "c"),
        (b"a\\ b=c\\:d", "a b", "c:d"),
        (b"a=one \\\n   two", "a", "one two"),
        (b"a=end\\\\\nb=c", "a", "end\\"),
        (b"a=\\u00fc\\u4E2D\\uD83D\\uDE00", "a", "ü中😀"),
        (b"a=\\t\\n\\r\\f\\x", "a", "\t\n\r\fx"),
        (b"a=\xfc", "a", "ü"),
        (b"a=b\r\nc=d", "a", "b"),
    ],
)
def test_a_line_is_read_as_java_reads_it(line: bytes, key: str, value: str) -> None:
    assert parse_properties(line)[key] == value


def test_comments_and_blank_lines_are_no_properties() -> None:
    assert parse_properties(b"#a=1\n  !b=2\n\n \t\nc=3\n") == {"c": "3"}


def test_the_later_of_two_equal_keys_wins() -> None:
    assert parse_properties(b"a=1\na=2\n") == {"a": "2"}


def test_a_file_is_written_as_java_writes_it() -> None:
    written = format_properties(
        {"hoodie.table.name": "t", "k e:y": "  two blanks", "schema": '{"a":"b=c"}', "ü": "\t中"},
        "Updated at noon",
    )

    assert written.decode() == (
        "#Updated at noon\n"
        "hoodie.table.name=t\n"
        "k\\ e\\:y=\\  two blanks\n"
        'schema={"a"\\:"b\\=c"}\n'
        "\\u00FC=\\t\\u4E2D\n"
    )


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=5))
def test_every_text_survives_writing_and_reading(properties: dict[str, str]) -> None:
    assert parse_properties(format_properties(properties, "two\nlines")) == properties


def test_a_cut_unicode_escape_is_an_error() -> None:
    with pytest.raises(ValueError, match="hexadecimal"):
        parse_properties(b"a=\\u12")


@pytest.mark.parametrize(
    ("database", "table", "checksum"),
    [
        ("default", "v6_trips_8i3d", 3180720914),
        ("default", "v6_nonpartitioned_rollback", 1120353670),
        (None, "v9_txns_cow_complex_meta_metadata", 3347748510),
    ],
)
def test_the_checksum_is_the_crc_of_database_and_table(
    database: str | None, table: str, checksum: int
) -> None:
    names = {"hoodie.table.name": table} | ({"hoodie.database.name": database} if database else {})

    assert table_checksum(names) == checksum
