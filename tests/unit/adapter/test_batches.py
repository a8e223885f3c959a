"""What a run says of the batches between the end of the build before it and its own first one."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.hudi.model.run_notes import BATCH_END, BUILDS, INVOCATION
from dbt.adapters.hudi.rows import builds as batches
from dbt.adapters.hudi.run import ModelRun


def batch(day: int, run: str = "build") -> Any:
    extra = {INVOCATION: run, BUILDS: "true", BATCH_END: f"2026-01-{day:02}T00:00:00+00:00"}
    return SimpleNamespace(is_service=False, extra=extra)


SERVICE = SimpleNamespace(is_service=True, extra={})


def said(monkeypatch: pytest.MonkeyPatch, begin: int, *commits: Any) -> list[str]:
    """Return what a run says that begins with the batch of a day; the newest commit is the first one."""
    warned: list[str] = []
    monkeypatch.setattr(batches.logger, "warning", lambda text, *given: warned.append(text.format(*given)))
    start = datetime(2026, 1, begin, tzinfo=timezone.utc)
    plan: Any = SimpleNamespace(
        base="b", schema="s", name="m", merge=SimpleNamespace(window=SimpleNamespace(start=start))
    )
    table: Any = SimpleNamespace(commits=lambda limit=None: list(commits[:limit]))
    batches.as_later_batch(plan, table, ModelRun())
    return warned


def test_batches_that_threads_committed_out_of_order_end_with_the_greatest_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build = (SERVICE, batch(6), batch(7), *(batch(5) for _ in range(9)), batch(8), batch(20, "earlier"))

    assert said(monkeypatch, 8, *build) == []
    (told,) = said(monkeypatch, 9, *build)
    assert "ended with the batch up to 2026-01-08T00:00:00+00:00" in told
    assert "--event-time-start 2026-01-08T00:00:00 --event-time-end 2026-01-09T00:00:00" in told
