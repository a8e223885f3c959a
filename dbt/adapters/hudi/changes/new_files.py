"""New files of a source as a method of the adapter, for the macro ``hudi_new_files``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.errors import ConfigError, TableNotFoundError
from hudi_engine.format.spelling import did_you_mean
from hudi_engine.format.storage import open_storage
from hudi_engine.spark.catalog import PlainFiles
from hudi_engine.spark.catalog.new_files import METADATA, read_new_files
from hudi_engine.table.changes.new_files import FileLimits, TakenFiles, choose_files, list_files
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from dbt.adapters.hudi.changes.methods import ChangeFeeds, as_it_is
from dbt.adapters.hudi.changes.window import check_relation
from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.model.reading import absolute_location
from dbt.adapters.hudi.model.source import SourcePlace
from dbt.adapters.hudi.relation import named
from dbt.adapters.hudi.response import HudiAdapterResponse, counted
from dbt.adapters.hudi.rows.error_table import REASON, SOURCE_FILE, append_errors
from dbt.adapters.hudi.run import RUNS, InputWindow, NewFiles

if TYPE_CHECKING:
    from dbt.adapters.hudi.run import Feed
    from dbt.adapters.hudi.spark.warehouse import Warehouse

FAIL, SKIP = BAD_FILES = ("fail", "skip")
_LEGAL = ("max_files", "max_bytes", "bad_files", "start_after")


@dataclass(frozen=True)
class FilesArgs:
    """The arguments of ``hudi_new_files``.

    Args:
        bad_files: What a file that cannot be read does: ``fail`` the run, or be set aside (``skip``).
        start_after: Only files whose paths below the location sort after it.
    """

    limits: FileLimits = field(default_factory=FileLimits)
    bad_files: str = FAIL
    start_after: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> FilesArgs:
        """Check the arguments of the macro."""
        problems = [
            f"{name} is no argument; {did_you_mean(name, _LEGAL)}legal arguments: {', '.join(_LEGAL)}"
            for name in given
            if name not in _LEGAL
        ]
        limits, bad_files = FileLimits(), given.get("bad_files", FAIL)
        try:
            limits = FileLimits(given.get("max_files"), given.get("max_bytes"))
        except ConfigError as error:
            problems += error.problems
        if bad_files not in BAD_FILES:
            problems.append(f"bad_files is {bad_files!r}; legal values: {', '.join(BAD_FILES)}")
        if problems:
            raise DbtRuntimeError("hudi_new_files: " + "; ".join(problems))
        return cls(limits, bad_files, str(given.get("start_after") or "").lstrip("/"))


class FileFeeds(ChangeFeeds):
    """What came into folders of files since a model's last run."""

    @available.parse(as_it_is)
    def hudi_new_files(
        self,
        relation: BaseRelation,
        target: BaseRelation,
        fresh: bool,
        given: dict[str, Any],
        model: dict[str, Any],
    ) -> BaseRelation:
        """Return a temporary view of the rows of new and changed files, which are noted for the commit of the model."""
        args = FilesArgs.of(given)
        check_relation("hudi_new_files", relation)
        is_table = (model.get("config") or {}).get("materialized") == "table"
        if is_table and args.limits != FileLimits():
            raise DbtRuntimeError(
                f"hudi_new_files: {model.get('name')} is materialized as 'table', which takes all files in each run; leave "
                "max_files and max_bytes out, or make the model incremental"
            )
        name = named(relation)
        source = name.label.lower()
        place = _checked(RUNS.take_files(name.database, name.name), source)
        with self.connections.work(f"new files of {source}") as session:
            feed = self._feed(session, target, model)
            window = feed.window_of(source, (args,), "hudi_new_files")
            if window is None or window.files is None:
                base = absolute_location(str(place.location), self.connections.warehouse.places.project_root)
                files = PlainFiles(
                    base, str(place.using), dict(place.options), place.columns, place.partitions
                )
                taken = None if fresh else feed.taken_files(source)
                window = _next_window(session, files, args, taken, compiles=self.connections.only_compiles)
                feed.inputs[source] = window
            assert window.files is not None, "it was given above"
            frame = window.files.frame
            if relation.limit is not None:
                feed.is_limited, frame = True, frame.limit(relation.limit)
            return self._shown(frame, relation, target, ("new files", source))


def _checked(place: SourcePlace | None, source: str) -> SourcePlace:
    """Return the place of a source of files; raises DbtRuntimeError for anything else."""
    problem = None if place is None else place.problem
    if problem:
        raise DbtRuntimeError(f"source {source}: {problem}")
    if place is None or not place.is_files:
        raise DbtRuntimeError(
            f"hudi_new_files: {source} is no source of files; give source(...) with external: {{location: ..., using: csv}} "
            "(parquet, csv or json). What changed in a Hudi table is read by hudi_changes()"
        )
    return place


def _next_window(
    session: SparkSession, files: PlainFiles, args: FilesArgs, taken: TakenFiles | None, *, compiles: bool
) -> InputWindow:
    """Return the new and changed files of a folder with their rows.

    Args:
        taken: The files that the model has taken, None for a model that takes all.
        compiles: The rows are not read, so that bad files matter only where no columns are known without them.
    """
    storage, before = open_storage(files.location), taken or TakenFiles()
    options = {key.lower(): value for key, value in files.options.items()}
    listed = list_files(storage, args.start_after, options.get("pathglobfilter", "*"))
    # a store of objects has no folders, so that an empty one is not there
    if not listed and (taken is None or (storage.renames_folders and storage.stat("") is None)):
        raise TableNotFoundError(
            f"there are no files to read in {files.location}; put {files.format} files there, or correct the location"
            + (f" or start_after ({args.start_after!r})" if args.start_after else "")
        )
    choice = choose_files(listed, before, args.limits)
    if choice.unseen:
        logger.warning(
            "{}: {} older than the checkpoint, which knows the newest files only, and came after files of that time were "
            "taken: not read. Give them a new modification time, or run the model with --full-refresh",
            files.location,
            f"{counted(choice.unseen, 'file')} {'is' if choice.unseen == 1 else 'are'}",
        )
    sets_aside = compiles or args.bad_files == SKIP
    found = read_new_files(
        session, files, choice.files, before.columns, sets_aside=sets_aside, checks=not compiles
    )
    after = replace(before.with_files(choice.files, choice.waiting), columns=found.columns)
    bad = tuple((storage.uri(file.path), reason) for file, reason in found.bad)
    return InputWindow(
        None if taken is None else taken.described(),
        after.text() if choice.files or taken is None else before.text(),
        len(choice.files),
        args=(args,),
        files=NewFiles(found.frame, len(choice.files), len(choice.waiting), bad),
    )


def without_metadata(frame: DataFrame, feed: Feed) -> DataFrame:
    """Return the rows of a query without the column of the file that Spark would not give for ``*`` either."""
    kind = frame.schema[METADATA].dataType if feed.files and METADATA in frame.columns else None
    is_of_file = isinstance(kind, T.StructType) and "file_block_start" in kind.names
    return frame.drop(METADATA) if is_of_file else frame


def set_bad_files_aside(warehouse: Warehouse, session: SparkSession, plan: ModelPlan, feed: Feed) -> None:
    """Store the files that cannot be read in the model's error table, before its commit notes them as taken."""
    bad = [each for files in feed.files for each in files.bad]
    if bad and not feed.is_limited:
        append_errors(
            warehouse, session, plan, session.createDataFrame(bad, f"{SOURCE_FILE} string, {REASON} string")
        )


def with_files(response: HudiAdapterResponse, feed: Feed) -> HudiAdapterResponse:
    """Return the response of a write with the numbers of its files."""
    if not feed.files:
        return response
    read, waiting, bad = (
        sum(numbers)
        for numbers in zip(*((each.taken, each.waiting, len(each.bad)) for each in feed.files), strict=True)
    )
    parts = [
        counted(read, "new file"),
        f"{waiting:,} waiting" if waiting else "",
        f"{bad:,} bad" if bad else "",
    ]
    text = f"{response._message} | {', '.join(filter(None, parts))}"
    return replace(response, _message=text, files_read=read, files_set_aside=bad or None)
