"""Making a Spark session fit for the engine's Python tasks: the same Python, and the engine on the executors."""

from __future__ import annotations

import atexit
import logging
import shutil
import sys
import tempfile
import threading
import zipfile
from pathlib import Path
from weakref import WeakSet

from pyspark import SparkContext
from pyspark.sql import SparkSession

from hudi_engine.errors import ConfigError
from hudi_engine.spark.jvm.session import keep_classes

logger = logging.getLogger(__name__)

_prepared: WeakSet[SparkContext] = WeakSet()
_preparing = threading.Lock()


def prepare_session(spark: SparkSession) -> None:
    """Make Python tasks of this session able to run the engine; done once a session.

    In local mode the workers get the driver's Python. On a cluster the engine is sent to the executors, whose Python must
    have pyarrow, fastavro and numpy. Raises ConfigError for a Spark Connect session.
    """
    context = getattr(spark, "_sc", None)
    if context is None:
        raise ConfigError(
            "this is a Spark Connect session; the engine needs a classic one: make it with SparkSession.builder.master(...)"
        )
    with _preparing:
        if context in _prepared:
            return
        if context.master.startswith("local") and "cluster" not in context.master:
            context.pythonExec = sys.executable
        else:
            # Spark refuses a second file of this name, which two threads would make.
            context.addPyFile(str(_zipped_engine()))
        _share_workers(spark, context)
        keep_classes(context)
        _prepared.add(context)


def _share_workers(spark: SparkSession, context: SparkContext) -> None:
    """Let tasks over an RDD run in the Python workers of queries: Spark keeps them apart by their environment."""
    if spark.conf.get("spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled", "true") == "true":
        context.environment.setdefault("SPARK_SIMPLIFIED_TRACEBACK", "1")


def _zipped_engine() -> Path:
    """Return the package as a zip file in a folder of this process's own, which only this process writes to."""
    root = Path(__file__).resolve().parents[2]
    folder = Path(tempfile.mkdtemp(prefix="hudi_engine-"))
    # Spark serves the file to its executors as long as the session lives.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / "hudi_engine.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in sorted(each for kind in ("py", "txt", "css", "js") for each in root.rglob(f"*.{kind}")):
            archive.write(source, f"{root.name}/{source.relative_to(root).as_posix()}")
    logger.info("packed the engine for the executors: %s", target)
    return target
