"""Which blocks of a slice's log files count, and in which order (table versions 4 to 6, 8 and 9).

Not seen are blocks of instants that are not committed or lie after the read's moment, blocks that a rollback
command takes back, and blocks that a later log compaction packed into one of its own. Source: Hudi table
format, snapshot read and log compaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import LogFile
from hudi_engine.format.filegroup.missing import GONE
from hudi_engine.format.logformat.format import BlockPlace, BlockType, HeaderKey, LogBlock
from hudi_engine.format.logformat.reader import scan_blocks
from hudi_engine.format.logformat.source import BytesSource, FileSource, LogSource
from hudi_engine.format.merge.read_context import ReadContext


@dataclass(frozen=True)
class ScannedBlock:
    """A block that was found, its content still in the file unless the file was small.

    Attributes:
        data: The whole file, None when it was too large to keep.
    """

    log_file: LogFile
    place: BlockPlace
    data: bytes | None


@dataclass(frozen=True)
class LogScan:
    """What the log files of a slice hold."""

    blocks: tuple[ScannedBlock, ...]
    total_blocks: int
    corrupt_blocks: int
    rollback_blocks: int

    @property
    def has_deletes(self) -> bool:
        """Whether one of the blocks deletes keys; data blocks may too, by the marks of their rows."""
        return any(block.place.kind is BlockType.DELETE for block in self.blocks)

    @property
    def has_partial(self) -> bool:
        """Whether one of the blocks has some columns only."""
        return any(block.place.is_partial for block in self.blocks)

    @property
    def has_whole_rows(self) -> bool:
        """Whether one of the blocks has rows with all of their columns."""
        return any(block.place.is_data and not block.place.is_partial for block in self.blocks)


def scan_slice(context: ReadContext, file_slice: FileSlice) -> LogScan:
    """Find the blocks of a slice that count."""
    files = [log for log in file_slice.log_files if not log.is_cdc]
    in_memory = sum(log.size for log in files) <= context.bytes_at_once
    found = [block for log in files for block in _file_blocks(context, log, in_memory)]
    found = _before_the_end(found, context.stops_after)
    corrupt = sum(block.place.kind is BlockType.CORRUPT for block in found)
    rollbacks = [block for block in found if block.place.is_rollback]
    targets = {block.place.target_instant_time for block in rollbacks}
    visible = [
        block
        for block in found
        if (block.place.is_data or block.place.kind is BlockType.DELETE)
        and block.place.instant_time not in targets
        and context.is_visible(block.place.instant_time)
    ]
    ordered = apply_log_compactions(visible)
    return LogScan(tuple(ordered), len(found) - corrupt, corrupt, len(rollbacks))


def load_blocks(context: ReadContext, blocks: Iterable[ScannedBlock]) -> Iterator[LogBlock]:
    """Yield blocks with their contents; a file is opened once for the blocks of it that follow each other."""
    path: str | None = None
    with ExitStack() as opened:
        for scanned in blocks:
            log, place, data = scanned.log_file, scanned.place, scanned.data
            if data is not None:
                end = place.content_start + place.content_length
                content = memoryview(data)[place.content_start : end]
            else:
                if path != log.path:
                    opened.close()
                    source = FileSource(opened.enter_context(context.storage.open_input(log.path)))
                    path = log.path
                content = memoryview(source.read(place.content_start, place.content_length))
            yield LogBlock(place.kind, place.header, place.offset, content)


def apply_log_compactions(blocks: Sequence[ScannedBlock]) -> list[ScannedBlock]:
    """Replace blocks by the block that a log compaction made of them; it stays at the place of the newest of them."""
    groups: dict[str, list[ScannedBlock]] = {}
    for block in blocks:
        groups.setdefault(block.place.instant_time, []).append(block)
    compacted: dict[str, str] = {}
    reverse: list[str] = []
    placed: set[str] = set()
    for instant in reversed(groups):
        originals = groups[instant][0].place.compacted_block_times
        if originals:
            final = compacted.get(instant, instant)
            compacted.update((original, final) for original in originals)
            continue
        final = compacted.get(instant, instant)
        if final not in placed:
            placed.add(final)
            reverse.append(final)
    # A compacted block whose originals have left the slice counts by itself.
    lost = [each for each in groups if groups[each][0].place.compacted_block_times and each not in placed]
    lost = [each for each in lost if compacted.get(each, each) == each]
    order = [*lost, *reversed(reverse)]
    return [block for instant in order for block in groups[instant]]


def _before_the_end(blocks: list[ScannedBlock], stops_after: str | None) -> list[ScannedBlock]:
    if stops_after is None:
        return blocks
    later = (
        number
        for number, block in enumerate(blocks)
        if block.place.kind is not BlockType.CORRUPT and block.place.instant_time > stops_after
    )
    return blocks[: next(later, len(blocks))]


def _file_blocks(context: ReadContext, log: LogFile, in_memory: bool) -> list[ScannedBlock]:
    try:
        if in_memory:
            data = context.storage.read(log.path)
            return [ScannedBlock(log, place, data) for place in _checked(context, log, BytesSource(data))]
        with context.storage.open_input(log.path) as file:
            return [ScannedBlock(log, place, None) for place in _checked(context, log, FileSource(file))]
    except FileNotFoundError as error:
        raise TimelineError(
            f"log file {log.path!r} {GONE}: it was cleaned or rolled back meanwhile. Read the table again"
        ) from error


def _checked(context: ReadContext, log: LogFile, source: LogSource) -> list[BlockPlace]:
    """Return the blocks of a log; what a completed commit wrote to it must be there whole."""
    name = f"log file {log.path!r} of {context.storage.base!r}"
    way_out = (
        "Restore the file from a copy, or restore the table to a commit before that one (restore); validate lists what else is "
        "damaged"
    )
    for part in log.written:
        if source.size < part.end:
            raise CorruptTableError(
                f"{name} has {source.size} bytes, and commit {part.instant} wrote it up to byte {part.end}: it was cut short "
                f"later, and the commit's rows are lost with it. {way_out}"
            )
    places = list(scan_blocks(source))
    for part in log.written:
        for place in places:
            end = place.content_start + place.content_length
            if not (place.offset < part.end and end > part.start):
                continue
            is_rows = place.is_data or place.kind is BlockType.DELETE
            if not is_rows or place.header.get(HeaderKey.INSTANT_TIME) != part.instant:
                raise CorruptTableError(
                    f"{name} is damaged at byte {place.offset}: commit {part.instant} wrote bytes {part.start} to {part.end}, and "
                    f"there is no whole block of it. {way_out}"
                )
    return places
