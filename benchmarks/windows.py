"""Sixty daily windows of a microbatch model, one at a time and two: seconds of `dbt run`, and their ratio.

python3 dev.py run python -m benchmarks.windows [--repeats 3] [--table-type mor]

One dbt process with the settings of a plain profile; the runs take turns, after one that is not counted. dbt keeps a thread to
hand windows out where it has more than one, so two at a time are three threads.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from dbt.cli.main import dbtRunner

_DAYS, _EVENTS_A_DAY = 60, 1000
_THREADS = {"one": 1, "two": 3}
_MODEL = """{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day',
    begin='2026-01-01', concurrent_batches=true, partition_by=['day'], table_type='TYPE') }}
select cast(at as date) as day, max(at) as at, count(*) as events, sum(amount) as total
from {{ source('raw', 'events') }} group by cast(at as date)
"""
_LAND = f"""{{% macro land() %}}
  {{% do run_query("create schema if not exists shop") %}}
  {{% do run_query("create table shop.events using parquet as select id, id % 97 as amount,
    timestamp '2026-01-01 00:00:00' + make_dt_interval(cast(id div {_EVENTS_A_DAY} as int), cast(id % 24 as int)) as at
    from range(0, {_DAYS * _EVENTS_A_DAY})") %}}
{{% endmacro %}}
"""
_FILES = {
    "dbt_project.yml": "name: shop\nprofile: shop\nflags: {send_anonymous_usage_stats: false}\n",
    "profiles.yml": "shop: {target: dev, outputs: {dev: {type: hudi, schema: shop}}}\n",
    "macros/land.sql": _LAND,
    "models/sources.yml": "sources: [{name: raw, schema: shop, tables: [{name: events, config: {event_time: at}}]}]\n",
}
_PERIOD = ("--event-time-start", "2026-01-01", "--event-time-end", "2026-03-02")


def main() -> int:
    """Command line; prints the seconds of each run and the ratio of the medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--table-type", choices=("cow", "mor"), default="cow")
    given = parser.parse_args()
    seconds: dict[str, list[float]] = {windows: [] for windows in _THREADS}
    with tempfile.TemporaryDirectory(prefix="windows-") as folder:
        project = Path(folder)
        for name, text in {**_FILES, "models/days.sql": _MODEL.replace("TYPE", given.table_type)}.items():
            (project / name).parent.mkdir(exist_ok=True)
            (project / name).write_text(text)
        os.chdir(project)
        _dbt("run-operation", "land")
        _run("one")
        for _ in range(given.repeats):
            for windows, measured in seconds.items():
                measured.append(_run(windows))
        os.chdir("/")
    for windows, measured in seconds.items():
        print(f"{windows} at a time: {', '.join(f'{each:.1f}' for each in measured)} s")
    print(f"ratio {statistics.median(seconds['one']) / statistics.median(seconds['two']):.2f} (aim: 1.5)")
    return 0


def _run(windows: str) -> float:
    begun = time.perf_counter()
    _dbt("run", "--full-refresh", "--threads", str(_THREADS[windows]), *_PERIOD)
    return time.perf_counter() - begun


def _dbt(*arguments: str) -> None:
    done = dbtRunner().invoke(["--quiet", *arguments])
    if not done.success:
        raise SystemExit(f"dbt {' '.join(arguments)} failed: {done.exception or done.result}")


if __name__ == "__main__":
    raise SystemExit(main())
