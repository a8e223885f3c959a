"""The option registry: types, defaults, aliases and refusals."""

from __future__ import annotations

import pickle
import re

import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.service_options import CleanOptions
from hudi_engine.format.config.declared.write_options import FileOptions, IndexOptions, WriteOptions
from hudi_engine.format.config.options import OPTIONS, hudi_keys, resolve_options
from hudi_engine.format.config.unsupported_keys import _FLINK, DEFINED_ELSEWHERE, UNSUPPORTED


def test_an_absent_option_has_hudis_default():
    options = resolve_options({})
    assert options[CleanOptions.COMMITS_RETAINED] == 10
    assert options[WriteOptions.COMBINE_BEFORE_UPSERT] is True
    assert options[IndexOptions.TYPE] is None


def test_an_older_key_means_the_newer_one():
    assert resolve_options({"hoodie.cleaner.commits.retained": 3})[CleanOptions.COMMITS_RETAINED] == 3


def test_values_are_taken_from_text_and_from_python_values():
    options = resolve_options({"hoodie.parquet.small.file.limit": "0", "hoodie.clean.automatic": False})
    assert options[FileOptions.SMALL_FILE_LIMIT] == 0
    assert options[CleanOptions.AUTOMATIC] is False
    assert options.raw["hoodie.clean.automatic"] == "false"


def test_a_choice_is_taken_in_any_case_and_spelled_as_hudi_does():
    assert resolve_options({"hoodie.index.type": "bloom"})[IndexOptions.TYPE] == "BLOOM"


def test_all_problems_come_in_one_message_with_value_and_legal_values():
    with pytest.raises(ConfigError) as caught:
        resolve_options({"hoodie.index.type": "HBASE", "hoodie.clean.commits.retained": "none"})
    assert len(caught.value.problems) == 2
    assert "'HBASE'" in str(caught.value) and "GLOBAL_SIMPLE" in str(caught.value)
    assert "'none'" in str(caught.value) and "whole number of at least 1" in str(caught.value)


def test_a_misspelled_key_is_refused_with_the_right_one():
    with pytest.raises(ConfigError, match=r"did you mean 'hoodie\.index\.type'"):
        resolve_options({"hoodie.index.typ": "SIMPLE"})


def test_a_key_that_is_not_hudis_is_refused():
    with pytest.raises(ConfigError, match=r"not a hoodie\.\* key"):
        resolve_options({"index": "SIMPLE"})


@pytest.fixture
def said(monkeypatch):
    """What is said from now on of options, in a process that has not spoken of any key yet."""
    found = []
    monkeypatch.setattr("hudi_engine.format.config.options._reported", set())
    monkeypatch.setattr(
        "hudi_engine.format.config.options.logger.warning", lambda text, *given: found.append(text % given)
    )
    return found


def test_a_key_without_effect_is_said_once(said):
    for _ in range(2):
        resolve_options({"hoodie.embed.timeline.server": "true", "hoodie.some.unheard.of": "1"})
    assert said == [
        "option hoodie.embed.timeline.server of Apache Hudi has no effect in this engine",
        "option hoodie.some.unheard.of is not known to this engine and has no effect",
    ]


def test_who_gives_a_key_without_effect_is_said(said):
    resolve_options({"hoodie.some.unheard.of": "1"}, of="incremental dev.orders")
    assert said == [
        "option hoodie.some.unheard.of is not known to this engine and has no effect, given for incremental dev.orders"
    ]


def test_a_key_that_only_says_that_something_not_done_is_off_is_not_worth_a_word(said):
    resolve_options({"hoodie.metadata.enable": "false", "hoodie.clustering.inline": False})
    assert said == []


@pytest.mark.parametrize(
    ("misspelled", "meant"),
    [
        ("hoodie.metadata.enabled", "hoodie.metadata.enable"),
        ("hoodie.write.lock.wait_time_mss", "hoodie.write.lock.wait_time_ms"),
        ("hoodie.write.lock.providor", "hoodie.write.lock.provider"),
        ("hoodie.keep.max.comits", "hoodie.keep.max.commits"),
        ("hoodie.archive.automatik", "hoodie.archive.automatic"),
        ("hoodie.clustering.inlin", "hoodie.clustering.inline"),
        ("hoodie.datasource.hive_sync.enabled", "hoodie.datasource.hive_sync.enable"),
        ("hoodie.client.heartbeat.interval_in_mss", "hoodie.client.heartbeat.interval_in_ms"),
        ("hoodie.table.service.enabled", "hoodie.table.services.enabled"),
    ],
)
def test_a_misspelled_key_is_refused_under_every_prefix(misspelled, meant):
    with pytest.raises(ConfigError, match=f"did you mean '{re.escape(meant)}'"):
        resolve_options({misspelled: "1"})


def test_options_can_be_shipped_to_executors():
    options = resolve_options({"hoodie.index.type": "BLOOM"})
    assert pickle.loads(pickle.dumps(options))[IndexOptions.TYPE] == "BLOOM"  # noqa: S301 - our own bytes


@pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda option: option.key)
def test_every_default_is_legal_by_its_own_rule(option):
    if option.default is not None:
        assert option.parse(option.default) == option.default


@pytest.mark.parametrize(
    ("key", "value", "advice"),
    [
        ("hoodie.datasource.query.type", "incremental", "changes()"),
        ("hoodie.datasource.read.begin.instanttime", "2026", "call changes"),
        (
            "hoodie.write.lock.provider",
            "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
            "file system lock provider",
        ),
        ("hoodie.write.lock.filesystem.path", "/locks/orders", "without a path of its own"),
        ("hoodie.write.lock.zookeeper.url", "zk:2181", "the file .hoodie/lock"),
        ("hoodie.datasource.merge.type", "skip_merge", "call skip_merge()"),
        ("hoodie.auto.commit", "false", "each write commits once"),
        ("hoodie.merge.allow.duplicate.on.inserts", "false", "insert.drop.duplicates"),
    ],
)
def test_a_key_that_asks_for_what_is_not_done_is_refused(key, value, advice):
    with pytest.raises(ConfigError) as caught:
        resolve_options({key: value})
    message = str(caught.value)
    assert re.search(f"{re.escape(key)} is (set|{value!r}); legal values: ", message)
    assert advice.lower() in message.lower()


def test_a_key_of_something_not_done_may_say_that_it_is_off():
    resolve_options(
        {
            "hoodie.clustering.inline": False,
            "hoodie.datasource.query.type": "snapshot",
            "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
        }
    )


RETAINED, FORMERLY = "hoodie.clean.commits.retained", "hoodie.cleaner.commits.retained"


@pytest.mark.parametrize(("older", "newer"), [(RETAINED, FORMERLY), (FORMERLY, RETAINED)])
def test_what_is_laid_over_options_wins_in_whatever_spelling(older, newer):
    options = resolve_options({older: 10, "hoodie.index.type": "BLOOM"})
    assert options.merged({newer: 2})[CleanOptions.COMMITS_RETAINED] == 2
    assert options.merged({newer: 2}).merged({older: 20})[CleanOptions.COMMITS_RETAINED] == 20
    assert options.merged({newer: 2})[IndexOptions.TYPE] == "BLOOM"


def test_two_spellings_of_one_option_may_not_differ():
    assert resolve_options({RETAINED: "2", FORMERLY: 2})[CleanOptions.COMMITS_RETAINED] == 2
    with pytest.raises(ConfigError, match=f"{RETAINED} and {FORMERLY} are one option"):
        resolve_options({FORMERLY: 2, RETAINED: 3})


def test_the_value_of_an_option_of_which_none_is_legal_is_not_repeated():
    key = "hoodie.datasource.hive_sync.jdbcurl"
    with pytest.raises(ConfigError, match=f"{key} is set; legal values: none. The entries") as caught:
        resolve_options({key: "jdbc:hive2://host/db;user=me;password=hunter2"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "counterpart"),
    [
        ("write.tasks", "use hoodie.upsert.shuffle.parallelism"),
        ("compaction.delta_commits", "use hoodie.compact.inline.max.delta.commits"),
        ("read.streaming.start-commit", "HudiTable.changes(start, end)"),
        ("write.batch.size.MB", "use hoodie.parquet.block.size"),
        ("metadata.enabled", "use hoodie.metadata.enable"),
        ("write.sort.memory", "Spark's sort spills by itself"),
    ],
)
def test_an_option_of_flink_is_refused_with_its_counterpart(key, counterpart):
    with pytest.raises(ConfigError, match="of Apache Hudi's Flink connector") as refused:
        resolve_options({key: "1"})
    assert counterpart in str(refused.value)


def test_counterparts_of_flinks_options_are_options():
    named = {key for text in _FLINK.values() for key in re.findall(r"hoodie\.[\w.]*\w", text)}
    assert named - {*OPTIONS, *DEFINED_ELSEWHERE, *UNSUPPORTED} == set()
    assert not set(_FLINK) & {*OPTIONS, *hudi_keys()}
