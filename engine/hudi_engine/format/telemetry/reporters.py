"""Where metrics go: a text file for Prometheus, JSON lines, a push gateway, statsd. A failure is a warning."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.telemetry_options import TelemetryOptions
from hudi_engine.format.config.enums import MetricsReporter
from hudi_engine.format.config.options import Options
from hudi_engine.format.storage.local import LocalStorage

logger = logging.getLogger(__name__)

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_:]")
_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*) (\S+)$")
_NOT_OF_A_URL = re.compile(r"[^\x21-\x7e]")
_NOT_OF_STATSD = re.compile(r"[^\x21-\x7e]|[:|@#,]")
_HOST = re.compile(r"[a-zA-Z0-9.-]+|\[[0-9a-fA-F:]+\]")
Send = Callable[[Options, str, Mapping[str, int]], None]
Listen = Callable[[str, Mapping[str, int]], None]
_LISTENERS: list[Listen] = []
_SECONDS = 3
_DATAGRAM_BYTES = 1432
"""What passes an Ethernet in one piece."""


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def post(url: str, body: bytes, headers: Mapping[str, str], seconds: int = _SECONDS) -> None:
    """Send a request and read the first byte of its answer; no redirect is followed.

    Raises:
        OSError: The receiver cannot be reached, or refuses. Its text never has a header or a line of the answer.
    """
    try:
        request = Request(url, body, dict(headers), method="POST")
        with build_opener(_NoRedirect).open(request, timeout=seconds) as answer:
            answer.read(1)
    except (HTTPException, ValueError) as error:
        raise OSError(type(error).__name__) from error


def is_address(text: str) -> bool:
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


def check_reporters(options: Options) -> None:
    """Refuse metrics that cannot be sent, before anything is written."""
    if not options[TelemetryOptions.METRICS]:
        return
    reporter = options[TelemetryOptions.REPORTER]
    if reporter is MetricsReporter.PROMETHEUS and options[TelemetryOptions.TEXTFILE_FOLDER] is None:
        raise ConfigError(
            f"{TelemetryOptions.REPORTER} is PROMETHEUS, and {TelemetryOptions.TEXTFILE_FOLDER} is not set; set it to the folder "
            "of the node exporter's textfile collector"
        )
    host = options[TelemetryOptions.GATEWAY_HOST]
    if reporter is MetricsReporter.PROMETHEUS_PUSHGATEWAY and not _HOST.fullmatch(host):
        raise ConfigError(
            f"{TelemetryOptions.GATEWAY_HOST} is no name of a host; set it to one such as gateway.example.com, without a scheme"
        )


@contextmanager
def listening(listen: Listen) -> Iterator[None]:
    """Call a function of this process with each table's name and metrics too, whatever the options say; it must not raise."""
    _LISTENERS.append(listen)
    try:
        yield
    finally:
        _LISTENERS.remove(listen)


def is_reported(options: Options) -> bool:
    """Return whether anybody wants metrics."""
    return bool(_LISTENERS) or options[TelemetryOptions.METRICS]


def report(options: Options, table: str, values: Mapping[str, int]) -> None:
    """Send a table's metrics to each place that the options name, and to who listens; a failure is a warning."""
    for listen in list(_LISTENERS):
        listen(table, values)
    if not options[TelemetryOptions.METRICS]:
        return
    prefix = options[TelemetryOptions.METRICS_PREFIX] or table
    reporter = options[TelemetryOptions.REPORTER]
    places: Sequence[tuple[bool, str, Send]] = (
        (options[TelemetryOptions.TEXTFILE_FOLDER] is not None, "the text file", _text_file),
        (options[TelemetryOptions.JSON_FILE] is not None, "the JSON file", _json_line),
        (reporter is MetricsReporter.PROMETHEUS_PUSHGATEWAY, "the push gateway", _push),
        (reporter is MetricsReporter.DATADOG, "the agent", _datagrams),
    )
    for is_wanted, place, send in places:
        if not is_wanted:
            continue
        try:
            send(options, prefix, values)
        except OSError as error:
            logger.warning("the metrics of %s could not be written to %s: %s", table, place, error)


def _text_file(options: Options, prefix: str, values: Mapping[str, int]) -> None:
    """Bring the table's file up to date: it is replaced as a whole, so that a collector never reads half of it."""
    path = Path(options[TelemetryOptions.TEXTFILE_FOLDER] or "") / f"{_name(prefix)}.prom"
    known = _samples(path)
    known.update(_named(prefix, values))
    LocalStorage(str(path.parent)).replace(path.name, _exposition(known))


def _json_line(options: Options, prefix: str, values: Mapping[str, int]) -> None:
    """Append one line; those of several processes do not mix, as each is one call."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    line = json.dumps({"time": now, "table": prefix, "metrics": dict(values)}, ensure_ascii=False)
    path = Path(options[TelemetryOptions.JSON_FILE] or "")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(handle, f"{line}\n".encode())
    finally:
        os.close(handle)


def _push(options: Options, prefix: str, values: Mapping[str, int]) -> None:
    """Replace the metrics of these names in the group of the table's job."""
    url = _gateway(options, prefix)
    post(url, _exposition(_named(prefix, values)), {"Content-Type": "text/plain; version=0.0.4"})


def _gateway(options: Options, prefix: str) -> str:
    host, port = options[TelemetryOptions.GATEWAY_HOST], options[TelemetryOptions.GATEWAY_PORT]
    job = options[TelemetryOptions.GATEWAY_JOB] or prefix
    labels = (pair.partition(":") for pair in _listed(options[TelemetryOptions.GATEWAY_LABELS]))
    group = "".join(f"/{quote(name, safe='')}/{quote(value, safe='')}" for name, _, value in labels if value)
    return f"http://{host}:{port}/metrics/job/{quote(job, safe='')}{group}"


def _datagrams(options: Options, prefix: str, values: Mapping[str, int]) -> None:
    """Send gauges in the line protocol of statsd, with Datadog's tags; UDP: whether they arrive is not known."""
    tags = ",".join(re.sub(r"[|#\s]", "_", tag) for tag in _listed(options[TelemetryOptions.STATSD_TAGS]))
    ending = f"|g|#{tags}" if tags else "|g"
    start = options[TelemetryOptions.STATSD_PREFIX] or prefix
    lines = [
        f"{_NOT_OF_STATSD.sub('_', f'{start}.{name}')}:{value}{ending}" for name, value in values.items()
    ]
    place = (options[TelemetryOptions.STATSD_HOST], options[TelemetryOptions.STATSD_PORT])
    family, kind, protocol, _, address = socket.getaddrinfo(*place, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as sender:
        for datagram in _packed(lines):
            sender.sendto(datagram, address)


def _packed(lines: list[str]) -> Iterator[bytes]:
    held = b""
    for line in lines:
        joined = f"\n{line}".encode() if held else line.encode()
        if held and len(held) + len(joined) > _DATAGRAM_BYTES:
            yield held
            held, joined = b"", line.encode()
        held += joined
    if held:
        yield held


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _named(prefix: str, values: Mapping[str, int]) -> dict[str, str]:
    return {_name(f"{prefix}.{name}"): str(value) for name, value in values.items()}


def _samples(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return {}
    return {found[1]: found[2] for line in text.splitlines() if (found := _SAMPLE.match(line))}


def _exposition(samples: Mapping[str, str]) -> bytes:
    return "".join(f"# TYPE {name} gauge\n{name} {samples[name]}\n" for name in sorted(samples)).encode()


def _name(text: str) -> str:
    name = _ILLEGAL.sub("_", text)
    return f"_{name}" if name[:1].isdigit() else name
