"""Scans several systems' tables in turn, in one Spark session, and prints one JSON line a scan.

Each system's own process scans some minutes after another's, and minutes of one machine differ by more than scans of a fifth of a
second do. Here a scan of each follows one of the others, and all have the same compiled code to begin with.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time

from benchmarks.session import large_session, system_arguments
from benchmarks.systems import SYSTEMS
from benchmarks.workload import SCAN, batch_folder, prepare

STEP = "scan in turn"
TOGETHER = ("dbt-hudi", "dbt-hudi mor", "parquet", "iceberg mor")
"""The systems whose scans have aims; their settings and jars go together in one session."""

_WARM, _COUNTED = 40, 31


def main() -> None:
    """Command line: systems, folder for data and tables, number of rows, repeats."""
    parser = argparse.ArgumentParser(description=__doc__, parents=[system_arguments()])
    parser.add_argument("--systems", required=True, help="comma separated: " + ", ".join(TOGETHER))
    wanted = parser.parse_args()
    names = wanted.systems.split(",")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = {key: value for name in names for key, value in SYSTEMS[name].conf.items()}
    spark = large_session(conf, wanted.jars, wanted.folder)
    data = wanted.folder / f"data_{wanted.rows}"
    prepare(spark, data, wanted.rows, wanted.repeats)
    tables = wanted.folder / "tables" / "in_turn"
    shutil.rmtree(tables, ignore_errors=True)
    try:
        for number, name in enumerate(names):
            folder = tables / name.replace(" ", "_")
            folder.mkdir(parents=True)
            system = SYSTEMS[name](spark, folder)
            system.load("big", spark.read.parquet(str(data / "load")))
            for batch in range(wanted.repeats):
                system.upsert("big", spark.read.parquet(str(data / batch_folder("10 %", batch))))
            system.read("big").createOrReplaceTempView(f"bench_{number}")
        for turn in range(_WARM + _COUNTED):
            for number, name in enumerate(names):
                before = time.monotonic()
                spark.sql(SCAN.format(table=f"bench_{number}")).collect()
                seconds = time.monotonic() - before
                if turn >= _WARM:
                    print(json.dumps({"system": name, "seconds": round(seconds, 4)}), flush=True)
    finally:
        spark.stop()
        shutil.rmtree(tables, ignore_errors=True)


if __name__ == "__main__":
    main()
