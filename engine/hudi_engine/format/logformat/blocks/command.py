"""Command block: takes back the blocks of another instant (source: Hudi table format, command block). Empty content."""

from __future__ import annotations

from hudi_engine.format.logformat.format import ROLLBACK_COMMAND, HeaderKey


def rollback_header(instant: str, target_instant: str) -> list[tuple[HeaderKey, str]]:
    """Return header of a block that makes readers ignore every block of ``target_instant`` in the same file slice."""
    return [
        (HeaderKey.INSTANT_TIME, instant),
        (HeaderKey.COMMAND_BLOCK_TYPE, ROLLBACK_COMMAND),
        (HeaderKey.TARGET_INSTANT_TIME, target_instant),
    ]
