"""Beeline with Hive's JDBC driver, as they come with Spark: metadata, every type, merges, cancelling."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hudi_engine.server.passwords import Passwords, add_user
from hudi_engine.server.server import HudiServer

from tests.serve.beeline import beeline, beeline_words

TYPES = """
select true b, cast(1 as tinyint) t, cast(2 as smallint) s, 3 i, cast(4 as bigint) l, cast(1.5 as float) f, 2.5D d,
  cast(12.340 as decimal(10, 3)) n, 'täxt' v, cast('x' as binary) y, date '2026-01-02' a,
  timestamp '2026-01-02 03:04:05.678901' m, array(1, null) r, map('k', 1) p, named_struct('f', 1) u,
  interval 1 day w, cast(null as int) z;
"""
VALUES = [
    *("true", "1", "2", "3", "4", "1.5", "2.5", "12.340", "täxt", "x", "2026-01-02"),
    *("2026-01-02 03:04:05.678901", "[1,null]", '{"k":1}', '{"f":1}', "INTERVAL '1' DAY", "NULL"),
]
STORY = """
create schema if not exists bee;
create or replace table bee.orders using hudi tblproperties (primaryKey = 'id') as select 1 id, 'new' status;
merge into bee.orders t using (select 1 id, 'paid' status union all select 2, 'new') s on t.id = s.id
  when matched then update set * when not matched then insert *;
select id, status from bee.orders order by id;
delete from bee.orders where id = 1;
select count(*) left_over from bee.orders;
"""


def url(server: HudiServer, more: str = "") -> str:
    return f"jdbc:hive2://127.0.0.1:{server.port}/default{more}"


@pytest.mark.parametrize("transport", ["", ";auth=noSasl", ";transportMode=http;httpPath=cliservice"])
def test_statements_return_their_rows(server: HudiServer, tmp_path: Path, transport: str) -> None:
    lines = beeline(url(server, transport), STORY, tmp_path)
    shown = [line for line in lines if "num_affected_rows" not in line]
    assert [["id", "status"], ["1", "paid"], ["2", "new"]] == [line for line in shown if len(line) == 2]
    assert lines[-2:] == [["left_over"], ["1"]]


def test_every_type_is_shown(server: HudiServer, tmp_path: Path) -> None:
    _, values = beeline(url(server), TYPES, tmp_path)
    assert values == VALUES


def test_metadata_calls_are_answered(server: HudiServer, tmp_path: Path) -> None:
    made = "create schema if not exists bee;\ncreate or replace table bee.told using hudi tblproperties (primaryKey = 'id') as select 1 id, 'a' v;\n"
    script = f"{made}create schema if not exists wax;\ncreate or replace table wax.told using hudi as select 1 other;\nuse bee;\n!tables\n!columns told\n!primarykeys told\n!procedures\n"
    lines = beeline(url(server), script, tmp_path)
    tables = [line for line in lines if len(line) == 10 and line[2] == "told"]
    columns = [line for line in lines if len(line) > 10 and line[2] == "told"]
    assert ["bee", "told", "TABLE"] in [line[1:4] for line in tables]
    assert [line[3] for line in columns if line[1] == "bee"] == ["id", "v"]
    assert any(line[2:4] == ["told", "id"] and len(line) == 6 for line in lines)


def test_errors_have_their_sentence(server: HudiServer, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="TABLE_OR_VIEW_NOT_FOUND"):
        beeline(url(server), "select * from nowhere.nothing;\n", tmp_path)


def test_a_password_is_asked_for(start_server, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    users = str(tmp_path / "users")
    add_user(users, "ann", "first-one")
    guarded = start_server(log_in=Passwords.load(users).check)
    words = beeline_words(url(guarded), "-e", "select 'let in'")
    right = subprocess.run(
        [*words, "-p", "first-one"], capture_output=True, text=True, timeout=600, cwd=tmp_path
    )
    assert "let in" in right.stdout, right.stdout + right.stderr
    wrong = subprocess.run(
        [*words, "-p", "other-one"], capture_output=True, text=True, timeout=600, cwd=tmp_path
    )
    assert "let in" not in wrong.stdout


def hear_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # processes in the background are begun without


def until(happens: Callable[[], bool], seconds: int = 600) -> None:
    """Wait for something; the limit is for what hangs, as beeline takes a minute to start on a busy machine."""
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_ctrl_c_cancels_the_statement(server: HudiServer, tmp_path: Path) -> None:
    long = "select count(*) from range(3000000000) a where hash(a.id) = 7 and 'of beeline' <> ''"
    words = beeline_words(url(server), "-e", long)
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=tmp_path, preexec_fn=hear_ctrl_c
    ) as process:
        try:
            until(
                lambda: any("of beeline" in each.text and each.state == 1 for each in server.sessions.running)
            )
            process.send_signal(signal.SIGINT)
            until(lambda: not any("of beeline" in each.text for each in server.sessions.running))
            (ended,) = [each for each in server.sessions.history.last if "of beeline" in each.text]
            assert ended.how == "cancelled"
        finally:
            process.kill()
