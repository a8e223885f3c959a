"""How base files are laid out as Parquet."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.declared.metadata_options import MetadataOptions
from hudi_engine.format.config.declared.write_options import FileOptions, IndexOptions
from hudi_engine.format.config.enums import BLOOM_INDEXES, BloomFilterType, ParquetCodec
from hudi_engine.format.config.options import Options

_FAST_LEVELS = {ParquetCodec.ZSTD: 1}


@dataclass(frozen=True)
class BaseFileOptions:
    """Layout of base files and of the index data in their footers; picklable.

    Args:
        row_group_bytes: Uncompressed bytes of rows after which a row group ends, about.
        page_bytes: Bytes of a data page before compression.
        max_file_bytes: Bytes at which callers begin a new file.
        bloom_entries: Keys the filter is made for; None sizes it to the keys of the file.
        bloom_fpp: False-positive rate between 0 and 1, both excluded; None leaves it to the filter.
        bloom_max_entries: Keys up to which a dynamic filter grows.
        carry_columns: Whether unchanged column chunks are copied from the previous file.
        bloom_enabled: Whether a filter is written. Hudi's BLOOM index fails on a file without one.

    Raises:
        ConfigError: A value is outside its range.
    """

    codec: ParquetCodec
    row_group_bytes: int
    page_bytes: int
    max_file_bytes: int
    dictionary: bool
    bloom_type: BloomFilterType
    bloom_entries: int | None
    bloom_fpp: float | None
    bloom_max_entries: int
    bloom_enabled: bool = True
    carry_columns: bool = True

    def __post_init__(self) -> None:
        if min(self.row_group_bytes, self.page_bytes, self.max_file_bytes) < 1:
            raise ConfigError(
                f"sizes of base files must be positive: row group {self.row_group_bytes}, "
                f"page {self.page_bytes}, file {self.max_file_bytes} bytes"
            )

    @classmethod
    def from_options(cls, options: Options) -> BaseFileOptions:
        """Take the layout from the options of a write."""
        entries = options[IndexOptions.BLOOM_ENTRIES]
        reads_filters = options[IndexOptions.TYPE] in BLOOM_INDEXES or options[MetadataOptions.BLOOM_FILTERS]
        return cls(
            codec=options[FileOptions.CODEC],
            row_group_bytes=options[FileOptions.ROW_GROUP_SIZE],
            page_bytes=options[FileOptions.PAGE_SIZE],
            max_file_bytes=options[FileOptions.MAX_FILE_SIZE],
            dictionary=options[FileOptions.DICTIONARY],
            carry_columns=options[EngineOptions.CARRY_COLUMNS],
            bloom_type=options[IndexOptions.BLOOM_FILTER_TYPE],
            bloom_entries=None if entries is None else int(entries),
            bloom_fpp=options[IndexOptions.BLOOM_FALSE_POSITIVES],
            bloom_max_entries=options[IndexOptions.BLOOM_MAX_ENTRIES],
            bloom_enabled=reads_filters or options[IndexOptions.BLOOM_IN_FOOTER],
        )

    def for_blocks(self, first: pa.Table, rows: int | None) -> BaseFileOptions:
        """Return the layout with row groups of even size for a file of about ``rows`` rows; no small one is left at its end."""
        if not rows or not first.num_rows:
            return self
        whole = first.nbytes * rows // first.num_rows
        return replace(self, row_group_bytes=max(1, whole // max(1, round(whole / self.row_group_bytes))))

    @property
    def parquet_codec(self) -> str:
        """The codec by pyarrow's name."""
        return self.codec.arrow_name

    @property
    def compression_level(self) -> int | None:
        """Level of the codec; None is the codec's own default."""
        return _FAST_LEVELS.get(self.codec)


SAMPLE_ROWS = 5000


def sampled_row_bytes(table: pa.Table, codec: str) -> float:
    """Return bytes a row takes in a Parquet file, at least 1, measured on the first 5,000 rows."""
    sample = table.slice(0, SAMPLE_ROWS)
    if sample.num_rows == 0:
        return 1.0
    sink = io.BytesIO()
    pq.write_table(sample, sink, compression=codec, store_schema=False)
    return max(1.0, float(sink.tell()) / int(sample.num_rows))


@dataclass(frozen=True)
class FileSize:
    """How many rows a base file takes.

    Args:
        max_bytes: Target size of a base file (``hoodie.parquet.max.file.size``).
        max_rows: Rows of a new file (``hoodie.copyonwrite.insert.split.size``); None lets the bytes alone decide
            (``hoodie.copyonwrite.insert.auto.split``).
        row_bytes: Bytes a row takes, learned from commits.
    """

    max_bytes: int
    max_rows: int | None
    row_bytes: int
    codec: str

    @classmethod
    def from_options(cls, options: Options, row_bytes: int, codec: str) -> FileSize:
        """Take the rule from the options of a write."""
        auto = options[FileOptions.INSERT_AUTO_SPLIT]
        most = None if auto else options[FileOptions.INSERT_SPLIT_SIZE]
        return cls(options[FileOptions.MAX_FILE_SIZE], most, row_bytes, codec)

    def rows_per_file(self, sample: pa.Table | None = None) -> int:
        """Return the rows of a new base file, by a sample of them or, without one, by what commits say."""
        row_bytes = float(self.row_bytes) if sample is None else sampled_row_bytes(sample, self.codec)
        rows = max(1, int(self.max_bytes / max(1.0, row_bytes)))
        return rows if self.max_rows is None else min(rows, self.max_rows)

    def room_in(self, size: int) -> int:
        """Return the rows that a file of ``size`` bytes still takes."""
        return max(0, (self.max_bytes - size) // max(1, self.row_bytes))
