"""Seconds of each phase of a call, and the same phases as OpenTelemetry spans where that package is installed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

_SECONDS: ContextVar[dict[str, float] | None] = ContextVar("hudi_engine_seconds", default=None)


@contextmanager
def timed(call: str, attributes: Mapping[str, str]) -> Iterator[dict[str, float]]:
    """Collect the seconds of the phases of a call; a call inside another adds to that one's."""
    outer = _SECONDS.get()
    seconds: dict[str, float] = {} if outer is None else outer
    token = _SECONDS.set(seconds)
    try:
        with _span(call, attributes):
            yield seconds
    finally:
        _SECONDS.reset(token)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Measure a part of the call that runs; outside of one nothing is kept."""
    started = time.perf_counter()
    try:
        with _span(f"hudi.{name}", {}):
            yield
    finally:
        seconds = _SECONDS.get()
        if seconds is not None:
            seconds[name] = round(seconds.get(name, 0.0) + time.perf_counter() - started, 3)


def seconds_so_far() -> dict[str, float]:
    """Return the seconds of the phases of the call that runs, by phase."""
    return dict(_SECONDS.get() or {})


def _span(name: str, attributes: Mapping[str, str]) -> Any:
    tracer = _tracer()
    return (
        nullcontext() if tracer is None else tracer.start_as_current_span(name, attributes=dict(attributes))
    )


@lru_cache(maxsize=1)
def _tracer() -> Any:
    """Return the tracer of whatever provider the process has set up, None without the package."""
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("hudi_engine")
