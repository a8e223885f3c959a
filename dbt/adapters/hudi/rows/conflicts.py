"""A model whose write another writer overtook is evaluated again, as often as its config says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hudi_engine.errors import ConsumedMeanwhileError, PlannedMeanwhileError, WriteConflictError
from hudi_engine.table.txn.retry import retried

Result = TypeVar("Result")


def evaluated_again(write: Callable[[], Result], evaluate: Callable[[], object], retries: int) -> Result:
    """Write a model's rows; after each conflict evaluate its query anew, as its rows may come from the table.

    Args:
        retries: How often (``conflict_retries``).

    Raises:
        WriteConflictError: The last attempt was overtaken too.
        ConsumedMeanwhileError: Another run has consumed the model's inputs, whose windows were fixed when this run started.
        PlannedMeanwhileError: A clustering that nobody runs has planned what the model changes.
    """
    tried = False

    def attempt() -> Result:
        nonlocal tried
        if tried:
            evaluate()
        tried = True
        return write()

    try:
        return retried(attempt, retries)
    except ConsumedMeanwhileError as error:
        raise ConsumedMeanwhileError(
            f"{error}\nAnother run of the model has taken changes of its inputs since this one started; the next run takes what "
            "comes after them"
        ) from error
    except WriteConflictError as error:
        if retries or isinstance(error, PlannedMeanwhileError):
            raise
        raise WriteConflictError(
            f"{error}\nWith conflict_retries in its config a model is evaluated again by itself, that often"
        ) from error
