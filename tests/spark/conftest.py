"""One Spark session for all tests of this folder: small, quiet, in memory."""

from __future__ import annotations

import os
import sys

import pytest

from tests.helpers.arrow_frames import rows_by_arrow
from tests.helpers.forms import forms
from tests.helpers.small_session import small_session
from tests.spark.orders import BOTH, create_orders, shapes


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A local session with two cores, UTC, two shuffle partitions and the in-memory catalog."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from hudi_engine.spark.catalog import session_conf

    warehouse = str(tmp_path_factory.mktemp("warehouse"))
    in_memory = {"spark.sql.catalogImplementation": "in-memory"}
    session = small_session(warehouse, more={**in_memory, **session_conf()})
    with pytest.MonkeyPatch.context() as patch:
        rows_by_arrow(patch)
        yield session
    session.stop()


@pytest.fixture
def database(spark, request):
    """A fresh schema, dropped afterwards."""
    name = "db_" + "".join(each if each.isalnum() else "_" for each in request.node.name.lower())[:60]
    spark.sql(f"DROP DATABASE IF EXISTS `{name}` CASCADE")
    spark.sql(f"CREATE DATABASE `{name}`")
    yield name
    spark.sql(f"DROP DATABASE IF EXISTS `{name}` CASCADE")


@pytest.fixture(params=forms(("cow", "mor"), ("mor",)))
def table_type(request):
    return request.param


@pytest.fixture(params=shapes(*BOTH))
def table(request, spark, tmp_path):
    """An empty table of orders, in each shape that the gate has."""
    return create_orders(spark, tmp_path / "orders", *request.param)


@pytest.fixture
def overtaken(monkeypatch):
    """A function that has another writer commit after this one's rows were read, before its instant begins."""
    from hudi_engine.table.txn.transaction import WriteTransaction

    def armed(action):
        begin = WriteTransaction.begin

        def late_begin(*args, **kwargs):
            monkeypatch.undo()
            action()
            return begin(*args, **kwargs)

        monkeypatch.setattr(WriteTransaction, "begin", late_begin)

    return armed


@pytest.fixture
def beaten(monkeypatch):
    """A function that has another writer commit between the begin of this one's next instants and their commits."""
    from hudi_engine.table.txn.transaction import WriteTransaction

    def armed(*actions):
        left, commit = list(actions), WriteTransaction.commit

        def late_commit(*args, **kwargs):
            if left:
                action, left[:] = left[0], left[1:]
                with monkeypatch.context() as undone:
                    undone.setattr(WriteTransaction, "commit", commit)
                    action()
            return commit(*args, **kwargs)

        monkeypatch.setattr(WriteTransaction, "commit", late_commit)

    return armed
