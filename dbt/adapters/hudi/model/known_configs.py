"""Every config of a model, seed or snapshot that dbt-hudi has a word on: used, refused, or said to have no effect.

A config that would change rows and is not there is refused; one that only tunes another system is named once and the
run goes on. What stands in none of the tables is taken for a misspelling, or for a config of the project's own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hudi_engine.format.spelling import letters_apart, nearest

OTHER_SPELLINGS = ("primaryKey", "preCombineField", "precombineKey", "preCombineKey")
"""Names that dbt-spark's users and Hudi's SQL know some configs by; who writes nearly one of ours is not sent to them."""

# The clauses of a merge.
CLAUSES: tuple[str, ...] = (
    "matched_condition",
    "not_matched_condition",
    "not_matched_by_source_action",
    "not_matched_by_source_condition",
    "skip_matched_step",
    "skip_not_matched_step",
    "merge_update_set_expressions",
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
    "file_format",
    "table_type",
    "type",
    "record_key",
    "primaryKey",
    "precombine_field",
    "merge_mode",
    "ordering_field",
    "preCombineField",
    "precombineKey",
    "preCombineKey",
    "partition_by",
    "hive_style_partitioning",
    "index",
    "options",
    "hudi_options",
    "tblproperties",
    "merge_update_columns",
    "merge_exclude_columns",
    "skip_unchanged",
    "as_of",
    *CLAUSES,
    "merge_with_schema_evolution",
    "incremental_predicates",
    "predicates",
    "compaction",
    "clean",
    "archive",
    "clustering",
    "cluster_by",
    "audit",
    "pre_commit_tests",
    "location_root",
    "catalog_name",
    "clone_copy",
    "conflict_retries",
)
# Read by dbt itself, on every adapter.
OF_DBT: tuple[str, ...] = (
    "access",
    "alias",
    "batch_size",
    "begin",
    "check_cols",
    "column_types",
    "concurrent_batches",
    "config_keys_defaults",
    "config_keys_used",
    "contract",
    "database",
    "dbt_valid_to_current",
    "delimiter",
    "docs",
    "enabled",
    "event_time",
    "freshness",
    "full_refresh",
    "group",
    "hard_deletes",
    "incremental_strategy",
    "invalidate_hard_deletes",
    "lookback",
    "materialized",
    "meta",
    "meta_keys_defaults",
    "meta_keys_used",
    "on_configuration_change",
    "on_schema_change",
    "packages",
    "persist_docs",
    "post-hook",
    "post_hook",
    "pre-hook",
    "pre_hook",
    "quote_columns",
    "quoting",
    "schema",
    "snapshot_meta_column_names",
    "snapshot_table_column_names",
    "sql_header",
    "static_analysis",
    "strategy",
    "tags",
    "target_database",
    "target_schema",
    "unique_key",
    "updated_at",
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
_NO_USERS = "open-source Spark knows no users; who may read or write is said where the files of location_root are kept"
_PLACE = "location_root says where a model's table is: <location_root>/<alias>"
_INDEX = "Hudi finds rows by their key; see the index config"
_LAYOUT = (
    "use cluster_by, which orders rows in files; partition_by and the index config say how they are placed"
)
_TUNING = "spark_conf of the profile sets up Spark"
_PARQUET = "use hudi_options: {hoodie.parquet.compression.codec: zstd}"
_TAGS = "use meta, or tblproperties for the table's entry in the catalog"
# Of other adapters; nothing of the table's rows depends on them.
SAID: Mapping[str, str] = {
    **dict.fromkeys(
        ("external_location", "custom_location", "s3_data_dir", "s3_data_naming", "location"), _PLACE
    ),
    **dict.fromkeys(("bucketed_by", "bucket_count"), REFUSED["buckets"]),
    **dict.fromkeys(("liquid_clustered_by", "auto_liquid_cluster", "sort", "sort_type", "dist"), _LAYOUT),
    **dict.fromkeys(
        ("optimize", "auto_optimize"), "compaction and hudi_compact merge the logs of merge-on-read tables"
    ),
    **dict.fromkeys(("compression", "parquet_compression"), _PARQUET),
    **dict.fromkeys(("query_tags", "query_tag", "labels", "lf_tags_config", "policy_tags"), _TAGS),
    **dict.fromkeys(
        (
            "submission_method",
            "python_job_config",
            "job_cluster_config",
            "cluster_id",
            "create_notebook",
            "timeout",
        ),
        "Python models run in dbt's own process",
    ),
    **dict.fromkeys(("grants", "copy_grants"), _NO_USERS),
    **dict.fromkeys(
        ("hours_to_expiration", "partition_expiration_days"), "clean removes old files, rows stay"
    ),
    "partitioned_by": "use partition_by",
    "cluster_columns": "use cluster_by",
    "zorder": "use cluster_by with clustering: {order: z-order}",
    "automatic_clustering": "use clustering: true",
    "vacuum": "clean and hudi_clean remove old files",
    "indexes": _INDEX,
    "format": "dbt-hudi writes Hudi tables of Parquet files",
    "include_full_name_in_path": "the folder of a table is <location_root>/<schema>/<name>",
    "transient": "a table is a Hudi table, with its history",
    "secure": "open-source Spark has no secure views",
    "unlogged": "every write of a Hudi table is a commit",
    "backup": "savepoints keep a state of a table",
    "snowflake_warehouse": _TUNING,
    "require_partition_filter": "any query may read a whole table",
    "kms_key_name": "encryption is set up where the files are",
    "use_safer_relation_operations": "a table is replaced in one commit",
    "incremental_apply_config_changes": "configs of a table change with --full-refresh",
    "unique_tmp_table_suffix": "an incremental run makes a temporary view of a name of its own",
    "force_batch": "a write is one commit",
    "native_drop": "dropping a table removes its files",
    "auto_refresh": "a table is refreshed when dbt runs its model",
}
_SAID_PREFIXES: Mapping[str, str] = {
    "databricks_": "it is of dbt-databricks; " + _TUNING,
    "snowflake_": "it is of dbt-snowflake; " + _TUNING,
    "athena_": "it is of dbt-athena; " + _TUNING,
    "glue_": "it is of dbt-glue; " + _TUNING,
}
_OF_DBT_ITSELF = "__dbt_internal_"


def refused_configs(config: Mapping[str, object]) -> list[str]:
    """Say which configs of a node would change its table and are not there, one text for each."""
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
        key: _word_on(key)
        for key, value in config.items()
        if key not in known and _is_set(value) and not key.startswith(_OF_DBT_ITSELF)
    }
    if config.get("unique_key") == "":
        found["unique_key"] = (
            "it is empty, which dbt takes for none, so that the table has no key; name a column, or leave it out"
        )
    properties = config.get("tblproperties")
    of_delta = (
        [key for key in properties if str(key).startswith("delta.")]
        if isinstance(properties, Mapping)
        else []
    )
    if of_delta:
        found["tblproperties"] = (
            f"{', '.join(of_delta)} would be kept beside the table and change nothing: it is a Hudi table, which has "
            "hudi_options"
        )
    return found


def misspelt_configs(unused: Mapping[str, str]) -> list[str]:
    """Return a problem for each unused config whose name is one or two letters away from a key, ordering or partition config.

    Args:
        unused: What `unused_configs` returns.
    """
    problems = []
    for key in unused:
        near = [each for each in DECIDING if letters_apart(key, each) <= _MAX_LETTERS]
        if near and key not in (*SAID, *DECIDING):
            problems.append(
                f"{key} is no config of dbt or dbt-hudi; did you mean {near[0]!r}? Correct it, or put a config of your own under "
                "meta"
            )
    return problems


def _word_on(key: str) -> str:
    """Say what is wrong with a config that nobody reads, and which was meant."""
    if key.startswith("hoodie."):
        return (
            f"options of Hudi stand together: hudi_options: {{{key}: ...}}, in dbt_project.yml +hudi_options:"
        )
    told = SAID.get(key) or next(
        (told for prefix, told in _SAID_PREFIXES.items() if key.startswith(prefix)), None
    )
    if told is not None:
        return told
    own = [each for each in (*USED, *OF_DBT) if each not in OTHER_SPELLINGS]
    near = nearest(key, own) or nearest(key, OTHER_SPELLINGS)
    near = near or nearest(key, (*REFUSED, *REFUSED_OF_MERGES, *SAID))
    if near is not None:
        return f"no config of dbt or dbt-hudi has this name; did you mean {near!r}?"
    return "no config of dbt or dbt-hudi has this name; correct it, or put a config of your own under meta"


def _is_set(value: object) -> bool:
    """Whether a config says something: dbt fills in None, and empty values mean the same."""
    return value is not None and value != "" and value != [] and value != {}
