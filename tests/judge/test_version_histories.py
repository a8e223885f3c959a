"""Random histories of tables of every version that Apache Hudi 1.2.0 writes too, with changes of the version among the operations."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.format.metadata.expressions import Expression
from hudi_engine.format.storage import open_storage

from tests.helpers.metadata_table import differences
from tests.judge.apache_hudi import ApacheHudi
from tests.judge.arrow_rows import rows_of_spark
from tests.judge.readers import Judges
from tests.judge.rows import difference, without_meta
from tests.judge.versioned_table import Row, Table

pytestmark = pytest.mark.slow

STEPS, KEYS = 12, 24
VERSIONS = (9, 6, 8)
INDEXES = {
    "simple": {},
    "bloom": {"hoodie.index.type": "BLOOM"},
    "bucket": {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.bucket.index.hash.field": "id",
    },
    "global": {"hoodie.index.type": "GLOBAL_SIMPLE"},
}
SHORT, LONG = range(2), range(2, 300)


@pytest.mark.parametrize("seed", [*SHORT, *(pytest.param(each, marks=pytest.mark.long) for each in LONG)])
def test_all_readers_give_the_rows_of_a_history(
    seed: int, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    History(spark, tmp_path / "t", apache_hudi("1.2.0"), seed).play()


class History:
    """One table; every third write is by Apache Hudi.

    Args:
        seed: Of its chance; type, version and index take turns.
    """

    def __init__(self, spark: Any, path: Path, hudi: ApacheHudi, seed: int) -> None:
        self._chance = chance = random.Random(seed)
        self._index = list(INDEXES)[seed // 2 % len(INDEXES)]
        kind, version = ("mor", "cow")[seed % 2], VERSIONS[seed // 8 % len(VERSIONS)]
        self._table = Table(
            spark, path, kind, hudi, options={"hoodie.compact.inline": "false", **INDEXES[self._index]},
            partitioned=self._index == "global" or chance.random() < 0.7, ordered=chance.random() < 0.7,
            metadata=chance.random() < 0.3,
        )  # fmt: skip
        self._table.make(version)
        self._version, self._turn = version, 0
        self._done = [
            f"seed {seed}: {kind}, version {version}, {self._index}, partitioned {self._table.partitioned}, "
            f"ordered {self._table.ordered}, metadata {self._table.metadata}"
        ]

    def play(self) -> None:
        """Do the steps, and look at the table in the middle and at the end."""
        self._step(self._upsert)
        for step in range(2, STEPS + 1):
            steps = self._by_hudi() if step % 3 == 0 else self._own()
            self._step(self._chance.choice(steps))
            if step % (STEPS // 2) == 0:
                self._look()

    def _look(self) -> None:
        self._table.check(str(self._done))

    def _step(self, act: Callable[[], str | None]) -> None:
        self._turn += 1
        self._done.append(act.__name__)
        try:
            more = act()
        except Exception as error:
            raise AssertionError(f"{self._done}: {error!r}") from error
        if more:
            self._done[-1] += f" {more}"

    def _own(self) -> list[Callable[[], str | None]]:
        found = [self._upsert] * 4 + [self._update_some_columns] * 2 + [self._update_where, self._delete]
        found += [self._change_version] * 3 + [self._clean, self._roll_back, self._restore, self._archive]
        if self._table.partitioned:
            found.append(self._overwrite)
        if self._table.kind == "mor":
            found += [self._compact] * 2
        if self._index != "bucket":
            found.append(self._cluster)
        return found

    def _by_hudi(self) -> list[Callable[[], str | None]]:
        found = [self._upsert_by_hudi] * 4 + [self._delete_by_hudi] * 2
        if self._table.kind == "mor":
            found.append(self._compact_by_hudi)
        return found

    def _keys(self) -> list[int]:
        return self._chance.sample(range(KEYS), self._chance.randint(1, 10))

    def _upsert(self) -> None:
        self._table.upsert(self._keys(), self._turn)

    def _update_some_columns(self) -> str:
        table, keys = self._table, self._keys()
        names = self._chance.choice((("val",), ("ts", "val")))
        table.opened.upsert(table.frame(keys, self._turn), update_columns=names)
        for row in table.values(keys, self._turn):
            stored = table.rows.get(row["id"])
            table.rows[row["id"]] = (
                row if stored is None else {**stored, **{name: row[name] for name in names}}
            )
        return f"of {names}"

    def _update_where(self) -> None:
        self._table.opened.update_where("dt = 'p1'", {"val": "concat(val, '!')"})
        for row in self._table.rows.values():
            if row["dt"] == "p1":
                row["val"] += "!"

    def _delete(self) -> None:
        keys = self._keys()
        self._table.opened.delete(self._table.frame(keys, self._turn))
        self._table.forget(keys)

    def _overwrite(self) -> None:
        table, keys = self._table, self._keys()
        table.opened.insert_overwrite(table.frame(keys, self._turn))
        gone = {row["dt"] for row in table.values(keys, self._turn)}
        table.rows = {key: row for key, row in table.rows.items() if row["dt"] not in gone}
        table.note(keys, self._turn)

    def _change_version(self) -> str:
        wanted = self._chance.choice([each for each in VERSIONS if each != self._version])
        change = self._table.opened.upgrade if wanted > self._version else self._table.opened.downgrade
        change(wanted)
        self._version = wanted
        return f"to {wanted}"

    def _clean(self) -> None:
        self._table.opened.clean(self._chance.randint(1, 3))

    def _archive(self) -> None:
        self._table.opened.archive(2, 3)

    def _compact(self) -> None:
        self._table.opened.compact()

    def _cluster(self) -> None:
        self._table.opened.cluster("val")

    def _roll_back(self) -> None:
        before = self._copy()
        self._table.opened.rollback(self._table.upsert(self._keys(), self._turn))
        self._table.rows = before

    def _restore(self) -> None:
        saved, before = self._table.opened.savepoint().instant, self._copy()
        self._table.upsert(self._keys(), self._turn)
        self._table.opened.restore(saved)
        self._table.opened.delete_savepoint(saved)
        self._table.rows = before

    def _upsert_by_hudi(self) -> None:
        self._table.upsert_by_hudi(self._keys(), self._turn)

    def _delete_by_hudi(self) -> None:
        keys = self._keys()
        self._table.write_by_hudi(keys, self._turn, "delete")
        self._table.forget(keys)

    def _compact_by_hudi(self) -> None:
        self._table.compact_by_hudi(self._version)

    def _copy(self) -> dict[str, Row]:
        return {key: dict(row) for key, row in self._table.rows.items()}


METADATA = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
OF_KEYS = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
}
BY_PARTITION = {"hoodie.metadata.record.level.index.enable": "true"}
SECONDARY, EXPRESSION = "secondary_index_val", "expr_index_val"


@pytest.mark.parametrize("seed", [*SHORT, *(pytest.param(each, marks=pytest.mark.long) for each in LONG)])
def test_all_readers_give_the_rows_of_a_history_with_a_metadata_table(
    seed: int, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    version = (9, 6)[seed // 8 % 2]
    hudi = "0.15.0" if version == 6 and seed % 3 == 0 else "1.2.0"
    MetadataHistory(spark, tmp_path / "t", apache_hudi(hudi), seed, version).play()


class MetadataHistory(History):
    """One table of version 6 or 9, whose metadata table both keep with all its indexes, and read by."""

    def __init__(self, spark: Any, path: Path, hudi: ApacheHudi, seed: int, version: int) -> None:
        self._chance = chance = random.Random(seed)
        self._index = list(INDEXES)[seed // 2 % len(INDEXES)]
        kind, partitioned = ("mor", "cow")[seed % 2], self._index == "global" or chance.random() < 0.7
        # With a bucket index Apache Hudi leaves keys that it inserts into existing file groups out of its record index.
        of_keys = {} if self._index == "bucket" else OF_KEYS
        if of_keys and version == 9 and partitioned and self._index != "global" and chance.random() < 0.4:
            of_keys = BY_PARTITION
        self._named = version == 9 and of_keys is OF_KEYS
        options = {"hoodie.compact.inline": "false", **INDEXES[self._index], **METADATA, **of_keys}
        self._table = Table(
            spark, path, kind, hudi, options=options, partitioned=partitioned, ordered=chance.random() < 0.7,
            metadata=True,
        )  # fmt: skip
        self._table.make(version)
        self._version, self._turn = version, 0
        self._done = [
            f"seed {seed}: {kind}, version {version}, {self._index}, partitioned {partitioned}, "
            f"ordered {self._table.ordered}, record index by partition {of_keys is BY_PARTITION}, Hudi {hudi.version}"
        ]

    def _own(self) -> list[Callable[[], str | None]]:
        return [each for each in super()._own() if each != self._change_version]

    def _upsert(self) -> None:
        super()._upsert()
        services = self._table.opened.services()
        if self._named and SECONDARY not in self._table.opened.config.metadata_partitions:
            services.create_index(SECONDARY, ["val"])
            services.create_index(EXPRESSION, (), Expression.parse("substring(val, 1, 2)"))

    def _delete_by_hudi(self) -> None:
        # A delete that finds nothing fails in Apache Hudi where a table has an expression index.
        stored = [key for key in range(KEYS) if f"k{key}" in self._table.rows]
        if stored:
            keys = self._chance.sample(stored, min(len(stored), 4))
            self._table.write_by_hudi(keys, self._turn, "delete")
            self._table.forget(keys)

    def _look(self) -> None:
        super()._look()
        table, storage = self._table, open_storage(str(self._table.path))
        assert differences(storage) == [], self._done
        of_keys = {"record_index"} if any("record" in key for key in table.options) else set()
        wanted = {"files", "column_stats", "bloom_filters", *of_keys}
        assert wanted <= {*table.opened.config.metadata_partitions}, self._done
        row = self._chance.choice([*table.rows.values(), {"id": "none", "val": "none", "ts": -1, "dt": "p0"}])
        for name in ("id", "val", "ts"):
            rows = [each for each in table.rows.values() if each[name] == row[name]]
            for skips in ("true", "false"):
                options = {"hoodie.metadata.enable": skips, "hoodie.enable.data.skipping": skips}
                condition = f"{name} = {row[name]!r}"
                found = table.hudi.read(table.path, options=options, where=condition)
                assert difference(without_meta(found), rows) == "", (self._done, condition, skips)
            found = rows_of_spark(table.opened.snapshot(filters=[(name, "=", row[name])]))
            assert difference(without_meta(found), rows) == "", (self._done, name)
