"""What installs asks the index that pip is told to ask."""

from __future__ import annotations

from tools.uv import in_uvs_words


def test_settings_of_pip_are_said_in_the_words_of_uv_and_variables_win_over_files() -> None:
    told = """:env:.cert='/etc/new.crt'
:env:.disable-pip-version-check='1'
global.cert='/etc/old.crt'
global.index-url='https://mirror.example/simple'
install.find-links='/opt/wheels https://wheels.example/all'
"""
    assert in_uvs_words(told) == {
        "SSL_CERT_FILE": "/etc/new.crt",
        "UV_DEFAULT_INDEX": "https://mirror.example/simple",
        "UV_FIND_LINKS": "/opt/wheels,https://wheels.example/all",
    }
    assert in_uvs_words("") == {}
