"""The table itself: type, key, ordering, partitions, in dbt's words, Hudi's and dbt-spark's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.config.enums import MergeMode
from hudi_engine.format.config.options import canonical_key, laid_over
from hudi_engine.format.config.unsupported_keys import flink_problem
from hudi_engine.format.spelling import did_you_mean

from dbt.adapters.hudi.model.known_configs import OTHER_SPELLINGS, misspelt
from dbt.adapters.hudi.model.reading import Problems, boolean, choice, mapping, names, option_text

TABLE_TYPES: Mapping[str, str] = {
    "cow": "cow",
    "mor": "mor",
    "copy_on_write": "cow",
    "merge_on_read": "mor",
}
_MERGE_MODE = TableOptions.MERGE_MODE.key
_MERGE_MODES: Mapping[str, str] = {
    "event_time": MergeMode.EVENT_TIME_ORDERING.value,
    "commit_time": MergeMode.COMMIT_TIME_ORDERING.value,
    MergeMode.EVENT_TIME_ORDERING.value: MergeMode.EVENT_TIME_ORDERING.value,
    MergeMode.COMMIT_TIME_ORDERING.value: MergeMode.COMMIT_TIME_ORDERING.value,
    MergeMode.CUSTOM.value: MergeMode.CUSTOM.value,
}
COLUMN = re.compile(r"^[\w.]+(?::\w+)?$")
_HIVE_STYLE = TableOptions.HIVE_STYLE_PARTITIONING.key
_URL_ENCODE = TableOptions.URL_ENCODE_PARTITIONS.key

# Every spelling of one setting; the first is the one the documentation uses.
_TYPE_KEYS = ("table_type", "type", "hoodie.datasource.write.table.type", "hoodie.table.type")
_KEY_KEYS = (
    "unique_key",
    "record_key",
    "primaryKey",
    "hoodie.datasource.write.recordkey.field",
    "hoodie.table.recordkey.fields",
)
_ORDER_KEYS = (
    "precombine_field",
    "ordering_field",
    "preCombineField",
    "precombineKey",
    "preCombineKey",
    "orderingFields",
    "hoodie.datasource.write.precombine.field",
    "hoodie.table.precombine.field",
    "hoodie.table.ordering.fields",
)
_PARTITION_KINDS = "hoodie.datasource.write.partitionpath.field"
_PARTITION_KEYS = (
    "partition_by",
    _PARTITION_KINDS,
    "hoodie.table.partition.fields",
)
_HIVE_KEYS = ("hive_style_partitioning", _HIVE_STYLE)
# Flink's spelling, the one of the documentation
_OTHER_OPTIONS = ("changelog.enabled",)
_COLUMN_OPTIONS = (*OTHER_SPELLINGS, "orderingFields")
_SHORT_OPTIONS = ("type", *_COLUMN_OPTIONS)


@dataclass(frozen=True)
class ModelTable:
    """Shape of a table.

    Args:
        table_type: ``cow`` or ``mor``.
        record_key: Key columns; empty for a table with automatic keys.
        precombine_field: Columns that order versions of a row by event time, the first counting most; none means commit time.
        partition_by: Partition columns, with their kinds for key generators that want those: ``at:timestamp``.
        hive_style: Partition folders are named ``column=value``; None without a config, and then a new table's are.
        keeps_history: It is a snapshot's, which cannot be rebuilt without losing its history.
        versions_of: The ``unique_key`` of a snapshot, columns or SQL; empty for other tables.
    """

    table_type: str = "cow"
    record_key: tuple[str, ...] = ()
    precombine_field: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    hive_style: bool | None = None
    keeps_history: bool = False
    versions_of: tuple[str, ...] = ()

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Names of the partition columns; dots reach into structs."""
        return tuple(column.split(":")[0] for column in self.partition_by)

    def options(self) -> dict[str, str]:
        """Options of table creation that follow from the shape."""
        return {_HIVE_STYLE: option_text(self.hive_style is not False), _URL_ENCODE: "true"}

    def kinds(self) -> dict[str, str]:
        """Options of a write with the kinds of the partition columns: a table that another engine made may not keep them."""
        given = any(":" in column for column in self.partition_by)
        return {_PARTITION_KINDS: ",".join(self.partition_by)} if given else {}


class RawConfig:
    """A model's config with its ``options`` folded in, so that a setting is found under all its spellings."""

    def __init__(self, config: Mapping[str, object], problems: Problems) -> None:
        self.config = config
        self.problems = problems
        self.options: dict[str, str] = {}
        self.properties: dict[str, str] = {}
        self._short: dict[str, object] = {}
        for key in ("options", "hudi_options"):
            self._read_options(key, mapping(key, config.get(key), problems))
        self._read_properties(mapping("tblproperties", config.get("tblproperties"), problems))

    def _read_options(self, source: str, given: Mapping[str, object]) -> None:
        for key, value in given.items():
            if key in _SHORT_OPTIONS:
                self._short[key] = value
            elif key.startswith("hoodie.") or key in _OTHER_OPTIONS:
                self._lay_over(key, option_text(value))
            elif of_flink := flink_problem(key):
                self.problems.add(f"{source}: {of_flink}")
            else:
                legal = (*_SHORT_OPTIONS, *_OTHER_OPTIONS)
                self.problems.add(
                    f"{source} has the unknown key {key!r}; {did_you_mean(key, legal)}legal keys: {', '.join(legal)}, hoodie.*"
                )

    def _lay_over(self, key: str, text: str) -> None:
        """Take an option; dbt loses the order of project, folder and model, so two spellings must agree."""
        for other, had in self.options.items():
            if other != key and canonical_key(other) == canonical_key(key) and had != text:
                self.problems.add(
                    f"{other}: {had!r} and {key}: {text!r} are one option in two spellings; use one of them in project, folder and "
                    "model"
                )
        self.options = laid_over(self.options, {key: text})

    def _read_properties(self, given: Mapping[str, object]) -> None:
        """Take options among table properties in any case of letters; others are notes of the user's."""
        spelled = {key.lower(): key for key in (*_SHORT_OPTIONS, *_OTHER_OPTIONS)}
        for key, value in given.items():
            name = spelled.get(key.lower(), key)
            if name in _SHORT_OPTIONS:
                self._take(self._short, name, value)
            elif name.startswith("hoodie.") or name in _OTHER_OPTIONS:
                self._take(self.options, name, option_text(value))
            elif "." in name and (of_flink := flink_problem(name)):
                self.problems.add(f"tblproperties: {of_flink}")
            elif near := misspelt(key, _COLUMN_OPTIONS):
                self.problems.add(f"tblproperties: {key} is no property of Hudi; did you mean {near!r}?")
            else:
                self.properties[key] = option_text(value)

    def _take(self, known: dict[str, Any], name: str, value: Any) -> None:
        """Take an option of tblproperties, which must agree with options."""
        if _normal(known.setdefault(name, value)) != _normal(value):
            self.problems.add(
                f"options has {name}: {known[name]!r} but tblproperties has {value!r}; give one of them"
            )

    def value(self, *spellings: str) -> object:
        """Return the value of a setting under any of its spellings; two that disagree are a problem."""
        found: list[tuple[str, object]] = []
        for spelling in spellings:
            if spelling in _SHORT_OPTIONS:
                raw = self._short.get(spelling)
            elif spelling.startswith("hoodie."):
                raw = self.options.pop(spelling, None)
            else:
                raw = self.config.get(spelling)
            if raw not in (None, "", []):
                found.append((spelling, raw))
        if not found:
            return None
        first, chosen = found[0]
        for other, raw in found[1:]:
            if _normal(raw) != _normal(chosen):
                self.problems.add(f"{first} is {chosen!r} but {other} is {raw!r}; give one of them")
        return chosen


def read_model_table(raw: RawConfig, key_override: tuple[str, ...] | None = None) -> ModelTable:
    """Return the table's shape."""
    problems = raw.problems
    table_type = choice("table_type", raw.value(*_TYPE_KEYS), TABLE_TYPES, problems) or "cow"
    record_key = names("unique_key", _record_key(raw), problems)
    ordering = names("precombine_field", raw.value(*_ORDER_KEYS), problems)
    mode = choice("merge_mode", raw.value("merge_mode", _MERGE_MODE), _MERGE_MODES, problems)
    if mode is not None:
        raw.options[_MERGE_MODE] = mode
    hive_style = boolean("hive_style_partitioning", raw.value(*_HIVE_KEYS), problems, None)
    return ModelTable(
        table_type=table_type,
        record_key=record_key if key_override is None else key_override,
        precombine_field=ordering,
        partition_by=_partitions(raw),
        hive_style=hive_style,
        keeps_history=key_override is not None,
        versions_of=() if key_override is None else _as_written(raw.config.get("unique_key")),
    )


def _as_written(key: object) -> tuple[str, ...]:
    """Return the parts of a snapshot's key, of which a text is one: its commas may be those of an expression."""
    if isinstance(key, str):
        return (key,)
    return tuple(map(str, key)) if isinstance(key, (list, tuple)) else ()


def _record_key(raw: RawConfig) -> object:
    """Return the key; for delete+insert unique_key selects the rows to delete, and record_key may be given as well."""
    if raw.config.get("incremental_strategy") != "delete+insert":
        return raw.value(*_KEY_KEYS)
    own = raw.value(*_KEY_KEYS[1:])
    return raw.value(*_KEY_KEYS[:1]) if own is None else own


def _partitions(raw: RawConfig) -> tuple[str, ...]:
    columns = names("partition_by", raw.value(*_PARTITION_KEYS), raw.problems)
    for column in columns:
        if not COLUMN.match(column):
            raw.problems.add(
                f"partition_by has {column!r}; Hudi partitions by columns, so select the expression as a column and "
                "name that"
            )
    return columns


def _normal(value: object) -> object:
    if isinstance(value, str):
        parts = tuple(part.strip().lower() for part in value.split(","))
        return tuple(TABLE_TYPES.get(part, part) for part in parts)
    if isinstance(value, (list, tuple)):
        return tuple(str(part).strip().lower() for part in value)
    if isinstance(value, bool):
        return (option_text(value),)
    return value
