"""The first error most people meet: Java is missing, or too old."""

from __future__ import annotations

from pathlib import Path

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.spark import java


def fake_java(folder: Path, version: str, release: bool = True) -> Path:
    binary = folder / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    binary.chmod(0o755)
    if release:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return folder


def test_no_java_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DbtRuntimeError, match="no Java was found; install Java 17 or 21, or set JAVA_HOME"):
        java.check_java()


def test_a_java_home_without_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DbtRuntimeError, match=f"JAVA_HOME is '{tmp_path}', but .*java is not there"):
        java.check_java()


@pytest.mark.parametrize("release", [True, False])
def test_an_old_java_is_refused_by_its_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, release: bool
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "1.7.0_402", release)))
    with pytest.raises(DbtRuntimeError, match="needs Java .* or newer, but .*java is Java 1.7.0_402"):
        java.check_java()


@pytest.mark.parametrize("version", ["17.0.2", "21", "25-ea"])
def test_a_java_that_is_new_enough_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, version)))
    assert java.check_java()[1] == version


@pytest.mark.parametrize(
    ("line", "chatter"),
    [
        ("WARNING: Using incubator modules: jdk.incubator.vector", True),
        ('Setting default log level to "WARN".', True),
        ("WARNING: A terminally deprecated method in sun.misc.Unsafe has been called", True),
        ("26/01/01 10:00:00 ERROR TaskSetManager: lost a task", False),
        ("WARNING: the disk is full", False),
    ],
)
def test_only_chatter_is_kept_off_the_screen(line: str, chatter: bool) -> None:
    assert bool(java._CHATTER.match(line)) is chatter
