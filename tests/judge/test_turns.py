"""Apache Hudi and our engine write to one table in turn, with clean and archive of both; all read the same rows."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hudi_engine import HudiTable

from tests.helpers.forms import forms
from tests.judge.apache_hudi import VERSIONS
from tests.judge.readers import Judges, assert_all_read
from tests.judge.rows import difference, without_meta
from tests.judge.shapes import SHAPES, Shape, arrow, row

TYPES = tuple(
    next(shape for shape in SHAPES if shape.table_type == table_type and shape.partition == "day")
    for table_type in ("cow", "mor")
)
BUSY = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
"""Services after nearly every write, of both."""
OPERATIONS = ("upsert", "upsert", "upsert", "delete", "overwrite")


@dataclass(frozen=True)
class Match:
    """How often who writes to what.

    Args:
        turns: How many writes.
        version: Of Apache Hudi.
        shape: Of the table.
        options: Of both writers; without any, both run their default services.
    """

    turns: int
    version: str
    shape: Shape
    options: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        kind = "busy" if self.options else "default"
        return f"{self.turns} turns with {self.version}, {self.shape.table_type}, {kind} services"


COMPACTING = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
SHORT = [
    Match(8, version, shape, BUSY | (COMPACTING if shape.table_type == "mor" else {}))
    for version in VERSIONS
    for shape in TYPES
]
LONG = [Match(200, version, shape) for version in VERSIONS for shape in TYPES]


@pytest.mark.parametrize("match", forms([*SHORT, *LONG], SHORT[1:2]), ids=str)
def test_turns_of_both_writers_keep_every_row(
    match: Match, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    chance, path = random.Random(match.turns), tmp_path / "t"
    match.shape.create(HudiTable, spark, str(path))
    oracle, writers = match.shape.oracle(), (Ours(spark, path, match), Theirs(path, match, apache_hudi))
    for turn in range(match.turns):
        operation = chance.choice(OPERATIONS) if turn > 1 else "upsert"
        rows = [row(number, turn) for number in chance.sample(range(24), 4)]
        writer = writers[turn % 2] if match.options else chance.choice(writers)
        getattr(writer, operation)(arrow(rows))
        change = oracle.overwrite_partitions if operation == "overwrite" else getattr(oracle, operation)
        change(rows)
        if turn % 4 == 3:
            for reader in writers:
                found = difference(reader.rows(), oracle.rows())
                assert found == "", f"turn {turn}, {operation} by {writer}, read by {reader}"
    assert_all_read(path, oracle.rows(), apache_hudi)
    assert [each for each in HudiTable.open(spark, str(path)).validate(keys=True) if each.harms] == []


class Ours:
    """Our engine as a writer, opened anew for every turn, as by a new run."""

    def __init__(self, spark: Any, path: Path, match: Match) -> None:
        self._spark, self._path, self._options = spark, str(path), match.options

    def __str__(self) -> str:
        return "us"

    def upsert(self, rows: Any) -> None:
        self._table().upsert(rows)

    def delete(self, rows: Any) -> None:
        self._table().delete(rows)

    def overwrite(self, rows: Any) -> None:
        self._table().insert_overwrite(rows)

    def rows(self) -> Any:
        return without_meta(self._table().snapshot().toArrow().to_pylist())

    def _table(self) -> HudiTable:
        return HudiTable.open(self._spark, self._path, options=self._options)


class Theirs:
    """Apache Hudi as a writer."""

    def __init__(self, path: Path, match: Match, apache_hudi: Judges) -> None:
        self._hudi, self._path = apache_hudi(match.version), path
        self._options = match.shape.hudi_options() | match.options

    def __str__(self) -> str:
        return "Apache Hudi"

    def upsert(self, rows: Any) -> None:
        self._hudi.upsert(self._path, rows, self._options)

    def delete(self, rows: Any) -> None:
        self._hudi.delete(self._path, rows, self._options)

    def overwrite(self, rows: Any) -> None:
        self._hudi.write(self._path, rows, self._options, operation="insert_overwrite")

    def rows(self) -> Any:
        return without_meta(self._hudi.read(self._path))
