"""The tests a model wants before its commit: found before anything runs, and compiled by dbt as for `dbt test`."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.audit import AuditConfig, AuditTest, PlannedTest


def audit_tests(wanted: AuditConfig, unique_id: str, manifest: Any, config: Any) -> tuple[PlannedTest, ...]:
    """Find the tests that a model asks for."""
    if not wanted:
        return ()
    every = [node for node in manifest.nodes.values() if str(node.resource_type) == "test"]
    about = [node for node in every if unique_id in node.depends_on.nodes]
    chosen = {node.unique_id: node for node in about if wanted.everything and _is_attached(node, unique_id)}
    for name in wanted.named:
        found = [node for node in about if name in _names(node)]
        if not found:
            known = ", ".join(sorted(node.name for node in about)) or "none"
            raise DbtRuntimeError(
                f"pre_commit_tests of {unique_id} names {name!r}, but no test of the model has this name; nothing was run. Its "
                f"tests: {known}"
            )
        chosen.update({node.unique_id: node for node in found})
    if wanted.everything and not chosen:
        logger.warning(
            "audit is on for {}, but no test is attached to it: nothing looks at its rows", unique_id
        )
    return (
        *(
            PlannedTest(node.name, partial(_compiled, node, unique_id, manifest, config))
            for node in chosen.values()
        ),
        *(PlannedTest(name, partial(AuditTest, name, sql)) for name, sql in wanted.written),
    )


def warnings_fail() -> bool:
    """Whether dbt takes a test that warns for one that fails: `--warn-error`, or its options name results of tests."""
    from dbt.flags import get_flags

    flags: Any = get_flags()  # type: ignore[no-untyped-call]
    return bool(flags.WARN_ERROR or flags.WARN_ERROR_OPTIONS.includes("LogTestResult"))


def _is_attached(node: Any, unique_id: str) -> bool:
    """Whether a test is a node's: a generic one where it is written, a singular one where it reads no other node."""
    attached = getattr(node, "attached_node", None)
    if getattr(node, "test_metadata", None) is not None:
        return bool(attached == unique_id)
    return set(node.depends_on.nodes) == {unique_id}


def _names(node: Any) -> set[str]:
    kind = getattr(node, "test_metadata", None)
    return {node.name, node.alias, node.unique_id, *(() if kind is None else (kind.name,))}


def _compiled(node: Any, unique_id: str, manifest: Any, config: Any) -> AuditTest:
    # dbt runs, so its compiler is there; whoever only reads the adapter's rooms does not wait for it
    from dbt.compilation import Compiler

    with _not_deferred(manifest.nodes[unique_id]):
        done: Any = Compiler(config).compile_node(copy.deepcopy(node), manifest, write=False)
    settings = node.config
    sql = str(done.compiled_code)
    if settings.limit is not None:
        sql = f"select * from (\n{sql}\n) dbt_hudi_failing\nlimit {int(settings.limit)}"
    return AuditTest(
        node.name,
        sql,
        settings.fail_calc,
        settings.warn_if,
        settings.error_if,
        str(settings.severity).lower(),
        (node.schema, node.alias) if node.should_store_failures else None,
    )


@contextmanager
def _not_deferred(audited: Any) -> Iterator[None]:
    """Let refs to a node mean the table that it builds: before the first one is there, dbt takes what it defers to for it.

    No other node needs it meanwhile: those that refer to the node run after it.
    """
    deferred = getattr(audited, "defer_relation", None)
    if deferred is None:
        yield
        return
    audited.defer_relation = None
    try:
        yield
    finally:
        audited.defer_relation = deferred
