"""A standalone cluster of real processes: a master, a worker, and executors that were given the engine by the session."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hudi_engine.format.storage.factory import open_storage

from tests.helpers.cluster import environment, running_cluster
from tests.helpers.read_table import read_table

pytestmark = [pytest.mark.slow, pytest.mark.long]

PROGRAM = Path(__file__).with_name("cluster_program.py")
ENGINE = Path(__file__).parents[2] / "engine"


@pytest.fixture
def master(tmp_path):
    with running_cluster(tmp_path) as url:
        yield url


def test_a_table_lives_on_a_cluster_whose_executors_have_no_engine_of_their_own(master, tmp_path):
    tables = tmp_path / "tables"
    tables.mkdir()
    told = subprocess.run(
        [sys.executable, str(PROGRAM), master, str(tables)],
        env=environment(PYTHONPATH=str(ENGINE), PYSPARK_PYTHON=sys.executable),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert told.returncode == 0, told.stderr[-4000:]
    result = json.loads(told.stdout.splitlines()[-1])

    assert (result["updated"], result["compacted"]) == (100, True)
    assert result["counts"] == {"old": 900, "new": 100}
    assert all("hudi_engine.zip" in path for path in result["engines"]), result["engines"]
    assert read_table(open_storage(str(tables / "orders"))).num_rows == 1000
