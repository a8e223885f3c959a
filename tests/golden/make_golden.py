"""Makes the golden tables: Apache Hudi writes them, reads them, and its answers are kept beside them.

    python3 dev.py setup all && python3 dev.py run python tests/golden/make_golden.py [NAME ...]

Apache Hudi 0.12.2 and 0.13.1 need a PySpark of their own (3.3 and 3.2, with the bundles of these). For their tables give
both in ``.cache/apache-hudi.json``: the jar under ``jars``, and under ``releases`` the Python that has that PySpark, and for
PySpark 3.2 on Java 17 the ``variables`` with ``--add-opens`` of its packages, as
``{"0.12.2": {"python": "...", "variables": {"SPARK_SUBMIT_OPTS": "..."}}}``.

A table becomes ``tables/<name>.zip`` (without the ``.crc`` files that Hadoop adds on a local disk) and
``tables/<name>.json``: the story in words, the true modification times, and Hudi's answers as plain rows.
Times and file ids differ from run to run; rows do not.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.golden.stories import STORIES, Call, Sql, Story, Write  # noqa: E402
from tests.judge.apache_hudi import KEEP_V6, ApacheHudi  # noqa: E402
from tests.judge.rows import ordered  # noqa: E402

_SMALL_FILES = {
    "hoodie.index.bloom.num_entries": "300",
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.parquet.compression.codec": "snappy",
    "hoodie.embed.timeline.server": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
}


def make(hudi: ApacheHudi, story: Story, folder: Path) -> None:
    """Write one table, ask Hudi for its rows, and store both."""
    path = folder / story.name
    options = {
        "hoodie.table.name": story.name,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        **_SMALL_FILES,
        **story.options,
    }
    keep_v6 = story.name.startswith("v6_")
    if not keep_v6:
        options["hoodie.metadata.enable"] = "false"
    told = []
    for step in story.steps:
        told.append(_tell(step))
        if isinstance(step, Write):
            hudi.write(
                path, step.rows, {**options, **step.options}, operation=step.operation, keep_v6=keep_v6
            )
        elif isinstance(step, Sql):
            given = {**_SMALL_FILES, **KEEP_V6}
            settings = [
                f"SET {key}={value}" if keep_v6 or key in _SMALL_FILES else f"RESET {key}"
                for key, value in given.items()
            ]
            hudi.sql(*settings, *(each.format(path=path) for each in step.statements))
        else:
            hudi.call(path, step.procedure, keep_v6=keep_v6, **step.arguments)
    description: dict[str, Any] = {
        "written_by": f"Apache Hudi {story.release}",
        "story": told,
        "options": options,
        "disputed": story.disputed,
        "snapshot": _answer(story, hudi.read(path)),
        "as_of": {
            instant: _answer(story, hudi.read(path, as_of=instant)) for instant in _completed_writes(path)
        },
    }
    if story.is_merge_on_read:
        description["read_optimized"] = _answer(story, hudi.read(path, "read_optimized"))
    _store(story, path, description)


def _answer(story: Story, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return ordered({name: value for name, value in row.items() if name not in story.disputed} for row in rows)


def _tell(step: Write | Call | Sql) -> str:
    if isinstance(step, Sql):
        return "; ".join(step.statements)
    if isinstance(step, Call):
        arguments = ", ".join(f"{key} => {value}" for key, value in step.arguments.items())
        return f"CALL {step.procedure}({arguments})"
    return f"{step.operation} of {step.rows.num_rows} rows"


def _completed_writes(path: Path) -> list[str]:
    timeline = path / ".hoodie"
    if (timeline / "timeline").exists():
        timeline = timeline / "timeline"
    endings = (".commit", ".deltacommit", ".replacecommit")
    return sorted(file.name.split(".")[0].split("_")[0] for file in timeline.iterdir()
                  if file.name.endswith(endings) and not file.name.startswith("."))  # fmt: skip


def _store(story: Story, path: Path, description: dict[str, Any]) -> None:
    files = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.endswith(".crc"))
    with zipfile.ZipFile(HERE / "tables" / f"{story.name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.relative_to(path.parent))
    description["modified_ms"] = {
        str(file.relative_to(path.parent)): file.stat().st_mtime_ns // 1_000_000 for file in files
    }
    text = json.dumps(description, indent=1, ensure_ascii=False, sort_keys=True)
    (HERE / "tables" / f"{story.name}.json").write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Make the tables named on the command line, all without one."""
    wanted = [story for story in STORIES if not sys.argv[1:] or story.name in sys.argv[1:]]
    folder = Path(tempfile.gettempdir(), "golden-tables")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (HERE / "tables").mkdir(exist_ok=True)
    for release in sorted({story.release for story in wanted}):
        hudi = ApacheHudi(release)
        for story in wanted:
            if story.release == release:
                make(hudi, story, folder)
                size = (HERE / "tables" / f"{story.name}.zip").stat().st_size
                print(f"{story.name:50}{size / 1000:6.0f} KB", flush=True)
        hudi.close()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
