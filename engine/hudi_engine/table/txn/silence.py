"""Running processes of this machine whose last beat is old, watched until it is sure that no other one comes.

After a pause of a virtual machine, or a step of the clock, every beat is old at once although each process works. The time that
counts here is this process's own, which knows no pause and no step.
"""

from __future__ import annotations

from time import monotonic

_MARGIN_S = 10.0
"""How much later than it is due a beat may come, as on a busy machine or a slow store."""
_since: dict[tuple[str, int], float] = {}
"""When a beat, by its owner's token and its time, was first seen to be old."""


def heartbeat_expired(token: str, beat_ms: int, interval_ms: int) -> bool:
    """Return whether an old beat has been watched for so long that another one would have come; the first look begins that.

    Args:
        beat_ms: When it came, as its file says.
    """
    begun = _since.setdefault((token, beat_ms), monotonic())
    return monotonic() - begun > interval_ms / 1000 + _MARGIN_S


def is_watched(token: str, beat_ms: int, interval_ms: int) -> bool:
    """Return whether a beat was seen to be old, and another one may still come; arguments as of `heartbeat_expired`."""
    return (token, beat_ms) in _since and not heartbeat_expired(token, beat_ms, interval_ms)
