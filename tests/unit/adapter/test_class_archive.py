"""When Java writes an archive of its classes, when it uses one, and when it does neither."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from dbt.adapters.hudi.spark.java import archive_options

WHOLE, UNFINISHED = b"\xa8\xab\x0b\xf0 classes", b"\0\0\0\0 classes"


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "SPARK_CONF_DIR",
        "HADOOP_CONF_DIR",
        "YARN_CONF_DIR",
        "SPARK_DIST_CLASSPATH",
        "SPARK_CLASSPATH",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    spark = tmp_path / "spark"
    (spark / "jars").mkdir(parents=True)
    (spark / "jars" / "spark-core.jar").write_bytes(b"jar")
    monkeypatch.setenv("SPARK_HOME", str(spark))
    home = tmp_path / "jdk"
    for file in ("bin/java", "lib/server/classes.jsa", "release"):
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text(file)
    return home / "bin" / "java"


def archive(java: Path) -> Path:
    """Return where the first start would have its archive written."""
    (option,) = [
        each
        for each in archive_options(java, "17.0.2", {}, "")
        if each.startswith("-XX:ArchiveClassesAtExit=")
    ]
    return Path(option.partition("=")[2])


def test_the_first_start_writes_an_archive_and_the_next_one_uses_it(java: Path) -> None:
    place = archive(java)
    place.write_bytes(WHOLE)

    assert f"-XX:SharedArchiveFile={place}" in archive_options(java, "17.0.2", {}, "")


def test_an_archive_that_is_being_written_is_left_alone_and_one_cut_off_is_written_again(java: Path) -> None:
    place = archive(java)
    place.write_bytes(UNFINISHED)
    assert archive_options(java, "17.0.2", {}, "") == []

    os.utime(place, (time.time() - 3600,) * 2)
    assert archive(java) == place


def test_other_jars_have_an_archive_of_their_own(java: Path, tmp_path: Path) -> None:
    before = archive(java)
    (tmp_path / "spark" / "jars" / "spark-core.jar").write_bytes(b"newer jar")

    assert archive(java) != before


def test_an_archive_that_nothing_used_for_a_month_goes(java: Path) -> None:
    old = archive(java).parent / "spark-0123456789abcdef.jsa"
    old.write_bytes(WHOLE)
    os.utime(old, (time.time() - 40 * 86400,) * 2)
    archive(java)

    assert not old.exists()


def test_a_cache_holds_three_archives_at_most_those_used_last(java: Path) -> None:
    folder = archive(java).parent
    for days in range(1, 6):
        other = folder / f"spark-{days:016d}.jsa"
        other.write_bytes(WHOLE)
        os.utime(other, (time.time() - days * 86400,) * 2)
    archive(java).write_bytes(WHOLE)

    assert len(list(folder.glob("spark-*.jsa"))) == 3
    assert {f"spark-{days:016d}.jsa" for days in (1, 2)} < {each.name for each in folder.iterdir()}


@pytest.mark.parametrize(
    ("version", "conf", "given"),
    [
        ("11.0.2", {}, ""),
        ("1.8.0_402", {}, ""),
        ("unknown", {}, ""),
        ("17.0.2", {}, "-XX:SharedArchiveFile=/mine.jsa"),
        ("17.0.2", {}, "-Xshare:off"),
        ("17.0.2", {}, "-javaagent:profiler.jar"),
        ("17.0.2", {"spark.driver.extraClassPath": "/conf"}, ""),
    ],
)
def test_java_starts_as_ever_where_an_archive_does_not_fit(
    java: Path, version: str, conf: dict[str, str], given: str
) -> None:
    assert archive_options(java, version, conf, given) == []


def test_a_folder_that_others_may_write_to_is_not_used(java: Path, tmp_path: Path) -> None:
    archive(java).parent.chmod(0o777)

    assert archive_options(java, "17.0.2", {}, "") == []


def test_a_cache_that_cannot_be_made_is_no_error(java: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")

    assert archive_options(java, "17.0.2", {}, "") == []
