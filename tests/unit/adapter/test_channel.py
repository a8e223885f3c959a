"""The folder of a server's sockets, and messages with open files."""

from __future__ import annotations

import os
import socket
import sysconfig
from pathlib import Path

import pytest

from dbt.adapters.hudi.channel import ChannelError, own_folder, receive, send, server_folder
from tests.helpers.runtime import runtime_folder


def test_the_folder_changes_with_the_installed_packages_and_not_with_what_python_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "dbt_core-1.10.0.dist-info"
    package.mkdir()
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    with runtime_folder() as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        before = server_folder()
        (tmp_path / "__pycache__").mkdir()
        assert server_folder() == before
        package.rename(tmp_path / "dbt_core-1.10.1.dist-info")
        assert server_folder() != before


def test_a_folder_too_long_for_the_address_of_a_socket_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("long" * 25)))
    with pytest.raises(ChannelError, match="set XDG_RUNTIME_DIR to a shorter folder"):
        server_folder()


def test_a_link_to_a_folder_is_refused(tmp_path: Path) -> None:
    own_folder(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(ChannelError, match="mode 0700"):
        own_folder(tmp_path / "link")


def test_a_message_brings_open_files() -> None:
    one, other = socket.socketpair()
    reading, writing = os.pipe()
    with one, other:
        send(one, {"words": ["run", "föhn"]}, (writing,))
        message, (file,) = receive(other)
        assert message == {"words": ["run", "föhn"]}
        os.write(file, b"x")
        assert os.read(reading, 1) == b"x"
        one.close()
        with pytest.raises(EOFError):
            receive(other)
    for each in (reading, writing, file):
        os.close(each)
