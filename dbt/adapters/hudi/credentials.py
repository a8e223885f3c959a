"""The profile of dbt-hudi: everything but ``schema`` has a default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dbt.adapters.spark.connections import SparkConnectionMethod, SparkCredentials
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.spelling import nearest
from hudi_engine.format.storage.given import public_location
from hudi_engine.format.storage.redact import shown_settings

from dbt.adapters.hudi.logs import is_first, warn
from dbt.adapters.hudi.model.engine_options import is_of_one_table, option_problems
from dbt.adapters.hudi.model.reading import absolute_location, location_problems, option_text

CATALOGS = ("directory", "hive")
DEFAULT_WAREHOUSE = "warehouse"
ANSI = "spark.sql.ansi.enabled"
_PROBLEMS = "The profile for dbt-hudi cannot be used:\n"
_TEXT = ((str,), "text")
# Keys that are read, with the types they may have.
_KEYS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "schema": _TEXT,
    "method": _TEXT,
    "location_root": _TEXT,
    "catalog": _TEXT,
    "master": _TEXT,
    "app_name": _TEXT,
    "user": _TEXT,
    "log_level": _TEXT,
    "spark_conf": ((Mapping,), "a mapping of Spark settings, such as {spark.driver.memory: 4g}"),
    "server_side_parameters": ((Mapping,), "a mapping of Spark settings, such as {spark.driver.memory: 4g}"),
    "options": (
        (Mapping,),
        "a mapping of hoodie.* options, such as {hoodie.write.lock.wait_time_ms: 120000}",
    ),
    "storage_options": ((Mapping,), "a mapping of settings of the store, such as {region: eu-west-1}"),
    "isolate_sessions": ((bool,), "true or false"),
    "ansi": ((bool,), "true or false"),
    "class_archive": ((bool,), "true or false"),
}
# Keys dbt reads before the profile comes here, and those it adds.
_OF_DBT = ("type", "threads", "database")
# dbt-spark requires a host with every method and documents this one for sessions.
_NO_HOST = ("NA", "localhost")
_BUNDLE = ("org.apache.spark.sql.hudi.", "org.apache.hudi.", "org.apache.spark.HoodieSpark")
"""How names of classes begin that Hudi's quick start has people set: extensions, catalog, registrator of the serializer."""
_LOG_LEVELS = tuple("OFF FATAL ERROR WARN INFO DEBUG TRACE ALL".split())


def _warn_unused(data: Mapping[str, Any]) -> None:
    """Warn of each key that nothing uses, once in a command: dbt reads a profile more than once."""
    defaults = {item.name: item.default for item in fields(SparkCredentials)}
    of_others = []
    for key, value in data.items():
        # dbt also checks what it has read, with the defaults of all keys
        if key in _KEYS or key in _OF_DBT or value is None or value == defaults.get(key):
            continue
        if (key == "host" and value in _NO_HOST) or not is_first(f"key {key} of the profile"):
            continue
        near = nearest(key, (*_KEYS, *_OF_DBT))
        if near is None:
            of_others.append(key)
        else:
            warn(f"{key}, a key of the profile, is not used: did you mean {near!r}?")
    if of_others:
        warn(
            f"not used of the profile: {', '.join(of_others)}. dbt-hudi runs Spark in this process, so that it needs no place "
            "to connect to; spark_conf takes Spark's settings"
        )


def _without_bundle(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return Spark's settings without the classes of the Hudi bundle, which is not there, with one warning in a command."""
    kept, left = {}, []
    for key, value in given.items():
        names = [each.strip() for each in str(value).split(",")]
        others = [each for each in names if not each.startswith(_BUNDLE)]
        if len(others) == len(names):
            kept[key] = value
            continue
        left.append(key)
        if others:
            kept[key] = ",".join(others)
    if left and is_first("classes of the Hudi bundle"):
        warn(
            f"not used of the profile: {', '.join(left)}, as far as classes of the Hudi bundle are named there. dbt-hudi works "
            "without the bundle; leave them out"
        )
    return kept


@dataclass
class HudiCredentials(SparkCredentials):
    """Keys of the profile; docs/install.md describes them.

    Args:
        location_root: Folder or URI; a relative path counts from ``dbt_project.yml``.
        isolate_sessions: None means true when dbt starts Spark, false when it uses a session that was already running.
        ansi: None means what spark_conf has, else true, as Spark 4 has it.
    """

    method: SparkConnectionMethod = SparkConnectionMethod.SESSION
    host: str | None = "localhost"
    location_root: str = DEFAULT_WAREHOUSE
    catalog: str = CATALOGS[0]
    spark_conf: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    storage_options: dict[str, Any] = field(default_factory=dict, repr=False)
    master: str | None = None
    app_name: str = "dbt-hudi"
    isolate_sessions: bool | None = None
    log_level: str = "ERROR"
    ansi: bool | None = None
    class_archive: bool = True

    @classmethod
    def validate(cls, data: Any) -> None:
        """Refuse values of a wrong type, and warn of unused keys; raises DbtRuntimeError."""
        problems = [
            f"{key} is {_shown(data[key], kinds)}; give {legal}"
            for key, (kinds, legal) in _KEYS.items()
            if data.get(key) is not None and not isinstance(data[key], kinds)
        ]
        if problems:
            raise DbtRuntimeError(_PROBLEMS + "\n".join(f"  * {problem}" for problem in problems))
        _warn_unused(data)
        super().validate(data)

    def __post_init__(self) -> None:
        problems = self._problems()
        if problems:
            raise DbtRuntimeError(_PROBLEMS + "\n".join(f"  * {problem}" for problem in problems))
        given = _without_bundle({**self.server_side_parameters, **self.spark_conf})
        super().__post_init__()
        self.spark_conf = _texts(given)
        if self.ansi is None:
            self.ansi = _is_true(given.get(ANSI, True))
        # From here on nothing that is shown has the credentials of a URI.
        self.location_root = public_location(self.location_root)
        self.storage_options = _texts(self.storage_options)
        self.server_side_parameters = dict(self.spark_conf)

    def _problems(self) -> list[str]:
        """Return what is wrong with the profile, all at once; later keys are read only when these make sense."""
        self.options = _texts(self.options)
        problems = [f"options: {problem}" for problem in option_problems(self.options)]
        problems += [
            f"options has {key}, which is not about writes and services of all tables; set it in dbt_project.yml: models: "
            f"+options: {{{key}: ...}}"
            for key in self.options
            if is_of_one_table(key)
        ]
        if self.storage_options and "://" not in self.location_root:
            problems.append(
                f"storage_options has {', '.join(self.storage_options)}, and location_root {self.location_root!r} is a local "
                "folder; leave them out, or name a URI such as s3a://bucket/warehouse"
            )
        if str(self.method) != SparkConnectionMethod.SESSION.value:
            problems.append(
                f"method is {str(self.method)!r}; dbt-hudi runs on Spark in this process, so the only legal value is "
                "'session' (leave the key out)"
            )
        if self.catalog not in CATALOGS:
            problems.append(f"catalog is {self.catalog!r}; legal values: {', '.join(CATALOGS)}")
        if str(self.log_level).upper() not in _LOG_LEVELS:
            problems.append(f"log_level is {self.log_level!r}; legal values: {', '.join(_LOG_LEVELS)}")
        problems += self._problems_of_spark()
        problems += location_problems(self.location_root)
        if not self.schema:
            problems.append("schema is missing; name the schema dbt builds in")
        return problems

    def _problems_of_spark(self) -> list[str]:
        """Return what Spark would refuse as it starts, in words that name the key of the profile."""
        given = {**self.server_side_parameters, **self.spark_conf}
        problems = [
            f"spark_conf has {key}: {_shown(value)}; give one text, number, true or false"
            for key, value in given.items()
            if value is None or isinstance(value, (Mapping, list))
        ]
        if self.ansi is not None and ANSI in given and _is_true(given[ANSI]) != self.ansi:
            problems.append(
                f"ansi is {option_text(self.ansi)} but spark_conf has {ANSI}: {option_text(given[ANSI])}; give one of them"
            )
        return problems

    @property
    def type(self) -> str:
        return "hudi"

    @property
    def unique_field(self) -> str:
        return self.location_root

    def _connection_keys(self) -> tuple[str, ...]:
        shown = "method", "schema", "location_root", "catalog", "app_name", "ansi", "spark_conf"
        return (*shown, "user") if self.user else shown

    def connection_info(self, *, with_aliases: bool = False) -> Iterable[tuple[str, Any]]:
        """Yield what ``dbt debug`` prints: the profile, what tables are built with, and the effective ``hoodie.*`` options.

        With aliases it is what a project finds in ``target``. It has a ``database`` too, which is None: packages give
        it to their sources unless ``target.type`` is ``spark``, and dbt refuses a source whose database is undefined.
        """
        import hudi_engine
        import pyspark

        for key, value in super().connection_info(with_aliases=with_aliases):
            yield key, shown_settings(self.spark_conf) if key == "spark_conf" else value
        if with_aliases:
            yield "database", None
        yield "master", self.master or self.spark_conf.get("spark.master") or "local[*] (Spark's default)"
        yield "engine", f"hudi_engine {hudi_engine.__version__}"
        yield "spark", f"PySpark {pyspark.__version__}"
        yield "java", _java()
        yield "options", shown_settings(self.options) or "none: the defaults of docs/configuration.md"

    def resolve_location_root(self, project_root: str | None) -> str:
        """Make ``location_root`` absolute, in place.

        Args:
            project_root: Folder of ``dbt_project.yml``; the working directory when None.
        """
        self.location_root = absolute_location(self.location_root, project_root)
        return self.location_root


def _shown(value: object, legal: tuple[type, ...] = ()) -> str:
    """Return a value of a wrong type for a message; of one that may hold a secret only what it is."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    return "text" if isinstance(value, str) and Mapping in legal else repr(value)


def _texts(given: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): option_text(value) for key, value in given.items()}


def _java() -> str:
    from dbt.adapters.hudi.spark.java import check_java

    try:
        path, version = check_java()
    except DbtRuntimeError as error:
        return str(error.msg)
    return f"{version} at {path}"


def _is_true(value: object) -> bool:
    return option_text(value).strip().lower() == "true"
