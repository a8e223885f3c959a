"""What several rooms of unit tests share."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["few texts", "all texts"])
def coded_texts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which columns of text are read by number: those of few values, or all that the file has so."""
    if request.param == "all texts":
        monkeypatch.setattr("hudi_engine.format.merge.base_reader._NUMBER_BYTES", 2**40)


@pytest.fixture(params=["encoded", "carried"])
def carried_columns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens to columns that stay as they are: small files are written anew, or column chunks carried as from large ones."""
    if request.param == "carried":
        monkeypatch.setattr("hudi_engine.table.handles.carried._MIN_BYTES", 0)
        monkeypatch.setattr("hudi_engine.table.handles.carried._MIN_CHUNK_BYTES", 0)
        monkeypatch.setattr("hudi_engine.table.handles.carried._are_as_wanted", lambda groups, options: True)
