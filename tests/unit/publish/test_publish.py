from __future__ import annotations

import re
import shutil
import threading
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.storage import open_storage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.spark.catalog.foreign import sweep_cache
from hudi_engine.table.snapshot.derive import make_in_threads
from hudi_engine.table.snapshot.manifest import (
    current_manifest,
    listed_uris,
    live_manifest_files,
    newest_manifest,
    publish,
)
from hudi_engine.table.snapshot.manifest_file import Layout, ManifestFolder, is_healthy

from tests.helpers.fault import FaultInjectingStorage, FaultPlan, SimulatedCrash, raise_crash
from tests.helpers.handmade import HandmadeTable
from tests.unit.publish.conftest import SCHEMA, log_update, rows


def files(table):
    """Names of the base files the newest manifest lists, without token."""
    return sorted(
        path.split("_")[0] + "@" + path.split("_")[-1][:17] for path in live_manifest_files(table.storage)
    )


def current(table):
    manifest = current_manifest(table.storage, Timeline.load(table.storage, table.config), table.config)
    return manifest is not None


def test_the_newest_base_file_of_every_file_group_is_listed(cow):
    one = cow.commit({"dt=x": {"f-0": rows(1), "g-0": rows(2)}})
    two = cow.commit({"dt=x": {"f-0": rows(1, v="b")}})
    assert publish(cow.storage).instant == two
    assert files(cow) == [f"dt=x/f-0@{two}", f"dt=x/g-0@{one}"]


def test_publishing_again_writes_nothing(cow):
    cow.commit({"dt=x": {"f-0": rows(1)}})
    assert publish(cow.storage).published
    watched = FaultInjectingStorage(cow.storage)
    assert not publish(watched).published
    assert watched.calls == []


def test_each_commit_takes_the_next_number_and_two_manifests_stay(cow):
    for value in "abcd":
        cow.commit({"dt=x": {"f-0": rows(1, v=value)}})
        number = publish(cow.storage).number
    assert number == 39
    assert ManifestFolder(cow.storage, Layout.HIVE).numbers() == [29, 39]


def test_only_partitions_written_since_are_listed_anew(cow):
    cow.commit({"dt=x": {"f-0": rows(1)}, "dt=y": {"g-0": rows(2, dt="y")}})
    publish(cow.storage)
    shutil.rmtree(cow.path / "dt=y")
    two = cow.commit({"dt=x": {"f-0": rows(1, v="b")}})
    publish(cow.storage)
    assert f"dt=x/f-0@{two}" in files(cow)
    assert any(name.startswith("dt=y/") for name in files(cow))


def test_replaced_file_groups_are_gone(cow):
    cow.commit({"dt=x": {"f-0": rows(1)}, "dt=y": {"g-0": rows(2, dt="y")}})
    publish(cow.storage)
    cow.commit({}, replaced={"dt=y": ["g-0"]})
    publish(cow.storage)
    assert [name.split("@")[0] for name in files(cow)] == ["dt=x/f-0"]


def test_an_uncommitted_file_is_not_listed(cow):
    one = cow.commit({"dt=x": {"f-0": rows(1)}})
    cow.write_file("dt=x", "f-0", rows(1, v="b"), cow.next_instant())
    publish(cow.storage)
    assert files(cow) == [f"dt=x/f-0@{one}"]


def test_a_commit_that_is_undone_is_unpublished(cow):
    one = cow.commit({"dt=x": {"f-0": rows(1)}})
    two = cow.commit({"dt=x": {"f-0": rows(1, v="b")}})
    publish(cow.storage)
    cow.storage.delete(f".hoodie/{two}.commit")
    assert not current(cow)
    publish(cow.storage)
    assert files(cow) == [f"dt=x/f-0@{one}"]


def test_a_commit_that_completes_late_is_published(cow):
    early, late = cow.next_instant(), cow.next_instant()
    for instant, file_id in ((late, "g-0"), (early, "f-0")):
        cow.complete(instant, [cow.write_file("dt=x", file_id, rows(1), instant)])
        publish(cow.storage)
    assert files(cow) == [f"dt=x/f-0@{early}", f"dt=x/g-0@{late}"]


def test_archiving_old_instants_does_not_make_a_manifest_stale(cow):
    one = cow.commit({"dt=x": {"f-0": rows(1)}})
    cow.commit({"dt=y": {"g-0": rows(2, dt="y")}})
    publish(cow.storage)
    cow.storage.delete(f".hoodie/{one}.commit")
    assert current(cow)


def archive(table, *instants):
    """Take the files of instants off the active timeline, as Hudi's archiver does."""
    for instant in instants:
        for path in table.path.glob(f".hoodie/{instant}.*"):
            path.unlink()


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_writes_that_were_archived_before_anybody_listed_them_are_published(kind, request):
    table = request.getfixturevalue(kind)
    first = table.commit({"dt=x": {"f-0": rows(1)}, "dt=y": {"g-0": rows(2, dt="y")}})
    publish(table.storage)
    unseen = table.commit({"dt=x": {"f-0": rows(1, v="b"), "h-0": rows(3)}})
    last = table.commit({"dt=y": {"g-0": rows(2, dt="y", v="b")}})
    archive(table, *({getattr(table, "first", first), first, unseen}))
    assert not current(table)
    publish(table.storage)
    assert current(table)
    assert files(table) == [f"dt=x/f-0@{unseen}", f"dt=x/h-0@{unseen}", f"dt=y/g-0@{last}"]


def test_a_write_that_was_pending_when_listed_and_is_archived_since_is_published(cow):
    late = cow.next_instant()
    cow.storage.create(f".hoodie/{late}.commit.requested", b"")
    seen = cow.commit({"dt=x": {"f-0": rows(1)}})
    publish(cow.storage)
    cow.write_file("dt=y", "g-0", rows(2, dt="y"), late)
    archive(cow, late)
    assert not current(cow)
    publish(cow.storage)
    assert files(cow) == [f"dt=x/f-0@{seen}", f"dt=y/g-0@{late}"]


def test_archiving_past_a_savepoint_does_not_hide_writes_that_were_never_listed(cow):
    saved = cow.commit({"dt=x": {"f-0": rows(1)}})
    cow.storage.create(f".hoodie/{saved}.savepoint", b"")
    publish(cow.storage)
    unseen = cow.commit({"dt=y": {"g-0": rows(2, dt="y")}})
    last = cow.commit({"dt=x": {"f-0": rows(1, v="b")}})
    archive(cow, unseen)
    publish(cow.storage)
    assert files(cow) == [f"dt=x/f-0@{last}", f"dt=y/g-0@{unseen}"]


def test_a_manifest_that_does_not_say_what_was_pending_is_published_anew_once(cow):
    cow.commit({"dt=x": {"f-0": rows(1)}})
    publish(cow.storage)
    path = ".hoodie/spark_catalog/hive/_spark_metadata/9.compact"
    body = cow.storage.read(path)
    cow.storage.replace(path, body.replace(b', "pending": []', b""))
    assert cow.storage.read(path) != body
    assert publish(cow.storage).published
    assert not publish(cow.storage).published


def test_a_table_without_a_commit_has_an_empty_manifest_and_keeps_its_layout_open(cow):
    empty = publish(cow.storage)
    assert (empty.files, empty.layout, empty.instant) == (0, Layout.HIVE, "")
    cow.commit({"dt=x": {"f-0": rows(1)}})
    assert publish(cow.storage).layout is Layout.HIVE


def test_a_table_that_was_moved_lists_its_files_at_the_new_place(cow, tmp_path):
    cow.commit({"dt=x": {"f-0": rows(1)}})
    publish(cow.storage)
    shutil.copytree(cow.path, tmp_path / "copy")
    copy = open_storage(str(tmp_path / "copy"))
    assert publish(copy).published
    assert all(entry.uri.startswith(copy.uri()) for entry in newest_manifest(copy).entries)


def test_a_manifest_can_be_made_for_the_place_a_table_will_be_moved_to(cow):
    cow.commit({"dt=x": {"f-0": rows(1)}})
    publish(cow.storage, served_at="file:/elsewhere")
    assert [entry.uri.rsplit("/", 1)[0] for entry in newest_manifest(cow.storage).entries] == [
        "file:/elsewhere/dt=x"
    ]
    assert len(live_manifest_files(cow.storage)) == 1


def test_manifests_that_spark_cannot_read_together_are_healed(cow):
    cow.commit({"dt=x": {"f-0": rows(1)}})
    publish(cow.storage)
    folder = ManifestFolder(cow.storage, Layout.HIVE)
    folder.create(39, cow.storage.read(".hoodie/spark_catalog/hive/_spark_metadata/9.compact"))
    assert not current(cow)
    publish(cow.storage)
    assert current(cow)
    assert folder.numbers() == [39, 49]


@pytest.mark.parametrize("body", [b"", b"v1\n{truncated"])
def test_a_damaged_manifest_is_replaced(cow, body):
    cow.commit({"dt=x": {"f-0": rows(1)}})
    publish(cow.storage)
    cow.storage.replace(".hoodie/spark_catalog/hive/_spark_metadata/9.compact", body)
    assert publish(cow.storage).number == 19
    assert len(live_manifest_files(cow.storage)) == 1


def test_manifests_removed_by_somebody_are_published_again(cow):
    cow.commit({"dt=x": {"f-0": rows(1)}})
    publish(cow.storage)
    cow.storage.delete_tree(".hoodie/spark_catalog/hive")
    assert publish(cow.storage).published
    assert len(live_manifest_files(cow.storage)) == 1


def test_a_slow_publisher_never_hides_a_newer_commit(cow):
    """The slow one looked at the table before the second commit, and comes back after its publication."""
    cow.commit({"dt=x": {"f-0": rows(1)}})
    publish(cow.storage)
    cow.commit({"dt=x": {"f-0": rows(1, v="b")}})

    class Slow(FaultInjectingStorage):
        def create(self, path, data):
            if not self.calls:
                newest.append(cow.commit({"dt=x": {"f-0": rows(1, v="c")}}))
                publish(cow.storage)
            super().create(path, data)

    newest: list[str] = []
    publish(Slow(cow.storage))
    assert files(cow) == [f"dt=x/f-0@{newest[0]}"]


def test_publishers_at_the_same_time_end_with_the_newest_commit(cow):
    cow.commit({"dt=x": {"f-0": rows(1)}})
    publish(cow.storage)
    newest = cow.commit({"dt=x": {"f-0": rows(1, v="b")}})
    threads = [threading.Thread(target=publish, args=(cow.storage,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert current(cow)
    assert files(cow) == [f"dt=x/f-0@{newest}"]
    assert ManifestFolder(cow.storage, Layout.HIVE).numbers() == [9, 19]


def shape(paths):
    """Paths without the random number in the names of sidecars."""
    return {re.sub(r"_\d+-0-1_(\d+)\.delta", r"_\1.delta", path) for path in paths}


@pytest.mark.parametrize("when", ["before", "torn", "after"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_killed_at_any_mutating_call_readers_see_a_whole_commit_and_the_next_publisher_finishes(
    kind, when, request, tmp_path
):
    table = request.getfixturevalue(kind)
    if kind == "cow":
        for value in "ab":
            table.commit({"dt=x": {"f-0": rows(1, v=value)}})
            publish(table.storage)
        table.commit({"dt=x": {"f-0": rows(1, v="c")}})
    else:
        for _ in range(3):
            publish(table.storage)
            log_update(table, 2)
    whole = open_storage(str(shutil.copytree(table.path, tmp_path / "whole")))
    watched = FaultInjectingStorage(whole)
    publish(watched, served_at=table.storage.uri())
    before, after = shape(live_manifest_files(table.storage)), shape(live_manifest_files(whole))
    assert {method for method, _ in watched.calls} >= {"create", "delete"}
    for number in range(1, len(watched.calls) + 1):
        storage = open_storage(str(shutil.copytree(table.path, tmp_path / f"{when}-{number}")))
        plan = FaultPlan(number, when, crash=raise_crash)
        with suppress(SimulatedCrash):
            publish(FaultInjectingStorage(storage, plan), served_at=table.storage.uri())
        seen = live_manifest_files(storage)
        assert shape(seen) in (before, after)
        assert all(storage.exists(path) for path in seen)
        publish(storage, served_at=table.storage.uri())
        assert shape(live_manifest_files(storage)) == after
        assert is_healthy(ManifestFolder(storage, Layout.HIVE).numbers())


def test_partition_columns_that_are_neither_in_files_nor_in_folders_are_refused(tmp_path):
    dropped = {
        "hoodie.datasource.write.drop.partition.columns": "true",
        "hoodie.datasource.write.hive_style_partitioning": "false",
    }
    table = HandmadeTable(tmp_path / "t", SCHEMA, ("dt",), properties=dropped)
    table.commit({"x": {"f-0": rows(1)}})
    with pytest.raises(UnsupportedTableError, match=r"drop\.partition\.columns"):
        publish(table.storage)


def test_base_files_that_spark_cannot_read_are_listed_as_copies_made_once(cow, tmp_path):
    cow.commit({"dt=x": {"f-0": rows(1), "g-0": rows(2)}})
    place = open_storage(str(tmp_path / "cache"))
    made = []

    def run(tasks):
        made.extend(task.path.rpartition("/")[2].partition("_")[0] for task in tasks)
        return make_in_threads(tasks)

    def publish_copies():
        options = {"target": place, "run_sidecars": run, "is_readable": lambda _, base: base.file_id != "g-0"}
        published = publish(cow.storage, **options)
        return published.layout, sorted(entry.uri for entry in newest_manifest(place).entries)

    layout, (copy, plain) = publish_copies()
    assert layout is Layout.FLAT
    assert copy.startswith(place.uri("converted-2")) and plain.startswith(cow.storage.uri("dt=x/f-0"))
    content = pq.read_table(copy.removeprefix("file:"), partitioning=None)
    assert content.to_pylist() == rows(2).to_pylist()
    cow.commit({"dt=x": {"f-0": rows(1, v="b")}})
    assert publish_copies()[1][0] == copy
    assert made == ["g-0"]
    cow.schema = SCHEMA.append(pa.field("n", pa.int32()))
    cow.commit({"dt=y": {"h-0": rows(3, dt="y").append_column("n", pa.array([3], pa.int32()))}})
    assert copy not in publish_copies()[1]
    assert made == ["g-0", "g-0"]


def test_what_no_manifest_of_a_cache_lists_is_swept_when_it_is_old(mor, tmp_path):
    place = open_storage(str(tmp_path / "cache"))
    for number in range(4):
        log_update(mor, 1 + number % 2)
        publish(mor.storage, target=place)
    sidecars = {status.path for status in place.list("dt=x")}
    assert len(sidecars) == 4
    assert sweep_cache(place) == 0
    assert sweep_cache(place, keep_ms=-1000) == 2
    assert {place.uri(status.path) for status in place.list("dt=x")} <= listed_uris(place)


def test_lines_of_partitions_that_were_left_alone_are_taken_over_unread(cow):
    cow.commit({"dt=x": {"f-0": rows(1)}, "dt=y": {"g-0": rows(2, dt="y")}})
    publish(cow.storage)
    path = ".hoodie/spark_catalog/hive/_spark_metadata/9.compact"
    marked = cow.storage.read(path).replace(b'"blockReplication": 1', b'"blockReplication": 3')
    cow.storage.replace(path, marked)
    cow.commit({"dt=x": {"f-0": rows(1, v="b")}})
    publish(cow.storage)
    fresh, kept = newest_manifest(cow.storage).lines
    assert b'"blockReplication": 1' in fresh and b'"blockReplication": 3' in kept
    cow.storage.replace(
        path.replace("/9.", "/19."), b"v1\n" + b"\n".join([marked.split(b"\n")[1], fresh, kept[:-9] + b"?}"])
    )
    cow.commit({"dt=y": {"g-0": rows(2, dt="y", v="b")}})
    publish(cow.storage)
    assert len(newest_manifest(cow.storage).entries) == 2


def test_asking_for_one_live_file_and_listing_them_all_agree(cow):
    cow.commit({"dt=x": {"f-0": rows(1), "g-0": rows(2)}, "dt=a b": {"h-0": rows(3, dt="a b")}})
    publish(cow.storage)
    live = live_manifest_files(cow.storage)
    assert len(live) == 3 and all(path in live for path in live)
    assert all(other not in live for path in live for other in (path[:-1], path + "x", "dt=x", ""))
    assert isinstance(live & {"dt=x/none"}, set)


def test_labels_of_slices_stay_unique_when_partitions_are_listed_anew(mor):
    log_update(mor, 2)
    publish(mor.storage)
    for number in range(3):
        mor.commit({"dt=x": {f"n{number}-0": rows(10 + number)}})
        publish(mor.storage)
        labels = [
            entry.modified_ms % (1 << 40)
            for entry in newest_manifest(mor.storage).entries
            if not entry.is_delta
        ]
        assert sorted(labels) == list(range(1, len(labels) + 1))
    (delta,) = [entry for entry in newest_manifest(mor.storage).entries if entry.is_delta]
    (base,) = [
        entry for entry in newest_manifest(mor.storage).entries if "f-0_" in entry.uri and not entry.is_delta
    ]
    assert base.modified_ms - (1 << 40) == delta.modified_ms - (1 << 41)


def test_the_stamp_says_whether_every_base_file_has_the_types_of_the_schema(cow):
    cow.commit({"dt=x": {"f-0": rows(1)}})
    publish(cow.storage)
    assert newest_manifest(cow.storage).stamp.native
    cow.schema = SCHEMA.set(0, pa.field("id", pa.string()))
    wide = rows(2, dt="y").set_column(0, "id", pa.array(["2"]))
    cow.commit({"dt=y": {"g-0": wide}})
    publish(cow.storage)
    assert not newest_manifest(cow.storage).stamp.native
    cow.commit({"dt=x": {"f-0": wide.set_column(1, "dt", pa.array(["x"]))}})
    publish(cow.storage)
    assert not newest_manifest(cow.storage).stamp.native, (
        "what another partition holds was not looked at again"
    )


@pytest.mark.parametrize("elsewhere", ["copied", "mor2"])
def test_a_table_that_was_copied_lists_its_own_files_and_lives_without_the_first(mor, tmp_path, elsewhere):
    log_update(mor, 1, 2)
    publish(mor.storage)
    copied = open_storage(str(shutil.copytree(mor.path, tmp_path / elsewhere)))
    assert publish(copied).published
    listed = set(newest_manifest(copied).uris())
    assert len(listed) == 3
    assert {uri.rpartition("/dt=")[0] for uri in listed} == {copied.uri()}
    shutil.rmtree(mor.path)
    assert all(copied.stat(uri.removeprefix(f"{copied.uri()}/")) is not None for uri in listed)


def test_a_cache_that_was_moved_lists_its_own_files(mor, tmp_path):
    log_update(mor, 1, 2)
    publish(mor.storage, target=open_storage(str(tmp_path / "cache")))
    place = open_storage(str((tmp_path / "cache").rename(tmp_path / "cache2")))
    assert publish(mor.storage, target=place).published
    assert {uri.rpartition("/dt=")[0] for uri in newest_manifest(place).uris()} == {
        place.uri(),
        mor.storage.uri(),
    }
    assert not publish(mor.storage, target=place).published
