"""The directory catalog: a warehouse folder is the list of schemas, tables and views.

``<root>/<schema>/<table>/.hoodie/hoodie.properties`` is a table. Next to the table folders of a schema are
small JSON files: ``<name>.table.json`` points at a table placed elsewhere, ``<name>.source.json`` at one that another
writer keeps, ``<name>.view.json`` holds a view, ``<name>.function.json`` a SQL function.
Spark's in-memory catalog is filled from them when a session starts, so nothing else has to run and any number
of processes may use one warehouse; every file is replaced whole.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, unquote

from pyspark.sql import SparkSession

from hudi_engine.errors import ConfigError, CorruptTableError, HudiError
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.progress import under_way
from hudi_engine.format.storage import is_refusal
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.given import public_location
from hudi_engine.spark.catalog.entry import FILES_SUFFIX, READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX, EntryNotes
from hudi_engine.spark.catalog.foreign import PlainFiles, register_files, register_foreign
from hudi_engine.spark.catalog.kept import (
    SUFFIX_OF,
    FunctionDefinition,
    ViewDefinition,
    create_all,
    drop_outdated,
    drop_shown,
    in_dependency_order,
    note_removed,
    note_shown,
    read_kept,
)
from hudi_engine.spark.catalog.rebuilds import (
    Settling,
    folder_of_process,
    is_read_only,
    place_beside,
    rebuilt_beside,
)
from hudi_engine.spark.catalog.session import apart, sidecar_runner
from hudi_engine.spark.catalog.spark_entry import drop_entry, find_entry, listed_names
from hudi_engine.spark.catalog.spark_table import drop_table, put_entries
from hudi_engine.spark.catalog.sql_text import TableName, identifier, literal
from hudi_engine.spark.jvm.catalog import database_exists, invalidate_cached_tables, session_catalog
from hudi_engine.spark.jvm.errors import call_errors
from hudi_engine.spark.read.reason import reason_of, spark_errors
from hudi_engine.table.snapshot.derive import RunTasks
from hudi_engine.table.snapshot.manifest import Published, publish
from hudi_engine.table.state import TableState

logger = logging.getLogger(__name__)

_SOURCE = ".source.json"
_VIEW, _FUNCTION = SUFFIX_OF[ViewDefinition], SUFFIX_OF[FunctionDefinition]
_DECLARED = ("columns", "partitions")
_SOURCE_CACHE = ".sources"
_SECOND_FACES = (READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX)
_MANAGED_FOLDER = ".managed"


_filled_from: set[str] = set()
"""Folders that this process has filled its catalog from."""

_FROM_FOLDERS: set[tuple[str, str]] = set()
"""Catalogs and the schemas, in lower case, that this process has made from their folders."""

_FACES = (READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX, FILES_SUFFIX)


POINTER = ".table.json"


_DEFINITION = re.compile(r"^(.+)\.(?:table|view|function)\.json$")
_SOURCE_FILE = re.compile(r"^.+\.source\.json$")
_BEING_BUILT = re.compile(r"^\.(.+)\.rebuild-[0-9a-f]+$")


@dataclass(frozen=True)
class LoadReport:
    """What a session was filled with; ``warnings`` are sentences on what was left out."""

    tables: tuple[TableName, ...]
    views: tuple[TableName, ...]
    warnings: tuple[str, ...]


class DirectoryCatalog:
    """The tables and views below one folder.

    Args:
        root: The folder, a path or URI; it need not exist yet.
        recover: Called with the base path of a table with an unfinished rebuild; it finishes or undoes
            the rebuild, and raises WriteConflictError while another process does.
    """

    def __init__(self, root: str, recover: Callable[[str], None] | None = None) -> None:
        self._storage = open_storage(root)
        self._recover = recover
        self._waited_in_vain: set[str] = set()
        self._told: set[str] = set()

    @property
    def root(self) -> str:
        """The folder, absolute."""
        return self._storage.base

    @cached_property
    def read_only(self) -> bool:
        """Whether the folder must not be written to; what sessions need beyond its files is then kept by the process."""
        return is_read_only(self.root)

    @property
    def source_root(self) -> str:
        """The folder that `source_cache` counts from."""
        return folder_of_process() if self.read_only else self.root

    def load(self, spark: SparkSession, schemas: Iterable[str] | None = None) -> LoadReport:
        """Register everything in a session's catalog; tables behind their timeline are published first.

        A table or view that cannot be registered is left out with a warning, which is logged too; the others go on.

        Args:
            schemas: Schemas to load, None for all.
        """
        wanted = self.schemas() if schemas is None else list(schemas)
        dropped = dropped_schemas(spark, self.root, wanted) if schemas is None else []
        report = self._load(spark, wanted, dropped)
        forget_schemas(spark, self.root, dropped, self.managed_location)
        for warning in report.warnings:
            logger.warning("%s", warning)
        return report

    def _load(self, spark: SparkSession, wanted: Sequence[str], dropped: Sequence[str]) -> LoadReport:
        """Fill a session; outdated views and functions go first, for a table may have the name of such a view by now."""
        warnings: list[str] = []
        listings: dict[str, list[FileStatus]] = {schema: [] for schema in dropped}
        for schema in wanted:
            if self._has_database(spark, schema, warnings):
                try:
                    listings[schema] = self._storage.list(checked_name(schema))
                except OSError as refused:
                    warnings.append(f"the tables and views of {schema} are left out: {refused}")
        note_schemas(self.root, set(listings) - set(dropped))
        functions = read_kept(self._storage, listings, FunctionDefinition, warnings)
        views_read = read_kept(self._storage, listings, ViewDefinition, warnings)
        drop_outdated(spark, self.root, listings, [*functions, *views_read])
        tables = self._load_tables(spark, listings, warnings)
        # a view may call a function, and a function may read a view
        kept_views = in_dependency_order(spark, views_read)
        own = apart(spark) if functions or kept_views else spark
        waiting = create_all(own, functions)
        views = self._load_views(own, kept_views, listings, warnings)
        failed = create_all(own, [function for function, _ in waiting])
        for function, error in failed:
            warnings.append(f"function {function.name.label} was not restored: {reason_of(error)}")
        left_out = [function for function, _ in failed]
        note_shown(self.root, [each for each in functions if each not in left_out])
        invalidate_cached_tables(spark)
        return LoadReport(tuple(tables), tuple(views), tuple(warnings))

    def schemas(self) -> list[str]:
        """Return names of the schemas: every folder of the root that is not hidden."""
        return [each.name for each in self._storage.list("") if each.is_dir and not each.name.startswith(".")]

    def names(self, schema: str, *, faces: bool = True) -> dict[TableName, str | None]:
        """Return what `load` would show of a schema: tables with their places, all that only reads with None; faces if wanted."""
        statuses = self._storage.list(checked_name(schema))
        look = self._look([])
        places = self._places(schema, statuses, look)
        for warning in sorted({*look.warnings} - self._told):  # names are looked at again and again
            logger.warning("%s", warning)
        self._told.update(look.warnings)
        types = dict(zip(places, on_threads(type_when_shown, list(places.values())), strict=True))
        views = [each.name for each in statuses if not each.is_dir and each.name.endswith(_VIEW)]
        found: dict[TableName, str | None] = {
            TableName(schema, unquote(view.removesuffix(_VIEW))): None for view in views
        }
        for name, base in places.items():
            if types[name] is not None:
                found[name] = base
            if faces and types[name] is TableType.MERGE_ON_READ:
                found.update({TableName(schema, name.name + suffix): None for suffix in _SECOND_FACES})
        return found

    def tables(self, schema: str) -> dict[TableName, str]:
        """Return the tables of a schema with their folders, also those that have no columns yet or cannot be read."""
        return self._places(schema, self._storage.list(checked_name(schema)), self._look([]))

    def create_schema(self, schema: str) -> None:
        """Make a schema's folder; nothing happens when it is there."""
        self._storage.make_dirs(checked_name(schema))
        note_schemas(self.root, [schema])

    def drop_schema(self, schema: str) -> None:
        """Remove a schema's definitions and pointers, and its folder; ConfigError when tables are left in it."""
        folder = checked_name(schema)
        for status in self._storage.list(folder):
            if not status.is_dir and status.name.endswith((POINTER, _VIEW, _SOURCE, _FUNCTION)):
                self._storage.remove(status.path)
        left = [each.path for each in self._storage.list(folder, recursive=True) if not each.is_dir]
        if left:
            raise ConfigError(
                f"the schema {schema!r} still holds files, such as {self.root}/{left[0]}; drop its tables "
                "first"
            )
        self._storage.delete_tree(folder)

    def managed_location(self, schema: str) -> str:
        """Return URI for ``CREATE DATABASE ... LOCATION``, where Spark puts managed tables of its own.

        It must not be the schema's folder: ``DROP DATABASE`` deletes the location, and with it every Hudi
        table there, also those of other processes that the session does not know.
        """
        path = f"{checked_name(schema)}/{_MANAGED_FOLDER}"
        return open_storage(folder_of_process()).uri(path) if self.read_only else self._storage.uri(path)

    def default_base(self, schema: str, table: str) -> str:
        """Return the folder of a table that has no pointer."""
        return f"{self.root}/{checked_name(schema)}/{checked_name(table)}"

    def table_base(self, schema: str, table: str) -> str | None:
        """Tell where a table lives, pointers followed, None when there is none; its folder has the name as it is or lower case."""
        pointed = self._pointed_base(schema, table)
        if pointed is not None and open_storage(pointed).exists(PROPERTIES_PATH):
            return pointed
        for name in dict.fromkeys((table, table.lower())):
            if self._storage.exists(f"{checked_name(schema)}/{checked_name(name)}/{PROPERTIES_PATH}"):
                return self.default_base(schema, name)
        return None

    def save_pointer(self, schema: str, table: str, base: str) -> None:
        """Say that a table lives at ``base``, outside the schema's folder; how to get in there is not kept."""
        body = json.dumps({"format": 1, "base": public_location(base)}, indent=2).encode()
        self._storage.replace(_file(schema, table, POINTER), body)

    def remove_pointer(self, schema: str, table: str) -> None:
        """Remove a pointer; nothing happens when there is none."""
        self._storage.remove(_file(schema, table, POINTER))

    def save_source(self, schema: str, table: str, source: str | PlainFiles) -> None:
        """Remember the table of another writer, or the files, that a session shows under a name, for the views that read it."""
        if isinstance(source, PlainFiles):
            raw: dict[str, object] = {"source": {**vars(source), "options": dict(source.options)}}
        else:
            raw = {"base": public_location(source)}
        body = json.dumps({"format": 1, **raw}, indent=2).encode()
        path = _file(schema, table, _SOURCE)
        if not self._storage.exists(path) or self._storage.read(path) != body:
            self._storage.replace(path, body)

    def remove_source(self, schema: str, table: str) -> None:
        """Forget a table of another writer; nothing happens when it was not remembered."""
        self._storage.remove(_file(schema, table, _SOURCE))

    def save_view(self, spark: SparkSession, schema: str, view: str) -> None:
        """Keep the definition a view has in a session's catalog; ConfigError when the session has no such view."""
        definition = ViewDefinition.of(spark, TableName(schema, view))
        self._storage.replace(_file(schema, view, _VIEW), definition.to_json())
        note_shown(self.root, [definition])

    def remove_view(self, schema: str, view: str) -> bool:
        """Forget a view's definition; returns whether there was one."""
        note_removed(ViewDefinition, TableName(schema, view))
        return self._storage.delete(_file(schema, view, _VIEW))

    def save_function(self, definition: FunctionDefinition) -> None:
        """Keep a SQL function for the next session."""
        path = _file(definition.name.database, definition.name.name, _FUNCTION)
        self._storage.replace(path, definition.to_json())
        note_shown(self.root, [definition])

    def remove_function(self, schema: str, function: str) -> None:
        """Forget a function; nothing happens when it is not kept."""
        self._storage.remove(_file(schema, function, _FUNCTION))
        note_removed(FunctionDefinition, TableName(schema, function))

    def restore(
        self, spark: SparkSession, kind: type[ViewDefinition | FunctionDefinition], name: TableName
    ) -> bool:
        """Show a view or function that is kept, whoever made it; returns whether there is one, and fails as Spark does."""
        path = _file(name.database, name.name, SUFFIX_OF[kind])
        try:
            definition = kind.from_json(name, self._storage.read(path), f"{self.root}/{path}")
        except FileNotFoundError:
            return False
        definition.create(apart(spark))
        note_shown(self.root, [definition])
        return True

    def _has_database(self, spark: SparkSession, schema: str, warnings: list[str]) -> bool:
        """Create a schema in the session unless it is there; False when Spark refuses its name."""
        if database_exists(spark, schema):
            return True
        location = literal(self.managed_location(schema))
        try:
            spark.sql(f"CREATE DATABASE IF NOT EXISTS {identifier(schema)} LOCATION {location}")
        except spark_errors() as error:
            warnings.append(f"the folder {self.root}/{schema} is no schema: {reason_of(error)}")
            return False
        return True

    def _load_tables(
        self, spark: SparkSession, listings: dict[str, list[FileStatus]], warnings: list[str]
    ) -> list[TableName]:
        places: dict[TableName, str] = {}
        look = self._look(warnings)
        for schema, statuses in listings.items():
            places.update(self._places(schema, statuses, look))
        run_sidecars = sidecar_runner(spark)
        registered = []
        with under_way(self.root, "shown") as progress:
            progress.all_tables = len(places)
            found = on_threads(lambda item: prepare(item[0], item[1], run_sidecars), list(places.items()))
            for each in found:
                if each.problem:
                    warnings.append(each.problem)
                elif each.state is not None and show_found(spark, each, warnings):
                    registered.append(each.name)
                progress.tables += 1
        for schema in listings:
            forget_removed(spark, schema, [name.name for name in places if name.database == schema])
        return registered

    def _places(self, schema: str, statuses: Sequence[FileStatus], look: Settling) -> dict[TableName, str]:
        """Return the tables of a schema and where they live; a pointer goes before a folder."""
        warnings = look.warnings
        folders = {each.name for each in statuses if each.is_dir and not each.name.startswith(".")}
        folders |= self._recovered(schema, statuses, look)
        tables = {
            TableName(schema, name): self.default_base(schema, name)
            for name in sorted(folders)
            if is_there(self._storage, f"{schema}/{name}", f"{schema}.{name}", warnings)
        }
        known = {name.name.lower(): name for name in tables}
        for status in statuses:
            if status.is_dir or not status.name.endswith(POINTER):
                continue
            name = unquote(status.name.removesuffix(POINTER))
            try:
                base = self._pointed_base(schema, name)
                there = base is not None and _is_at(base, f"{schema}.{name}", look)
            except (HudiError, OSError) as error:
                warnings.append(f"{schema}.{name} was not registered: {error}")
                continue
            if there and base is not None:
                tables[known.get(name.lower(), TableName(schema, name))] = base
            elif base is not None:
                warnings.append(
                    f"{schema}.{name} was not registered: {self.root}/{status.path} points at {base}, where "
                    "there is no Hudi table. Build the table again, or delete the pointer"
                )
        return tables

    def _look(self, warnings: list[str]) -> Settling:
        settles = self._recover is not None and not self.read_only
        return Settling(self._recover if settles else None, warnings, self._waited_in_vain)

    def _recovered(self, schema: str, statuses: Sequence[FileStatus], look: Settling) -> set[str]:
        """Finish the rebuilds that were cut off and tidy up after them; return their tables, which may be back."""
        if not look.settles:
            return set()
        rebuilt = rebuilt_beside(statuses)
        look.settle({f"{schema}.{name}": self.default_base(schema, name) for name in sorted(rebuilt)})
        return rebuilt

    def _pointed_base(self, schema: str, table: str, suffix: str = POINTER) -> str | None:
        return read_pointer(self._storage, _file(schema, table, suffix), f"{schema}.{table}")

    def _source_files(self, name: TableName) -> PlainFiles | None:
        """Return the files of a source, None for a Hudi table and for what cannot be read."""
        try:
            raw = json.loads(self._storage.read(_file(name.database, name.name, _SOURCE)))["source"]
            declared = ([(str(name), str(text)) for name, text in raw.get(key, ())] for key in _DECLARED)
            return PlainFiles(str(raw["location"]), str(raw["format"]), dict(raw["options"]), *declared)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def _load_views(
        self,
        spark: SparkSession,
        views: Sequence[ViewDefinition],
        listings: dict[str, list[FileStatus]],
        warnings: list[str],
    ) -> list[TableName]:
        """Create the views whose tables and views are there before them; the others are warned of, and the rest goes on."""
        restored = []
        sources = {
            (schema.lower(), source): TableName(schema, source)
            for schema, statuses in listings.items()
            for status in statuses
            if not status.is_dir and status.name.endswith(_SOURCE)
            for source in [unquote(status.name.removesuffix(_SOURCE))]
        }
        for view in views:
            try:
                names = view.names_read(spark) if sources else set()
                # the second names of a merge-on-read table count for the table
                mains = {(schema, table[:-3]) for schema, table in names if table.endswith(_SECOND_FACES)}
                for read in sorted(names | mains):
                    if read in sources:
                        self._load_source(spark, sources.pop(read), warnings)
                view.create(spark)
            except spark_errors() as error:
                warnings.append(
                    f"view {view.name.label} was not restored: {reason_of(error)}. Build it again, or drop it"
                )
                continue
            restored.append(view)
        note_shown(self.root, restored)
        return [view.name for view in restored]

    def _load_source(self, spark: SparkSession, name: TableName, warnings: list[str]) -> None:
        """Show the table of another writer, as it is now, to the views that read it."""
        try:
            files = self._source_files(name)
            if files is not None:
                register_files(spark, name, files)
                return
            base = self._pointed_base(name.database, name.name, _SOURCE)
            if base is not None:
                register_foreign(spark, name, base, source_cache(self.source_root, name.database, name.name))
        except spark_errors(HudiError, OSError) as error:
            warnings.append(
                f"the source {name.label} was not registered: {reason_of(error)}. If nothing reads it "
                f"any more, delete {self.root}/{_file(name.database, name.name, _SOURCE)}"
            )


def _is_at(base: str, label: str, look: Settling) -> bool:
    """Tell whether a table is where a pointer leads, once a rebuild of it that is under way has ended."""
    storage = open_storage(base)
    if not storage.exists(PROPERTIES_PATH):
        look.settle({label: base})
    return storage.exists(PROPERTIES_PATH)


def checked_name(name: str) -> str:
    """Return a schema or table name that can be a folder; raises ConfigError for another."""
    if not name or "/" in name or "\0" in name or name.startswith("."):
        raise ConfigError(
            f"{name!r} cannot be a schema or table of a directory catalog, where names are folders: it must "
            "not be empty, start with '.' or hold '/'"
        )
    return name


def source_cache(root: str, schema: str, table: str) -> str:
    """Return the folder for what is derived from a table of another writer."""
    return f"{root}/{_SOURCE_CACHE}/{schema.lower()}/{table.lower()}"


def _file(schema: str, name: str, suffix: str) -> str:
    """Return the path of a definition file; Spark's names do not tell upper from lower case."""
    return f"{checked_name(schema)}/{quote(checked_name(name).lower(), safe=' ')}{suffix}"


def note_schemas(root: str, schemas: Iterable[str]) -> None:
    """Note that sessions of this process have schemas from the folders of a catalog."""
    _FROM_FOLDERS.update((root, schema.lower()) for schema in schemas)


def dropped_schemas(spark: SparkSession, root: str, there: Iterable[str]) -> list[str]:
    """Return the schemas that sessions have from folders which another process has dropped; ``there``: those it has."""
    known = {schema.lower() for schema in there}
    found = sorted(schema for folder, schema in _FROM_FOLDERS if folder == root and schema not in known)
    # of names that are no identifiers, spark.catalog would not tell
    names = session_catalog(spark)
    return [schema for schema in found if names.databaseExists(schema)]


def forget_schemas(
    spark: SparkSession, root: str, schemas: Iterable[str], place_of: Callable[[str], str]
) -> None:
    """Drop removed schemas from a session's catalog; one that holds what was made by no file stays.

    So does one at another place than ``place_of`` gives it, as Spark deletes the place of a schema with all that is there.
    """
    names = session_catalog(spark)
    for schema in schemas:
        _FROM_FOLDERS.discard((root, schema))
        try:
            place = open_storage(str(names.getDatabaseMetadata(schema).locationUri().toString())).uri()
            if place.lower() == open_storage(place_of(schema)).uri().lower():
                names.dropDatabase(schema, True, False)
        except spark_errors(HudiError, OSError) as error:
            logger.info("the schema %s stays: %s", schema, error)


def forget_removed(spark: SparkSession, schema: str, there: Collection[str]) -> None:
    """Drop the entries of Hudi tables whose folders were removed, which Spark would read as tables without rows."""
    known = {name.lower() for name in there}
    for text in listed_names(spark, schema):
        face = next((each for each in _FACES if text.endswith(each)), "")
        if text.lower() in known or (face and text.removesuffix(face).lower() in known):
            continue
        entry = find_entry(spark, TableName(schema, text))
        # another thread of this process may just have made it
        if entry is not None and entry.base and _is_removed(entry.base):
            drop_entry(spark, entry)


def _is_removed(base: str) -> bool:
    """Tell whether a table was removed; False for a place that cannot be read."""
    try:
        return not open_storage(base).exists(PROPERTIES_PATH)
    except (HudiError, OSError) as error:
        logger.warning("%s cannot be read and may have been removed: %s", base, error)
        return False


def forget_other_warehouses(spark: SparkSession, catalog: DirectoryCatalog) -> None:
    """Drop the entries of warehouses that the process used before; no file is touched.

    Else a schema of the same name would show their tables, and what drops a table would delete theirs.
    """
    for root in _filled_from - {catalog.root}:
        try:
            _unload(spark, type(catalog)(root))
        except call_errors(HudiError, OSError) as error:
            logger.warning("names of %s may still be shown, as it cannot be read: %s", root, error)
    _filled_from.clear()
    _filled_from.add(catalog.root)


def _unload(spark: SparkSession, catalog: DirectoryCatalog) -> None:
    """Drop the entries that show what a warehouse holds; those of another one with the same names stay."""
    drop_shown(spark, catalog.root)
    for schema in catalog.schemas():
        for name, base in catalog.names(schema, faces=False).items():
            entry = find_entry(spark, name)
            if entry is None or entry.foreign:
                continue
            if base is None and entry.base is None and entry.reads_only:
                drop_entry(spark, entry)
            elif (
                base is not None and entry.base and open_storage(entry.base).uri() == open_storage(base).uri()
            ):
                drop_table(spark, name)


def read_pointer(storage: Storage, path: str, label: str) -> str | None:
    """Return the folder that a pointer names, None when there is no such file; CorruptTableError when damaged."""
    try:
        raw = json.loads(storage.read(path))
        return public_location(str(raw["base"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            f"{storage.base}/{path} cannot be parsed: {error!r}. It has the place of {label}; "
            "delete it and build the table again"
        ) from error


def all_pointers(catalog: DirectoryCatalog) -> dict[TableName, str]:
    """Return the names of all schemas that have pointers and where these lead, without unreadable ones."""
    storage = open_storage(catalog.root)

    def entries(schema: str) -> list[FileStatus]:
        try:
            return storage.list(schema)
        except OSError as refused:
            logger.warning("the names in %s/%s are not looked at: %s", catalog.root, schema, refused)
            return []

    listings = on_threads(entries, catalog.schemas())
    paths = [each.path for found in listings for each in found if not each.is_dir]
    paths = [path for path in paths if path.endswith(POINTER)]

    def place(path: str) -> str | None:
        try:
            return read_pointer(storage, path, path)
        except HudiError:
            return None
        except OSError as refused:
            logger.warning("where %s/%s leads is not looked at: %s", catalog.root, path, refused)
            return None

    found = {}
    for path, base in zip(paths, on_threads(place, paths), strict=True):
        schema, _, file = path.rpartition("/")
        if base is not None:
            found[TableName(schema, unquote(file.removesuffix(POINTER)))] = base
    return found


@dataclass(frozen=True)
class Found:
    """A table of the warehouse, read and published, or why it could not be; with the place of its manifest if not its own."""

    name: TableName
    storage: Storage
    state: tuple[TableConfig, Published, EntryNotes] | None
    problem: str = ""
    place: Storage | None = None


def is_there(storage: Storage, folder: str, label: str, warnings: list[str]) -> bool:
    """Tell whether a folder of the warehouse is a table; one that cannot be looked at is none, and said in ``warnings``."""
    try:
        return storage.exists(f"{folder}/{PROPERTIES_PATH}")
    except OSError as error:
        warnings.append(f"{label} was not registered: {error}")
        return False


def type_when_shown(base: str) -> TableType | None:
    """Return the type of a table that sessions show, None for one without a schema yet or one that cannot be read."""
    try:
        state = TableState.load(open_storage(base))
        return None if state.schema_json() is None else state.config.table_type
    except (HudiError, OSError):
        return None


def prepare(name: TableName, base: str, run_sidecars: RunTasks) -> Found:
    """Read a table and publish it when its manifest is behind."""
    storage = open_storage(base)
    try:
        config = TableConfig.load(storage)
        published, place = _published(storage, config, run_sidecars)
        return Found(name, storage, (config, published, EntryNotes.load(storage)), place=place)
    except (HudiError, OSError) as error:
        return Found(name, storage, None, f"{name.label} was not registered: {error}")


def _published(storage: Storage, config: TableConfig, run: RunTasks) -> tuple[Published, Storage | None]:
    """Publish a table, in another folder where its own must not be written to."""
    try:
        return publish(storage, config, run_sidecars=run), None
    except OSError as error:
        if not is_refusal(error):
            raise
    place = place_beside(storage)
    return publish(storage, config, run_sidecars=run, target=place), place


def show_found(spark: SparkSession, found: Found, warnings: list[str]) -> bool:
    """Show a table in a session; what cannot be shown is said in ``warnings``."""
    assert found.state is not None
    config, published, notes = found.state
    if published.schema is None:
        logger.debug("%s has no schema yet and is left out", found.name.label)
        return False
    try:
        put_entries(spark, found.name, found.storage, config, published, notes, found.place)
    except HudiError as error:
        warnings.append(f"{found.name.label} was not registered: {error}")
        return False
    except spark_errors() as error:
        warnings.append(f"{found.name.label} was not registered: {reason_of(error)}")
        return False
    return True


def held_in(folder: str) -> list[str]:
    """Return the names of what a schema's folder holds, except notes of sources and Spark's own tables."""
    storage = open_storage(folder)
    found = set()
    for each in storage.list(""):
        definition = None if each.is_dir else _DEFINITION.match(each.name)
        built = _BEING_BUILT.match(each.name) if each.is_dir else None
        if definition is not None:
            found.add(unquote(definition[1]))
        elif built is not None:
            found.add(built[1])
        elif each.name.startswith(".") or (not each.is_dir and _SOURCE_FILE.match(each.name)):
            continue
        elif not each.is_dir or (storage.list(each.path) and storage.exists(each.path)):
            # a store lists folders of nothing but other programs' marks, which do not exist
            found.add(each.name)
    return sorted(found)
