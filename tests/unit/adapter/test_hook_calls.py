"""Hooks that cannot work are told by their text, before a run writes anything."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dbt.include.hudi
from dbt.adapters.hudi.model.hook_calls import KnownMacros, hook_problems
from dbt.adapters.hudi.model.plan import ModelPlan, Places, resolve_plan

_MACRO = re.compile(r"\{%-?\s*macro\s+(\w+)\(.*?%\}.*?\{%-?\s*endmacro\s*-?%\}", re.DOTALL)


def macros() -> list[Any]:
    folder = Path(dbt.include.hudi.__file__).parent / "macros"
    texts = "\n".join(path.read_text("utf-8") for path in folder.rglob("*.sql"))
    return [macro(found[1], found[0], "dbt_hudi") for found in _MACRO.finditer(texts)]


def macro(name: str, text: str = "", package: str = "shop") -> Any:
    return SimpleNamespace(name=name, macro_sql=text or f"{{% macro {name}(table) %}}", package_name=package)


def plan(**config: Any) -> ModelPlan:
    model = {"config": {"materialized": "incremental", **config}}
    return resolve_plan(model, "analytics", "m", Places("/w"))


def problems(hook: str, *, of: ModelPlan | None = None, more: Any = ()) -> list[str]:
    config = SimpleNamespace(pre_hook=[], post_hook=[SimpleNamespace(sql=hook)])
    return hook_problems(SimpleNamespace(name="m", config=config), of, KnownMacros.of([*macros(), *more]))


COW, MOR = {"unique_key": "id"}, {"unique_key": "id", "table_type": "mor"}
BUCKETS = {**MOR, "index": {"type": "bucket", "buckets": 4}}


@pytest.mark.parametrize(
    ("config", "hook", "said"),
    [
        (COW, "{{ hudi_compact(this) }}", "a copy-on-write table has no log files; leave the hook out, or set"),
        (COW, "{% do hudi_compact(table=this) %}", "a copy-on-write table has no log files"),
        (BUCKETS, "{{ hudi_cluster(this, ['id']) }}", "does not work with a bucket index"),
        (COW, "{{ hudi_delete_partitions(this, ['a']) }}", "the model has no partition_by"),
        (MOR, "{{ hudi_compact(this, 'foo') }}", "op of hudi_compact is 'foo'; legal values: run, schedule, sh"),
        (MOR, "{{ hudi_compact(this, op='foo') }}", "op of hudi_compact is 'foo'"),
        (COW, "{{ hudi_clean(this, retain_commits='three') }}", "retain_commits of hudi_clean is 'three'; legal"),
        (COW, "{{ hudi_clean(this, -1) }}", "retain_commits of hudi_clean is -1; legal values: a whole number"),
        (COW, "{{ hudi_archive(this, 30, 20) }}", "max_commits is 20 and min_commits is 30; the maximum must"),
        (COW, "{{ hudi_cluster(this, ['id'], strategy='zigzag') }}", "strategy of hudi_cluster is 'zigzag'; leg"),
        (COW, "{{ hudi_repair(this, kinds=['foo']) }}", "kinds of hudi_repair is 'foo'; legal values: "),
        (COW, "{{ hudi_clean(this, options={'hoodie.clean.policy': 'x'}) }}", "hoodie.clean.policy is 'x'; leg"),
        (COW, "{{ hudi_repair(this, kinds=5) }}", "kinds of hudi_repair is 5; legal values: "),
        (MOR, "{{ hudi_compact(this, op=1) }}", "op of hudi_compact is 1; legal values: run, schedule, show"),
        (BUCKETS, "{{ hudi_cluster(this, dry_run=false, op='schedule') }}", "does not work with a bucket index"),
        (COW, "{{ hudi_clean(this, options={'hoodie.clean.polic': 'x'}) }}", "hoodie.clean.policy"),
        (COW, "{{ hudi_clean(this, options='x') }}", "options of hudi_clean is 'x'; give a mapping"),
        (COW, "{{ hudi_savepont(this) }}", "no macro hudi_savepont; did you mean 'hudi_savepoint'?"),
        (COW, "{{ hudi_zzz(this) }}", "no macro hudi_zzz; there are hudi_"),
        (None, "{{ hudi_clean(this) }}", "is for Hudi tables, and the model becomes none (materialized: view)"),
    ],
)  # fmt: skip
def test_a_hook_that_cannot_work_is_told_with_its_node_and_text(config, hook, said) -> None:
    (told,) = problems(hook, of=None if config is None else plan(**config))
    assert told.startswith("m, post-hook 1 of 1: ") and told.endswith(f". The hook is {hook}")
    assert said in told


@pytest.mark.parametrize(
    "hook",
    [
        "{{ hudi_compact(this, op='show') }}",
        "{{ hudi_compact(ref('other')) }}",
        "{{ hudi_compact('analytics.other') }}",
        "{{ hudi_compact(this) if var('merge_on_read', false) }}",
        "{% if is_incremental() %}{{ hudi_compact(this) }}{% endif %}",
        "{% for each in [] %}{{ hudi_compact(this) }}{% endfor %}",
        "{{ var('merge_on_read', false) and hudi_compact(this) }}",
        "{{ hudi_clean(this, retain_commits=var('kept')) }}",
        "{{ hudi_clean(this, retain_commits=none) }}",
        "{{ hudi_clean(this, options={'hoodie.clean.policy': var('policy')}) }}",
        "{{ hudi_archive(this, 20, 30) }}",
        "{{ hudi_cluster(this, ['id'], strategy='z-order', op='schedule') }}",
        "{{ hudi_own(this, 'anything') }}",
        "{{ hudi_archive(this, min_commits=40) }}",
        "{{ hudi_archive(this, min_commits=40, options={'hoodie.keep.max.commits': 60}) }}",
        "{{ hudi_clean(this, retain_commits='3') }}",
        "{% set this = ref('other') %}{{ hudi_compact(this) }}",
        "{% set hudi_quoted = adapter.quote %}select {{ hudi_quoted('id') }}",
        "{% with hudi_quoted = adapter.quote %}select {{ hudi_quoted('id') }}{% endwith %}",
        "{# {{ hudi_compact(this) }} #}{% raw %}{{ hudi_compact(this) }}{% endraw %}select 1",
        "{{ audit_helper.compare(this) }} {{ hudi_clean(this",
        "delete from {{ this }} where id < 3",
    ],
)
def test_what_may_work_is_left_to_the_hook(hook) -> None:
    assert problems(hook, of=plan(**COW), more=[macro("hudi_own")]) == []


def test_macros_of_a_project_are_its_own_matter_on_views_and_where_they_replace_the_adapters() -> None:
    assert problems("{{ hudi_own(this) }}", more=[macro("hudi_own")]) == []
    assert problems("{{ hudi_compact(this) }}", of=plan(**COW), more=[macro("hudi_compact")]) == []


def test_compaction_and_clustering_fit_a_merge_on_read_table_without_buckets() -> None:
    for hook in ("{{ hudi_compact(this) }}", "{{ hudi_cluster(this, ['id']) }}"):
        assert problems(hook, of=plan(**MOR)) == []
    for asks in (
        "op='show'",
        "dry_run=true",
        "op=var('op')",
        "dry_run=var('dry')",
        "**var('how')",
        "*var('how')",
    ):
        assert problems(f"{{{{ hudi_cluster(this, {asks}) }}}}", of=plan(**BUCKETS)) == []


def test_every_hook_of_a_node_is_looked_at() -> None:
    wrong = SimpleNamespace(sql="{{ hudi_compact(this) }}")
    config = SimpleNamespace(pre_hook=[wrong], post_hook=[SimpleNamespace(sql="select 1"), wrong])
    told = hook_problems(SimpleNamespace(name="m", config=config), plan(**COW), KnownMacros.of(macros()))
    assert [each.split(":")[0] for each in told] == ["m, pre-hook 1 of 1", "m, post-hook 2 of 2"]
