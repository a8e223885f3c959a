"""Asking every reader for the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.judge.apache_hudi import VERSIONS, ApacheHudi, available
from tests.judge.arrow_rows import rows_of_spark
from tests.judge.hudi_rs import hudi_rs_rows
from tests.judge.rows import difference, without_meta

Judges = Callable[[str], ApacheHudi]


def assert_all_read(
    path: str | Path, expected: Iterable[Mapping[str, Any]], apache_hudi: Judges, *, rust: bool = True
) -> None:
    """Check that hudi-rs and, where it is set up, Apache Hudi of each version give the expected rows."""
    wanted = list(expected)
    if rust:
        assert difference(without_meta(hudi_rs_rows(path)), wanted) == "", "hudi-rs"
    for version in VERSIONS if available() else ():
        rows = apache_hudi(version).read(path)
        assert difference(without_meta(rows), wanted) == "", f"Apache Hudi {version}"


def assert_same_meta(path: str | Path, ours: Any, apache_hudi: Judges) -> None:
    """Check that commit times, keys and partition paths are the same for every reader as for us."""
    mine = rows_of_spark(ours)
    assert difference(hudi_rs_rows(path), mine) == "", "hudi-rs"
    for version in VERSIONS if available() else ():
        assert difference(apache_hudi(version).read(path), mine) == "", f"Apache Hudi {version}"
