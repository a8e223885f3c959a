"""The shell's loop, with dbt commands that need no Spark: a failure does not end it, changes between commands are taken up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.runtime import runtime_folder

PROFILE = (
    "shop: {target: dev, outputs: {dev: {type: hudi, schema: \"{{ env_var('SCHEMA', 'analytics') }}\"}}}\n"
)
FILES = {
    "dbt_project.yml": "name: shop\nprofile: shop\nflags: {send_anonymous_usage_stats: false}\n",
    "profiles.yml": PROFILE,
    "models/orders.sql": "select {{ env_var('COUNT', '1') }} as n",
    "models/lines.sql": "select * from {{ ref('orders') }}",
}
LINES = """
# what was typed
compile -s orders
dbt compile -s lines
run --nonsense
nonsense#1 # the end
set COUNT=7 'SCHEMA=other'
compile -s orders
compile -s lines
unset COUNT
compile -s orders
set COUNT='without an end
set 7
restart
show --inline 'select 1 # one'
run --selct orders
complie -s orders
exit now
exit
compile -s never_reached
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], int]:
    """What the shell says to each line, and its exit code; there is no Java that it could start."""
    project = tmp_path_factory.mktemp("shop")
    for name, text in FILES.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)
    with runtime_folder() as runtime:
        done = subprocess.run(
            [sys.executable, "-m", "dbt.adapters.hudi.shell", "shell", "--no-use-colors"],
            cwd=project,
            input=LINES,
            env={**os.environ, "JAVA_HOME": str(project / "no-java"), "XDG_RUNTIME_DIR": str(runtime)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
    return done.stdout.split("dbt-hudi> ")[1:], done.returncode


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "select 1 as n"),
        (0, "-- done: compile -s orders ("),
        (1, "select * from analytics.orders"),
        (2, "No such option"),
        (2, "-- failed: run --nonsense ("),
        (3, "No such command 'nonsense#1'"),
        (4, "set COUNT=***\n"),
        (5, "select 7 as n"),
        (6, "select * from other.orders"),
        (8, "select 1 as n"),
        (9, "'set COUNT=***' is no command: No closing quotation"),
        (10, "write set NAME=VALUE"),
        (11, "no Spark is idle"),
        (12, "-- failed: show --inline 'select 1 # one' ("),
        (13, "No such option"),
        (14, "No such command 'complie'"),
        (15, "exit takes no words; now was not run"),
    ],
)
def test_each_line_is_answered(session: tuple[list[str], int], number: int, said: str) -> None:
    answers, _ = session
    assert said in answers[number], answers


@pytest.mark.parametrize(
    ("number", "said"), [(2, "No such option"), (3, "No such command"), (12, "no-java/bin/java is not there")]
)
def test_an_error_is_said_once(session: tuple[list[str], int], number: int, said: str) -> None:
    answers, _ = session
    assert answers[number].count(said) == 1, answers[number]


def test_it_ends_at_exit_and_tells_that_something_failed(session: tuple[list[str], int]) -> None:
    answers, code = session
    assert len(answers) == 17 and answers[-1] == "exit\n"
    assert code == 1


def test_it_shows_what_the_terminal_cannot_as_an_escape(tmp_path: Path) -> None:
    for name, text in {**FILES, "models/orders.sql": "select '日本' as n"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    with runtime_folder() as runtime:
        done = subprocess.run(
            [sys.executable, "-m", "dbt.adapters.hudi.shell", "shell", "--no-use-colors"],
            cwd=tmp_path,
            input="compile -s orders\n",
            env={**os.environ, "PYTHONIOENCODING": "latin-1", "XDG_RUNTIME_DIR": str(runtime)},
            capture_output=True,
            encoding="latin-1",
            timeout=600,
            check=True,
        )
    assert r"select '\u65e5\u672c' as n" in done.stdout and "Traceback" not in done.stderr
