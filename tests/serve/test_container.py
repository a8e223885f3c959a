"""Dockerfile and compose.yml as far as they can be checked without Docker: commands, paths, users, times, the health check."""

from __future__ import annotations

import fnmatch
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hudi_engine.server.passwords import add_user
from hudi_engine.server.server import HudiServer

from dbt.adapters.hudi.serve.command import command_parser, server_options

ROOT = Path(__file__).parents[2]
DOCKERFILE = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text("utf-8"))
LINES = [line.strip() for line in DOCKERFILE.splitlines() if line.strip() and not line.startswith("#")]
COMPOSE = yaml.safe_load((ROOT / "compose.yml").read_text("utf-8"))
SERVICE = COMPOSE["services"]["hudi"]


def instruction(name: str) -> str:
    (found,) = [line.partition(" ")[2].strip() for line in LINES if line.split()[0] == name]
    return found


def words(text: str) -> list[str]:
    found: list[str] = json.loads(text)
    return found


def test_the_entry_point_is_a_program_of_the_package() -> None:
    entry = words(instruction("ENTRYPOINT"))
    assert entry == ["dbt-hudi", "serve"]
    assert re.search(r"^dbt-hudi = ", (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize(
    "command", [words(instruction("CMD")), SERVICE["command"]], ids=["Dockerfile", "compose.yml"]
)
def test_the_command_is_one_that_the_server_takes(command: list[str], tmp_path: Path) -> None:
    options = command_parser().parse_args(command)
    assert options.host == "0.0.0.0", "a port of a container is reached from outside"
    volumes = words(instruction("VOLUME"))
    assert {options.warehouse, str(Path(options.auth).parent)} == {*volumes}
    options.auth = str(tmp_path / "users")
    add_user(options.auth, "ann", "a long one")
    made = server_options(options)
    assert made.log_in is not None
    assert str(made.port) == instruction("EXPOSE")
    assert made.grace_s < int(SERVICE["stop_grace_period"].removesuffix("s"))


def test_volumes_and_ports_of_compose_are_those_of_the_image() -> None:
    mounted = dict(each.split(":") for each in SERVICE["volumes"])
    assert [*mounted.values()] == words(instruction("VOLUME"))
    assert {*mounted} == {*COMPOSE["volumes"]}
    for volume in mounted.values():
        assert re.search(rf"install -d -o hudi [^&]*{volume}\b", DOCKERFILE), "its user can write there"
    assert [each.split(":") for each in SERVICE["ports"]] == [["127.0.0.1", "10000", instruction("EXPOSE")]]


def test_it_runs_as_a_user_without_rights_and_ends_in_order() -> None:
    user = instruction("USER")
    assert int(user) > 0 and f"useradd --uid {user} " in DOCKERFILE
    order = [line.split()[0] for line in LINES]
    assert order.index("USER") > max(place for place, name in enumerate(order) if name == "RUN")
    assert instruction("STOPSIGNAL") == "SIGTERM"
    assert SERVICE["cap_drop"] == ["ALL"]


def test_what_is_installed_is_in_the_context() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    assert ignored[0] == "*"
    for name in kept:
        assert (ROOT / name).exists(), name
    needed = {
        *re.findall(r"/checkout/([\w.-]+)", DOCKERFILE),
        "pyproject.toml",
        "setup.py",
        "MANIFEST.in",
        "dbt",
        "engine",
    }
    manifest = re.findall(r"^include ([A-Z .]+[A-Za-z.]+)$", (ROOT / "MANIFEST.in").read_text(), re.MULTILINE)
    needed |= {name for line in manifest for name in line.split()}
    assert not [name for name in needed if not any(fnmatch.fnmatch(name, each) for each in kept)]


def test_images_are_plain_names() -> None:
    for image in (instruction("FROM"), SERVICE["image"]):
        assert "/" not in image


def test_the_health_check_asks_the_server(
    server: HudiServer, start_server: Callable[..., HudiServer]
) -> None:
    _, _, command = instruction("HEALTHCHECK").partition(" CMD ")
    program = words(command)
    assert program[:2] == ["python", "-c"]

    def checked(port: int) -> int:
        text = program[2].replace(":10000/", f":{port}/")
        assert text != program[2]
        return subprocess.run([sys.executable, "-c", text], capture_output=True, timeout=300).returncode

    ended: Any = start_server()
    ended.stop()
    assert checked(server.port) == 0
    assert checked(ended.port) != 0
