"""The schemas, tables and views of one profile: where they live and under which names Spark knows them."""

from __future__ import annotations

import datetime
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable
from hudi_engine.errors import ConfigError, HudiError, TableNotFoundError
from hudi_engine.format.config.options import laid_over
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.given import public_location, use_profile
from hudi_engine.format.storage.uris import plain_location, same_place
from hudi_engine.spark.catalog import (
    FORMATS,
    CatalogEntry,
    DirectoryCatalog,
    PlainFiles,
    TableName,
    drop_table,
    find_entry,
    list_entries,
    listed_schemas,
    literal,
    mark_of,
    register_files,
    register_foreign,
    register_table,
    registered_base,
    session_conf,
)
from hudi_engine.spark.catalog.directory import forget_other_warehouses, source_cache
from hudi_engine.spark.catalog.entry import READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX, EntryNotes
from hudi_engine.spark.catalog.rebuilds import is_read_only
from hudi_engine.spark.jvm.catalog import invalidate_cached_tables
from hudi_engine.spark.jvm.session import java_version
from hudi_engine.spark.sql.not_null import NOT_NULL
from hudi_engine.table.txn.swap import recover_swap
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dbt.adapters.hudi.credentials import ANSI, HudiCredentials
from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.plan import ModelPlan, Places
from dbt.adapters.hudi.model.reading import absolute_location
from dbt.adapters.hudi.model.run_notes import origin
from dbt.adapters.hudi.model.source import SourcePlace
from dbt.adapters.hudi.preview import PREVIEW
from dbt.adapters.hudi.response import counted
from dbt.adapters.hudi.run import RUNS
from dbt.adapters.hudi.spark.folders import (
    make_root,
    remove_at_exit_if_empty,
    remove_folder,
    remove_schema_folder,
    timeline_mark,
)
from dbt.adapters.hudi.spark.long_work import LONG_WORK
from dbt.adapters.hudi.spark.session import (
    connection_session,
    early_session,
    give_settings,
    leave_dead_spark,
)
from dbt.adapters.hudi.spark.shared_folders import SharedFolders

if TYPE_CHECKING:
    from hudi_engine.spark.catalog.entry import NotesGiven
    from hudi_engine.table.state import TableState
    from typing_extensions import Unpack


_KEPT_SCHEMA = "default"
_CHANGE_NUMBERS = itertools.count(1)


class Warehouse:
    """All that a profile's ``location_root`` and catalog hold; ``writes``: the command will write there."""

    # how often this process has changed tables and names, by whichever of its dbt runs
    _changes = 0

    def __init__(
        self, credentials: HudiCredentials, project_root: str | None, *, writes: bool = False
    ) -> None:
        self._credentials = credentials
        self.places = Places(credentials.resolve_location_root(project_root), project_root)
        self.target_schema = str(credentials.schema)
        self.options: Mapping[str, str] = credentials.options
        use_profile(self.places.location_root, credentials.storage_options)
        leave_dead_spark()
        self._loaded = False
        self._sources: dict[SourcePlace, str] = {}
        self._lock = threading.Lock()
        self._writers: dict[str, threading.RLock] = {}
        self.pinned: dict[str, TableState] = {}
        self.will_write = writes
        self.source_places: Callable[[], Iterable[str]] = tuple

    @cached_property
    def directory(self) -> DirectoryCatalog | None:
        """The names as they stand in the warehouse's folders; None with a metastore. Made when the place has been looked at."""
        for place in self.source_places():
            with suppress(ConfigError):  # which is raised where the node is run
                public_location(place)  # neither pointers nor a metastore say how to get in
        if self._credentials.catalog != "directory":
            return None
        return DirectoryCatalog(self.places.location_root, recover=recover_swap)

    def schema_folder(self, schema: str) -> str:
        """Return where the tables of a schema lie."""
        return self.places.schema_folder(schema)

    def options_at(self, base: str) -> Mapping[str, str]:
        """Return the options for writes to the table at a folder: those of the profile and of its node, and notes of the run."""
        plan = RUNS.current().planned
        return self._with_options(plan if plan is not None and same_place(plan.base, base) else None)

    def options_of(self, schema: str, name: str) -> Mapping[str, str]:
        """Return the options for writes to the table of a name, as for its folder."""
        plan = RUNS.current().planned
        is_own = plan is not None and (plan.schema.lower(), plan.name.lower()) == (
            schema.lower(),
            name.lower(),
        )
        return self._with_options(plan if is_own else None)

    def _with_options(self, plan: ModelPlan | None) -> Mapping[str, str]:
        return laid_over(self.options, {} if plan is None else plan.hook_options, self.notes())

    def notes(self) -> Mapping[str, str]:
        """Return the notes of each commit."""
        return origin()

    # --- sessions -----------------------------------------------------------------------------------------------

    def open_session(self) -> SparkSession:
        """Return a session for one connection, in a process whose catalog knows the warehouse."""
        with self._lock:
            if not self._loaded:
                make_root(self.places.location_root, writes=self.will_write and self.directory is not None)
        session = connection_session(self._credentials, session_conf(), self.places.project_root)
        with self._lock:
            if not self._loaded:
                self._load(session)
                self._loaded = True
        return session

    def give_settings(self, session: SparkSession) -> None:
        """Give a session that was opened elsewhere the settings of those of the warehouse."""
        give_settings(session, self._credentials, session_conf())

    def start_early(self) -> None:
        """Start Spark while dbt does what needs none; an error is raised when it is needed."""
        remove_at_exit_if_empty(self.places.location_root)
        early_session(self._credentials, session_conf(), self.places.project_root)

    @property
    def read_only(self) -> bool:
        """Whether the folder of all tables and names is there and must not be written to."""
        root = self.places.location_root
        return self._credentials.catalog == "directory" and "://" not in root and is_read_only(root)

    def _load(self, session: SparkSession) -> None:
        if self.directory is not None:
            forget_other_warehouses(session, self.directory)
            with LONG_WORK.watched(session, "load", f"reading the tables of {self.places.location_root}"):
                self.directory.load(session)

    def register_sources(self, session: SparkSession) -> None:
        """Show the newest commits of the sources dbt has named since; nothing is written into those outside."""
        for place in RUNS.unseen_sources(of_node=True):
            self._register_source(session, place)
        for place in RUNS.unseen_sources(of_node=False):
            try:
                self._register_source(session, place)
            except DbtRuntimeError as error:
                logger.warning("{}", error.msg)

    def _register_source(self, session: SparkSession, place: SourcePlace) -> None:
        with self._lock:
            try:
                if place.problem:
                    raise DbtRuntimeError(place.problem)
                self._show_newest(session, place)
            except (HudiError, DbtRuntimeError) as error:
                where = f" at {place.location}" if place.location else ""
                reason = (
                    error.msg if isinstance(error, DbtRuntimeError) else f"{type(error).__name__}: {error}"
                )
                raise DbtRuntimeError(f"source {place.label}{where}: {reason}") from error

    def _show_newest(self, session: SparkSession, place: SourcePlace) -> None:
        """Show a source as it is now, if it has changed since it was last shown."""
        name, base = place.name, place.location
        if base is None:
            name, base = self._inside(session, place)
        else:
            base = absolute_location(base, self.places.project_root)
        if base is None:
            return
        files = None
        if place.is_files:
            files = PlainFiles(base, str(place.using), dict(place.options), place.columns, place.partitions)
        mark = timeline_mark(base) if files is None else mark_of(files.list())
        if self._sources.get(place) == mark:
            return
        if place.location is None:
            show = self.show if self.is_foreign(session, place.schema, name) else self.register
            show(session, place.schema, name, self.table(session, base))
        else:
            self.create_schema(session, place.schema, keep=not self.read_only)
            self._show_outside(session, TableName(place.schema, name), files or base, place.using)
        self._sources[place] = mark

    def _show_outside(
        self, session: SparkSession, name: TableName, source: PlainFiles | str, using: str | None
    ) -> None:
        """Show a table of another writer, or files, and remember them for views."""
        if isinstance(source, PlainFiles):
            register_files(session, name, source)
        elif using is None and not open_storage(source).exists(PROPERTIES_PATH):
            raise TableNotFoundError(
                f"there is no Hudi table at {source!r}; for other files say external.using: hudi, {', '.join(FORMATS)}"
            )
        else:
            self._show_foreign(session, name.database, name.name, source)
        if self.directory is not None and not self.read_only:
            self.directory.save_source(name.database.lower(), name.name, source)
        self.changed()

    def newest_file_time(self, schema: str, name: str) -> datetime.datetime | None:
        """Return when the newest file of a source of files was written (UTC), None when the name is no such source."""
        place = RUNS.source(schema, name)
        if place is None or not place.is_files or place.location is None:
            return None
        base = absolute_location(place.location, self.places.project_root)
        newest = max(each.modified_ms for each in PlainFiles(base, str(place.using)).list())
        return datetime.datetime.fromtimestamp(newest / 1000, datetime.timezone.utc)

    def _show_foreign(self, session: SparkSession, schema: str, name: str, base: str) -> None:
        root = self.places.location_root if self.directory is None else self.directory.source_root
        cache = source_cache(root, schema, name)
        register_foreign(session, TableName(schema, name), base, cache)
        self.changed()

    def _inside(self, session: SparkSession, place: SourcePlace) -> tuple[str, str | None]:
        """Name and folder of the warehouse's table behind a source; a second name counts for its table."""
        entry = self.entry(session, place.schema, place.name)
        if entry is None:
            return place.name, self.base_on_disk(place.schema, place.name)
        return entry.main_name, entry.base

    def writes(self) -> int:
        """How often this process changed a table or a name."""
        return Warehouse._changes

    def changed(self) -> None:
        """Say that tables changed, so that other sessions look again."""
        Warehouse._changes = next(_CHANGE_NUMBERS)

    @contextmanager
    def one_writer(self, session: SparkSession, base: str) -> Iterator[None]:
        """Let one thread of this process write to a table at a time; the session then sees the newest commit."""
        with self._lock:
            writer = self._writers.setdefault(plain_location(base), threading.RLock())
        with writer:
            invalidate_cached_tables(session)
            yield

    # --- schemas ------------------------------------------------------------------------------------------------

    def schemas(self, session: SparkSession) -> list[str]:
        """Names of all schemas."""
        return listed_schemas(session)

    def create_schema(self, session: SparkSession, schema: str, keep: bool = True) -> None:
        """Make a schema below the location root when it is not there; only Spark learns of one that is not to be kept."""
        location = plain_location(f"{self.places.location_root}/{schema}")
        if self.directory is not None:
            if keep:
                self.directory.create_schema(schema.lower())
            location = self.directory.managed_location(schema.lower())
        # a Hive metastore prints a trace for one that it has
        if not session.catalog.databaseExists(schema):
            session.sql(f"create database if not exists `{schema}` location {literal(location)}")

    def require_schema(self, session: SparkSession, name: TableName) -> None:
        """Raise DbtRuntimeError unless the schema of a name that is to be made is there."""
        schema = name.database
        if not session.catalog.databaseExists(schema):
            raise DbtRuntimeError(
                f"[SCHEMA_NOT_FOUND] the schema {schema} of {name.label} does not exist; CREATE SCHEMA {schema} first"
            )

    def drop_schema(self, session: SparkSession, schema: str) -> None:
        """Drop a schema with everything in it, files included; raises DbtRuntimeError for one that must stay."""
        if schema.lower() == _KEPT_SCHEMA:
            raise DbtRuntimeError(
                f"the schema {_KEPT_SCHEMA} cannot be dropped, as Spark has no session without it; drop its tables by their names"
            )
        shared = SharedFolders(self.directory, dropped_schema=schema)
        shared.refuse_shared_schema(schema)
        self._refuse_other_files(session, schema)
        for entry in self.entries(session, schema):
            self.drop(session, schema, entry.name.name, shared)
        session.sql(f"drop database if exists `{schema}` cascade")
        # also what no name leads to, such as the folder of a first build that failed
        remove_schema_folder(self.places.schema_folder(schema))
        self.changed()

    def _refuse_other_files(self, session: SparkSession, schema: str) -> None:
        """Refuse a schema with a place of its own that holds anything: Spark would remove that folder as it is."""
        if self.directory is None or not session.catalog.databaseExists(schema):
            return
        place = session.catalog.getDatabase(schema).locationUri
        own = (self.schema_folder(schema), self.directory.managed_location(schema.lower()))
        if not any(same_place(place, each) for each in own) and open_storage(place).list(""):
            raise DbtRuntimeError(
                f"the schema {schema} was made with LOCATION {public_location(place)}, which is not empty, and dropping it would "
                "remove that folder with all its files; drop its tables by their names, and remove the folder yourself"
            )

    # --- names --------------------------------------------------------------------------------------------------

    def entries(self, session: SparkSession, schema: str) -> list[CatalogEntry]:
        """All tables and views of a schema; none when the schema does not exist."""
        if not session.catalog.databaseExists(schema):
            return []
        return [entry for entry in list_entries(session, schema) if not entry.is_internal]

    def entry(self, session: SparkSession, schema: str, name: str) -> CatalogEntry | None:
        """One name, None when Spark does not know it."""
        found = find_entry(session, TableName(schema, name))
        return None if found is None or found.is_internal else found

    def is_foreign(self, session: SparkSession, schema: str, name: str) -> bool:
        """Tell whether a name is that of another writer's table, which `register` would make one whose files DROP TABLE removes."""
        entry = self.entry(session, schema, name)
        return entry is not None and entry.foreign

    def table(self, session: SparkSession, base: str) -> HudiTable:
        """Return the table at a folder, looked at once: what it is, and what its first write starts from."""
        return HudiTable.open(session, base, options=self.options_at(base), hold=True)

    def hudi_base(self, session: SparkSession, schema: str, name: str) -> str | None:
        """Folder of the Hudi table behind a name, cheaply; None for other tables, views and unknown names."""
        try:
            return registered_base(session, TableName(schema, name))
        except AnalysisException:
            return None

    def require_table(self, session: SparkSession, schema: str, name: str) -> HudiTable:
        """Return the Hudi table behind a name; DbtRuntimeError when the name is none."""
        base = self.hudi_base(session, schema, name)
        if base is None:
            known = [entry.name.name for entry in self.entries(session, schema) if entry.is_hudi_table]
            listed = ", ".join(sorted(known)) or "none"
            raise DbtRuntimeError(f"{schema}.{name} is not a Hudi table; Hudi tables of {schema}: {listed}")
        return self.table(session, base)

    def show(self, session: SparkSession, schema: str, name: str, table: HudiTable) -> None:
        """Make Spark's catalog show what a statement or service made of the table that is behind a name."""
        entry = self.entry(session, schema, name)
        name = name if entry is None else entry.main_name
        if entry is not None and entry.foreign:
            self._show_foreign(session, schema, name, table.path)
        elif table.schema is not None:
            self.register(session, schema, name, table)
        else:  # a table without a commit is hidden until it is built
            drop_table(session, TableName(schema, name))
            self.changed()

    def register(
        self,
        session: SparkSession,
        schema: str,
        name: str,
        table: HudiTable,
        **notes: Unpack[NotesGiven],
    ) -> None:
        """Make Spark's catalog show the table as it is now, with what its last write has published."""
        # what the session has read of the table's entries would be used to check the new view of a merge-on-read table
        invalidate_cached_tables(session)
        register_table(
            session,
            TableName(schema, name),
            table.storage,
            table.config,
            published=table.published,
            **notes,
        )
        self.changed()

    def note(self, session: SparkSession, schema: str, name: str, **notes: Unpack[NotesGiven]) -> None:
        """Keep notes of a Hudi table with it; DbtRuntimeError for another writer's table."""
        table = self.require_table(session, schema, name)
        self._check_own(session, schema, name, table)
        self.register(session, schema, name, table, **notes)

    def _check_own(self, session: SparkSession, schema: str, name: str, table: HudiTable) -> None:
        if self.is_foreign(session, schema, name):
            raise DbtRuntimeError(
                f"{schema}.{name} is the table of another writer at {table.path}, in which no comments are kept"
            )

    def register_plan(
        self,
        session: SparkSession,
        plan: ModelPlan,
        table: HudiTable,
        *,
        rebuilt: bool = False,
        **notes: Unpack[NotesGiven],
    ) -> None:
        """Register a model's table with its tblproperties, and a pointer to a place of its own."""
        if PREVIEW.is_on:
            return
        if plan.own_location and self.directory is not None:
            self.directory.save_pointer(plan.schema.lower(), plan.name, plan.base)
        given: NotesGiven = {"properties": _table_properties(plan, table, rebuilt=rebuilt), **notes}
        self.register(session, plan.schema, plan.name, table, **given)

    def drop(
        self, session: SparkSession, schema: str, name: str, shared: SharedFolders | None = None
    ) -> None:
        """Drop a table or view, with its files unless another name or writer has them; no error for no such name."""
        table, entry = TableName(schema, name), self.entry(session, schema, name)
        base = self.base_on_disk(schema, name) if entry is None else entry.base
        if entry is not None and (base is None or entry.is_face):
            session.sql(f"drop {'view' if entry.is_view else 'table'} if exists {table.sql}")
            if base is None:
                self._forget_files(table, is_view=entry.is_view)
        elif base is not None:
            shared = shared or SharedFolders(self.directory)
            is_foreign = entry is not None and entry.foreign
            is_kept = is_foreign or shared.keeps_files(table, base)
            if not is_foreign:
                shared.remove_hidden(table, base, drops=True)
            drop_table(session, table)
            if not is_kept:
                remove_folder(base)
            self._forget_files(table)
        self.changed()

    def forget(self, session: SparkSession, schema: str, name: str) -> None:
        """Take a Hudi table's name out of the catalog and leave its files."""
        drop_table(session, TableName(schema, name))
        self._forget_files(TableName(schema, name))
        self.changed()

    def add_comments(
        self, session: SparkSession, schema: str, name: str, table: HudiTable, comments: Mapping[str, str]
    ) -> None:
        """Store descriptions of some columns and keep those of the others; DbtRuntimeError for another writer's table."""
        self._check_own(session, schema, name, table)
        given = spellings(comments)
        known = {
            column.name: column.metadata["comment"]
            for column in session.table(f"`{schema}`.`{name}`").schema.fields
            if "comment" in column.metadata and column.name not in given
        }
        self.register(session, schema, name, table, column_comments={**known, **comments})

    def save_view(self, session: SparkSession, schema: str, name: str) -> None:
        """Keep a view's definition for the next process."""
        if self.directory is not None:
            self.directory.save_view(session, schema.lower(), name)
        self.changed()

    def base_on_disk(self, schema: str, name: str) -> str | None:
        """Folder of the table that has a name now in the directory catalog, whoever made it; None in any other catalog."""
        if self.directory is None:
            return None
        return self.directory.table_base(schema.lower(), name)

    def storage_on_disk(self, schema: str, name: str) -> Storage | None:
        """Return the storage of a table that the directory catalog has, by its second names too; None where it has none."""
        suffixes = (READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX)
        mains = [name[: -len(suffix)] for suffix in suffixes if name.lower().endswith(suffix)]
        for each in (name, *mains):
            base = self.base_on_disk(schema, each)
            if base is not None:
                return open_storage(base)
        return None

    def _forget_files(self, name: TableName, *, is_view: bool = False) -> None:
        """Remove what the directory catalog keeps of a name: its pointer, its source, and a view's definition."""
        if self.directory is None:
            return
        schema = name.database.lower()
        if is_view:
            self.directory.remove_view(schema, name.name)
        self.directory.remove_pointer(schema, name.name)
        self.directory.remove_source(schema, name.name)

    def described(self, session: SparkSession) -> str:
        """Return versions of Spark and Java, master, ANSI mode and the number of tables, in one line for ``dbt debug``."""
        schemas = self.schemas(session)
        tables = sum(entry.is_hudi_table for schema in schemas for entry in self.entries(session, schema))
        ansi = "on" if session.conf.get(ANSI, "false") == "true" else "off"
        catalog = "hive" if self.directory is None else "directory"
        return (
            f"Spark {session.version} on Java {java_version(session)} ({session.sparkContext.master}), ANSI mode {ansi}; "
            f"{counted(tables, 'table')} in {counted(len(schemas), 'schema')} below {self.places.location_root} ({catalog} catalog)"
        )


def _table_properties(plan: ModelPlan, table: HudiTable, *, rebuilt: bool) -> dict[str, str] | None:
    """Return the properties after a model's write, None to keep them; a rebuilt table forgets NOT NULL."""
    if not plan.properties and not rebuilt:
        return None
    known = dict(EntryNotes.load(table.storage).properties)
    ruled = {} if rebuilt else {key: text for key, text in known.items() if key == NOT_NULL}
    known.pop(NOT_NULL, None)
    return {**ruled, **(plan.properties or known)}
