"""What clients may not send without ``--allow-code``: whatever runs code of theirs, or loads a class that they name.

What a plan may hold is a list of names: the kinds of plans, expressions and commands of a later Spark are rejected until they are
on it. A guard for clients that are trusted with the tables, and no sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from google.protobuf.message import Message
from pyspark.sql.connect import proto

from hudi_engine.errors import StatementError
from hudi_engine.format.storage.redact import HIDDEN
from hudi_engine.server.code_loading import CALLS_JAVA, WITHOUT, check_no_code, check_setting
from hudi_engine.server.connect.messages import messages

# What has an effect on no more than the streaming query itself.
_STREAMS = frozenset(("rate", "console", "memory", "noop"))
_ARTIFACTS = "cache/"
# As spark.redaction.regex.
_SECRET = re.compile("secret|password|token|access[.]?key", re.IGNORECASE)
_ALLOWED: Mapping[type[Message], frozenset[str]] = {
    proto.Command: frozenset(
        """
        write_operation create_dataframe_view write_operation_v2 sql_command write_stream_operation_start
        streaming_query_command get_resources_command streaming_query_manager_command checkpoint_command
        remove_cached_remote_relation_command merge_into_table_command
        """.split()
    ),
    proto.Relation: frozenset(
        """
        read project filter join set_op sort limit aggregate sql local_relation sample offset deduplicate range
        subquery_alias repartition to_df with_columns_renamed show_string drop tail with_columns hint unpivot to_schema
        repartition_by_expression collect_metrics parse with_watermark html_string cached_local_relation
        cached_remote_relation as_of_join with_relations transpose unresolved_table_valued_function lateral_join
        chunked_cached_local_relation relation_changes nearest_by_join zip fill_na drop_na replace summary crosstab
        describe cov corr approx_quantile freq_items sample_by catalog
        """.split()
    ),
    proto.Expression: frozenset(
        """
        literal unresolved_attribute unresolved_function expression_string unresolved_star alias cast unresolved_regex
        sort_order lambda_function window unresolved_extract_value update_fields unresolved_named_lambda_variable
        call_function named_argument_expression merge_action subquery_expression direct_shuffle_partition_id
        """.split()
    ),
}
_KIND_OF = {proto.Command: "command_type", proto.Relation: "rel_type", proto.Expression: "expr_type"}
# Messages in fields of others.
_REJECTED: Mapping[str, str] = {
    "google.protobuf.Any": "an extension runs code of a plugin",
    "spark.connect.StreamingForeachFunction": "foreach and foreachBatch run code",
    "spark.connect.CommonInlineUserDefinedFunction": "a user-defined function is code",
    "spark.connect.DataType.UDT": "a user-defined type names a class to load",
}
_FUNCTION_NAMES = ("function_name",)
_FORMATS = ("format", "source", "provider")
_SCHEMAS = ("schema", "json_string")
_OPTIONS = ("options", "table_properties", "properties")


def check_plan(message: Message, formats: Collection[str]) -> None:
    """Raise StatementError for a request that brings code.

    Args:
        formats: What clients may name as the format of files and tables.
    """
    for each in messages(message):
        reason = _REJECTED.get(each.DESCRIPTOR.full_name)
        if reason is not None:
            raise StatementError(f"{reason}: {WITHOUT}")
        _check_kind(each)
        _check_texts(each, formats)


def check_settings(request: proto.ConfigRequest) -> None:
    """Raise StatementError for a setting that names a class to load."""
    for each in request.operation.set.pairs:
        check_setting(each.key)


def without_secrets(answer: proto.ConfigResponse) -> None:
    """Hide the values of settings that SET hides too, as Spark 4.3 does: the server's own keys of stores are among them."""
    for pair in answer.pairs:
        if pair.value and _SECRET.search(pair.key):
            pair.value = HIDDEN


def check_artifacts(request: proto.AddArtifactsRequest) -> None:
    """Raise StatementError for a file that is no part of a DataFrame's rows."""
    for name in (*(each.name for each in request.batch.artifacts), request.begin_chunk.name):
        if name and not name.startswith(_ARTIFACTS):
            raise StatementError(f"addArtifact of {name} loads code: {WITHOUT}")


def _check_kind(message: Any) -> None:
    allowed = _ALLOWED.get(type(message))
    if allowed is None:
        return
    kind = message.WhichOneof(_KIND_OF[type(message)])
    if kind is not None and kind not in allowed:
        what = type(message).__name__.lower()
        raise StatementError(
            f"the {what} {kind} brings code of its sender, or is not known to be free of it: {WITHOUT}"
        )


def _check_texts(message: Any, formats: Collection[str]) -> None:
    """Raise StatementError for SQL, functions, formats, types and options that run code."""
    if isinstance(message, proto.SQL):
        check_no_code(message.query, formats)
    elif isinstance(message, proto.Expression.ExpressionString):
        check_no_code(f"select {message.expression}", formats)
    fields = message.DESCRIPTOR.fields_by_name
    for name in _texts(message, fields, _FUNCTION_NAMES):
        if name.rpartition(".")[2].strip(" `").lower() in CALLS_JAVA:
            raise StatementError(f"{', '.join(CALLS_JAVA)} call Java: {WITHOUT}")
    for name in _texts(message, fields, _FORMATS):
        if name.lower() not in formats and name.lower() not in _STREAMS:
            raise StatementError(
                f"the format {name} may run code; formats of this server: {', '.join(sorted(formats))}: {WITHOUT}"
            )
    for name in _texts(message, fields, _SCHEMAS):
        if '"udt"' in name:
            raise StatementError(f"a user-defined type names a class to load: {WITHOUT}")
    for option in (key for each in _OPTIONS if each in fields for key in getattr(message, each)):
        check_setting(option)


def _texts(message: Any, fields: Mapping[str, Any], names: Iterable[str]) -> Iterable[str]:
    """Return the texts, not empty, in those of the named fields that a message has."""
    found = [getattr(message, each) for each in names if each in fields]
    return [each for each in found if isinstance(each, str) and each]
