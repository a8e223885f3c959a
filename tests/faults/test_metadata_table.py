"""Kills while a metadata table is kept: data and metadata table agree for a reader, and after the next write in all they hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hudi_engine.errors import ConfigError, ServiceError, StorageError
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.metadata.expressions import Expression
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.avro_file import encode_avro_file
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.schemas import INDEX_PLAN
from hudi_engine.format.timeline.writer import TimelineWriter
from hudi_engine.table.services import archive, change_version, clean, run_clustering, run_compaction
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.table_services import TableServices
from hudi_engine.table.txn.recovery import recover, rollback_write
from hudi_engine.table.txn.restore import restore
from hudi_engine.table.txn.transaction import WriteTransaction

from tests.faults.scenarios import copy_of, killed
from tests.helpers.fault import FaultInjectingStorage
from tests.helpers.forms import in_turn, named
from tests.helpers.handmade import HandmadeTable
from tests.helpers.metadata_table import differences, missing_rows, open_metadata
from tests.unit.services import tables
from tests.unit.services.tables import DAY_1, GROUP_1, batch, options, rows

KEPT = options(
    metadata__enable="true",
    metadata__index__column__stats__enable="true",
    metadata__index__bloom__filter__enable="true",
    metadata__global__record__level__index__enable="true",
    metadata__record__index__min__filegroup__count=2,
    clustering__plan__strategy__sort__columns="qty",
)


def one_by_one(function, items):
    return [function(item) for item in items]


def kept_partitions(storage: Storage) -> set[str]:
    kept = open_metadata(storage)
    return set() if kept is None else set(kept.partitions)


def append(
    table: HandmadeTable, changes: tables.Rows, deletes: tuple[str, ...] = (), given: Options = KEPT
) -> str:
    """Append a log to the first slice of a merge-on-read table; return the instant."""
    storage = table.storage
    with WriteTransaction.begin(
        storage, TableConfig.load(storage), given, publication_of(storage),
        action="deltacommit", operation="UPSERT",
    ) as transaction:  # fmt: skip
        transaction.inflight(CommitMetadata({DAY_1: []}, {}, "UPSERT"))
        blocks = table.data_blocks(DAY_1, GROUP_1, batch(changes, DAY_1), transaction.instant)
        blocks += table.delete_blocks(DAY_1, list(deletes), transaction.instant) if deletes else []
        stat = table.append_log(
            DAY_1, GROUP_1, log_instant(storage, transaction.instant), blocks, transaction.instant
        )
        extra = {"schema": table.avro_text()}
        transaction.commit(CommitMetadata({DAY_1: [stat]}, extra, "UPSERT"))
        return transaction.instant


def log_instant(storage: Storage, instant: str) -> str:
    """Return the instant in the name of the next log: that of the slice in version 6."""
    config = TableConfig.load(storage)
    if config.table_version.names_logs_by_write:
        return instant
    timeline = Timeline.load(storage, config)
    planned = timeline.pending_compaction_file_groups().get((DAY_1, GROUP_1))
    slices = FileSystemView.build(storage, config, timeline).latest_slices(DAY_1)
    return planned or next(each.base_instant for each in slices if each.file_id == GROUP_1)


def write_nothing(table: HandmadeTable, given: Options) -> None:
    """Commit without files."""
    with WriteTransaction.begin(
        table.storage, table.config, given, publication_of(table.storage),
        action="deltacommit", operation="UPSERT",
    ) as transaction:  # fmt: skip
        transaction.inflight(CommitMetadata({DAY_1: []}, {}, "UPSERT"))
        transaction.commit(CommitMetadata({}, {"schema": table.avro_text()}, "UPSERT"))


def on(table: HandmadeTable, storage: Storage) -> HandmadeTable:
    """Return a table whose files lie in another storage."""
    other = object.__new__(HandmadeTable)
    other.__dict__.update(table.__dict__)
    other.storage, other.path = storage, Path(storage.base)
    return other


def prepared(path: Path, writes: int = 1) -> HandmadeTable:
    """A table with logs in version 9, whose metadata table has seven partitions."""
    table = tables.merge_on_read(path)
    change_version(table.storage, KEPT, publication_of(table.storage), 9)
    services = TableServices(table.storage, KEPT)
    services.create_index("secondary_index_qty", ["qty"])
    services.create_index("expr_index_letter", (), Expression.parse("substring(id, 1, 1)"))
    for number in range(writes):
        append(table, {"a": 100 + number})
    assert differences(table.storage) == []
    return table


def of_version_6(path: Path, writes: int = 1) -> HandmadeTable:
    """A table with logs in version 6, whose metadata table has four partitions."""
    table = tables.merge_on_read(path)
    for index in ("record_index", "column_stats", "bloom_filters"):
        TableServices(table.storage, KEPT).create_index(index)
    for number in range(writes):
        append(table, {"a": 100 + number})
    assert differences(table.storage) == []
    return table


@dataclass(frozen=True)
class Case:
    """What is killed.

    Args:
        act: Does it to a table, whose storage may kill it.
        writes: Writes before it.
        prepare: Makes the table.
        every: Of so many calls one is killed, as a restore has many that are alike.
    """

    name: str
    act: Callable[[HandmadeTable], object]
    writes: int = 1
    prepare: Callable[[Path, int], HandmadeTable] = prepared
    every: int = 1


def roll_back(table: HandmadeTable) -> object:
    newest = tables.writes(table.storage)[-1]
    return rollback_write(table.storage, KEPT, publication_of(table.storage), newest)


def restore_to_second(table: HandmadeTable) -> object:
    return restore(table.storage, KEPT, publication_of(table.storage), tables.writes(table.storage)[1])


def built_late(path: Path, writes: int = 1) -> HandmadeTable:
    """A table whose metadata table was built after all its writes."""
    table = tables.merge_on_read(path)
    change_version(table.storage, options(), publication_of(table.storage), 9)
    for number in range(writes):
        append(table, {"a": 100 + number}, ("b",) if number else (), options())
    for index, columns in (("column_stats", ()), ("bloom_filters", ()), ("secondary_index_qty", ("qty",))):
        TableServices(table.storage, KEPT).create_index(index, columns)
    return table


CASES = [
    Case("write", lambda table: append(table, {"new": 8}, ("a",))),
    Case("write with compaction", lambda table: append(table, {"a": 7, "new": 8}), writes=10),
    Case("rollback", roll_back, writes=2),
    Case("rollback of what was built", roll_back, writes=2, prepare=built_late, every=3),
    Case("restore", restore_to_second, writes=3, every=3),
    Case("restore of what was built", restore_to_second, writes=3, prepare=built_late, every=3),
    Case("compaction", lambda table: run_compaction(table.storage, KEPT, run_tasks=one_by_one)),
    Case("clean", lambda table: clean(table.storage, KEPT, retain_commits=1), writes=3),
]
CASES += [
    replace(case, name=f"{case.name}, version 6", prepare=of_version_6)
    for case in CASES
    if case.prepare is prepared
]


@pytest.mark.parametrize(("case", "when"), in_turn(CASES, ("before", "after", "torn")), ids=named)
def test_killed_anywhere_the_metadata_table_is_right(case: Case, when: str, tmp_path: Path) -> None:
    template = case.prepare(tmp_path / "template", case.writes)
    indexes = kept_partitions(template.storage)
    if case.name.startswith("clean"):
        run_compaction(template.storage, KEPT)
        append(template, {"a": 1})
        append(template, {"a": 2})
        run_compaction(template.storage, KEPT)
        append(template, {"a": 3})
    source = LocalStorage(str(template.path))
    counting = FaultInjectingStorage(copy_of(source, tmp_path))
    case.act(on(template, counting))
    assert len(counting.calls) > 10
    for call in range(1, len(counting.calls) + 1, case.every):
        where = f"killed {when} call {call}: {counting.calls[call - 1]}"
        storage = copy_of(source, tmp_path)
        killed(storage, lambda given: case.act(on(template, given)), call, when)  # noqa: B023
        assert missing_rows(storage) == [], where
        seen = rows(storage)
        recover(storage, TableConfig.load(storage), KEPT, publication_of(storage))
        if case.name.startswith("clean"):
            case.act(on(template, storage))  # what a dead clean has begun goes on with the next one
        append(on(template, storage), {"z": 1})
        assert (differences(storage), kept_partitions(storage)) == ([], indexes), where
        assert rows(storage) in ({**seen, "z": 1}, {**rows(counting), "z": 1}), where


def build_index(table: HandmadeTable) -> object:
    few = options(metadata__record__index__min__filegroup__count=2)
    return TableServices(table.storage, few).create_index("secondary_index_qty", ["qty"])


@pytest.mark.parametrize("when", in_turn(("before", "after", "torn")))
def test_a_killed_build_of_an_index_is_taken_back_or_completed(when: str, tmp_path: Path) -> None:
    template = tables.merge_on_read(tmp_path / "template")
    change_version(template.storage, options(), publication_of(template.storage), 9)
    TableServices(template.storage, options()).create_index("files")
    source = LocalStorage(str(template.path))
    counting = FaultInjectingStorage(copy_of(source, tmp_path))
    build_index(on(template, counting))
    built = {"files", "record_index", "secondary_index_qty"}
    left = set()
    for call, done in enumerate(counting.calls, 1):
        where = f"killed {when} call {call}: {done}"
        storage = copy_of(source, tmp_path)
        killed(storage, lambda given: build_index(on(template, given)), call, when)
        assert missing_rows(storage) == [], where
        append(on(template, storage), {"z": 1}, given=options())
        left.add(frozenset(kept_partitions(storage)))
        assert differences(storage) == [] and not indexings(storage, completed=False), where
        build_index(on(template, storage))
        assert (differences(storage), kept_partitions(storage)) == ([], built), where
        assert len(indexings(storage)) == 2, where
    assert left == {frozenset({"files"}), frozenset(built)}


def indexings(storage: Storage, *, completed: bool = True) -> list[str]:
    timeline = Timeline.load(storage, TableConfig.load(storage))
    found = [each for each in timeline.instants if each.action == "indexing"]
    return [each.requested_time for each in found if each.is_completed is completed]


def test_a_build_that_fails_leaves_the_other_indexes(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    change_version(table.storage, options(), publication_of(table.storage), 9)
    services = TableServices(table.storage, options())
    services.create_index("column_stats")
    before = kept_partitions(table.storage)

    class Failing(LocalStorage):
        def create(self, path: str, data: bytes) -> None:
            if "/secondary_index_qty/" in path and path.endswith(".hfile"):
                raise StorageError("no space left")
            super().create(path, data)

    with pytest.raises(StorageError, match="no space left"):
        TableServices(Failing(table.storage.base), options()).create_index("secondary_index_qty", ["qty"])
    assert kept_partitions(table.storage) == before and differences(table.storage) == []
    assert not indexings(table.storage, completed=False) and len(indexings(table.storage)) == 1


def test_a_build_of_apache_hudi_is_not_ended(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    change_version(table.storage, options(), publication_of(table.storage), 9)
    info = {
        "version": 1,
        "metadataPartitionPath": "record_index",
        "indexUptoInstant": "0",
        "extraMetadata": {},
    }
    writer = TimelineWriter(table.storage, TableConfig.load(table.storage))
    body = encode_avro_file(INDEX_PLAN, {"version": 1, "indexPartitionInfos": [info]})
    writer.create_requested("20200101000000000", "indexing", body)
    append(table, {"a": 7})
    assert indexings(table.storage, completed=False) == ["20200101000000000"]


def test_killed_while_it_is_built_the_next_write_builds_it(tmp_path: Path) -> None:
    template = tables.merge_on_read(tmp_path / "template")
    change_version(template.storage, options(), publication_of(template.storage), 9)
    source = LocalStorage(str(template.path))
    counting = FaultInjectingStorage(copy_of(source, tmp_path))
    append(on(template, counting), {"a": 7})
    for call in range(1, len(counting.calls) + 1, 2):
        where = f"killed before call {call}: {counting.calls[call - 1]}"
        storage = copy_of(source, tmp_path)
        killed(storage, lambda given: append(on(template, given), {"a": 7}), call, "before")
        assert missing_rows(storage) == [], where
        append(on(template, storage), {"z": 1})
        assert differences(storage) == [], where
        assert rows(storage)["z"] == 1, where


def test_clustering_moves_every_key_in_the_record_index(tmp_path: Path) -> None:
    storage = prepared(tmp_path / "t").storage
    before = rows(storage)

    run_clustering(storage, KEPT)

    assert (differences(storage), rows(storage)) == ([], before)


def test_its_files_and_instants_are_bounded(tmp_path: Path) -> None:
    table = prepared(tmp_path / "t")
    limits = options(keep__min__commits=4, keep__max__commits=6, clean__commits__retained=2)
    for number in range(60):
        append(table, {"a": number})
        archive(table.storage, limits)
        if number % 10 == 9:
            run_compaction(table.storage, KEPT)
            clean(table.storage, limits, retain_commits=2)
    kept = open_metadata(table.storage)
    assert kept is not None and differences(table.storage) == []
    assert len(kept.timeline.instants) < 60
    files = [each for each in table.storage.list(".hoodie/metadata", recursive=True) if not each.is_dir]
    assert len([each for each in files if "/record_index/" in each.path]) < 30
    assert rows(table.storage)["a"] == 59


def test_without_the_option_it_is_kept_and_with_false_it_goes(tmp_path: Path) -> None:
    table = prepared(tmp_path / "t")
    clean(table.storage, options(), retain_commits=1)
    assert differences(table.storage) == []

    off = options(metadata__enable="false")
    write_nothing(table, off)

    assert open_metadata(table.storage) is None
    assert not table.storage.exists(".hoodie/metadata")


def test_indexes_are_built_over_rows_and_dropped_by_name(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    change_version(table.storage, options(), publication_of(table.storage), 9)
    services = TableServices(table.storage, options())
    assert services.create_index("record_index") == ("files", "record_index")
    assert services.create_index("record_index") == ()
    assert services.create_index("column_stats", ["qty"]) == ("column_stats", "partition_stats")
    assert differences(table.storage) == []
    append(table, {"a": 7, "new": 8})
    assert differences(table.storage) == []
    assert services.drop_index("column_stats") == ("column_stats", "partition_stats")
    assert services.drop_index("column_stats") == ()
    with pytest.raises(ConfigError, match="legal values: files, column_stats, bloom_filters, record_index"):
        services.create_index("secondary")
    with pytest.raises(ConfigError, match="expression of expr_index_day is not given"):
        services.create_index("expr_index_day", ["ts"])
    with pytest.raises(ConfigError, match="only column_stats and secondary indexes have columns"):
        services.create_index("bloom_filters", ["qty"])
    assert services.create_index("secondary_index_qty", ["qty"]) == ("secondary_index_qty",)
    assert services.create_index("secondary_index_qty", ["qty"]) == ()
    append(table, {"a": 9}, ("new",))
    assert differences(table.storage) == []
    assert services.drop_index("record_index") == ("record_index", "secondary_index_qty")
    assert services.create_index("secondary_index_qty", ["qty"]) == ("record_index", "secondary_index_qty")
    assert services.drop_index("secondary_index_qty") == ("secondary_index_qty",)
    services.drop_index("files")
    assert open_metadata(table.storage) is None and rows(table.storage)["a"] == 9


def test_a_secondary_index_is_over_one_column_with_texts(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    change_version(table.storage, options(), publication_of(table.storage), 9)
    services = TableServices(table.storage, options())
    for columns, reason in [
        ([], "columns of secondary_index_x are not given; a secondary index has one"),
        (["id", "qty"], "a secondary index has one"),
        (["none"], "column of secondary_index_x is 'none'; legal values: id"),
    ]:
        with pytest.raises(ConfigError, match=reason):
            services.create_index("secondary_index_x", columns)
    services.create_index("secondary_index_x", ["qty"])
    with pytest.raises(ConfigError, match="secondary_index_x is there over column 'qty'; drop it first"):
        services.create_index("secondary_index_x", ["id"])


def test_an_expression_index_is_of_one_column_that_its_function_takes(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    change_version(table.storage, options(), publication_of(table.storage), 8)
    services = TableServices(table.storage, options())
    first_letter = Expression.parse("substring(id, 1, 1)")
    with pytest.raises(ConfigError, match="version 8, and expr_index_x is built in version 9"):
        services.create_index("expr_index_x", (), first_letter)
    services.upgrade(9)
    for text, reason in [
        ("substring(none, 1, 1)", "column of expr_index_x is 'none'; legal values: id"),
        ("substring(qty, 1, 1)", "but 'qty' has type .*; year, to_date and date_format take dates"),
    ]:
        with pytest.raises(ConfigError, match=reason):
            services.create_index("expr_index_x", (), Expression.parse(text))
    assert services.create_index("expr_index_x", (), first_letter) == ("expr_index_x", "files")
    assert services.create_index("expr_index_x", (), first_letter) == ()
    with pytest.raises(ConfigError, match="is there over substring.id, 1, 1.; drop it first"):
        services.create_index("expr_index_x", (), Expression.parse("substring(id, 1, 2)"))
    with pytest.raises(ConfigError, match="expr_index_x is over column 'id' already, and Apache Hudi finds"):
        services.create_index("expr_index_y", (), Expression.parse("substring(id, 1, 2)"))
    with pytest.raises(ConfigError, match="expression of record_index is substring"):
        services.create_index("record_index", (), first_letter)
    append(table, {"zz": 1})
    assert differences(table.storage) == []
    assert services.drop_index("expr_index_x") == ("expr_index_x",)


def test_version_6_has_no_secondary_index_and_builds_none_beside_writers(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    services = TableServices(table.storage, options())
    with pytest.raises(
        ConfigError, match="secondary_index_qty is built in versions 8 and 9; upgrade it first"
    ):
        services.create_index("secondary_index_qty", ["qty"])
    with WriteTransaction.begin(
        table.storage, table.config, KEPT, publication_of(table.storage),
        action="deltacommit", operation="UPSERT",
    ), pytest.raises(ServiceError, match="record_index is not built while writes"):  # fmt: skip
        services.create_index("record_index")


def test_only_the_columns_of_the_list_have_statistics(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    change_version(table.storage, options(), publication_of(table.storage), 9)
    few = options(
        metadata__enable="true",
        metadata__index__column__stats__enable="true",
        metadata__index__column__stats__column__list="qty",
    )
    write_nothing(table, few)

    kept = open_metadata(table.storage)
    assert kept is not None
    columns = {each["ColumnStatsMetadata"]["columnName"] for _, each in kept.records("column_stats")}
    assert {each for each in columns if not each.startswith("_hoodie_")} == {"qty"}
    assert differences(table.storage) == []
