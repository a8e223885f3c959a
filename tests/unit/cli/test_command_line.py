"""`hudi-engine TABLE COMMAND`, as a shell sees it."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hudi_engine.cli import main
from hudi_engine.cli.program import COMMANDS
from hudi_engine.format.merge import log_records
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.local import LocalStorage

from tests.golden.golden import NAMES, description, unpack
from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.helpers.read_table import read_table
from tests.unit.services.tables import copy_on_write

MERGE_ON_READ = "v6_mor_simple_deletes_h0150"
LOOKS = (
    ["timeline"],
    ["commits"],
    ["files"],
    ["partitions"],
    ["stats"],
    ["validate"],
    ["savepoints"],
    ["compactions"],
)


@pytest.fixture
def table(tmp_path: Path) -> str:
    return str(unpack(MERGE_ON_READ, tmp_path))


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> object:
    code, out, err = run(capsys, *words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def ids(table: str) -> list[object]:
    return sorted(read_table(open_storage(table)).column("_hoodie_record_key").to_pylist())


def listing(folder: str) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("words", LOOKS, ids=lambda words: words[0])
def test_looking_works_on_every_table_and_changes_none(
    name: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(unpack(name, tmp_path))
    before = listing(folder)

    code, text, err = run(capsys, folder, *words)
    assert (code, err) == (0, "")
    assert text.strip()
    answer(capsys, folder, *words)
    assert listing(folder) == before


def test_a_manifest_lists_the_base_files_of_the_newest_state(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(capsys, table, "manifest")
    files = [each["path"] for each in answer(capsys, table, "files") if each["kind"] == "base"]
    path = Path(table) / ".hoodie/absolute-path-manifest/latest-snapshot.csv"
    listed = path.read_text("utf-8").splitlines()
    assert (found["manifest"], found["base_files"]) == (f"file:{path}", len(files)) and files
    assert found["notes"] == ["rows in logs come into it with the next compaction"]
    assert listed == sorted(f"file:{table}/{each}" for each in files)
    assert all(pq.read_metadata(each.removeprefix("file:")).num_rows for each in listed)
    answer(capsys, table, "manifest", "--names")
    names = (Path(table) / ".hoodie/manifest/latest-snapshot.csv").read_text("utf-8").split()
    assert names == sorted(each.rpartition("/")[2] for each in files)
    assert run(capsys, table, "validate", "--deep")[0] == 0


def test_report_writes_a_page_and_changes_nothing(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, output = listing(table), tmp_path / "page.html"

    told = answer(capsys, table, "report", "--output", str(output), "--count")

    assert told == {"report": str(output.resolve()), "bytes": output.stat().st_size}
    assert listing(table) == before
    code, _, error = run(capsys, table, "report", "--output", f"{table}/page.html")
    assert code == 2 and "would lie in the table" in error
    code, _, error = run(capsys, table, "report", "--output", "~nobody-of-that-name/page.html")
    assert code == 2 and "cannot be written to '~nobody-of-that-name" in error


def test_the_timeline_is_shown_newest_first(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = answer(capsys, table, "timeline", "-n", "2")

    assert isinstance(shown, list) and len(shown) == 2
    assert shown[0]["instant"] > shown[1]["instant"]
    assert shown[0]["state"] == "COMPLETED"


def test_stats_count_rows_when_asked_to(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    guessed, counted = answer(capsys, table, "stats"), answer(capsys, table, "stats", "--count")

    assert isinstance(guessed, dict) and isinstance(counted, dict)
    assert guessed["rows"] is None
    assert counted["rows"] == len(description(MERGE_ON_READ)["snapshot"])


def test_compacting_keeps_the_rows_and_another_reader_agrees(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = ids(table)

    done = answer(capsys, table, "compact")

    assert isinstance(done, dict) and done["state"] == "completed"
    stats = answer(capsys, table, "stats")
    assert isinstance(stats, dict) and stats["log_files"] == 0
    assert ids(table) == before
    assert [row[0] for row in rows_by_hudi_rs(table, ["_hoodie_record_key"])] == before


def test_compaction_spills_what_its_memory_option_does_not_hold(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, spilled = ids(table), []
    spill = log_records._spilled

    def noted(context: ReadContext, *given: Any) -> Any:
        spilled.append((context.memory_limit_bytes, context.spill_dir))
        return spill(context, *given)

    monkeypatch.setattr(log_records, "_spilled", noted)
    limit = ("-o", "hoodie.memory.compaction.max.size=1")
    answer(capsys, table, "compact", *limit, "-o", f"hoodie.memory.spillable.map.path={tmp_path}")
    assert spilled and set(spilled) == {(1, str(tmp_path))}
    assert ids(table) == before


def test_archive_moves_what_its_dry_run_lists(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    limits = ("--min", "1", "--max", "2", "-o", "hoodie.clean.policy=KEEP_LATEST_FILE_VERSIONS")
    more = ("-o", "hoodie.compact.inline.max.delta.commits=1")
    before = answer(capsys, table, "timeline")
    said = answer(capsys, table, "archive", *limits, *more, "--dry-run")

    assert isinstance(said, dict)
    assert [each["instant"] for each in said["rows"]] == [each["instant"] for each in reversed(before[1:])]
    done = answer(capsys, table, "archive", *limits, *more)
    assert isinstance(done, dict) and done["archived"] == len(before) - 1
    assert answer(capsys, table, "timeline") == before[:1]


def test_clean_deletes_what_its_dry_run_lists(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, table, "compact", "-o", "hoodie.clean.automatic=false")
    before = listing(table)
    said = answer(capsys, table, "clean", "--retain", "1", "--dry-run")
    assert listing(table) == before

    run(capsys, table, "clean", "--retain", "1")

    gone = {str(Path(path).relative_to(table)) for path in before if not Path(path).exists()}
    assert isinstance(said, dict)
    assert {row["path"] for row in said["rows"]} == {path for path in gone if ".hoodie/" not in path}
    assert gone


def test_savepoint_is_kept_until_it_is_released(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    saved = answer(capsys, table, "savepoint", "--user", "ann", "--comments", "before the move")
    assert isinstance(saved, dict)
    shown = answer(capsys, table, "savepoints")
    assert isinstance(shown, list)
    assert [(row["instant"], row["user"], row["comments"]) for row in shown] == [
        (saved["instant"], "ann", "before the move")
    ]

    answer(capsys, table, "savepoint", saved["instant"], "--delete")
    assert answer(capsys, table, "savepoints") == []


def test_a_savepoint_is_named_by_its_comment(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    timeline = answer(capsys, table, "timeline")
    assert isinstance(timeline, list)
    first = next(row["instant"] for row in reversed(timeline) if row["action"] == "deltacommit")
    answer(capsys, table, "savepoint", first, "--comments", "start")

    restored = answer(capsys, table, "restore", "start")
    deleted = answer(capsys, table, "savepoint", "start", "--delete")

    assert isinstance(restored, dict)
    assert (restored["restored_to"], deleted) == (first, {"deleted": first})
    assert len(ids(table)) == len(description(MERGE_ON_READ)["as_of"][first])


def test_second_comment_of_a_saved_commit_is_a_warning(
    table: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("first", "second"):
        assert run(capsys, table, "savepoint", "--comments", name)[0] == 0

    # the adapter, where a test of the process has loaded it, says the line again
    (told,) = {each.getMessage() for each in caplog.records if each.name.startswith("hudi_engine")}
    assert "is saved already and keeps its comment 'first'" in told


def test_savepoint_without_comment_is_named_by_instant(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = answer(capsys, table, "savepoint")
    assert isinstance(saved, dict)

    for name in ("", "monday"):
        code, _, err = run(capsys, table, "files", "--as-of", name)
        assert code == 2 and f"comment of a savepoint: {saved['instant']}\n" in err


def test_clone_onto_a_table_names_the_replace_switch(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(tmp_path / "clone")
    assert run(capsys, table, "clone", place)[0] == 0
    code, _, err = run(capsys, table, "clone", place)

    assert code == 2 and "--replace" in err
    assert run(capsys, table, "clone", place, "--replace")[0] == 0


def test_future_moment_is_the_newest_state_with_a_warning(
    table: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    newest = answer(capsys, table, "files")
    assert caplog.text == ""
    assert answer(capsys, table, "files", "--as-of", "2999-01-01") == newest
    assert "'2999-01-01', which lies in the future: it is the newest state" in caplog.text


def test_json_and_options_may_stand_before_the_table_too(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    behind = run(capsys, table, "stats", "--json", "-o", "hoodie.cleaner.commits.retained=2")
    before = run(capsys, "--json", "-o", "hoodie.cleaner.commits.retained=2", table, "stats")
    assert before == behind and json.loads(before[1])
    assert run(capsys, "--json", table, "stats") == run(capsys, table, "stats", "--json")

    code, _, err = run(
        capsys,
        "-o",
        "hoodie.cleaner.policy=NO_SUCH",
        table,
        "stats",
        "-o",
        "hoodie.cleaner.commits.retained=2",
    )
    assert code == 2 and "NO_SUCH" in err


def test_savepoint_after_a_restore_to_before_a_clean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = str(copy_on_write(tmp_path / "t", 5).path)
    timeline = answer(capsys, table, "timeline")
    assert isinstance(timeline, list)
    first = timeline[-1]["instant"]
    answer(capsys, table, "savepoint", first)
    cleaned = answer(capsys, table, "clean", "--retain", "1")
    assert isinstance(cleaned, dict) and cleaned["files_deleted"]
    answer(capsys, table, "restore", first)
    answer(capsys, table, "savepoint", first, "--delete")

    assert answer(capsys, table, "files", "--as-of", first) == answer(capsys, table, "files")
    answer(capsys, table, "savepoint", "--comments", "again")


@pytest.mark.parametrize("words", [["restore", "{first}"], ["clean"], ["archive"], ["rollback", "{newest}"]])
def test_dry_run_refuses_what_the_command_refuses(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = str(unpack("v9_mor_simple_deletes_h120", tmp_path))
    with Path(table, ".hoodie", "hoodie.properties").open("a") as properties:
        properties.write("hoodie.populate.meta.fields=false\n")
    timeline = answer(capsys, table, "timeline")
    assert isinstance(timeline, list)
    asked = [each.format(first=timeline[-1]["instant"], newest=timeline[0]["instant"]) for each in words]
    few = [
        "-o",
        "hoodie.keep.min.commits=2",
        "-o",
        "hoodie.keep.max.commits=3",
        "-o",
        "hoodie.clean.commits.retained=1",
    ]
    (code, _, said), real = run(capsys, table, *asked, "--dry-run", *few), run(capsys, table, *asked, *few)
    assert code == real[0] == 2 and "hoodie.populate.meta.fields" in said


def test_restore_removes_what_its_dry_run_lists(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    timeline = answer(capsys, table, "timeline")
    assert isinstance(timeline, list)
    first, before = timeline[-1]["instant"], listing(table)
    said = answer(capsys, table, "restore", first, "--dry-run")
    assert isinstance(said, dict)
    assert listing(table) == before

    answer(capsys, table, "restore", first)

    left = answer(capsys, table, "timeline")
    assert isinstance(left, list)
    assert {row["instant"] for row in timeline} - {row["instant"] for row in left} == {
        row["instant"] for row in said["rows"]
    }
    assert len(ids(table)) == len(description(MERGE_ON_READ)["as_of"][first])


def test_a_rollback_undoes_the_newest_write(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    timeline = answer(capsys, table, "timeline")
    assert isinstance(timeline, list)
    newest, older = timeline[0]["instant"], timeline[1]["instant"]
    before = listing(table)
    said = answer(capsys, table, "rollback", newest, "--dry-run")
    assert listing(table) == before

    done = answer(capsys, table, "rollback", newest)

    gone = {str(Path(path).relative_to(table)) for path in before if not Path(path).exists()}
    assert isinstance(said, dict) and isinstance(done, dict)
    told = [(row["what"], row["path"]) for row in said["rows"]]
    assert {path for what, path in told if what == "deleted"} == {
        path for path in gone if ".hoodie/" not in path
    }
    assert sum(what != "deleted" for what, _ in told) == done["rollback_blocks"] > 0
    assert len(ids(table)) == len(description(MERGE_ON_READ)["as_of"][older])

    code, _, err = run(capsys, table, "rollback", newest)
    assert code == 2 and f"{newest} has been taken back already" in err, "a second try, say after a kill"


def test_refused_rollback_has_a_refused_dry_run(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    timeline = answer(capsys, table, "timeline")
    assert isinstance(timeline, list)

    code, out, err = run(capsys, table, "rollback", timeline[-1]["instant"], "--dry-run")

    assert (code, out) == (2, "")
    assert "was written after it" in err


def test_a_table_with_missing_rows_makes_validate_fail(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    next(Path(table).rglob(".*.log.*")).unlink()

    code, out, _ = run(capsys, table, "validate")

    assert code == 1
    assert "missing file" in out or "missing_file" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["timeline", "-o", "hoodie.clean.policy=SOME"], "legal values: KEEP_LATEST_COMMITS"),
        (["timeline", "-o", "hoodie.clean.policy"], "-o hoodie.key=value"),
        (["rollback", "20200101000000000"], "there is no instant '20200101000000000'"),
        (["restore", "20200101000000000", "--dry-run"], "there is no completed write '20200101000000000'"),
        (["clean", "--retain", "0"], "at least 1"),
        (["clean", "--retain", "0", "--dry-run"], "at least 1"),
        (["files", "--as-of", "monday"], "legal values: an instant such as"),
        (["savepoint", "--delete"], "`savepoints` lists them"),
        (["delete-savepoint", "20200101000000000"], "20200101000000000"),
        (["delete-partitions", "nowhere=1"], "hold no rows"),
        (["compact", "20200101000000000", "--schedule"], "leave the instant out"),
        (["files", "--partition", "day=tues"], "did you mean 'day=tue'? it has 3"),
        (["restore", "never saved"], "0 savepoints are called that"),
        (["savepoint", "--comments", "latest"], "comments is 'latest'"),
        (["savepoint", "--comments", "2026"], "comments is '2026'"),
        (["report", "--output", "/nowhere/page.html"], "there is no folder '/nowhere'"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_a_mistake_is_one_sentence_and_code_2(
    words: list[str], said: str, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = listing(table)

    code, out, err = run(capsys, table, *words)

    assert (code, out) == (2, "")
    assert said in err and "Traceback" not in err and err.count("\n") == 1
    assert err.startswith(f"hudi-engine {words[0]}: ")
    assert listing(table) == before


def test_path_without_a_table_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, str(tmp_path), "timeline")

    assert code == 2
    assert "there is no Hudi table at" in err


def test_read_only_table_is_one_sentence_and_code_2(
    table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: LocalStorage, path: str, data: bytes) -> None:
        raise OSError(errno.EROFS, "Read-only file system", f"{self.base}/{path}")

    monkeypatch.setattr(LocalStorage, "create", refuse)

    code, _, error = run(capsys, table, "savepoint", "--comment", "now")

    assert code == 2 and error.startswith("hudi-engine savepoint: this process may not read or write ")
    assert "Read-only file system; commands that only look need no right to write" in error
    assert run(capsys, table, "timeline")[0] == 0


def test_an_unknown_command_names_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["somewhere", "timelien"])

    err = capsys.readouterr().err
    assert stop.value.code == 2
    assert all(name in err for name in COMMANDS)
    assert "did you mean 'timeline'?" in err


@pytest.mark.parametrize("text", ["-1", "²", "few"])
def test_a_limit_is_a_whole_number(table: str, capsys: pytest.CaptureFixture[str], text: str) -> None:
    code, _, err = run(capsys, table, "timeline", f"--limit={text}")

    assert code == 2 and f"limit is {text!r}; legal values: whole numbers of at least 0" in err


def test_hudis_procedures_have_their_own_columns(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = answer(capsys, table, "call", "show_commits", "limit=1")
    assert isinstance(shown, list) and list(shown[0])[:3] == [
        "commit_time",
        "state_transition_time",
        "action",
    ]
    assert "arguments: table (required), limit" in run(capsys, table, "call", "help", "cmd=show_commits")[1]
    code, _, err = run(capsys, table, "call", "show_commit", "limit=1")
    assert code == 2 and "there is no procedure 'show_commit'; did you mean 'show_commits'?" in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_unwritable_output_is_one_sentence_and_code_2(table: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hudi_engine.cli", table, "commits"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )

    assert done.returncode == 2
    assert done.stderr.startswith("hudi-engine commits: the answer cannot be written: ")
    assert done.stderr.count("\n") == 1


def test_the_program_starts_neither_spark_nor_pandas(table: str) -> None:
    code = (
        "import sys\nfrom hudi_engine.cli import main\n"
        f"for word in ('timeline', 'commits', 'files', 'stats'): main([{table!r}, word])\n"
        "print(sorted({'pyspark', 'py4j', 'pandas', 'dbt'} & set(sys.modules)), file=sys.stderr)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stderr.strip() == "[]"


def test_program_prints_its_version() -> None:
    import hudi_engine

    shown = subprocess.run(
        [sys.executable, "-m", "hudi_engine.cli", "--version"], capture_output=True, text=True, check=True
    )

    assert shown.stdout == f"hudi-engine {hudi_engine.__version__}\n"
