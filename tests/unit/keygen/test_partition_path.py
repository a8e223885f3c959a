"""Partition paths: escaping, folder names and what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hudi_engine.errors import PathEscapeError
from hudi_engine.format.keygen.partition_path import (
    check_partition_path,
    escape_partition_value,
    partition_paths,
    split_partition_path,
    unescape_partition_value,
)
from hypothesis import given
from hypothesis import strategies as st

CHARACTERS = st.characters(exclude_categories=["Cs"])


def paths(
    columns: dict[str, list[str | None]], hive_style: bool = False, url_encode: bool = False
) -> list[str]:
    texts = [(name, pa.array(values, pa.string())) for name, values in columns.items()]
    return partition_paths(texts, hive_style=hive_style, url_encode=url_encode).to_pylist()


@pytest.mark.parametrize(
    ("value", "escaped"),
    [
        ("x=y", "x%3Dy"),
        ("a/b", "a%2Fb"),
        ("50%", "50%25"),
        ("\"#%'*/:=?\\\x7f{[]^", "%22%23%25%27%2A%2F%3A%3D%3F%5C%7F%7B%5B%5D%5E"),
        ("\x01\n\x1f", "%01%0A%1F"),
        ("a b+c,d}e-ä~&|<>`$;@!().", "a b+c,d}e-ä~&|<>`$;@!()."),
        ("2024-01-01 10:00:00", "2024-01-01 10%3A00%3A00"),
    ],
)
def test_known_escapes(value, escaped):
    assert escape_partition_value(value) == escaped
    assert unescape_partition_value(escaped) == value


@given(st.text(CHARACTERS))
def test_escaping_is_undone_exactly(value):
    assert unescape_partition_value(escape_partition_value(value)) == value


@pytest.mark.parametrize(
    ("text", "value"), [("50%", "50%"), ("%zz", "%zz"), ("%4", "%4"), ("%41%", "A%"), ("%2f", "/")]
)
def test_unescaping_leaves_what_is_no_escape(text, value):
    assert unescape_partition_value(text) == value


def test_folders_of_the_four_styles():
    columns = {"byteField": ["10", "20"], "shortField": ["300", "x=y"]}
    assert paths(columns) == ["10/300", "20/x=y"]
    assert paths(columns, hive_style=True) == ["byteField=10/shortField=300", "byteField=20/shortField=x=y"]
    assert paths(columns, url_encode=True) == ["10/300", "20/x%3Dy"]
    assert paths(columns, True, True) == ["byteField=10/shortField=300", "byteField=20/shortField=x%3Dy"]


def test_null_and_empty_have_a_folder_of_their_own():
    assert paths({"a": [None, "", "x"]}, hive_style=True) == [
        "a=__HIVE_DEFAULT_PARTITION__",
        "a=__HIVE_DEFAULT_PARTITION__",
        "a=x",
    ]
    assert paths({"a": [None]}) == ["__HIVE_DEFAULT_PARTITION__"]


def test_a_slash_makes_folders_unless_it_is_encoded():
    assert paths({"place": ["eu/de"]}) == ["eu/de"]
    assert paths({"place": ["eu/de"]}, url_encode=True) == ["eu%2Fde"]


@given(
    st.lists(st.tuples(st.text(CHARACTERS) | st.none(), st.text(CHARACTERS) | st.none()), max_size=9),
    st.booleans(),
)
def test_encoded_paths_split_back_to_their_values(rows, hive_style):
    columns = {"a": [a for a, _ in rows], "b": [b for _, b in rows]}
    try:
        found = paths(columns, hive_style, url_encode=True)
    except PathEscapeError as error:
        assert any(part in ("", ".", "..", ".hoodie") or "\0" in part for part in error.path.split("/"))
        return
    for path, (a, b) in zip(found, rows, strict=True):
        values = split_partition_path(path, ["a", "b"], hive_style=hive_style, url_encode=True)
        assert values == {"a": a or None, "b": b or None} or "__HIVE_DEFAULT_PARTITION__" in (a, b)


@pytest.mark.parametrize(
    ("path", "hive_style"), [("a=1", True), ("x=1/b=2", True), ("1/2/3", False), ("", False), ("1/b=2", True)]
)
def test_folders_that_do_not_map_to_the_fields_are_not_split(path, hive_style):
    assert split_partition_path(path, ["a", "b"], hive_style=hive_style, url_encode=False) is None


@pytest.mark.parametrize(
    "path", ["", "2024/01/01", "dt=a b/c=d", "...", "..x/x..", "a/.b", ".hoodie_x", "é/😀", "a:b"]
)
def test_ordinary_paths_pass(path):
    assert check_partition_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "a/..",
        "../a",
        "a/../../b",
        ".",
        "a/./b",
        "/",
        "/a",
        "//a",
        "a/",
        "a//b",
        ".hoodie",
        ".hoodie/x",
        ".HOODIE",
        "C:/x",
        "a\nb",
        "\0",
    ],
)
def test_escaping_paths_are_refused(path):
    with pytest.raises(PathEscapeError, match="cannot be a folder below the table folder: it"):
        check_partition_path(path)


def test_refusal_says_what_is_wrong_with_a_path():
    with pytest.raises(PathEscapeError, match=r"'a\\tb' .* it holds a control character"):
        check_partition_path("a\tb")
