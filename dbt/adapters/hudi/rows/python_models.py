"""Python models run in this process, on the connection's session."""

from __future__ import annotations

import sys
import traceback
import types
import uuid
from typing import Any

import pandas as pd
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame, SparkSession


def run_python_model(session: SparkSession, name: str, code: str) -> DataFrame:
    """Execute a compiled Python model.

    Args:
        session: The session handed to the model.
        name: Name of the model, for messages.
        code: The compiled code: the user's ``model`` function and dbt's helpers.

    Returns:
        What the model returned, as a Spark DataFrame.

    Raises:
        DbtRuntimeError: with the model's own traceback, or naming the type it returned.
    """
    module = types.ModuleType(f"dbt_hudi_model_{uuid.uuid4().hex}")
    module.__dict__["spark"] = session
    sys.modules[module.__name__] = module  # classes defined by the model must be importable for pickling
    try:
        exec(compile(code, f"<python model {name}>", "exec"), module.__dict__)  # noqa: S102
        helper = module.__dict__["dbtObj"](session.table)
        return _frame(session, name, module.__dict__["model"](helper, session))
    except DbtRuntimeError:
        raise
    except Exception as error:
        raise DbtRuntimeError(f"Python model {name} failed:\n{traceback.format_exc()}") from error
    finally:
        del sys.modules[module.__name__]


def _frame(session: SparkSession, name: str, result: Any) -> DataFrame:
    if isinstance(result, DataFrame):
        return result
    if isinstance(result, pd.DataFrame):
        return session.createDataFrame(result)
    if hasattr(result, "to_spark"):
        converted: DataFrame = result.to_spark()
        return converted
    raise DbtRuntimeError(
        f"Python model {name} returned {type(result).__name__}; return a Spark, pandas or pandas-on-Spark DataFrame"
    )
