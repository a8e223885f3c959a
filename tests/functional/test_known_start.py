"""Java started without Spark's script is the Java that the script starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.hudi.spark.known_start import KnownStart

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="tells nothing of its processes"),
]

MAIN = "org.apache.spark.deploy.SparkSubmit"
OF_A_SHELL = {"_", "SHLVL", "PWD", "OLDPWD", "_PYSPARK_DRIVER_CONN_INFO_PATH"}
CONF = {
    "spark.master": "local[1]",
    "spark.driver.extraJavaOptions": '-Dits.name="ä b"',
    "spark.app.name": "a 'b' $c",
}
PROGRAM = """
import json, sys
from pathlib import Path
from pyspark import SparkConf
from dbt.adapters.hudi.spark.known_start import KnownStart, launch

folder, conf = Path(sys.argv[1]), json.loads(sys.argv[2])
known, settings = KnownStart(folder, "17 here", conf), SparkConf()
for key, value in conf.items():
    settings.set(key, value)
changed = []
sys.addaudithook(lambda name, given: changed.append(name) if name in ("os.putenv", "os.unsetenv") else None)
gateway = launch(settings, {}, known)
words = Path(f"/proc/{gateway.proc.pid}/cmdline").read_bytes().decode().split(chr(0))
variables = Path(f"/proc/{gateway.proc.pid}/environ").read_bytes().decode().split(chr(0))
said = gateway.jvm.java.lang.System.getProperty("its.name"), gateway.jvm.SparkConf().get("spark.app.name")
print(json.dumps({"words": words, "variables": variables, "said": said, "changed": changed}))
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait()
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_TESTING", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


def start(cache: Path, conf: dict[str, str] = CONF, **variables: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(cache), json.dumps(conf)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def variables_of(start: dict[str, Any]) -> dict[str, str]:
    pairs = (each.split("=", 1) for each in start["variables"] if each)
    return {name: value for name, value in pairs if name not in OF_A_SHELL}


def test_a_second_start_runs_the_same_java_in_the_same_environment_without_a_shell(cache: Path) -> None:
    first = start(cache)
    (kept,) = cache.iterdir()
    written = kept.stat().st_mtime_ns
    second = start(cache, SHLVL="40")

    place = first["words"].index(MAIN)
    assert second["words"][: place + 1] == first["words"][: place + 1]
    # The script gives the settings in an order of its own.
    assert sorted(second["words"]) == sorted(first["words"])
    assert second["said"] == first["said"] == ["ä b", "a 'b' $c"]
    assert variables_of(second) == variables_of(first)
    assert second["changed"] == [], "another thread may be listing the variables of this process"
    assert variables_of(second)["PYTHONHASHSEED"] == "0"
    # A shell would have counted itself.
    assert "SHLVL=40" in second["variables"]
    assert [*cache.iterdir()] == [kept] and kept.stat().st_mtime_ns > written, "a use is noted"


def test_a_start_that_does_not_work_any_more_goes_through_the_script_and_is_learned_anew(cache: Path) -> None:
    first = start(cache)
    (kept,) = cache.iterdir()
    place = first["words"].index(MAIN)
    for damaged in (
        '{"command": ["false"], "environment": {}}',
        '{"command": ["/no/java"], "environment": {}}',
        "{",
    ):
        kept.write_text(damaged)
        assert start(cache)["words"] == first["words"]
        assert json.loads(kept.read_text())["command"] == first["words"][:place]


def test_options_that_tell_a_secret_are_not_kept(cache: Path) -> None:
    start(
        cache,
        {**CONF, "spark.driver.extraJavaOptions": "-Djavax.net.ssl.trustStorePassword=hush -Dits.name=x"},
    )

    assert not [*cache.iterdir()]


def test_other_settings_and_other_variables_of_spark_are_other_starts(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = KnownStart(cache, "17 here", CONF).path
    assert KnownStart(cache, "17 here", {**CONF, "spark.driver.memory": "2g"}).path != before
    assert KnownStart(cache, "21 there", CONF).path != before
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "2g")
    assert KnownStart(cache, "17 here", CONF).path != before
