"""Telling of a commit: only where that is asked for, and without harm to the commit."""

from __future__ import annotations

import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.telemetry.announcement import Commit, announce_commit
from hudi_engine.format.timeline.commit_metadata import CommitMetadata

COMMIT = Commit("commit", "20260101000000000", CommitMetadata({}, {}), {})


def test_where_nobody_is_told_the_settings_of_the_table_are_not_read():
    announce_commit(resolve_options({}), lambda: pytest.fail("they were read"), "/data/t", COMMIT)


@pytest.mark.parametrize("error", [OSError("no route"), CorruptTableError("it is cut short")])
@pytest.mark.parametrize("key", ["hoodie.metrics.on", "hoodie.write.commit.callback.on"])
def test_settings_that_cannot_be_read_after_a_commit_are_a_warning(warnings, key, error):
    def fails():
        raise error

    announce_commit(resolve_options({key: "true"}), fails, "/data/t", COMMIT)
    assert warnings == [f"the commit 20260101000000000 of /data/t stands, but nobody is told of it: {error}"]
