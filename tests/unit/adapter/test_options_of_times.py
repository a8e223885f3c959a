"""How times become folders: what a model says of it reaches a write, and may add to what the table says."""

from __future__ import annotations

import pytest
from hudi_engine.table.write.define.definition import table_properties

from dbt.adapters.hudi.model.engine_options import changed_options
from dbt.adapters.hudi.model.plan import Places, resolve_plan

TYPE, FORMAT = "hoodie.keygen.timebased.timestamp.type", "hoodie.keygen.timebased.output.dateformat"
TIMES = {TYPE: "EPOCHMILLISECONDS", FORMAT: "yyyy/MM/dd"}
CONFIG = {
    "materialized": "incremental",
    "unique_key": "id",
    "partition_by": ["country:simple", "ts:timestamp"],
    "hudi_options": {**TIMES, "hoodie.table.cdc.enabled": "true"},
}
PLAN = resolve_plan({"config": CONFIG}, "analytics", "orders", Places("/warehouse", "/project"))


def test_they_reach_the_writes_of_a_model_and_no_hook() -> None:
    kinds = {"hoodie.datasource.write.partitionpath.field": "country:simple,ts:timestamp"}
    assert {**PLAN.write_options, **TIMES, **kinds} == PLAN.write_options
    assert not {*TIMES, *kinds} & set(PLAN.hook_options)


def test_a_table_of_another_engine_may_leave_them_out_and_contradict_none() -> None:
    ours = dict(table_properties(schema=None, **PLAN.definition).properties)
    theirs = {**ours, "hoodie.table.timeline.timezone": "LOCAL"}
    assert changed_options(PLAN.definition, PLAN.given_options, ours) == {}
    for stored, changed in ((ours, {TYPE: (TIMES[TYPE], "nothing")}), (theirs, {})):
        del stored[TYPE]
        assert changed_options(PLAN.definition, PLAN.given_options, stored) == changed
    theirs[FORMAT] = "yyyy"
    assert changed_options(PLAN.definition, PLAN.given_options, theirs) == {FORMAT: ("yyyy/MM/dd", "yyyy")}


@pytest.mark.parametrize(("stored", "given", "fits"), [("-08:00", "GMT-8", True), ("UTC", "GMT-8", False)])
def test_a_zone_unknown_to_java_may_be_replaced(stored: str, given: str, fits: bool) -> None:
    zone = "hoodie.keygen.timebased.output.timezone"
    config = {**CONFIG, "hudi_options": {**TIMES, zone: given}}
    plan = resolve_plan({"config": config}, "analytics", "orders", Places("/warehouse", "/project"))
    ours = dict(table_properties(schema=None, **plan.definition).properties)
    for properties in (ours, {**ours, "hoodie.table.timeline.timezone": "LOCAL"}):
        changed = changed_options(plan.definition, plan.given_options, {**properties, zone: stored})
        assert changed == ({} if fits else {zone: (given, stored)})


@pytest.mark.parametrize("given", ["6", "9"])
@pytest.mark.parametrize("made_with", ["6", "8", "9"])
def test_a_table_keeps_its_version_whatever_its_model_names(made_with: str, given: str) -> None:
    more = {
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
    }
    plans = [
        resolve_plan(
            {"config": {**CONFIG, "hudi_options": {**TIMES, **more, "hoodie.write.table.version": version}}},
            "analytics",
            "orders",
            Places("/warehouse", "/project"),
        )
        for version in (made_with, given)
    ]
    stored = dict(table_properties(schema=None, **plans[0].definition).properties)
    assert changed_options(plans[1].definition, plans[1].given_options, stored) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.table.timeline.timezone", "America/New_York"),
        ("hoodie.write.auto.upgrade", "true"),
        ("hoodie.write.table.version", "9"),
    ],
)
def test_upgrades_and_the_zone_of_a_table_of_another_engine_are_for_writes(key: str, value: str) -> None:
    config = {"materialized": "incremental", "unique_key": "id", "hudi_options": {key: value}}
    plan = resolve_plan({"config": config}, "analytics", "orders", Places("/warehouse", "/project"))
    stored = dict(table_properties(schema=None, **PLAN.definition).properties)
    stored["hoodie.table.timeline.timezone"] = "LOCAL"

    assert plan.write_options[key] == plan.hook_options[key] == value
    assert key not in changed_options(plan.definition, plan.given_options, stored)
