"""`dbt debug` says where Spark's processes may take more memory than there is."""

from __future__ import annotations

import pytest

from dbt.adapters.hudi.spark.memory import GIB, MIB, machine_bytes, warn_of_limit, warnings_of

LIMIT, CORES = "spark.executor.pyspark.memory", "spark.executor.cores"
OVERHEAD, HEAP = "spark.executor.memoryOverhead", "spark.executor.memory"


def told(conf=None, *, master="local[*]", cores=2, machine=16 * GIB):
    return " ".join(warnings_of(conf or {}, master, cores, machine))


@pytest.mark.parametrize(
    ("conf", "cores", "machine", "part"),
    [
        ({}, 2, 16 * GIB, ""),
        ({}, 8, 8 * GIB, "Take fewer cores (master: local[6]), a smaller"),
        ({"spark.driver.memory": "40g"}, 2, 16 * GIB, "Take a smaller spark.driver.memory"),
        ({"spark.driver.memory": "14g"}, 2, 16 * GIB, "Java 17.5 GiB, and 2 Python workers of up to 1.0 GiB"),
        ({"spark.driver.memory": "14336"}, 2, 16 * GIB, "Java 17.5 GiB"),
        ({LIMIT: "4g"}, 4, 16 * GIB, "up to 4.0 GiB"),
        ({LIMIT: "1g"}, 8, 16 * GIB, ""),
        ({}, 64, None, ""),
    ],
)
def test_a_local_spark_is_compared_with_the_machine(conf, cores, machine, part):
    said = told(conf, cores=cores, machine=machine)
    assert part in said and bool(part) is bool(said)


@pytest.mark.parametrize(
    ("conf", "part"),
    [
        ({LIMIT: "300m"}, "is 300 MiB, of which libraries"),
        (
            {LIMIT: "1g", CORES: "4"},
            "shared by 4 workers of an executor, of which libraries reserve about 350 MiB a worker; set it to 3600m",
        ),
        ({LIMIT: "4g", CORES: "4"}, ""),
        ({LIMIT: "899m"}, "set it to 900m at least"),
        ({LIMIT: "900m"}, ""),
    ],
)
def test_a_limit_that_leaves_a_worker_little_is_told(conf, part):
    said = told(conf, master="spark://host:7077")
    assert part in said and bool(part) is bool(said)


@pytest.mark.parametrize(
    ("master", "conf", "part"),
    [
        ("yarn", {}, "384 MiB here for 1 of them"),
        ("yarn", {HEAP: "16g", CORES: "4"}, "1.6 GiB here for 4 of them"),
        ("yarn", {OVERHEAD: "6g", CORES: "4"}, ""),
        ("yarn", {LIMIT: "2g"}, ""),
        ("k8s://https://host:443", {HEAP: "5g", CORES: "2"}, ""),
        ("k8s://https://host:443", {HEAP: "1g", CORES: "2"}, "Give it 2.0 GiB"),
        ("spark://host:7077", {}, ""),
    ],
)
def test_a_container_must_have_room_for_its_workers(master, conf, part):
    said = told(conf, master=master)
    assert part in said and bool(part) is bool(said)


def test_a_start_of_spark_tells_of_a_small_limit_once(monkeypatch):
    said = []
    monkeypatch.setattr("dbt.adapters.hudi.spark.memory.logger.warning", lambda _, text: said.append(text))
    for _ in range(2):
        warn_of_limit({LIMIT: "301m"})
    warn_of_limit({LIMIT: "1g"})
    assert [text.partition(",")[0] for text in said] == ["spark.executor.pyspark.memory is 301 MiB"]


def test_the_memory_of_this_machine_is_known():
    found = machine_bytes()
    assert found is None or found > 64 * MIB
