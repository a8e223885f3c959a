"""What a model's own table is before its query reads it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hudi_engine.spark.sql.own_rows import with_state_read


def test_a_name_whose_folder_is_gone_leaves_it_to_the_build_to_make_it(tmp_path: Path) -> None:
    base = str(tmp_path / "orders")
    warehouse: Any = SimpleNamespace(hudi_base=lambda *_: base)
    plan: Any = SimpleNamespace(schema="s", name="orders", base=base)
    session: Any = SimpleNamespace()
    rows: Any = object()

    found = with_state_read(warehouse, session, plan, "select * from s.raw_orders", lambda: rows)
    assert found == (rows, None)
