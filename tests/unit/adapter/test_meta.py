"""Configs under ``meta: {hudi: ...}``, where dbt 2 lets them stand."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.model.known_configs import USED, with_meta


def test_every_config_of_dbt_hudi_may_stand_under_meta() -> None:
    given = {key: f"value of {key}" for key in USED}
    merged = with_meta({"materialized": "incremental", "meta": {"owner": "me", "hudi": given}}, "orders")
    assert {key: merged[key] for key in USED} == given
    assert merged["materialized"] == "incremental"


def test_what_a_model_says_directly_counts_more_and_none_is_not_said() -> None:
    config = {"table_type": "cow", "index": None, "meta": {"hudi": {"table_type": "mor", "index": "bloom"}}}
    assert with_meta(config, "orders") == {**config, "index": "bloom"}


@pytest.mark.parametrize("meta", [None, {}, {"owner": "me"}, {"hudi": None}])
def test_a_meta_without_configs_changes_nothing(meta: Any) -> None:
    config = {"table_type": "cow", "meta": meta}
    assert with_meta(config, "orders") == config


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("mor", r"meta\.hudi of orders is 'mor'; legal is a mapping"),
        (
            {"precombine_feild": "at"},
            r"has the key 'precombine_feild', which is no config of dbt-hudi; did you mean 'precombine_field'\?",
        ),
        ({"unique_key": "id"}, r"has the key 'unique_key', which is a config of dbt: give it next to meta"),
        (
            {"hoodie.keep.max.commits": 9},
            r"belongs in options: meta: \{hudi: \{options: \{hoodie.keep.max.commits",
        ),
    ],
)
def test_what_is_no_config_of_dbt_hudi_is_refused_by_name(given: Any, words: str) -> None:
    with pytest.raises(DbtRuntimeError, match=words):
        with_meta({"meta": {"hudi": given}}, "orders")


@pytest.mark.parametrize("key", ["options", "hudi_options", "tblproperties"])
def test_options_of_both_places_are_put_together_key_by_key(key: str) -> None:
    given, said = {"type": "mor", "hoodie.keep.max.commits": 9}, {"hoodie.keep.max.commits": 40}
    merged = with_meta({key: said, "meta": {"hudi": {key: given}}}, "orders")
    assert merged[key] == {"type": "mor", "hoodie.keep.max.commits": 40}
