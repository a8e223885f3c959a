"""The commands. A new one is a function of a `Call` in a module of this room, and a line here."""

from __future__ import annotations

from hudi_engine.cli import clustering, look, page, services
from hudi_engine.cli.command import Command

COMMANDS = (
    Command("timeline", "the instants of the timeline", look.timeline, look.limited),
    Command("commits", "what each write did", look.commits, look.limited),
    Command("files", "the files of a snapshot", look.files, look.files_arguments),
    Command("partitions", "file groups and bytes of each partition", look.partitions),
    Command("stats", "rows, bytes, small files, logs, services due", look.stats, look.stats_arguments),
    Command(
        "validate",
        "compare timeline and files, and keys on request",
        look.validation,
        look.validate_arguments,
    ),
    Command("report", "write a page about the table, for a browser", page.report, page.report_arguments),
    Command("serve-report", "show that page to a browser, up to date", page.serve, page.serve_arguments),
    Command("savepoints", "the saved commits", look.savepoints),
    Command("compact", "merge logs into base files", services.compact, services.compact_arguments),
    Command(
        "cluster", "rewrite files in a good size and order", clustering.cluster, clustering.cluster_arguments
    ),
    Command("clusterings", "the clusterings, planned and done", clustering.clusterings),
    Command("clean", "delete files nobody needs", services.clean, services.clean_arguments),
    Command("archive", "move old instants to the archive", services.archive, services.archive_arguments),
    Command("repair", "mend what validate finds", services.repair, services.repair_arguments),
    Command("savepoint", "keep a commit, or give it free", services.savepoint, services.savepoint_arguments),
    Command(
        "rollback", "undo the newest write or a pending one", services.rollback, services.instant_and_dry_run
    ),
    Command("clone", "make a table that shares the base files", services.clone, services.clone_arguments),
    Command("restore", "take the table back to a commit", services.restore, services.commit_and_dry_run),
)
