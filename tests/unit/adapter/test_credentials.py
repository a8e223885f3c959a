"""The profile."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.credentials import HudiCredentials, absolute_location


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
