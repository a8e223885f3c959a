"""One model's whole configuration, checked at once."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.write_options import IndexOptions, WriteOptions
from hudi_engine.format.config.enums import IndexType
from hudi_engine.format.config.options import laid_over
from hudi_engine.spark.catalog.entry import kept_name_problems, property_problems
from hudi_engine.table.lookup.kinds import MOVES

from dbt.adapters.hudi.model.audit import AuditConfig, PlannedTest, read_audit
from dbt.adapters.hudi.model.engine_options import (
    engine_problems,
    of_times,
    option_problems,
    profile_only_problems,
    write_only,
)
from dbt.adapters.hudi.model.known_configs import PLACE, refused_configs
from dbt.adapters.hudi.model.merge import ONE_ROW_A_KEY, MergeConfig, read_merge
from dbt.adapters.hudi.model.reading import (
    Problems,
    absolute_location,
    boolean,
    choice,
    location_problems,
    mapping,
    option_text,
    whole_number,
)
from dbt.adapters.hudi.model.services import ServicesConfig, in_words_of_a_model, read_services
from dbt.adapters.hudi.model.table import ModelTable, RawConfig, read_model_table

INDEX_TYPES = tuple(each.value.lower() for each in IndexType)
_TYPE = IndexOptions.TYPE.key
_MOVES: Mapping[str, str] = {kind.value: option.key for kind, option in MOVES.items()}
_BUCKET_KEYS: Mapping[str, str] = {
    "buckets": IndexOptions.BUCKETS.key,
    "hash_field": IndexOptions.HASH_FIELD.key,
}


TIME_LIMIT = "job_execution_timeout_seconds"


def time_limit(config: Mapping[str, Any]) -> int:
    """Return the seconds that a node may run, 0 for no limit; a value that makes no sense is refused with the whole config."""
    of_hudi = (config.get("meta") or {}).get(PLACE)
    under_meta = of_hudi.get(TIME_LIMIT) if isinstance(of_hudi, Mapping) else None
    given = config.get(TIME_LIMIT)
    return whole_number(TIME_LIMIT, under_meta if given is None else given, Problems())


@dataclass(frozen=True)
class IndexConfig:
    """The index.

    Args:
        type: Hudi's index type, None for a table without a key.
    """

    type: str | None = None
    settings: tuple[tuple[str, str], ...] = ()

    def options(self) -> dict[str, str]:
        """Engine options of the index."""
        if self.type is None:
            return {}
        return {_TYPE: self.type, **dict(self.settings)}


def read_index(raw: RawConfig, table: ModelTable) -> IndexConfig:
    """Return the configured index, or the one that the key implies.

    dbt's ``unique_key`` means unique in the table, so a key that lacks a partition column gets a global index whose rows
    move when their partition changes. A key that holds every partition column cannot move.
    """
    problems = raw.problems
    given, settings = _given_index(raw, problems)
    if not table.record_key:
        if given is not None:
            problems.add(
                f"index is {given.lower()!r} but the model has no unique_key; give the key, or leave index out"
            )
        return IndexConfig()
    if given is None:
        lowered = {column.lower() for column in table.record_key}
        partition_local = all(column.lower() in lowered for column in table.partition_columns)
        given = (IndexType.SIMPLE if partition_local else IndexType.GLOBAL_SIMPLE).value
    move_key = _MOVES.get(given)
    if move_key is not None and move_key not in raw.options:
        settings = {move_key: "true", **settings}
    return IndexConfig(type=given, settings=tuple(sorted(settings.items())))


def _given_index(raw: RawConfig, problems: Problems) -> tuple[str | None, dict[str, str]]:
    """Return the index and its settings from the config, else from the options; both may be given when they agree."""
    configured = raw.config.get("index")
    from_options = raw.options.pop(_TYPE, None)
    settings: dict[str, str] = {}
    if isinstance(configured, Mapping):
        for key, value in configured.items():
            if key in _BUCKET_KEYS:
                settings[_BUCKET_KEYS[key]] = option_text(value)
            elif key != "type":
                problems.add(
                    f"index has the unknown key {key!r}; legal keys: type, {', '.join(_BUCKET_KEYS)}"
                )
        configured = configured.get("type")
        if configured is None:
            problems.add(f"index lacks its type; legal values: {', '.join(INDEX_TYPES)}")
    word = choice("index", configured if configured is not None else from_options, INDEX_TYPES, problems)
    if configured is not None and from_options is not None and str(from_options).lower() != word:
        problems.add(f"index is {configured!r} but options say {_TYPE} = {from_options!r}; give one of them")
    if settings and word not in (None, IndexType.BUCKET.value.lower()):
        problems.add(
            f"index settings {', '.join(_BUCKET_KEYS)} belong to type bucket, but the type is {word!r}"
        )
    return (word.upper() if word else None), settings


SNAPSHOT_KEY = "dbt_scd_id"
_COMBINE = WriteOptions.COMBINE_BEFORE_INSERT.key
_OF_TABLE, _OF_ORDERING = "table_type, partition_by and the like", "unique_key and precombine_field"
OPTIONS_OF_MODEL = "options"
_NAME = re.compile(r"^\w+$", re.ASCII)


@dataclass(frozen=True)
class Places:
    """Where tables of a profile live.

    Args:
        project_root: Folder a model's own relative ``location_root`` counts from.
    """

    location_root: str
    project_root: str | None = None

    def default_base(self, schema: str, name: str) -> str:
        """Folder of a table without a location of its own; Spark keeps names in lower case."""
        return f"{self.schema_folder(schema)}/{name.lower()}"

    def schema_folder(self, schema: str) -> str:
        """Folder of a schema."""
        return f"{self.location_root}/{schema.lower()}"


@dataclass(frozen=True)
class ModelPlan:
    """A model's table and writes.

    Args:
        own_location: The folder comes from the model, not from the profile.
        given_options: ``hoodie.*`` options the model gives itself.
        properties: Other table properties, kept in the catalog.
        run_notes: Extra metadata of the commits about the run.
        is_empty_run: Whether dbt asks for columns and no rows (``--empty``).
        sample: First moment of the run's ``--sample`` and the first after it; None where the run takes all rows.
        resumes: Whether it is a batch that is run again, of whose run other batches are in the table.
        audit: Its ``audit`` and ``pre_commit_tests``.
        tests: The tests that these name, each compiled when it runs.
        clone_copy: Whether its clone may copy bytes where files cannot be shared.
        conflict_retries: How often the query is evaluated again when another writer overtook its write.
        error_table: Whether rows that cannot be written go to the error table, and the others are committed.
    """

    schema: str
    name: str
    base: str
    own_location: bool
    table: ModelTable
    index: IndexConfig
    merge: MergeConfig
    services: ServicesConfig
    given_options: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    run_notes: Mapping[str, str] = field(default_factory=dict)
    is_empty_run: bool = False
    sample: tuple[datetime, datetime] | None = None
    resumes: bool = False
    audit: AuditConfig = AuditConfig()
    tests: tuple[PlannedTest, ...] = ()
    clone_copy: bool = False
    conflict_retries: int = 0
    error_table: bool = False

    @property
    def named_columns(self) -> dict[str, tuple[str, ...]]:
        """The columns each config names, which the model has to select."""
        return {
            "unique_key": tuple(dict.fromkeys((*self.table.record_key, *self.merge.delete_by))),
            "event_time": () if self.merge.window is None else (self.merge.window.column,),
            "partition_by": self.table.partition_by,
            "precombine_field": self.table.precombine_field,
            "cluster_by": self.services.cluster_by,
            "merge_update_columns": self.merge.update_columns or (),
            "merge_exclude_columns": self.merge.exclude_columns or (),
        }

    @property
    def layers(self) -> dict[str, Mapping[str, str]]:
        """Options of creating the table by the configs that they come from; the later ones win.

        With an ordering, of rows with one key the newest is kept.
        """
        merges = (
            self.table.record_key and self.table.precombine_field and self.merge.strategy in ONE_ROW_A_KEY
        )
        return {
            _OF_TABLE: self.table.options(),
            _OF_ORDERING: {_COMBINE: "true"} if merges else {},
            "index": self.index.options(),
            "compaction, clean, archive, clustering": self.services.options(),
            "incremental_strategy and the like": self.merge.options(),
            OPTIONS_OF_MODEL: self.given_options,
        }

    @property
    def options(self) -> dict[str, str]:
        """Options of index, services and the model itself, which come last; the profile's are not among them."""
        of_writes = [given for name, given in self.layers.items() if name not in (_OF_TABLE, _OF_ORDERING)]
        return laid_over(*of_writes, self.run_notes)

    @property
    def write_options(self) -> dict[str, str]:
        """Options of a write to a table that exists: what the table itself fixes is left out, but for its folders of times."""
        return laid_over(self.table.kinds(), of_times(self.options), write_only(self.options))

    @property
    def hook_options(self) -> dict[str, str]:
        """Options of what else is done to the table while the node runs, by hooks and by macros of the user's own."""
        return write_only(laid_over(self.services.options(), self.given_options))

    @property
    def create_options(self) -> dict[str, str]:
        """Options of creating or rebuilding the table."""
        return laid_over(*self.layers.values(), self.run_notes)

    @property
    def definition(self) -> dict[str, Any]:
        """The table's definition for the engine."""
        return {
            "name": self.name,
            "record_key": list(self.table.record_key) or None,
            "precombine_field": list(self.table.precombine_field) or None,
            "partition_by": list(self.table.partition_by) or None,
            "table_type": self.table.table_type,
            "options": self.create_options,
        }

    def definition_with(self, options: Mapping[str, str]) -> dict[str, Any]:
        """Return the definition with the options of the profile, before those of the model."""
        return {**self.definition, "options": laid_over(options, self.create_options)}


def resolve_plan(
    model: Mapping[str, object],
    schema: str,
    name: str,
    places: Places,
    own_strategies: Collection[str] = (),
) -> ModelPlan:
    """Check a model's config and resolve it."""
    problems = Problems()
    config = mapping("config", model.get("config"), problems)
    raw = RawConfig(config, problems)
    table = read_model_table(raw, _snapshot_key(config))
    index = read_index(raw, table)
    merge = read_merge(raw, table, own_strategies)
    services = read_services(raw, table)
    audit = read_audit(config, merge, problems)
    may_copy = boolean("clone_copy", config.get("clone_copy"), problems, False)
    retries = whole_number("conflict_retries", config.get("conflict_retries"), problems)
    error_table = _error_table(raw, merge)
    whole_number(TIME_LIMIT, config.get(TIME_LIMIT), problems)
    location = _own_location(config, places, problems)
    _check_skipping(merge, index, problems)
    _check_format(config, problems)
    problems.extend(refused_configs(config))
    problems.extend(property_problems(raw.properties))
    _check_names(schema, name, problems)
    problems.extend(profile_only_problems(raw.options))
    what = f"{config.get('materialized', 'model')} {schema}.{name}"
    options = laid_over(index.options(), services.options(), merge.options(), raw.options)
    problems.extend(in_words_of_a_model(option_problems(options, what), config))
    problems.raise_if_any(what)
    plan = ModelPlan(
        schema=schema,
        name=name,
        base=places.default_base(schema, name) if location is None else f"{location}/{name}",
        own_location=location is not None,
        table=table,
        index=index,
        merge=merge,
        services=services,
        given_options=dict(raw.options),
        properties=dict(raw.properties),
        audit=audit,
        clone_copy=bool(may_copy),
        conflict_retries=retries,
        error_table=error_table,
    )
    problems.extend(engine_problems(plan.definition))
    problems.raise_if_any(what)
    return plan


def _error_table(raw: RawConfig, merge: MergeConfig) -> bool:
    """Return whether a model has an error table; refused for nodes that write no rows of their own query as they are."""
    option, given = WriteOptions.ERROR_TABLE, raw.options.pop(WriteOptions.ERROR_TABLE.key, None)
    try:
        wanted = given is not None and bool(option.parse(given))
    except ConfigError as error:
        raw.problems.add(str(error))
        return False
    kind = str(raw.config.get("materialized") or "table")
    why = None
    if kind not in ("table", "incremental"):
        why = f"a {kind} has none"
    elif kind == "incremental" and merge.operation in (None, "delete"):
        why = f"incremental_strategy {merge.strategy!r} has none"
    elif merge.clauses is not None and merge.clauses.left_action is not None:
        why = "not_matched_by_source_action would take the stored row of a row with an error for one that the source lacks"
    if wanted and why is not None:
        raw.problems.add(
            f"{option} is true; {why}. Leave it out, and filter such rows in the query where they may come"
        )
    return wanted


def _check_skipping(merge: MergeConfig, index: IndexConfig, problems: Problems) -> None:
    if merge.skip_unchanged and index.type == IndexType.BUCKET:
        problems.add(
            "skip_unchanged is true and index is bucket, whose rows are written without a look at what is stored; take one of "
            "them out"
        )


def _check_names(schema: str, name: str, problems: Problems) -> None:
    for what, given, config in (("schema", schema, "schema"), ("name", name, "alias")):
        if not _NAME.match(given):
            problems.add(
                f"the {what} is {given!r}; Spark's names hold letters, digits and _ only, set {config} to such a name"
            )
    problems.extend(kept_name_problems(name))


def _own_location(config: Mapping[str, object], places: Places, problems: Problems) -> str | None:
    """Return the folder a model puts its table into, None for the profile's."""
    given = config.get("location_root")
    if not isinstance(given, str):
        if given is not None:
            problems.add(f"location_root is {given!r}; give a folder or URI")
        return None
    problems.extend(location_problems(given))
    return absolute_location(given, places.project_root).rstrip("/")


def _snapshot_key(config: Mapping[str, object]) -> tuple[str, ...] | None:
    """Make dbt's version id the record key of a snapshot, which keeps every version of a row of the source."""
    if config.get("materialized") != "snapshot":
        return None
    renamed = config.get("snapshot_meta_column_names")
    if isinstance(renamed, Mapping) and renamed.get(SNAPSHOT_KEY):
        return (str(renamed[SNAPSHOT_KEY]),)
    return (SNAPSHOT_KEY,)


def _check_format(config: Mapping[str, object], problems: Problems) -> None:
    file_format = config.get("file_format")
    if file_format not in (None, "") and str(file_format).lower() != "hudi":
        problems.add(
            f"file_format is {file_format!r}; dbt-hudi builds Hudi tables only, leave it out or say 'hudi'"
        )
