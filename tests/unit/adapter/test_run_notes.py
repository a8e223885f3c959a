"""The git commit of a project, from git's own files."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from dbt.adapters.hudi.model.run_notes import git_sha, notes_of_run

SHA = "0123456789abcdef0123456789abcdef01234567"


def folder(tmp_path, head, **files):
    git = tmp_path / ".git"
    git.mkdir()
    (git / "HEAD").write_text(head)
    for name, text in files.items():
        path = git / name.replace("__", "/").replace("_", "-")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "models").mkdir()
    return str(tmp_path / "models")


@pytest.mark.parametrize(
    ("head", "files", "expected"),
    [
        (f"{SHA}\n", {}, SHA),
        ("ref: refs/heads/main\n", {"refs__heads__main": f"{SHA}\n"}, SHA),
        ("ref: refs/heads/main\n", {"packed_refs": f"# pack-refs\n{SHA} refs/heads/main\n"}, SHA),
        ("ref: refs/heads/main\n", {}, None),
        ("ref: ../../secret\n", {}, None),
        ("something else", {}, None),
    ],
)
def test_the_commit_is_read_from_the_files_of_git(tmp_path, head, files, expected):
    assert git_sha(folder(tmp_path, head, **files)) == expected


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
def test_git_itself_agrees_also_in_a_work_tree(tmp_path):
    def git(*words):
        who = ["-c", "user.name=n", "-c", "user.email=e@example.com"]
        return subprocess.run(
            ["git", *who, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    git("worktree", "add", "-q", "side", "-b", "side")
    sha = git("rev-parse", "HEAD").strip()
    assert git_sha(str(tmp_path)) == git_sha(str(tmp_path / "side")) == sha


def test_what_is_not_known_is_left_out():
    assert "_dbt_git_sha" not in notes_of_run({"unique_id": "model.p.m"}, "/")
    assert notes_of_run({}, "/").keys() == {"_dbt_invocation_id"}


def test_a_commit_names_table_code_and_inputs():
    node = {"unique_id": "model.p.m", "checksum": {"name": "sha256", "checksum": "ab12"}}
    found = notes_of_run(
        node, "/", table="s.m", inputs={"s.b": "2", "s.a": "1"}, audits=["unique", "not_null"]
    )
    assert found["_dbt_audits"] == '["not_null", "unique"]'
    assert found["_dbt_node"] == "model.p.m" and found["_dbt_table"] == "s.m"
    assert found["_dbt_checksum"] == "ab12"
    assert found["_dbt_inputs"] == '{"s.a": "1", "s.b": "2"}'
