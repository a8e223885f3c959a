"""Reading base files into the table's schema (Parquet; both list and both decimal encodings)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_engine.errors import CorruptTableError, SchemaError, TimelineError, UnsupportedTableError
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.filegroup.missing import GONE
from hudi_engine.format.merge.filters import columns_of
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.rows_at import rows_at
from hudi_engine.format.merge.stored_columns import fit_columns, stored_names
from hudi_engine.format.schema.coded import decoded, plain_schema, with_one_dictionary
from hudi_engine.format.schema.meta_fields import COMMIT_TIME, RECORD_KEY
from hudi_engine.format.schema.time_units import as_meant, check_calendar, is_in_old_calendar, is_of_others
from hudi_engine.format.storage.damage import DAMAGE


def check_row_count(
    path: str, file: pq.ParquetFile, columns: Sequence[str], found: int, expected: int
) -> None:
    """Refuse rows of a base file when the footer reports another number of them.

    A column may end before the others: pyarrow stops where a page of a repeated column holds no value.
    """
    if found == expected:
        return
    short = ", ".join(repr(name) for name in columns if not _is_whole(file, name))
    raise CorruptTableError(
        f"base file {path!r} cannot be read: its footer has {expected} rows for what was read, but {found} came; "
        f"{'column ' + short if short else 'a column'} ends before the file does. "
        "Write the rows again from their source, or read the file with Spark, which may read more of it"
    )


def _is_whole(file: pq.ParquetFile, column: str) -> bool:
    try:
        return int(file.read(columns=[column]).num_rows) == int(file.metadata.num_rows)
    except (pa.ArrowInvalid, OSError):
        return False


_INT96_UNIT = "us"
_DICTIONARIES = frozenset({"RLE_DICTIONARY", "PLAIN_DICTIONARY"})
_NUMBER_BYTES = 4
"""A column of dictionary numbers takes at most so much a row; where it takes more, the writer gave the dictionary up."""
BLOCK_ROWS = 65_536
"""Rows of a block: small enough to be rewritten in memory that is used again, large enough to be worth a call."""


def read_base_file(
    context: ReadContext, base_file: BaseFile, columns: Sequence[str] | None = None
) -> pa.Table:
    """Return rows of a base file in file order.

    Args:
        context: The read; its instant range is not applied here.
        columns: Columns in the wanted order, None for all of the table. A column that the file lacks is null.
    """
    wanted = select_schema(context.schema, columns)
    with _opened(context, base_file) as file:
        names = stored_names(context, file.schema_arrow, base_file.instant, wanted)
        stored = _read_whole(base_file, file, list(dict.fromkeys(names.values())))
        stored = _as_meant(stored, file, names, wanted)
        if is_in_old_calendar(file.metadata):
            check_calendar(stored, f"base file {base_file.path!r}")
    return fit_columns(context, stored, names, base_file.instant, base_file.partition, wanted)


def scan_base_file(
    context: ReadContext, base_file: BaseFile, columns: Sequence[str], filters: pc.Expression
) -> pa.Table:
    """Return rows of a base file for which a filter holds; row groups whose statistics rule it out are not read."""
    import pyarrow.dataset as ds  # here, as it imports pandas

    looked_at = list(dict.fromkeys([*columns, *columns_of(filters, context.schema)]))
    wanted = select_schema(context.schema, looked_at)
    with _opened_source(context, base_file) as source:
        checked = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
        layout = ds.ParquetFileFormat(
            coerce_int96_timestamp_unit=_INT96_UNIT, default_fragment_scan_options=checked
        )
        fragment = layout.make_fragment(source)
        stored = fragment.physical_schema
        flat = (field.name for field in wanted if not pa.types.is_nested(field.type))
        is_counted = any(stored.get_field_index(name) >= 0 for name in flat)  # Arrow counts those alone
        as_wanted = is_counted and _is_as_wanted(context, stored, wanted)
        if as_wanted and not is_in_old_calendar(fragment.metadata):
            projection = {name: pc.field(name) for name in columns}
            rows: pa.Table = fragment.to_table(schema=wanted, columns=projection, filter=filters)
            return rows.cast(select_schema(context.schema, columns))
    return read_base_file(context, base_file, looked_at).filter(filters).select(list(columns))


def _is_as_wanted(context: ReadContext, stored: pa.Schema, wanted: pa.Schema) -> bool:
    """Return whether Arrow's own scan gives the wanted columns: nothing renamed, left out or of another type."""
    if context.schema_history is not None or context.config.drop_partition_columns:
        return False
    places = [(stored.get_field_index(field.name), field) for field in wanted]
    return all(place < 0 or stored.field(place).type.equals(field.type) for place, field in places)


def check_base_file(context: ReadContext, base_file: BaseFile) -> None:
    """Read all pages of a base file, one after the other; raises as `read_base_file` does."""
    with _opened(context, base_file) as file:
        found = sum(batch.num_rows for batch in file.iter_batches(BLOCK_ROWS))
        check_row_count(base_file.path, file, file.schema_arrow.names, found, file.metadata.num_rows)


class BaseFileRows:
    """An open base file, read column by column and only on request."""

    def __init__(
        self, context: ReadContext, base_file: BaseFile, file: pq.ParquetFile, source: pa.NativeFile
    ) -> None:
        self._context, self._base, self._file = context, base_file, file
        self.source = source
        sizes = [file.metadata.row_group(each).num_rows for each in range(file.metadata.num_row_groups)]
        self._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    @property
    def footer(self) -> pq.FileMetaData:
        """The file's footer."""
        return self._file.metadata

    @cached_property
    def texts(self) -> Mapping[bytes, bytes]:
        """Key-value metadata of the footer, a Bloom filter included, copied once."""
        return self.footer.metadata or {}

    @cached_property
    def is_in_old_calendar(self) -> bool:
        """Whether the footer marks dates and times as those of Spark before 3.0."""
        return is_in_old_calendar(self.footer, self.texts)

    @property
    def count(self) -> int:
        """Rows of the file."""
        return int(self._starts[-1])

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return some columns of all rows."""
        wanted, names = self._named(columns)
        with _read_errors(self._base):
            stored = _read_whole(self._base, self._file, list(dict.fromkeys(names.values())))
        return self._fitted(stored, names, wanted)

    def blocks(
        self, columns: Sequence[str], group: int | None = None, rows: int | None = None
    ) -> Iterator[pa.Table]:
        """Yield the rows of one row group, or of all, in blocks, at least one, so that what is done to them stays small in memory.

        Columns of text whose values the file keeps by number are coded (`schema/coded.py`), all others as the table has them.
        """
        wanted, names = self._named(columns)
        stored = list(dict.fromkeys(names.values()))
        wanted = _with_codes(wanted, names, self._file.schema_arrow)
        for part in self._parts(stored, group, rows or BLOCK_ROWS):
            yield self._fitted(part, names, wanted)

    def _parts(self, stored: list[str], group: int | None, rows: int) -> Iterator[pa.Table]:
        with _read_errors(self._base):
            if not stored or not self.count:
                yield self._file.read(columns=stored)
                return
            groups = None if group is None else [group]
            found = 0
            for batch in self._file.iter_batches(rows, row_groups=groups, columns=stored):
                found += batch.num_rows
                yield pa.Table.from_batches([batch])
            expected = self.count if group is None else int(self._starts[group + 1] - self._starts[group])
            check_row_count(self._base.path, self._file, stored, found, expected)

    def codes(self, column: str) -> tuple[npt.NDArray[np.int64], list[str | None]]:
        """Return for each row which of the values of a text column it has, and those values; for columns of few values."""
        if self._file.schema_arrow.get_field_index(column) < 0:
            return np.zeros(self.count, np.int64), [None]
        with _read_errors(self._base):
            whole = with_one_dictionary(_read_whole(self._base, self._file, [column]).column(0))
        values = whole.dictionary.to_pylist()
        return whole.indices.fill_null(len(values)).to_numpy().astype(np.int64), [*values, None]

    def take(self, places: npt.NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """Return some columns of the rows at some places, in the order of the file, and hold no others for long.

        Row groups without such a row are not read, and of the others nothing behind the last one.
        """
        wanted, names = self._named(columns)
        stored = list(dict.fromkeys(names.values()))
        with _read_errors(self._base):
            parts = list(self._taken(places, stored)) if stored else []
        if not parts:
            nothing = [pa.nulls(len(places), field.type) for field in wanted]
            parts, names = [pa.Table.from_arrays(nothing, schema=wanted)], {}
        rows = pa.concat_tables(parts)
        return self._fitted(rows, names, wanted)

    def _taken(self, places: npt.NDArray[np.int64], stored: list[str]) -> Iterator[pa.Table]:
        for group, start in enumerate(self._starts[:-1]):
            inside = places[np.searchsorted(places, start) : np.searchsorted(places, self._starts[group + 1])]
            if not len(inside):
                continue
            size = min(BLOCK_ROWS, int(inside[-1] - start) + 1)
            blocks = self._file.iter_batches(size, row_groups=[group], columns=stored)
            first, end = start, self._starts[group + 1]
            while len(inside):
                block = next(blocks, None)
                if block is None:
                    check_row_count(self._base.path, self._file, stored, int(start - first), int(end - first))
                    return
                here = inside[: np.searchsorted(inside, start + block.num_rows)]
                if len(here):
                    yield decoded(pa.Table.from_batches([rows_at(block, here - start)]))
                inside, start = inside[len(here) :], start + block.num_rows

    def smallest(self, column: str) -> object:
        """Return the smallest value of a column as the footer has it, so texts may be cut; None where it does not say it."""
        _, names = self._named([column])
        paths = [self.footer.schema.column(number).path for number in range(self.footer.num_columns)]
        if names.get(column) not in paths:
            return None
        place = paths.index(names[column])
        expected = [
            self.footer.row_group(group).column(place).statistics for group in range(len(self._starts) - 1)
        ]
        if not all(each is not None and each.has_min_max for each in expected):
            return None
        return min((each.min for each in expected), default=None)

    def _fitted(self, stored: pa.Table, names: dict[str, str], wanted: pa.Schema) -> pa.Table:
        """Return stored rows under the wanted names and types."""
        with _read_errors(self._base):
            stored = _as_meant(stored, self._file, names, wanted)
        if self.is_in_old_calendar:
            check_calendar(stored, f"base file {self._base.path!r}")
        return fit_columns(self._context, stored, names, self._base.instant, self._base.partition, wanted)

    def _named(self, columns: Sequence[str]) -> tuple[pa.Schema, dict[str, str]]:
        """Return the fields of some columns, and the names under which the file holds them."""
        wanted = select_schema(self._context.schema, columns)
        return wanted, _stored_names(self._context, self._base, self._file, wanted)


def _read_whole(base_file: BaseFile, file: pq.ParquetFile, columns: list[str]) -> pa.Table:
    rows = file.read(columns=columns)
    check_row_count(base_file.path, file, columns, rows.num_rows, file.metadata.num_rows)
    return rows


def _as_meant(stored: pa.Table, file: pq.ParquetFile, names: dict[str, str], wanted: pa.Schema) -> pa.Table:
    if not is_of_others(file.metadata.created_by):
        return stored
    kinds = {name: wanted.field(under).type for under, name in names.items()}
    return as_meant(stored, file.metadata.created_by, kinds)


def _stored_names(
    context: ReadContext, base_file: BaseFile, file: pq.ParquetFile, wanted: pa.Schema
) -> dict[str, str]:
    return stored_names(context, plain_schema(file.schema_arrow), base_file.instant, wanted)


def _with_codes(wanted: pa.Schema, names: dict[str, str], stored: pa.Schema) -> pa.Schema:
    """Return the wanted columns, those coded that are text in the file as in the table; keys never are."""
    for number, field in enumerate(wanted):
        kind = stored.field(names[field.name]).type if field.name in names else field.type
        if field.name != RECORD_KEY and pa.types.is_dictionary(kind) and kind.value_type.equals(field.type):
            wanted = wanted.set(number, field.with_type(kind))
    return wanted


@contextmanager
def opened_base_file(context: ReadContext, base_file: BaseFile) -> Iterator[BaseFileRows]:
    """Open a base file whose rows are read in parts; raises as `read_base_file`, and so does what reads it."""
    with ExitStack() as opened:
        with _read_errors(base_file):
            source = opened.enter_context(context.storage.open_input(base_file.path))
            found = pq.read_metadata(source)
            encoded = {COMMIT_TIME}.intersection(found.schema.names).union(_encoded(found))
            file = pq.ParquetFile(
                source,
                metadata=found,
                coerce_int96_timestamp_unit=_INT96_UNIT,
                read_dictionary=sorted(encoded),
                page_checksum_verification=True,
            )
        yield BaseFileRows(context, base_file, file, source)


def _encoded(file: pq.FileMetaData) -> list[str]:
    """Return the columns of text whose values the file keeps by number: all the texts are made only of rows that are taken."""
    if not file.num_row_groups:
        return []
    group = file.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return [
        each.path_in_schema
        for each in columns
        if each.physical_type == "BYTE_ARRAY"
        and "." not in each.path_in_schema
        and not _DICTIONARIES.isdisjoint(each.encodings)
        and each.total_uncompressed_size <= each.num_values * _NUMBER_BYTES
    ]


@contextmanager
def _opened(context: ReadContext, base_file: BaseFile) -> Iterator[pq.ParquetFile]:
    with _opened_source(context, base_file) as source:
        yield pq.ParquetFile(source, coerce_int96_timestamp_unit=_INT96_UNIT, page_checksum_verification=True)


@contextmanager
def _opened_source(context: ReadContext, base_file: BaseFile) -> Iterator[pa.NativeFile]:
    with _read_errors(base_file), context.storage.open_input(base_file.path) as source:
        yield source


@contextmanager
def _read_errors(base_file: BaseFile) -> Iterator[None]:
    """Turn what goes wrong with reading into an error that names the file."""
    if base_file.extension != "parquet":
        raise UnsupportedTableError(
            f"base file {base_file.path!r} has the format {base_file.extension!r}; only parquet "
            "can be read. Rewrite the table in Parquet with the writer that made it"
        )
    try:
        yield
    except FileNotFoundError as error:
        raise TimelineError(
            f"base file {base_file.path!r} {GONE}: it was cleaned or "
            "rolled back meanwhile. Read the table again"
        ) from error
    except DAMAGE as error:
        raise CorruptTableError(
            f"base file {base_file.path!r} cannot be read: {error}. Restore the file from a copy, or the table to an earlier commit"
        ) from error


def select_schema(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """Return the named fields of ``schema`` in the wanted order."""
    if columns is None:
        return schema
    unknown = [name for name in columns if schema.get_field_index(name) < 0]
    if unknown:
        raise SchemaError(
            f"unknown columns {', '.join(map(repr, unknown))}; the table has {', '.join(schema.names)}"
        )
    return pa.schema([schema.field(name) for name in columns])
