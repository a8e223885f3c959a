"""The page of the server, its metrics and its health, over HTTP as browsers and Prometheus ask, and in a Chromium."""

from __future__ import annotations

import base64
import http.client
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlencode

import pytest
from hudi_engine.server.history import shown_text
from hudi_engine.server.passwords import Passwords, add_user
from hudi_engine.server.server import HudiServer
from pyhive import hive

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HOSTILE = "select '<script>document.title = \"broken\"</script><img src=x onerror=alert(1)>' as harm"
LONG = "select count(*) from range(3000000000) a where hash(a.id) = 7 and 'long one' <> ''"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def asked(
    server: HudiServer,
    path: str,
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    try:
        if form is None:
            client.request("GET", path, headers=dict(headers or {}))
        else:
            client.request("POST", path, urlencode(form), {**FORM, **(headers or {})})
        answer = client.getresponse()
        return answer.status, answer.read().decode()
    finally:
        client.close()


def login(user: str, password: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


def samples(server: HudiServer) -> dict[str, float]:
    lines = [line for line in asked(server, "/metrics")[1].splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def bytes_sent(server: HudiServer) -> int:
    text = server.sessions.history.exposition(sessions=0, running=0, waiting=0).decode()
    found = re.search(r"^hudi_server_sent_bytes_total (\d+)$", text, re.MULTILINE)
    assert found is not None
    return int(found[1])


@pytest.fixture
def running(connect: Callable[..., hive.Connection]) -> Iterator[hive.Cursor]:
    """A statement that runs until it is cancelled."""
    cursor = connect().cursor()
    cursor.execute(LONG, async_=True)
    yield cursor
    cursor.cancel()


def form_of(page: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="(\w+)">', page))


def ended(cursor: hive.Cursor) -> str:
    for _ in range(3000):
        status = cursor.poll()
        if status.operationState in (2, 3, 4, 5):
            return str(status.errorMessage)
        time.sleep(0.1)
    raise AssertionError("the statement runs on")


class TestPage:
    def test_it_shows_statements_errors_and_tables_as_text(
        self, server: HudiServer, connect: Callable[..., hive.Connection]
    ) -> None:
        cursor = connect(username="<b>ann</b>").cursor()
        cursor.execute(HOSTILE)
        cursor.execute("create or replace table shop.`seen` using hudi comment '<i>all</i>' as select 1 id")
        cursor.execute("create or replace view shop.seen_view as select 1 id")
        with pytest.raises(hive.OperationalError):
            cursor.execute("select '<script>' from nowhere.`<u>`")
        status, page = asked(server, "/")
        assert status == 200
        assert (
            page.count("<script>") == 1 and "<img" not in page and "<b>ann" not in page and "<i>" not in page
        )
        assert "&lt;script&gt;document.title" in page
        assert "TABLE_OR_VIEW_NOT_FOUND" in page
        assert '<a href="/tables/shop/seen">' in page and "/tables/shop/seen_view" not in page
        assert "__hudi_files" not in page

    def test_each_hudi_table_has_its_report(
        self, server: HudiServer, connect: Callable[..., hive.Connection]
    ) -> None:
        connect().cursor().execute("create or replace table shop.`told` using hudi as select 1 id")
        status, page = asked(server, "/tables/shop/told")
        assert status == 200 and "Rows in the table after each commit" in page
        for other in ("/tables/shop/nothing", "/tables/shop", "/tables/..%2F..%2Fetc/passwd", "/else"):
            assert asked(server, other)[0] == 404

    def test_its_button_cancels_a_statement(self, server: HudiServer, running: hive.Cursor) -> None:
        page = asked(server, "/")[1]
        assert "long one" in page
        assert asked(server, "/cancel", form=form_of(page))[0] == 303
        assert "cancelled on the page" in ended(running)

    def test_secrets_are_hidden(self, server: HudiServer, connect: Callable[..., hive.Connection]) -> None:
        cursor = connect().cursor()
        cursor.execute("set spark.hadoop.fs.s3a.secret.key = 'swordfish'")
        with pytest.raises(hive.OperationalError):
            cursor.execute(
                "create table shop.x using csv options (password 'swordfish', path 's3://a:swordfish@b/c')"
            )
        page = asked(server, "/")[1]
        assert "fs.s3a.secret.key" in page and "swordfish" not in page

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("set a.password=x y", "set a.password=*** y"),
            ("options (`access.key` \"it's\", b 'c')", "options (`access.key` ***, b 'c')"),
            ("f(token => 'a''b', 1)", "f(token => ***, 1)"),
            ("select token from tokens where a = 'b'", "select token from tokens where a = 'b'"),
            ("options (password 'unended", "options (password ***"),
        ],
    )
    def test_secrets_are_found_by_their_names(self, text: str, shown: str) -> None:
        assert shown_text(text) == shown


class TestOtherSites:
    """What a page of another site may make a browser send."""

    def test_they_read_and_cancel_nothing(self, server: HudiServer, running: hive.Cursor) -> None:
        form = form_of(asked(server, "/")[1])
        for headers in (
            {"Host": "evil.example"},
            {"Host": "127.0.0.1.evil.example:10000"},
            {"Host": ""},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
        ):
            assert asked(server, "/", headers)[0] in (403, 421), headers
            assert asked(server, "/metrics", headers)[0] in (403, 421), headers
            assert asked(server, "/cancel", headers, form)[0] in (403, 421), headers
        assert running.poll().operationState == 1

    def test_a_form_without_the_pages_token_does_nothing(
        self, server: HudiServer, running: hive.Cursor
    ) -> None:
        form = form_of(asked(server, "/")[1])
        for token in ("", "0" * 64, "é"):
            assert asked(server, "/cancel", form={**form, "token": token})[0] == 403
        assert asked(server, "/cancel", {"Content-Type": "text/plain"}, form)[0] == 415
        assert running.poll().operationState == 1

    def test_a_link_on_another_site_may_lead_here(self, server: HudiServer) -> None:
        assert asked(server, "/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})[0] == 200

    def test_pages_cannot_be_framed_or_kept(self, server: HudiServer) -> None:
        client = http.client.HTTPConnection("localhost", server.port, timeout=300)
        client.request("GET", "/")
        answer = client.getresponse()
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Cache-Control"] == "no-store"
        client.close()


class TestUsers:
    @pytest.fixture(scope="class")
    def guarded(
        self, start_server: Callable[..., HudiServer], tmp_path_factory: pytest.TempPathFactory
    ) -> HudiServer:
        path = str(tmp_path_factory.mktemp("users") / "users")
        add_user(path, "ann", "first one")
        add_user(path, "bob", "other one")
        return start_server(log_in=Passwords.load(path).check)

    def test_only_users_see_the_page_and_the_metrics(self, guarded: HudiServer) -> None:
        for path in ("/", "/metrics", "/tables/shop/told"):
            assert asked(guarded, path)[0] == 401
            assert asked(guarded, path, login("ann", "other one"))[0] == 401
        assert asked(guarded, "/", login("ann", "first one"))[0] == 200
        assert asked(guarded, "/healthz") == (200, "ok\n")

    def test_statements_of_others_are_neither_read_nor_cancelled(self, guarded: HudiServer) -> None:
        with hive.connect(
            "127.0.0.1", guarded.port, username="ann", password="first one", auth="LDAP"
        ) as connection:
            cursor = connection.cursor()
            cursor.execute(LONG, async_=True)
            of_ann = asked(guarded, "/", login("ann", "first one"))[1]
            of_bob = asked(guarded, "/", login("bob", "other one"))[1]
            assert "long one" in of_ann
            assert "long one" not in of_bob and "(of another user)" in of_bob and form_of(of_bob) == {}
            form = form_of(of_ann)
            assert asked(guarded, "/cancel", login("bob", "other one"), form)[0] == 403
            assert cursor.poll().operationState == 1
            assert asked(guarded, "/cancel", login("ann", "first one"), form)[0] == 303
            assert "cancelled on the page" in ended(cursor)


def test_metrics_count_what_clients_did(server: HudiServer, connect: Callable[..., hive.Connection]) -> None:
    cursor = connect().cursor()
    before = samples(server)
    connect()  # which has PyHive send USE
    cursor.execute(
        "create or replace table shop.counted using hudi tblproperties (primaryKey = 'id') as select 1 id"
    )
    cursor.execute("insert into shop.counted select id from range(2, 12)")
    cursor.execute("select * from shop.counted")
    assert len(cursor.fetchall()) == 11
    with pytest.raises(hive.OperationalError):
        cursor.execute("select nothing")
    after = samples(server)
    grown = {name: value - before.get(name, 0) for name, value in after.items()}
    assert after["hudi_server_sessions"] >= 1
    assert grown["hudi_server_sessions_opened_total"] == 1
    assert grown['hudi_server_statements_total{state="finished"}'] == 4
    assert grown['hudi_server_statements_total{state="failed"}'] == 1
    assert grown["hudi_server_statement_seconds_count"] == 5
    assert grown['hudi_server_statement_seconds_bucket{le="+Inf"}'] == 5
    assert grown["hudi_server_rows_returned_total"] >= 11
    assert grown["hudi_server_sent_bytes_total"] > 100
    assert sum(value for name, value in grown.items() if "commits_total" in name) >= 2
    assert grown["hudi_server_rows_written_total"] >= 11
    assert grown["hudi_server_written_bytes_total"] > 1000


def test_metrics_are_as_prometheus_reads_them(server: HudiServer) -> None:
    text = asked(server, "/metrics")[1]
    kinds = dict(re.findall(r"^# TYPE (\w+) (gauge|counter|histogram)$", text, re.MULTILINE))
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP \w+ .+|TYPE \w+ \w+)", line)
            continue
        found = re.fullmatch(r'(\w+?)(_bucket|_sum|_count)?(\{\w+="[^"\\]*"\})? [0-9.e+]+', line)
        assert found is not None, line
        name = found[1] if found[1] in kinds else f"{found[1]}{found[2]}"
        assert kinds[name] == "histogram" or found[2] is None or name.endswith(found[2])


@pytest.mark.skipif(CHROMIUM is None, reason="LEFT OUT: the page in a browser: there is no chromium here")
def test_a_browser_shows_the_page_and_runs_nothing_of_it(
    server: HudiServer, connect: Callable[..., hive.Connection], tmp_path: Path
) -> None:
    cursor = connect().cursor()
    cursor.execute(HOSTILE)
    later = "select 'came while the page was open'"
    sent = bytes_sent(server)

    def run_when_it_is_open() -> None:
        while bytes_sent(server) < sent + 5000:
            time.sleep(0.02)
        connect().cursor().execute(later)

    opened = threading.Thread(target=run_when_it_is_open)
    opened.start()
    words = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    words += ["--enable-logging=stderr", f"--user-data-dir={tmp_path}", "--virtual-time-budget=600000"]
    done = subprocess.run(
        [*words, f"http://127.0.0.1:{server.port}/"], capture_output=True, text=True, timeout=600, check=True
    )
    opened.join()
    assert "<title>dbt-hudi serve</title>" in done.stdout
    assert "document.title = " in done.stdout and "<img" not in done.stdout
    assert "came while the page was open" in done.stdout, "the page renews itself"
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
