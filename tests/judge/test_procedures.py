"""Our procedures and Apache Hudi's say the same of the same table, in the same columns."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.operations.procedures import PROCEDURES
from hudi_engine.table.table_services import TableServices

from tests.golden.golden import unpack
from tests.judge.apache_hudi import VERSIONS
from tests.judge.readers import Judges

RANGE = {"start_ts": "20200101000000000", "end_ts": "20990101000000000"}
OF_COMMIT = (
    "show_commit_files",
    "show_commit_partitions",
    "show_commit_write_stats",
    "show_commit_extra_metadata",
)
SINCE_1_2 = ("show_cleans", "show_cleans_metadata", "show_clean_plans")


def ours(path: Path, name: str, **given: str) -> list[dict[str, Any]]:
    services = TableServices(open_storage(str(path)), resolve_options({}))
    procedure = PROCEDURES[name]
    columns = [column.split()[0] for column in procedure.columns.split(", ")]
    return [dict(zip(columns, row, strict=True)) for row in procedure.call(services, given)]


@pytest.fixture(scope="module")
def table(tmp_path_factory: Any) -> Path:
    """A merge-on-read table of Apache Hudi with a savepoint, a clean and an archive of ours."""
    path = Path(unpack("v6_mor_simple_deletes_h0150", tmp_path_factory.mktemp("t")))
    services = TableServices(open_storage(str(path)), resolve_options({}))
    services.compact()
    services.clean(1)
    early = {"hoodie.keep.min.commits": 3, "hoodie.keep.max.commits": 4, "hoodie.clean.commits.retained": 1}
    more = {"hoodie.compact.inline.max.delta.commits": 1}
    assert TableServices(services.storage, resolve_options(early | more)).archive().instants
    services.savepoint()
    return path


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_shown_is_what_apache_hudi_shows(
    version: str, table: Path, apache_hudi: Judges, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    shutil.copytree(table, path, copy_function=shutil.copy2)
    hudi = apache_hudi(version)
    commits = hudi.call(path, "show_commits")
    newest = commits[0]["commit_time"]
    calls = [
        ("show_commits", {}),
        ("show_commits_metadata", {}),
        ("show_savepoints", {}),
        ("show_rollbacks", {}),
        ("show_compaction", {}),
    ]
    calls += [(name, {"instant_time": newest}) for name in OF_COMMIT]
    calls += [("show_archived_commits", RANGE), ("show_archived_commits_metadata", RANGE)]
    calls += [(name, {}) for name in SINCE_1_2] if version == "1.2.0" else []
    for name, given in calls:
        assert ours(path, name, **given) == hudi.call(path, name, **given), name
