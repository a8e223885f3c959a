"""The profile."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.given import settings_for
from hudi_engine.format.storage.uris import RemoteUri

from dbt.adapters.hudi.credentials import HudiCredentials
from dbt.adapters.hudi.model.plan import Places, resolve_plan
from dbt.adapters.hudi.model.reading import absolute_location
from dbt.adapters.hudi.model.source import given_places, source_place
from dbt.adapters.hudi.spark.warehouse import Warehouse


def profile(**keys: object) -> HudiCredentials:
    data = HudiCredentials.translate_aliases({"schema": "analytics", **keys})
    HudiCredentials.validate(data)
    return HudiCredentials.from_dict(data)


def test_only_the_schema_is_needed() -> None:
    credentials = profile()
    assert credentials.type == "hudi"
    assert credentials.catalog == "directory"
    assert credentials.resolve_location_root("/project") == "/project/warehouse"


def test_spark_settings_become_text() -> None:
    assert profile(spark_conf={"spark.x": True, "spark.y": 4}).spark_conf == {
        "spark.x": "true",
        "spark.y": "4",
    }


@pytest.mark.parametrize(
    ("keys", "ansi"),
    [
        ({}, True),
        ({"ansi": False}, False),
        ({"spark_conf": {"spark.sql.ansi.enabled": "false"}}, False),
        ({"spark_conf": {"spark.sql.ansi.enabled": False}}, False),
        ({"server_side_parameters": {"spark.sql.ansi.enabled": "false"}}, False),
        ({"ansi": True, "spark_conf": {"spark.sql.ansi.enabled": "TRUE"}}, True),
    ],
)
def test_ansi_is_what_spark_is_told_wherever_the_profile_says_it(keys: dict[str, object], ansi: bool) -> None:
    assert dict(profile(**keys).connection_info())["ansi"] is ansi


def test_classes_of_the_hudi_bundle_are_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("dbt.adapters.hudi.credentials.warn", said.append)
    monkeypatch.setattr("dbt.adapters.hudi.logs._logged", set())
    quick_start = {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension, com.shop.Extension",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    }
    assert profile(server_side_parameters=quick_start).spark_conf == {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.extensions": "com.shop.Extension",
    }
    (text,) = said
    for key in (
        "spark.sql.catalog.spark_catalog",
        "spark.sql.extensions",
        "spark.kryo.registrator",
        "leave them out",
    ):
        assert key in text
    assert "spark.serializer" not in text


def test_two_words_on_ansi_that_disagree_are_refused() -> None:
    with pytest.raises(
        DbtRuntimeError,
        match="ansi is true but spark_conf has spark.sql.ansi.enabled: false; give one of them",
    ):
        profile(ansi=True, spark_conf={"spark.sql.ansi.enabled": "false"})


def test_a_profile_of_dbt_spark_needs_its_type_changed_only() -> None:
    credentials = profile(
        method="session", host="NA", server_side_parameters={"spark.driver.memory": "2g"}, user="me"
    )
    assert credentials.spark_conf == {"spark.driver.memory": "2g"}


def test_all_problems_of_a_profile_come_in_one_message() -> None:
    with pytest.raises(DbtRuntimeError) as raised:
        profile(method="thrift", catalog="glue")
    assert "method is 'thrift'" in str(raised.value)
    assert "catalog is 'glue'; legal values: directory, hive" in str(raised.value)


@pytest.mark.parametrize(
    ("location", "expected"),
    [("lake", "/p/lake"), ("/abs", "/abs"), ("s3a://b/x/", "s3a://b/x"), ("file:/abs", "/abs")],
)
def test_places_are_absolute(location: str, expected: str) -> None:
    assert absolute_location(location, "/p") == expected


def test_settings_and_credentials_of_the_store_are_shown_to_nobody() -> None:
    credentials = profile(
        location_root="s3a://key:verysecret@a-bucket/wh?endpoint=http://minio.example:9",
        storage_options={"session_token": "tokensecret", "region": "eu-west-1", "skip_signature": True},
    )
    shown = f"{credentials!r} {credentials.unique_field} {dict(credentials.connection_info())}"
    assert credentials.location_root == "s3a://a-bucket/wh"
    assert "secret" not in shown and "minio" not in shown
    assert credentials.storage_options["skip_signature"] == "true"


def test_a_place_whose_credentials_cannot_be_told_from_it_is_refused_without_showing_them() -> None:
    with pytest.raises(DbtRuntimeError, match="location_root cannot be read: .*Percent-encode") as error:
        profile(location_root="s3a://AKIA:hu/sh@bucket/wh")
    assert "hu/" not in str(error.value) and "sh@" not in str(error.value)


def test_credentials_in_the_uri_of_a_model_or_source_reach_the_store_and_nothing_else() -> None:
    told = "s3://key:verysecret@{}/wh?endpoint=http://minio.example:9"
    config = {"materialized": "table", "location_root": told.format("c-bucket")}
    plan = resolve_plan({"config": config}, "analytics", "orders", Places("/warehouse"))
    source = SimpleNamespace(
        schema="lake", identifier="events", external={"location": told.format("d-bucket")}
    )
    place = source_place(source)

    assert (plan.base, place.location) == ("s3://c-bucket/wh/orders", "s3://d-bucket/wh")
    for base in (plan.base, place.location):
        assert open_storage(base)._client.address == "http://minio.example:9"  # type: ignore[attr-defined]


def test_a_process_gets_in_where_a_pointer_leads_by_what_its_project_says(tmp_path: Path) -> None:
    told = "s3://key:verysecret@{}/wh?endpoint=http://minio.example:9"
    nodes: dict[str, object] = {
        "a": SimpleNamespace(config={"location_root": told.format("e-bucket")}),
        "b": SimpleNamespace(config={"meta": {"hudi": {"location_root": told.format("f-bucket")}}}),
        "c": SimpleNamespace(config={}),
    }
    sources = {"s": SimpleNamespace(external={"location": told.format("g-bucket")})}
    warehouse = Warehouse(profile(location_root=str(tmp_path)), None)
    warehouse.source_places = lambda: given_places(SimpleNamespace(nodes=nodes, sources=sources))

    assert warehouse.directory is not None
    for bucket in ("e-bucket", "f-bucket", "g-bucket"):
        storage = open_storage(f"s3://{bucket}/wh/orders")
        assert storage._client.address == "http://minio.example:9"  # type: ignore[attr-defined]


def test_a_place_that_cannot_be_read_is_said_of_its_own_source_and_stops_no_other(tmp_path: Path) -> None:
    odd = SimpleNamespace(
        schema="lake", identifier="events", external={"location": "s3://user:pa/ss@bucket/wh"}
    )
    warehouse = Warehouse(profile(location_root=str(tmp_path)), None)
    warehouse.source_places = lambda: given_places(SimpleNamespace(nodes={}, sources={"s": odd}))

    assert warehouse.directory is not None
    problem = source_place(odd).problem
    assert problem is not None and "Percent-encode" in problem and "ss@" not in problem


def test_settings_of_a_store_for_a_local_folder_are_refused() -> None:
    with pytest.raises(
        DbtRuntimeError, match="storage_options has region, and location_root 'warehouse' is a local folder"
    ):
        profile(storage_options={"region": "eu-west-1"})


def test_options_of_a_profile_are_checked_and_may_not_define_tables() -> None:
    with pytest.raises(DbtRuntimeError) as raised:
        profile(
            options={
                "hoodie.write.lock.wait_time_ms": "soon",
                "hoodie.datasource.write.recordkey.field": "id",
            }
        )
    assert "options: hoodie.write.lock.wait_time_ms" in str(raised.value)
    assert (
        "hoodie.datasource.write.recordkey.field, which is not about writes and services of all tables"
        in str(raised.value)
    )


def test_options_and_settings_of_a_profile_hold_for_every_look_at_a_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, object] = {}
    monkeypatch.setattr(HudiTable, "open", lambda session, base, **more: given.update(more))
    options = {"hoodie.write.lock.wait_time_ms": 7, "hoodie.write.concurrency.mode": "SINGLE_WRITER"}
    settings = {"endpoint": "http://minio.example:9", "region": "x"}
    warehouse = Warehouse(
        profile(location_root="s3://b-bucket/wh", storage_options=settings, options=options), None
    )

    warehouse.table(None, "s3://b-bucket/wh/shop/orders")  # type: ignore[arg-type]

    assert given["options"] == {**options, "hoodie.write.lock.wait_time_ms": "7", **warehouse.notes()}
    assert open_storage("s3://b-bucket/wh/shop/orders")._client.address == "http://minio.example:9"  # type: ignore[attr-defined]

    Warehouse(profile(location_root="s3://b-bucket/wh", storage_options={"region": "x"}), None)
    assert open_storage("s3://b-bucket/wh/shop/orders")._client.address != "http://minio.example:9"  # type: ignore[attr-defined]
    Warehouse(profile(location_root="s3://b-bucket/wh"), None)
    assert settings_for(RemoteUri.parse("s3://b-bucket/wh/shop/orders")) == {}


def test_the_target_of_a_project_has_a_database_that_is_none() -> None:
    """Packages write `database: "{{ var('x', target.database) }}"`, and dbt refuses what is undefined."""
    assert dict(profile().connection_info(with_aliases=True))["database"] is None
    assert "database" not in dict(profile().connection_info()), "dbt debug prints what there is"


def test_dbt_debug_and_target_show_no_secret_of_sparks_settings() -> None:
    conf = {
        "spark.hadoop.fs.s3a.secret.key": "hush",
        "spark.hadoop.fs.s3a.session.token": "hush",
        "spark.hadoop.javax.jdo.option.ConnectionPassword": "hush",
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:mysql://me:hush@db/hive?user=me&password=hush&ssl=true",
        "spark.driver.extraJavaOptions": "-Xss4m -Djavax.net.ssl.trustStorePassword=hush -Dx=1",
        "spark.driver.memory": "4g",
    }
    credentials = profile(spark_conf=conf)
    for with_aliases in (False, True):
        shown = dict(credentials.connection_info(with_aliases=with_aliases))
        assert "hush" not in str(shown)
        assert shown["spark_conf"]["spark.driver.memory"] == "4g"
        assert shown["spark_conf"]["spark.driver.extraJavaOptions"].endswith(" -Dx=1")
        assert shown["spark_conf"]["spark.hadoop.javax.jdo.option.ConnectionURL"].endswith("&ssl=true")
    assert credentials.spark_conf == conf, "Spark gets them as they are"


def test_a_secret_that_is_no_text_is_refused_without_showing_it() -> None:
    with pytest.raises(DbtRuntimeError, match=r"spark\.x: a mapping; give one text") as error:
        profile(
            spark_conf={"spark.hadoop.fs.s3a.secret.key": ["hush"], "spark.x": {"fs.s3a.secret.key": "hush"}}
        )
    assert "spark.hadoop.fs.s3a.secret.key: a list; give one text" in str(error.value)
    assert "hush" not in str(error.value)


@pytest.mark.parametrize(
    ("key", "given", "told"),
    [
        (
            "storage_options",
            [{"secret_access_key": "hush"}],
            "is a list; give a mapping of settings of the store",
        ),
        ("storage_options", "secret_access_key=hush", "is text; give a mapping of settings of the store"),
        ("spark_conf", "spark.hadoop.fs.s3a.secret.key=hush", "is text; give a mapping of Spark settings"),
        ("location_root", {"s3a://hush:hush@bucket/lake": None}, "is a mapping; give text"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_without_showing_what_it_holds(
    key: str, given: object, told: str
) -> None:
    with pytest.raises(DbtRuntimeError, match=f"{key} {told}") as error:
        profile(**{key: given})
    assert "hush" not in str(error.value)
