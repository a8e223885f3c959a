"""What a few of the Parquet files that rows come from say of the rows of all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hudi_engine.format.schema.meta_fields import PARTITION_PATH

_FILE = "_metadata.file_path"
_FEWEST_FILES = 8
_SHARE = 4
"""A sample is at most one file in so many; with more than that it would cost about as much as all of them."""
_EVEN = 2
"""Files whose counts differ by more than this factor say nothing of the others: rows are sorted then, or grow over time."""


CountRows = Callable[["DataFrame", Sequence["Column"]], "DataFrame"]
"""Counts ``rows`` by ``_hoodie_partition_path`` and other columns; of one path there may be several counts."""


def sampled_partitions(
    frame: DataFrame, source: DataFrame, tasks: int, most: int, count_rows: CountRows
) -> dict[str, int] | None:
    """Return the rows of each partition path, as many as there would be if all files were like those looked at.

    As many files are looked at as a task reads, and two at least, so that their partitions are those that one task meets. It
    is for decisions on the number of files alone, which no reader sees in the rows.

    Args:
        frame: Rows with column ``_hoodie_partition_path``, by columns and filters of ``source``.
        source: A scan of Parquet files, with or without filters.
        most: Partition paths of interest; more are not counted.
        count_rows: Counts rows of ``frame``.

    Returns:
        None when there are too few files to choose from, or those chosen are not alike.
    """
    jsource: Any = source._jdf
    files = [str(each) for each in jsource.inputFiles()]
    named = chosen_files(files, -(-len(files) // tasks))
    if named is None:
        return None
    # The list of files and the column write local paths in different ways.
    paths = [*named, *(path.replace("file:///", "file:/", 1) for path in named)]
    try:
        # In one task, so that nothing is shuffled: a few columns of a few files take less time than a second stage.
        looked_at = frame.where(F.col(_FILE).isin(paths)).coalesce(1)
        counted = count_rows(looked_at, [F.col(_FILE).alias("file")]).limit(len(named) * most + 1).collect()
    except AnalysisException:
        return None  # A column of that name hides where rows come from.
    by_file: dict[str, int] = {}
    rows: dict[str, int] = {}
    for row in counted:
        by_file[row["file"]] = by_file.get(row["file"], 0) + row["rows"]
        rows[row[PARTITION_PATH]] = rows.get(row[PARTITION_PATH], 0) + row["rows"]
    missing = len(named) - len(by_file)
    return counts_of_all(rows, [*by_file.values(), *[0] * missing], len(files))


def chosen_files(files: Sequence[str], wanted: int) -> list[str] | None:
    """Return files to look at from among all, at equal distances by name; None where there are too few to choose from.

    Args:
        files: All of them, in any order: Spark names them as a set does, whose order says nothing and changes with the folder.
        wanted: How many to look at, two at least.
    """
    count, chosen = len(files), max(2, wanted)
    if count < _FEWEST_FILES or chosen * _SHARE > count:
        return None
    by_name = sorted(files)
    return [by_name[(2 * place + 1) * count // (2 * chosen)] for place in range(chosen)]


def counts_of_all(rows: Mapping[str, int], by_file: Sequence[int], files: int) -> dict[str, int] | None:
    """Return rows of all files from those of a few, by whatever they are told apart; None where those few are not alike."""
    if not min(by_file) or max(by_file) > _EVEN * min(by_file):
        return None
    return {name: seen * files // len(by_file) for name, seen in rows.items()}
