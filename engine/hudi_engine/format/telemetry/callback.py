"""What follows a commit: its metrics, and Apache Hudi's write commit callback over HTTP.

The message is that of Hudi's ``HoodieWriteCommitHttpCallback``: table, place, instant and what was written, as JSON. A
failure is a warning and leaves the commit as it is; the wait is bounded, and no redirect is followed.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from hudi_engine.errors import ConfigError, HudiError
from hudi_engine.format.config.declared.telemetry_options import TelemetryOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.telemetry.services import commit_metrics, report
from hudi_engine.format.timeline.commit_metadata import CommitMetadata

logger = logging.getLogger(__name__)

HTTP_CALLBACK = "org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback"
_KEY_HEADER = "HUDI_CALLBACK_KEY"
_NOT_OF_A_URL = re.compile(r"[^\x21-\x7e]")


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def check_callback(options: Options) -> None:
    """Refuse a callback that cannot be made, before anything is written."""
    if not options[TelemetryOptions.CALLBACK]:
        return
    chosen = options[TelemetryOptions.CALLBACK_CLASS]
    if chosen != HTTP_CALLBACK:
        raise ConfigError(
            f"hoodie.write.commit.callback.class is {chosen!r}; only {HTTP_CALLBACK} works here: leave it out"
        )
    if not _is_address(options[TelemetryOptions.CALLBACK_URL] or ""):
        raise ConfigError(
            "hoodie.write.commit.callback.on is true, and hoodie.write.commit.callback.http.url is no address of HTTP; "
            "set it to one such as https://hooks.example.com/hudi, without a login: what the receiver requires can be sent "
            "with hoodie.write.commit.callback.http.custom.headers"
        )
    _headers(options)


def _is_address(text: str) -> bool:
    """Return whether a request can be sent to an address: it has a host, no login, a port that is one, and no blanks."""
    if _NOT_OF_A_URL.search(text):
        return False
    try:
        url = urlsplit(text)
        return (
            url.scheme in ("http", "https") and bool(url.hostname) and "@" not in url.netloc and url.port != 0
        )
    except ValueError:
        return False


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
    if not (options[TelemetryOptions.METRICS] or options[TelemetryOptions.CALLBACK]):
        return
    try:
        config = read_config()
    except (HudiError, OSError) as error:
        logger.warning(
            "the commit %s of %s is complete, but is not reported: %s", commit.instant, base, error
        )
        return
    if options[TelemetryOptions.METRICS]:
        zone = config.timeline_zone
        figures = commit_metrics(commit.action, commit.instant, commit.metadata, commit.seconds, zone)
        report(options, config, figures)
    call_back(options, (config.name, base), commit.instant, commit.action, commit.metadata)


def call_back(
    options: Options, place: tuple[str, str], instant: str, action: str, metadata: CommitMetadata
) -> None:
    """Post the message of a commit; a failure is a warning."""
    if not options[TelemetryOptions.CALLBACK]:
        return
    url = options[TelemetryOptions.CALLBACK_URL] or ""
    message = {
        "commitTime": instant,
        "tableName": place[0],
        "basePath": place[1],
        "hoodieWriteStat": [stat.to_dict() for _, stat in metadata.write_stats()],
        "commitActionType": action,
        "extraMetadata": metadata.extra_metadata,
    }
    request = Request(url, json.dumps(message).encode(), _headers(options), method="POST")
    seconds = options[TelemetryOptions.CALLBACK_TIMEOUT]
    try:
        with build_opener(_NoRedirect).open(request, timeout=seconds) as answer:
            answer.read(1)
    except (OSError, HTTPException, ValueError) as error:
        # of these two the text may be a line of the answer, the address or a header
        reason = type(error).__name__ if isinstance(error, (HTTPException, ValueError)) else error
        logger.warning(
            "the commit %s of %s is complete, but the callback to %s failed: %s",
            instant,
            place[0],
            urlsplit(url).hostname,
            reason,
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
