"""The page in a browser, a headless Chromium: it shows, sorts, follows light and dark, and breaks no rule of its own."""

from __future__ import annotations

import importlib
import json
import logging
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.report import serve

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
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The page as it is served, with a script behind its own that looks at it and clicks."""
    source = importlib.import_module("hudi_engine.table.report.page")
    monkeypatch.setattr(source, "SCRIPT", source.SCRIPT + LOOK)
    days = [f"day={number}" for number in range(30)]
    table = busy_table(tmp_path / "t", commits=60, partitions=days, logs=True)
    server = serve.serve_report(open_storage(str(table)), resolve_options(None))
    thread = threading.Thread(target=server.run)
    thread.start()
    yield server.url
    server.stop()
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


def test_it_shows_sorts_and_asks_for_nothing(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, serve.__name__)
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
    asked = [str(record.getMessage()) for record in caplog.records if "look from" in record.getMessage()]
    assert asked and all("GET / HTTP/1.1" in line for line in asked)
