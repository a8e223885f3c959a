"""dbt's adapter suite: the cases that the functional tests do not run, under the same fixtures."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.hooks import test_model_hooks
from dbt.tests.adapter.simple_seed import test_seed

from tests.functional.conftest import *  # noqa: F403


@pytest.fixture(scope="class")
def writes_artifacts() -> bool:
    return True


@pytest.fixture(scope="class")
def test_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The suite's SQL files, in a folder that it may write to."""
    folder = tmp_path_factory.mktemp("suite") / "data"
    shutil.copytree(Path(test_model_hooks.__file__).parent / "data", folder)
    return folder


@pytest.fixture(scope="class")
def suite_files(project_setup: Any) -> Any:
    """The project with the folder of the suite's own files as the place of the test."""
    project_setup.test_dir = Path(test_seed.__file__).parent
    return project_setup
