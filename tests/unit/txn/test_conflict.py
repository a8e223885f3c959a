"""The conflict matrix: what two commits did decides whether both may stand."""

from __future__ import annotations

import pytest
from hudi_engine.errors import WriteConflictError
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.table.txn.conflict import NEW_KEYS_ONLY, Footprint, KeyScope, Kind, conflict_reason
from hudi_engine.table.txn.metadata_conflicts import merged_schema

MINE, THEIRS = "20260101000000005", "20260101000000006"
OLD_BASE = "20260101000000001"


def commit(
    operation: str,
    *,
    new: str = "",
    rewritten: str = "",
    appended: str = "",
    replaced: str = "",
    inserts: int | None = None,
    deletes: int = 0,
    base: str = OLD_BASE,
    new_keys_only: bool = False,
) -> CommitMetadata:
    """Metadata of a commit; files are given as ``partition/file id`` separated by blanks."""
    stats: dict[str, list[WriteStat]] = {}

    def add(text: str, name: str, **fields: object) -> None:
        for item in text.split():
            partition, file_id = item.split("/")
            path = f"{partition}/{name.format(file_id)}"
            stats.setdefault(partition, []).append(WriteStat(file_id=file_id, path=path, **fields))  # type: ignore[arg-type]

    add(new, "{}_0-0-0_" + MINE + ".parquet", num_inserts=1 if inserts is None else inserts)
    add(
        rewritten,
        "{}_0-0-0_" + MINE + ".parquet",
        prev_commit=base,
        num_inserts=inserts or 0,
        num_deletes=deletes,
    )
    add(appended, ".{}_" + base + ".log.1_0-0-0", prev_commit=base, log_version=1)
    ids: dict[str, list[str]] = {}
    for item in replaced.split():
        partition, file_id = item.split("/")
        ids.setdefault(partition, []).append(file_id)
    told = {NEW_KEYS_ONLY: "true"} if new_keys_only else {}
    return CommitMetadata(stats, told, operation, partition_to_replace_file_ids=ids or None)


def conflicts(mine: CommitMetadata, theirs: CommitMetadata, scope: KeyScope = KeyScope.PARTITION) -> bool:
    return conflict_reason(Footprint.of(mine), Footprint.of(theirs), THEIRS, scope) is not None


def commits(side: str) -> dict[str, CommitMetadata]:
    """One commit of each kind; new file groups have ids of their own on each side, as in life."""
    return {
        "insert_p": commit("INSERT", new=f"p/i{side}"),
        "insert_new_p": commit("INSERT", new=f"p/k{side}", new_keys_only=True),
        "upsert_p_g": commit("UPSERT", rewritten="p/g"),
        "append_p_g": commit("UPSERT", appended="p/g"),
        "upsert_q_h": commit("UPSERT", rewritten="q/h"),
        "upsert_p_new": commit("UPSERT", new=f"p/n{side}"),
        "delete_p_g": commit("DELETE", rewritten="p/g", deletes=1),
        "overwrite_p": commit("INSERT_OVERWRITE", new=f"p/o{side}", replaced="p/g"),
        "overwrite_q": commit("INSERT_OVERWRITE", new=f"q/o{side}", replaced="q/h"),
        "drop_p": commit("DELETE_PARTITION", replaced="p/g"),
        "overwrite_table": commit("INSERT_OVERWRITE_TABLE", new=f"r/o{side}", replaced="p/g q/h"),
        "cluster_p_g": commit("CLUSTER", new=f"p/c{side}", replaced="p/g"),
        "compact_q_h": commit("COMPACT", rewritten="q/h"),
        "schema": commit("ALTER_SCHEMA"),
    }


COMMITS = commits("1")
CHANGES_OF_G = {"upsert_p_g", "append_p_g", "delete_p_g"}
OVERWRITES_OF_P = {"overwrite_p", "drop_p", "overwrite_table"}
EXPECTED = {
    "insert_p": {"overwrite_table"},
    "insert_new_p": {"insert_new_p", "upsert_p_new", "delete_p_g"} | OVERWRITES_OF_P,
    "upsert_p_g": CHANGES_OF_G | OVERWRITES_OF_P | {"cluster_p_g"},
    "append_p_g": CHANGES_OF_G | OVERWRITES_OF_P | {"cluster_p_g"},
    "delete_p_g": CHANGES_OF_G | OVERWRITES_OF_P | {"cluster_p_g", "insert_new_p"},
    "upsert_q_h": {"upsert_q_h", "overwrite_q", "overwrite_table", "compact_q_h"},
    "upsert_p_new": {"upsert_p_new", "insert_new_p"} | OVERWRITES_OF_P,
    "overwrite_p": CHANGES_OF_G
    | OVERWRITES_OF_P
    | {"insert_p", "insert_new_p", "upsert_p_new", "cluster_p_g"},
    "overwrite_q": {"upsert_q_h", "overwrite_q", "overwrite_table"},
    "drop_p": CHANGES_OF_G | OVERWRITES_OF_P | {"insert_p", "insert_new_p", "upsert_p_new", "cluster_p_g"},
    "overwrite_table": set(COMMITS) - {"compact_q_h"},
    "cluster_p_g": CHANGES_OF_G | OVERWRITES_OF_P | {"cluster_p_g"},
    "compact_q_h": {"upsert_q_h", "compact_q_h"},
    "schema": set(),
}


@pytest.mark.parametrize("mine", COMMITS)
def test_each_write_conflicts_with_exactly_these_that_came_first(mine: str) -> None:
    found = {name for name, theirs in commits("2").items() if conflicts(COMMITS[mine], theirs)}
    assert found == EXPECTED[mine]


def test_appending_to_a_slice_that_a_later_compaction_closed_conflicts() -> None:
    """Log files name their slice, and nobody reads the log files of the slice before a compaction."""
    assert conflicts(commit("UPSERT", appended="q/h"), COMMITS["compact_q_h"])


def test_appending_on_top_of_a_planned_compaction_goes_beside_it() -> None:
    mine = commit("UPSERT", appended="q/h", base=THEIRS)
    assert not conflicts(mine, COMMITS["compact_q_h"])


def test_the_same_file_id_in_two_partitions_is_two_file_groups() -> None:
    assert not conflicts(commit("UPSERT", rewritten="p/g"), commit("UPSERT", rewritten="q/g"))


@pytest.mark.parametrize(
    ("scope", "theirs", "expected"),
    [
        (KeyScope.PARTITION, commit("UPSERT", new="q/n"), False),
        (KeyScope.TABLE, commit("UPSERT", new="q/n"), True),
        (KeyScope.TABLE, commit("INSERT_OVERWRITE", new="q/n"), True),
        (KeyScope.TABLE, commit("INSERT", new="q/n"), False),
        (KeyScope.TABLE, commit("INSERT", new="q/n", new_keys_only=True), True),
        (KeyScope.NONE, commit("UPSERT", new="p/n2"), False),
        (KeyScope.PARTITION, commit("UPSERT", rewritten="p/g", inserts=3), True),
        (KeyScope.PARTITION, commit("UPSERT", rewritten="p/g"), False),
    ],
)
def test_new_keys_conflict_where_a_key_must_be_unique(
    scope: KeyScope, theirs: CommitMetadata, expected: bool
) -> None:
    assert conflicts(commit("UPSERT", new="p/n"), theirs, scope) is expected


def test_an_insert_of_new_keys_and_a_delete_meet_in_any_partition_where_keys_are_unique_in_the_table() -> (
    None
):
    mine, theirs = (
        commit("INSERT", new="p/n", new_keys_only=True),
        commit("DELETE", rewritten="q/g", deletes=1),
    )
    for first, second in ((mine, theirs), (theirs, mine)):
        assert conflicts(first, second, KeyScope.TABLE)
        assert not conflicts(first, second, KeyScope.PARTITION)


def test_one_bucket_is_not_opened_twice() -> None:
    mine = commit("INSERT", new="p/00000003-aaaa-0")
    assert conflicts(mine, commit("INSERT", new="p/00000003-bbbb-0"))
    assert not conflicts(mine, commit("INSERT", new="p/00000004-bbbb-0"))
    assert not conflicts(mine, commit("INSERT", new="q/00000003-bbbb-0"))


@pytest.mark.parametrize(
    ("operation", "replaced", "compacted", "kind"),
    [
        ("UNKNOWN", None, False, Kind.UPSERT),
        ("UNKNOWN", {"p": ["g"]}, False, Kind.OVERWRITE_PARTITION),
        ("UNKNOWN", None, True, Kind.COMPACTION),
        ("SOMETHING_NEW", None, False, Kind.UPSERT),
    ],
)
def test_an_operation_without_a_known_name_is_judged_by_what_it_did(
    operation: str, replaced: dict[str, list[str]] | None, compacted: bool, kind: Kind
) -> None:
    metadata = CommitMetadata(
        operation_type=operation, compacted=compacted, partition_to_replace_file_ids=replaced
    )
    assert Footprint.of(metadata).kind is kind


def schema(*columns: str) -> str:
    fields = ",".join(f'{{"name":"{column}","type":["null","string"]}}' for column in columns)
    return f'{{"type":"record","name":"t_record","fields":[{fields}]}}'


@pytest.mark.parametrize(
    ("mine", "base", "current", "expected"),
    [
        (schema("a"), schema("a"), schema("a"), schema("a")),
        (schema("a", "b"), schema("a"), schema("a"), schema("a", "b")),
        (schema("a"), schema("a"), schema("a", "c"), schema("a", "c")),
        (schema("a", "c", "b"), schema("a"), schema("a", "c"), schema("a", "c", "b")),
        (schema("a"), None, None, schema("a")),
        (None, schema("a"), schema("a", "c"), schema("a", "c")),
        (schema("a"), None, schema("a"), schema("a")),
    ],
)
def test_a_commit_carries_the_columns_that_others_added(
    mine: str | None, base: str | None, current: str | None, expected: str
) -> None:
    assert merged_schema(MINE, mine, base, current) == expected


def test_two_writers_that_add_different_columns_conflict() -> None:
    with pytest.raises(WriteConflictError, match="column 'c' is not the same"):
        merged_schema(MINE, schema("a", "b"), schema("a"), schema("a", "c"))
