"""How long a thread of Python may keep others waiting while several of them work.

Threads that write files spend their time by turns in Python and in libraries that let go of Python's lock. A thread that comes
back from one waits until another has had its turn, five milliseconds by default, which is half of what a small file takes.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SHORT_SECONDS = 0.001
_changing = threading.Lock()
_users: list[float] = []
"""The turn from before the first of those at work, once for each of them."""


@contextmanager
def short_turns() -> Iterator[None]:
    """Let threads of this process take shorter turns for a while; a setting that is shorter already stays."""
    with _changing:
        before = _users[0] if _users else sys.getswitchinterval()
        _users.append(before)
        sys.setswitchinterval(min(before, _SHORT_SECONDS))
    try:
        yield
    finally:
        with _changing:
            _users.pop()
            if not _users:
                sys.setswitchinterval(before)
