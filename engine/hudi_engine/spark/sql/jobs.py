"""The Spark jobs of one piece of work, which another thread may cancel."""

from __future__ import annotations

import threading

from pyspark.sql import SparkSession

from hudi_engine.spark.jvm.session import is_stopped

_CANCEL_PERIOD_S = 0.3


class JobGroup:
    """A group of Spark jobs.

    Args:
        name: Spark's id of the group; it has to be unique.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.cancelled = ""
        """Why the group was cancelled; empty while it was not."""
        self._session: SparkSession | None = None
        self._closed = threading.Event()

    def enter(self, session: SparkSession, description: str) -> None:
        """Have the jobs that this thread starts from now on belong to the group.

        Args:
            description: What Spark's pages show for them.
        """
        self._session = session
        session.sparkContext.setJobGroup(self.name, description, interruptOnCancel=True)

    def cancel(self, why: str) -> None:
        """Stop the jobs that run, and those that start until the group is closed."""
        self.cancelled = why
        threading.Thread(target=self._cancel_until_closed, name=f"cancel {self.name}", daemon=True).start()

    def _cancel_until_closed(self) -> None:
        # Spark cancels only the jobs that it knows by then, and the next stage of a write starts others
        while True:
            session = self._session
            if session is not None and is_stopped(session.sparkContext):
                return
            if session is not None:
                session.sparkContext.cancelJobGroup(self.name)
            if self._closed.wait(_CANCEL_PERIOD_S):
                return

    def close(self) -> None:
        """End the work; nothing is cancelled any more."""
        self._closed.set()
        self._session = None
