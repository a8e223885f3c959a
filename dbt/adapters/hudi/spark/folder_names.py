"""The names of a warehouse as its folders tell them, so that a look at them needs no Spark."""

from __future__ import annotations

from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.base import Storage
from hudi_engine.spark.catalog import DirectoryCatalog, TableName
from hudi_engine.spark.catalog.entry import READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX


class FolderNames:
    """Schemas, tables and views below the location root of a profile with the directory catalog."""

    def __init__(self, directory: DirectoryCatalog) -> None:
        self._directory = directory

    def schemas(self) -> list[str]:
        """Names of all schemas, with the one that Spark always has."""
        return sorted({*self._directory.schemas(), "default"})

    def entries(self, schema: str, *, faces: bool = True) -> dict[TableName, str | None]:
        """Names of a schema: tables with their places, all that only reads with None."""
        return self._directory.names(schema.lower(), faces=faces)

    def table(self, schema: str, name: str) -> Storage | None:
        """Return the storage of a table, None where the folders do not know the name; a second face stands for its table."""
        faces = (READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX)
        mains = [name[: -len(face)] for face in faces if name.lower().endswith(face)]
        for each in (name, *mains):
            base = self._directory.table_base(schema.lower(), each)
            if base is not None:
                return open_storage(base)
        return None

    def tables(self, schema: str) -> list[str]:
        """Names of the Hudi tables of a schema."""
        return sorted(name.name for name, base in self.entries(schema).items() if base is not None)
