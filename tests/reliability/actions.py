"""Public operations that are killed, disturbed or interleaved: how their table comes about, and what they do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from hudi_engine import HudiTable, rebuild_table

from tests.reliability import real_table
from tests.reliability.real_table import KINDS, Kind, batch, commits

FIRST = (("a", "k1", 10, "one"), ("a", "k2", 10, "two"), ("b", "k3", 10, "three"))
SECOND = (("a", "k1", 20, "ONE"), ("a", "k4", 20, "four"), ("c", "k5", 20, "five"))
THIRD = (("a", "k2", 30, "Two"), ("b", "k3", 30, "Three"))
MOVED = (("b", "k1", 40, "moved"), ("a", "k3", 40, "moved too"), ("b", "k9", 40, "new"))
KEYS = (("a", "k1", 0, ""), ("c", "k5", 0, ""))
SPREAD = {"hoodie.engine.small.batch.rows": "0"}
"""Rows go through the executors."""
WIDE = {**SPREAD, "hoodie.engine.wide.partition.bytes": "1"}
"""Keys are looked up with joins."""
TAKES_BACK = {
    "hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy",
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
}
"""A write to file groups of a planned clustering rolls the plan back."""

Act = Callable[[HudiTable], object]
Frames = Callable[[tuple[tuple[str, str, int, str], ...]], Any]


@dataclass(frozen=True)
class Action:
    """An operation that is to be atomic.

    Args:
        name: For people.
        kind: The table's kind.
        prepare: Operations that bring the table into its old state.
        act: The operation.
        goes_on: Whether a recovery may finish the operation rather than undo it.
        creates: Whether the operation makes the table.
        spark: Whether it runs Spark jobs each time.
    """

    name: str
    kind: Kind
    prepare: tuple[Act, ...]
    act: Act
    goes_on: bool = False
    creates: bool = False
    spark: bool = False


def in_version(action: Action, version: int) -> Action:
    """Return the same operation on a table of a table version."""
    kind = real_table.in_version(action.kind, version)
    return replace(action, name=f"{action.name}, version {version}", kind=kind)


class Rows:
    """Frames of the batches, one for each, so that Spark hands each over once."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._frames: dict[Any, Any] = {}

    def __call__(self, rows: tuple[tuple[str, str, int, str], ...]) -> Any:
        """Return the frame of some rows."""
        if rows not in self._frames:
            from hudi_engine.spark.write.rows.frames import as_frame

            self._frames[rows] = as_frame(self._spark, batch(rows))
        return self._frames[rows]


def actions(rows: Frames) -> list[Action]:
    """Return all operations."""

    def write(operation: str, data: tuple[tuple[str, str, int, str], ...], **options: str) -> Act:
        given = {key.replace("__", "."): value for key, value in options.items()}
        return lambda table: getattr(table, operation)(rows(data), options=given)

    first, second, third = (write("upsert", data) for data in (FIRST, SECOND, THIRD))
    two = (first, second)
    three = (first, second, third)
    found = [Action("create", KINDS["cow"], (), lambda table: None, creates=True)]
    for name in KINDS:
        found.append(Action(f"upsert, {name}", KINDS[name], (first,), second))
    for name in ("cow global", "mor global"):
        found.append(Action(f"upsert that moves keys, {name}", KINDS[name], two, write("upsert", MOVED)))
    for name in ("cow", "mor"):
        kind = KINDS[name]
        single = (("a", "k1", 50, "single"), ("a", "k7", 50, "seven"))
        found += [
            Action(f"first upsert, {name}", kind, (), first),
            Action(f"upsert into one partition, {name}", kind, two, write("upsert", single)),
            Action(f"insert, {name}", kind, (first,), write("insert", (("a", "n1", 1, "new"),))),
            Action(f"bulk insert, {name}", kind, (first,), write("bulk_insert", (("d", "n2", 1, "new"),))),
            Action(f"overwrite of partitions, {name}", kind, three, write("insert_overwrite", SECOND)),
            Action(f"overwrite of the table, {name}", kind, three, write("insert_overwrite_table", FIRST)),
            Action(f"delete, {name}", kind, three, write("delete", KEYS)),
            Action(f"delete of partitions, {name}", kind, three, _drop_partitions),
            Action(f"alter, {name}", kind, three, _alter),
            Action(f"clean, {name}", kind, three, lambda table: table.clean(1)),
            # a metadata table keeps its own instants, and those of the table, until it is compacted
            Action(f"archive, {name}", real_table.without_metadata(kind), (*three, *three, _clean), _archive),
            Action(f"savepoint, {name}", kind, two, lambda table: table.savepoint(comments="here")),
            Action(f"delete of a savepoint, {name}", kind, (*two, _save), _forget),
            Action(f"restore, {name}", kind, (first, _save, second, third), _restore, goes_on=True),
            Action(f"rollback, {name}", kind, three, _rollback, goes_on=True),
            Action(
                f"rollback of an overwrite, {name}",
                kind,
                (*two, write("insert_overwrite", THIRD)),
                _rollback,
                goes_on=True,
            ),
            Action(f"upsert with services, {name}", kind, three, _with_services(rows)),
            Action(f"rebuild in place, {name}", kind, two, partial(_rebuild, rows, name)),
            Action(
                f"upsert on executors, {name}",
                kind,
                (first,),
                write("upsert", SECOND, **_dotted(SPREAD)),
                spark=True,
            ),
            Action(
                f"upsert by joins, {name}",
                kind,
                (first,),
                write("upsert", SECOND, **_dotted(WIDE)),
                spark=True,
            ),
            Action(f"replace by key, {name}", kind, two, partial(_replace, rows), spark=True),
            Action(f"clustering, {name}", kind, three, lambda table: table.cluster("v"), spark=True),
            Action(
                f"plan of a clustering, {name}", kind, three, lambda table: table.schedule_clustering("v")
            ),
            Action(
                f"planned clustering, {name}",
                kind,
                (*three, _plan_clustering),
                lambda table: table.cluster(),
                spark=True,
            ),
            Action(
                f"upsert that takes a planned clustering back, {name}",
                kind,
                (*two, _plan_clustering),
                write("upsert", THIRD, **_dotted(TAKES_BACK)),
            ),
            Action(
                f"delete by condition, {name}",
                kind,
                two,
                lambda table: table.delete_where("ts > 15"),
                spark=True,
            ),
        ]
    mor = KINDS["mor"]
    found += [
        Action("compaction, mor", mor, three, lambda table: table.compact()),
        Action("plan of a compaction, mor", mor, three, lambda table: table.schedule_compaction()),
        Action("planned compaction, mor", mor, (*three, _plan), lambda table: table.compact()),
        Action("upsert beside a planned compaction, mor", mor, (first, second, _plan), third),
        Action("rollback after a compaction, mor", mor, (*two, _compact, third), _rollback, goes_on=True),
        Action("clean after a compaction, mor", mor, (*three, _compact, third), lambda table: table.clean(1)),
    ]
    return found


def _dotted(options: dict[str, str]) -> dict[str, str]:
    return {key.replace(".", "__"): value for key, value in options.items()}


def _drop_partitions(table: HudiTable) -> None:
    table.delete_partitions(["a"])


def _alter(table: HudiTable) -> None:
    table.alter_schema("key string, ts long, v string, part string, extra int")


def _clean(table: HudiTable) -> None:
    table.clean(1)


def _archive(table: HudiTable) -> None:
    done = table.archive(2, 3, options={"hoodie.clean.commits.retained": "1"})
    assert done.instants, done


def _save(table: HudiTable) -> None:
    table.savepoint(comments="kept")


def _forget(table: HudiTable) -> None:
    table.delete_savepoint(table.savepoints()[0].instant)


def _restore(table: HudiTable) -> None:
    table.restore(table.savepoints()[0].instant)


def _rollback(table: HudiTable) -> None:
    table.rollback(commits(table)[-1].requested_time)


def _compact(table: HudiTable) -> None:
    table.compact()


def _plan(table: HudiTable) -> None:
    table.schedule_compaction()


def _plan_clustering(table: HudiTable) -> None:
    assert table.schedule_clustering("v").instant is not None


def _replace(rows: Frames, table: HudiTable) -> None:
    table.replace(rows((("a", "k1", 60, "replaced"), ("a", "k1", 61, "twice"))[:1]), keys="key")


def _with_services(rows: Frames) -> Act:
    busy = {
        "hoodie.clean.automatic": "true",
        "hoodie.clean.commits.retained": "1",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.archive.automatic": "true",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
    }
    return lambda table: table.upsert(rows((("a", "k1", 70, "busy"), ("d", "k8", 70, "new"))), options=busy)


def _rebuild(rows: Frames, name: str, table: HudiTable) -> None:
    kind = KINDS[name]
    rebuild_table(
        table.spark,
        table.path,
        rows(SECOND),
        name="t",
        record_key=["key"],
        precombine_field="ts",
        partition_by=["part"],
        table_type=kind.table_type,
        options=real_table.CALM,
    )


def make(spark: Any, path: Path, action: Action) -> HudiTable:
    """Make the table of an action in its old state."""
    table = real_table.create(spark, path, action.kind)
    for step in action.prepare:
        step(table)
    return table
