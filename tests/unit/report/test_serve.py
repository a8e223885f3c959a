"""The report over HTTP: up to date at each look, one page and nothing else, for this machine alone."""

from __future__ import annotations

import http.client
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hudi_engine.cli import main
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.report.serve import ReportServer, serve_report

from tests.helpers.interrupts import take_interrupts
from tests.unit.services import tables

DEFAULTS = resolve_options(None)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ReportServer]:
    tables.copy_on_write(tmp_path / "t", 2)
    made = serve_report(open_storage(str(tmp_path / "t")), DEFAULTS)
    thread = threading.Thread(target=made.run)
    thread.start()
    yield made
    made.stop()
    thread.join()


def ask(
    server: ReportServer, path: str = "/", method: str = "GET", host: str | None = None
) -> tuple[http.client.HTTPResponse, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server.server_address[1], timeout=20)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def test_each_look_shows_the_table_as_it_is(server: ReportServer, tmp_path: Path) -> None:
    table = open_storage(str(tmp_path / "t"))
    assert tables.writes(table)[-1] in ask(server)[1]
    newer = "20260301000000000"
    stored = next((tmp_path / "t/.hoodie").glob("*.commit"))
    stored.with_name(f"{newer}.commit").write_bytes(stored.read_bytes())
    answer, text = ask(server, "/?again")
    assert (answer.status, newer in text) == (200, True)
    assert answer.headers["Cache-Control"] == "no-store"
    assert ask(server, method="HEAD")[1] == ""


@pytest.mark.parametrize("path", ["/favicon.ico", "/.hoodie/hoodie.properties", "/../hoodie.properties"])
def test_nothing_but_the_page_is_there(path: str, server: ReportServer) -> None:
    answer, text = ask(server, path)
    assert (answer.status, text) == (404, "there is one page here, at /\n")
    assert ask(server, path, "POST")[0].status == 501


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "", "127.0.0.1.evil.example", "10.0.0.1"]
)
def test_a_page_of_the_web_whose_name_leads_here_cannot_read_it(host: str, server: ReportServer) -> None:
    assert ask(server, host=host)[0].status == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "127.0.0.1", "[::1]:9"])
def test_this_machine_may_be_asked_by_its_own_names(host: str, server: ReportServer) -> None:
    assert ask(server, host=host)[0].status == 200


def test_it_listens_for_this_machine_alone(server: ReportServer) -> None:
    assert server.server.server_address[0] == "127.0.0.1"


def test_a_table_that_cannot_be_read_is_an_answer_and_the_server_goes_on(
    server: ReportServer, tmp_path: Path
) -> None:
    properties = tmp_path / "t/.hoodie/hoodie.properties"
    kept = properties.read_bytes()
    properties.unlink()
    answer, text = ask(server)
    assert (answer.status, "not a Hudi table" in text or "no Hudi table" in text) == (500, True)
    properties.write_bytes(kept)
    assert ask(server)[0].status == 200


def test_addresses_that_make_no_sense_are_refused(server: ReportServer, tmp_path: Path) -> None:
    storage, taken = open_storage(str(tmp_path / "t")), server.server.server_address[1]
    with pytest.raises(ConfigError, match="host is 'everywhere'; legal values: addresses"):
        serve_report(storage, DEFAULTS, host="everywhere")
    with pytest.raises(ConfigError, match="port is 70000; legal values: 0"):
        serve_report(storage, DEFAULTS, port=70000)
    with pytest.raises(ConfigError, match=f"nothing can listen at 127.0.0.1 port {taken}"):
        serve_report(storage, DEFAULTS, port=taken)
    assert main([str(tmp_path / "t"), "serve-report", "--host", "nowhere"]) == 2


def test_the_command_prints_where_it_is_and_ends_at_an_interrupt(tmp_path: Path) -> None:
    tables.copy_on_write(tmp_path / "t", 1)
    words = [sys.executable, "-m", "hudi_engine.cli", str(tmp_path / "t"), "serve-report", "--json"]
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=take_interrupts,
    ) as process:
        assert process.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stderr.readline())
        assert found is not None
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=20)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        connection.close()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    assert (process.returncode, found[0] in out) == (0, True)
