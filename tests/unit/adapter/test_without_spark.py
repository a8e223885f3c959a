"""Commands that only look start no Java: here there is none that they could start."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.golden.golden import TABLES, unpack

COW, MOR, ELSEWHERE = (
    "v6_cow_nonpartitioned_upsert_h0150",
    "v6_mor_simple_compaction_h0150",
    "v9_cow_nonpartitioned_upsert_h120",
)
FILES = {
    "dbt_project.yml": "name: shop\nprofile: shop\nflags: {send_anonymous_usage_stats: false}\n",
    "profiles.yml": "shop:\n  target: dev\n  outputs:\n    dev: {type: hudi, schema: analytics}\n",
    "models/sources.yml": """
sources:
  - name: landed
    tables:
      - name: events
        external: {location: landing/events, using: parquet}
        freshness: {warn_after: {count: 1, period: day}}
      - name: elsewhere
        external: {location: outside}
        freshness: {warn_after: {count: 1, period: day}}
  - name: inside
    schema: analytics
    tables:
      - name: kept
        freshness: {warn_after: {count: 1, period: day}}
""",
    "models/orders.sql": "{{ config(materialized='incremental') }} select 1 as a {{ 'more' if is_incremental() else 'first' }}",
    "models/later.sql": "{{ config(materialized='incremental') }} select 1 as a {{ 'more' if is_incremental() else 'first' }}",
    "macros/names.sql": """
{% macro names() %}
  {% for name in ['orders', 'kept', 'kept_ro', 'seen', 'unbuilt', 'nowhere'] %}
    {%- set found = adapter.get_relation(none, 'analytics', name) -%}
    {% do log(name ~ ' is ' ~ (found.type if found is not none else 'unknown'), info=true) %}
  {% endfor %}
{% endmacro %}
""",
}
RUN = """
import json, sys
from dbt.cli.main import dbtRunner
for words in json.loads(sys.argv[1]):
    print("##", words, flush=True)
    print("#=", dbtRunner().invoke(words).success, flush=True)
"""
COMMANDS = {
    "ls": ["ls"],
    "compile": ["compile"],
    "freshness": ["source", "freshness"],
    "names": ["run-operation", "names"],
    **{
        name: ["run-operation", f"hudi_{name}", "--args", "{table: kept}"]
        for name in ("show_timeline", "show_commits", "stats", "savepoints", "show_files", "validate")
    },
    "savepoint": ["run-operation", "hudi_savepoint", "--args", "{table: kept}"],
    "would clean": ["run-operation", "hudi_clean", "--args", "{table: kept, dry_run: true}"],
    "capitals": ["run-operation", "hudi_stats", "--args", "{table: Kept_RO}"],
    "unknown": ["run-operation", "hudi_stats", "--args", "{table: keptt}"],
    "misspelt": ["run-operation", "hudi_stats", "--args", "{tabel: kept}"],
    "argument": ["run-operation", "hudi_restore", "--args", "{table: kept, dry_run: true}"],
    "flag": ["run-operation", "hudi_repair", "--args", "{table: kept, dry_run: nein}"],
    "flag as text": ["run-operation", "hudi_clean", "--args", "{table: kept, dry_run: 'true'}"],
    "partition": [
        *("run-operation", "hudi_delete_partitions", "--args"),
        "{table: kept, partitions: [nowhere=1], dry_run: true}",
    ],
    "run": ["run"],
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, bool]]:
    """What each command said, and whether it was a success; all in one process that cannot find a Java."""
    project = tmp_path_factory.mktemp("shop")
    for name, text in FILES.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)
    schema = project / "warehouse" / "analytics"
    for golden, name in ((COW, "orders"), (MOR, "kept")):
        unpack(golden, schema).rename(schema / name)
    unpack(ELSEWHERE, project).rename(project / "outside")
    (schema / "unbuilt" / ".hoodie").mkdir(parents=True)
    (schema / "seen.view.json").write_text(json.dumps({"format": 1, "sql": "select 1 as a"}))
    (project / "landing" / "events").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), project / "landing" / "events" / "1.parquet")
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(list(COMMANDS.values()))],
        cwd=project,
        env={**os.environ, "JAVA_HOME": str(project / "no-java"), "NO_COLOR": "1", "DBT_USE_COLORS": "false"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    blocks = done.stdout.split("## ")[1:]
    assert len(blocks) == len(COMMANDS), done.stdout + done.stderr
    answers = {name: (text, "#= True" in text) for name, text in zip(COMMANDS, blocks)}
    for result in json.loads((project / "target" / "sources.json").read_text())["results"]:
        answers[result["unique_id"]] = (result["max_loaded_at"], True)
    for model in ("orders", "later"):
        compiled = project / "target" / "compiled" / "shop" / "models" / f"{model}.sql"
        answers[f"compiled {model}"] = (compiled.read_text(), True)
    return answers


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("ls", "shop.orders"),
        ("freshness", "PASS freshness of landed.events"),
        ("freshness", "freshness of landed.elsewhere"),
        ("freshness", "freshness of inside.kept"),
        ("show_timeline", "timeline of kept"),
        ("show_commits", "commits of kept"),
        ("stats", "stats of kept"),
        ("capitals", "stats of Kept_RO"),
        ("savepoints", "savepoints of kept"),
        ("show_files", ".parquet"),
        ("validate", "validate of kept"),
        ("savepoint", "savepoint of kept: instant 2"),
        ("would clean", "files would be deleted"),
        ("flag as text", "files would be deleted"),
        ("names", "orders is table"),
        ("names", "kept is table"),
        ("names", "kept_ro is view"),
        ("names", "seen is view"),
        ("names", "unbuilt is unknown"),
        ("names", "nowhere is unknown"),
    ],
)
def test_a_look_is_answered_from_the_folders(
    said: dict[str, tuple[str, bool]], command: str, line: str
) -> None:
    text, success = said[command]
    assert success and line in text, text


def test_a_model_is_compiled_as_its_table_is(said: dict[str, tuple[str, bool]]) -> None:
    text, success = said["compile"]
    assert success, text
    assert said["compiled orders"][0].endswith("more")
    assert said["compiled later"][0].endswith("first")


@pytest.mark.parametrize(("source", "golden"), [("landed.elsewhere", ELSEWHERE), ("inside.kept", MOR)])
def test_a_tables_freshness_is_its_last_instant(
    said: dict[str, tuple[str, bool]], source: str, golden: str
) -> None:
    with zipfile.ZipFile(TABLES / f"{golden}.zip") as archive:
        names = [Path(name).name for name in archive.namelist() if "/.hoodie/" in name]
    last = max(name[:17] for name in names if re.match(r"\d{17}(_\d{17})?\.\w+$", name))
    told = re.sub(r"\D", "", said[f"source.shop.{source}"][0])
    assert told.startswith(last[:14])


def test_an_unknown_table_is_answered_with_those_there_are(said: dict[str, tuple[str, bool]]) -> None:
    text, success = said["unknown"]
    assert not success
    assert "analytics.keptt is not a Hudi table; Hudi tables of analytics: kept, orders" in text


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (
            "misspelt",
            "hudi_stats has no argument 'tabel'; did you mean 'table'? its arguments: table, count, options",
        ),
        ("argument", "hudi_restore needs instant; its arguments: table, instant, dry_run, options"),
        ("flag", "dry_run is 'nein'; legal values: true, false"),
        ("partition", "partition(s) ['nowhere=1'] hold no rows in table"),
    ],
)
def test_what_an_operation_cannot_do_is_said_by_name(
    said: dict[str, tuple[str, bool]], command: str, line: str
) -> None:
    text, success = said[command]
    assert not success and line in text, text


def test_a_run_needs_java_and_says_so(said: dict[str, tuple[str, bool]]) -> None:
    text, success = said["run"]
    assert not success
    assert "JAVA_HOME is" in text and "install Java 17 or 21" in text
