"""Python models run in this process, on the connection's session."""

from __future__ import annotations

import sys
import traceback
import types
import uuid
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.errors import ConfigError, SchemaError
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.write.rows.frames import as_frame
from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

_pickling: Any = cloudpickle


def run_python_model(session: SparkSession, name: str, code: str) -> DataFrame:
    """Execute a compiled Python model.

    Args:
        code: The compiled code: the user's ``model`` function and dbt's helpers.
    """
    module = types.ModuleType(f"dbt_hudi_model_{uuid.uuid4().hex}")
    module.__dict__["spark"] = session
    sys.modules[module.__name__] = module  # classes defined by the model must be importable for pickling
    # workers have no such module, and so are sent what runs there as a whole
    _pickling.register_pickle_by_value(module)
    try:
        exec(compile(code, f"<python model {name}>", "exec"), module.__dict__)  # noqa: S102
        helper = module.__dict__["dbtObj"](session.table)
        return _frame(session, name, module.__dict__["model"](helper, session), str(helper.this))
    except DbtRuntimeError:
        raise
    except Exception as error:
        raise DbtRuntimeError(f"Python model {name} failed:\n{traceback.format_exc()}") from error
    finally:
        _pickling.unregister_pickle_by_value(module)
        del sys.modules[module.__name__]


def _frame(session: SparkSession, name: str, result: Any, this: str) -> DataFrame:
    # a model that returns such a frame has imported pandas; nothing else of a run needs it
    pandas: Any = sys.modules.get("pandas")
    if pandas is not None and isinstance(result, pandas.DataFrame):
        return session.createDataFrame(result) if len(result) else _without_rows(session, result, this)
    if hasattr(result, "to_spark"):
        result = result.to_spark()
    try:
        return as_frame(session, result)
    except (ConfigError, SchemaError) as error:
        raise DbtRuntimeError(f"Python model {name} returned {_kind(result)}: {error}") from error


def _without_rows(session: SparkSession, result: Any, this: str) -> DataFrame:
    """Return a pandas frame without rows, whose types Spark cannot infer.

    Columns of pandas' type `object` have none there either: they get that of the model's table, or text. So do those that
    pandas calls floats, as it does with columns without a type.
    """
    typed = as_frame(session, result)
    certain = {
        field.name
        for field in typed.schema.fields
        if not isinstance(field.dataType, (T.FloatType, T.DoubleType))
    }
    try:
        stored = {each.name.lower(): each.dataType for each in session.table(this).schema.fields}
    except AnalysisException:
        stored = {}
    columns = [
        F.col(quoted(column))
        if column in certain or (column in typed.columns and column.lower() not in stored)
        else F.lit(None).cast(stored.get(column.lower(), T.StringType())).alias(column)
        for column in map(str, result.columns)
    ]
    return typed.select(*columns)


def _kind(result: Any) -> str:
    """Name the type of a result, with the library that it comes from."""
    kind = type(result)
    return (
        kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__.split('.')[0]}.{kind.__name__}"
    )
