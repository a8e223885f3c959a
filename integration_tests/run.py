"""The demo: a year of flights arrives month by month, dbt keeps Hudi tables, other readers read them back.

    python3 dev.py demo               everything
    python3 dev.py demo --quick       January to March, and without Apache Hudi as a reader
    python3 dev.py demo --months 6    only so many months
    python3 dev.py demo --dbt-output  with everything that dbt prints

Everything is written below this folder (landing/, warehouse/, seeds/, target/) and made anew in each run.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import load  # noqa: E402
import readers  # noqa: E402
import report  # noqa: E402
from project import Project  # noqa: E402

LANDING, WAREHOUSE, SCHEMA = HERE / "landing", HERE / "warehouse", "flights"


def main() -> int:
    """Run the demo; 0 when everything was built, tested and read back equal."""
    parser = argparse.ArgumentParser(prog="dev.py demo", description="A dbt project over a year of flights.")
    parser.add_argument("--quick", action="store_true", help="three months, without Apache Hudi as a reader")
    parser.add_argument("--months", type=int, default=12, choices=range(1, 13), help="how many months (12)")
    parser.add_argument("--dbt-output", action="store_true", help="show everything that dbt prints")
    parser.add_argument("--hudi-version", default="1.2.0", choices=readers.apache_hudi.VERSIONS)
    arguments = parser.parse_args()
    start = time.monotonic()
    months = range(1, 4 if arguments.quick else arguments.months + 1)
    project = Project(HERE, {"landing": str(LANDING)}, show=arguments.dbt_output)
    project.clean([LANDING, WAREHOUSE, HERE / "seeds", HERE / "target", HERE / "logs"])

    heading("1. Flights arrive, dbt brings the tables up to date after each file")
    build(project, months)
    heading("2. dbt tests")
    failed = run_tests(project)
    spark = project.spark()
    tables = {name: WAREHOUSE / SCHEMA / name for name in project.hudi_tables()}
    heading("3. What each commit did")
    report.timelines(spark, {name: tables[name] for name in ("flights", "flights_live")})
    heading("4. Every table read back by readers that share no code with dbt-hudi")
    failed += read_back(project, spark, tables, months, None if arguments.quick else arguments.hudi_version)
    heading("5. Who makes up most delay in the air, and where and when was it worst to leave?")
    report.answers(spark, SCHEMA)
    print(f"A page about the table flights_live: {report.page(tables['flights_live'], HERE / 'target')}")
    outcome = f"{failed} THINGS WENT WRONG" if failed else "everything agrees"
    print(f"\n{outcome}; {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


def heading(text: str) -> None:
    """Print the title of a part."""
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def build(project: Project, months: range) -> None:
    """Land the files one by one and run dbt after each."""
    load.land_reference(LANDING, HERE / "seeds")
    for number, arrival in enumerate(load.arrivals(LANDING, months)):
        start = time.monotonic()
        what = f"{arrival.rows - arrival.corrections - arrival.held_up:,} new reports"
        if arrival.corrections:
            what += f", {arrival.corrections:,} late figures, {arrival.held_up} held up"
        print(f"{arrival.name}  {what}", flush=True)
        if number == 0:
            project.dbt("seed")
            project.dbt("run", "--select", "tag:staging")
        responses = project.dbt("run", "--select", "tag:incremental")
        for name, response in responses.items():
            print(f"         {report.counts(name, response)}", flush=True)
        print(f"         {time.monotonic() - start:.1f} s", flush=True)
    start = time.monotonic()
    settled = project.dbt("run", "--select", "awaiting_figures", variables={"settle": True})
    for name, response in settled.items():
        print(f"settle   {report.counts(name, response)}  {time.monotonic() - start:.1f} s", flush=True)
    start = time.monotonic()
    project.dbt("run", "--select", "tag:answers")
    print(f"answers  planes, airline_scorecard, airport_months  {time.monotonic() - start:.1f} s", flush=True)


def run_tests(project: Project) -> int:
    """Run the project's tests; returns how many failed."""
    start = time.monotonic()
    outcomes = project.test()
    failed = [name for name, passed in outcomes.items() if not passed]
    for name in failed:
        print(f"FAILED {name}")
    passed = len(outcomes) - len(failed)
    print(f"{passed} of {len(outcomes)} tests passed  {time.monotonic() - start:.1f} s", flush=True)
    return len(failed)


def read_back(
    project: Project, spark: Any, tables: dict[str, Path], months: range, hudi_version: str | None
) -> int:
    """Compare every table, as this session reads it, with the raw data and with independent readers."""
    start = time.monotonic()
    ours = {name: readers.canonical(readers.of_session(spark, f"{SCHEMA}.{name}")) for name in tables}
    truth = readers.truth(load.flights(), months)
    mine = readers.canonical(readers.of_session(spark, f"{SCHEMA}.flights")).select(truth.column_names)
    difference = readers.difference(readers.canonical(mine), truth)
    show("raw data", "flights", truth.num_rows, difference)
    failed = int(bool(difference))
    judges: list[tuple[str, AbstractContextManager[readers.Reader]]] = [
        ("Spark SQL, fresh process", readers.plain_spark(WAREHOUSE, SCHEMA, tables)),
        ("hudi-rs", readers.hudi_rs()),
    ]
    for reader, opened in judges:
        failed += ask(reader, opened, tables, ours)
    if hudi_version is not None and readers.apache_hudi_is_there():
        failed += ask(f"Apache Hudi {hudi_version}", readers.real_hudi(hudi_version), tables, ours)
    else:
        print("LEFT OUT: Apache Hudi as a reader (takes part without --quick, if its jar can be fetched)")
    print(f"{time.monotonic() - start:.1f} s")
    return failed


def ask(
    reader: str, opened: AbstractContextManager[readers.Reader], tables: dict[str, Path], ours: dict[str, Any]
) -> int:
    """Have one reader read every table; returns how many differ."""
    failed = 0
    with opened as read:
        for verdict in readers.judge(reader, read, tables, ours):
            show(reader, verdict.table, verdict.rows, verdict.difference)
            failed += int(bool(verdict.difference))
    return failed


def show(reader: str, table: str, rows: int, difference: str) -> None:
    """Print what one reader gave of one table."""
    print(f"{reader:26}{table:20}{rows:>9,} rows  {difference or 'equal'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
