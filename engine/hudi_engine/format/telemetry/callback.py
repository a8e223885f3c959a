"""What follows a commit: its metrics, and Apache Hudi's write commit callback, over HTTP or to a function of the user's own.

The message is that of Hudi's ``HoodieWriteCommitHttpCallback``: table, place, instant and what was written, as JSON. A
failure is a warning and leaves the commit as it is; the wait for an address is bounded, and no redirect is followed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from hudi_engine.errors import ConfigError, HudiError
from hudi_engine.format.config.declared.telemetry_options import TelemetryOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.config.trusted_rules import imported_function
from hudi_engine.format.telemetry.reporters import check_reporters, is_address, is_reported, post, report
from hudi_engine.format.telemetry.services import commit_metrics
from hudi_engine.format.timeline.commit_metadata import CommitMetadata

logger = logging.getLogger(__name__)

HTTP_CALLBACK = "org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback"
_KEY_HEADER = "HUDI_CALLBACK_KEY"


def check_callback(options: Options) -> None:
    """Refuse metrics and a callback that cannot be sent, before anything is written."""
    check_reporters(options)
    if not options[TelemetryOptions.CALLBACK] or own_callback(options) is not None:
        return
    if not is_address(options[TelemetryOptions.CALLBACK_URL] or ""):
        raise ConfigError(
            "hoodie.write.commit.callback.on is true, and hoodie.write.commit.callback.http.url is no address of HTTP; "
            "set it to one such as https://hooks.example.com/hudi, without a login: what the receiver requires can be sent "
            "with hoodie.write.commit.callback.http.custom.headers"
        )
    _headers(options)


def own_callback(options: Options) -> Callable[[dict[str, Any]], object] | None:
    """Return the function that ``hoodie.write.commit.callback.class`` names; None for Hudi's callback over HTTP.

    Raises:
        ConfigError: It is another class of Java's, cannot be imported, or cannot be called.
    """
    key, chosen = TelemetryOptions.CALLBACK_CLASS.key, options[TelemetryOptions.CALLBACK_CLASS]
    if chosen == HTTP_CALLBACK:
        return None
    if ":" not in chosen:
        raise ConfigError(
            f"{key} is {chosen!r}; legal values: only {HTTP_CALLBACK} and a Python function as package.module:name: leave it out"
        )
    return imported_function(chosen, key)


@dataclass(frozen=True)
class Commit:
    """A commit to report."""

    action: str
    instant: str
    metadata: CommitMetadata
    seconds: Mapping[str, float]


def report_commit(
    options: Options, read_config: Callable[[], TableConfig], base: str, commit: Commit
) -> None:
    """Write metrics and call back, as far as the options say; a failure is a warning."""
    if not (is_reported(options) or options[TelemetryOptions.CALLBACK]):
        return
    try:
        config = read_config()
    except (HudiError, OSError) as error:
        logger.warning(
            "the commit %s of %s is complete, but is not reported: %s", commit.instant, base, error
        )
        return
    if is_reported(options):
        zone = config.timeline_zone
        figures = commit_metrics(commit.action, commit.instant, commit.metadata, commit.seconds, zone)
        report(options, config.name, figures)
    call_back(options, (config.name, base), commit.instant, commit.action, commit.metadata)


def call_back(
    options: Options, place: tuple[str, str], instant: str, action: str, metadata: CommitMetadata
) -> None:
    """Send the message of a commit; a failure is a warning."""
    if not options[TelemetryOptions.CALLBACK]:
        return
    message = {
        "commitTime": instant,
        "tableName": place[0],
        "basePath": place[1],
        "hoodieWriteStat": [stat.to_dict() for _, stat in metadata.write_stats()],
        "commitActionType": action,
        "extraMetadata": metadata.extra_metadata,
    }
    url = options[TelemetryOptions.CALLBACK_URL] or ""
    chosen = options[TelemetryOptions.CALLBACK_CLASS]
    receiver = urlsplit(url).hostname if chosen == HTTP_CALLBACK else chosen
    try:
        own = own_callback(options)
        if own is not None:
            own(message)
        else:
            seconds = options[TelemetryOptions.CALLBACK_TIMEOUT]
            post(url, json.dumps(message).encode(), _headers(options), seconds)
    except Exception as error:  # noqa: BLE001 - code of the user's own, after the commit
        logger.warning(
            "the commit %s of %s is complete, but the callback to %s failed: %s",
            instant,
            place[0],
            receiver,
            error,
        )


def _headers(options: Options) -> dict[str, str]:
    """Return the headers of the request; a line break in one would begin another."""
    headers = {
        "Content-Type": "application/json",
        _KEY_HEADER: options[TelemetryOptions.CALLBACK_API_KEY] or "",
    }
    for pair in (options[TelemetryOptions.CALLBACK_HEADERS] or "").split(";"):
        name, colon, value = pair.partition(":")
        if pair.strip() and (not colon or not name.strip() or "\n" in pair or "\r" in pair):
            raise ConfigError(
                "hoodie.write.commit.callback.http.custom.headers is no list of headers; write it as name:value;name:value"
            )
        if pair.strip():
            headers[name.strip()] = value.strip()
    return headers
