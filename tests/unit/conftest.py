"""What several rooms of unit tests share."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["few texts", "all texts"])
def coded_texts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which columns of text are read by number: those of few values, or all that the file has so."""
    if request.param == "all texts":
        monkeypatch.setattr("hudi_engine.merge.base_reader._NUMBER_BYTES", 2**40)
