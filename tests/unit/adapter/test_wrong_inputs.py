"""What a user says wrongly is answered by name: key, value, and the legal values or the nearest name."""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.protocol import AdapterConfig
from dbt_common.events.base_types import EventMsg
from dbt_common.events.event_manager_client import get_event_manager
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.credentials import HudiCredentials
from dbt.adapters.hudi.impl import HudiConfig
from dbt.adapters.hudi.model import known_configs
from dbt.adapters.hudi.model.known_configs import (
    OF_DBT,
    OF_OTHER_ADAPTERS,
    REFUSED_OF_MERGES,
    USED,
    unused_configs,
)
from dbt.adapters.hudi.model.merge import own_strategies
from dbt.adapters.hudi.model.packages import config_of_package
from dbt.adapters.hudi.model.plan import Places, resolve_plan
from dbt.adapters.hudi.model.selected import check_nodes

PLACES = Places("/warehouse", "/project")
KEYED = {"unique_key": "id"}


FILE_SIZE = "hoodie.parquet.max.file.size"
WRONG_CONFIGS: list[tuple[dict[str, Any], str | None]] = [
    ({"table_type": "heap"}, "table_type is 'heap'; legal values: cow, mor"),
    ({"table_tpye": "mor"}, None),
    (
        {**KEYED, "incremental_strategy": "upsrt"},
        "incremental_strategy is 'upsrt'; did you mean 'upsert'? legal",
    ),
    ({"unique_key": " "}, "unique_key is ' ', which names no column"),
    ({"unique_key": ["", ""]}, "unique_key is ['', ''], which names no column"),
    ({"incremental_strategy": "zzz"}, "incremental_strategy is 'zzz'; legal values: upsert, merge"),
    (
        {"incremental_strategy": "microbatch"},
        "incremental_strategy 'microbatch' needs event_time",
    ),
    (
        {"incremental_strategy": "delete+insert"},
        "incremental_strategy 'delete+insert' needs unique_key",
    ),
    (
        {"incremental_strategy": "replace_where"},
        "incremental_strategy 'replace_where' needs incremental_predicates",
    ),
    ({"incremental_strategy": "upsert"}, "incremental_strategy 'upsert' needs unique_key"),
    (
        {"incremental_strategy": "merge", "merge_update_columns": "a"},
        "'merge' without unique_key does not merge",
    ),
    (
        {"options": {"hoodie.parquet.max.file.sise": 1}},
        "did you mean 'hoodie.parquet.max.file.size'?",
    ),
    ({"options": {"hoodie.parquet.max.file.size": "big"}}, "hoodie.parquet.max.file.size is 'big'"),
    ({"options": "hoodie.x=1"}, "options is 'hoodie.x=1'; give a mapping"),
    ({"options": {"tpye": "mor"}}, "options has the unknown key 'tpye'; did you mean 'type'?"),
    ({"compaction": True}, "compaction is True, but the table type is 'cow'"),
    (
        {**KEYED, "table_type": "mor", "compaction": {"trigegr": 1}},
        "compaction has the unknown key 'trigegr'; legal keys: execute, trigger",
    ),
    ({**KEYED, "index": "blom"}, "index is 'blom'; legal values: simple, bloom"),
    ({"clean": "sometimes"}, "clean is 'sometimes'; give true, false or a mapping"),
    ({"partition_by": {"field": "dt"}}, "partition_by is {'field': 'dt'}; give a column name"),
    ({"partition_by": "date(ts)"}, "partition_by has 'date(ts)'; Hudi partitions by columns"),
    (
        {"on_schema_change": "evolve"},
        "on_schema_change is 'evolve'; legal values: ignore, append_new_columns",
    ),
    (
        {**KEYED, "merge_update_columns": ["a"], "merge_exclude_columns": ["b"]},
        "merge_update_columns and merge_exclude_columns are both set",
    ),
    (
        {**KEYED, "merge_update_columns": []},
        "merge_update_columns is [], which dbt takes for all columns; leave it out",
    ),
    ({"file_format": "delta"}, "file_format is 'delta'; dbt-hudi builds Hudi tables only"),
    ({"clustered_by": "id", "buckets": 4}, "use index: {type: bucket, buckets: n}"),
    (
        {"tblproperties": {"primarykee": "id"}},
        "primarykee is no property of Hudi; did you mean 'primaryKey'?",
    ),
    (
        {"tblproperties": {"precombineFeild": "ts"}},
        "precombineFeild is no property of Hudi; did you mean 'preCombineField'?",
    ),
    ({"tblproperties": {"owner": "me"}}, "the table properties owner cannot be set: Spark reserves"),
    (
        {"options": {"type": "cow"}, "tblproperties": {"TYPE": "mor"}},
        "options has type: 'cow' but tblproperties has 'mor'; give one of them",
    ),
    (
        {"options": {FILE_SIZE: "1000000"}, "tblproperties": {FILE_SIZE: 2000000}},
        f"options has {FILE_SIZE}: '1000000' but tblproperties has '2000000'; give one of them",
    ),
    (
        {**KEYED, "incremental_predicates": 5},
        "incremental_predicates is 5; give a list of SQL conditions",
    ),
    ({"location_root": ["a"]}, "location_root is ['a']; give a folder or URI"),
    ({"location_root": ""}, "location_root is empty; name a folder or URI, or leave the key out"),
    ({**KEYED, "merge_mode": "newest"}, "merge_mode is 'newest'; legal values: event_time"),
    (
        {"hive_style_partitioning": "maybe"},
        "hive_style_partitioning is 'maybe'; legal values: true, false",
    ),
    ({"hudi_options": [1]}, "hudi_options is [1]; give a mapping"),
]


def problems_of(config: dict[str, Any], name: str = "orders") -> list[str]:
    """What resolving a model says; nothing of it needs Spark or a table."""
    node = {"config": {"materialized": "incremental", **config}}
    try:
        resolve_plan(node, "analytics", name, PLACES, ("mine",))
    except DbtRuntimeError as error:
        assert "nothing was run" in error.msg
        return [line.removeprefix("  * ") for line in error.msg.splitlines()[1:]]
    return []


@pytest.mark.parametrize(
    ("config", "answer"),
    WRONG_CONFIGS,
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_config_is_refused_with_key_value_and_what_is_legal(
    config: dict[str, Any], answer: str | None
) -> None:
    found = problems_of(config)
    if answer is None:
        assert not found
        assert unused_configs(config) == {
            "table_tpye": "no config of dbt or dbt-hudi has this name; did you mean 'table_type'?"
        }
    else:
        assert any(answer in problem for problem in found), found


@pytest.mark.parametrize("key", REFUSED_OF_MERGES)
def test_a_config_that_would_change_rows_is_refused_for_merges_and_not_for_what_inherits_it(key: str) -> None:
    (problem,) = problems_of({**KEYED, key: "DBT_INTERNAL_SOURCE.v > 1"})
    assert problem.startswith(
        f"{key} is 'DBT_INTERNAL_SOURCE.v > 1', but dbt-hudi does not have this config; "
    )
    assert not problems_of({key: "x", "materialized": "table"})
    assert not problems_of({**KEYED, key: False}), "what is off asks for nothing"


@pytest.mark.parametrize("key", [*OF_OTHER_ADAPTERS, "databricks_compute"])
def test_a_config_of_another_adapter_is_said_with_our_word_for_it(key: str) -> None:
    assert unused_configs({key: "x"})[key] == OF_OTHER_ADAPTERS.get(
        key, "it is of dbt-databricks; spark_conf of the profile sets up Spark"
    )
    assert unused_configs({key: None}) == {}


def test_columns_to_cluster_by_are_answered_with_the_config_for_them() -> None:
    assert unused_configs({"cluster_columns": ["x"]}) == {"cluster_columns": "use cluster_by"}


def test_every_config_the_adapter_declares_is_known() -> None:
    declared = {field.name for field in dataclasses.fields(HudiConfig)}
    of_dbt = {field.name for field in dataclasses.fields(AdapterConfig)}
    assert declared - of_dbt - {*USED, *OF_DBT} == {"clustered_by", "buckets"}


def edits(word: str) -> Iterator[str]:
    """Spellings one edit away: a letter left out, doubled, or changed places with the next."""
    for place in range(len(word)):
        yield word[:place] + word[place + 1 :]
        yield word[:place] + word[place] + word[place:]
        yield word[:place] + word[place : place + 2][::-1] + word[place + 2 :]


@pytest.mark.parametrize(
    # with one of three letters wrong, a word is near to anything
    "name",
    [*sorted({*USED} - {"wap"}), "unique_key", "incremental_strategy", "on_schema_change", "materialized"],
)
def test_each_config_name_with_one_wrong_letter_gets_its_name_back(name: str) -> None:
    known = {*USED, *OF_DBT, *OF_OTHER_ADAPTERS, *REFUSED_OF_MERGES, *known_configs.REFUSED}
    misspelt = random.Random(name).sample(sorted(set(edits(name)) - known - {""}), 6)
    for word in misspelt:
        answer = unused_configs({word: "x"})[word]
        suggested = answer.partition("did you mean '")[2].partition("'")[0]
        # What is nearly another tool's spelling may be as near to ours, which is the better one to learn.
        letters = suggested.replace("_", "").lower()
        assert (
            word in edits(suggested) or suggested in edits(word) or letters == name.replace("_", "").lower()
        ), (
            word,
            answer,
        )


def test_nobody_is_sent_to_the_spelling_of_another_tool_where_ours_is_near() -> None:
    assert "did you mean 'precombine_field'?" in unused_configs({"precombine": "ts"})["precombine"]


WRONG_TYPES: dict[str, Any] = {
    "table_type": 5,
    "unique_key": 5,
    "precombine_field": 5,
    "partition_by": 5,
    "hive_style_partitioning": 5,
    "index": 5,
    "options": 5,
    "hudi_options": 5,
    "tblproperties": 5,
    "merge_update_columns": 5,
    "merge_exclude_columns": 5,
    "skip_unchanged": 5,
    "incremental_predicates": 5,
    "predicates": 5,
    "clean": 5,
    "location_root": 5,
    "file_format": 5,
    "on_schema_change": 5,
    "incremental_strategy": 5,
}


@pytest.mark.parametrize("key", WRONG_TYPES)
def test_a_value_of_a_wrong_type_is_refused_by_key_and_value(key: str) -> None:
    keyed = {} if key == "unique_key" else KEYED
    found = problems_of({**keyed, key: WRONG_TYPES[key]})
    assert any("5" in problem and key in problem for problem in found), found


@pytest.mark.parametrize("key", ["compaction", "clean"])
def test_settings_of_a_service_have_the_type_of_their_option(key: str) -> None:
    setting = {"compaction": "delta_commits", "clean": "retain_commits"}[key]
    (problem,) = problems_of({**KEYED, "table_type": "mor", key: {setting: "soon"}})
    assert problem.startswith(f"{setting} of {key}: hoodie.") and "'soon'" in problem


def profile(**keys: Any) -> HudiCredentials:
    data = HudiCredentials.translate_aliases({"schema": "analytics", **keys})
    HudiCredentials.validate(data)
    return HudiCredentials.from_dict(data)


@pytest.mark.parametrize(
    ("key", "value", "legal"),
    [
        ("schema", 5, "give text"),
        ("isolate_sessions", "perhaps", "give true or false"),
        ("ansi", "perhaps", "give true or false"),
        ("master", 5, "give text"),
        ("catalog", "glue", "legal values: directory, hive"),
        ("method", "thrift", "the only legal value is 'session'"),
        ("location_root", "ftp://host/lake", "tables cannot be kept at ftp://; "),
        ("location_root", "hfds://name/lake", "did you mean 'hdfs'?"),
    ],
)
def test_a_wrong_value_of_the_profile_is_refused(key: str, value: Any, legal: str) -> None:
    with pytest.raises(DbtRuntimeError) as raised:
        profile(**{key: value})
    assert f"{key} is {value!r}" in raised.value.msg
    assert legal in raised.value.msg


def test_a_wrong_place_is_shown_without_its_credentials() -> None:
    with pytest.raises(DbtRuntimeError) as raised:
        profile(location_root="ftp://me:hunter2@host/lake")
    assert "'ftp://host/lake'" in raised.value.msg and "hunter2" not in raised.value.msg


def test_a_spark_setting_is_one_value() -> None:
    with pytest.raises(DbtRuntimeError, match="spark_conf has spark.jars: a list; give one text"):
        profile(spark_conf={"spark.jars": ["a", "b"]})


def test_an_unknown_option_of_the_profile_is_answered_with_the_nearest() -> None:
    with pytest.raises(DbtRuntimeError) as raised:
        profile(options={"hoodie.write.lock.wait_tim_ms": "5", "spark.driver.memory": "4g"})
    assert "did you mean 'hoodie.write.lock.wait_time_ms'?" in raised.value.msg
    assert "option 'spark.driver.memory' is not a hoodie.* key" in raised.value.msg
    assert "set it in dbt_project.yml" not in raised.value.msg


@pytest.fixture
def told() -> Iterator[list[str]]:
    """Warnings dbt shows while the test runs."""
    found: list[str] = []

    def note(message: EventMsg) -> None:
        if message.info.level == "warn":
            found.append(message.info.msg)

    manager = get_event_manager()
    manager.callbacks.append(note)
    yield found
    manager.callbacks.remove(note)


def test_a_misspelt_key_of_the_profile_is_said_once_with_the_nearest_name(told: list[str]) -> None:
    for _ in range(2):
        profile(locationroot="lake", thread=4, host="NA", http_path="/sql", token="t")
    assert len(told) == 3
    assert "locationroot, a key of the profile, is not used" in told[0]
    assert "did you mean 'location_root'?" in told[0]
    assert "did you mean 'threads'?" in told[1]
    assert "not used of the profile: http_path, token. dbt-hudi runs Spark in this process" in told[2]


def node(name: str, raw_code: str = "", package: str = "", **config: Any) -> Any:
    config = {"materialized": "incremental", **config}
    return SimpleNamespace(
        name=name,
        alias=config.get("alias", name),
        schema="analytics",
        database=None,
        resource_type="model",
        raw_code=raw_code,
        package_name=package,
        config=SimpleNamespace(to_dict=lambda omit_none: config),
    )


def macro(name: str, sql: str = "", package: str = "shop") -> Any:
    return SimpleNamespace(name=name, macro_sql=sql, package_name=package)


def resolve(model: Any, config: Any) -> None:
    problems = problems_of(config, model.name)
    if problems:
        raise DbtRuntimeError("; ".join(problems))


def test_all_models_of_a_run_are_answered_together_and_each_key_once(told: list[str]) -> None:
    nodes = [node(f"m{number}", table_tpye="cow") for number in range(5)]
    nodes += [
        node("c", materialized="dynamic_table"),
        node("a", table_type="heap"),
        node("b", partition_by="date(ts)"),
    ]
    with pytest.raises(DbtRuntimeError) as raised:
        check_nodes(nodes, [], resolve)
    for text in (
        "table_type is 'heap'",
        "partition_by has 'date(ts)'",
        "materialized is 'dynamic_table' for c",
    ):
        assert text in raised.value.msg
    places = [
        raised.value.msg.index(text) for text in ("table_type is", "partition_by has", "materialized is")
    ]
    assert places == sorted(places), "by name, in whatever order dbt gives them"
    (line,) = told
    assert "table_tpye, a config of m0, m1, m2 and 2 more, is not used" in line
    assert "did you mean 'table_type'?" in line


BRANCHES: dict[str, tuple[object, str]] = {
    "no list": (
        {"when_matched": {"action": "update"}},
        "legal keys, each with a list of branches: when_matched",
    ),
    "key": ({"when_match": []}, "merge_clauses has 'when_match'"),
    "action": (
        {"when_matched": [{"action": "insert"}]},
        "has action 'insert'; legal values: 'update', 'delete', 'do_nothing'",
    ),
    "error": ({"when_matched": [{"action": "error"}]}, "has action 'error'"),
    "mode": (
        {"when_matched": [{"action": "update", "mode": "by_position"}]},
        "has mode 'by_position'; legal values",
    ),
    "by": ({"when_matched": [{"action": "delete", "by": "source"}]}, "has by 'source'"),
    "condition": ({"when_matched": [{"action": "delete", "condition": 1}]}, "has condition 1; give SQL"),
    "part": ({"when_matched": [{"action": "delete", "wen": "n > 1"}]}, "has 'wen', which is no part"),
    "values": (
        {"when_not_matched": [{"action": "insert", "insert": {"columns": ["id", "n"], "values": ["1"]}}]},
        "has the columns ['id', 'n'] and values ['1']",
    ),
}


@pytest.mark.parametrize("case", BRANCHES)
def test_branches_of_a_merge_that_are_none_are_refused(case: str) -> None:
    branches, message = BRANCHES[case]
    with pytest.raises(DbtRuntimeError, match=re.escape(message)):
        check_nodes([node("a", unique_key="id", merge_clauses=branches)], [], resolve)


def test_a_config_and_a_branch_about_the_same_rows_are_refused() -> None:
    config = {"merge_clauses": {"when_matched": [{"action": "update"}]}, "matched_condition": "true"}
    with pytest.raises(
        DbtRuntimeError, match="merge_clauses and matched_condition are both about rows WHEN MATCHED"
    ):
        check_nodes([node("a", unique_key="id", **config)], [], resolve)


MISSPELT = {
    "uniqe_key": "unique_key",
    "unique_keys": "unique_key",
    "Unique_Key": "unique_key",
    "precombine_feild": "precombine_field",
    "partiton_by": "partition_by",
    "primary_key": "primaryKey",
    "merge_update_colums": "merge_update_columns",
    "incremental_startegy": "incremental_strategy",
    "not_matched_conditon": "not_matched_condition",
}


@pytest.mark.parametrize("key", MISSPELT)
def test_a_misspelt_key_config_stops_the_run(key: str, told: list[str]) -> None:
    with pytest.raises(DbtRuntimeError, match=f"model a: {key} is no config .* '{MISSPELT[key]}'"):
        check_nodes([node("a", **{key: "id"}), node("b", table_type="cow")], [], resolve)
    check_nodes([node("a", materialized="view", **{key: "id"})], [], resolve)
    assert key in told[0], "a view inherits what it does not use"


def test_other_near_names_are_only_warned_of(told: list[str]) -> None:
    reads = [macro("keys", "{{ config.get('unique_keys') }}")]
    check_nodes([node("a", unique_keys="id", partitioned_by="x", partitions=["x"])], reads, resolve)
    assert len(told) == 2


def test_an_empty_key_is_none_as_in_dbt_and_told(told: list[str]) -> None:
    assert not problems_of({"unique_key": ""}) and not problems_of({"unique_key": []})
    check_nodes([node("a", unique_key=""), node("b", unique_key=[])], [], resolve)
    (line,) = told
    assert "unique_key, a config of a, is not used: it is empty" in line


OF_PACKAGES: list[tuple[dict[str, Any], str]] = [
    ({"file_format": "delta"}, "file_format, .* dbt-hudi builds Hudi tables only"),
    ({"table_type": "iceberg"}, "table_type, .* legal values: cow, mor"),
    ({"clustered_by": ["id"], "buckets": 8}, "clustered_by, .* use index"),
    ({"cluster_by": ["date(at)"]}, "cluster_by, .* this is an expression"),
    ({"partition_by": ["date(at)", "id"]}, "partition_by, .* this is an expression"),
    (
        {"partition_by": {"field": "at", "data_type": "timestamp", "granularity": "hour"}},
        "partition_by, .* each of its values would get a folder",
    ),
]


@pytest.mark.parametrize(("config", "said"), OF_PACKAGES)
def test_a_package_may_have_configs_of_other_warehouses(
    config: dict[str, Any], said: str, told: list[str]
) -> None:
    check_nodes([node("a", package="portable", **config), node("b")], [], resolve)
    assert re.search(said, told[0]) and len(told) == len(config)


@pytest.mark.parametrize("config", [each for each, _ in OF_PACKAGES if "cluster_by" not in each])
def test_the_root_project_may_not_have_them(config: dict[str, Any]) -> None:
    with pytest.raises(DbtRuntimeError, match=next(iter(config))):
        check_nodes([node("a", **config)], [], resolve)


def test_a_package_may_have_a_config_that_is_nearly_a_key(told: list[str]) -> None:
    check_nodes([node("a", package="portable", unique_keys="id")], [], resolve)
    assert "unique_keys, a config of a, is not used" in told[0]


def test_days_of_a_package_are_partitions() -> None:
    days = {"partition_by": {"field": "day", "data_type": "date"}, "file_format": ""}
    assert config_of_package(days) == ({"partition_by": "day", "file_format": ""}, {})


@pytest.mark.parametrize("partitions", [{"field": "at", "data_type": "timestamp"}, "date(at)"])
def test_partitions_that_a_package_replaces_are_not_left_out(partitions: Any, told: list[str]) -> None:
    replaces = {"incremental_strategy": "insert_overwrite", "partition_by": partitions}
    with pytest.raises(DbtRuntimeError, match="partition_by"):
        check_nodes([node("a", package="portable", **replaces)], [], resolve)
    assert told == []


def test_what_a_project_reads_itself_is_used(told: list[str]) -> None:
    reads = [macro("stamp", "{{ config.get('owner_team') }}"), macro("x", "{{ config.get('other') }}", "dbt")]
    nodes = [node("a", owner_team="t"), node("b", "select {{ config.require('floor') }}", floor=1)]
    check_nodes(nodes, reads, resolve)
    assert told == []
    check_nodes([node("c", other=1)], reads, resolve)
    assert "other, a config of c, is not used" in told[0]


def test_a_strategy_is_the_projects_own_when_it_has_the_macro() -> None:
    macros = [macro("get_incremental_mine_sql"), macro("get_incremental_merge_sql", package="dbt_spark")]
    assert own_strategies(macros) == {"mine"}
    assert problems_of({"incremental_strategy": "mine"}) == []


def test_the_default_is_the_projects_own_and_no_other_packages() -> None:
    for prefix in ("", "hudi__", "default__"):
        name = f"{prefix}get_incremental_default_sql"
        assert own_strategies([macro(name)], "shop") == {"default"}
        for package in ("dbt", "dbt_spark", "utils"):
            assert own_strategies([macro(name, package=package)], "shop") == frozenset()


@pytest.mark.parametrize("other", ["view", "seed", "table", "incremental"])
def test_two_nodes_whose_names_differ_in_case_alone_are_refused(other: str) -> None:
    def planned(model: Any, config: Any) -> Any:
        config = {"location_root": "/lake", **config}
        return resolve_plan({"config": config}, "analytics", model.alias, PLACES)

    first = node("first", alias="Tab")
    with pytest.raises(DbtRuntimeError) as raised:
        check_nodes([first, node("second", materialized=other, alias="tab")], [], planned)
    assert "model first and model second would be one relation, analytics.tab" in raised.value.msg
    check_nodes([first, node("third", materialized="ephemeral", alias="tab")], [], planned)
