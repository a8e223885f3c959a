"""How rows are ordered: columns and strategy, and the order itself for rows in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.clustering_options import ClusteringOptions, LayoutOptions
from hudi_engine.format.config.enums import CurveBuild, LayoutStrategy
from hudi_engine.format.config.option import Option
from hudi_engine.format.config.options import Options
from hudi_engine.format.layout.grid import fit_grid, is_orderable, sort_by_place
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.schema.any_case import spellings

SORT_COLUMNS = ClusteringOptions.SORT_COLUMNS
STRATEGY = LayoutOptions.STRATEGY


@dataclass(frozen=True)
class RowLayout:
    """An order of rows; picklable.

    Args:
        sample_rows: Rows that are looked at to lay the curve where not all are at hand.
    """

    columns: tuple[str, ...] = ()
    strategy: LayoutStrategy = LayoutStrategy.LINEAR
    build: CurveBuild = CurveBuild.DIRECT
    sample_rows: int = 200_000

    @classmethod
    def from_options(
        cls,
        options: Options,
        params: Mapping[str, str] | None = None,
        *,
        columns: Option[str | None] = SORT_COLUMNS,
    ) -> RowLayout:
        """Take the layout from what a plan states, else from options."""
        names = options[columns] if params is None else params.get(columns.key)
        named = (params or {}).get(STRATEGY.key)
        if named is None or options.is_set(STRATEGY):
            strategy = options[STRATEGY]
        else:
            strategy = LayoutStrategy(str(STRATEGY.parse(named)))
        return cls(
            split_names(names),
            strategy,
            options[LayoutOptions.CURVE_BUILD],
            options[LayoutOptions.CURVE_SAMPLE],
        )

    @property
    def is_curve(self) -> bool:
        """Whether rows follow a curve; through one column it is the linear order."""
        return self.strategy is not LayoutStrategy.LINEAR and len(self.columns) > 1

    def fitted(self, schema: pa.Schema, what: str = SORT_COLUMNS.key) -> RowLayout:
        """Return the layout with the columns as the table spells them."""
        spelled = spellings(reversed(schema.names))
        found = []
        for name in self.columns:
            known = name if name in schema.names else spelled.get(name)
            if known is None:
                raise ConfigError(
                    f"{what} names {name!r}; the table's columns are: {', '.join(schema.names)}"
                )
            if not is_orderable(schema.field(known).type):
                raise ConfigError(
                    f"{what} names {name!r} of type {schema.field(known).type}, which has no order; name columns that are "
                    "no list, map or struct"
                )
            if known in found:
                raise ConfigError(f"{what} names {name!r} twice; name it once")
            found.append(known)
        return RowLayout(tuple(found), self.strategy, self.build, self.sample_rows)

    def sort(self, rows: pa.Table) -> pa.Table:
        """Return rows in order; nulls come last, on a curve first."""
        if not self.columns or rows.num_rows < 2:
            return rows
        if self.is_curve:
            places = fit_grid(rows, self.columns, self.strategy, self.build).places(rows)
            return taken(rows, sort_by_place(places))
        keys = [(name, "ascending") for name in self.columns]
        return taken(rows, pc.sort_indices(rows, sort_keys=keys))


def split_names(text: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return names written with commas between."""
    parts = text.split(",") if isinstance(text, str) else (text or ())
    return tuple(part.strip() for part in parts if part.strip())
