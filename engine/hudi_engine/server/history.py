"""What the statements of a server did: figures since its start, and the last statements with their ends."""

from __future__ import annotations

import os
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from hudi_engine.format.storage.redact import HIDDEN, redacted

FINISHED, FAILED, CANCELLED = "finished", "failed", "cancelled"
_ENDS = (FINISHED, FAILED, CANCELLED)
_KEPT = 100
_KEPT_LENGTH = 2000
_BUCKETS_S = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
_ROWS, _BYTES = "totalRecordsWritten", "totalBytesWritten"
# A setting, an option or an argument of a secret name, and its value: quoted ones also without an equals sign.
_SECRET = re.compile(
    r"""((?:secret|passw|token|credential|signature|(?:access|account|api).?key)[\w.-]*['"`]?"""
    r"""(?:\s*(?:=>?|:)\s*|\s+(?=['"])))(?:'(?:[^'\\]|\\.|'')*(?:'|\Z)|"(?:[^"\\]|\\.)*(?:"|\Z)|[^\s,;)'"]+)""",
    re.IGNORECASE | re.DOTALL,
)


def shown_text(text: str, length: int = _KEPT_LENGTH) -> str:
    """Return a statement or message in one line as people may read it: without secrets, and no longer than ``length``."""
    # cut first: a statement may have megabytes
    one_line = " ".join(text[: 4 * length].split())[: 2 * length]
    return _SECRET.sub(rf"\1{HIDDEN}", redacted(one_line))[:length]


@dataclass(frozen=True)
class Ended:
    """A statement that has ended.

    Args:
        how: ``finished``, ``failed`` or ``cancelled``.
        rows: Rows that a query returned, or a write changed; None where it has neither.
        reason: Why it failed or was cancelled; empty otherwise.
    """

    user: str
    text: str
    how: str
    at: datetime
    seconds: float
    rows: int | None = None
    reason: str = ""


class History:
    """Figures since the start, counted by all threads of a server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started_s = time.time()
        self._last: deque[Ended] = deque(maxlen=_KEPT)
        self._failed: deque[Ended] = deque(maxlen=_KEPT)
        self._statements: Counter[str] = Counter()
        self._buckets: Counter[float] = Counter()
        self._commits: Counter[str] = Counter()
        self._seconds = 0.0
        self._totals: Counter[str] = Counter()

    @property
    def last(self) -> Sequence[Ended]:
        """The last statements, newest first."""
        with self._lock:
            return list(self._last)[::-1]

    @property
    def failures(self) -> Sequence[Ended]:
        """The last statements that failed, newest first."""
        with self._lock:
            return list(self._failed)[::-1]

    @property
    def count(self) -> int:
        """Statements that have ended."""
        with self._lock:
            return sum(self._statements.values())

    @property
    def failed(self) -> int:
        """Statements that failed."""
        return self._statements[FAILED]

    def opened(self) -> None:
        """Count a session."""
        self._add(sessions_opened=1)

    def sent(self, count: int, rows: int = 0) -> None:
        """Count the bytes, and rows of results, that a client got."""
        self._add(bytes_sent=count, rows_sent=rows)

    def ended(self, statement: Ended) -> None:
        """Count and keep a statement."""
        with self._lock:
            self._last.append(statement)
            if statement.how == FAILED:
                self._failed.append(statement)
            self._statements[statement.how] += 1
            self._seconds += statement.seconds
            self._buckets.update(limit for limit in _BUCKETS_S if statement.seconds <= limit)

    def committed(self, _: str, values: Mapping[str, int]) -> None:
        """Count a commit or a table service; values are named as those of Hudi's metrics, ``commit.duration``."""
        action = next(iter(values)).partition(".")[0] if values else ""
        with self._lock:
            self._commits[action] += 1
            self._totals["rows_written"] += values.get(f"{action}.{_ROWS}", 0)
            self._totals["bytes_written"] += values.get(f"{action}.{_BYTES}", 0)

    def exposition(self, *, sessions: int, running: int, waiting: int) -> bytes:
        """Return the figures as Prometheus reads them, those of the moment included."""
        with self._lock:
            lines = [
                *_metric("sessions", "gauge", "Open sessions.", {"": sessions}),
                *_metric("sessions_opened_total", "counter", "Sessions since the start.", self._total("sessions_opened")),
                *_metric(
                    "statements", "gauge", "Statements by state.",
                    {_label("state", "running"): running, _label("state", "waiting"): waiting},
                ),
                *_metric(
                    "statements_total", "counter", "Statements that ended, by how they did.",
                    {_label("state", each): self._statements[each] for each in _ENDS},
                ),
                *self._histogram(),
                *_metric("rows_returned_total", "counter", "Rows that clients fetched.", self._total("rows_sent")),
                *_metric("sent_bytes_total", "counter", "Bytes of answers to clients.", self._total("bytes_sent")),
                *_metric(
                    "commits_total", "counter", "Commits and table services by their action.",
                    {_label("action", each): count for each, count in sorted(self._commits.items())},
                ),
                *_metric("rows_written_total", "counter", "Rows in the files of commits.", self._total("rows_written")),
                *_metric("written_bytes_total", "counter", "Bytes of the files of commits.", self._total("bytes_written")),
                *_metric("start_time_seconds", "gauge", "When the server started.", {"": self._started_s}),
                *_metric("resident_memory_bytes", "gauge", "Memory of the server without Java's.", _memory()),
            ]  # fmt: skip
        return "".join(f"{line}\n" for line in lines).encode()

    def _add(self, **counts: int) -> None:
        with self._lock:
            self._totals.update(counts)

    def _total(self, name: str) -> Mapping[str, int]:
        return {"": self._totals[name]}

    def _histogram(self) -> Iterator[str]:
        name, count = "statement_seconds", sum(self._statements.values())
        buckets = {_label("le", f"{limit:g}"): self._buckets[limit] for limit in _BUCKETS_S}
        yield from _metric(name, "histogram", "Seconds of statements, from their arrival to their end.", {})
        for label, value in {**buckets, _label("le", "+Inf"): count}.items():
            yield f"hudi_server_{name}_bucket{label} {value}"
        yield f"hudi_server_{name}_sum {self._seconds:.3f}"
        yield f"hudi_server_{name}_count {count}"


def now() -> datetime:
    """Return the moment, in UTC."""
    return datetime.now(timezone.utc)


def _label(name: str, value: str) -> str:
    return f'{{{name}="{value}"}}'


def _metric(name: str, kind: str, about: str, values: Mapping[str, float]) -> Iterator[str]:
    yield f"# HELP hudi_server_{name} {about}"
    yield f"# TYPE hudi_server_{name} {kind}"
    for label, value in values.items():
        yield f"hudi_server_{name}{label} {value}"


def _memory() -> Mapping[str, int]:
    """Return the bytes that the process has in memory; none where the system does not show them as a file."""
    try:
        with open("/proc/self/statm", encoding="ascii") as shown:
            return {"": int(shown.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")}
    except OSError:
        return {}
