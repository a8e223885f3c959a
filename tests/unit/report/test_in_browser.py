"""The page in a browser, a headless Chromium: it shows, sorts, follows light and dark, and breaks no rule of its own."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.report import write_report
from hudi_engine.table.state import TableState

from tests.helpers.busy_table import busy_table

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DARK, LIGHT = "0", "1"
LOOK = """
const marks = document.createElement("output");
const heads = [...document.querySelectorAll("[aria-label=Partitions] th.n button")];
const button = heads[heads.length - 1];
for (let clicks = 0; clicks < 2; clicks++) button.click();
const table = button.closest("table"), place = button.parentNode.cellIndex;
marks.textContent = JSON.stringify({
  ground: getComputedStyle(document.body).backgroundColor,
  wide: document.documentElement.scrollWidth <= innerWidth,
  bars: [...document.querySelectorAll("svg rect")].filter(each => each.getBoundingClientRect().width > 0).length,
  sorted: [...table.tBodies[0].rows].map(row => Number(row.cells[place].dataset.v)),
});
document.body.append(marks);
"""

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="LEFT OUT: the report in a browser: there is no chromium here"
)


@pytest.fixture
def asked() -> list[str]:
    """The requests of the browser."""
    return []


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str]) -> Iterator[str]:
    """The page on a server, with a script behind its own that looks at it and clicks."""
    source = importlib.import_module("hudi_engine.table.report.page")
    monkeypatch.setattr(source, "SCRIPT", source.SCRIPT + LOOK)
    days = [f"day={number}" for number in range(30)]
    table = busy_table(tmp_path / "t", commits=60, partitions=days, logs=True)
    page = tmp_path / "index.html"
    write_report(TableState.load(open_storage(str(table))), resolve_options(None), page)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.requestline)
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page.read_bytes())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    thread.join()


def seen(url: str, profile: Path, scheme: str, size: str) -> tuple[dict[str, object], str]:
    """Open the page; returns what the script saw, and what the browser complained of."""
    words = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    words += ["--enable-logging=stderr", f"--user-data-dir={profile}", f"--window-size={size}"]
    words += [
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--blink-settings=preferredColorScheme={scheme}",
        url,
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r"<output>(.*?)</output>", done.stdout)
    assert found is not None, done.stdout[-2000:] + done.stderr[-2000:]
    complaints = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return json.loads(found[1]), complaints


def test_it_shows_sorts_and_asks_for_nothing(url: str, tmp_path: Path, asked: list[str]) -> None:
    dark, complaints = seen(url, tmp_path / "profile", DARK, "1000,900")
    light, more = seen(url, tmp_path / "profile", LIGHT, "420,900")

    assert complaints == more == ""
    assert (dark["ground"], light["ground"]) == ("rgb(15, 19, 24)", "rgb(255, 255, 255)")
    assert dark["wide"] and light["wide"], "nothing is wider than the window"
    for look in (dark, light):
        sizes = look["sorted"]
        assert isinstance(sizes, list) and len(sizes) == 30
        assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[-1]
        assert isinstance(look["bars"], int) and look["bars"] > 60
    assert asked and all(line == "GET / HTTP/1.1" for line in asked)
