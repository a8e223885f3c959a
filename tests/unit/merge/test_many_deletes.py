"""More deletes in one log block than memory should hold."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine.format.merge.slice_reader import scan_logs
from hudi_engine.format.merge.spill import SpillStore
from slices import SliceBuilder, config, deletes

COUNT = 70_000


def test_a_block_of_many_deletes_is_merged_on_disk_a_part_of_it_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [f"key {n}" for n in range(COUNT)]
    builder = SliceBuilder(tmp_path / "t").add_log(deletes(keys, 2, pa.array(range(COUNT))))
    context = builder.context(config(), memory_limit_bytes=1, spill_dir=str(tmp_path / "spill"))
    parts: list[int] = []
    add = SpillStore.add

    def noted(store: SpillStore, rows: pa.Table, keys: pa.ChunkedArray | None) -> None:
        parts.append(rows.num_rows)
        add(store, rows, keys)

    monkeypatch.setattr(SpillStore, "add", noted)
    found = scan_logs(context, builder.build())

    assert found.total_records == sum(parts) == COUNT and max(parts) <= 65_536
    assert found.winners.keys.to_pylist() == keys and found.winners.deleted.all()
    assert found.winners.rows.column("ts").to_pylist() == list(range(COUNT))
