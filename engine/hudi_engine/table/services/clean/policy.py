"""What a clean keeps (Hudi's cleaning policies).

The newest slice of every live file group stays under each policy, and so do the files of savepoints and of
plans that have not run. A policy that retains instants keeps, besides everything from the oldest retained
instant on, the slice that was current just before it: whoever reads as of that instant needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta, tzinfo

from hudi_engine.format.config.declared.service_options import CleanOptions
from hudi_engine.format.config.enums import CleanPolicy
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.clock import format_instant, parse_instant_time
from hudi_engine.format.timeline.instant import COMPLETED_ACTION, WRITE_ACTIONS
from hudi_engine.table.services.clean.plan import RetainedInstant


@dataclass(frozen=True)
class Policy:
    """A cleaning policy with its figure.

    Args:
        amount: Commits, file versions or hours to keep.
    """

    name: CleanPolicy
    amount: int

    @classmethod
    def from_options(cls, options: Options) -> Policy:
        """Take ``hoodie.clean.policy`` and the figure that belongs to it."""
        name = options[CleanOptions.POLICY]
        amount = {
            CleanPolicy.KEEP_LATEST_COMMITS: CleanOptions.COMMITS_RETAINED,
            CleanPolicy.KEEP_LATEST_FILE_VERSIONS: CleanOptions.FILE_VERSIONS_RETAINED,
            CleanPolicy.KEEP_LATEST_BY_HOURS: CleanOptions.HOURS_RETAINED,
        }[name]
        return cls(name, options[amount])

    @property
    def retains_instants(self) -> bool:
        """Whether the policy says which instants stay readable."""
        return self.name != CleanPolicy.KEEP_LATEST_FILE_VERSIONS

    def earliest_retained(
        self, timeline: Timeline, now: str, needed: str | None = None
    ) -> RetainedInstant | None:
        """Return the oldest instant to retain, None when all of them are retained, or none by this policy.

        It is never later than a write or service that is still pending: what completes later must not have
        missed a clean.

        Args:
            needed: Oldest instant after which a registered reader needs the changes, None for none.
        """
        writes = timeline.completed_writes
        if self.name == CleanPolicy.KEEP_LATEST_COMMITS:
            if len(writes) <= self.amount:
                return None
            chosen = writes[len(writes) - self.amount]
        elif self.name == CleanPolicy.KEEP_LATEST_BY_HOURS:
            limit = self._limit(now, timeline.zone)
            later = [write for write in writes if write.requested_time >= limit]
            if not writes or (later and later[0] is writes[0]):
                return None
            chosen = later[0] if later else writes[-1]
        else:
            return None
        pending = [
            instant
            for instant in timeline.pending
            if instant.action in WRITE_ACTIONS or instant.action in COMPLETED_ACTION
        ]
        if pending and pending[0].requested_time < chosen.requested_time:
            before = [write for write in writes if write.requested_time < pending[0].requested_time]
            if not before:
                return None
            chosen = before[-1]
        if needed is not None and needed < chosen.requested_time:
            before = [write for write in writes if write.requested_time <= needed]
            if not before:
                return None
            chosen = before[-1]
        return RetainedInstant(chosen.requested_time, chosen.action)

    def _limit(self, now: str, zone: tzinfo | None) -> str:
        """Return the instant before which hours are no longer retained, ``""`` for hours that reach behind all dates."""
        try:
            return format_instant(parse_instant_time(now, zone) - timedelta(hours=self.amount), zone)
        except OverflowError:
            return ""

    def obsolete(
        self,
        view: FileSystemView,
        partition: str,
        retained: RetainedInstant | None,
        needed: str | None = None,
    ) -> Iterator[FileSlice]:
        """Yield the slices of a partition that the policy gives up.

        Args:
            needed: What a policy that retains no instants must spare, as there.
        """
        replaced = view.replaced_groups
        for file_id, slices in view.all_slices(partition).items():
            replaced_at = replaced.get((partition, file_id))
            if replaced_at is not None:
                if (not self.retains_instants and (needed is None or replaced_at < needed)) or (
                    retained is not None and replaced_at < retained.time
                ):
                    yield from slices
                    continue
            if self.retains_instants:
                if retained is not None:
                    yield from _older(slices, retained.time)
            else:
                older = slices if needed is None else _older(slices, needed)
                yield from (each for each in slices[self.amount :] if each in older)


def _older(slices: Sequence[FileSlice], retained: str) -> list[FileSlice]:
    """Return the slices behind the newest one that is older than the retained instant."""
    before = [each for each in slices if each.base_instant < retained]
    return [each for each in before[1:] if each is not slices[0]]
