"""Names and numbers of the log file format (log format version 1, written by table versions 6, 8 and 9 alike).

Source: Hudi table format, log files: block framing, ordinals. All integers are big-endian.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from hudi_engine.errors import CorruptTableError

MAGIC = b"#HUDI#"
LOG_FORMAT_VERSION = 1
CONTENT_VERSION = 3


class BlockType(IntEnum):
    """Ordinal of a block's kind."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class HeaderKey(IntEnum):
    """Ordinal of a header entry."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


ROLLBACK_COMMAND = "0"


@dataclass(frozen=True)
class BlockHead:
    """The header of a block.

    Attributes:
        kind: What the content is; ``CORRUPT`` for bytes between blocks that are no block.
        header: Header entries by ordinal; ordinals this engine does not know are kept as plain numbers.
    """

    kind: BlockType
    header: Mapping[int, str]
    offset: int

    @property
    def instant_time(self) -> str:
        """Instant that wrote the block."""
        value = self.header.get(HeaderKey.INSTANT_TIME)
        if value is None:
            raise CorruptTableError(
                f"the {self.kind.name} log block at byte {self.offset} names no instant in its header"
            )
        return value

    @property
    def target_instant_time(self) -> str | None:
        """Instant that a rollback command takes back; None in every other block."""
        if self.kind is not BlockType.COMMAND:
            return None
        return self.header.get(HeaderKey.TARGET_INSTANT_TIME)

    @property
    def is_rollback(self) -> bool:
        """Whether the block is a command that takes back the blocks of another instant."""
        command = self.header.get(HeaderKey.COMMAND_BLOCK_TYPE)
        return self.kind is BlockType.COMMAND and command == ROLLBACK_COMMAND

    @property
    def schema(self) -> str | None:
        """Avro schema JSON of the rows in the block, meta fields included."""
        return self.header.get(HeaderKey.SCHEMA)

    @property
    def compacted_block_times(self) -> tuple[str, ...]:
        """Instants whose blocks a log compaction packed into this one; empty for ordinary blocks."""
        text = self.header.get(HeaderKey.COMPACTED_BLOCK_TIMES, "")
        return tuple(part.strip() for part in text.split(",") if part.strip())

    @property
    def is_partial(self) -> bool:
        """Whether the rows hold only the updated columns (table version 8 and later)."""
        return self.header.get(HeaderKey.IS_PARTIAL, "").lower() == "true"

    @property
    def is_data(self) -> bool:
        """Whether the content is rows of the table."""
        return self.kind in (BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.HFILE_DATA)


@dataclass(frozen=True)
class BlockPlace(BlockHead):
    """A block whose content has not been read."""

    content_start: int
    content_length: int


@dataclass(frozen=True)
class LogBlock(BlockHead):
    """One block of a log file."""

    content: memoryview
