"""Which merge mode a table's properties ask for.

Table version 6 names a payload class, which decides before the strategy id. Versions 8 and 9 name a merge
mode; version 8 keeps a payload class beside ``CUSTOM``, version 9 turns well-known payloads into a mode and
``hoodie.table.partial.update.mode`` (Hudi table config, record merge keys).
"""

from __future__ import annotations

from collections.abc import Mapping

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.config.enums import DECLARED_MERGE_MODES, MergeMode

EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_TIME_STRATEGY = "ce9acb64-bde0-424c-9b91-f6ebba25356d"

PAYLOAD_PACKAGE = "org.apache.hudi.common.model"

_PAYLOAD_MODES = {
    "OverwriteWithLatestAvroPayload": MergeMode.COMMIT_TIME_ORDERING,
    "DefaultHoodieRecordPayload": MergeMode.EVENT_TIME_ORDERING,
    "EventTimeAvroPayload": MergeMode.EVENT_TIME_ORDERING,
    "PartialUpdateAvroPayload": MergeMode.PARTIAL_UPDATE,
    "OverwriteNonDefaultsWithLatestAvroPayload": MergeMode.OVERWRITE_NON_DEFAULTS,
    "AWSDmsAvroPayload": MergeMode.AWS_DMS,
}
_STRATEGY_MODES = {
    EVENT_TIME_STRATEGY: MergeMode.EVENT_TIME_ORDERING,
    COMMIT_TIME_STRATEGY: MergeMode.COMMIT_TIME_ORDERING,
}
_UNAVAILABLE = "hoodie.write.partial.update.unavailable.value"
_IGNORE_DEFAULTS = {
    MergeMode.COMMIT_TIME_ORDERING: MergeMode.OVERWRITE_NON_DEFAULTS,
    MergeMode.EVENT_TIME_ORDERING: MergeMode.PARTIAL_UPDATE,
}


def payload_merge_mode(payload_class: str) -> MergeMode:
    """Return what a payload class does; CUSTOM for classes that are not known here."""
    return _PAYLOAD_MODES.get(payload_class.removeprefix(f"{PAYLOAD_PACKAGE}."), MergeMode.CUSTOM)


def unavailable_value(properties: Mapping[str, str]) -> str | None:
    """Return the text that stands for a value its source did not send; None when the table names none."""
    return properties.get(f"hoodie.record.merge.property.{_UNAVAILABLE}") or properties.get(_UNAVAILABLE)


def resolve_merge_mode(properties: Mapping[str, str], version: int, *, has_ordering: bool) -> MergeMode:
    """Return the merge mode of a table."""
    mode = _declared(properties) or _inferred(properties)
    if version >= 9:
        partial = properties.get("hoodie.table.partial.update.mode", "").strip().upper()
        mode = _with_partial_update(mode, partial, unavailable_value(properties) is not None)
    if mode is MergeMode.EVENT_TIME_ORDERING and not has_ordering:
        return MergeMode.COMMIT_TIME_ORDERING
    return mode


def _declared(properties: Mapping[str, str]) -> MergeMode | None:
    raw = properties.get(TableOptions.MERGE_MODE.key, "").strip().upper()
    if not raw:
        return None
    if raw not in DECLARED_MERGE_MODES:
        raise CorruptTableError(
            f"hoodie.record.merge.mode is {raw!r}; legal values: {', '.join(DECLARED_MERGE_MODES)}"
        )
    mode = MergeMode(raw)
    payload = properties.get("hoodie.compaction.payload.class", "").strip()
    return payload_merge_mode(payload) if mode is MergeMode.CUSTOM and payload else mode


def _inferred(properties: Mapping[str, str]) -> MergeMode:
    payload = properties.get("hoodie.compaction.payload.class", "").strip()
    if payload:
        return payload_merge_mode(payload)
    strategy = (
        properties.get("hoodie.record.merge.strategy.id", "").strip()
        or properties.get("hoodie.compaction.record.merger.strategy", "").strip()
    )
    return _STRATEGY_MODES.get(strategy, MergeMode.CUSTOM) if strategy else MergeMode.EVENT_TIME_ORDERING


def _with_partial_update(mode: MergeMode, partial: str, says_unavailable: bool) -> MergeMode:
    if partial in ("", "KEEP_VALUES"):
        return mode
    if partial == MergeMode.FILL_UNAVAILABLE and mode is MergeMode.EVENT_TIME_ORDERING and says_unavailable:
        return MergeMode.FILL_UNAVAILABLE
    return _IGNORE_DEFAULTS.get(mode, MergeMode.CUSTOM) if partial == "IGNORE_DEFAULTS" else MergeMode.CUSTOM
