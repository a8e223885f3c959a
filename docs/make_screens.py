"""Writes the pictures of docs/screens: what a person sees in a terminal.

python3 dev.py run python docs/make_screens.py [NAME ...]

Each picture is one command, or a few typed at a prompt, run in a terminal of its own, over the project of the quick
start or the demo. Times in the pictures are those of the run that made them.
"""

from __future__ import annotations

import argparse
import os
import platform
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterable
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
SCREENS = Path(__file__).with_name("screens")
_COLUMNS, _ROWS = 132, 50
_PATIENCE = 900.0
_DEMO = ("--project-dir", "integration_tests", "--profiles-dir", "integration_tests")
_QUICK = ("python", "integration_tests/run.py", "--quick")
_MONTHS = (
    "select month, count(*) as flights, count_if(not final_figures) as awaited from flights.flights "
    "group by month order by month"
)
_CHANGES = (
    "select op, count(*) as changes from hudi_table_changes('flights.flights', 'cdc', 'earliest') group by op"
)
_SLOW_MODEL = """{{ config(materialized='table') }}
select id, concat('customer ', sha2(cast(id as string), 256)) as name, id % 1000 as city from range(0, 4000000, 1, 16)
"""


@dataclass(frozen=True)
class Screen:
    """A picture.

    Args:
        name: File name without its ending.
        title: Text above the picture.
        command: What runs; the first word is a program of the environment.
        typed: Lines typed one after the other, each when the prompt is there.
        prompt: End of the screen that waits for the next line.
        rows: Most rows that are drawn, from the end.
        begins: Start of the first row that is drawn; all for an empty text.
        ends: Start of the row before which the picture ends; at the end for an empty text.
        demo: Runs in the checkout instead of the project of the quick start.
    """

    name: str
    title: str
    command: tuple[str, ...]
    typed: tuple[str, ...] = ()
    prompt: str = ""
    rows: int = 48
    begins: str = ""
    ends: str = ""
    demo: bool = False


PICTURES = (
    Screen("debug", "dbt debug", ("dbt", "debug")),
    Screen("long-node", "dbt run -s customers", ("dbt", "run", "-s", "customers")),
    Screen(
        "shell",
        "dbt-hudi shell",
        ("python", "-m", "dbt.adapters.hudi.shell", "shell"),
        ("run -s orders", "run -s orders", "show -s orders", "exit"),
        prompt="dbt-hudi> ",
    ),
    Screen(
        "demo",
        "python3 dev.py demo --months 3",
        ("python", "integration_tests/run.py", "--months", "3"),
        rows=60,
        demo=True,
    ),
    # The pictures of docs/tutorial.md: the first one builds the tables that the others show.
    Screen("tutorial-run", "python3 dev.py demo --quick", _QUICK, begins="1.", ends="3.", demo=True),
    Screen("tutorial-commits", "python3 dev.py demo --quick", _QUICK, begins="3.", ends="4.", demo=True),
    Screen("tutorial-readers", "python3 dev.py demo --quick", _QUICK, begins="4.", ends="5.", demo=True),
    Screen(
        "tutorial-show", "dbt show", ("dbt", "--quiet", "show", *_DEMO, "--inline", _MONTHS), demo=True,
    ),
    Screen(
        "tutorial-timeline", "hudi-engine integration_tests/warehouse/flights/flights timeline",
        ("hudi-engine", "integration_tests/warehouse/flights/flights", "timeline"), demo=True,
    ),
    Screen(
        "tutorial-changes", "dbt show", ("dbt", "--quiet", "show", *_DEMO, "--inline", _CHANGES), demo=True,
    ),
)  # fmt: skip


def main() -> None:
    """Make the pictures that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=", ".join(screen.name for screen in PICTURES))
    names = parser.parse_args().names
    unknown = set(names) - {screen.name for screen in PICTURES}
    if unknown:
        parser.error(f"no picture {', '.join(sorted(unknown))}; there are {[one.name for one in PICTURES]}")
    SCREENS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="shop-") as folder:
        project = make_project(Path(folder) / "shop")
        outputs: dict[tuple[str, ...], str] = {}
        for screen in PICTURES:
            if names and screen.name not in names:
                continue
            print(f"{screen.name}: {' '.join(screen.command)}", flush=True)
            if screen.command not in outputs:
                outputs[screen.command] = run(screen, ROOT if screen.demo else project)
            shown = {
                str(project): "/home/you/shop",
                str(ROOT): "/home/you/dbt-hudi",
                platform.platform(): "Linux",
            }
            text = drawn(outputs[screen.command], screen, shown)
            (SCREENS / f"{screen.name}.svg").write_text(picture(text, screen.title))


def make_project(folder: Path) -> Path:
    """Write the project of the quick start, and a model that takes a while."""
    page = (ROOT / "docs" / "quickstart.md").read_text()
    for block in re.findall(r"```\w+\n((?:#|--) [\w/]+\.\w+\n.*?)```", page, re.DOTALL):
        name = block.split("\n", 1)[0].split(" ", 1)[1]
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block)
    (folder / "models" / "customers.sql").write_text(_SLOW_MODEL)
    subprocess.run([sys.executable, "land.py"], cwd=folder, check=True)
    return folder


def run(screen: Screen, folder: Path) -> str:
    """Run a command in a terminal of its own and give all that it wrote there."""
    leader, follower = pty.openpty()
    ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    programs = str(Path(sys.executable).parent)
    environment = {**os.environ, "TERM": "xterm-256color", "PATH": f"{programs}:{os.environ['PATH']}"}
    process = subprocess.Popen(
        screen.command, cwd=folder, env=environment, stdin=follower, stdout=follower, stderr=follower,
        start_new_session=True,
    )  # fmt: skip
    os.close(follower)
    written, waiting, until = b"", list(screen.typed), time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if select.select([leader], [], [], 0.5)[0]:
            try:
                written += os.read(leader, 65536)
            except OSError:
                break
        elif waiting and _plain(written).rstrip().endswith(screen.prompt.rstrip()):
            os.write(leader, waiting.pop(0).encode() + b"\n")
    process.wait(timeout=60)
    os.close(leader)
    return written.decode(errors="replace").replace("\r\n", "\n")


def drawn(written: str, screen: Screen, names: dict[str, str]) -> Text:
    """Give the rows of a terminal that a picture shows as styled text.

    Args:
        written: All that was written there.
        names: Texts that are replaced, such as a temporary folder by the name a reader has for it.
    """
    for path, name in names.items():
        written = written.replace(path, name)
    lines = [line for line in Text.from_ansi(written).split("\n") if line.plain.strip()]
    lines = lines[_row(lines, screen.begins) :]
    if screen.ends:
        lines = lines[: _row(lines, screen.ends)]
    return Text("\n").join(lines[-screen.rows :])


def picture(text: Text, title: str) -> str:
    """Give a styled text as SVG."""
    width = min(_COLUMNS, max([80, *(len(line) for line in text.plain.splitlines())]))
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=width, file=nowhere, force_terminal=True)
        console.print(text)
    fonts = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)
    return console.export_svg(
        title=title, code_format=fonts.sub("", CONSOLE_SVG_FORMAT), unique_id=re.sub(r"\W+", "-", title)
    )


def _row(lines: Iterable[Text], start: str) -> int:
    return next(number for number, line in enumerate(lines) if line.plain.startswith(start))


def _plain(written: bytes) -> str:
    return Text.from_ansi(written[-2000:].decode(errors="replace")).plain


if __name__ == "__main__":
    main()
