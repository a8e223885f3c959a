"""A window that the model gives itself, in place of the one after its checkpoint."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.spark.changes.read import Wanted, changes_between
from hudi_engine.spark.schema.fit import quoted
from hudi_engine.table.changes.gaps import check_known
from hudi_engine.table.changes.window import ALL, CHANGE_TYPE, COMMITTED, DELETE, LATEST, Span, position_of
from hudi_engine.table.state import TableState
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.hudi.changes.args import ChangesArgs
from dbt.adapters.hudi.changes.consume import untimed_deletes
from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.run import InputWindow


def check_begin(state: TableState, source: str, noted: str, begin: str | None, *, compiles: bool) -> None:
    """Refuse a window that leaves out changes which the model has not taken.

    Args:
        begin: Where the window begins, None for the first commit.
    """
    check_known(state, noted)
    if begin is None or position_of(state, begin) <= position_of(state, noted):
        return
    problem = (
        f"begin is {begin}, but the model has taken {source} up to {noted} only: what changed in between would never reach "
        "it. Leave begin out, or give an earlier one. To leave those changes out on purpose: dbt run-operation "
        f"hudi_checkpoint --args '{{table: ..., input: {source}, set: \"{begin}\"}}'"
    )
    if not compiles:
        raise DbtRuntimeError(problem)
    logger.warning("{}. A run will fail", problem)


def with_later_changes(
    session: SparkSession,
    state: TableState,
    frame: DataFrame,
    taken: InputWindow,
    noted: str,
    args: ChangesArgs,
) -> DataFrame:
    """Return the rows of a window that begins before the checkpoint, and what changed after the checkpoint.

    Net changes have no delete of a row that came after their begin, so a model that has taken such a row would keep it.
    """
    has_steps = args.mode == ALL and taken.since is not None
    if has_steps or args.mode == LATEST or taken.is_early:
        return frame
    wanted = Wanted(known=True, skip_insert_overwrite=args.skip_insert_overwrite)
    later = changes_between(session, state, resolve_options({}), Span(noted, taken.end), wanted)
    assert later is not None, "the table has columns"
    columns = _row_by(state, frame)
    later = untimed_deletes(later, noted)
    # a row of the model that no longer exists is deleted as it was when the model took it, which no ordering value outruns
    frame = _without(frame, later.where(F.col(CHANGE_TYPE) == DELETE), columns)
    return frame.unionByName(_without(later, frame, columns))


def _without(rows: DataFrame, others: DataFrame, columns: list[str]) -> DataFrame:
    """Return the changes of rows that other changes do not have."""
    known = others.select(
        *(F.col(name).alias(f"__other_{place}") for place, name in enumerate(columns))
    ).distinct()
    same = [F.col(name).eqNullSafe(F.col(f"__other_{place}")) for place, name in enumerate(columns)]
    return rows.join(known, same, "left_anti")


def _row_by(state: TableState, frame: DataFrame) -> list[str]:
    """Return the columns that identify a row: its key and partition, or all of them in a table without keys."""
    config = state.config
    if config.record_key_fields:
        fields = (*config.record_key_fields, *(each.name for each in config.partition_fields))
        return [".".join(map(quoted, name.split("."))) for name in dict.fromkeys(fields)]
    # Spark compares no maps.
    kinds = {each.name: each.dataType.simpleString() for each in frame.schema.fields}
    return [quoted(name) for name, kind in kinds.items() if name != COMMITTED and "map<" not in kind]
