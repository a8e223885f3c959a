"""Hooks that cannot work, told before a run: after the commit of its node a hook that is refused comes too late."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.clustering_options import LayoutOptions
from hudi_engine.format.config.declared.service_options import ArchiveOptions, CleanOptions
from hudi_engine.format.config.enums import IndexType
from hudi_engine.format.config.option import Option
from hudi_engine.format.config.options import OPTIONS, canonical_key
from hudi_engine.format.spelling import did_you_mean
from hudi_engine.table.repair import KINDS
from jinja2 import Environment, TemplateError, nodes

from dbt.adapters.hudi.model.engine_options import option_problems
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.model.reading import option_text

OWN_PREFIX = "hudi_"
"""How the names of this adapter's macros begin."""
_PACKAGE = "dbt_hudi"
_CHECKED = "hudi__check_arguments"
"""What macros call that are made to be called by hooks."""
_CHANGES = ("run", "schedule")
_PLANS = (*_CHANGES, "show")
_WORDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("hudi_compact", "op"): _PLANS,
    ("hudi_cluster", "op"): _PLANS,
    ("hudi_repair", "kinds"): KINDS,
}
_OPTION_OF: Mapping[tuple[str, str], Option[Any]] = {
    ("hudi_clean", "retain_commits"): CleanOptions.COMMITS_RETAINED,
    ("hudi_archive", "min_commits"): ArchiveOptions.MIN_COMMITS,
    ("hudi_archive", "max_commits"): ArchiveOptions.MAX_COMMITS,
    ("hudi_cluster", "strategy"): LayoutOptions.STRATEGY,
}
"""Arguments that are values of an option."""

_LITERALS = (nodes.Const, nodes.List, nodes.Tuple, nodes.Dict, nodes.Neg)
_SOMETIMES = (nodes.If, nodes.CondExpr, nodes.For, nodes.Macro, nodes.And, nodes.Or)
"""What is below these may never be called."""
_JINJA = Environment(extensions=["jinja2.ext.do"], autoescape=False)  # noqa: S701 - nothing is rendered


@dataclass(frozen=True)
class HookCall:
    """A call of a macro, whenever the hook runs.

    Args:
        given: The arguments that are written as values, by parameter.
        named: The parameters that get an argument, written as a value or not.
        of_this: Its table is the hook's own node.
    """

    macro: str
    given: Mapping[str, Any]
    named: frozenset[str]
    of_this: bool

    def is_one_of(self, name: str, *values: Any) -> bool:
        """Tell whether a parameter certainly has one of some values, of which the first is its default."""
        return self.given.get(name, values[0] if name not in self.named else None) in values


def hook_calls(text: str, parameters: Callable[[str], Collection[str]]) -> list[HookCall]:
    """Return the calls of this adapter's macros in a hook; none of a text that is no Jinja, as dbt tells that."""
    try:
        parsed = _JINJA.parse(text)
    except TemplateError:
        return []
    # Names that the hook gives to something of its own are no macros, and not what dbt calls so.
    own = {each.name for each in parsed.find_all(nodes.Name) if each.ctx != "load"}
    calls = []
    for call in _calls(parsed):
        assert isinstance(call.node, nodes.Name)
        if call.node.name in own:
            continue
        names = list(parameters(call.node.name))
        given = dict(zip(names, call.args, strict=False)) | {each.key: each.value for each in call.kwargs}
        table = given.get("table")
        of_this = isinstance(table, nodes.Name) and table.name == "this" and "this" not in own
        written = {name: each.as_const() for name, each in given.items() if _is_literal(each)}
        spread = call.dyn_args is not None or call.dyn_kwargs is not None
        named = frozenset(names if spread else given)
        calls.append(HookCall(call.node.name, written, named, of_this))
    return calls


@dataclass(frozen=True)
class KnownMacros:
    """The macros of a run.

    Args:
        adapters: The texts of this adapter's, by name.
        ours: Names of this adapter's that no project has put a macro of its own in the place of.
    """

    names: frozenset[str]
    adapters: Mapping[str, str]
    ours: frozenset[str]

    @classmethod
    def of(cls, macros: Iterable[Any]) -> KnownMacros:
        """Sort the macros of the project and its packages."""
        own, others = {}, set()
        for macro in macros:
            if macro.package_name == _PACKAGE:
                own[macro.name] = macro.macro_sql
            else:
                others.add(macro.name)
        return cls(frozenset(own) | others, own, frozenset(own.keys() - others))


def hook_problems(node: Any, plan: ModelPlan | None, macros: KnownMacros) -> list[str]:
    """Say which hooks of a node cannot work, a text for each.

    Args:
        plan: What it becomes; None where that is a view.
    """
    problems = []
    for when in ("pre_hook", "post_hook"):
        hooks = getattr(node.config, when, None) or ()
        for number, hook in enumerate(hooks, 1):
            where = f"{node.name}, {when.replace('_', '-')} {number} of {len(hooks)}"
            for call in hook_calls(hook.sql, lambda name: _parameters(macros.adapters.get(name, ""))):
                found = None
                if call.macro not in macros.names:
                    found = _unknown_macro(call, macros.adapters)
                elif call.macro in macros.ours:
                    found = _wrong_value(call) or _unfit(call, plan)
                if found:
                    problems.append(f"{where}: {found}. The hook is {hook.sql.strip()}")
    return problems


def _calls(below: nodes.Node) -> Iterator[nodes.Call]:
    for each in below.iter_child_nodes():
        if isinstance(each, _SOMETIMES):
            continue
        if isinstance(each, nodes.Call) and isinstance(each.node, nodes.Name):
            if each.node.name.startswith(OWN_PREFIX):
                yield each
        yield from _calls(each)


def _is_literal(value: nodes.Node) -> bool:
    below = [value, *value.find_all(nodes.Expr)]
    return all(isinstance(each, _LITERALS) for each in below)


@lru_cache(maxsize=256)
def _parameters(macro_sql: str) -> tuple[str, ...]:
    macro = _JINJA.parse(macro_sql).find(nodes.Macro)
    return () if macro is None else tuple(each.name for each in macro.args)


def _unknown_macro(call: HookCall, adapters: Mapping[str, str]) -> str:
    called = [name for name, text in adapters.items() if f"{_CHECKED}('{name}'" in text]
    meant = did_you_mean(call.macro, called).strip() or f"there are {', '.join(sorted(called))}"
    return f"there is no macro {call.macro}; {meant}"


def _wrong_value(call: HookCall) -> str | None:
    """Say which argument that is written as a value is none of the legal ones."""
    for name, value in call.given.items():
        words, option = _WORDS.get((call.macro, name)), _OPTION_OF.get((call.macro, name))
        if value is None:
            continue
        if words is not None:
            several = value if isinstance(value, (list, tuple)) else [value]
            wrong = [each for each in several if each not in words]
            if wrong:
                return f"{name} of {call.macro} is {wrong[0]!r}; legal values: {', '.join(words)}"
        if option is not None:
            try:
                option.parse(value)
            except ConfigError as error:
                return f"{error}".replace(option.key, f"{name} of {call.macro}")
    return _wrong_options(call)


def _wrong_options(call: HookCall) -> str | None:
    """Look at the options of a call one by one, as the profile's come before them, and at its limits together."""
    options = call.given.get("options")
    if options is not None and not isinstance(options, Mapping):
        return f"options of {call.macro} is {options!r}; give a mapping such as {{'hoodie.keep.max.commits': 30}}"
    problems: list[str] = []
    for key, value in (options or {}).items():
        option = OPTIONS.get(canonical_key(str(key)))
        try:
            if option is None:
                problems += option_problems({str(key): option_text(value)})
            elif value is not None:
                option.parse(value)
        except ConfigError as error:
            problems.append(str(error))
    limits = {
        option.key: call.given.get(name)
        for (macro, name), option in _OPTION_OF.items()
        if macro == call.macro
    }
    if len(limits) > 1 and None not in limits.values():
        text = "; ".join(option_problems({key: str(value) for key, value in limits.items()}))
        for (_, name), option in _OPTION_OF.items():
            text = text.replace(option.key, name)
        problems += [text] if text else []
    return "; ".join(problems) or None


def _unfit(call: HookCall, plan: ModelPlan | None) -> str | None:
    """Say why a call does not fit what its node is."""
    if not call.of_this:
        return None
    if plan is None:
        return f"{call.macro} is for Hudi tables, and the model becomes none (materialized: view); leave the hook out"
    if call.macro == "hudi_compact" and plan.table.table_type == "cow" and call.is_one_of("op", *_CHANGES):
        return (
            "hudi_compact merges log files into base files, and a copy-on-write table has no log files; leave the hook out, "
            "or set table_type: mor and build with --full-refresh"
        )
    clusters = (
        call.macro == "hudi_cluster" and call.is_one_of("op", *_CHANGES) and call.is_one_of("dry_run", False)
    )
    if clusters and plan.index.type == IndexType.BUCKET:
        return (
            "hudi_cluster does not work with a bucket index, whose rows have their places; leave the hook out"
        )
    if call.macro == "hudi_delete_partitions" and not plan.table.partition_by:
        return "hudi_delete_partitions is for tables with partitions, and the model has no partition_by; leave the hook out"
    return None
