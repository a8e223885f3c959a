"""Commands that a warm process runs, as a person types them: `dbt-hudi run` and what may happen to it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import hudi_engine
import pytest
import yaml
from pyhive import hive

from tests.helpers.interrupts import take_interrupts
from tests.helpers.runtime import runtime_folder

pytestmark = [pytest.mark.slow, pytest.mark.sampled]

SPARK_CONF = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
SLOW = """
{{ config(materialized='incremental', unique_key='id') }}
select id, {% if var('slow', false) %} java_method('java.lang.Thread', 'sleep', 1000000 + id) {% else %} 'x' {% endif %} as v
from range(2)
"""
FILES = {
    "models/orders.sql": "{{ config(materialized='incremental', unique_key='id') }} "
    "select id, id * 2 as twice, '{{ env_var('DAY', 'none') }}' as day from range(3)",
    "models/summary.sql": "{{ config(materialized='table') }} select count(*) as n, sum(twice) as s from {{ ref('orders') }}",
    "models/lines.sql": "{{ config(materialized='table') }} select * from csv.`data/lines.csv`",
    "models/slow.sql": SLOW,
    "models/parts.py": "def model(dbt, session):\n"
    "    return session.range(4).mapInPandas(lambda parts: (part + 1 for part in parts), 'id long')\n",
    "models/tests.yml": "models: [{name: summary, columns: [{name: n, data_tests: [{accepted_values: {arguments: {values: [3]}}}]}]}]",
    "tests/wrong.sql": "select 1 as wrong",
    "data/lines.csv": "1\n2\n",
    "seeds/days.csv": "day\n1\n2\n",
}
PLAIN = [sys.executable, "-c", "import sys; from dbt.cli.main import cli; sys.argv[0] = 'dbt'; cli()"]
WARM = [sys.executable, "-m", "dbt.adapters.hudi.shell"]
TABLES = ("orders", "summary", "lines", "parts", "days")
_WITHIN_S = 900


class Server:
    """A server of its own, below a folder in the place of the user's runtime folder."""

    def __init__(self, runtime: Path) -> None:
        self.runtime = runtime
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("DBT_", "PYSPARK_"))}
        self.environment = {**kept, "XDG_RUNTIME_DIR": str(runtime)}

    def start(self, folder: Path, program: list[str], *words: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*program, *words],
            cwd=folder,
            env={**self.environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=take_interrupts,
        )

    def run(
        self, folder: Path, *words: str, program: list[str] = WARM, code: int = 0, **variables: str
    ) -> str:
        process = self.start(folder, program, *words, **variables)
        output, _ = process.communicate(timeout=_WITHIN_S)
        assert process.returncode == code, output
        return output

    @property
    def log(self) -> str:
        return next(self.runtime.glob("dbt-hudi/server-*/log")).read_text()

    @property
    def lock(self) -> Path:
        return next(self.runtime.glob("dbt-hudi/server-*/lock"))

    def running(self) -> list[int]:
        """Process ids of the commands that run."""
        return [
            each
            for front in children(int(self.lock.read_text()))
            for each in children(front)
            if not is_java(front)
        ]


def children(process: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def is_java(process: int) -> bool:
    return b"java" in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0]


def wait_for(what: Callable[[], object], seconds: float = _WITHIN_S) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.1)


def make_project(root: Path) -> Path:
    target = {
        "type": "hudi",
        "schema": "analytics",
        "threads": 4,
        "class_archive": False,
        "spark_conf": SPARK_CONF,
    }
    odd = {**target, "spark_conf": {**SPARK_CONF, "spark.master": "local[odd]"}}
    profile = {
        "shop": {
            "target": "dev",
            "outputs": {
                "dev": target,
                "prod": {**target, "schema": "prod", "location_root": "prod"},
                "odd": odd,
            },
        }
    }
    project = {"name": "shop", "profile": "shop", "flags": {"send_anonymous_usage_stats": False}}
    texts = {"profiles.yml": yaml.safe_dump(profile), "dbt_project.yml": yaml.safe_dump(project), **FILES}
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    return root


def rows(project: Path, table: str) -> list[dict[str, object]]:
    found = hudi_engine.read(str(project / "warehouse" / "analytics" / table)).to_arrow().to_pylist()
    return sorted(
        ({key: value for key, value in row.items() if not key.startswith("_hoodie")} for row in found),
        key=str,
    )


def open_instants(project: Path, table: str) -> list[str]:
    """Instants of a table that neither completed nor were taken back."""
    timeline = project / "warehouse" / "analytics" / table / ".hoodie"
    done = {
        each.name.split("_")[0].split(".")[0]
        for each in timeline.rglob("*commit")
        if "inflight" not in each.name
    }
    begun = {each.name.split(".")[0] for each in timeline.rglob("*.requested")}
    return sorted(begun - done)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with runtime_folder() as runtime:
        made = Server(runtime)
        yield made
        made.run(runtime, "serve", "--end")
        wait_for(lambda: "ended" in made.log.splitlines())


@pytest.fixture(scope="module")
def project(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that a command has built which started the server."""
    root = make_project(tmp_path_factory.mktemp("first project"))
    server.run(root, "--start", "build", "--exclude", "wrong", DAY="monday")
    return root


def test_a_build_leaves_what_dbt_itself_leaves(
    server: Server, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = make_project(tmp_path_factory.mktemp("plain"))
    server.run(other, "build", "--exclude", "wrong", program=PLAIN, DAY="monday")
    for table in TABLES:
        assert rows(project, table) == rows(other, table) != []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("run", "-s", "orders"), 0),
        (("compile", "-s", "nowhere"), 0),
        (("test", "-s", "wrong"), 1),
        (("show", "--inline", "select nowhere"), 2),
        (("run", "--nonsense"), 2),
    ],
)
def test_exit_code_and_words_are_those_of_dbt(
    server: Server, project: Path, words: tuple[str, ...], code: int
) -> None:
    output = server.run(project, *words, code=code)
    assert "Running with dbt" in output or "Usage: dbt run" in output


def test_folder_environment_and_streams_are_the_callers(server: Server, project: Path) -> None:
    inner = project / "models"
    process = subprocess.run(
        [*WARM, "--quiet", "compile", "-s", "orders", "--project-dir", "..", "--profiles-dir", ".."],
        cwd=inner,
        env={**server.environment, "DAY": "föhn"},
        capture_output=True,
        text=True,
        timeout=_WITHIN_S,
        check=True,
    )
    assert "'föhn' as day" in process.stdout and process.stderr == ""
    assert "'none' as day" in server.run(project, "compile", "-s", "orders")


def test_targets_of_a_project_share_a_java_and_keep_their_tables_apart(server: Server, project: Path) -> None:
    started = server.log.count("started Java")
    server.run(project, "run", "-s", "orders", "--target", "prod")
    assert (project / "prod" / "prod" / "orders" / ".hoodie").exists()
    assert "TABLE_OR_VIEW_NOT_FOUND" in server.run(
        project, "show", "--inline", "select * from prod.orders", code=2
    )
    assert server.log.count("started Java") == started


def test_a_spark_that_cannot_start_is_the_commands_error_and_leaves_no_java(
    server: Server, project: Path
) -> None:
    def javas() -> int:
        return sum(map(is_java, children(int(server.lock.read_text()))))

    before = javas()
    output = server.run(project, "run", "-s", "orders", "--target", "odd", code=2)
    assert "Spark did not start: " in output and "local[odd]" in output
    assert javas() == before
    server.run(project, "run", "-s", "orders")


def test_interrupt_in_a_write_leaves_no_half_commit(server: Server, project: Path) -> None:
    before = rows(project, "slow")
    process = begin_slow(server, project)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=_WITHIN_S)
    assert process.returncode != 0 and "nterrupted" in output, output
    assert open_instants(project, "slow") == [] and rows(project, "slow") == before
    server.run(project, "run", "-s", "slow")


def test_a_killed_client_ends_its_command_and_nothing_else(server: Server, project: Path) -> None:
    process = begin_slow(server, project)
    other = server.start(project, WARM, "run", "-s", "orders")
    process.kill()
    wait_for(lambda: not server.running())
    assert other.communicate(timeout=_WITHIN_S) and other.returncode == 0
    assert open_instants(project, "slow") == []


def test_a_killed_command_does_not_end_the_server(server: Server, project: Path) -> None:
    process = begin_slow(server, project)
    (running,) = server.running()
    os.kill(running, signal.SIGKILL)
    output, _ = process.communicate(timeout=_WITHIN_S)
    assert process.returncode == 2 and "ended without an exit code" in output
    # its Spark jobs are cancelled too: the next one would wait for them longer than a test may take
    assert "~2 rows" in server.run(project, "run", "-s", "slow")
    assert open_instants(project, "slow") == []


def test_two_projects_run_at_once_each_with_paths_of_its_own(
    server: Server, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = make_project(tmp_path_factory.mktemp("second project"))
    (other / "data" / "lines.csv").write_text("7\n")
    both = [server.start(each, WARM, "run", "-s", "lines", "orders", "summary") for each in (project, other)]
    outputs = [each.communicate(timeout=_WITHIN_S)[0] for each in both]
    assert [each.returncode for each in both] == [0, 0], outputs
    assert [len(rows(each, "lines")) for each in (project, other)] == [2, 1]


def test_commands_that_dbt_does_not_have_run_there_too(server: Server, project: Path) -> None:
    assert "Nothing was written." in server.run(project, "plan", "-s", "orders")
    assert "first commit" in server.run(project, "runs")


def begin_slow(server: Server, project: Path) -> subprocess.Popen[str]:
    """Begin a write whose query takes long, and wait until it runs."""
    log = project / "logs" / "dbt.log"
    log.write_text("")
    process = server.start(project, WARM, "run", "-s", "slow", "--vars", "{slow: true}")
    wait_for(lambda: "java_method" in log.read_text("utf-8", errors="replace"))
    time.sleep(4)
    return process


def test_clients_and_commands_share_one_java(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    with runtime_folder() as runtime:
        made = Server(runtime)
        serving = made.start(project, WARM, "serve", "--port", "0", "--profiles-dir", ".")
        try:
            assert serving.stdout is not None
            lines = iter(serving.stdout.readline, "")
            port = next(found[1] for line in lines if (found := re.search(r"at 127\.0\.0\.1:(\d+)", line)))
            made.run(project, "run", "-s", "orders")
            time.sleep(6)
            with hive.connect("127.0.0.1", int(port), auth="NOSASL") as connection:
                cursor = connection.cursor()
                cursor.execute("select sum(twice) from analytics.orders")
                assert cursor.fetchall() == [(6,)]
        finally:
            serving.send_signal(signal.SIGTERM)
            output, _ = serving.communicate(timeout=_WITHIN_S)
        assert serving.returncode == 0 and "started Java" not in output


def test_without_a_server_a_command_names_how_to_start_one() -> None:
    with runtime_folder() as runtime:
        made = Server(runtime)
        assert "dbt-hudi --start run" in made.run(runtime, "run", code=2)
        assert "no server runs" in made.run(runtime, "serve", "--end")


def test_an_idle_server_ends() -> None:
    with runtime_folder() as runtime:
        started = Server(runtime).start(runtime, WARM, "serve", "--only-commands", "--end-after", "2")
        output, _ = started.communicate(timeout=_WITHIN_S)
        assert started.returncode == 0 and output.endswith("ending\nended\n")
        assert not [each for each in runtime.rglob("*") if each.is_socket()]


def test_a_server_starts_when_the_one_before_has_just_been_ended() -> None:
    with runtime_folder() as runtime:
        made = Server(runtime)
        for _ in range(2):
            assert "Usage: dbt ls" in made.run(runtime, "--start", "ls", "--help")
            assert "ends" in made.run(runtime, "serve", "--end")
        wait_for(lambda: "ended" in made.log.splitlines())


def test_a_folder_that_others_can_open_is_refused() -> None:
    with runtime_folder() as runtime:
        made = Server(runtime)
        made.run(runtime, "run", code=2)
        (folder,) = (runtime / "dbt-hudi").glob("server-*")
        assert folder.stat().st_mode & 0o777 == 0o700
        folder.chmod(0o755)
        assert "mode 0700" in made.run(runtime, "run", code=2)
