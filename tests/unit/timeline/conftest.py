"""A table folder with nothing but settings, in either timeline layout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.active import Timeline

LAYOUTS = {6: "1", 8: "2", 9: "2"}


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


@pytest.fixture
def config_of() -> Callable[..., TableConfig]:
    """Settings of a table of a given version, with more properties if wanted."""

    def make(version: int = 6, **more: str) -> TableConfig:
        base = {
            "hoodie.table.name": "t",
            "hoodie.table.type": "MERGE_ON_READ",
            "hoodie.table.version": str(version),
            "hoodie.timeline.layout.version": LAYOUTS[version],
        }
        return TableConfig.from_properties(base | more)

    return make


@pytest.fixture
def timeline_of(storage: LocalStorage, config_of: Callable[..., TableConfig]) -> Callable[..., Timeline]:
    """A timeline with the given files: names, or names with bodies."""

    def make(files: list[str] | dict[str, bytes], version: int = 6, **more: str) -> Timeline:
        config = config_of(version, **more)
        for name in files:
            body = files[name] if isinstance(files, dict) else b""
            storage.create(f"{config.timeline_path}/{name}", body)
        return Timeline.load(storage, config)

    return make
