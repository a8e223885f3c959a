"""Figures of a commit, its metrics as a Prometheus text file, phases and spans."""

from __future__ import annotations

import json
import os

import pytest
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.telemetry import phases
from hudi_engine.format.telemetry.figures import WriteFigures
from hudi_engine.format.telemetry.phases import phase, seconds_so_far, timed
from hudi_engine.format.telemetry.reporters import report
from hudi_engine.format.telemetry.services import commit_metrics
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.table.table_services import TableServices

from tests.unit.services import tables

NEW = WriteStat(path="x/a.parquet", num_writes=10, num_inserts=10, total_write_bytes=100)
MERGED = WriteStat(
    path="x/b.parquet",
    prev_commit="1",
    num_writes=100,
    num_update_writes=5,
    num_deletes=2,
    total_write_bytes=1000,
)
LOG = WriteStat(
    path="y/.c.log.1", prev_commit="1", num_writes=4, num_update_writes=4, total_write_bytes=40, log_version=1
)
METADATA = CommitMetadata({"x": [NEW, MERGED], "y": [LOG]})


def test_bytes_rewritten_are_those_of_replaced_files_and_bytes_changed_those_of_the_rows():
    figures = WriteFigures.of(METADATA, 19, shuffled=False)
    assert (figures.rows_in, figures.rows_shuffled, figures.rows_written) == (19, 0, 114)
    assert (figures.bytes_rewritten, figures.bytes_changed) == (1000, 100 + 50 + 40)
    assert json.loads(figures.to_json({"write": 1.5}))["seconds"] == {"write": 1.5}


def test_the_metrics_file_has_hudis_names_and_keeps_what_is_not_reported_again(tmp_path):
    config = tables.copy_on_write(tmp_path / "t", 1).config
    options = resolve_options(
        {
            "hoodie.metrics.on": "true",
            "hoodie.metrics.reporter.metricsname.prefix": "shop.orders",
            "hoodie.engine.metrics.textfile.dir": str(tmp_path / "metrics"),
        }
    )
    values = commit_metrics(
        "commit", "20260101000000000", METADATA, {"write": 1.5, "commit": 0.5}, config.timeline_zone
    )
    report(options, config.name, values)
    report(options, config.name, {"clean.numFilesDeleted": 3})

    (path,) = (tmp_path / "metrics").iterdir()
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    found = dict(line.split(" ") for line in lines)
    assert path.name == "shop_orders.prom"
    assert found["shop_orders_commit_duration"] == "2000"
    assert found["shop_orders_commit_write_duration"] == "1500"
    assert found["shop_orders_commit_totalPartitionsWritten"] == "2"
    assert (
        found["shop_orders_commit_totalFilesInsert"] == "1"
        and found["shop_orders_commit_totalFilesUpdate"] == "2"
    )
    assert found["shop_orders_commit_totalBytesWritten"] == "1140"
    assert found["shop_orders_clean_numFilesDeleted"] == "3"


@pytest.mark.parametrize(("mask", "mode"), [(0o077, 0o600), (0o022, 0o644)])
def test_the_metrics_file_is_for_whom_the_umask_says(mask, mode, tmp_path):
    config = tables.copy_on_write(tmp_path / "t", 1).config
    options = {"hoodie.metrics.on": "true", "hoodie.engine.metrics.textfile.dir": str(tmp_path / "m")}
    before = os.umask(mask)
    try:
        report(resolve_options(options), config.name, {"a": 1})
    finally:
        os.umask(before)
    (path,) = (tmp_path / "m").iterdir()
    assert path.stat().st_mode & 0o777 == mode


def test_nothing_is_written_unless_metrics_are_on(tmp_path):
    config = tables.copy_on_write(tmp_path / "t", 1).config
    report(
        resolve_options({"hoodie.engine.metrics.textfile.dir": str(tmp_path / "m")}), config.name, {"a": 1}
    )
    assert not (tmp_path / "m").exists()


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path, warnings):
    config = tables.copy_on_write(tmp_path / "t", 1).config
    (tmp_path / "file").write_text("")
    options = {"hoodie.metrics.on": "true", "hoodie.engine.metrics.textfile.dir": str(tmp_path / "file")}
    report(resolve_options(options), config.name, {"a": 1})
    assert "could not be written" in warnings[0]


def test_phases_of_a_call_inside_another_count_for_that_one():
    with timed("outer", {}) as seconds:
        with phase("write"):
            pass
        with timed("inner", {}), phase("write"), phase("commit"):
            pass
        assert set(seconds_so_far()) == {"write", "commit"}
    assert set(seconds) == {"write", "commit"} and seconds_so_far() == {}


def test_phases_are_spans_where_opentelemetry_is_installed(monkeypatch):
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = trace.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(phases, "_tracer", lambda: provider.get_tracer("test"))
    with timed("hudi.write", {"hudi.operation": "UPSERT"}), phase("commit"):
        pass

    commit, write = exporter.get_finished_spans()
    assert (commit.name, write.name) == ("hudi.commit", "hudi.write")
    assert commit.parent.span_id == write.context.span_id
    assert write.attributes["hudi.operation"] == "UPSERT"


def figures_of(folder, prefix="handmade"):
    text = (folder / f"{prefix}.prom").read_text()
    found = (line.split(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name.removeprefix(f"{prefix}_"): int(value) for name, value in found}


def test_every_service_reports_under_hudis_names(tmp_path):
    folder = tmp_path / "metrics"
    storage = tables.merge_on_read(tmp_path / "t").storage
    options = tables.options(
        metrics__on="true",
        engine__metrics__textfile__dir=str(folder),
        keep__min__commits="2",
        keep__max__commits="3",
        clean__commits__retained="1",
        compact__inline__max__delta__commits="1",
    )
    services = TableServices(storage, options)

    services.compact()
    found = figures_of(folder)
    assert (found["compaction_totalLogFilesCompacted"], found["compaction_totalRecordsWritten"]) == (3, 3)
    assert found["compaction_totalBytesWritten"] > 0 and found["compaction_totalLogFilesSize"] > 0

    assert services.cluster().rows == figures_of(folder)["replacecommit_totalRecordsWritten"] > 0
    assert services.clean(1).files_deleted == figures_of(folder)["clean_numFilesDeleted"] > 0
    assert len(services.archive().instants) == figures_of(folder)["archive_numInstantsArchived"] > 0
    done = services.rollback(tables.writes(storage)[-1])
    assert figures_of(folder)["rollback_numFilesDeleted"] == len(done.deleted) > 0
    for action in ("compaction", "replacecommit", "clean", "archive", "rollback"):
        assert figures_of(folder)[f"{action}_duration"] >= 0


def test_what_did_nothing_and_what_nobody_wants_to_know_is_not_reported(tmp_path):
    table = tables.copy_on_write(tmp_path / "t", 1)
    folder = tmp_path / "metrics"
    options = tables.options(metrics__on="true", engine__metrics__textfile__dir=str(folder))
    TableServices(table.storage, options).clean()
    TableServices(table.storage, options).archive(dry_run=True)
    assert not folder.exists()
    silent = options.merged({"hoodie.metrics.on": "false"})
    TableServices(table.storage, silent).rollback(tables.writes(table.storage)[-1])
    assert not folder.exists()


def test_metrics_that_cannot_be_written_stop_no_service(tmp_path, caplog):
    storage = tables.merge_on_read(tmp_path / "t").storage
    (tmp_path / "file").write_text("")
    options = tables.options(metrics__on="true", engine__metrics__textfile__dir=str(tmp_path / "file" / "x"))
    assert TableServices(storage, options).compact().state == "completed"
    assert "metrics of handmade could not be written" in caplog.text


def test_a_write_of_the_dead_that_is_rolled_back_is_reported(tmp_path):
    table = tables.copy_on_write(tmp_path / "t", 1)
    instant = table.next_instant()
    table.storage.create(f".hoodie/{instant}.commit.requested", b"")
    os.utime(tmp_path / "t/.hoodie" / f"{instant}.commit.requested", (1, 1))
    folder = tmp_path / "metrics"
    options = tables.options(metrics__on="true", engine__metrics__textfile__dir=str(folder))
    TableServices(table.storage, options).savepoint()
    assert figures_of(folder)["rollback_numFilesDeleted"] == 0
