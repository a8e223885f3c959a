"""How a key finds its row: the index of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_engine.format.config.declared.write_options import IndexOptions
from hudi_engine.format.config.enums import IndexType

from dbt.adapters.hudi.model.reading import Problems, choice, option_text
from dbt.adapters.hudi.model.table import ModelTable, RawConfig

INDEX_TYPES = tuple(each.value.lower() for each in IndexType)
_TYPE = IndexOptions.TYPE.key
_MOVES: Mapping[str, str] = {
    IndexType.GLOBAL_SIMPLE: IndexOptions.SIMPLE_MOVES_PARTITION.key,
    IndexType.GLOBAL_BLOOM: IndexOptions.BLOOM_MOVES_PARTITION.key,
}
_BUCKET_KEYS: Mapping[str, str] = {
    "buckets": IndexOptions.BUCKETS.key,
    "hash_field": IndexOptions.HASH_FIELD.key,
}


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
    """Return the index a model asks for, or the one its key implies.

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
