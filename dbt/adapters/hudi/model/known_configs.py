"""Which configs of a model, seed or snapshot are used, which are refused, and which have no effect and are warned of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.config.options import laid_over
from hudi_engine.format.spelling import did_you_mean, letters_apart, nearest

OTHER_SPELLINGS = ("primaryKey", "preCombineField", "precombineKey", "preCombineKey")
"""Names that dbt-spark and Hudi's SQL have for some configs; a misspelt name is answered with ours first."""

# The clauses of a merge.
CLAUSES: tuple[str, ...] = (
    "matched_condition",
    "not_matched_condition",
    "not_matched_by_source_action",
    "not_matched_by_source_condition",
    "skip_matched_step",
    "skip_not_matched_step",
    "merge_update_set_expressions",
    "merge_clauses",
    "source_alias",
    "target_alias",
)
# Decide which rows a run writes: without one of them it would write wrong rows, so that a name close to one is refused.
DECIDING: tuple[str, ...] = (
    "unique_key",
    "precombine_field",
    "partition_by",
    "record_key",
    "ordering_field",
    "primaryKey",
    "preCombineField",
    "precombineKey",
    "merge_mode",
    "merge_update_columns",
    "merge_exclude_columns",
    "incremental_strategy",
    "incremental_predicates",
    *(each for each in CLAUSES if not each.endswith("_alias")),
)
_MAX_LETTERS = 2
# Read by dbt-hudi, in all their spellings.
USED: tuple[str, ...] = (
    *CLAUSES,
    *"""
    file_format table_type type record_key primaryKey precombine_field merge_mode ordering_field preCombineField
    precombineKey preCombineKey partition_by hive_style_partitioning index options hudi_options tblproperties
    merge_update_columns merge_exclude_columns skip_unchanged as_of merge_with_schema_evolution
    incremental_predicates predicates compaction clean archive clustering cluster_by audit wap pre_commit_tests
    location_root catalog_name clone_copy conflict_retries job_execution_timeout_seconds
    """.split(),
)
# Read by dbt itself, on every adapter.
OF_DBT: tuple[str, ...] = (
    *"""
    access alias batch_size begin check_cols column_types concurrent_batches config_keys_defaults config_keys_used
    contract database dbt_valid_to_current delimiter docs enabled event_time freshness full_refresh group
    hard_deletes incremental_strategy invalidate_hard_deletes lookback materialized meta meta_keys_defaults
    meta_keys_used on_configuration_change on_schema_change packages persist_docs post-hook post_hook pre-hook
    pre_hook quote_columns quoting schema snapshot_meta_column_names snapshot_table_column_names sql_header
    static_analysis strategy tags target_database target_schema unique_key updated_at
    """.split(),
)
# Would change which rows an incremental run writes, so a run without them would leave wrong data. Nodes of other
# materializations inherit them from their folder and do not use them.
REFUSED_OF_MERGES: Mapping[str, str] = {
    "update_condition": "use matched_condition",
    "insert_condition": "use not_matched_condition",
    "delete_condition": "use not_matched_by_source_action for rows the model lacks, or select _hoodie_is_deleted",
    "replace_where": "use incremental_strategy 'replace_where' with incremental_predicates",
}
# Would change what any table is.
REFUSED: Mapping[str, str] = {
    "clustered_by": "use index: {type: bucket, buckets: n} for a hashed layout",
    "buckets": "use index: {type: bucket, buckets: n} for a hashed layout",
}
_PLACE = "use location_root; a model's table is at <location_root>/<alias>"
_LAYOUT = "use cluster_by, which orders rows in files; partition_by and index say how they are placed"
_TUNING = "spark_conf of the profile sets up Spark"
# Configs of other adapters that have a counterpart; docs/moving.md lists more.
OF_OTHER_ADAPTERS: Mapping[str, str] = {
    **dict.fromkeys(("external_location", "custom_location", "s3_data_dir", "location"), _PLACE),
    **dict.fromkeys(("bucketed_by", "bucket_count"), REFUSED["buckets"]),
    **dict.fromkeys(("liquid_clustered_by", "auto_liquid_cluster", "sort", "dist"), _LAYOUT),
    **dict.fromkeys(
        ("optimize", "auto_optimize"), "compaction and hudi_compact merge the logs of merge-on-read tables"
    ),
    "partitioned_by": "use partition_by",
    "cluster_columns": "use cluster_by",
    "zorder": "use cluster_by with clustering: {order: z-order}",
    "automatic_clustering": "use clustering: true",
    "vacuum": "clean and hudi_clean remove old files",
    "compression": "use hudi_options: {hoodie.parquet.compression.codec: zstd}",
    "indexes": "Hudi finds rows by their key; see the index config",
    "format": "dbt-hudi writes Hudi tables of Parquet files",
    "grants": "open-source Spark knows no users; set rights where the files of location_root are kept",
}
_PREFIXES = ("databricks_", "snowflake_", "athena_", "glue_")
_OF_DBT_ITSELF = "__dbt_internal_"


def refused_configs(config: Mapping[str, object]) -> list[str]:
    """Return a problem for each config that would change a table and is not supported."""
    refused = {**REFUSED, **(REFUSED_OF_MERGES if config.get("materialized") == "incremental" else {})}
    return [
        f"{key} is {value!r}, but dbt-hudi does not have this config; {refused[key]}"
        for key, value in config.items()
        if key in refused and _is_set(value) and value is not False
    ]


def unused_configs(config: Mapping[str, object], used_elsewhere: Collection[str] = ()) -> dict[str, str]:
    """Name the configs that nothing reads, each with what to do."""
    known = {*USED, *OF_DBT, *REFUSED, *REFUSED_OF_MERGES, *used_elsewhere}
    found = {
        key: _hint(key)
        for key, value in config.items()
        if key not in known and _is_set(value) and not key.startswith(_OF_DBT_ITSELF)
    }
    if config.get("unique_key") == "":
        found["unique_key"] = (
            "it is empty, which dbt takes for none, so that the table has no key; name a column, or leave it out"
        )
    return found


def misspelt(name: str, legal: Iterable[str]) -> str | None:
    """Return the first legal name that is at most two letters away from a name, in any case of letters; None without one."""
    return next((each for each in legal if letters_apart(name, each) <= _MAX_LETTERS), None)


def misspelt_configs(unused: Mapping[str, str]) -> list[str]:
    """Return a problem for each unused config whose name is one or two letters away from a key, ordering or partition config.

    Args:
        unused: What `unused_configs` returns.
    """
    problems = []
    for key in unused:
        near = misspelt(key, DECIDING)
        if near and key not in (*OF_OTHER_ADAPTERS, *DECIDING):
            problems.append(
                f"{key} is no config of dbt or dbt-hudi; did you mean {near!r}? Correct it, or put a config of your own under "
                "meta"
            )
    return problems


def _hint(key: str) -> str:
    """Return what is wrong with a config that nothing reads, and which was meant."""
    if key.startswith("hoodie."):
        return f"options of Hudi go together: hudi_options: {{{key}: ...}}, in dbt_project.yml +hudi_options:"
    if key in OF_OTHER_ADAPTERS:
        return OF_OTHER_ADAPTERS[key]
    if key.startswith(_PREFIXES):
        return f"it is of dbt-{key.partition('_')[0]}; {_TUNING}"
    own = [each for each in (*USED, *OF_DBT) if each not in OTHER_SPELLINGS]
    near = nearest(key, own) or nearest(key, (*OTHER_SPELLINGS, *REFUSED, *REFUSED_OF_MERGES))
    if near is not None:
        return f"no config of dbt or dbt-hudi has this name; did you mean {near!r}?"
    return "no config of dbt or dbt-hudi has this name; correct it, or put a config of your own under meta"


def _is_set(value: object) -> bool:
    """Whether a config is set: dbt fills in None, and empty values mean the same."""
    return value is not None and value != "" and value != [] and value != {}


PLACE = "hudi"
_OF_KEYS = ("options", "hudi_options", "tblproperties")
"""Configs that are put together key by key."""


def with_meta(config: Mapping[str, object], node: str) -> dict[str, object]:
    """Return a node's config with what is under ``meta: {hudi: ...}``; a config given directly wins."""
    meta = config.get("meta")
    given = meta.get(PLACE) if isinstance(meta, Mapping) else None
    if given is None:
        return dict(config)
    if not isinstance(given, Mapping):
        raise DbtRuntimeError(
            f"meta.{PLACE} of {node} is {given!r}; legal is a mapping of configs, such as {{precombine_field: updated_at}}"
        )
    for key in given:
        if key not in USED:
            raise DbtRuntimeError(f"meta.{PLACE} of {node} has the key {key!r}, which {_meta_hint(str(key))}")
    direct = {key: value for key, value in config.items() if value is not None}
    merged = {**config, **given, **direct}
    for key in _OF_KEYS:
        below, above = given.get(key), direct.get(key)
        if isinstance(below, Mapping) and isinstance(above, Mapping):
            merged[key] = laid_over(below, above)
    return merged


def _meta_hint(key: str) -> str:
    if key in OF_DBT:
        return "is a config of dbt: give it next to meta"
    if key.startswith("hoodie."):
        return f"belongs in options: meta: {{{PLACE}: {{options: {{{key}: ...}}}}}}"
    return f"is no config of dbt-hudi; {did_you_mean(key, USED)}docs/model-configs.md has their list"
