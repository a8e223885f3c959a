"""How base files are laid out as Parquet."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_engine.config.enums import BloomFilterType, ParquetCodec
from hudi_engine.config.options import Options
from hudi_engine.errors import ConfigError

_FAST_LEVELS = {ParquetCodec.ZSTD: 1}


@dataclass(frozen=True)
class BaseFileOptions:
    """Layout of base files and of the index data in their footers; picklable.

    Args:
        codec: Compression codec.
        row_group_bytes: A row group ends after about this many bytes of uncompressed rows.
        page_bytes: Size of a data page in bytes, before compression.
        max_file_bytes: Size in bytes at which callers begin a new file.
        dictionary: Whether columns whose values repeat are dictionary encoded.
        bloom_type: Kind of the Bloom filter in the footer.
        bloom_entries: Keys the filter is made for; None sizes it to the keys of the file.
        bloom_fpp: False-positive rate of the filter, between 0 and 1, both excluded.
        bloom_max_entries: Keys up to which a dynamic filter opens further rows.
        bloom_enabled: Whether a filter is written. Without one Hudi's BLOOM index fails on the file.

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
    bloom_fpp: float
    bloom_max_entries: int
    bloom_enabled: bool = True

    def __post_init__(self) -> None:
        if min(self.row_group_bytes, self.page_bytes, self.max_file_bytes) < 1:
            raise ConfigError(
                f"sizes of base files must be positive: row group {self.row_group_bytes}, "
                f"page {self.page_bytes}, file {self.max_file_bytes} bytes"
            )

    @classmethod
    def from_options(cls, options: Options) -> BaseFileOptions:
        """Take the layout from the options of a write."""
        entries = options.value("hoodie.index.bloom.num_entries")
        return cls(
            codec=options.member("hoodie.parquet.compression.codec", ParquetCodec),
            row_group_bytes=options.int("hoodie.parquet.block.size"),
            page_bytes=options.int("hoodie.parquet.page.size"),
            max_file_bytes=options.int("hoodie.parquet.max.file.size"),
            dictionary=options.bool("hoodie.parquet.dictionary.enabled"),
            bloom_type=options.member("hoodie.bloom.index.filter.type", BloomFilterType),
            bloom_entries=None if entries is None else int(entries),
            bloom_fpp=options.float("hoodie.index.bloom.fpp"),
            bloom_max_entries=options.int("hoodie.bloom.index.filter.dynamic.max.entries"),
        )

    @property
    def parquet_codec(self) -> str:
        """The codec by pyarrow's name."""
        return self.codec.arrow_name

    @property
    def compression_level(self) -> int | None:
        """Level of the codec; None is the codec's own default."""
        return _FAST_LEVELS.get(self.codec)
