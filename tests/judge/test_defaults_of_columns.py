"""Log records older than columns with defaults: our engine gives the defaults where Apache Hudi 0.15 gives them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.storage.factory import open_storage

from tests.helpers.read_table import read_table
from tests.judge.arrow_rows import rows_of_arrow
from tests.judge.readers import Judges
from tests.judge.rows import difference

OPTIONS = {
    "hoodie.table.name": "judged",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.compact.inline": "false",
}
OLD_PART = pa.struct({"x": pa.int32()})
PART = pa.struct({"x": pa.int32(), "y": pa.int32()})
KEYS: list[tuple[str, pa.DataType]] = [("id", pa.string()), ("ts", pa.int64())]
OLD = pa.schema([*KEYS, ("part", OLD_PART), ("parts", pa.list_(OLD_PART))])
YOUNGER: dict[str, pa.DataType] = {
    "text": pa.string(),
    "whole": pa.struct({"q": pa.int32()}),
    "raw": pa.binary(),
}
NEW = pa.schema([*KEYS, ("part", PART), ("parts", pa.list_(PART)), *YOUNGER.items()])
DEFAULTS: dict[str, Any] = {"text": "x", "raw": "\u00ff"}
NESTED: dict[str, Any] = {"y": 5}


def with_defaults(schema: Any, defaults: dict[str, Any]) -> Any:
    """An Avro schema in which columns have defaults, as a user's own schema may."""
    if isinstance(schema, list):
        return [with_defaults(each, defaults) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {
        key: with_defaults(value, defaults) if key in ("type", "items", "fields") else value
        for key, value in schema.items()
    }
    if made.get("name") in defaults and "default" in made:
        made["type"] = [*(each for each in made["type"] if each != "null"), "null"]
        made["default"] = defaults[made["name"]]
    return made


def give_defaults(path: Path, defaults: dict[str, Any]) -> None:
    """Put the defaults into the newest commit, where writers that keep a schema of the user's own put them."""
    commit = sorted(path.glob(".hoodie/*.deltacommit"))[-1]
    metadata = json.loads(commit.read_text())
    extra = metadata["extraMetadata"]
    extra["schema"] = json.dumps(with_defaults(json.loads(extra["schema"]), defaults))
    commit.write_text(json.dumps(metadata))
    commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize("block_format", ["avro", "parquet"])
def test_rows_are_those_of_release_0(block_format: str, tmp_path: Path, apache_hudi: Judges) -> None:
    hudi, path = apache_hudi("0.15.0"), tmp_path / "t"
    said = {**OPTIONS, "hoodie.logfile.data.block.format": block_format}
    old = [{"id": key, "ts": 1, "part": {"x": 1}, "parts": [{"x": 1}]} for key in "abc"]
    hudi.write(path, pa.Table.from_pylist(old, OLD), said, operation="insert", mode="overwrite")
    hudi.upsert(path, pa.Table.from_pylist([{**row, "ts": 2} for row in old[:2]], OLD), said)
    hudi.upsert(path, pa.Table.from_pylist([{"id": "b", "ts": 3, "part": {"x": 3, "y": 3}}], NEW), said)
    give_defaults(path, DEFAULTS)

    theirs = hudi.read(path)
    assert difference(rows_of_arrow(read_table(open_storage(str(path)))), theirs) == ""
    shown = {row["id"]: (row["text"], row["whole"], row["part"]["y"]) for row in theirs}
    filled = ("x", None, None) if block_format == "avro" else (None, None, None)
    assert shown == {"a": filled, "b": (None, None, 3), "c": (None, None, None)}
    if block_format == "avro":
        give_defaults(path, NESTED)
        with pytest.raises(UnsupportedTableError, match="defaults of fields inside it.*Compact the table"):
            read_table(open_storage(str(path)))
