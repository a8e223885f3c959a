"""Reporting a commit: only if the options say so, and without harm to the commit."""

from __future__ import annotations

import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.telemetry.callback import Commit, report_commit
from hudi_engine.format.timeline.commit_metadata import CommitMetadata

COMMIT = Commit("commit", "20260101000000000", CommitMetadata({}, {}), {})


def test_properties_are_not_read_without_metrics_or_callback():
    report_commit(resolve_options({}), lambda: pytest.fail("they were read"), "/data/t", COMMIT)


@pytest.mark.parametrize("error", [OSError("no route"), CorruptTableError("it is cut short")])
@pytest.mark.parametrize("key", ["hoodie.metrics.on", "hoodie.write.commit.callback.on"])
def test_unreadable_properties_are_a_warning(warnings, key, error):
    def fails():
        raise error

    report_commit(resolve_options({key: "true"}), fails, "/data/t", COMMIT)
    assert warnings == [f"the commit 20260101000000000 of /data/t is complete, but is not reported: {error}"]
