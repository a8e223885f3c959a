"""What the measurements should show: ratios to peers of the same run, with their limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Results = Mapping[str, Mapping[str, Mapping[str, float]]]


@dataclass(frozen=True)
class Aim:
    """One ratio and its limit.

    Args:
        system: System measured.
        step: Its step.
        peers: Systems to compare with; the fastest of them counts.
        limit: Largest good ratio.
        peer_step: Step of the peers, when it is another one.
    """

    system: str
    step: str
    peers: tuple[str, ...]
    limit: float
    peer_step: str = ""

    @property
    def text(self) -> str:
        """The aim in words."""
        other = f" ({self.peer_step})" if self.peer_step else ""
        return f"{self.system}: {self.step} against {' or '.join(self.peers)}{other}"

    def ratio(self, results: Results) -> float | None:
        """Seconds of the system over those of the fastest peer; None when one of them was not measured."""
        own = results.get(self.system, {}).get(self.step)
        step = self.peer_step or self.step
        peers = [results[name][step]["seconds"] for name in self.peers if step in results.get(name, {})]
        return own["seconds"] / min(peers) if own and peers else None


_COW, _MOR = "dbt-hudi", "dbt-hudi mor"
AIMS = (
    Aim(_COW, "load in turn", ("parquet",), 1.0),
    Aim(_COW, "tiny upsert", ("delta",), 0.06),
    Aim(_COW, "tiny upsert in turn", ("delta",), 0.06),
    Aim(_COW, "upsert 0.1 % in turn", ("delta",), 0.2),
    Aim(_COW, "upsert 0.1 % in turn", ("iceberg",), 0.25),
    Aim(_COW, "upsert 10 % in turn", ("delta",), 0.2),
    Aim(_COW, "upsert 10 % in turn", ("iceberg",), 0.25),
    Aim(_COW, "upsert 10 %", ("hudi",), 0.08),
    Aim(_MOR, "upsert 0.1 % in turn", ("iceberg mor",), 0.2),
    Aim(_MOR, "upsert 10 % in turn", ("iceberg mor",), 0.35),
    Aim(_COW, "scan in turn", ("parquet",), 1.05),
    Aim(_MOR, "scan in turn", ("iceberg mor",), 1.0),
    Aim(_MOR, "scan in turn", (_COW,), 1.5),
    Aim(_MOR, "scan after compaction", (_COW,), 1.1, "scan"),
    Aim(_MOR, "compaction", (_MOR,), 1.2, "pyarrow copy of the bytes"),
    Aim(_COW, "overwrite 1 of 10 partitions in turn", ("parquet",), 1.0),
    Aim(_COW, "insert into one partition", (_COW,), 1.5, "bulk_insert into one partition"),
    Aim(_COW, "ten dbt models", ("dbt-spark",), 0.5),
)
