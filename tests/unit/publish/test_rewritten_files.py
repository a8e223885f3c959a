"""Base files that Spark would read wrongly under the table's columns of now are listed as rewritten copies."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.format.storage import open_storage
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.schema_commits import LATEST_SCHEMA
from hudi_engine.table.snapshot import native
from hudi_engine.table.snapshot.manifest import newest_manifest, publish
from hudi_engine.table.snapshot.native import natively_readable

from tests.helpers.handmade import HandmadeTable
from tests.unit.publish.conftest import SCHEMA, log_update, rows


def alter(table, **ids):
    """Commit other columns as Hudi's ALTER TABLE with schema on read does; gives their ids."""
    instant = table.next_instant()
    folder = table.path / ".hoodie" / ".schema"
    folder.mkdir(exist_ok=True)
    known = max(folder.iterdir(), default=None)
    before = (
        [_version(0, id=0, dt=1, v=2)] if known is None else json.loads(known.read_text("utf-8"))["schemas"]
    )
    versions = [_version(instant, **ids), *before]
    (folder / f"{instant}.schemacommit").write_text(json.dumps({"schemas": versions}), "utf-8")
    table.schema = pa.schema([(name, pa.int64() if name == "id" else pa.string()) for name in ids])
    told = {"schema": table.avro_text(), LATEST_SCHEMA: json.dumps(versions[0])}
    action = "deltacommit" if table.merge_on_read else "commit"
    body = CommitMetadata(extra_metadata=told, operation_type="ALTER_SCHEMA").to_json()
    table.storage.create(f".hoodie/{instant}.{action}", body)


def _version(instant, **ids):
    fields = [
        {"id": number, "name": name, "optional": True, "type": "long" if name == "id" else "string"}
        for name, number in ids.items()
    ]
    return {"max_column_id": 9, "version_id": int(instant), "type": "record", "fields": fields}


def shown(table, name, place=None):
    """What Spark reads of a column by its name, from the files that are listed."""
    publish(table.storage, target=place)
    found = []
    for uri in newest_manifest(place or table.storage).uris():
        content = pq.read_table(uri.removeprefix("file:"), partitioning=None)
        found += content[name].to_pylist() if name in content.column_names else [None] * len(content)
    return sorted(found, key=str)


def test_a_renamed_column_keeps_its_values_in_files_from_before(cow):
    cow.commit({"dt=x": {"f-0": rows(1)}, "dt=y": {"g-0": rows(2, dt="y", v="b")}})
    publish(cow.storage)
    alter(cow, id=0, dt=1, title=2)
    assert shown(cow, "title") == ["a", "b"]
    cow.commit({"dt=x": {"f-0": rows(1, v="c").rename_columns(["id", "dt", "title"])}})
    assert shown(cow, "title") == ["b", "c"]
    copied = [each.uri for each in newest_manifest(cow.storage).entries if each.origin is not None]
    assert len(copied) == 1, "what was written since the renaming is listed as it is"


def test_a_renamed_column_keeps_its_values_beside_logs(mor):
    log_update(mor, 1)
    alter(mor, id=0, dt=1, title=2)
    mask = None
    assert shown(mor, "title") == [mask, "a", "a", "a", "a", "log"]


def test_a_new_column_does_not_show_what_a_dropped_one_of_its_name_held(cow):
    cow.commit({"dt=x": {"f-0": rows(1)}})
    publish(cow.storage)
    for columns in ({"id": 0, "dt": 1}, {"id": 0, "dt": 1, "v": 3}):
        alter(cow, **columns)
    assert cow.schema == SCHEMA
    assert shown(cow, "v") == [None]
    assert not publish(cow.storage).published


def test_files_from_before_columns_were_added_dropped_or_moved_are_listed_as_they_are(cow):
    cow.commit({"dt=x": {"f-0": rows(1)}})
    publish(cow.storage)
    for columns in (
        {"id": 0, "dt": 1, "v": 2, "w": 3},
        {"v": 2, "id": 0, "dt": 1, "w": 3},
        {"v": 2, "id": 0, "dt": 1},
    ):
        alter(cow, **columns)
        assert shown(cow, "v") == ["a"]
        assert not [each for each in newest_manifest(cow.storage).entries if each.origin is not None]


def test_a_list_outside_of_the_table_has_copies_of_widened_columns_too(cow, tmp_path):
    cow.commit({"dt=x": {"f-0": rows(1)}, "dt=y": {"g-0": rows(2, dt="y")}})
    place = open_storage(str(tmp_path / "beside"))
    assert shown(cow, "id", place) == [1, 2]
    cow.schema = SCHEMA.set(0, pa.field("id", pa.string()))
    wide = rows(1).set_column(0, "id", pa.array(["1"]))
    cow.commit({"dt=x": {"f-0": wide}})
    assert shown(cow, "id", place) == ["1", "2"]


SMALL, LARGE = (pa.struct([(name, pa.int32()) for name in names]) for names in (["a"], ["a", "b"]))
IN = {
    "struct": lambda kind: kind,
    "field": lambda kind: pa.struct([("inner", kind), ("c", pa.int32())]),
    "list": lambda kind: pa.list_(pa.field("element", kind)),
    "map": lambda kind: pa.map_(pa.string(), kind),
}


@pytest.mark.parametrize("place", IN)
@pytest.mark.parametrize(
    ("release", "reads"), [((3, 5), False), ((4, 0), False), ((4, 1), True), ((4, 10), True)]
)
def test_a_struct_that_got_a_field_is_rewritten_for_spark_before_4_1(
    tmp_path, monkeypatch, place, release, reads
):
    stored, wanted = (pa.schema([("id", pa.int64()), ("s", IN[place](kind))]) for kind in (SMALL, LARGE))
    table = HandmadeTable(tmp_path / "t", stored)
    table.commit({"": {"f-0": stored.empty_table()}})
    (path,) = (each.name for each in table.path.glob("*.parquet"))
    for columns, found in ((stored, True), (wanted, reads)):
        assert natively_readable(table.storage, table.config, [path], columns, spark=release) == found
    table.schema = wanted
    table.commit({"": {"g-0": wanted.empty_table()}})
    monkeypatch.setattr(native, "_installed_spark", lambda: release)
    publish(table.storage)
    copied = [each.uri for each in newest_manifest(table.storage).entries if each.origin is not None]
    assert len(copied) == (0 if reads else 1)


def test_a_stored_field_that_the_table_does_not_have_is_no_reason_to_rewrite(tmp_path):
    stored, wanted = (pa.schema([("id", pa.int64()), ("s", kind)]) for kind in (LARGE, SMALL))
    table = HandmadeTable(tmp_path / "t", stored)
    table.commit({"": {"f-0": stored.empty_table()}})
    (path,) = (each.name for each in table.path.glob("*.parquet"))
    assert natively_readable(table.storage, table.config, [path], wanted, spark=(3, 5))


def published_by_an_earlier_release(table, patch):
    """Publish as a release did that took no look at structs and did not say by what rules it went."""
    with patch.context() as earlier:
        earlier.setattr(native, "_FILLS_STRUCTS", (0, 0))
        publish(table.storage)
    manifest = newest_manifest(table.storage)
    assert manifest.stamp.native and not copies(table)
    (path,) = table.path.glob(f".hoodie/spark_catalog/*/_spark_metadata/{manifest.number}.compact")
    version, head, *files = path.read_bytes().split(b"\n")
    said = json.loads(head)
    said["hudiSnapshot"].pop("rules", None)
    path.write_bytes(b"\n".join([version, json.dumps(said).encode(), *files]))


def copies(table):
    return [each.uri for each in newest_manifest(table.storage).entries if each.origin is not None]


@pytest.mark.parametrize("writes_on", [False, True])
@pytest.mark.parametrize("merge_on_read", [False, True])
def test_a_list_from_before_structs_were_looked_at_is_made_anew_once(
    tmp_path, monkeypatch, merge_on_read, writes_on
):
    monkeypatch.setattr(native, "_installed_spark", lambda: (3, 5))
    stored, wanted = (
        pa.schema([("id", pa.int64()), ("dt", pa.string()), ("s", kind)]) for kind in (SMALL, LARGE)
    )
    table = HandmadeTable(tmp_path / "t", stored, ("dt",), merge_on_read=merge_on_read)
    table.commit({"dt=x": {"f-0": stored.empty_table()}})
    table.schema = wanted
    table.commit({"dt=y": {"g-0": wanted.empty_table()}})
    published_by_an_earlier_release(table, monkeypatch)
    if writes_on:
        table.commit({"dt=y": {"h-0": wanted.empty_table()}})
    assert publish(table.storage).published
    assert len(copies(table)) == 1 and not newest_manifest(table.storage).stamp.native
    assert not publish(table.storage).published
