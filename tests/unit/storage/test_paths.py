"""Which relative paths stay inside the table folder."""

from __future__ import annotations

import pytest
from hudi_engine.errors import PathEscapeError
from hudi_engine.format.storage.paths import join, name, parent, relative_path


@pytest.mark.parametrize(
    "path", ["", "a", "dt=2024-01-01/f.parquet", "a b/%2F/ü", ".hoodie/x", "...", "a..b"]
)
def test_a_path_inside_the_table_is_kept_as_it_is(path: str) -> None:
    assert relative_path(path) == path


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "..", "a/../b", "a/..", "./a", "a//b", "a/", "s3://other/x", "C:\\x", "a\0b"]
)
def test_a_path_that_leaves_the_table_is_refused(path: str) -> None:
    with pytest.raises(PathEscapeError, match="does not stay below /table"):
        relative_path(path, "/table")


def test_empty_parts_vanish_when_joining() -> None:
    assert join("", "f.parquet") == "f.parquet"
    assert join("a/b", "f.parquet") == "a/b/f.parquet"


def test_parent_and_name_split_at_the_last_slash() -> None:
    assert (parent("a/b/c"), name("a/b/c"), parent("c")) == ("a/b", "c", "")
