"""Which kind of file each write makes of which rows, for every table type and index: the truth table of the write handles."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable
from hudi_engine.format.timeline.commit_metadata import NO_PREVIOUS_COMMIT
from hudi_engine.table.state import TableState

QUIET = {
    "hoodie.engine.publish.manifest": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.bucket.index.num.buckets": "1",
}
NO_PACKING = {"hoodie.parquet.small.file.limit": "0"}
KNOWN, NEW, OTHER_PARTITION = (1, "a", "x"), (9, "a", "x"), (9, "b", "x")
WRITES = {
    "insert": ("insert", [NEW], {}),
    "insert without packing": ("insert", [NEW], NO_PACKING),
    "insert of a known key": ("insert", [KNOWN], {}),
    "upsert of a new key": ("upsert", [NEW], {}),
    "upsert of a new key without packing": ("upsert", [NEW], NO_PACKING),
    "upsert of a known key": ("upsert", [KNOWN], {}),
    "upsert of both": ("upsert", [KNOWN, NEW], {}),
    "upsert into a new partition": ("upsert", [OTHER_PARTITION], {}),
    "delete of a known key": ("delete", [KNOWN], {}),
    "delete of a new key": ("delete", [NEW], {}),
    "overwrite": ("insert_overwrite", [NEW], {}),
}
BY_KEY = {
    "insert": "merged",
    "insert without packing": "created",
    "insert of a known key": "merged",
    "upsert of a new key": "merged",
    "upsert of a new key without packing": "created",
    "upsert of a known key": "merged",
    "upsert of both": "merged",
    "upsert into a new partition": "created",
    "delete of a known key": "merged",
    "delete of a new key": "",
    "overwrite": "created",
}
OF_LOGS = {"upsert of a known key": "log", "delete of a known key": "log"}
OF_BUCKETS = {"insert without packing": "merged", "upsert of a new key without packing": "merged"}
TABLE = {
    ("cow", "SIMPLE"): BY_KEY,
    ("cow", "BUCKET"): {**BY_KEY, **OF_BUCKETS},
    ("mor", "SIMPLE"): {**BY_KEY, **OF_LOGS},
    ("mor", "BUCKET"): {
        **{name: "log" if kind in ("merged", "created") else kind for name, kind in BY_KEY.items()},
        "upsert into a new partition": "created",
        "overwrite": "created",
    },
}


def kinds_of(table, instant):
    """Kinds of the files of a commit, and whether some have change data."""
    timeline = TableState.load(table.storage).timeline
    stats = [stat for _, stat in timeline.commit_metadata(timeline.find(instant)).write_stats()]
    kinds = {
        "log" if stat.is_log_file else "created" if stat.prev_commit == NO_PREVIOUS_COMMIT else "merged"
        for stat in stats
    }
    return ",".join(sorted(kinds)), any(stat.cdc_stats for stat in stats)


@pytest.mark.parametrize("cdc", [False, True], ids=["plain", "with change data"])
@pytest.mark.parametrize(("table_type", "index"), TABLE)
def test_the_kind_of_file_of_every_write(spark, tmp_path, table_type, index, cdc):
    if cdc and table_type == "mor":
        pytest.skip("logs are the change data of merge-on-read tables")
    options = {**QUIET, "hoodie.index.type": index, "hoodie.table.cdc.enabled": str(cdc).lower()}
    columns, found = "id int, dt string, v string", {}
    for number, (name, (operation, rows, more)) in enumerate(WRITES.items()):
        table = HudiTable.create(
            spark,
            str(tmp_path / f"t{number}"),
            name="t",
            record_key=["id"],
            partition_by=["dt"],
            table_type=table_type,
            options=options,
        )
        table.upsert(spark.createDataFrame([(1, "a", "old"), (2, "a", "old")], columns))
        result = getattr(table, operation)(spark.createDataFrame(rows, columns), options={**options, **more})
        found[name], has_change_data = kinds_of(table, result.instant)
        assert has_change_data is (cdc and found[name] == "merged"), name
    assert found == TABLE[table_type, index]
