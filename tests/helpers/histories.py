"""Random histories of a table, and the rows of each of its states."""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass, field

import pyarrow as pa
from hudi_engine.errors import ServiceError, TimelineError
from hudi_engine.format.storage import open_storage
from hudi_engine.spark.schema.spark_types import arrow_to_spark

from tests.helpers.keyed import keyed_table
from tests.helpers.read_table import read_table

COLUMNS = "id int, ts bigint, dt string, name string"
NAMES = ["id", "ts", "dt", "name"]
TYPES = [pa.int32(), pa.int64(), pa.string(), pa.string()]
WIDTHS = {", note int": pa.int32(), ", note bigint": pa.int64()}
LATER = "note"
"""A column that a history may add and widen."""
KEEP = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}


@dataclass(frozen=True)
class Shape:
    """What tells the tables of histories apart.

    Args:
        table_type: ``cow`` or ``mor``.
        index: Kind of index.
        partitioned: Whether ``dt`` makes partitions.
        ordering: Ordering fields, in order.
        payload: Payload class, None for the default.
        options: Further options of the table.
    """

    table_type: str = "cow"
    index: str = "SIMPLE"
    partitioned: bool = True
    ordering: tuple[str, ...] = ("ts",)
    payload: str | None = None
    options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def any(cls, random_):
        """Any of them."""
        partitioned = random_.random() < 0.7
        kinds = ["SIMPLE", "BLOOM", "BUCKET", *(["GLOBAL_SIMPLE", "GLOBAL_BLOOM"] if partitioned else [])]
        logging = random_.choice([None, None, "OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"])
        options = {"hoodie.logfile.data.block.format": random_.choice(["avro", "parquet"])}
        if logging is not None:
            options |= {
                "hoodie.table.cdc.enabled": "true",
                "hoodie.table.cdc.supplemental.logging.mode": logging,
            }
        if random_.random() < 0.3:
            options["hoodie.parquet.small.file.limit"] = "0"
        return cls(
            random_.choice(["cow", "mor"]),
            random_.choice(kinds),
            partitioned,
            random_.choice([("ts",), ("ts",), ("ts", "name")]),
            random_.choice([None, None, None, *PAYLOADS]),
            options,
        )

    @property
    def foresees(self):
        """Whether a dictionary says what rows a step leaves; of other tables they are read."""
        return self.payload is None and not self.index.startswith("GLOBAL")

    def key(self, row):
        """What a row is known by."""
        return (row[2] if self.partitioned else "", row[0])

    def wins(self, new, old):
        """Whether a row stands against the stored one, by the ordering fields."""
        places = [NAMES.index(name) for name in self.ordering]
        return old is None or [new[each] or "" for each in places] >= [old[each] or "" for each in places]


PAYLOADS = (
    "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    "org.apache.hudi.common.model.EventTimeAvroPayload",
    "org.apache.hudi.common.model.PartialUpdateAvroPayload",
)
USUAL = Shape()


def make(spark, path, table_type="cow", **options):
    return make_shape(spark, path, Shape(table_type, options=options))


def make_shape(spark, path, shape):
    payload = {} if shape.payload is None else {"hoodie.datasource.write.payload.class": shape.payload}
    index = {} if "hoodie.index.type" in shape.options else {"hoodie.index.type": shape.index}
    return keyed_table(
        spark,
        path,
        shape.table_type,
        schema=COLUMNS,
        precombine_field=list(shape.ordering),
        partition_by=["dt"] if shape.partitioned else None,
        options={**KEEP, **payload, **index, **shape.options},
    )


def frame(spark, *rows):
    return spark.createDataFrame(list(rows), COLUMNS)


def values(row):
    """A row as its values; the column that a history may add counts where it is not null."""
    found = tuple(row[name] for name in NAMES)
    return found if row.get(LATER) is None else (*found, row[LATER])


def rows_as_of(table, instant, shape=USUAL):
    rows = [values(row) for row in read_table(open_storage(table.path), as_of=instant).to_pylist()]
    found = {shape.key(row): row for row in rows}
    assert len(found) == len(rows), "each key is there once"
    return found


STEPS = {
    "upsert": 6,
    "late": 1,
    "tie": 1,
    "soft": 1,
    "marks": 1,
    "delete_where": 1,
    "update_where": 1,
    "same": 2,
    "insert": 2,
    "delete": 2,
    "overwrite": 1,
    "overwrite_table": 1,
    "drop": 1,
    "rollback": 1,
    "restore": 1,
    "evolve": 1,
}
SERVICES = {"compact": 2, "cluster": 3, "plan_clustering": 1, "cluster_inline": 1, "clean": 1, "archive": 1}
ALLOW = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
TAKE_BACK = {**ALLOW, "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true"}


class History:
    """A table under random operations and services, and the rows that it should have after each.

    Args:
        table: The table.
        shape: Its shape.
        random_: What chooses.
    """

    def __init__(self, table, shape, random_):
        self.table, self.spark, self.random, self.shape = table, table.spark, random_, shape
        self.is_mor, self.has_buckets = shape.table_type == "mor", shape.index == "BUCKET"
        self.clock = 0
        self.later = [f", {LATER} bigint", f", {LATER} int", ""]
        self.states = {}

    def rows(self):
        return dict(next(reversed(self.states.values()))) if self.states else {}

    def step(self, name):
        """Do one thing; what it did to the rows is noted."""
        self.clock += 1
        before = self.rows()
        instant, rows = getattr(self, name)(before)
        found = rows_as_of(self.table, None, self.shape)
        assert found == (rows if self.shape.foresees else found), name
        if instant is not None:
            self.states[instant] = found
        elif name != "restore":
            assert found == before, name

    def batch(self):
        count = self.random.randrange(1, 7)
        keys = {self.random.randrange(10): self.random.choice(["a", "b"]) for _ in range(count)}
        note = (self.clock,) if self.later[-1] else ()
        rows = [(key, self.clock, part, f"v{self.clock}", *note) for key, part in keys.items()]
        return {self.shape.key(row): row for row in rows}

    def frame(self, rows, marks=None):
        """Rows as a batch, of Spark now and then, otherwise of Arrow; ``marks`` are the keys to delete."""
        types = [*TYPES, *([WIDTHS[self.later[-1]]] if self.later[-1] else [])]
        names = [*NAMES, LATER][: len(types)]
        wide = [(*row, None)[: len(types)] for row in rows.values()]
        columns = [pa.array([row[number] for row in wide], kind) for number, kind in enumerate(types)]
        if marks is not None:
            names.append("__hudi_is_deleted")
            columns.append(pa.array([key in marks for key in rows], pa.bool_()))
        batch = pa.table(columns, names)
        if self.random.random() < 0.8:
            return batch
        rows = [tuple(row.values()) for row in batch.to_pylist()]
        return self.spark.createDataFrame(rows, arrow_to_spark(batch.schema))

    def evolve(self, rows):
        """Write with one column more, and with a wider one after that."""
        if len(self.later) > 1:
            self.later.pop()
        return self.upsert(rows)

    def upsert(self, rows, more=None):
        batch = self.batch()
        options = {
            "hoodie.engine.small.batch.rows": self.random.choice(["0", "1000"]),
            **(more or self.random.choice([ALLOW, TAKE_BACK])),
        }
        return self.table.upsert(self.frame(batch), options=options).instant, {**rows, **batch}

    def late(self, rows):
        batch = {
            key: (*row[:1], 0, row[2], "late") for key, row in rows.items() if self.random.random() < 0.5
        }
        if not batch:
            return None, rows
        return self.table.upsert(self.frame(batch), options=ALLOW).instant, rows

    def tie(self, rows):
        """Write rows with the time of what is stored, which win or not by the next ordering field."""
        name = self.random.choice(["a", "z"])
        batch = {key: (*row[:3], name) for key, row in list(rows.items())[:4]}
        if not batch:
            return None, rows
        won = {key: row for key, row in batch.items() if self.shape.wins(row, rows[key])}
        return self.table.upsert(self.frame(batch), options=ALLOW).instant, {**rows, **won}

    def soft(self, rows):
        """Null all of some rows but key, place and time."""
        batch = {key: (row[0], self.clock, row[2], None) for key, row in list(rows.items())[-2:]}
        if not batch:
            return None, rows
        return self.table.upsert(self.frame(batch), options=ALLOW).instant, {**rows, **batch}

    def marks(self, rows):
        """Upsert rows and deletes in one batch."""
        batch = self.batch()
        gone = {key for key in batch if self.random.random() < 0.5}
        left = {key: row for key, row in {**rows, **batch}.items() if key not in gone}
        return self.table.upsert(self.frame(batch, gone), options=ALLOW).instant, left

    def delete_where(self, rows):
        left = {key: row for key, row in rows.items() if row[0] % 4 != self.clock % 4}
        return self.table.delete_where(f"id % 4 = {self.clock % 4}", options=ALLOW).instant, left

    def update_where(self, rows):
        found = {
            key: (row[0], row[1] + 1, row[2], "set", *row[4:]) if row[0] % 3 == self.clock % 3 else row
            for key, row in rows.items()
        }
        changed = {"ts": "ts + 1", "name": "'set'"}
        return self.table.update_where(f"id % 3 = {self.clock % 3}", changed, options=ALLOW).instant, found

    def same(self, rows):
        batch = dict(list(rows.items())[:3])
        return (self.table.upsert(self.frame(batch), options=ALLOW).instant, rows) if batch else (None, rows)

    def insert(self, rows):
        fresh = [(key + 100 * self.clock, *rest) for key, *rest in self.batch().values()]
        new = {self.shape.key(row): row for row in fresh}
        return self.table.insert(self.frame(new), options=ALLOW).instant, {**rows, **new}

    def delete(self, rows):
        batch = self.batch()
        kept = {key: row for key, row in rows.items() if key not in batch}
        return self.table.delete(self.frame(batch), options=ALLOW).instant, kept

    def overwrite(self, rows):
        batch = self.batch()
        parts = {part for part, _ in batch}
        kept = {key: row for key, row in rows.items() if key[0] not in parts}
        return self.table.insert_overwrite(self.frame(batch), options=ALLOW).instant, {**kept, **batch}

    def overwrite_table(self, _rows):
        batch = self.batch()
        return self.table.insert_overwrite_table(self.frame(batch), options=ALLOW).instant, batch

    def drop(self, rows):
        parts = sorted({each.partition for each in self.table.files()})
        if not parts or not self.shape.partitioned:
            return None, rows
        part = self.random.choice(parts)
        kept = {key: row for key, row in rows.items() if f"dt={key[0]}" != part and key[0] != part}
        return self.table.delete_partitions([part], options=ALLOW).instant, kept

    def rollback(self, rows):
        instant, _ = self.upsert(rows, ALLOW)
        self.table.rollback(instant)
        return None, rows

    def restore(self, rows):
        """Go back before the newest write, or past a few of them."""
        instants = list(self.states)
        back = self.random.randrange(2, 4)
        if len(instants) < back:
            return None, rows
        instant = instants[-back]
        try:
            self.table.savepoint(instant)
        except TimelineError:
            # a clean has been at its files
            return None, rows
        self.table.restore(instant)
        self.table.delete_savepoint(instant)
        for undone in instants[1 - back :]:
            del self.states[undone]
        return None, self.rows()

    def compact(self, rows):
        if self.is_mor:
            self.table.compact()
        return None, rows

    def cluster(self, rows):
        """Run what is planned, or plan and run."""
        if not self.has_buckets:
            with contextlib.suppress(ServiceError):
                # the plan's file groups may have changed since
                self.table.cluster(self.random.choice([None, "name"]))
        return None, rows

    def plan_clustering(self, rows):
        if not self.has_buckets:
            self.table.schedule_clustering()
        return None, rows

    def cluster_inline(self, rows):
        if self.has_buckets:
            return None, rows
        inline = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
        return self.upsert(rows, {**TAKE_BACK, **inline})

    def clean(self, rows):
        self.table.clean(retain_commits=self.random.randrange(2, 6))
        return None, rows

    def archive(self, rows):
        self.table.archive(6, 8)
        return None, rows


def random_history(spark, path, shape, seed, length=10):
    """A table after random operations and services, and its rows after each write that nothing has taken back."""
    random_ = random.Random(f"{seed}-{shape.index}-{shape.table_type}")
    history = History(make_shape(spark, path, shape), shape, random_)
    steps = {**STEPS, **SERVICES}
    history.step("upsert")
    for name in random_.choices(list(steps), list(steps.values()), k=length - 1):
        history.step(name)
    return history.table, history.states
