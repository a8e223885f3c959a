"""`hudi-engine TABLE COMMAND` where the terminal's encoding lacks characters that the table has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import BytesIO, StringIO, TextIOWrapper

import pyarrow as pa
import pytest
from hudi_engine.cli.program import escape_what_is_lacking

from tests.helpers.handmade import HandmadeTable

PARTITION = "d=日本-é-😀"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = HandmadeTable(
        tmp_path_factory.mktemp("made") / "t", pa.schema([("id", pa.int64()), ("d", pa.string())]), ("d",)
    )
    made.commit({PARTITION: {"f-0": pa.table({"id": [1], "d": [PARTITION[2:]]})}})
    return str(made.path)


def shown(table: str, encoding: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "hudi_engine.cli", table, "partitions", *words],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
    return done.stdout.decode(encoding.partition(":")[0])


@pytest.mark.parametrize(
    ("encoding", "seen"),
    [
        ("utf-8", PARTITION),
        ("latin-1", r"d=\u65e5\u672c-é-\U0001f600"),
        ("ascii", r"d=\u65e5\u672c-\xe9-\U0001f600"),
        ("ascii:replace", "d=??-?-?"),
    ],
)
def test_what_the_terminal_cannot_show_is_escaped(table: str, encoding: str, seen: str) -> None:
    assert seen in shown(table, encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii", "ascii:replace"])
def test_json_has_the_same_content_in_every_encoding(table: str, encoding: str) -> None:
    (row,) = json.loads(shown(table, encoding, "--json"))
    assert row["partition"] == PARTITION


def test_stream_with_own_error_rule_is_unchanged() -> None:
    escape_what_is_lacking(StringIO())
    stream = TextIOWrapper(BytesIO(), encoding="ascii", errors="ignore")
    escape_what_is_lacking(stream)
    assert stream.errors == "ignore"
