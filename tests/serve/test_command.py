"""`dbt-hudi serve` as a person starts it."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hudi_engine.server.passwords import Passwords

from dbt.adapters.hudi.serve.command import _warehouse, command_parser, main
from tests.helpers.runtime import runtime_folder


def run_nothing(words: list[str]) -> int:
    raise AssertionError("no command comes")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--host", "0.0.0.0"], "--auth FILE"),
        (["--port", "70000"], "legal values: 0"),
        (["--max-sessions", "0"], "sessions is 0"),
        (["--hold-drops", "-1"], "-1; legal values: seconds from 0"),
        (["--hold-drops", "nan"], "nan; legal values: seconds from 0"),
        (["--hold-drops", "inf"], "inf; legal values: seconds from 0"),
        (["--auth", "nothing"], "--add-user NAME"),
        (["--profile", "shop"], "no dbt_project.yml"),
        (["--warehouse", "w", "--target", "dev"], "leave one of them out"),
        (["--add-user", "ann"], "--auth FILE"),
        (["--end", "--port", "0"], "dbt-hudi serve --end"),
        (["--max-sparks", "0"], "is 0; legal values: 1 or more"),
        (["--only-commands", "--end-after", "nan"], "nan; legal values: seconds from 0"),
        (["--end-after", "60"], "add --only-commands"),
        (["--only-commands", "--profiles-dir", "d"], "leave out --profiles-dir"),
    ],
)
def test_what_cannot_be_served_is_an_error(
    words: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words, run_nothing) == 1
    assert reason in capsys.readouterr().err


def test_users_are_added_by_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "users")
    monkeypatch.setattr("sys.stdin", io.StringIO("a long one\n"))
    assert main(["--add-user", "ann", "--auth", path], run_nothing) == 0
    assert Passwords.load(path).check("ann", "a long one")
    monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))
    assert main(["--add-user", "bob", "--auth", path], run_nothing) == 1


def test_sigterm_while_spark_starts_ends_the_server(tmp_path: Path) -> None:
    program = (
        "import dbt.adapters.hudi.serve.command as c; opened = c.Served.open\n"
        "c.Served.open = lambda served: (print('starting', flush=True), opened(served))[1]\n"
        f"c.main(['--port', '0', '--warehouse', {str(tmp_path)!r}], list)"
    )
    with (
        runtime_folder() as runtime,
        subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        ) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "starting\n"
            process.send_signal(signal.SIGTERM)
            assert process.communicate(timeout=600)[0].endswith("ended\n")
            assert process.returncode == 0
        finally:
            process.kill()


@pytest.mark.parametrize("way", ["beside", "variable", "option"])
def test_in_a_dbt_project_its_own_profile_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    project, profiles = tmp_path / "shop", tmp_path / ("shop" if way == "beside" else "profiles")
    project.mkdir()
    profiles.mkdir(exist_ok=True)
    (project / "dbt_project.yml").write_text("name: shop\nprofile: shop\n")
    (profiles / "profiles.yml").write_text(
        "shop: {target: dev, outputs: {dev: {type: hudi, schema: sales, location_root: tables}}}\n"
    )
    monkeypatch.chdir(project)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    if way == "variable":
        monkeypatch.setenv("DBT_PROFILES_DIR", str(profiles))
    words = ["--profiles-dir", str(profiles)] if way == "option" else []
    warehouse = _warehouse(command_parser().parse_args(words))
    assert warehouse.places.location_root.endswith("tables")
