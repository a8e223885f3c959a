"""What a Spark that dbt starts is started with."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi import logs
from dbt.adapters.hudi.credentials import HudiCredentials
from dbt.adapters.hudi.spark import session

OPTIONS = "spark.driver.extraJavaOptions"


def java_options(**keys: object) -> str:
    credentials = HudiCredentials.from_dict({"schema": "analytics", "location_root": "/lake", **keys})
    return session._start_conf(credentials, {})[OPTIONS]


@pytest.mark.parametrize("place", ["/la ke", "/lake's", '/la"ke', "/la\\ke", "/lake"])
def test_a_place_with_spaces_or_quotes_is_one_option(place: str, tmp_path: Path) -> None:
    root = f"{tmp_path}{place}"
    given = java_options(catalog="hive", location_root=root)
    # Spark takes the text apart as a shell does
    assert f"-Dderby.stream.error.file={root}/derby.log" in shlex.split(given)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.os, "cpu_count", lambda: 2)
    for name in session._JAVA_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_a_local_spark_starts_quickly() -> None:
    assert "-XX:Tier4InvocationThreshold" in java_options()
    assert "-XX:+UseSerialGC" in java_options()


def test_a_spark_elsewhere_is_left_as_it_is() -> None:
    assert "-XX:" not in java_options(master="spark://host:7077")


def test_the_profiles_own_java_options_come_last() -> None:
    assert java_options(spark_conf={OPTIONS: "-XX:TieredStopAtLevel=1"}).endswith("-XX:TieredStopAtLevel=1")


def test_a_collector_somebody_chose_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "SerialGC" not in java_options(spark_conf={OPTIONS: "-XX:+UseG1GC"})
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:+UseZGC")
    assert "SerialGC" not in java_options()


class FakeSession:
    """A session whose Spark runs."""

    def __init__(self) -> None:
        self.sparkContext = type("Context", (), {"_jsc": object()})()
        self._jsparkSession = object()
        self.conf = SimpleNamespace(isModifiable=lambda key: key.startswith("spark.sql.shuffle"))


def test_a_session_made_for_a_node_is_not_taken_for_somebody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    owned, of_a_node = FakeSession(), FakeSession()
    monkeypatch.setattr(session, "_owned", owned)
    monkeypatch.setattr(session.SparkSession, "getActiveSession", lambda: of_a_node)
    assert session.base_session(HudiCredentials.from_dict({"schema": "analytics"}), {}) == (owned, True)


@pytest.mark.parametrize(
    ("profile", "refused", "told"),
    [
        ({"location_root": "/elsewhere", "app_name": "other"}, "", ""),
        ({"spark_conf": {"spark.sql.shuffle.partitions": "3", "spark.sql.catalog.lake": "x"}}, "", ""),
        ({"spark_conf": {"spark.driver.memory": "3g"}}, "", "spark.driver.memory"),
        (
            {"spark_conf": {"spark.sql.extensions": "x"}, "master": "local[3]"},
            "",
            "master, spark.sql.extensions",
        ),
        ({"catalog": "hive"}, "spark.hadoop.hive.*, catalog", ""),
        ({"spark_conf": {"spark.hadoop.fs.s3a.endpoint": "http://x"}}, "spark.hadoop.fs.s3a.endpoint", ""),
    ],
)
def test_a_second_run_in_one_process_is_told_what_its_spark_was_not_started_with(
    profile: dict[str, object], refused: str, told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[str] = []
    monkeypatch.setattr(session.logger, "warning", lambda text, *more: said.append(text.format(*more)))
    first = {"schema": "analytics", "location_root": str(tmp_path), "master": "local[2]"}
    conf = session._start_conf(HudiCredentials.from_dict(first), {})
    spark = FakeSession()
    monkeypatch.setattr(session, "_owned", spark)
    monkeypatch.setattr(session, "_started_with", conf)
    monkeypatch.setattr(logs, "_logged", set())
    second = HudiCredentials.from_dict({**first, **profile})
    if refused:
        with pytest.raises(DbtRuntimeError, match=f"names or files: {refused}.*a process of its own"):
            session.base_session(second, {}, "/shop")
        spark.sparkContext._jsc = None
        monkeypatch.setattr(session.SparkSession, "_instantiatedSession", None)
        monkeypatch.setattr(session.SparkSession, "getActiveSession", lambda: None)
        monkeypatch.setattr(session, "_start", lambda *given: FakeSession())
        assert session.base_session(second, {}, "/shop")[1], "that Spark was stopped"
    else:
        assert session.base_session(second, {}, "/elsewhere") == (spark, True)
        assert session.base_session(second, {}, "/elsewhere") == (spark, True)
    assert [each.partition("keeps its own: ")[2].partition(". Where")[0] for each in said] == [told] * bool(
        told
    )


def test_a_spark_that_ended_between_two_commands_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    spark, left = FakeSession(), []
    monkeypatch.setattr(session, "_owned", spark)
    monkeypatch.setattr(session, "forget_java", lambda: left.append(1))
    spark.sparkContext._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False))
    session.leave_dead_spark()
    assert not left and session._owned is spark

    def gone() -> None:
        raise ConnectionRefusedError

    spark.sparkContext._jsc = SimpleNamespace(sc=gone)
    session.leave_dead_spark()
    assert left and session._owned is None


def test_a_hive_catalog_in_a_store_takes_a_metastore_that_is_named() -> None:
    keys = {"catalog": "hive", "location_root": "s3://lake/warehouse"}
    with pytest.raises(
        DbtRuntimeError, match=r"hive\.metastore\.uris: thrift://.*or take catalog: directory"
    ):
        java_options(**keys)
    java_options(**keys, spark_conf={"spark.hadoop.hive.metastore.uris": "thrift://host:9083"})


def test_spark_gets_a_place_in_a_store_as_its_own_file_systems_spell_it() -> None:
    credentials = HudiCredentials.from_dict({"schema": "analytics", "location_root": "s3://lake/ware house"})
    assert session._start_conf(credentials, {})["spark.sql.warehouse.dir"] == "s3a://lake/ware house"


def test_a_running_session_of_spark_connect_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Connected:
        @property
        def sparkContext(self) -> object:  # noqa: N802
            raise AttributeError("[JVM_ATTRIBUTE_NOT_SUPPORTED] not supported in Spark Connect")

    monkeypatch.setattr(session.SparkSession, "getActiveSession", Connected)
    with pytest.raises(DbtRuntimeError, match="a Spark Connect session is running"):
        session._running_session()
