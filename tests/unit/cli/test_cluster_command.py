"""`hudi-engine TABLE cluster`, as a shell sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hudi_engine.cli import main
from hudi_engine.format.storage.factory import open_storage

from tests.golden.golden import unpack
from tests.helpers.read_table import read_table


@pytest.fixture
def table(tmp_path: Path) -> str:
    return str(unpack("v6_mor_simple_deletes_h0150", tmp_path))


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def ids(table: str) -> list[object]:
    return sorted(read_table(open_storage(table)).column("id").to_pylist())


def test_cluster_rewrites_what_its_dry_run_lists(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    before, files = ids(table), sorted(Path(table).rglob("*"))
    looked = answer(capsys, table, "cluster", "--by", "price,name", "--strategy", "hilbert", "--dry-run")
    assert (looked["instant"], looked["state"]) == (None, "none") and int(str(looked["file_groups"])) > 0
    assert sorted(Path(table).rglob("*")) == files
    done = answer(capsys, table, "cluster", "--by", "price,name", "--strategy", "hilbert")
    assert (done["state"], done["file_groups"], done["rows"]) == (
        "completed",
        looked["file_groups"],
        len(before),
    )
    assert ids(table) == before
    assert main([table, "clusterings", "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert (shown["instant"], shown["state"]) == (done["instant"], "COMPLETED")


def test_a_plan_is_made_and_run_apart(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    planned = answer(capsys, table, "cluster", "--schedule", "--by", "name")
    assert planned["state"] == "scheduled"
    done = answer(capsys, table, "cluster", "--execute")
    assert (done["instant"], done["state"]) == (planned["instant"], "completed")
    assert main([table, "cluster", "--execute"]) == 0
    assert "no clustering is planned" in capsys.readouterr().out


def test_illegal_arguments_are_refused(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["--by", "nothing"], "names 'nothing'"),
        (["--strategy", "spiral"], "legal values: linear, z-order, hilbert"),
        (["--partitions", "nowhere=1"], "partition(s) ['nowhere=1'] hold no rows in table"),
        (["--where", "day > 'a'"], "which needs Spark"),
        (["20200101000000000", "--schedule"], "leave the instant out"),
    ):
        assert main([table, "cluster", *words]) != 0
        assert said in capsys.readouterr().err

    with pytest.raises(SystemExit):
        main([table, "cluster", "--schedule", "--execute"])
    assert "--execute: not allowed with argument --schedule" in capsys.readouterr().err


def test_large_group_without_pyspark_is_an_error(
    table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    assert main([table, "cluster", "-o", "hoodie.engine.clustering.task.bytes=0"]) != 0
    assert "PySpark is not installed" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["20200101000000000"], ["--execute"]])
def test_a_dry_run_is_of_a_new_plan(table: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([table, "cluster", *words, "--dry-run"]) == 2
    assert "what a new plan would take" in capsys.readouterr().err
