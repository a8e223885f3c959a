"""A model's options as the engine sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hudi_engine.errors import ConfigError, HudiError
from hudi_engine.format.config.declared.sync_options import SyncOptions
from hudi_engine.format.config.declared.table_options import TABLE, TableOptions
from hudi_engine.format.config.declared.telemetry_options import TelemetryOptions
from hudi_engine.format.config.declared.write_options import INDEX
from hudi_engine.format.config.enums import WrittenVersion
from hudi_engine.format.config.option import Option, OptionValue
from hudi_engine.format.config.options import OPTIONS, canonical_key, resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.config.unsupported_keys import DEFINED_ELSEWHERE
from hudi_engine.format.keygen.time_zone import is_known_zone
from hudi_engine.format.keygen.timestamp_format import PREFIX as TIMESTAMP_PREFIX
from hudi_engine.table.services.compaction.plan import strategy_of
from hudi_engine.table.write.define.definition import table_properties

PROFILE_ONLY = (
    TelemetryOptions.TEXTFILE_FOLDER.key,
    TelemetryOptions.JSON_FILE.key,
    TelemetryOptions.REPORTER.key,
    TelemetryOptions.GATEWAY_HOST.key,
    TelemetryOptions.GATEWAY_PORT.key,
    TelemetryOptions.STATSD_HOST.key,
    TelemetryOptions.STATSD_PORT.key,
    TelemetryOptions.CALLBACK_API_KEY.key,
    TelemetryOptions.CALLBACK_HEADERS.key,
    TelemetryOptions.CALLBACK_URL.key,
)
_NAMES_OF_CLASSES = (
    TelemetryOptions.CALLBACK_CLASS.key,
    SyncOptions.EXTRACTOR.key,
    *SyncOptions.EXTRACTOR.aliases,
)
"""Options with a class of Hudi's, or a Python function of one's own, which a model must not name."""
_OF_WRITES = {TableOptions.TABLE_VERSION.key, TableOptions.AUTO_UPGRADE.key, TableOptions.TIMELINE_ZONE.key}
"""Options of tables that writes obey too: upgrades, and the zone of a table of another engine."""
_ALIASES: Mapping[str, Option[OptionValue]] = {
    alias: option for option in OPTIONS.values() for alias in option.aliases
}


def option_problems(options: Mapping[str, str], of: str = "") -> Sequence[str]:
    """Return a problem for each wrong ``hoodie.*`` option."""
    try:
        strategy_of(resolve_options(options, of=of))
    except ConfigError as error:
        return error.problems
    return ()


def profile_only_problems(options: Mapping[str, str]) -> Sequence[str]:
    """Return a problem for each option that only a profile may set: those decide what dbt's machine connects and writes to."""
    return [
        f"{key} is set; only options of the profile may, remove it from the model"
        for key in (*PROFILE_ONLY, *_NAMES_OF_CLASSES)
        if key in options and (key not in _NAMES_OF_CLASSES or ":" in options[key])
    ]


def engine_problems(definition: Mapping[str, Any]) -> Sequence[str]:
    """Return the problems of a table's definition; its columns are checked when it is built."""
    try:
        table_properties(schema=None, **definition)
    except ConfigError as error:
        return error.problems
    except HudiError as error:
        return (str(error),)
    return ()


def is_of_table(key: str) -> bool:
    """Return whether an option belongs to the table, so that it has effect when the table is made only."""
    option = OPTIONS.get(key) or _ALIASES.get(key)
    return option is not None and option.group == TABLE and option.key not in _OF_WRITES


def is_of_one_table(key: str) -> bool:
    """Return whether an option belongs to one table or to its index."""
    option = OPTIONS.get(key) or _ALIASES.get(key)
    return key in DEFINED_ELSEWHERE if option is None else option.group in (TABLE, INDEX)


def write_only(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a write to a table that exists: what the table itself fixes is left out."""
    return {key: value for key, value in options.items() if not is_of_table(key)}


def of_times(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options for times in keys and folders: a table that another engine made may not keep them."""
    return {key: value for key, value in options.items() if _is_of_times(key)}


def _is_of_times(key: str) -> bool:
    name = canonical_key(key)
    return name.startswith(TIMESTAMP_PREFIX) or name == TableOptions.CONSISTENT_TIMESTAMPS.key


def changed_options(
    definition: Mapping[str, Any], given: Mapping[str, str], stored: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
    """Return the options of a model that its table was not made with: the value of each, and what the table has.

    How times become keys and folders is no such option where a table that another engine made does not keep it, nor a zone that
    Java does not know.

    Args:
        given: ``hoodie.*`` options the model gives itself.
    """
    stored_values = {canonical_key(key): value for key, value in stored.items()}
    ours = TableConfig(stored).is_of_this_engine
    fixed = [
        key
        for key in given
        if is_of_table(key)
        and (ours or canonical_key(key) in stored_values or not _is_of_times(key))
        and not (
            key.endswith("timezone") and not is_known_zone(stored_values.get(canonical_key(key)) or "UTC")
        )
    ]
    if not fixed:
        return {}
    version = stored.get("hoodie.table.version", "6")
    if version in [each.value for each in WrittenVersion]:
        # properties have other names in other versions
        options = {**definition["options"], TableOptions.TABLE_VERSION.key: version}
        definition = {**definition, "options": options}
    # folders of times cannot be without the options that say how they are made, and those stay as they are
    options = {
        key: value for key, value in definition["options"].items() if key not in fixed or _is_of_times(key)
    }
    without = table_properties(schema=None, **{**definition, "options": options}).properties
    wanted = table_properties(schema=None, **definition).properties
    changed = {}
    for key in fixed:
        option = OPTIONS.get(key) or _ALIASES[key]
        names = {option.key, *option.aliases}
        names_set = {name for name in wanted if name in names or wanted[name] != without.get(name)}
        for name in sorted(names_set - {"hoodie.table.checksum"}):
            if _folded(stored.get(name)) != _folded(wanted[name]):
                changed[key] = (given[key], stored.get(name, "nothing"))
    return changed


def _folded(value: str | None) -> str | None:
    return None if value is None else value.strip().lower()
