"""Which merge rule belongs to which merge mode of a table.

A payload or merger class that is not known is refused by name: guessing would change rows in silence.
"""

from __future__ import annotations

from dataclasses import replace

from hudi_engine.errors import ConfigError, UnsupportedTableError
from hudi_engine.format.config.enums import MergeMode
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.config.trusted_rules import RULE_PROPERTY, SESSION_SETTING, imported, is_trusted
from hudi_engine.format.merge.modes.rule import MergeRule


# The rule must be in a module that is installed wherever the table is read or written, and be allowed by name, since a table's
# properties are only a text in its folder. It subclasses MergeRule and overrides first, or merge.
def load_rule(path: str) -> MergeRule:
    """Return the rule at an import path."""
    if not is_trusted(path):
        raise ConfigError(
            f"the table names the merge rule {path!r} in its properties; code is imported only when you allow it: give the "
            f"option {RULE_PROPERTY}={path} with the call, or set {SESSION_SETTING}={path} for the Spark session"
        )
    found = imported(path, RULE_PROPERTY)
    if not isinstance(found, MergeRule):
        raise ConfigError(
            f"{RULE_PROPERTY} is {path!r}, which is {type(found).__name__}; it must be a MergeRule instance"
        )
    return found


COMMIT_TIME = MergeRule(compares=False)
EVENT_TIME = MergeRule(compares=True)
RULES: dict[MergeMode, MergeRule] = {
    MergeMode.COMMIT_TIME_ORDERING: COMMIT_TIME,
    MergeMode.EVENT_TIME_ORDERING: EVENT_TIME,
    MergeMode.PARTIAL_UPDATE: MergeRule(compares=True, fills=True, deletes_obey_order=False),
    MergeMode.FILL_UNAVAILABLE: MergeRule(compares=True, fills=True),
    MergeMode.OVERWRITE_NON_DEFAULTS: MergeRule(compares=False, fills=True),
    MergeMode.AWS_DMS: COMMIT_TIME,
}


def merge_rule(config: TableConfig) -> MergeRule:
    """Return the rule by which a table merges records."""
    own = config.properties.get(RULE_PROPERTY, "").strip()
    if config.merge_mode is MergeMode.CUSTOM and own:
        return load_rule(own)
    rule = RULES.get(config.merge_mode)
    if rule is None:
        raise UnsupportedTableError(_unknown(config))
    nested = [name for name in config.ordering_fields if "." in name]
    if nested and (rule.compares or rule.in_logs.compares):
        raise UnsupportedTableError(
            f"table {config.name!r} is ordered by {', '.join(nested)}, a field inside a struct; this engine compares columns "
            "only. Read its base files only (read optimized), or order the table by a column"
        )
    if config.merges_as_release_0:
        # Log records are combined with each other first, by ordering value whatever the payload class, and a
        # delete that is left then takes the stored row.
        logs = MergeRule(
            compares=True,
            fills=config.merge_mode is MergeMode.PARTIAL_UPDATE,
            revives=True,
            remembers_deletes=False,
        )
        return replace(rule, deletes_obey_order=False, logs=logs)
    if rule.fills and config.version >= 9:
        # From table version 9 on gaps are filled between log records first and then from the stored row, which
        # knows of no delete between them; deletes are ordered like other records.
        filling = MergeRule(
            compares=rule.compares,
            fills=True,
            remembers_deletes=False,
            keeps_meta=True,
            gap_text=config.unavailable_value if config.merge_mode is MergeMode.FILL_UNAVAILABLE else None,
        )
        return replace(filling, logs=filling)
    if rule.fills and not config.is_of_this_engine:
        filling = replace(rule, remembers_deletes=False)
        return replace(filling, logs=filling)
    return rule


def _unknown(config: TableConfig) -> str:
    legal = ", ".join(mode.value for mode in RULES)
    return (
        f"table {config.name!r} merges records with the payload class {config.payload_class or 'none'!r} in merge mode "
        f"{config.merge_mode.value}, which this engine does not know; "
        f"known modes are {legal}. Read its base files only (read optimized), or compact it with the engine that has the class"
    )


def refuse_to_write(config: TableConfig) -> None:
    """Refuse to write rows that merge by a payload class or a merge rule that this engine does not have."""
    if config.merge_mode is MergeMode.CUSTOM:
        merge_rule(config)


def keeps_newer_rows(config: TableConfig) -> bool:
    """Return whether a stored row stays as it is where one that is older by the ordering fields is written."""
    rule = merge_rule(config)
    return bool(config.ordering_fields) and all(
        each.compares and not each.sees_whole_rows for each in (rule, rule.in_logs)
    )
