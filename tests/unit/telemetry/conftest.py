from __future__ import annotations

import logging

import pytest


@pytest.fixture
def warnings():
    """What the engine warns of, whoever else has taken its log over."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())
    log = logging.getLogger("hudi_engine")
    log.addHandler(handler)
    yield said
    log.removeHandler(handler)
